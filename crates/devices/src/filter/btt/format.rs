//! Creating a sector namespace, and repairing damaged info blocks.
//!
//! Old contents are invalidated first, then the tables are written, then the copies of the info
//! blocks, and last the info blocks, the first arena's at the very end: a power cut leaves the old
//! contents, or nothing, or a complete namespace.

use std::sync::Arc;

use smart_default::SmartDefault;
use steadfast_block::{BlockDevice, DirectMemory};
use uuid::Uuid;
use zerocopy::IntoBytes;

use super::error::{NEEDS_MEMORY, none};
use super::find::{BttInfo, LocatedArena, by_copy, find, has_signature, summary};
use super::flog::Group;
use super::info::{InfoBlock, LANES_MAX, PAGE, Version};
use super::layout::{ARENA_BYTES_MAX, ARENA_BYTES_MIN, Layout, arenas};
use crate::filter::namespace::{NamespaceError, Result, memory_to_write, random_uuid};

/// Free blocks of an arena that Linux and the UEFI firmware make (kernel: `ND_MAX_LANES`).
const LANES: u32 = 256;
/// Zeros are written in pieces of so many bytes.
const PIECE: u64 = 1 << 20;

/// How a sector namespace is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SmartDefault)]
pub struct Options {
    /// Bytes of a sector: 512 or 4096.
    #[default(4096)]
    pub sector: u32,
    /// Its own UUID; a random one if there is none.
    pub uuid: Option<Uuid>,
    /// That of the namespace below, as its label has it. Nil for one without a label.
    pub parent_uuid: Uuid,
    /// Free blocks of an arena: so many writes can be in flight at once. The kernel takes one for
    /// each processor, up to 256, and does not ask whether there are so many: with less than 256
    /// it is not to be used by a kernel with more processors.
    #[default(LANES)]
    pub nfree: u32,
    /// The layout. For 2.0 the label below must say so.
    #[default(Version::V1_1)]
    pub version: Version,
}

/// Makes a sector namespace of all of a device; what was there is lost. The map is written, 4 bytes
/// for each sector, and the data is not.
///
/// # Errors
/// [`NotMemory`](NamespaceError::NotMemory), [`Refused`](NamespaceError::Refused) if the device is
/// too small (16 MiB, and 4 KiB for version 1.1) or cannot be written, [`Io`](NamespaceError::Io).
pub fn format(device: &Arc<dyn BlockDevice>, options: Options) -> Result<BttInfo> {
    format_in_arenas(device, options, ARENA_BYTES_MAX)
}

/// With arenas of at most `arena_max` bytes.
pub(super) fn format_in_arenas(
    device: &Arc<dyn BlockDevice>,
    options: Options,
    arena_max: u64,
) -> Result<BttInfo> {
    let below = device.info();
    let memory = memory_to_write(&**device, NEEDS_MEMORY)?;
    let found = plan(&below.name, below.size, options, arena_max)?;
    invalidate(&**device, memory, &found)?;
    for LocatedArena { at, info, .. } in &found {
        tables(memory, *at, &info.layout)?;
    }
    for LocatedArena { at, info, .. } in &found {
        put(memory, at + info.layout.copy, &info.bytes())?;
    }
    memory.fence()?;
    for LocatedArena { at, info, .. } in found.iter().rev() {
        put(memory, *at, &info.bytes())?;
        memory.fence()?;
    }
    Ok(summary(&found))
}

/// What is to be made.
fn plan(name: &str, size: u64, options: Options, arena_max: u64) -> Result<Vec<LocatedArena>> {
    let Options { sector, nfree, version, .. } = options;
    let refused = |what: String| Err(NamespaceError::refused(name, what));
    if ![512, 4096].contains(&sector) {
        return refused(format!("sectors of {sector} bytes cannot be made; 512 and 4096 can"));
    }
    if !(1..=LANES_MAX).contains(&nfree) {
        return refused(format!("{nfree} free blocks cannot be made; 1 to {LANES_MAX} can"));
    }
    let start = version.start();
    let parts = arenas(size.saturating_sub(start), arena_max);
    if parts.is_empty() {
        let least = ARENA_BYTES_MIN + start;
        return refused(format!(
            "has {size} bytes; a sector namespace of version {version} needs {least}"
        ));
    }
    let uuid = options.uuid.unwrap_or_else(random_uuid);
    let count = parts.len();
    let mut found = Vec::new();
    for (n, (at, bytes)) in parts.into_iter().enumerate() {
        let Some(layout) = Layout::new(bytes, sector, nfree, n + 1 == count) else {
            return refused(format!("{nfree} free blocks leave no room for sectors"));
        };
        let parent_uuid = options.parent_uuid;
        let info = InfoBlock { uuid, parent_uuid, version, error: false, layout };
        found.push(LocatedArena { at: start + at, info, from_copy: false });
    }
    Ok(found)
}

/// Takes away what could be taken for the info blocks of a namespace, first ones before copies.
fn invalidate(
    device: &dyn BlockDevice,
    memory: &dyn DirectMemory,
    new: &[LocatedArena],
) -> Result<()> {
    let old = find(device, None).ok().flatten().unwrap_or_default();
    let firsts = [Version::V1_1.start(), Version::V2_0.start()];
    let others = old.iter().chain(new).map(|found| found.at);
    let copies = old.iter().chain(new).map(|found| found.at + found.info.layout.copy);
    for places in [firsts.into_iter().chain(others).collect::<Vec<_>>(), copies.collect()] {
        let size = device.info().size;
        for at in places.into_iter().filter(|at| at + PAGE <= size) {
            let mut page = [0; PAGE as usize];
            // What cannot be read is made good by writing it.
            let remains = memory.load(at, &mut page).is_err() || has_signature(&page);
            if remains {
                put(memory, at, &[0; PAGE as usize])?;
            }
        }
        memory.fence()?;
    }
    Ok(())
}

/// Writes an empty map, and a flog whose lanes have the blocks that are nobody's.
fn tables(memory: &dyn DirectMemory, at: u64, layout: &Layout) -> Result<()> {
    let zeros = vec![0; PIECE as usize];
    let end = layout.copy;
    let mut next = layout.map;
    while next < end {
        let bytes = PIECE.min(end - next);
        put(memory, at + next, &zeros[..bytes as usize])?;
        next += bytes;
    }
    for lane in 0..layout.lanes {
        let group = Group::initial(lane, layout.sectors + lane);
        put(memory, at + layout.group_at(lane), group.as_bytes())?;
    }
    Ok(memory.fence()?)
}

fn put(memory: &dyn DirectMemory, at: u64, bytes: &[u8]) -> Result<()> {
    memory.store(at, bytes)?;
    Ok(memory.persist(at, bytes.len() as u64)?)
}

/// Writes info blocks anew from their copies, and copies from the info blocks, where one of the two
/// is damaged; how many were written. The copy at a device's end is trusted even where nothing is
/// left of the info block: only for a device that is known to have been a sector namespace.
/// `version`: the one that its label says.
///
/// A power cut leaves each block damaged or whole, and the other one of the two whole: it can be
/// done again.
///
/// # Errors
/// [`None`](NamespaceError::None) if there is no copy either; [`Refused`](NamespaceError::Refused)
/// if the device cannot be written; all of [`probe`](super::probe).
pub fn restore(device: &Arc<dyn BlockDevice>, version: Option<Version>) -> Result<usize> {
    let memory = memory_to_write(&**device, NEEDS_MEMORY)?;
    let found = match find(&**device, version)? {
        Some(found) => found,
        None => by_copy(&**device, version)?.ok_or_else(|| none(device.info().name))?,
    };
    let mut written = 0;
    for LocatedArena { at, info, .. } in found.iter().rev() {
        let bytes = info.bytes();
        for place in [at + info.layout.copy, *at] {
            let mut now = [0; PAGE as usize];
            if memory.load(place, &mut now).is_err() || now[..] != bytes {
                put(memory, place, &bytes)?;
                memory.fence()?;
                written += 1;
            }
        }
    }
    Ok(written)
}
