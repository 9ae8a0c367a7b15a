//! The info block of an fsdax namespace (kernel: `struct nd_pfn_sb`, drivers/nvdimm/pfn.h).

use uuid::Uuid;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::fletcher64;
use crate::filter::namespace::Fault;

/// Bytes of the info block, and where it is.
pub(super) const BLOCK: u64 = 4096;
/// Bytes before the page structures: a free page, and the info block.
pub(super) const RESERVED: u64 = 2 * BLOCK;
/// What it begins with (kernel: `PFN_SIG`).
pub(super) const SIGNATURE: [u8; 16] = *b"NVDIMM_PFN_INFO\0";
/// That of a devdax namespace (kernel: `DAX_SIG`), whose info block is the same otherwise.
const DEVDAX: [u8; 16] = *b"NVDIMM_DAX_INFO\0";
/// Where the checksum is in it.
const SUM_AT: usize = 4088;
/// Bytes of a page, and of Linux' structure of one (at most: `MAX_STRUCT_PAGE_SIZE`).
pub(super) const PAGE: u64 = 4096;
pub(super) const PAGE_STRUCT: u64 = 64;
/// What the kernel can map with: pages of 4 KiB, 2 MiB and 1 GiB.
pub(super) const ALIGNS: [u64; 3] = [4 << 10, 2 << 20, 1 << 30];

/// Where Linux has its structures of the namespace's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Map {
    /// In ordinary memory (`PFN_MODE_RAM`; ndctl: `--map=mem`).
    Memory,
    /// In the namespace itself, before the data (`PFN_MODE_PMEM`; ndctl: `--map=dev`).
    Device,
}

impl Map {
    fn number(self) -> u32 {
        match self {
            Map::Memory => 1,
            Map::Device => 2,
        }
    }

    /// Its name for ndctl.
    pub fn name(self) -> &'static str {
        match self {
            Map::Memory => "mem",
            Map::Device => "dev",
        }
    }
}

/// What an fsdax namespace is, by its info block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsdaxInfo {
    /// Its own UUID.
    pub uuid: Uuid,
    /// That of the label it was made under; nil: there was none.
    pub parent_uuid: Uuid,
    /// Where the structures of its pages are.
    pub map: Map,
    /// Bytes of the largest pages it can be mapped with.
    pub align: u64,
    /// The byte of the range at which the data begins.
    pub start: u64,
    /// Bytes of the data.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FsdaxInfoBlock {
    signature: [u8; 16],
    uuid: [u8; 16],
    parent_uuid: [u8; 16],
    flags: U32,
    version_major: U16,
    version_minor: U16,
    /// From `start_pad` on.
    dataoff: U64,
    npfns: U64,
    mode: U32,
    /// Since 1.1. Before that what is here means nothing.
    start_pad: U32,
    end_trunc: U32,
    /// Since 1.2.
    align: U32,
    /// Since 1.4 (1.3: what is not used is zeros).
    page_size: U32,
    page_struct_size: U16,
    padding: [u8; 3994],
    checksum: U64,
}

const _: () = assert!(size_of::<FsdaxInfoBlock>() == BLOCK as usize);
const _: () = assert!(std::mem::offset_of!(FsdaxInfoBlock, checksum) == SUM_AT);
const _: () = assert!(std::mem::offset_of!(FsdaxInfoBlock, dataoff) == 56);
const _: () = assert!(std::mem::offset_of!(FsdaxInfoBlock, page_struct_size) == 92);

impl FsdaxInfo {
    /// What is made of a range of so many bytes, as Linux does it (`nd_pfn_init`).
    ///
    /// The address of the range is not known here. It is taken for one of whole `align`, as that
    /// of a DIMM is: the kernel refuses another one by itself.
    pub(super) fn of(
        size: u64,
        uuid: Uuid,
        parent_uuid: Uuid,
        align: u64,
        map: Map,
    ) -> Option<FsdaxInfo> {
        // The kernel maps memory in parts of 2 MiB, whatever the alignment.
        let end = size - size % align.max(ALIGNS[1]);
        let pages = size.checked_sub(RESERVED)? / PAGE;
        let structures = match map {
            Map::Memory => 0,
            Map::Device => pages * PAGE_STRUCT,
        };
        let start = (RESERVED + structures).checked_next_multiple_of(align)?;
        let bytes = end.checked_sub(start).filter(|bytes| *bytes > 0)?;
        Some(FsdaxInfo { uuid, parent_uuid, map, align, start, bytes })
    }

    /// The info block in a range of so many bytes, of which what is behind the data is not used.
    pub(super) fn block(&self, size: u64) -> [u8; BLOCK as usize] {
        let mut disk = FsdaxInfoBlock {
            signature: SIGNATURE,
            uuid: *self.uuid.as_bytes(),
            parent_uuid: *self.parent_uuid.as_bytes(),
            flags: 0.into(),
            version_major: 1.into(),
            version_minor: 4.into(),
            dataoff: self.start.into(),
            npfns: (self.bytes / PAGE).into(),
            mode: self.map.number().into(),
            start_pad: 0.into(),
            // OK to cast: what is left of a part of `align`, at most 1 GiB.
            end_trunc: ((size - self.start - self.bytes) as u32).into(),
            align: (self.align as u32).into(),
            page_size: (PAGE as u32).into(),
            page_struct_size: (PAGE_STRUCT as u16).into(),
            padding: [0; 3994],
            checksum: 0.into(),
        };
        disk.checksum = fletcher64(disk.as_bytes(), SUM_AT).into();
        let mut bytes = [0; BLOCK as usize];
        bytes.copy_from_slice(disk.as_bytes());
        bytes
    }

    /// Reads the info block of a range of so many bytes, whose last `behind` hold no data; the
    /// rules are those of `nd_pfn_validate`.
    pub(super) fn parse(bytes: &[u8], size: u64, behind: u64) -> Result<FsdaxInfo, Fault> {
        let impossible = |what: String| Err(Fault::Impossible(what));
        let unsupported = |what: String| Err(Fault::Unsupported(what));
        let Ok(disk) = FsdaxInfoBlock::read_from_bytes(bytes) else { return Err(Fault::Absent) };
        if disk.signature != SIGNATURE && disk.signature != DEVDAX {
            return Err(Fault::Absent);
        }
        if disk.checksum.get() != fletcher64(bytes, SUM_AT) {
            return Err(Fault::Damaged);
        }
        if disk.signature == DEVDAX {
            let what = "a devdax namespace, which the kernel has as /dev/daxN.M";
            return unsupported(what.into());
        }
        let (major, minor) = (disk.version_major.get(), disk.version_minor.get());
        if major != 1 {
            return unsupported(format!("an fsdax namespace of version {major}.{minor}"));
        }
        let since = |version: u16, value: u32, before: u64| match minor >= version {
            true => u64::from(value),
            false => before,
        };
        let pad = since(1, disk.start_pad.get(), 0);
        let trunc = since(1, disk.end_trunc.get(), 0);
        let align = match since(2, disk.align.get(), 0) {
            // Not said: the smallest that there is.
            0 => PAGE,
            align => align,
        };
        if !ALIGNS.contains(&align) {
            return unsupported(format!("an fsdax namespace with an alignment of {align} bytes"));
        }
        let page = since(4, disk.page_size.get(), PAGE);
        if page != PAGE {
            return unsupported(format!("an fsdax namespace with pages of {page} bytes"));
        }
        let map = match disk.mode.get() {
            1 => Map::Memory,
            2 => Map::Device,
            other => return impossible(format!("mode {other}, which is none")),
        };
        let offset = disk.dataoff.get();
        if offset < RESERVED || !offset.is_multiple_of(PAGE) || !pad.is_multiple_of(PAGE) {
            return impossible(format!("data that begins at byte {offset} after {pad}"));
        }
        let start = offset.checked_add(pad).filter(|start| *start < size);
        let Some(start) = start else {
            return impossible(format!(
                "data that begins at byte {offset} after {pad}, of a range of {size} bytes"
            ));
        };
        // Fewer pages are said where a range was larger later: the kernel goes by the range, and by
        // what it has structures for.
        let end = size.saturating_sub(trunc).min(size.saturating_sub(behind));
        let said = disk.npfns.get().saturating_mul(PAGE);
        let bytes = end.saturating_sub(start).min(said) / PAGE * PAGE;
        if bytes == 0 {
            return impossible(format!(
                "no data: {} pages, and {trunc} bytes at the end are not used",
                disk.npfns
            ));
        }
        let structures = bytes / PAGE * since(4, disk.page_struct_size.get().into(), PAGE_STRUCT);
        if map == Map::Device && offset - RESERVED < structures {
            return impossible(format!(
                "{} bytes for the structures of its pages, which need {structures}",
                offset - RESERVED
            ));
        }
        Ok(FsdaxInfo {
            uuid: Uuid::from_bytes(disk.uuid),
            parent_uuid: Uuid::from_bytes(disk.parent_uuid),
            map,
            align,
            start,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: u64 = (128 << 20) - (128 << 10);

    fn made(align: u64, map: Map) -> FsdaxInfo {
        FsdaxInfo::of(SIZE, Uuid::from_u128(7), Uuid::nil(), align, map).unwrap()
    }

    #[test]
    fn is_read_as_it_was_written() {
        for map in [Map::Memory, Map::Device] {
            for align in [4 << 10, 2 << 20] {
                let info = made(align, map);
                assert_eq!(FsdaxInfo::parse(&info.block(SIZE), SIZE, 0), Ok(info));
                assert!(info.start.is_multiple_of(align));
                assert!((info.start + info.bytes).is_multiple_of(2 << 20), "the kernel's parts");
            }
        }
        assert_eq!(made(2 << 20, Map::Memory).start, 2 << 20);
        // 64 bytes for each of 32734 pages, and 8 KiB: more than 2 MiB by little is less.
        assert_eq!(made(4 << 10, Map::Device).start, 2_105_344);
        assert_eq!(FsdaxInfo::of(1 << 20, Uuid::nil(), Uuid::nil(), 2 << 20, Map::Memory), None);
        assert_eq!(FsdaxInfo::of(100, Uuid::nil(), Uuid::nil(), 4096, Map::Memory), None);
    }

    #[test]
    fn what_cannot_be_is_said() {
        let info = made(2 << 20, Map::Device);
        let with = |at: usize, bytes: &[u8]| {
            let mut block = info.block(SIZE);
            block[at..at + bytes.len()].copy_from_slice(bytes);
            let sum = fletcher64(&block, SUM_AT);
            block[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
            FsdaxInfo::parse(&block, SIZE, 0)
        };
        let impossible = |found| matches!(found, Err(Fault::Impossible(_)));
        let unsupported = |found| matches!(found, Err(Fault::Unsupported(_)));
        assert_eq!(with(0, b"X"), Err(Fault::Absent));
        assert!(unsupported(with(0, &DEVDAX)));
        assert!(unsupported(with(52, &[2])), "version");
        assert!(impossible(with(56, &4096u64.to_le_bytes())), "data in the info block");
        assert!(impossible(with(56, &SIZE.to_le_bytes())), "data after the end");
        assert!(impossible(with(56, &u64::MAX.to_le_bytes())));
        assert!(impossible(with(56, &(1u64 << 20).to_le_bytes())), "no room for structures");
        assert!(impossible(with(72, &3u32.to_le_bytes())), "mode");
        assert!(impossible(with(80, &u32::MAX.to_le_bytes())), "end");
        assert!(unsupported(with(84, &(64u32 << 10).to_le_bytes())), "alignment");
        assert!(unsupported(with(88, &(64u32 << 10).to_le_bytes())), "pages");
        let mut block = info.block(SIZE);
        block[3000] = 1;
        assert_eq!(FsdaxInfo::parse(&block, SIZE, 0), Err(Fault::Damaged));
    }

    #[test]
    fn fields_of_later_versions_mean_nothing_in_earlier_ones() {
        let info = made(4 << 10, Map::Memory);
        let mut block = info.block(SIZE);
        // Version 1.0, and anything where `start_pad` and `end_trunc` came later.
        block[54] = 0;
        block[76..94].fill(0xff);
        let sum = fletcher64(&block, SUM_AT);
        block[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        let found = FsdaxInfo::parse(&block, SIZE, 0).unwrap();
        // The pages it counts are those of before.
        assert_eq!((found.start, found.bytes), (info.start, info.bytes));
        block[64..72].copy_from_slice(&u64::MAX.to_le_bytes());
        let sum = fletcher64(&block, SUM_AT);
        block[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        let found = FsdaxInfo::parse(&block, SIZE, 0).unwrap();
        assert_eq!((found.start, found.bytes), (info.start, SIZE - info.start));
        let found = FsdaxInfo::parse(&block, SIZE, 128 << 10).unwrap();
        assert_eq!(found.bytes, SIZE - info.start - (128 << 10), "no data behind its end");
    }

    proptest! {
        /// A power cut keeps words of 8 bytes: whatever it leaves of a new info block over zeros is
        /// the whole block or none.
        #[test]
        fn a_torn_one_is_none(kept in proptest::collection::vec(any::<bool>(), 512)) {
            let info = made(2 << 20, Map::Device);
            let whole = info.block(SIZE);
            let mut torn = [0; BLOCK as usize];
            for (word, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
                torn[word * 8..][..8].copy_from_slice(&whole[word * 8..][..8]);
            }
            match FsdaxInfo::parse(&torn, SIZE, 0) {
                Ok(found) => prop_assert_eq!(found, info),
                Err(fault) => prop_assert!(matches!(fault, Fault::Absent | Fault::Damaged)),
            }
        }

        #[test]
        fn any_fields_are_inside_or_refused(
            fields in proptest::collection::vec((48usize..96, any::<u64>()), 1..6),
            size in 8192u64..1 << 40,
        ) {
            let mut block = made(4 << 10, Map::Device).block(SIZE);
            for (at, value) in fields {
                block[at & !3..][..8].copy_from_slice(&value.to_le_bytes());
            }
            let sum = fletcher64(&block, SUM_AT);
            block[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
            if let Ok(found) = FsdaxInfo::parse(&block, size, 0) {
                prop_assert!(found.bytes > 0 && found.start + found.bytes <= size);
            }
        }
    }
}
