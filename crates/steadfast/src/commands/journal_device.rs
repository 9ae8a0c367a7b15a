//! Journal devices of this machine: opened by path, or found by UUID.
//!
//! The kernel finds a file system's journal by the device number that the superblock remembers,
//! and fails when devices were renumbered. The UUID says which it is, whatever its number.

use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::Result;
use steadfast_ext4::tune::JournalDevice;
use uuid::Uuid;

use super::image::open;

/// Opens a journal device.
pub fn open_journal(path: &Path, read_only: bool, accept_volatile: bool) -> Result<JournalDevice> {
    Ok(JournalDevice { device: open(path, read_only)?, number: number_of(path), accept_volatile })
}

/// The device number as ext4 keeps it (`new_encode_dev`); 0 for an image file.
pub fn number_of(path: &Path) -> u32 {
    let Ok(meta) = std::fs::metadata(path) else { return 0 };
    if !meta.file_type().is_block_device() {
        return 0;
    }
    let (major, minor) = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The block device that holds the journal with this UUID: first where the file system
/// remembers it, then by the name that udev gave it, then any.
pub fn find(uuid: Uuid, number: u32) -> Option<PathBuf> {
    let major = (number & 0xf_ff00) >> 8;
    let minor = (number & 0xff) | ((number >> 12) & 0xf_ff00);
    let remembered = (number != 0).then(|| by_number(major, minor)).flatten();
    let named = PathBuf::from(format!("/dev/disk/by-uuid/{uuid}"));
    remembered
        .into_iter()
        .chain([named])
        .chain(block_devices())
        .find(|path| uuid_of(path) == Some(uuid))
}

/// The node of a device number.
fn by_number(major: u32, minor: u32) -> Option<PathBuf> {
    let text = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/uevent")).ok()?;
    let name = text.lines().find_map(|l| l.strip_prefix("DEVNAME="))?;
    Some(Path::new("/dev").join(name))
}

fn block_devices() -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/partitions").unwrap_or_default();
    let names = text.lines().skip(2).filter_map(|l| l.split_whitespace().nth(3));
    names.map(|n| Path::new("/dev").join(n.replace('!', "/"))).collect()
}

/// The UUID of a journal device; `None` of anything else.
fn uuid_of(path: &Path) -> Option<Uuid> {
    /// `EXT4_FEATURE_INCOMPAT_JOURNAL_DEV`
    const JOURNAL_DEV: u32 = 8;
    let file = std::fs::File::open(path).ok()?;
    let mut sb = [0; 1024];
    file.read_exact_at(&mut sb, 1024).ok()?;
    let incompat = u32::from_le_bytes(sb[0x60..0x64].try_into().ok()?);
    let is_journal = sb[0x38..0x3a] == [0x53, 0xef] && incompat & JOURNAL_DEV != 0;
    is_journal.then(|| Uuid::from_slice(&sb[0x68..0x78]).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_are_told_by_their_superblock() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut sb = [0; 1024];
        sb[0x38..0x3a].copy_from_slice(&[0x53, 0xef]);
        sb[0x68..0x78].copy_from_slice(&[7; 16]);
        file.as_file().write_all_at(&sb, 1024).unwrap();
        assert_eq!(uuid_of(file.path()), None);
        sb[0x60] = 8;
        file.as_file().write_all_at(&sb, 1024).unwrap();
        assert_eq!(uuid_of(file.path()), Some(Uuid::from_bytes([7; 16])));
        assert_eq!(number_of(file.path()), 0);
    }
}
