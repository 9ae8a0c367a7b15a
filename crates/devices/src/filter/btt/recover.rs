//! Opening an arena: reading the flog, and completing an interrupted write.
//!
//! As the kernel does (`btt_freelist_init`), with more checks: a block in a flog entry must exist,
//! and no two lanes may have the same free block.

use steadfast_block::{BlockDevice, DirectMemory};
use zerocopy::FromBytes;

use super::arena::{Arena, Lane};
use super::error::corrupt;
use super::find::LocatedArena;
use super::flog::{FlogSlots, GROUP_BYTES, Group, following};
use super::info::PAGE;
use super::layout::Layout;
use super::map::{ENTRY_BYTES, Entry, State, logged_block};
use super::planted::Bug;
use crate::filter::namespace::{NamespaceError, Result, read};
use steadfast_block::planted::BugSwitch;

/// What an arena's flog says.
pub(super) struct Flog {
    pub places: FlogSlots,
    pub lanes: Vec<Lane>,
    /// Of each lane its newest change: the sector, its old block and its new one.
    pub changes: Vec<(u32, u32, u32)>,
}

/// Reads the flog.
pub(super) fn flog(device: &dyn BlockDevice, name: &str, found: &LocatedArena) -> Result<Flog> {
    let layout = &found.info.layout;
    let flog_at = found.at + layout.flog;
    let len = u64::from(layout.lanes) * GROUP_BYTES;
    // At most 4 MiB: the number of lanes was looked at.
    let mut bytes = vec![0; len.next_multiple_of(PAGE) as usize];
    read(device, flog_at, &mut bytes)?;
    let groups = <[Group]>::ref_from_bytes(&bytes[..len as usize]);
    // OK to unwrap: the length is that of whole groups, and they need no alignment.
    let groups = groups.unwrap();
    let places = FlogSlots::of(groups).ok_or_else(|| {
        let what = "flog: its entries are in places that no known program uses";
        corrupt(name, flog_at, what)
    })?;
    let mut flog = Flog { places, lanes: Vec::new(), changes: Vec::new() };
    for (lane, group) in groups.iter().enumerate() {
        let at = flog_at + lane as u64 * GROUP_BYTES;
        let wrong = |what: String| corrupt(name, at, format!("flog, lane {lane}: {what}"));
        let (newest, place) = group.newest(places).ok_or_else(|| {
            let [a, b] = group.sequences(places);
            wrong(format!("the sequence numbers {a} and {b} do not follow each other"))
        })?;
        let (old, new) = (logged_block(newest.old()), logged_block(newest.block()));
        if old >= layout.blocks || new >= layout.blocks {
            let blocks = layout.blocks;
            return Err(wrong(format!("it names blocks {old} and {new} of {blocks}")));
        }
        if old != new {
            if newest.sector() >= layout.sectors {
                let (sector, sectors) = (newest.sector(), layout.sectors);
                return Err(wrong(format!("it names sector {sector} of {sectors}")));
            }
            flog.changes.push((newest.sector(), old, new));
        }
        flog.lanes.push(Lane {
            block: old,
            place: 1 - place,
            sequence: following(newest.sequence()),
            retired: false,
        });
    }
    let mut free: Vec<u32> = flog.lanes.iter().map(|lane| lane.block).collect();
    free.sort_unstable();
    if let Some(twice) = free.windows(2).find(|two| two[0] == two[1]) {
        let what = format!("flog: block {} is the free one of two lanes", twice[0]);
        return Err(corrupt(name, flog_at, what));
    }
    Ok(flog)
}

/// The changes of the map that a power cut kept from being made: the sector and its new block.
pub(super) fn pending(
    layout: &Layout,
    changes: &[(u32, u32, u32)],
    mut entry: impl FnMut(u32) -> Result<Entry>,
) -> Result<Vec<(u32, u32)>> {
    let mut pending = Vec::new();
    for (sector, old, new) in changes {
        debug_assert!(*sector < layout.sectors);
        if entry(*sector)?.block == *old {
            pending.push((*sector, *new));
        }
    }
    Ok(pending)
}

/// Opens an arena: finishes what was interrupted.
pub(super) fn open(
    device: &dyn BlockDevice,
    memory: &dyn DirectMemory,
    (name, own_name): (&str, &str),
    found: &LocatedArena,
    planted: BugSwitch<Bug>,
) -> Result<Arena> {
    let flog = flog(device, name, found)?;
    let layout = &found.info.layout;
    let pending = pending(layout, &flog.changes, |sector| {
        let at = found.at + layout.entry_at(sector);
        let mut raw = [0; ENTRY_BYTES as usize];
        memory.load(at, &mut raw)?;
        Ok(Entry::decode(u32::from_le_bytes(raw), sector))
    })?;
    let device_read_only = device.info().read_only;
    if device_read_only && !pending.is_empty() {
        let what = "a power cut has interrupted a write, and it cannot be finished on a device \
                    that is read only: open it for writing once";
        return Err(NamespaceError::refused(name, what));
    }
    let read_only = device_read_only || found.info.error;
    let arena = Arena::new(own_name.to_owned(), found, flog.places, &flog.lanes, read_only);
    if planted.has(Bug::MapNotRecovered) {
        return Ok(arena);
    }
    for (sector, block) in &pending {
        arena.set_entry(memory, *sector, Entry { state: State::Normal, block: *block })?;
        arena.persist_entry(memory, *sector)?;
    }
    if !pending.is_empty() {
        memory.fence()?;
    }
    Ok(arena)
}
