//! What every request and every answer begins with.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct fuse_in_header`: what every request begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InHeader {
    /// Bytes of the request, with this header.
    pub len: u32,
    /// What is asked ([`opcode`](super::opcode)).
    pub opcode: u32,
    /// The request's number.
    pub unique: u64,
    /// The inode that it is about, by the number that the kernel was given.
    pub nodeid: u64,
    /// Who asks.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its thread; 0 where that is none that the daemon can see.
    pub pid: u32,
    /// Bytes of extensions behind the arguments, in units of eight.
    pub total_extlen: u16,
    pub(crate) padding: u16,
}

/// `struct fuse_out_header`: what every answer begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct OutHeader {
    pub len: u32,
    /// 0, or an error number below zero; of a notification its code.
    pub error: i32,
    /// The request's number; 0 of a notification.
    pub unique: u64,
}

/// Bytes of a request's header.
pub(crate) const IN_HEADER: usize = size_of::<InHeader>();
/// Bytes of an answer's header.
pub(crate) const OUT_HEADER: usize = size_of::<OutHeader>();

const _: () = assert!(IN_HEADER == 40 && OUT_HEADER == 16);
