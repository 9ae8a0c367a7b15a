//! From statx(2) to [`Attr`], and back for times and owners.

use std::os::fd::AsFd;

use rustix::fs::{
    AtFlags, FileType as HostType, Statx, StatxFlags, StatxTimestamp, Timespec, Timestamps,
};

use super::NOFOLLOW;
use crate::{Attr, FileType, FsError, Ino, Result, SetAttr, SetTime, Timestamp};

/// tv_nsec values of utimensat(2).
const UTIME_NOW: i64 = (1 << 30) - 1;
const UTIME_OMIT: i64 = (1 << 30) - 2;

fn wanted() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::BTIME
}

/// What statx says of an open file or place.
pub(super) fn of_fd(fd: impl AsFd) -> Result<Statx> {
    Ok(rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, wanted())?)
}

/// What statx says of a name, following nothing.
pub(super) fn at(dir: impl AsFd, name: &[u8]) -> Result<Statx> {
    Ok(rustix::fs::statx(dir, name, NOFOLLOW, wanted())?)
}

/// The file type.
pub(super) fn kind(x: &Statx) -> Result<FileType> {
    from_host(HostType::from_raw_mode(u32::from(x.stx_mode)))
        .ok_or(FsError::Unsupported { what: format!("file type in mode {:o}", x.stx_mode) })
}

/// The type in a directory entry; `None` where the host does not say.
pub(super) fn from_host(kind: HostType) -> Option<FileType> {
    Some(match kind {
        HostType::RegularFile => FileType::Regular,
        HostType::Directory => FileType::Directory,
        HostType::Symlink => FileType::Symlink,
        HostType::CharacterDevice => FileType::CharDevice,
        HostType::BlockDevice => FileType::BlockDevice,
        HostType::Fifo => FileType::Fifo,
        HostType::Socket => FileType::Socket,
        _ => return None,
    })
}

/// The host's word for a type that mknod(2) can make.
pub(super) fn to_host(kind: FileType) -> Result<HostType> {
    Ok(match kind {
        FileType::Regular => HostType::RegularFile,
        FileType::CharDevice => HostType::CharacterDevice,
        FileType::BlockDevice => HostType::BlockDevice,
        FileType::Fifo => HostType::Fifo,
        FileType::Socket => HostType::Socket,
        FileType::Directory | FileType::Symlink => {
            return Err(FsError::Invalid { what: "mknod makes no directory or symbolic link" });
        }
    })
}

/// The attributes, under our number.
pub(super) fn attr(ino: Ino, x: &Statx) -> Result<Attr> {
    let kind = kind(x)?;
    let device = matches!(kind, FileType::CharDevice | FileType::BlockDevice);
    let rdev = u64::from(x.stx_rdev_major) << 32 | u64::from(x.stx_rdev_minor);
    Ok(Attr {
        ino,
        kind,
        mode: x.stx_mode & 0o7777,
        nlink: x.stx_nlink,
        uid: x.stx_uid,
        gid: x.stx_gid,
        size: x.stx_size,
        blocks_512: x.stx_blocks,
        block_size: x.stx_blksize,
        rdev: if device { rdev } else { 0 },
        atime: time(x.stx_atime),
        mtime: time(x.stx_mtime),
        ctime: time(x.stx_ctime),
        // Zero where the file system does not keep it.
        crtime: time(x.stx_btime),
        generation: 0,
    })
}

fn time(t: StatxTimestamp) -> Timestamp {
    Timestamp { secs: t.tv_sec, nanos: t.tv_nsec }
}

/// The times to set, or `None` if none is.
pub(super) fn times(set: &SetAttr) -> Option<Timestamps> {
    if set.atime.is_none() && set.mtime.is_none() {
        return None;
    }
    Some(Timestamps { last_access: timespec(set.atime), last_modification: timespec(set.mtime) })
}

fn timespec(t: Option<SetTime>) -> Timespec {
    match t {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(SetTime::At(t)) => Timespec { tv_sec: t.secs, tv_nsec: i64::from(t.nanos) },
    }
}
