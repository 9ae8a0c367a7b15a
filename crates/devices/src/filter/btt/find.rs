//! Finding the info blocks of a device.
//!
//! The label of the namespace, if it is known, gives the start of the first arena: Linux looks at
//! that place alone (`nd_btt_version`, drivers/nvdimm/btt_devs.c). Without a label Linux looks for
//! version 1.1 only. Here 2.0 is tried after it, because firmware creates it and its label may not
//! be visible. If there are two candidates, the one with a copy at the arena's end counts: the data
//! blocks of a namespace of version 2.0 may contain anything, also an info block of 1.1, but its
//! users cannot write its copy.
//!
//! If the first info block is damaged, the copy at the arena's end counts. But the copy alone is
//! not enough: a namespace that was destroyed or converted has lost its first info block only. So a
//! part of the first one must be left: it is unreadable, or it has the signature, or the UUID of
//! the copy.

use steadfast_block::{self as block, BlockDevice};
use uuid::Uuid;

use super::error::corrupt;
use super::info::{InfoBlock, PAGE, SIGNATURE, UUID_AT, Version};
use super::layout::{ARENA_BYTES_MAX, ARENA_BYTES_MIN};
use crate::filter::namespace::{Fault, NamespaceError, Result, read};

/// What a sector namespace is, by its info blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BttInfo {
    /// The layout.
    pub version: Version,
    /// Its own UUID.
    pub uuid: Uuid,
    /// That of the namespace it was made on; nil: of any.
    pub parent_uuid: Uuid,
    /// Bytes of a sector: 512 or 4096.
    pub sector: u32,
    /// Sectors of all arenas.
    pub sectors: u64,
    /// At least one.
    pub arenas: Vec<ArenaInfo>,
}

impl BttInfo {
    /// Bytes that it holds, as a block device.
    pub fn bytes(&self) -> u64 {
        self.sectors * u64::from(self.sector)
    }
}

/// An arena, by its info block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaInfo {
    /// Where it begins, in bytes from the start of the device.
    pub at: u64,
    /// Its size in bytes, tables included.
    pub bytes: u64,
    /// Its sectors.
    pub sectors: u32,
    /// Its free blocks: so many writes can be in flight at once (`nfree`).
    pub lanes: u32,
    /// It is marked as one with an error, and read only.
    pub error: bool,
    /// Its info block is damaged; the copy was read. [`restore`](super::restore) writes it anew.
    pub from_copy: bool,
}

/// An arena that was found.
#[derive(Debug, Clone)]
pub(super) struct LocatedArena {
    pub at: u64,
    pub info: InfoBlock,
    pub from_copy: bool,
}

/// Looks for a sector namespace and says what it is; `None` if there is none. Nothing is written,
/// and the device need not be memory.
///
/// # Errors
/// [`Io`](NamespaceError::Io); [`Corrupt`](NamespaceError::Corrupt) if there is one that cannot be
/// trusted; [`Unsupported`](NamespaceError::Unsupported).
pub fn probe(device: &dyn BlockDevice) -> Result<Option<BttInfo>> {
    probe_as(device, None)
}

/// As [`probe`], for a namespace whose label says of which version it is.
///
/// # Errors
/// Those of [`probe`].
pub fn probe_as(device: &dyn BlockDevice, version: Option<Version>) -> Result<Option<BttInfo>> {
    Ok(find(device, version)?.map(|arenas| summary(&arenas)))
}

pub(super) fn summary(arenas: &[LocatedArena]) -> BttInfo {
    let first = &arenas[0].info;
    let arena = |found: &LocatedArena| ArenaInfo {
        at: found.at,
        bytes: found.info.layout.bytes(),
        sectors: found.info.layout.sectors,
        lanes: found.info.layout.lanes,
        error: found.info.error,
        from_copy: found.from_copy,
    };
    BttInfo {
        version: first.version,
        uuid: first.uuid,
        parent_uuid: first.parent_uuid,
        sector: first.layout.sector,
        sectors: arenas.iter().map(|found| u64::from(found.info.layout.sectors)).sum(),
        arenas: arenas.iter().map(arena).collect(),
    }
}

pub(super) fn page(device: &dyn BlockDevice, at: u64) -> block::Result<Vec<u8>> {
    let mut bytes = vec![0; PAGE as usize];
    read(device, at, &mut bytes)?;
    Ok(bytes)
}

/// All arenas, in order; `None` if there are none. `label`: the version that the label says.
pub(super) fn find(
    device: &dyn BlockDevice,
    label: Option<Version>,
) -> Result<Option<Vec<LocatedArena>>> {
    let info = device.info();
    let first = |version| first(device, &info.name, info.size, version, false);
    let found = match label {
        Some(Version::V1_1) => first(Version::V1_1)?,
        Some(Version::V2_0) => match first(Version::V2_0)? {
            Some(found) => Some(found),
            // Labels of ours said 2.0 once of what is 1.1. A user of the blocks could have written
            // an info block there, but not its copy.
            None => first(Version::V1_1)?.filter(|found| copy_is_same(device, found)),
        },
        None => match (first(Version::V1_1), first(Version::V2_0)) {
            (Ok(Some(one)), Ok(Some(other))) => {
                // Who wrote last wrote a copy.
                let mut both = vec![one, other];
                both.retain(|found| copy_is_same(device, found));
                if both.len() != 1 {
                    let what = "info blocks of version 1.1 and of 2.0, both or none with a copy";
                    return Err(corrupt(&info.name, 0, what));
                }
                both.pop()
            }
            (Ok(one), Ok(other)) => one.or(other),
            (Ok(found), Err(error)) | (Err(error), Ok(found)) => {
                let believed = found.filter(|found| copy_is_same(device, found));
                Some(believed.ok_or(error)?)
            }
            (Err(error), Err(_)) => return Err(error),
        },
    };
    found.map(|found| follow(device, &info.name, info.size, found)).transpose()
}

/// The first arena by its copy alone, whatever is where the info block must be.
pub(super) fn by_copy(
    device: &dyn BlockDevice,
    label: Option<Version>,
) -> Result<Option<Vec<LocatedArena>>> {
    let info = device.info();
    let versions = [Version::V1_1, Version::V2_0];
    for version in versions.into_iter().filter(|v| label.is_none_or(|label| label == *v)) {
        if let Some(found) = first(device, &info.name, info.size, version, true)? {
            return follow(device, &info.name, info.size, found).map(Some);
        }
    }
    Ok(None)
}

/// Looks for a sector namespace whose info block is lost: by its copy alone, which may also be of
/// one that was destroyed. [`restore`](super::restore) writes the info block anew.
///
/// # Errors
/// Those of [`probe`].
pub fn probe_copy(device: &dyn BlockDevice, version: Option<Version>) -> Result<Option<BttInfo>> {
    Ok(by_copy(device, version)?.map(|arenas| summary(&arenas)))
}

fn copy_is_same(device: &dyn BlockDevice, found: &LocatedArena) -> bool {
    let copy = page(device, found.at + found.info.layout.copy);
    copy.is_ok_and(|copy| copy == found.info.bytes())
}

/// The arenas from the first one on.
fn follow(
    device: &dyn BlockDevice,
    name: &str,
    size: u64,
    first: LocatedArena,
) -> Result<Vec<LocatedArena>> {
    let mut arenas = vec![first];
    loop {
        let last = &arenas[arenas.len() - 1];
        let next = last.info.layout.next;
        if next == 0 {
            return Ok(arenas);
        }
        let at = last.at + next;
        // An arena has 16 MiB at least, so that this ends.
        let found = another(device, name, size, at)?;
        let (one, other) = (&arenas[0].info, &found.info);
        if one.uuid != other.uuid
            || one.parent_uuid != other.parent_uuid
            || one.version != other.version
            || one.layout.sector != other.layout.sector
        {
            let what = "the info block of an arena is not of the same namespace as the first one";
            return Err(corrupt(name, at, what));
        }
        arenas.push(found);
    }
}

/// The first arena, if it is of this version.
fn first(
    device: &dyn BlockDevice,
    name: &str,
    size: u64,
    version: Version,
    trust_copy: bool,
) -> Result<Option<LocatedArena>> {
    let at = version.start();
    let Some(room) = size.checked_sub(at).filter(|room| *room >= ARENA_BYTES_MIN) else {
        return Ok(None);
    };
    let primary = page(device, at);
    let fault = match &primary {
        Ok(bytes) => match InfoBlock::parse(bytes, room) {
            Ok(info) if info.version == version => {
                return Ok(Some(LocatedArena { at, info, from_copy: false }));
            }
            // One of the other version is at a place that means nothing to it.
            Ok(_) => Fault::Absent,
            Err(fault @ (Fault::Impossible(_) | Fault::Unsupported(_))) => {
                return Err(bad_info_block(name, at, fault));
            }
            Err(fault) => fault,
        },
        Err(_) => Fault::Damaged,
    };
    let copy = copy(device, at, room, size).filter(|copy| copy.version == version);
    if let Some(info) = copy {
        let same_uuid = |bytes: &Vec<u8>| bytes[UUID_AT..][..16] == *info.uuid.as_bytes();
        let trace = fault == Fault::Damaged || primary.as_ref().is_ok_and(same_uuid);
        return Ok((trace || trust_copy).then_some(LocatedArena { at, info, from_copy: true }));
    }
    match (primary, fault) {
        // The other version may be there, at a place that can be read.
        (Err(_), _) if at == 0 => Ok(None),
        (Err(error), _) => Err(error.into()),
        (Ok(_), Fault::Damaged) => Err(bad_info_block(name, at, Fault::Damaged)),
        _ => Ok(None),
    }
}

/// An arena that the one before it names.
fn another(device: &dyn BlockDevice, name: &str, size: u64, at: u64) -> Result<LocatedArena> {
    // The one before it was found to end within the device.
    let room = size.saturating_sub(at);
    if room < ARENA_BYTES_MIN {
        let what = format!("an arena is to begin here, with {room} bytes up to the device's end");
        return Err(corrupt(name, at, what));
    }
    let fault = match InfoBlock::parse(&page(device, at).unwrap_or_default(), room) {
        Ok(info) => return Ok(LocatedArena { at, info, from_copy: false }),
        Err(fault @ (Fault::Impossible(_) | Fault::Unsupported(_))) => {
            return Err(bad_info_block(name, at, fault));
        }
        Err(fault) => fault,
    };
    match copy(device, at, room, size) {
        Some(info) => Ok(LocatedArena { at, info, from_copy: true }),
        None => Err(bad_info_block(name, at, fault)),
    }
}

/// The copy of an info block that cannot be read: at the end of an arena of the usual size.
fn copy(device: &dyn BlockDevice, at: u64, room: u64, size: u64) -> Option<InfoBlock> {
    let bytes = room.min(ARENA_BYTES_MAX);
    let copy_at = at + (bytes - bytes % PAGE) - PAGE;
    if copy_at + PAGE > size {
        return None;
    }
    let info = InfoBlock::parse(&page(device, copy_at).ok()?, room).ok()?;
    (at + info.layout.copy == copy_at).then_some(info)
}

/// Whether the bytes begin as an info block does.
pub(super) fn has_signature(bytes: &[u8]) -> bool {
    bytes.starts_with(&SIGNATURE)
}

fn bad_info_block(name: &str, at: u64, fault: Fault) -> NamespaceError {
    match fault {
        Fault::Absent => corrupt(name, at, "no info block, and no copy of it"),
        Fault::Damaged => {
            let what = "the info block has a wrong checksum, and there is no copy of it";
            corrupt(name, at, what)
        }
        Fault::Impossible(what) => corrupt(name, at, format!("info block: {what}")),
        Fault::Unsupported(what) => NamespaceError::unsupported(name, what),
    }
}
