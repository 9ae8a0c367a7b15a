//! The label of an emulated range, in its last 128 KiB.
//!
//! The layout is the published one of an NVDIMM's label storage area (UEFI specification, chapter
//! "NVDIMM Label Protocol"; Linux `drivers/nvdimm/label.h`, version 1.2), and the place is where
//! QEMU keeps it in the file behind an emulated NVDIMM (`label-size=128K`): two index blocks, of
//! which the one with the newer sequence number counts, and labels of 256 bytes. There is one.
//! Its interleave set cookie is 0, because no DIMM stands behind it; so a kernel that finds the
//! label does not take it for its own.

use std::os::fd::AsFd;

use rustix::io::{Errno, pread, pwrite};
use uuid::{Uuid, uuid};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::checksum::fletcher64;
use crate::filter::btt::Version;

/// Bytes of the label area, at the end of the file.
pub const LABEL_BYTES: u64 = 128 << 10;

const SIGNATURE: [u8; 16] = *b"NAMESPACE_INDEX\0";
/// Bytes of an index block, and of a label.
const UNIT: usize = 256;
/// Labels that there is room for: what the kernel computes for such an area.
const SLOTS: u32 = 510;
/// The checksum's byte in an index block and in a label.
const INDEX_SUM: usize = 64;
const LABEL_SUM: usize = 248;

/// Byte-addressable persistent memory.
const PERSISTENT_MEMORY: Uuid = uuid!("66f0d379-b4f3-4074-ac43-0d3318b78cdc");
/// By which GUID a label says what is made of the range: nothing; a block translation table of
/// version 1.1 (kernel: `NVDIMM_BTT_GUID`), of 2.0 (`NVDIMM_BTT2_GUID`); structures of its pages
/// for Linux, then data (`NVDIMM_PFN_GUID`).
const ABSTRACTIONS: [(Mode, Uuid); 4] = [
    (Mode::Raw, Uuid::nil()),
    (Mode::Sector(Version::V1_1), uuid!("8aed63a2-29a2-4c66-8b12-f05d15d3922a")),
    (Mode::Sector(Version::V2_0), uuid!("18633bfc-1735-4217-8ac9-17239282d3f8")),
    (Mode::Fsdax, uuid!("266400ba-fb9f-4677-bcb0-968f11d0d225")),
];

/// What a namespace on a range is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The range as it is.
    #[default]
    Raw,
    /// A block translation table, of which version: sectors do not tear. Its version says where
    /// its info block is.
    Sector(Version),
    /// The range after an info block, and after Linux' structures of its pages.
    Fsdax,
}

impl Mode {
    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Raw => "raw",
            Mode::Sector(_) => "sector",
            Mode::Fsdax => "fsdax",
        }
    }

    /// Of a sector namespace, the version.
    pub fn version(self) -> Option<Version> {
        match self {
            Mode::Raw | Mode::Fsdax => None,
            Mode::Sector(version) => Some(version),
        }
    }
}

/// The label of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeLabel {
    /// Its own number.
    pub uuid: Uuid,
    /// A name, up to 63 bytes; may be empty.
    pub name: String,
    /// What it is for.
    pub mode: Mode,
    /// Bytes of the namespace, from the start of the range.
    pub bytes: u64,
    /// Of the DIMMs behind it (interleave set cookie); 0: none, it is an emulated range of ours.
    pub cookie: u64,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct IndexBlock {
    signature: [u8; 16],
    flags: [u8; 3],
    /// Bytes of a label: 2 to the power of this, times 128.
    label_size: u8,
    sequence: U32,
    own_offset: U64,
    own_bytes: U64,
    other_offset: U64,
    labels_offset: U64,
    slots: U32,
    major: U16,
    minor: U16,
    checksum: U64,
    /// A bit for each slot: it is free.
    free: [u8; UNIT - 72],
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct OnDisk {
    uuid: [u8; 16],
    name: [u8; 64],
    flags: U32,
    labels: U16,
    position: U16,
    cookie: U64,
    sector: U64,
    address: U64,
    bytes: U64,
    slot: U32,
    align: u8,
    reserved: [u8; 3],
    kind: [u8; 16],
    within: [u8; 16],
    reserved_too: [u8; 88],
    checksum: U64,
}

const _: () = assert!(size_of::<IndexBlock>() == UNIT && size_of::<OnDisk>() == UNIT);

impl IndexBlock {
    fn of(copy: u64, sequence: u32) -> IndexBlock {
        let unit = UNIT as u64;
        let mut free = [0xff; UNIT - 72];
        free[0] = 0xfe;
        let mut index = IndexBlock {
            signature: SIGNATURE,
            flags: [0; 3],
            label_size: 1,
            sequence: sequence.into(),
            own_offset: (copy * unit).into(),
            own_bytes: unit.into(),
            other_offset: ((1 - copy) * unit).into(),
            labels_offset: (2 * unit).into(),
            slots: SLOTS.into(),
            major: 1.into(),
            minor: 2.into(),
            checksum: 0.into(),
            free,
        };
        index.checksum = fletcher64(index.as_bytes(), INDEX_SUM).into();
        index
    }

    /// An index block that is whole; copy 0 or 1.
    fn read(bytes: &[u8], copy: u64) -> Option<IndexBlock> {
        let index = IndexBlock::read_from_bytes(bytes).ok()?;
        let unit = UNIT as u64;
        let whole = index.signature == SIGNATURE
            && index.checksum.get() == fletcher64(bytes, INDEX_SUM)
            && (1..=3).contains(&index.sequence.get())
            && index.own_offset.get() == copy * unit
            && index.own_bytes.get() == unit
            && index.labels_offset.get() == 2 * unit
            && index.label_size == 1
            && (1..=SLOTS).contains(&index.slots.get());
        whole.then_some(index)
    }
}

/// Of two sequence numbers, whether the second is the newer one: they go 1, 2, 3, 1.
fn is_newer(old: u32, new: u32) -> bool {
    new == old % 3 + 1
}

impl RangeLabel {
    fn to_disk(&self) -> OnDisk {
        let mut name = [0; 64];
        let len = self.name.len().min(63);
        name[..len].copy_from_slice(&self.name.as_bytes()[..len]);
        let within = ABSTRACTIONS.iter().find(|(mode, _)| *mode == self.mode);
        // GUIDs have their first three fields in the order of bytes of the processor.
        let mut disk = OnDisk {
            uuid: self.uuid.to_bytes_le(),
            name,
            flags: 0.into(),
            labels: 1.into(),
            position: 0.into(),
            cookie: self.cookie.into(),
            sector: 0.into(),
            address: 0.into(),
            bytes: self.bytes.into(),
            slot: 0.into(),
            align: 0,
            reserved: [0; 3],
            kind: PERSISTENT_MEMORY.to_bytes_le(),
            within: within.map_or([0; 16], |(_, guid)| guid.to_bytes_le()),
            reserved_too: [0; 88],
            checksum: 0.into(),
        };
        disk.checksum = fletcher64(disk.as_bytes(), LABEL_SUM).into();
        disk
    }

    fn of_disk(bytes: &[u8], room: u64) -> Option<RangeLabel> {
        let disk = OnDisk::read_from_bytes(bytes).ok()?;
        let within = Uuid::from_bytes_le(disk.within);
        let (mode, _) = ABSTRACTIONS.into_iter().find(|(_, guid)| *guid == within)?;
        let whole = disk.checksum.get() == fletcher64(bytes, LABEL_SUM)
            && disk.kind == PERSISTENT_MEMORY.to_bytes_le()
            && disk.labels.get() == 1
            && disk.address.get() == 0
            && (1..=room).contains(&disk.bytes.get());
        let name = disk.name.split(|b| *b == 0).next().unwrap_or_default();
        whole.then(|| RangeLabel {
            uuid: Uuid::from_bytes_le(disk.uuid),
            name: String::from_utf8_lossy(name).into_owned(),
            mode,
            bytes: disk.bytes.get(),
            cookie: disk.cookie.get(),
        })
    }

    /// Bytes behind the namespace that a kernel which gets the range as memory takes for a part: it
    /// does not take a label without DIMMs for one.
    pub fn behind(&self) -> u64 {
        if self.cookie == 0 { LABEL_BYTES } else { 0 }
    }

    /// Writes the label of a new range: the label first, then both index blocks.
    pub(super) fn write(&self, file: impl AsFd, file_bytes: u64) -> Result<(), Errno> {
        let area = file_bytes - LABEL_BYTES;
        let mut bytes = vec![0; 3 * UNIT];
        bytes[..UNIT].copy_from_slice(IndexBlock::of(0, 1).as_bytes());
        bytes[UNIT..2 * UNIT].copy_from_slice(IndexBlock::of(1, 2).as_bytes());
        bytes[2 * UNIT..].copy_from_slice(self.to_disk().as_bytes());
        put(&file, area + 2 * UNIT as u64, &bytes[2 * UNIT..])?;
        put(&file, area, &bytes[..2 * UNIT])
    }

    /// The label at the end of a file, if there is one.
    pub(super) fn read(file: impl AsFd, file_bytes: u64) -> Option<RangeLabel> {
        let area = file_bytes.checked_sub(LABEL_BYTES).filter(|area| *area > 0)?;
        let mut bytes = vec![0; 2 * UNIT];
        get(&file, area, &mut bytes)?;
        let newest =
            match [IndexBlock::read(&bytes[..UNIT], 0), IndexBlock::read(&bytes[UNIT..], 1)] {
                [Some(a), Some(b)] if is_newer(a.sequence.get(), b.sequence.get()) => b,
                [Some(a), _] => a,
                [None, b] => b?,
            };
        let slot = (0..newest.slots.get() as usize).find(|slot| {
            newest.free.get(slot / 8).is_some_and(|byte| byte >> (slot % 8) & 1 == 0)
        })?;
        let mut label = vec![0; UNIT];
        get(&file, area + (2 * UNIT + slot * UNIT) as u64, &mut label)?;
        RangeLabel::of_disk(&label, area)
    }
}

fn put(file: &impl AsFd, mut at: u64, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match pwrite(file, bytes, at)? {
            0 => return Err(Errno::IO),
            n => (at, bytes) = (at + n as u64, &bytes[n..]),
        }
    }
    Ok(())
}

fn get(file: &impl AsFd, at: u64, out: &mut [u8]) -> Option<()> {
    let n = pread(file, &mut *out, at).ok()?;
    (n == out.len()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: u64 = 1 << 20;

    fn label() -> RangeLabel {
        let uuid = uuid!("00112233-4455-6677-8899-aabbccddeeff");
        RangeLabel {
            uuid,
            name: "scratch".into(),
            mode: Mode::Sector(Version::V1_1),
            bytes: SIZE - LABEL_BYTES,
            cookie: 0,
        }
    }

    fn file() -> std::fs::File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        file
    }

    #[test]
    fn a_label_is_read_as_it_was_written() {
        let file = file();
        assert_eq!(RangeLabel::read(&file, SIZE), None);
        label().write(&file, SIZE).unwrap();
        assert_eq!(RangeLabel::read(&file, SIZE), Some(label()));
        // The first index block is damaged: the other one counts.
        put(&file, SIZE - LABEL_BYTES + 20, &[9]).unwrap();
        assert_eq!(RangeLabel::read(&file, SIZE), Some(label()));
        put(&file, SIZE - LABEL_BYTES + UNIT as u64 + 20, &[9]).unwrap();
        assert_eq!(RangeLabel::read(&file, SIZE), None);
    }

    #[test]
    fn the_layout_is_the_published_one() {
        let index = IndexBlock::of(1, 2);
        let bytes = index.as_bytes();
        assert_eq!(&bytes[..16], b"NAMESPACE_INDEX\0");
        assert_eq!((bytes[19], bytes[20], bytes[56], bytes[60], bytes[62]), (1, 2, 254, 1, 2));
        let disk = label().to_disk();
        assert_eq!(&disk.as_bytes()[16..23], b"scratch");
        for ((mode, _), first) in ABSTRACTIONS.into_iter().zip([0, 0xa2, 0xfc, 0xba]) {
            let of = RangeLabel { mode, ..label() };
            assert_eq!(of.to_disk().within[0], first);
            assert_eq!(RangeLabel::of_disk(of.to_disk().as_bytes(), SIZE).unwrap().mode, of.mode);
        }
        assert_eq!(disk.as_bytes()[128..132], [0x79, 0xd3, 0xf0, 0x66]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_label_or_none(bytes in proptest::collection::vec(any::<u8>(), 3 * UNIT),
                                         keep in 0usize..3 * UNIT) {
            let file = file();
            label().write(&file, SIZE).unwrap();
            put(&file, SIZE - LABEL_BYTES + keep as u64, &bytes[keep..]).unwrap();
            let found = RangeLabel::read(&file, SIZE);
            prop_assert!(found.is_none_or(|found| found.bytes <= SIZE - LABEL_BYTES));
        }
    }
}
