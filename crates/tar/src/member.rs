//! A member: what an archive says of one object.

use steadfast_vfs::Timestamp;

/// What a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberKind {
    /// A regular file; its contents follow.
    File,
    /// Another name of a member before it, by that one's path.
    HardLink(Vec<u8>),
    /// A symbolic link to this.
    Symlink(Vec<u8>),
    /// A directory.
    Directory,
    /// A character device (major << 32 | minor).
    CharDevice(u64),
    /// A block device (major << 32 | minor).
    BlockDevice(u64),
    /// A FIFO.
    Fifo,
}

/// One object of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its path, as it stands there: anything at all.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: MemberKind,
    /// Permission bits with set-id and sticky.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes of a file, holes included; 0 of all else.
    pub size: u64,
    /// Last change of contents.
    pub mtime: Timestamp,
    /// Last read, where it is kept.
    pub atime: Option<Timestamp>,
    /// Attributes with their full names, values as the kernel has them; access control lists too.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// Attributes that cannot be kept: names, and why.
    pub not_kept: Vec<(Vec<u8>, String)>,
    /// Why it must not be used.
    pub refused: Option<String>,
}

impl Member {
    /// An empty file that only root may use, of 1970.
    pub fn new(path: &[u8]) -> Member {
        Member {
            path: path.to_vec(),
            kind: MemberKind::File,
            mode: 0o600,
            uid: 0,
            gid: 0,
            size: 0,
            mtime: Timestamp::default(),
            atime: None,
            xattrs: Vec::new(),
            not_kept: Vec::new(),
            refused: None,
        }
    }
}
