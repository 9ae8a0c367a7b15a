//! Attributes of inodes, as they are shown and as they are to be set.

use std::time::Duration;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct fuse_attr`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FileAttr {
    /// st_ino.
    pub ino: u64,
    /// Bytes.
    pub size: u64,
    /// Units of 512 bytes that it has storage for.
    pub blocks: u64,
    /// Seconds since 1970, below zero before it (the kernel reads them so).
    pub atime: i64,
    /// As `atime`.
    pub mtime: i64,
    /// As `atime`.
    pub ctime: i64,
    /// Below a thousand million, added to the seconds.
    pub atimensec: u32,
    /// As `atimensec`.
    pub mtimensec: u32,
    /// As `atimensec`.
    pub ctimensec: u32,
    /// st_mode: type and permissions.
    pub mode: u32,
    /// Names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Of a device node: its number, in the kernel's 32 bits.
    pub rdev: u32,
    /// st_blksize.
    pub blksize: u32,
    /// FUSE_ATTR_*.
    pub flags: u32,
}

/// `struct fuse_entry_out`: what a lookup finds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct EntryOut {
    /// The number by which the kernel will ask; 0: there is no such name.
    pub nodeid: u64,
    /// Distinguishes inodes that have the same number one after the other.
    pub generation: u64,
    entry_valid: u64,
    attr_valid: u64,
    entry_valid_nsec: u32,
    attr_valid_nsec: u32,
    /// Its attributes.
    pub attr: FileAttr,
}

impl EntryOut {
    /// The kernel remembers the name and the attributes for so long.
    pub fn new(
        (nodeid, generation): (u64, u64),
        attr: FileAttr,
        entry_valid: Duration,
        attr_valid: Duration,
    ) -> EntryOut {
        EntryOut {
            nodeid,
            generation,
            entry_valid: entry_valid.as_secs(),
            attr_valid: attr_valid.as_secs(),
            entry_valid_nsec: entry_valid.subsec_nanos(),
            attr_valid_nsec: attr_valid.subsec_nanos(),
            attr,
        }
    }
}

/// `struct fuse_setattr_in`.
#[derive(Debug, Clone, Copy, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct SetattrIn {
    valid: u32,
    padding: u32,
    fh: u64,
    size: u64,
    lock_owner: u64,
    atime: i64,
    mtime: i64,
    ctime: i64,
    atimensec: u32,
    mtimensec: u32,
    ctimensec: u32,
    mode: u32,
    unused4: u32,
    uid: u32,
    gid: u32,
    unused5: u32,
}

const _: () = assert!(size_of::<FileAttr>() == 88);
const _: () = assert!(size_of::<EntryOut>() == 128);
const _: () = assert!(size_of::<SetattrIn>() == 88);

/// A time to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// What is now.
    Now,
    /// Seconds since 1970, and nanoseconds to be added to them.
    At(i64, u32),
}

/// What of an inode is to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttr {
    /// st_mode.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Bytes.
    pub size: Option<u64>,
    /// Of access.
    pub atime: Option<SetTime>,
    /// Of the last change of its contents.
    pub mtime: Option<SetTime>,
    /// Of the last change at all: sent where the kernel keeps writes.
    pub ctime: Option<(i64, u32)>,
    /// The open file by which it is done.
    pub fh: Option<u64>,
}

// FATTR_*.
const MODE: u32 = 1 << 0;
const UID: u32 = 1 << 1;
const GID: u32 = 1 << 2;
const SIZE: u32 = 1 << 3;
const ATIME: u32 = 1 << 4;
const MTIME: u32 = 1 << 5;
const FH: u32 = 1 << 6;
const ATIME_NOW: u32 = 1 << 7;
const MTIME_NOW: u32 = 1 << 8;
const CTIME: u32 = 1 << 10;

impl From<SetattrIn> for SetAttr {
    fn from(asked: SetattrIn) -> SetAttr {
        let has = |flag| asked.valid & flag != 0;
        let time = |flag, now, secs, nanos| match (has(flag), has(now)) {
            (false, _) => None,
            (true, true) => Some(SetTime::Now),
            (true, false) => Some(SetTime::At(secs, nanos)),
        };
        SetAttr {
            mode: has(MODE).then_some(asked.mode),
            uid: has(UID).then_some(asked.uid),
            gid: has(GID).then_some(asked.gid),
            size: has(SIZE).then_some(asked.size),
            atime: time(ATIME, ATIME_NOW, asked.atime, asked.atimensec),
            mtime: time(MTIME, MTIME_NOW, asked.mtime, asked.mtimensec),
            ctime: has(CTIME).then_some((asked.ctime, asked.ctimensec)),
            fh: has(FH).then_some(asked.fh),
        }
    }
}
