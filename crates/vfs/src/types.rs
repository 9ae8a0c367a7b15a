//! Values that go in and out of a file system.

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
}

impl Default for NewNode {
    /// rw-r--r--, owned by root.
    fn default() -> Self {
        NewNode { mode: 0o644, uid: 0, gid: 0 }
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
    }
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name's inode.
    pub ino: Ino,
    /// Its type.
    pub kind: FileType,
    /// The name; never empty, without '/' and NUL.
    pub name: Vec<u8>,
    /// Where to go on after this entry: pass it to the next `readdir`.
    pub next: u64,
}

/// Space and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
