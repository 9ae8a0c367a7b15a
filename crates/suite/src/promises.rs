//! Every way in which a program asks that what it has written be durable.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::{Errno, IoSlice, ReadWriteFlags};

use crate::raw;

/// A page, which suits every device's O_DIRECT.
const ALIGN: usize = 4096;

/// How a program asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMethod {
    /// The file is opened with O_SYNC.
    OpenSync,
    /// The file is opened with O_DSYNC.
    OpenDsync,
    /// pwritev2(2) with RWF_SYNC.
    CallSync,
    /// pwritev2(2) with RWF_DSYNC.
    CallDsync,
    /// fsync(2) after the write.
    Fsync,
    /// fdatasync(2) after the write.
    Fdatasync,
    /// sync_file_range(2) after the write, which promises nothing: it knows neither the device's
    /// cache nor where the data is to be found.
    SyncFileRange,
    /// Not at all.
    Nothing,
}

impl SyncMethod {
    /// All of them.
    pub const ALL: [SyncMethod; 8] = [
        SyncMethod::OpenSync,
        SyncMethod::OpenDsync,
        SyncMethod::CallSync,
        SyncMethod::CallDsync,
        SyncMethod::Fsync,
        SyncMethod::Fdatasync,
        SyncMethod::SyncFileRange,
        SyncMethod::Nothing,
    ];

    /// Whether the answer is a promise.
    pub fn is_promised(self) -> bool {
        !matches!(self, SyncMethod::SyncFileRange | SyncMethod::Nothing)
    }

    /// Writes `bytes` over or behind what the file holds at `offset`, with O_DIRECT if `direct`
    /// (whole pages then), and asks. The file is still open on return: closing it may do more.
    ///
    /// # Errors
    /// A call failed, or wrote less than all.
    pub fn write(
        self,
        file: &Path,
        direct: bool,
        offset: u64,
        bytes: &[u8],
    ) -> Result<OwnedFd, Errno> {
        let mut flags = OFlags::WRONLY | OFlags::CLOEXEC;
        flags.set(OFlags::DIRECT, direct);
        match self {
            SyncMethod::OpenSync => flags |= OFlags::SYNC,
            SyncMethod::OpenDsync => flags |= raw::DSYNC,
            _ => {}
        }
        let call = match self {
            SyncMethod::CallSync => ReadWriteFlags::SYNC,
            SyncMethod::CallDsync => ReadWriteFlags::DSYNC,
            _ => ReadWriteFlags::empty(),
        };
        let file = rustix::fs::open(file, flags, rustix::fs::Mode::empty())?;
        let mut memory = vec![0; bytes.len() + ALIGN];
        let start = memory.as_ptr().align_offset(ALIGN);
        memory[start..start + bytes.len()].copy_from_slice(bytes);
        let aligned = IoSlice::new(&memory[start..start + bytes.len()]);
        if rustix::io::pwritev2(&file, &[aligned], offset, call)? != bytes.len() {
            return Err(Errno::IO);
        }
        match self {
            SyncMethod::Fsync => rustix::fs::fsync(&file)?,
            SyncMethod::Fdatasync => rustix::fs::fdatasync(&file)?,
            SyncMethod::SyncFileRange => raw::sync_file_range(&file, offset, bytes.len())?,
            _ => {}
        }
        Ok(file)
    }
}
