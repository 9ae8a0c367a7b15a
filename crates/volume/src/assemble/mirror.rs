//! A mirror from its legs: which labels count, which legs are believed, what a cut left in doubt.

use std::sync::Arc;

use steadfast_block::DeviceInfo;
use steadfast_runtime::{Condvar, Mutex};

use super::lineage::{is_current, newest, own_uuid, place_in, precedes};
use super::{AssembleOptions, Device, Volume, map};
use crate::error::{Result, VolumeError};
use crate::member::Labelled;
use crate::mirror::policy::Policies;
use crate::mirror::ranges::Ranges;
use crate::mirror::regions::Regions;
use crate::mirror::{Core, Leg, Mirror, Spare, State, bit, describe, random_uuid, slots};
use crate::ondisk::BLOCK;
use crate::ondisk::label::{Kind, LEGS_MAX, Label, Member, MemberState};
use crate::ondisk::map::{Region, RegionState};
use crate::planted::Bug;

pub(super) fn assemble(members: Vec<Labelled>, options: &AssembleOptions) -> Result<Volume> {
    let newest = decide(&members, options)?;
    let trusted = trusted_legs(&members, &newest, options);
    if trusted.is_empty() {
        return Err(VolumeError::refused(format!(
            "volume '{}': no leg that can be believed is there",
            newest.name
        )));
    }
    let devices: Vec<Device> = trusted.iter().map(|n| Arc::clone(&members[*n].device)).collect();
    let regions = map::read(newest.volume, &devices, newest.size, newest.region_bytes)?;
    let mut state = state_of(&members, &newest, regions, options)?;
    let gone = missing(&state, &newest);
    refuse_without(&state, gone, options)?;
    take_up(&mut state, &members, &newest, &trusted, gone, options);
    settle_doubt(&mut state, options);
    let core = Core {
        volume: newest.volume,
        name: newest.name.clone(),
        planted: options.planted,
        state: Mutex::new(state),
        changed: Condvar::new(),
        labels: Mutex::new(()),
        admin: Mutex::new(()),
    };
    let mirror = Mirror(Arc::new(core));
    if !options.read_only {
        mirror.take_over(&members, &newest, &trusted)?;
    }
    Ok(mirror.into_volume())
}

/// The label that counts.
fn decide(members: &[Labelled], options: &AssembleOptions) -> Result<Label> {
    let is_leg = |m: &&Labelled| {
        let own = &m.label.members[m.label.slot];
        m.label.kind == Kind::Mirror && own.state != MemberState::Spare && !own.volatile
    };
    let legs: Vec<&Labelled> = members.iter().filter(is_leg).collect();
    if let Some(uuid) = options.keep {
        let kept = legs.iter().find(|m| own_uuid(&m.label) == uuid);
        return kept.map(|m| m.label.clone()).ok_or_else(|| {
            VolumeError::refused(format!("the leg that is to be kept ({uuid}) is not there"))
        });
    }
    let sound: Vec<&Labelled> = legs.iter().copied().filter(|m| !m.overwritten).collect();
    let labels: Vec<&Label> = sound.iter().map(|m| &m.label).collect();
    if labels.is_empty() {
        return Err(none_sound(members, &legs));
    }
    match newest(&labels) {
        Some(n) => Ok(labels[n].clone()),
        None => Err(written_apart(&sound)),
    }
}

fn none_sound(members: &[Labelled], legs: &[&Labelled]) -> VolumeError {
    let name = members.first().map_or("", |m| &m.label.name);
    let Some(overwritten) = legs.first() else {
        return VolumeError::refused(format!(
            "volume '{name}': none of its durable legs is there, only what a power cut may have \
             emptied"
        ));
    };
    VolumeError::Corrupt {
        device: overwritten.name(),
        what: format!(
            "its start was overwritten: only the label's second copy tells that it is a leg of \
             volume '{name}'. If what it holds is to be believed all the same, say so with \
             --keep {}",
            own_uuid(&overwritten.label)
        ),
    }
}

/// Both were used without the other. What each side is, and what choosing it means.
fn written_apart(legs: &[&Labelled]) -> VolumeError {
    let name = legs.first().map_or("", |m| &m.label.name);
    let sides: Vec<String> = legs
        .iter()
        .map(|m| {
            let (device, generation) = (m.name(), m.label.generation);
            let uuid = own_uuid(&m.label);
            format!("{device} (generation {generation}): --keep {uuid}")
        })
        .collect();
    VolumeError::refused(format!(
        "volume '{name}': its legs were written to apart from each other, and only one side can be \
         kept; what was written to the others since then will be lost. Look at each side alone \
         first, read-only, then choose: {}",
        sides.join("; ")
    ))
}

/// Members (by their number) whose data and map are as the newest label says.
fn trusted_legs(members: &[Labelled], newest: &Label, options: &AssembleOptions) -> Vec<usize> {
    let trusted = |n: &usize| {
        let found = &members[*n];
        let Some(slot) = place_in(&found.label, newest) else { return false };
        let known = &newest.members[slot];
        if options.keep.is_some() && options.keep == Some(own_uuid(&found.label)) {
            return true;
        }
        known.state == MemberState::Active
            && !known.volatile
            && !found.overwritten
            && is_current(&found.label, newest)
    };
    (0..members.len()).filter(trusted).collect()
}

fn leg_of(known: &Member, found: Option<&Labelled>) -> Leg {
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
        volatile: known.volatile,
        state: known.state,
        erred: None,
        measured: Default::default(),
        counters: Default::default(),
    }
}

fn state_of(
    members: &[Labelled],
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
                name: known.name.clone(),
                bytes: known.bytes,
            }),
            _ => {
                let leg = leg_of(known, find(known));
                if leg.device.is_some() && leg.room < newest.size {
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
    Ok(State {
        info: describe(&newest.name, newest.size, &infos, options.read_only),
        legs,
        spares,
        regions,
        ranges: Ranges::default(),
        policies: Policies::from_bytes(newest.policies),
        generation: newest.generation,
        data: newest.data,
        incarnation: random_uuid(),
        history: newest.history.clone(),
        membership: 0,
        published: 0,
        passes_begun: 0,
        passes_done: 0,
        failed: None,
        closed: None,
        reads: 0,
        last: 0,
        resyncing: false,
        ticks: 0,
    })
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

/// What is missing may have gone on without those that are here, if together it had everything.
fn refuse_without(state: &State, gone: u8, options: &AssembleOptions) -> Result<()> {
    if gone == 0 || options.degraded || options.keep.is_some() {
        return Ok(());
    }
    let held = |r: u32| {
        let region = state.regions.get(r);
        region.state == RegionState::Unwritten || gone & !region.stale != 0
    };
    if !(0..state.regions.count()).all(held) {
        return Ok(());
    }
    let names: Vec<String> = slots(gone)
        .filter_map(|slot| Some(format!("leg {slot} ({})", state.legs[slot].as_ref()?.name)))
        .collect();
    Err(VolumeError::refused(format!(
        "volume '{}': {} is missing, and may hold newer data than what is here; give it too, or go \
         on without it with --degraded",
        state.info.name,
        names.join(" and ")
    )))
}

/// Who takes writes from now on, and what they lack.
fn take_up(
    state: &mut State,
    members: &[Labelled],
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
            // Not believed after a restart, whatever it says of itself.
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
        let known = newest.members.get(slot).map(|m| m.state);
        let an_ancestor = !found.overwritten && precedes(&found.label, newest);
        match known {
            // It was not there the last time; the map says what it has missed.
            Some(MemberState::Missing) if an_ancestor => leg.state = MemberState::Active,
            // An old copy, or one whose start is gone: a leg that lacks everything.
            Some(MemberState::Active | MemberState::Missing) => {
                leg.state = MemberState::Active;
                state.regions.set_all_stale(bit(slot));
            }
            _ => {}
        }
    }
    for slot in slots(gone) {
        state.leave(slot, MemberState::Missing);
    }
    if options.keep.is_some() {
        // Whoever went on apart is left behind.
        state.branch();
    }
    state.membership += 1;
}

/// What a cut left in doubt is decided once: one leg stands for a region, the others lack it.
fn settle_doubt(state: &mut State, options: &AssembleOptions) {
    let (known, durable) = (state.known(), state.durable());
    let active = state.active();
    for region in 0..state.regions.count() {
        let mut now = state.regions.get(region);
        // Places that are empty by now say nothing.
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
                    now.stale |= known & !bit(source);
                    now.state = RegionState::Clean;
                }
            }
        }
        state.regions.set(region, now);
    }
}

impl Mirror {
    /// Writes down what the assembly decided: the map first, then who is a member.
    fn take_over(&self, members: &[Labelled], newest: &Label, trusted: &[usize]) -> Result<()> {
        let untrusted = members.iter().enumerate().filter(|(n, _)| !trusted.contains(n));
        for (_, found) in untrusted {
            let Some(slot) = place_in(&found.label, newest) else { continue };
            let state = self.0.state.lock();
            let rejoins = state.leg(slot).is_some_and(|(leg, _)| !leg.volatile);
            if rejoins {
                drop(state);
                self.0.clear_map_of(slot)?;
                self.0.state.lock().regions.rewrite_all();
            }
        }
        self.0.commit()?;
        self.0.publish()?;
        // Once more: a copy of a member from before this assembly is now two changes old, which no
        // interrupted change explains.
        self.0.state.lock().membership += 1;
        Ok(self.0.publish()?)
    }

    pub(crate) fn into_volume(self) -> Volume {
        let (uuid, name) = (self.uuid(), self.name().to_owned());
        let state = self.0.state.lock();
        let members = state.legs.iter().flatten();
        let members = members.filter(|l| l.device.is_some()).map(|l| l.name.clone()).collect();
        drop(state);
        Volume {
            uuid,
            name,
            kind: Kind::Mirror,
            device: Arc::new(self.clone()),
            mirror: Some(self),
            members,
            member_of: None,
        }
    }
}
