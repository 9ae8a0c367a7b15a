//! Values of the file system as FUSE has them, and back.

use std::time::{SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, INodeNo, TimeOrNow};
use steadfast_vfs::{Attr, Dirent, FileType, OpenFlags, SetTime, Timestamp};

/// The number that the kernel calls a file system's root by.
pub(super) const ROOT: u64 = 1;

/// Type of an inode.
pub(super) fn kind(kind: FileType) -> fuser::FileType {
    match kind {
        FileType::Regular => fuser::FileType::RegularFile,
        FileType::Directory => fuser::FileType::Directory,
        FileType::Symlink => fuser::FileType::Symlink,
        FileType::CharDevice => fuser::FileType::CharDevice,
        FileType::BlockDevice => fuser::FileType::BlockDevice,
        FileType::Fifo => fuser::FileType::NamedPipe,
        FileType::Socket => fuser::FileType::Socket,
    }
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

/// A time that the kernel sent. Before 1970 the library subtracts the nanoseconds instead of adding
/// them; this takes that back.
fn timestamp(t: SystemTime) -> Timestamp {
    match t.duration_since(UNIX_EPOCH) {
        Ok(d) => Timestamp { secs: d.as_secs() as i64, nanos: d.subsec_nanos() },
        Err(e) => {
            let d = e.duration();
            Timestamp { secs: -(d.as_secs() as i64), nanos: d.subsec_nanos() }
        }
    }
}

/// A time to be set.
pub(super) fn set_time(t: TimeOrNow) -> SetTime {
    match t {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(t) => SetTime::At(timestamp(t)),
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
        ino: INodeNo(ino),
        size: a.size,
        blocks: a.blocks_512,
        atime: a.atime.into(),
        mtime: a.mtime.into(),
        ctime: a.ctime.into(),
        crtime: a.crtime.into(),
        kind: kind(a.kind),
        perm: a.mode & 0o7777,
        nlink: a.nlink,
        uid: a.uid,
        gid: a.gid,
        rdev: encode_device(a.rdev),
        blksize: a.block_size,
        flags: 0,
    }
}

/// Attributes of nothing.
pub(super) fn nothing() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: fuser::FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

/// Attributes of a name whose inode cannot be read: number and type.
pub(super) fn unread(entry: &Dirent) -> FileAttr {
    FileAttr { ino: INodeNo(entry.ino.0), kind: kind(entry.kind), ..nothing() }
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
    use std::time::Duration;

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
    fn times_before_1970_keep_their_nanoseconds() {
        let t = SystemTime::from(Timestamp { secs: -2, nanos: 800_000_000 });
        assert_eq!(UNIX_EPOCH.duration_since(t).unwrap(), Duration::from_millis(1200));
        // What the library makes of (-2 s, 800 ms).
        let sent = UNIX_EPOCH - Duration::from_millis(2800);
        assert_eq!(timestamp(sent), Timestamp { secs: -2, nanos: 800_000_000 });
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
