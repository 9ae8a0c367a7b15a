//! Foreign contents of a device: signatures of file systems, partition tables and volume managers,
//! so that they are not overwritten without a request.
//!
//! Offsets and values: libblkid's `superblocks` and `partitions`, and the documents of the formats.

use std::sync::Arc;

use steadfast_block::{BlockDevice, Result};

/// Bytes at a place of the device that say what is there.
struct Signature {
    what: &'static str,
    at: u64,
    bytes: &'static [u8],
}

const fn sign(what: &'static str, at: u64, bytes: &'static [u8]) -> Signature {
    Signature { what, at, bytes }
}

/// First those that say most.
const SIGNATURES: &[Signature] = &[
    sign("an XFS file system", 0, b"XFSB"),
    sign("a btrfs file system", 0x1_0040, b"_BHRfS_M"),
    sign("a LUKS volume", 0, b"LUKS\xba\xbe"),
    sign("an LVM physical volume", 0, b"LABELONE"),
    sign("an LVM physical volume", 512, b"LABELONE"),
    sign("an LVM physical volume", 1024, b"LABELONE"),
    sign("an LVM physical volume", 1536, b"LABELONE"),
    sign("swap space", 4086, b"SWAPSPACE2"),
    sign("swap space", 4086, b"SWAP-SPACE"),
    sign("swap space", 65526, b"SWAPSPACE2"),
    sign("a member of an md array", 0, &0xa92b_4efc_u32.to_le_bytes()),
    sign("a member of an md array", 4096, &0xa92b_4efc_u32.to_le_bytes()),
    sign("an F2FS file system", 1024, &0xf2f5_2010_u32.to_le_bytes()),
    sign("an EROFS file system", 1024, &0xe0f5_e1e2_u32.to_le_bytes()),
    sign("a squashfs file system", 0, b"hsqs"),
    sign("a ZFS pool's label", 128 << 10, &0x00ba_b10c_u64.to_le_bytes()),
    // UUIDs.
    sign(
        "a bcache device",
        4096 + 24,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    sign(
        "a bcachefs file system",
        4096 + 24,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    sign("an APFS container", 32, b"NXSB"),
    sign("an HFS+ file system", 1024, b"H+\0\x04"),
    sign("an NTFS file system", 3, b"NTFS    "),
    sign("an exFAT file system", 3, b"EXFAT   "),
    sign("a FAT file system", 82, b"FAT32   "),
    sign("a FAT file system", 54, b"FAT1"),
    sign("an ISO 9660 file system", 32769, b"CD001"),
    // Of 1.1 and of 2.0; those of fsdax and devdax.
    sign("a sector namespace (BTT)", 4096, b"BTT_ARENA_INFO\0\0"),
    sign("a sector namespace (BTT)", 0, b"BTT_ARENA_INFO\0\0"),
    sign("an fsdax namespace", 4096, b"NVDIMM_PFN_INFO\0"),
    sign("a devdax namespace", 4096, b"NVDIMM_DAX_INFO\0"),
    sign("a GPT partition table", 512, GPT),
    sign("a GPT partition table", 4096, GPT),
];

/// Of both headers of a GPT.
const GPT: &[u8] = b"EFI PART";

/// Where the four entries of a DOS partition table begin, and how long each is.
const DOS_ENTRIES: (usize, usize) = (446, 16);

/// What is there that is not ours, in words with their article.
pub fn probe(device: &Arc<dyn BlockDevice>) -> Option<&'static str> {
    places(device).first().map(|(what, _, _)| *what)
}

/// Overwrites the signatures with zeros: what is made there instead would be taken for what was.
///
/// # Errors
/// The device's.
pub fn wipe(device: &Arc<dyn BlockDevice>) -> Result<()> {
    let block = u64::from(device.info().logical_block);
    for (_, at, len) in places(device) {
        let (from, to) = (at / block * block, (at + len).next_multiple_of(block));
        let mut bytes = device.read(from, to - from)?.to_vec();
        bytes[(at - from) as usize..][..len as usize].fill(0);
        device.write_fua(from, bytes.into())?;
    }
    Ok(())
}

/// All that is found: what it is, where its signature is, and of how many bytes.
fn places(device: &Arc<dyn BlockDevice>) -> Vec<(&'static str, u64, u64)> {
    let there = |s: &&Signature| read(device, s.at, s.bytes.len()).as_deref() == Some(s.bytes);
    let found = SIGNATURES.iter().filter(there);
    let mut found: Vec<_> = found.map(|s| (s.what, s.at, s.bytes.len() as u64)).collect();
    if let Some(at) = md_at_the_end(device) {
        found.push(("a member of an md array", at, 4));
    }
    if let Some(at) = gpt_at_the_end(device) {
        found.push(("a GPT partition table", at, GPT.len() as u64));
    }
    if found.is_empty() && has_dos_table(device) {
        let (first, each) = DOS_ENTRIES;
        found.push(("a DOS partition table", first as u64, (each * 4 + 2) as u64));
    }
    found
}

/// The superblock of md's format 0.90 or 1.0.
fn md_at_the_end(device: &Arc<dyn BlockDevice>) -> Option<u64> {
    let size = device.info().size;
    let first = (size & !0xffff).checked_sub(0x1_0000);
    let second = (size / 512).checked_sub(16).map(|sector| (sector & !7) * 512);
    let magic = 0xa92b_4efc_u32.to_le_bytes();
    let there = |at: &u64| *at > 0 && read(device, *at, 4).as_deref() == Some(&magic);
    [first, second].into_iter().flatten().find(there)
}

/// The second header of a GPT, in the last sector of 512 or 4096 bytes: the first may have been
/// overwritten, and partition tools repair it from this one.
fn gpt_at_the_end(device: &Arc<dyn BlockDevice>) -> Option<u64> {
    let size = device.info().size;
    let last = |sector: u64| (size - size % sector).checked_sub(sector);
    let there = |at: &u64| read(device, *at, GPT.len()).as_deref() == Some(GPT);
    [last(512), last(4096)].into_iter().flatten().find(there)
}

/// A boot sector's mark, and entries as a partition table has them: at least one, none of which is
/// something else.
fn has_dos_table(device: &Arc<dyn BlockDevice>) -> bool {
    let Some(sector) = read(device, 0, 512) else { return false };
    let (first, each) = DOS_ENTRIES;
    let entries = || sector[first..510].chunks(each);
    let used = entries().any(|e| e[4] != 0 && e[12..16] != [0; 4]);
    sector[510..] == [0x55, 0xaa] && used && entries().all(|e| e[0] & 0x7f == 0)
}

/// Bytes at any place; `None` beyond the end, or where they cannot be read.
fn read(device: &Arc<dyn BlockDevice>, at: u64, len: usize) -> Option<Vec<u8>> {
    let info = device.info();
    let block = u64::from(info.logical_block);
    let (from, to) = (at / block * block, (at + len as u64).next_multiple_of(block));
    if to > info.size {
        return None;
    }
    let bytes = device.read(from, to - from).ok()?;
    Some(bytes[(at - from) as usize..][..len].to_vec())
}

#[cfg(test)]
mod tests {
    use crate::source::Ram;

    use super::*;

    fn blank() -> Arc<dyn BlockDevice> {
        Arc::new(Ram::new("x", 1 << 20))
    }

    fn put(device: &Arc<dyn BlockDevice>, at: u64, bytes: &[u8]) {
        let mut all = device.read(0, 1 << 20).unwrap().to_vec();
        all[at as usize..][..bytes.len()].copy_from_slice(bytes);
        device.write(0, all.into()).unwrap();
    }

    #[test]
    fn each_is_found_and_forgotten() {
        assert_eq!(probe(&blank()), None);
        for s in SIGNATURES {
            let device = blank();
            put(&device, s.at, s.bytes);
            assert_eq!(probe(&device), Some(s.what));
            wipe(&device).unwrap();
            assert_eq!(probe(&device), None);
        }
    }

    #[test]
    fn what_is_at_the_end_is_found() {
        for at in [(1 << 20) - 0x1_0000, (1 << 20) - 8192] {
            let device = blank();
            put(&device, at, &0xa92b_4efc_u32.to_le_bytes());
            assert_eq!(probe(&device), Some("a member of an md array"));
        }
        for at in [(1 << 20) - 512, (1 << 20) - 4096] {
            let device = blank();
            put(&device, at, GPT);
            assert_eq!(probe(&device), Some("a GPT partition table"));
            wipe(&device).unwrap();
            assert_eq!(probe(&device), None);
        }
    }

    #[test]
    fn a_partition_table_is_found_and_a_boot_sector_alone_is_not() {
        let device = blank();
        put(&device, 510, &[0x55, 0xaa]);
        assert_eq!(probe(&device), None);
        let entry = [0x80, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0];
        put(&device, 446, &entry);
        assert_eq!(probe(&device), Some("a DOS partition table"));
    }
}
