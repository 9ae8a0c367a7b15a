//! A mirror from its legs: which labels count, which legs are trusted, which regions are out of
//! sync.

use std::sync::Arc;

use steadfast_block::{BlockDevice, DeviceInfo};

use super::lineage::{is_as_it_left, is_current, newest, own_uuid, place_in, unknown};
use super::{AssembleOptions, Device, Volume, map};
use crate::error::{Result, VolumeError};
use crate::member::LabelledDevice;
use crate::mirror::policy::Policies;
use crate::mirror::regions::Regions;
use crate::mirror::{
    AssemblyChanges, Core, Leg, Legs, Mirror, MirrorChecksums, Spare, State, bit, describe,
    partial_leg, slots,
};
use crate::ondisk::BLOCK;
use crate::ondisk::label::{LEGS_MAX, Label, LayoutKind, Member, MemberState};
use crate::ondisk::map::{Region, RegionState};
use crate::planted::Bug;

/// Assembles a mirror; nothing is written yet (`mirror::commit_assembly`).
pub(super) fn assemble(members: Vec<LabelledDevice>, options: &AssembleOptions) -> Result<Mirror> {
    let newest = decide(&members, options)?;
    let trusted = trusted_legs(&members, &newest, options);
    if trusted.is_empty() {
        return Err(VolumeError::incomplete(format!(
            "volume '{}': no trusted leg is present",
            newest.name
        )));
    }
    let devices: Vec<Device> = trusted.iter().map(|n| Arc::clone(&members[*n].device)).collect();
    let regions = map::read(newest.volume, &devices, newest.size, newest.region_bytes)?;
    let mut state = state_of(&members, &newest, regions, options)?;
    set_aside(&mut state, &members, &newest, &trusted, options);
    let gone = missing(&state, &newest);
    refuse_without(&state, gone, options)?;
    take_up(&mut state, &members, &newest, &trusted, gone, options);
    settle_out_of_sync(&mut state, options);
    let memory = options.checksum_memory;
    state.checksums = newest.checksums.then(|| MirrorChecksums::new(&state.regions, memory));
    check_room(&state)?;
    state.pending = Some(to_write_down(&state, &members, &trusted));
    let core = Core::new(newest.volume, newest.name.clone(), options.planted, state);
    Ok(Mirror::of(Arc::new(core)))
}

/// The label that counts.
fn decide(members: &[LabelledDevice], options: &AssembleOptions) -> Result<Label> {
    let is_leg = |m: &&LabelledDevice| {
        let own = &m.label.members[m.label.slot];
        m.label.kind == LayoutKind::Mirror && own.state != MemberState::Spare && !own.volatile
    };
    let legs: Vec<&LabelledDevice> = members.iter().filter(is_leg).collect();
    if let Some(uuid) = options.keep {
        let kept = legs.iter().find(|m| own_uuid(&m.label) == uuid);
        return kept.map(|m| m.label.clone()).ok_or_else(|| {
            VolumeError::refused(format!("the leg that is to be kept ({uuid}) is not there"))
        });
    }
    let sound: Vec<&LabelledDevice> =
        legs.iter().copied().filter(|m| m.overwritten.is_none()).collect();
    let labels: Vec<&Label> = sound.iter().map(|m| &m.label).collect();
    if labels.is_empty() {
        return Err(none_sound(members, &legs));
    }
    match newest(&labels) {
        Some(n) => Ok(labels[n].clone()),
        None => match unknown(&labels) {
            Some((newest, older)) => Err(too_old(sound[newest], &sound, &older)),
            None => Err(written_apart(&sound)),
        },
    }
}

fn none_sound(members: &[LabelledDevice], legs: &[&LabelledDevice]) -> VolumeError {
    let name = members.first().map_or("", |m| &m.label.name);
    let Some((damaged, end)) = legs.first().and_then(|m| Some((m, m.overwritten?))) else {
        return VolumeError::incomplete(format!(
            "volume '{name}': none of its durable legs is there, only what a power cut may have \
             emptied"
        ));
    };
    let what = format!(
        "{} that it is a leg of volume '{name}'. If what it holds is to be believed all the same, \
         say so with --keep {}",
        end.overwritten(),
        own_uuid(&damaged.label)
    );
    VolumeError::Corrupt { device: damaged.name(), what }
}

/// Some legs left so long ago that the label no longer records when.
fn too_old(newest: &LabelledDevice, legs: &[&LabelledDevice], older: &[usize]) -> VolumeError {
    let (label, name) = (&newest.label, &newest.label.name);
    let old = older.iter().filter_map(|n| legs.get(*n));
    let old = old.map(|m| format!("{} (generation {})", m.name(), m.label.generation));
    VolumeError::incomplete(format!(
        "volume '{name}': {} may be an old copy of a leg, or may have been written to apart: what \
         {} (generation {}) remembers does not go back so far, only to generation {}. Look at each \
         side alone, read-only. If nothing on the old side is wanted, leave it out and go on with \
         --degraded, or have it overwritten with --keep {}",
        old.collect::<Vec<_>>().join(" and "),
        newest.name(),
        label.generation,
        label.forgotten,
        own_uuid(label),
    ))
}

/// Both were used without the other. What each side is, and what choosing it means.
fn written_apart(legs: &[&LabelledDevice]) -> VolumeError {
    let name = legs.first().map_or("", |m| &m.label.name);
    let sides: Vec<String> = legs
        .iter()
        .map(|m| {
            let (device, generation) = (m.name(), m.label.generation);
            let uuid = own_uuid(&m.label);
            format!("{device} (generation {generation}): --keep {uuid}")
        })
        .collect();
    VolumeError::incomplete(format!(
        "volume '{name}': its legs were written to apart from each other, and only one side can be \
         kept; what was written to the others since then will be lost. Look at each side alone \
         first, read-only, then choose: {}",
        sides.join("; ")
    ))
}

/// Members (by their number) whose data and map are as the newest label says.
fn trusted_legs(
    members: &[LabelledDevice],
    newest: &Label,
    options: &AssembleOptions,
) -> Vec<usize> {
    let trusted = |n: &usize| {
        let found = &members[*n];
        let Some(slot) = place_in(&found.label, newest) else { return false };
        let known = &newest.members[slot];
        if options.keep.is_some() && options.keep == Some(own_uuid(&found.label)) {
            return true;
        }
        known.state == MemberState::Active
            && !known.volatile
            && found.overwritten.is_none()
            && is_current(&found.label, newest)
    };
    (0..members.len()).filter(trusted).collect()
}

fn leg_of(known: &Member, found: Option<&LabelledDevice>) -> Leg {
    let info = found.map(|m| m.device.info());
    let device_bytes = info.as_ref().map_or(0, |i| i.size);
    let data_start = found.map_or(0, |m| m.label.data_start);
    let room = match device_bytes.checked_sub(data_start + BLOCK) {
        Some(room) if found.is_some() => room - room % BLOCK,
        _ => known.bytes,
    };
    Leg {
        uuid: known.uuid,
        device: found.map(|m| Arc::clone(&m.device)),
        name: info.map_or_else(|| known.name.clone(), |i| i.name),
        room,
        data_start,
        map_blocks: found.map_or(0, |m| m.label.map_blocks),
        device_bytes,
        volatile: known.volatile || known.partial,
        partial: known.partial,
        state: known.state,
        left: known.left,
        ..Leg::default()
    }
}

fn state_of(
    members: &[LabelledDevice],
    newest: &Label,
    regions: Regions,
    options: &AssembleOptions,
) -> Result<State> {
    let find = |known: &Member| members.iter().find(|m| own_uuid(&m.label) == known.uuid);
    let mut legs: [Option<Leg>; LEGS_MAX] = Default::default();
    let mut spares = Vec::new();
    for (slot, known) in newest.members.iter().enumerate() {
        match known.state {
            MemberState::Empty => {}
            MemberState::Spare => spares.push(Spare {
                uuid: known.uuid,
                device: find(known).map(|m| Arc::clone(&m.device)),
                name: find(known).map_or_else(|| known.name.clone(), LabelledDevice::name),
                bytes: known.bytes,
            }),
            _ => {
                let mut leg = leg_of(known, find(known));
                if let Some(found) = find(known).filter(|_| known.partial) {
                    let (start, region) = (found.label.data_start, newest.region_bytes.into());
                    leg = partial_leg(leg, &found.device, start, region);
                }
                if leg.device.is_some() && leg.room < newest.size && !leg.partial {
                    let what = "is too small for the volume that its label names".into();
                    return Err(VolumeError::Corrupt { device: leg.name, what });
                }
                if let Some(place) = legs.get_mut(slot) {
                    *place = Some(leg);
                }
            }
        }
    }
    let infos: Vec<DeviceInfo> =
        legs.iter().flatten().filter_map(|l| l.device.as_ref()).map(|d| d.info()).collect();
    let info = describe(&newest.name, newest.size, &infos, options.read_only);
    let mut state = State::new(info, regions, Policies::from_bytes(newest.policies));
    state.legs = Legs::new(legs);
    state.spares = spares;
    state.generation = newest.generation;
    state.base = newest.base;
    state.data = newest.data;
    state.history = newest.history.clone();
    state.forgotten = newest.forgotten;
    (0..LEGS_MAX).for_each(|slot| state.legs.new_epoch(slot));
    Ok(state)
}

/// A leg that is an old copy, or that lost an end, is stale everywhere. If the leg is the only
/// holder of a region, this device is not the holder: the leg counts as missing.
fn set_aside(
    state: &mut State,
    members: &[LabelledDevice],
    newest: &Label,
    trusted: &[usize],
    options: &AssembleOptions,
) {
    if options.keep.is_some() {
        return;
    }
    for (n, found) in members.iter().enumerate().filter(|(n, _)| !trusted.contains(n)) {
        let Some(slot) = place_in(&found.label, newest).filter(|slot| *slot < LEGS_MAX) else {
            continue;
        };
        let Some(leg) = state.legs[slot].as_ref().filter(|leg| !leg.volatile) else { continue };
        let in_use = matches!(leg.state, MemberState::Active | MemberState::Missing);
        if !in_use || is_back(leg, &members[n], newest) {
            continue;
        }
        let mut alone = state.held_alone(slot);
        // A first write that was in flight was not flushed.
        alone.retain(|r| state.regions.get(*r).state != RegionState::Filling);
        let bytes = state.bytes_in(&alone);
        if let Some(leg) = state.legs[slot].as_mut().filter(|_| bytes > 0) {
            leg.device = None;
            leg.erred = Some(format!(
                "{} is an old copy of this leg or was overwritten, and the leg alone holds {bytes} \
                 bytes of the volume",
                found.name()
            ));
        }
    }
}

/// Whether a leg that was out of use is as it left.
fn is_back(leg: &Leg, found: &LabelledDevice, newest: &Label) -> bool {
    found.overwritten.is_none()
        && leg
            .left
            .is_some_and(|left| is_as_it_left(&found.label, left, newest.data, &newest.history))
}

/// Durable legs that took writes and are not there.
fn missing(state: &State, newest: &Label) -> u8 {
    let is_missing = |slot: &usize| {
        let known = newest.members.get(*slot);
        let took_writes = known.is_some_and(|m| m.state == MemberState::Active && !m.volatile);
        took_writes && state.legs[*slot].as_ref().is_some_and(|leg| leg.device.is_none())
    };
    (0..LEGS_MAX).filter(is_missing).fold(0, |all, slot| all | bit(slot))
}

/// Missing legs may have been used without the present ones, also with `degraded` and without the
/// regions that were stale on them.
fn refuse_without(state: &State, gone: u8, options: &AssembleOptions) -> Result<()> {
    if gone == 0 || options.degraded || options.keep.is_some() {
        return Ok(());
    }
    let legs = || slots(gone).filter_map(|slot| Some((slot, state.legs[slot].as_ref()?)));
    let names: Vec<String> =
        legs().map(|(slot, leg)| format!("leg {slot} ({})", leg.name)).collect();
    let (is, it) = if names.len() == 1 { ("is", "it") } else { ("are", "them") };
    let instead = legs().filter_map(|(_, leg)| leg.erred.clone());
    let instead: String = instead.map(|what| format!(" ({what})")).collect();
    Err(VolumeError::incomplete(format!(
        "volume '{}': {}{instead} {is} missing, and may hold newer data than what is here; give \
         {it} too, or go on without {it} with --degraded",
        state.info.name,
        names.join(" and ")
    )))
}

/// Which legs are active from now on, and their stale regions.
fn take_up(
    state: &mut State,
    members: &[LabelledDevice],
    newest: &Label,
    trusted: &[usize],
    gone: u8,
    options: &AssembleOptions,
) {
    let is_trusted = |uuid| trusted.iter().any(|n| own_uuid(&members[*n].label) == uuid);
    for slot in 0..LEGS_MAX {
        let Some(leg) = state.legs[slot].as_mut() else { continue };
        let found = members.iter().find(|m| own_uuid(&m.label) == leg.uuid);
        if leg.volatile {
            if leg.device.is_some() {
                leg.state = MemberState::Active;
            }
            // Not trusted after a restart, whatever its label says.
            if !options.planted.has(Bug::VolatileSource) {
                state.regions.set_all_stale(bit(slot));
            }
            continue;
        }
        if is_trusted(leg.uuid) {
            leg.state = MemberState::Active;
            continue;
        }
        let Some(found) = found else { continue };
        // A leg in use that an interrupted return has left with the label of before.
        let known = newest.members.get(slot).map(|m| m.state);
        if !matches!(known, Some(MemberState::Missing | MemberState::Active)) {
            continue;
        }
        if leg.device.is_none() {
            // Set aside.
            continue;
        }
        leg.state = MemberState::Active;
        // The map says which regions it missed. An old copy, or a leg that lost an end, is stale
        // everywhere.
        if !is_back(leg, found, newest) {
            state.regions.set_all_stale(bit(slot));
        }
    }
    for slot in slots(gone) {
        state.leave(slot, MemberState::Missing);
    }
    if let Some(kept) = options.keep {
        believe(state, kept);
        // Legs of the other half of a split brain are dropped.
        state.branch();
    }
}

/// If no other leg holds a region, the kept leg is the best source.
fn believe(state: &mut State, kept: uuid::Uuid) {
    let is_kept = |leg: &Leg| leg.uuid == kept;
    let Some(slot) = state.legs.iter().position(|l| l.as_ref().is_some_and(is_kept)) else {
        return;
    };
    let durable = state.legs.active() & state.legs.durable();
    for region in 0..state.regions.count() {
        let now = state.regions.get(region);
        if now.stale & bit(slot) != 0 && durable & !now.stale == 0 {
            // Its checksum record is as old as its data.
            let stale = now.stale & !bit(slot);
            state.regions.set(region, Region { stale, summed: false, ..now });
        }
    }
}

/// Regions out of sync after a power cut: one leg is the primary of a region. The other present
/// legs are synced from it before the first read or write (`mirror::out_of_sync`); missing legs
/// become stale.
fn settle_out_of_sync(state: &mut State, options: &AssembleOptions) {
    let (known, durable) = (state.legs.known(), state.legs.durable());
    let active = state.legs.active();
    for region in 0..state.regions.count() {
        let mut now = state.regions.get(region);
        let mut out_of_sync = 0;
        // Empty places mean nothing.
        now.stale &= known;
        match now.state {
            RegionState::Unwritten => now.stale = 0,
            RegionState::Filling => now = Region::UNWRITTEN,
            RegionState::Clean => {}
            RegionState::Dirty => {
                let good = active & !now.stale;
                let believed = match options.planted.has(Bug::VolatileSource) {
                    true if good & !durable != 0 => good & !durable,
                    _ => good & durable,
                };
                if let Some(source) = slots(believed).next() {
                    // Also a leg that is missing now: the label must say that it is stale before
                    // anything is read that it may not hold.
                    let others = known & durable & !bit(source);
                    if state.regions.on_disk(region).stale & others != others {
                        state.undecided.insert(region);
                    }
                    let alike = if bit(source) & durable == 0 { 0 } else { believed };
                    out_of_sync = alike & !bit(source);
                    now.stale |= known & !bit(source) & !out_of_sync;
                    if out_of_sync == 0 {
                        now.state = RegionState::Clean;
                    }
                }
            }
        }
        state.regions.set(region, now);
        state.regions.set_out_of_sync(region, out_of_sync);
    }
}

/// Refuses legs whose map or checksums would overlap their data: no valid label says so.
fn check_room(state: &State) -> Result<()> {
    let regions = u64::from(state.regions.count());
    let there = state.legs.iter().flatten().filter(|leg| leg.device.is_some());
    match there.into_iter().find(|leg| state.regions_max(leg) < regions) {
        Some(leg) => Err(VolumeError::Corrupt {
            device: leg.name.clone(),
            what: "its label gives map or checksums too little room for its volume".into(),
        }),
        None => Ok(()),
    }
}

/// What must be written before the first change.
fn to_write_down(state: &State, members: &[LabelledDevice], trusted: &[usize]) -> AssemblyChanges {
    let mut work = AssemblyChanges::default();
    for (n, found) in members.iter().enumerate() {
        let is_leg = |slot: &usize| {
            state.legs.leg(*slot).is_some_and(|(l, _)| l.uuid == own_uuid(&found.label))
        };
        let Some(slot) = (0..LEGS_MAX).find(is_leg) else { continue };
        let Some((leg, device)) = state.legs.leg(slot) else { continue };
        if !leg.volatile && !trusted.contains(&n) {
            work.clear |= bit(slot);
        }
        let device_bytes = leg.own_device().unwrap_or(device).info().size;
        if device_bytes > found.label.device_bytes {
            work.moved.push((slot, Label { device_bytes, ..found.label.clone() }));
        }
    }
    work
}

impl Mirror {
    pub(crate) fn into_volume(self) -> Volume {
        let (uuid, name) = (self.uuid(), self.name().to_owned());
        let state = self.0.state.lock();
        let members = state.legs.iter().flatten();
        let members = members.filter(|l| l.device.is_some()).map(|l| l.name.clone()).collect();
        drop(state);
        Volume {
            uuid,
            name,
            kind: LayoutKind::Mirror,
            device: Arc::new(self.clone()),
            mirror: Some(self),
            members,
            member_of: None,
        }
    }
}
