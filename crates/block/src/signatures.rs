//! Foreign contents of a device: signatures of file systems, partition tables and volume managers,
//! so that they are not overwritten without a request.
//!
//! Offsets and values: libblkid's `superblocks` and `partitions`, and the documents of the formats.

use crate::{BlockDevice, Result, is_zero};

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
    // Files in which an image may be.
    sign("a disk image of QEMU (qcow2)", 0, b"QFI\xfb"),
    sign("data compressed by zstd", 0, b"\x28\xb5\x2f\xfd"),
    sign("data compressed by gzip", 0, b"\x1f\x8b\x08"),
    sign("data compressed by xz", 0, b"\xfd7zXZ\0"),
    sign("a zip archive", 0, b"PK\x03\x04"),
];

/// Of these [`describe`] says what they are if they are all of a kind: up to the end of what a file
/// system's superblock would be.
const FIRST_BYTES: usize = 2048;

/// Of both headers of a GPT.
const GPT: &[u8] = b"EFI PART";

/// Where the four entries of a DOS partition table begin, and how long each is.
const DOS_ENTRIES: (usize, usize) = (446, 16);

/// What is there that is not ours, in words with their article.
pub fn probe(device: &dyn BlockDevice) -> Option<&'static str> {
    places(device).first().map(|(what, _, _)| *what)
}

/// What is there where something else was looked for, in words that follow "it holds": what
/// [`probe`] finds, or what the first bytes show.
pub fn describe(device: &dyn BlockDevice) -> Option<&'static str> {
    let begins = || read(device, 0, FIRST_BYTES);
    let is_text = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    probe(device).or_else(|| match begins()? {
        begins if is_zero(&begins) => Some("zeros"),
        begins if begins.iter().all(is_text) => Some("text"),
        _ => None,
    })
}

/// Overwrites the signatures with zeros: what is made there instead would be taken for what was.
///
/// # Errors
/// The device's.
pub fn wipe(device: &dyn BlockDevice) -> Result<()> {
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
fn places(device: &dyn BlockDevice) -> Vec<(&'static str, u64, u64)> {
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
fn md_at_the_end(device: &dyn BlockDevice) -> Option<u64> {
    let size = device.info().size;
    let first = (size & !0xffff).checked_sub(0x1_0000);
    let second = (size / 512).checked_sub(16).map(|sector| (sector & !7) * 512);
    let magic = 0xa92b_4efc_u32.to_le_bytes();
    let there = |at: &u64| *at > 0 && read(device, *at, 4).as_deref() == Some(&magic);
    [first, second].into_iter().flatten().find(there)
}

/// The second header of a GPT, in the last sector of 512 or 4096 bytes: the first may have been
/// overwritten, and partition tools repair it from this one.
fn gpt_at_the_end(device: &dyn BlockDevice) -> Option<u64> {
    let size = device.info().size;
    let last = |sector: u64| (size - size % sector).checked_sub(sector);
    let there = |at: &u64| read(device, *at, GPT.len()).as_deref() == Some(GPT);
    [last(512), last(4096)].into_iter().flatten().find(there)
}

/// A boot sector's mark, and entries as a partition table has them: at least one, none of which is
/// something else.
fn has_dos_table(device: &dyn BlockDevice) -> bool {
    let Some(sector) = read(device, 0, 512) else { return false };
    let (first, each) = DOS_ENTRIES;
    let entries = || sector[first..510].chunks(each);
    let used = entries().any(|e| e[4] != 0 && e[12..16] != [0; 4]);
    sector[510..] == [0x55, 0xaa] && used && entries().all(|e| e[0] & 0x7f == 0)
}

/// Bytes at any place; `None` beyond the end, or where they cannot be read.
fn read(device: &dyn BlockDevice, at: u64, len: usize) -> Option<Vec<u8>> {
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
    use std::sync::Mutex;

    use super::*;
    use crate::{Completion, DeviceInfo, Request, check};

    const SIZE: usize = 1 << 20;

    /// A megabyte.
    struct Disk(Mutex<Vec<u8>>);

    impl BlockDevice for Disk {
        fn info(&self) -> DeviceInfo {
            DeviceInfo::new("x", "a megabyte", SIZE as u64)
        }

        fn submit(&self, request: Request) -> Completion {
            let mut all = self.0.lock().unwrap();
            Completion::ready(check(&self.info(), &request).map(|()| match request {
                Request::Read { offset, len } => {
                    all[offset as usize..][..len as usize].to_vec().into()
                }
                Request::Write { offset, data, .. } => {
                    let data = data.parts().concat();
                    all[offset as usize..][..data.len()].copy_from_slice(&data);
                    Default::default()
                }
                _ => Default::default(),
            }))
        }
    }

    fn with(at: usize, bytes: &[u8]) -> Disk {
        let mut all = vec![0; SIZE];
        all[at..][..bytes.len()].copy_from_slice(bytes);
        Disk(Mutex::new(all))
    }

    #[test]
    fn each_is_found_and_forgotten() {
        for s in SIGNATURES {
            let device = with(s.at as usize, s.bytes);
            assert_eq!(probe(&device), Some(s.what));
            assert_eq!(describe(&device), Some(s.what));
            wipe(&device).unwrap();
            assert_eq!((probe(&device), describe(&device)), (None, Some("zeros")));
        }
    }

    #[test]
    fn what_is_at_the_end_is_found() {
        for at in [SIZE - 0x1_0000, SIZE - 8192] {
            let device = with(at, &0xa92b_4efc_u32.to_le_bytes());
            assert_eq!(probe(&device), Some("a member of an md array"));
        }
        for at in [SIZE - 512, SIZE - 4096] {
            let device = with(at, GPT);
            assert_eq!(probe(&device), Some("a GPT partition table"));
            wipe(&device).unwrap();
            assert_eq!(probe(&device), None);
        }
    }

    #[test]
    fn a_partition_table_is_found_and_a_boot_sector_alone_is_not() {
        let mut sector = [0; 512];
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(probe(&with(0, &sector)), None);
        let entry = [0x80, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0];
        sector[446..462].copy_from_slice(&entry);
        assert_eq!(probe(&with(0, &sector)), Some("a DOS partition table"));
    }

    #[test]
    fn text_is_described_and_other_bytes_are_not() {
        assert_eq!(describe(&with(0, &b"a line of text\n".repeat(200))), Some("text"));
        assert_eq!(describe(&with(0, &[7; 4096])), None);
        assert_eq!(describe(&with(0, b"the rest is zeros")), None);
    }
}
