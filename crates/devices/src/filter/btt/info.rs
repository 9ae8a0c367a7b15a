//! The info block describes an arena. It is at the arena's start, and again at its end.

use uuid::Uuid;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::flog::GROUP_BYTES;
use super::layout::{ARENA_BYTES_MAX, ARENA_BYTES_MIN, Layout};
use super::map::{BLOCKS_MAX, ENTRY_BYTES};
use crate::checksum::fletcher64;
use crate::filter::namespace::Fault;

/// Bytes of an info block, and what all parts of an arena are aligned to.
pub(super) const PAGE: u64 = 4096;
/// What an info block begins with (kernel: `BTT_SIG`).
pub(super) const SIGNATURE: [u8; 16] = *b"BTT_ARENA_INFO\0\0";
/// Where the UUID is in it.
pub(super) const UUID_AT: usize = 16;
/// Where the checksum is in it.
const SUM_AT: usize = 4088;
/// The arena has an error: it is read only (kernel: `IB_FLAG_ERROR`).
const ERROR: u32 = 1;
/// Most lanes that are supported here; the kernel and the UEFI firmware make 256.
pub(super) const LANES_MAX: u32 = 65_536;
/// Sectors with a checksum behind each, which Linux knows too.
const WITH_METADATA: [u32; 5] = [520, 528, 4104, 4160, 4224];

/// Which of the two published layouts it is; they differ in where the first arena begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// 1.1: the first arena begins at 4 KiB. Linux makes this one where a namespace has no label,
    /// or one of version 1.1.
    V1_1,
    /// 2.0: the first arena begins at 0. Needs a namespace label of version 1.2, which says so.
    V2_0,
}

impl Version {
    /// Byte at which the first arena begins.
    pub fn start(self) -> u64 {
        match self {
            Version::V1_1 => PAGE,
            Version::V2_0 => 0,
        }
    }

    pub(super) fn numbers(self) -> (u16, u16) {
        match self {
            Version::V1_1 => (1, 1),
            Version::V2_0 => (2, 0),
        }
    }

    pub(super) fn of(major: u16, minor: u16) -> Option<Version> {
        [Version::V1_1, Version::V2_0].into_iter().find(|v| v.numbers() == (major, minor))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = self.numbers();
        write!(f, "{major}.{minor}")
    }
}

/// As it is on the device (kernel: `struct btt_sb`). Offsets are bytes from the arena's start.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone)]
#[repr(C)]
pub(super) struct Raw {
    signature: [u8; 16],
    uuid: [u8; 16],
    parent_uuid: [u8; 16],
    flags: U32,
    version_major: U16,
    version_minor: U16,
    /// Bytes of a sector (`external_lbasize`).
    sector: U32,
    /// Sectors (`external_nlba`).
    sectors: U32,
    /// Bytes of a block (`internal_lbasize`).
    block: U32,
    /// Blocks (`internal_nlba`).
    blocks: U32,
    /// Lanes, each with a free block (`nfree`).
    lanes: U32,
    /// Bytes of this structure (`infosize`).
    info_bytes: U32,
    /// The next arena, or 0 (`nextoff`).
    next: U64,
    /// `dataoff`
    data: U64,
    /// `mapoff`
    map: U64,
    /// `logoff`
    flog: U64,
    /// `info2off`
    copy: U64,
    padding: [u8; 3968],
    checksum: U64,
}

const _: () = assert!(size_of::<Raw>() as u64 == PAGE);
const _: () = assert!(std::mem::offset_of!(Raw, uuid) == UUID_AT);
const _: () = assert!(std::mem::offset_of!(Raw, flags) == 48);
const _: () = assert!(std::mem::offset_of!(Raw, next) == 80);
const _: () = assert!(std::mem::offset_of!(Raw, checksum) == SUM_AT);

/// An info block that has been looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InfoBlock {
    pub uuid: Uuid,
    pub parent_uuid: Uuid,
    pub version: Version,
    /// The arena is marked as one with an error.
    pub error: bool,
    pub layout: Layout,
}

impl InfoBlock {
    /// Reads an info block of an arena for which there is room of `room` bytes from its start to
    /// the device's end.
    pub fn parse(bytes: &[u8], room: u64) -> Result<InfoBlock, Fault> {
        let Ok(raw) = Raw::ref_from_bytes(bytes) else { return Err(Fault::Absent) };
        if raw.signature != SIGNATURE {
            return Err(Fault::Absent);
        }
        if raw.checksum.get() != checksum_of(bytes) {
            return Err(Fault::Damaged);
        }
        let (major, minor) = (raw.version_major.get(), raw.version_minor.get());
        let Some(version) = Version::of(major, minor) else {
            return Err(Fault::Unsupported(format!(
                "its block translation table is of version {major}.{minor}; 1.1 and 2.0 are \
                 supported"
            )));
        };
        let sector = raw.sector.get();
        if WITH_METADATA.contains(&sector) {
            return Err(Fault::Unsupported(format!(
                "its sectors of {sector} bytes carry metadata of their own, which is not \
                 supported; sectors of 512 and 4096 bytes are"
            )));
        }
        if raw.flags.get() & !ERROR != 0 {
            let flags = raw.flags.get();
            return Err(Fault::Unsupported(format!("its info block has unknown flags {flags:#x}")));
        }
        let layout = Layout {
            sector,
            sectors: raw.sectors.get(),
            block: raw.block.get(),
            blocks: raw.blocks.get(),
            lanes: raw.lanes.get(),
            next: raw.next.get(),
            data: raw.data.get(),
            map: raw.map.get(),
            flog: raw.flog.get(),
            copy: raw.copy.get(),
        };
        if layout.lanes > LANES_MAX {
            let lanes = layout.lanes;
            return Err(Fault::Unsupported(format!(
                "it has {lanes} free blocks (nfree); {LANES_MAX} are supported"
            )));
        }
        let size = u64::from(raw.info_bytes.get());
        let wrong = if size != PAGE {
            Some(format!("the info block's size is {size}, not 4096"))
        } else {
            impossible(&layout, room)
        };
        match wrong {
            Some(what) => Err(Fault::Impossible(what)),
            None => Ok(InfoBlock {
                uuid: Uuid::from_bytes(raw.uuid),
                parent_uuid: Uuid::from_bytes(raw.parent_uuid),
                version,
                error: raw.flags.get() & ERROR != 0,
                layout,
            }),
        }
    }

    /// As it is on the device.
    pub fn bytes(&self) -> Vec<u8> {
        let (major, minor) = self.version.numbers();
        let layout = &self.layout;
        let mut raw = Raw {
            signature: SIGNATURE,
            uuid: self.uuid.into_bytes(),
            parent_uuid: self.parent_uuid.into_bytes(),
            flags: U32::new(if self.error { ERROR } else { 0 }),
            version_major: U16::new(major),
            version_minor: U16::new(minor),
            sector: U32::new(layout.sector),
            sectors: U32::new(layout.sectors),
            block: U32::new(layout.block),
            blocks: U32::new(layout.blocks),
            lanes: U32::new(layout.lanes),
            info_bytes: U32::new(PAGE as u32),
            next: U64::new(layout.next),
            data: U64::new(layout.data),
            map: U64::new(layout.map),
            flog: U64::new(layout.flog),
            copy: U64::new(layout.copy),
            padding: [0; 3968],
            checksum: U64::new(0),
        };
        raw.checksum = U64::new(checksum_of(raw.as_bytes()));
        raw.as_bytes().to_vec()
    }
}

/// What of a layout cannot be, in an arena with `room` bytes up to the device's end.
fn impossible(layout: &Layout, room: u64) -> Option<String> {
    let Layout { sector, sectors, block, blocks, lanes, next, data, map, flog, copy } = *layout;
    if ![512, 4096].contains(&sector) {
        return Some(format!("sectors of {sector} bytes (external_lbasize)"));
    }
    if block < sector || block % 64 != 0 || block > 1 << 16 {
        return Some(format!("blocks of {block} bytes (internal_lbasize) for sectors of {sector}"));
    }
    let parts = [("nextoff", next), ("dataoff", data), ("mapoff", map), ("logoff", flog)];
    for (name, at) in parts.into_iter().chain([("info2off", copy)]) {
        if at % PAGE != 0 || at > room.min(ARENA_BYTES_MAX) {
            return Some(format!("{name} is {at}: it is no page of the arena"));
        }
    }
    // All are at most 512 GiB from here on: sums and products cannot overflow.
    let size = layout.bytes();
    if size > room.min(ARENA_BYTES_MAX) || size < ARENA_BYTES_MIN || size < copy + PAGE {
        return Some(format!("an arena of {size} bytes, with {room} up to the device's end"));
    }
    if data < PAGE || data > map || map > flog || flog > copy {
        return Some("its parts are not in their order: data, map, flog, copy".into());
    }
    if blocks > BLOCKS_MAX || u64::from(blocks) * u64::from(block) > map - data {
        return Some(format!("{blocks} blocks (internal_nlba) do not fit into the data"));
    }
    if sectors == 0 || lanes == 0 || u64::from(sectors) + u64::from(lanes) != u64::from(blocks) {
        return Some(format!(
            "{sectors} sectors (external_nlba) and {lanes} free blocks (nfree) are not the \
             {blocks} blocks (internal_nlba)"
        ));
    }
    if u64::from(sectors) * ENTRY_BYTES > flog - map {
        return Some(format!("a map of {sectors} sectors does not fit between mapoff and logoff"));
    }
    if u64::from(lanes) * GROUP_BYTES > copy - flog {
        return Some(format!("a flog of {lanes} lanes does not fit between logoff and info2off"));
    }
    None
}

/// Of an info block in bytes: its own place counts as zeros.
pub(super) fn checksum_of(bytes: &[u8]) -> u64 {
    fletcher64(bytes, SUM_AT)
}
