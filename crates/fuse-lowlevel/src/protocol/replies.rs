//! The structures of answers, and of what is sent to the kernel unasked.

use std::time::Duration;

use zerocopy::{Immutable, IntoBytes};

use super::attributes::{EntryOut, FileAttr};

/// `struct fuse_attr_out`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct AttrOut {
    attr_valid: u64,
    attr_valid_nsec: u32,
    dummy: u32,
    attr: FileAttr,
}

impl AttrOut {
    pub fn new(attr: FileAttr, valid: Duration) -> AttrOut {
        let (attr_valid, attr_valid_nsec) = (valid.as_secs(), valid.subsec_nanos());
        AttrOut { attr_valid, attr_valid_nsec, dummy: 0, attr }
    }
}

/// `struct fuse_open_out`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct OpenOut {
    pub fh: u64,
    pub open_flags: u32,
    pub backing_id: i32,
}

/// The answer to CREATE and TMPFILE.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct CreateOut {
    pub entry: EntryOut,
    pub open: OpenOut,
}

/// `struct fuse_write_out`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct WriteOut {
    pub size: u32,
    pub padding: u32,
}

/// `struct fuse_copy_file_range_out`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct CopyFileRangeOut {
    pub size: u64,
}

/// `struct fuse_getxattr_out`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct XattrOut {
    pub size: u32,
    pub padding: u32,
}

/// `struct fuse_lseek_out`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct LseekOut {
    pub offset: u64,
}

/// `struct fuse_ioctl_out`, without the data behind it.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct IoctlOut {
    pub result: i32,
    pub flags: u32,
    pub in_iovs: u32,
    pub out_iovs: u32,
}

/// `struct fuse_kstatfs`: the answer to STATFS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoBytes, Immutable)]
#[repr(C)]
pub struct StatfsOut {
    /// Blocks of the file system.
    pub blocks: u64,
    /// Of these free.
    pub bfree: u64,
    /// Of these for everybody.
    pub bavail: u64,
    /// Inodes.
    pub files: u64,
    /// Of these free.
    pub ffree: u64,
    /// Bytes of a block.
    pub bsize: u32,
    /// Longest name in bytes.
    pub namelen: u32,
    /// Bytes of the unit that `blocks` counts.
    pub frsize: u32,
    #[doc(hidden)]
    pub padding: u32,
    #[doc(hidden)]
    pub spare: [u32; 6],
}

/// `struct fuse_sx_time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoBytes, Immutable)]
#[repr(C)]
struct StatxTime {
    tv_sec: i64,
    tv_nsec: u32,
    reserved: i32,
}

/// The time of birth, which only statx(2) has: seconds since 1970 and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatxTimes {
    /// Seconds since 1970.
    pub secs: i64,
    /// Added to them.
    pub nanos: u32,
}

/// `struct fuse_statx_out`, with `struct fuse_statx` in it.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct StatxOut {
    attr_valid: u64,
    attr_valid_nsec: u32,
    flags: u32,
    spare: [u64; 2],
    mask: u32,
    blksize: u32,
    attributes: u64,
    nlink: u32,
    uid: u32,
    gid: u32,
    mode: u16,
    spare0: u16,
    ino: u64,
    size: u64,
    blocks: u64,
    attributes_mask: u64,
    atime: StatxTime,
    btime: StatxTime,
    ctime: StatxTime,
    mtime: StatxTime,
    rdev_major: u32,
    rdev_minor: u32,
    dev_major: u32,
    dev_minor: u32,
    spare2: [u64; 14],
}

/// STATX_BASIC_STATS and STATX_BTIME.
const STATX_BASIC: u32 = 0x7ff;
const STATX_BTIME: u32 = 0x800;

impl StatxOut {
    pub fn new(attr: &FileAttr, birth: StatxTimes, valid: Duration) -> StatxOut {
        let time = |tv_sec, tv_nsec| StatxTime { tv_sec, tv_nsec, reserved: 0 };
        StatxOut {
            attr_valid: valid.as_secs(),
            attr_valid_nsec: valid.subsec_nanos(),
            flags: 0,
            spare: [0; 2],
            mask: STATX_BASIC | STATX_BTIME,
            blksize: attr.blksize,
            attributes: 0,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            // OK to cast: a mode has 16 bits.
            mode: attr.mode as u16,
            spare0: 0,
            ino: attr.ino,
            size: attr.size,
            blocks: attr.blocks,
            attributes_mask: 0,
            atime: time(attr.atime, attr.atimensec),
            btime: time(birth.secs, birth.nanos),
            ctime: time(attr.ctime, attr.ctimensec),
            mtime: time(attr.mtime, attr.mtimensec),
            // The kernel's new_decode_dev.
            rdev_major: (attr.rdev >> 8) & 0xfff,
            rdev_minor: (attr.rdev & 0xff) | ((attr.rdev >> 12) & 0xf_ff00),
            dev_major: 0,
            dev_minor: 0,
            spare2: [0; 14],
        }
    }
}

/// `struct fuse_notify_inval_inode_out`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct InvalInodeOut {
    pub ino: u64,
    pub off: i64,
    pub len: i64,
}

/// `struct fuse_notify_inval_entry_out`, without the name behind it.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct InvalEntryOut {
    pub parent: u64,
    pub namelen: u32,
    pub flags: u32,
}

/// FUSE_NOTIFY_INC_EPOCH has no arguments.
pub(crate) type EpochOut = [u8; 0];

const _: () = assert!(size_of::<AttrOut>() == 104);
const _: () = assert!(size_of::<CreateOut>() == 144);
const _: () = assert!(size_of::<StatfsOut>() == 80);
const _: () = assert!(size_of::<StatxOut>() == 288);
