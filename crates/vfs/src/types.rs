//! Values that go in and out of a file system.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ino(pub u64);

/// An open file: what `open` returns and reads and writes take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fh(pub u64);

/// What an inode is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileType {
    /// Regular file.
    Regular,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Character device.
    CharDevice,
    /// Block device.
    BlockDevice,
    /// FIFO.
    Fifo,
    /// Socket.
    Socket,
}

/// Seconds and nanoseconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    /// Seconds; negative before 1970.
    pub secs: i64,
    /// Nanoseconds, below 1,000,000,000.
    pub nanos: u32,
}

impl From<Timestamp> for SystemTime {
    /// What a damaged disk says is beyond all calendars is no time at all: the beginning of 1970.
    fn from(t: Timestamp) -> SystemTime {
        let whole = Duration::from_secs(t.secs.unsigned_abs());
        let whole = match t.secs < 0 {
            true => UNIX_EPOCH.checked_sub(whole),
            false => UNIX_EPOCH.checked_add(whole),
        };
        let at = whole.and_then(|at| at.checked_add(Duration::from_nanos(t.nanos.into())));
        at.unwrap_or(UNIX_EPOCH)
    }
}

/// What `stat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr {
    /// Inode number.
    pub ino: Ino,
    /// Type.
    pub kind: FileType,
    /// Permission bits with set-id and sticky (the low 12 bits of st_mode).
    pub mode: u16,
    /// Links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Storage used, in 512-byte units.
    pub blocks_512: u64,
    /// Preferred I/O size in bytes.
    pub block_size: u32,
    /// Device number of a device node (major << 32 | minor), else 0.
    pub rdev: u64,
    /// Last read.
    pub atime: Timestamp,
    /// Last change of contents.
    pub mtime: Timestamp,
    /// Last change of the inode.
    pub ctime: Timestamp,
    /// Creation, if the file system keeps it.
    pub crtime: Timestamp,
    /// Distinguishes a number's present inode from an earlier one; 0 where that is not known.
    pub generation: u32,
}

/// A new inode's attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewNode {
    /// Permission bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bits to be taken from `mode`, unless the directory has a default ACL, which then decides.
    /// 0 if the caller has applied its umask already.
    pub umask: u16,
}

impl Default for NewNode {
    /// rw-r--r--, owned by root.
    fn default() -> Self {
        NewNode { mode: 0o644, uid: 0, gid: 0, umask: 0 }
    }
}

/// A time to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// To the present.
    Now,
    /// To this.
    At(Timestamp),
}

/// Attributes to change; `None` leaves one as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttr {
    /// Truncates or extends to this many bytes.
    pub size: Option<u64>,
    /// Permission bits.
    pub mode: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Last read.
    pub atime: Option<SetTime>,
    /// Last change of contents.
    pub mtime: Option<SetTime>,
    /// The times are those of writes that the caller's cache has kept, and that were allowed when
    /// they were made, or now: whether the file may be changed now is not asked
    /// ([`OpenFlags::WRITTEN_BACK`]).
    pub written_back: bool,
}

bitflags::bitflags! {
    /// How a file is opened.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct OpenFlags: u32 {
        /// Reads allowed.
        const READ = 1;
        /// Writes allowed.
        const WRITE = 1 << 1;
        /// O_SYNC: a write returns when data and all metadata are durable.
        const SYNC = 1 << 2;
        /// O_DSYNC: a write returns when data and the metadata needed to read it are durable.
        const DSYNC = 1 << 3;
        /// O_DIRECT: past the page cache; offsets, lengths and buffers are block-aligned.
        const DIRECT = 1 << 4;
        /// O_APPEND.
        const APPEND = 1 << 5;
        /// O_TRUNC.
        const TRUNCATE = 1 << 6;
        /// The caller caches what it reads, as the kernel does above FUSE: data of long reads need
        /// not stay in this cache too.
        const CALLER_CACHES = 1 << 7;
        /// Of one write: a page that the caller's cache has kept, of a mapping for instance. Who
        /// makes a file immutable has such pages written before: afterwards they are refused.
        const WRITTEN_BACK = 1 << 8;
        /// O_NOATIME: reads do not count as an access.
        const NO_ACCESS_TIME = 1 << 9;
        /// What one write may say otherwise than the file was opened
        /// ([`write_as`](crate::FileSystem::write_as)).
        const BY_CALL = Self::SYNC.bits() | Self::DSYNC.bits() | Self::DIRECT.bits();
    }
}

bitflags::bitflags! {
    /// How a rename treats its target (renameat2).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct RenameFlags: u32 {
        /// RENAME_NOREPLACE.
        const NO_REPLACE = 1;
        /// RENAME_EXCHANGE.
        const EXCHANGE = 1 << 1;
        /// RENAME_WHITEOUT: a character device 0:0 takes the old name.
        const WHITEOUT = 1 << 2;
    }
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirent {
    /// The name's inode.
    pub ino: Ino,
    /// Its type.
    pub kind: FileType,
    /// The name; never empty, without '/' and NUL.
    pub name: Vec<u8>,
    /// Where to go on after this entry: pass it to the next `readdir`.
    pub next: u64,
}

/// What can be read of one block of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirBlock {
    /// Its names; `next` of each is 0.
    pub entries: Vec<Dirent>,
    /// Byte of the directory behind the block.
    pub end: u64,
    /// Why these are not all.
    pub damage: Option<crate::FsError>,
}

/// Space and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatFs {
    /// Bytes a block.
    pub block_size: u32,
    /// Data blocks in all.
    pub blocks: u64,
    /// Free blocks.
    pub blocks_free: u64,
    /// Free blocks that are not reserved for root.
    pub blocks_available: u64,
    /// Inodes in all.
    pub inodes: u64,
    /// Free inodes.
    pub inodes_free: u64,
    /// Longest name in bytes.
    pub name_max: u32,
}

/// What fallocate(2) does to a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fallocate {
    /// Finds places for what has none; it reads as zeros. `keep_size`: also beyond the end of the
    /// file, which stays where it is.
    Allocate {
        /// FALLOC_FL_KEEP_SIZE.
        keep_size: bool,
    },
    /// FALLOC_FL_PUNCH_HOLE: gives the storage back; the size stays.
    PunchHole,
    /// FALLOC_FL_ZERO_RANGE: reads as zeros afterwards, with storage.
    ZeroRange {
        /// FALLOC_FL_KEEP_SIZE.
        keep_size: bool,
    },
    /// FALLOC_FL_COLLAPSE_RANGE: what follows moves down; block-aligned, inside the file.
    CollapseRange,
    /// FALLOC_FL_INSERT_RANGE: what follows moves up; block-aligned, inside the file.
    InsertRange,
}

/// What posix_fadvise(2) says of a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// It is read from front to back.
    Sequential,
    /// It is read at random places.
    Random,
    /// It is not needed for now: what is in the cache and durable may be forgotten.
    DontNeed,
}

/// What lseek(2) looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekTo {
    /// SEEK_DATA.
    Data,
    /// SEEK_HOLE: the end of the file counts as one.
    Hole,
}

/// A piece of a file and where it lies, as FIEMAP returns it. Units: bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileExtent {
    /// Where it begins in the file.
    pub logical: u64,
    /// Where it begins on the device; 0 if it has no place yet.
    pub physical: u64,
    /// Length.
    pub len: u64,
    /// Allocated, reads as zeros (FIEMAP_EXTENT_UNWRITTEN).
    pub unwritten: bool,
    /// Reserved, without a place yet (FIEMAP_EXTENT_DELALLOC).
    pub delayed: bool,
    /// Inside an inode or another structure (FIEMAP_EXTENT_DATA_INLINE).
    pub inline: bool,
}

/// Whether an extended attribute may or must exist when it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetXattr {
    /// Made or replaced.
    Any,
    /// XATTR_CREATE: fails if it exists.
    Create,
    /// XATTR_REPLACE: fails if it does not.
    Replace,
}

/// How a file system goes down at once (the GOINGDOWN / shutdown ioctl), for tests of crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Everything is made durable first.
    Flush,
    /// The journal's running transaction is committed, data is not written.
    FlushJournal,
    /// Nothing more reaches the device.
    Now,
}

bitflags::bitflags! {
    /// Which operations make a transaction point by themselves after they succeeded.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct TransactMask: u32 {
        /// At unmount; without it, unmount discards what was not committed.
        const UMOUNT = 1;
        /// A file was made (also a device node, a symbolic link).
        const CREATE = 1 << 1;
        /// A name was removed, rmdir too.
        const UNLINK = 1 << 2;
        /// A directory was made.
        const MKDIR = 1 << 3;
        /// A rename.
        const RENAME = 1 << 4;
        /// A hard link.
        const LINK = 1 << 5;
        /// A file was closed.
        const CLOSE = 1 << 6;
        /// A write.
        const WRITE = 1 << 7;
        /// fsync or fdatasync; without it they do nothing and succeed.
        const FSYNC = 1 << 8;
        /// A truncation.
        const TRUNCATE = 1 << 9;
        /// Space or the journal is full.
        const VOLFULL = 1 << 10;
        /// sync.
        const SYNC = 1 << 11;
    }
}

/// When transaction points are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactPolicy {
    /// By which operations.
    pub mask: TransactMask,
    /// And after this time, if anything changed.
    pub timed: Option<std::time::Duration>,
}
