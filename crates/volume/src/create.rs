//! New volumes.
//!
//! Labels are written last. If a power cut interrupts the creation, the devices are unlabelled or
//! members of an incomplete volume. A volume never looks complete while it is not.

use std::sync::Arc;

use steadfast_block::{BlockDevice, DeviceInfo};

use crate::assemble::{Volume, assemble_one};
use crate::error::Result;
use crate::member::{LabelledDevice, check_new, write_label};
use crate::mirror::policy::Policies;
use crate::mirror::regions::Regions;
use crate::mirror::{
    Core, Leg, Mirror, MirrorChecksums, NewLeg, ONE_PARTIAL, State, check_policies, clear_map,
    describe, leg_on,
};
use crate::ondisk::label::{
    LEGS_MAX, Label, LayoutKind, MEMBERS_MAX, Member, MemberState, NAME_MAX,
};
use crate::ondisk::map::{Region, RegionState};
use crate::ondisk::{
    BLOCK, Layout, REGION_MAX, REGION_MIN, REGIONS_MAX, checksums, default_region, random_uuid,
};
use crate::planted::Bug;
use crate::rows;
use steadfast_block::planted::BugSwitch;

type Device = Arc<dyn BlockDevice>;

/// What the legs of a new mirror hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Contents {
    /// Anything: it reads as zeros, and the first write of each region fills the rest of it.
    #[default]
    Anything,
    /// The same on all legs: new devices that read as zeros. Nothing has to be filled.
    Same,
}

/// How a new mirror is made.
#[derive(Debug, Clone, Default)]
pub struct MirrorOptions {
    /// Bytes; by default all that its legs have room for.
    pub size: Option<u64>,
    /// Bytes of a region; by default a 16384th of the size, from 64 KiB to 1 MiB.
    pub region_bytes: Option<u32>,
    /// Policies.
    pub policies: Policies,
    /// What the legs hold.
    pub contents: Contents,
    /// Keeps a checksum of every 4096 bytes, to detect and repair wrong data of a leg. Costs at
    /// most 1/64 of the space for regions of 256 KiB or more.
    pub checksums: bool,
    /// Bytes of memory that checksums take; 64 MiB by default.
    pub checksum_memory: Option<usize>,
    /// For tests of the tests.
    pub planted: BugSwitch<Bug>,
}

fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:+".contains(c);
    let good = !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(plain);
    if good && !name.starts_with('-') {
        return Ok(());
    }
    refuse!("'{name}' is no name for a volume: 1 to {NAME_MAX} letters, digits and -_.:+")
}

/// Refuses the same device in two places.
fn check_twice(devices: &[&Device]) -> Result<()> {
    for (n, a) in devices.iter().enumerate() {
        if devices[n + 1..].iter().any(|b| Arc::ptr_eq(a, b)) {
            let name = a.info().name;
            refuse!("{name}: is given twice");
        }
    }
    Ok(())
}

fn region_for(size: u64, options: &MirrorOptions) -> Result<u32> {
    let chosen = || default_region(size, options.checksums);
    let region = options.region_bytes.unwrap_or_else(chosen);
    if options.checksums && region < checksums::REGION_MIN {
        refuse!(
            "regions of {region} bytes: with checksums a region has at least {}",
            checksums::REGION_MIN
        );
    }
    let good = region.is_power_of_two() && (REGION_MIN..=REGION_MAX).contains(&region);
    if !good || size.div_ceil(u64::from(region.max(1))) > REGIONS_MAX {
        refuse!(
            "regions of {region} bytes: a region has a power of two of {REGION_MIN} to \
             {REGION_MAX} bytes, and a volume at most {REGIONS_MAX}"
        );
    }
    Ok(region)
}

/// A mirror that can be made: its legs, and the geometry that they allow.
struct MirrorPlan {
    legs: Vec<Leg>,
    infos: Vec<DeviceInfo>,
    region: u32,
    size: u64,
}

/// Everything that may be refused is refused here; nothing is written.
fn plan_mirror(name: &str, legs: &[NewLeg], options: &MirrorOptions) -> Result<MirrorPlan> {
    check_name(name)?;
    check_policies(options.policies)?;
    check_twice(&legs.iter().map(|l| &l.device).collect::<Vec<_>>())?;
    if legs.is_empty() || legs.len() > LEGS_MAX {
        refuse!("a mirror has 1 to {LEGS_MAX} legs, not {}", legs.len());
    }
    let whole = legs.iter().filter(|l| !l.partial);
    let smallest = whole.map(|l| l.device.info().size).min().unwrap_or(0);
    let region = region_for(smallest, options)?;
    let (made, infos): (Vec<Leg>, Vec<DeviceInfo>) = legs
        .iter()
        .map(|new| leg_on(new, region, options.checksums))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .unzip();
    if let Some(second) = made.iter().filter(|leg| leg.partial).nth(1) {
        refuse!("{}: {ONE_PARTIAL}", second.name);
    }
    if made.iter().all(|leg| leg.volatile) {
        refuse!(
            "a mirror needs a leg that keeps its contents without power; all of these lose them"
        );
    }
    let size = size_of(&made, region, options.size)?;
    Ok(MirrorPlan { legs: made, infos, region, size })
}

/// The mirror that [`create_mirror`] would create, as [`planned_rows`]. For callers that must write
/// to the devices before.
///
/// # Errors
/// What [`create_mirror`] refuses.
pub fn planned_mirror(name: &str, legs: &[NewLeg], options: &MirrorOptions) -> Result<Device> {
    let plan = plan_mirror(name, legs, options)?;
    Ok(Arc::new(rows::AbsentDevice::planned(describe(name, plan.size, &plan.infos, false))))
}

/// Creates a mirror of one to four legs.
///
/// # Errors
/// If a device cannot be a leg, none is durable, or one fails. Refusals change nothing.
pub fn create_mirror(name: &str, legs: &[NewLeg], options: &MirrorOptions) -> Result<Mirror> {
    let MirrorPlan { legs: made, infos, region, size } = plan_mirror(name, legs, options)?;
    for leg in made.iter().filter(|leg| !leg.volatile) {
        clear_map(leg)?;
    }
    let state = match options.contents {
        Contents::Anything => RegionState::Unwritten,
        Contents::Same => RegionState::Clean,
    };
    let mut regions = Regions::new(size, region, Region { state, stale: 0, summed: false });
    regions.rewrite_all();
    let info = describe(name, size, &infos, false);
    let mut state = State::new(info, regions, options.policies);
    state.checksums =
        options.checksums.then(|| MirrorChecksums::new(&state.regions, options.checksum_memory));
    state.legs.iter_mut().zip(made).for_each(|(place, leg)| *place = Some(leg));
    (0..LEGS_MAX).for_each(|slot| state.legs.new_epoch(slot));
    let partial = state.legs.partial();
    state.regions.set_all_stale(partial);
    state.assembling = false;
    let core = Arc::new(Core::new(random_uuid(), name.to_owned(), options.planted, state));
    core.commit()?;
    core.publish()?;
    Ok(Mirror::of(core))
}

/// Whole regions, as many as every leg has room for.
fn size_of(legs: &[Leg], region: u32, wanted: Option<u64>) -> Result<u64> {
    let region = u64::from(region);
    let least = legs.iter().filter(|leg| !leg.partial).min_by_key(|leg| leg.room);
    let (name, room) = least.map_or(("", 0), |leg| (&leg.name, leg.room));
    let most = room - room % region;
    if most == 0 {
        refuse!(
            "{name}: is too small: with labels and map it has room for {room} bytes, a volume has \
             at least one region of {region}"
        );
    }
    let size = wanted.unwrap_or(most);
    if size > most {
        let more = least.map_or(0, |leg| size.saturating_add(leg.device_bytes - leg.room));
        refuse!("{name}: is too small: for {size} bytes with labels and map a leg needs {more}");
    }
    if size == 0 || !size.is_multiple_of(region) {
        refuse!(
            "a volume of {size} bytes: it has whole regions of {region}, for example {}",
            size.next_multiple_of(region).clamp(region, most)
        );
    }
    Ok(size)
}

/// A concat or stripe that can be made.
struct RowsPlan {
    kind: LayoutKind,
    members: Vec<Member>,
    /// Of each member: what is where, and the bytes of the device.
    layouts: Vec<(Layout, u64)>,
    size: u64,
    info: DeviceInfo,
}

/// Everything that may be refused is refused here; nothing is written.
fn plan_rows(
    name: &str,
    devices: &[Device],
    interlace: Option<u32>,
    force: bool,
) -> Result<RowsPlan> {
    check_name(name)?;
    check_twice(&devices.iter().collect::<Vec<_>>())?;
    let kind = if interlace.is_some() { LayoutKind::Stripe } else { LayoutKind::Concat };
    let what = kind.name();
    if devices.is_empty() || devices.len() > MEMBERS_MAX {
        let count = devices.len();
        refuse!("a {what} has 1 to {MEMBERS_MAX} components, not {count}");
    }
    let unit = u64::from(interlace.unwrap_or(BLOCK as u32));
    if unit == 0 || unit % BLOCK != 0 || unit > 100 << 20 {
        refuse!("an interlace of {unit} bytes: whole blocks of {BLOCK}, at most 100 MiB");
    }
    let mut members = Vec::new();
    let mut layouts = Vec::new();
    let mut infos = Vec::new();
    for device in devices {
        let info = check_new(device, force)?;
        let layout = Layout::of_component(info.size);
        let bytes = layout.room(info.size);
        let bytes = bytes - bytes % unit;
        if bytes == 0 {
            refuse!("{}: is too small to be a component", info.name);
        }
        let state = MemberState::Active;
        members.push(Member {
            uuid: random_uuid(),
            bytes,
            state,
            name: info.name.clone(),
            ..Member::default()
        });
        layouts.push((layout, info.size));
        infos.push(info);
    }
    let least = members.iter().map(|m| m.bytes).min().unwrap_or(0);
    let size = match kind {
        LayoutKind::Stripe => least.saturating_mul(members.len() as u64),
        _ => members.iter().map(|m| m.bytes).fold(0, u64::saturating_add),
    };
    let info = rows::describe(name, kind == LayoutKind::Stripe, size, &infos);
    Ok(RowsPlan { kind, members, layouts, size, info })
}

/// The concat or stripe that [`create_rows`] would create, as a device that describes itself and
/// serves no requests. For callers that must know whether it will fit. Nothing is written.
///
/// # Errors
/// What [`create_rows`] refuses.
pub fn planned_rows(
    name: &str,
    devices: &[Device],
    interlace: Option<u32>,
    force: bool,
) -> Result<Device> {
    let plan = plan_rows(name, devices, interlace, force)?;
    Ok(Arc::new(rows::AbsentDevice::planned(plan.info)))
}

/// Makes a concat, or with an interlace a stripe, of these devices.
///
/// # Errors
/// If a device cannot be a component, or fails. Refusals change nothing.
pub fn create_rows(
    name: &str,
    devices: &[Device],
    interlace: Option<u32>,
    force: bool,
) -> Result<Volume> {
    let RowsPlan { kind, members, layouts, size, .. } = plan_rows(name, devices, interlace, force)?;
    let (volume, data) = (random_uuid(), random_uuid());
    let label = |slot: usize| Label {
        volume,
        name: name.to_owned(),
        kind,
        slot,
        generation: 1,
        data,
        closed: true,
        size,
        interlace: interlace.unwrap_or(0),
        data_start: layouts[slot].0.data_start,
        device_bytes: layouts[slot].1,
        members: members.clone(),
        ..Label::default()
    };
    let mut found = Vec::new();
    for (slot, device) in devices.iter().enumerate() {
        let label = label(slot);
        write_label(device, &label)?;
        found.push(LabelledDevice { device: Arc::clone(device), label, overwritten: None });
    }
    assemble_one(found, &Default::default())
}
