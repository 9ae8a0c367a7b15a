//! What is said to the kernel unasked: it is to forget what it has kept.

use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use zerocopy::IntoBytes;

use crate::protocol::{EpochOut, InvalEntryOut, InvalInodeOut, OUT_HEADER, OutHeader};
use crate::transport::Device;

// FUSE_NOTIFY_*.
const INVAL_INODE: i32 = 2;
const INVAL_ENTRY: i32 = 3;
const INC_EPOCH: i32 = 8;

/// Sends notifications, from any thread. They go over /dev/fuse, whatever carries the requests.
#[derive(Debug, Clone)]
pub struct Notifier {
    device: Arc<Device>,
}

impl Notifier {
    pub(crate) fn new(device: Arc<Device>) -> Notifier {
        Notifier { device }
    }

    /// The kernel forgets an inode's attributes, and its pages from `off` on (`len` 0: to the end;
    /// a negative offset: no pages). Waits while these are written out.
    ///
    /// # Errors
    /// ENOENT: the kernel does not know the inode.
    pub fn inval_inode(&self, ino: u64, off: i64, len: i64) -> io::Result<()> {
        self.send(INVAL_INODE, &[InvalInodeOut { ino, off, len }.as_bytes()])
    }

    /// The kernel forgets a name, and all below it. Waits for who works in the folder.
    ///
    /// # Errors
    /// ENOENT: the kernel does not know the name.
    pub fn inval_entry(&self, parent: u64, name: &[u8]) -> io::Result<()> {
        let namelen = u32::try_from(name.len()).map_err(|_| Errno::NAMETOOLONG)?;
        let head = InvalEntryOut { parent, namelen, flags: 0 };
        self.send(INVAL_ENTRY, &[head.as_bytes(), name, &[0]])
    }

    /// Names that the kernel has learnt are looked up again (Linux 6.16).
    ///
    /// # Errors
    /// EINVAL: the kernel is older.
    pub fn new_epoch(&self) -> io::Result<()> {
        const NOTHING: EpochOut = [];
        self.send(INC_EPOCH, &[&NOTHING])
    }

    fn send(&self, code: i32, parts: &[&[u8]]) -> io::Result<()> {
        let len = OUT_HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
        // OK to cast: a name has at most 4 GiB, and the kernel takes 1024 bytes.
        let header = OutHeader { len: len as u32, error: code, unique: 0 };
        self.device.write(&header, parts)
    }
}
