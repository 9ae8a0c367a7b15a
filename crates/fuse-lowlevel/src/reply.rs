//! An answer to a request.

use std::time::Duration;

use rustix::io::Errno;
use zerocopy::IntoBytes;

use crate::protocol::{
    AttrOut, CopyFileRangeOut, CreateOut, EntryOut, FileAttr, IoctlOut, Listing, LseekOut, OpenOut,
    OpenReply, StatfsOut, StatxOut, StatxTimes, WriteOut, XattrOut,
};

/// Puts an answer's bytes into memory; how many they are.
pub(crate) type Fill<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<usize, Errno>;

/// Where an answer goes.
pub(crate) trait Answer {
    /// Sends it: an error number (0: none), and what follows its header, in parts.
    fn send(&mut self, error: i32, parts: &[&[u8]]);
    /// Whether it has memory for an answer, which [`fill`](Self::fill) may be used with.
    fn has_memory(&self) -> bool {
        false
    }
    /// Sends what `with` puts into that memory: `len` bytes at most.
    fn fill(&mut self, _len: usize, _with: Fill<'_>) {
        self.send(-Errno::IO.raw_os_error(), &[]);
    }
    /// Whether one that comes later needs no further memory.
    fn has_room_for_later(&self) -> bool;
    /// For an answer that comes later, from another thread.
    fn later(&mut self) -> Box<dyn LateAnswer>;
}

/// Where an answer goes that comes later.
pub(crate) trait LateAnswer: Send {
    /// As [`Answer::send`].
    fn send(self: Box<Self>, error: i32, parts: &[&[u8]]);
    /// As [`Answer::has_memory`].
    fn has_memory(&self) -> bool {
        false
    }
    /// As [`Answer::fill`].
    fn fill(self: Box<Self>, _len: usize, _with: Fill<'_>) {
        self.send(-Errno::IO.raw_os_error(), &[]);
    }
}

/// Gives the bytes of a read, in one of two ways.
pub trait ReadSource {
    /// Memory that has them.
    type Bytes: AsRef<[u8]>;

    /// Puts them into memory that is there; how many they are.
    ///
    /// # Errors
    /// What the caller is answered.
    fn put(&self, out: &mut [u8]) -> Result<usize, Errno>;

    /// Memory with them in it, which may be shared.
    ///
    /// # Errors
    /// What the caller is answered.
    fn gather(&self) -> Result<Self::Bytes, Errno>;
}

/// The answer to one request. Dropped, it is EIO.
pub struct Reply<'a> {
    to: &'a mut dyn Answer,
    is_answered: bool,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(to: &'a mut dyn Answer) -> Reply<'a> {
        Reply { to, is_answered: false }
    }

    fn send(mut self, error: i32, parts: &[&[u8]]) {
        self.is_answered = true;
        self.to.send(error, parts);
    }

    /// It failed.
    pub fn error(self, errno: Errno) {
        self.send(-errno.raw_os_error(), &[]);
    }

    /// It is done.
    pub fn done(self) {
        self.send(0, &[]);
    }

    /// These bytes.
    pub fn data(self, data: &[u8]) {
        self.send(0, &[data]);
    }

    /// What is read, at most `len` bytes: put into the transport's memory where it has some.
    pub fn read(mut self, len: usize, from: &impl ReadSource) {
        if !self.to.has_memory() {
            return match from.gather() {
                Ok(data) => self.data(data.as_ref()),
                Err(e) => self.error(e),
            };
        }
        self.is_answered = true;
        self.to.fill(len, &mut |out| from.put(out));
    }

    /// What a lookup found, or was made.
    pub fn entry(self, entry: &EntryOut) {
        self.data(entry.as_bytes());
    }

    /// Attributes; the kernel keeps them for so long.
    pub fn attr(self, attr: &FileAttr, valid: Duration) {
        self.data(AttrOut::new(*attr, valid).as_bytes());
    }

    /// Attributes with the time of birth; the kernel keeps the others for so long.
    pub fn statx(self, attr: &FileAttr, birth: StatxTimes, valid: Duration) {
        self.data(StatxOut::new(attr, birth, valid).as_bytes());
    }

    /// The handle of an open file.
    pub fn opened(self, fh: u64, how: OpenReply) {
        self.data(opened(fh, how).as_bytes());
    }

    /// A file that was made, and its handle.
    pub fn created(self, entry: &EntryOut, fh: u64, how: OpenReply) {
        self.data(CreateOut { entry: *entry, open: opened(fh, how) }.as_bytes());
    }

    /// So many bytes were written, or copied.
    pub fn written(self, size: u32) {
        self.data(WriteOut { size, padding: 0 }.as_bytes());
    }

    /// So many bytes were copied, to who wants 64 bits.
    pub fn copied(self, size: u64) {
        self.data(CopyFileRangeOut { size }.as_bytes());
    }

    /// So many bytes an attribute has.
    pub fn xattr_size(self, size: u32) {
        self.data(XattrOut { size, padding: 0 }.as_bytes());
    }

    /// The file system's numbers.
    pub fn statfs(self, numbers: &StatfsOut) {
        self.data(numbers.as_bytes());
    }

    /// Where data, or a hole, begins.
    pub fn offset(self, offset: u64) {
        self.data(LseekOut { offset }.as_bytes());
    }

    /// The names of a folder.
    pub fn listing(self, listing: &Listing) {
        self.data(listing.as_bytes());
    }

    /// What an ioctl gives back.
    pub fn ioctl(self, data: &[u8]) {
        let head = IoctlOut { result: 0, flags: 0, in_iovs: 0, out_iovs: 0 };
        self.send(0, &[head.as_bytes(), data]);
    }

    /// Whether an answer [`later`](Self::later) takes no more memory than is set aside.
    pub fn has_room_for_later(&self) -> bool {
        self.to.has_room_for_later()
    }

    /// The answer is given later, by any thread. The thread that has taken the request goes on.
    pub fn later(mut self) -> LateReply {
        self.is_answered = true;
        LateReply { to: Some(self.to.later()) }
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.to.send(-Errno::IO.raw_os_error(), &[]);
        }
    }
}

/// An answer that comes later. Dropped, it is EIO.
pub struct LateReply {
    to: Option<Box<dyn LateAnswer>>,
}

impl LateReply {
    fn send(mut self, error: i32, parts: &[&[u8]]) {
        if let Some(to) = self.to.take() {
            to.send(error, parts);
        }
    }

    /// As [`Reply::error`].
    pub fn error(self, errno: Errno) {
        self.send(-errno.raw_os_error(), &[]);
    }

    /// As [`Reply::read`].
    pub fn read(mut self, len: usize, from: &impl ReadSource) {
        match self.to.take() {
            Some(to) if to.has_memory() => to.fill(len, &mut |out| from.put(out)),
            Some(to) => match from.gather() {
                Ok(data) => to.send(0, &[data.as_ref()]),
                Err(e) => to.send(-e.raw_os_error(), &[]),
            },
            None => {}
        }
    }

    /// As [`Reply::ioctl`].
    pub fn ioctl(self, data: &[u8]) {
        let head = IoctlOut { result: 0, flags: 0, in_iovs: 0, out_iovs: 0 };
        self.send(0, &[head.as_bytes(), data]);
    }
}

impl Drop for LateReply {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            to.send(-Errno::IO.raw_os_error(), &[]);
        }
    }
}

fn opened(fh: u64, how: OpenReply) -> OpenOut {
    OpenOut { fh, open_flags: how.bits(), backing_id: 0 }
}
