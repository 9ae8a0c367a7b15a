//! Values of the file system as FUSE has them, and back.

use steadfast_fuse_lowlevel as lowlevel;
use steadfast_fuse_lowlevel::{FileAttr, StatxTimes};
use steadfast_vfs::{Attr, Dirent, FileType, OpenFlags, SetTime, Timestamp};

/// The number that the kernel calls a file system's root by.
pub(crate) const ROOT: u64 = 1;

/// The type of an inode, as in st_mode.
pub(super) fn kind(kind: FileType) -> u32 {
    use rustix::fs::FileType as Raw;
    let raw = match kind {
        FileType::Regular => Raw::RegularFile,
        FileType::Directory => Raw::Directory,
        FileType::Symlink => Raw::Symlink,
        FileType::CharDevice => Raw::CharacterDevice,
        FileType::BlockDevice => Raw::BlockDevice,
        FileType::Fifo => Raw::Fifo,
        FileType::Socket => Raw::Socket,
    };
    raw.as_raw_mode()
}

/// Type that a mode (st_mode) says.
pub(super) fn kind_of_mode(mode: u32) -> Option<FileType> {
    use rustix::fs::FileType as Raw;
    Some(match Raw::from_raw_mode(mode) {
        // mknod(2): no type means a regular file.
        _ if mode & 0o170_000 == 0 => FileType::Regular,
        Raw::RegularFile => FileType::Regular,
        Raw::CharacterDevice => FileType::CharDevice,
        Raw::BlockDevice => FileType::BlockDevice,
        Raw::Fifo => FileType::Fifo,
        Raw::Socket => FileType::Socket,
        _ => return None,
    })
}

/// A time to be set.
pub(super) fn set_time(t: lowlevel::SetTime) -> SetTime {
    match t {
        lowlevel::SetTime::Now => SetTime::Now,
        lowlevel::SetTime::At(secs, nanos) => SetTime::At(Timestamp { secs, nanos }),
    }
}

/// Major and minor number in the 32 bits of the protocol (the kernel's `new_encode_dev`).
fn encode_device(rdev: u64) -> u32 {
    let (major, minor) = ((rdev >> 32) as u32, rdev as u32);
    (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & 0xfff00) << 12)
}

/// The reverse: major << 32 | minor.
pub(super) fn decode_device(rdev: u32) -> u64 {
    let major = (rdev >> 8) & 0xfff;
    let minor = (rdev & 0xff) | ((rdev >> 12) & 0xfff00);
    u64::from(major) << 32 | u64::from(minor)
}

/// Attributes, with `ino` as the number to show.
pub(super) fn attr(a: &Attr, ino: u64) -> FileAttr {
    FileAttr {
        ino,
        size: a.size,
        blocks: a.blocks_512,
        atime: a.atime.secs,
        mtime: a.mtime.secs,
        ctime: a.ctime.secs,
        atimensec: a.atime.nanos,
        mtimensec: a.mtime.nanos,
        ctimensec: a.ctime.nanos,
        mode: kind(a.kind) | u32::from(a.mode & 0o7777),
        nlink: a.nlink,
        uid: a.uid,
        gid: a.gid,
        rdev: encode_device(a.rdev),
        blksize: a.block_size,
        flags: 0,
    }
}

/// When an inode was made.
pub(super) fn birth(a: &Attr) -> StatxTimes {
    StatxTimes { secs: a.crtime.secs, nanos: a.crtime.nanos }
}

/// Attributes of nothing.
pub(super) fn nothing() -> FileAttr {
    FileAttr::default()
}

/// Attributes of a name whose inode cannot be read: number and type.
pub(super) fn unread(entry: &Dirent) -> FileAttr {
    FileAttr { ino: entry.ino.0, mode: kind(entry.kind), ..nothing() }
}

/// How a file is opened. O_APPEND stays with the kernel, which says for each write where the end
/// is: pages written back from a mapping of such a file must go to their own place.
pub(super) fn open_flags(flags: i32) -> OpenFlags {
    OpenFlags::from_raw(flags) - OpenFlags::APPEND
}

/// Whether O_APPEND was given.
pub(super) fn appends(flags: i32) -> bool {
    OpenFlags::from_raw(flags).contains(OpenFlags::APPEND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive() {
        for (major, minor) in [(1, 3), (8, 300), (4095, 0xf_ffff)] {
            let rdev: u64 = major << 32 | minor;
            assert_eq!(decode_device(encode_device(rdev)), rdev);
        }
        assert_eq!(encode_device(1 << 32 | 3), 0x103);
    }

    #[test]
    fn append_is_not_handed_on() {
        use rustix::fs::OFlags;
        let flags = (OFlags::RDWR | OFlags::APPEND | OFlags::DIRECT).bits() as i32;
        let expected = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::DIRECT;
        assert_eq!(open_flags(flags), expected);
        assert!(appends(flags));
    }
}
