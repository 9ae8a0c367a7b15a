//! The calls that need `unsafe`: memory maps, record locks, a thread's own working folder.

#![expect(unsafe_code, reason = "no crate offers these calls safely; each place says why it is")]

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Gives the calling thread a umask and a working folder of its own.
pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    assert_eq!(flags, UnshareFlags::FS, "a table of open files of its own would break OwnedFd");
    // SAFETY: umask and working folder are no memory, and nothing owns them.
    unsafe { unshare_unsafe(flags) }
}

/// A file in memory.
#[derive(Debug)]
pub(crate) struct Map {
    start: *mut c_void,
    len: usize,
}

// SAFETY: the pointer is the mapping's own; who has the Map has all of it.
unsafe impl Send for Map {}

impl Map {
    /// Maps `len` bytes of a file from `offset` on.
    pub(crate) fn new(
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        protection: ProtFlags,
        flags: MapFlags,
    ) -> Result<Map, Errno> {
        // SAFETY: the kernel chooses an address that nothing else uses.
        let start = unsafe { mmap(std::ptr::null_mut(), len, protection, flags, file, offset)? };
        Ok(Map { start, len })
    }

    /// Copies bytes out. The pages must exist: a read beyond the file's last page kills us.
    pub(crate) fn read(&self, at: usize, bytes: &mut [u8]) {
        assert!(at + bytes.len() <= self.len, "within the map");
        for (i, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: inside the map, by the assertion. Volatile, as others change the file.
            *byte = unsafe { self.start.cast::<u8>().add(at + i).read_volatile() };
        }
    }

    /// Copies bytes in; the map must be writable, and see [`Map::read`].
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len, "within the map");
        for (i, byte) in bytes.iter().enumerate() {
            // SAFETY: inside the map, by the assertion.
            unsafe { self.start.cast::<u8>().add(at + i).write_volatile(*byte) };
        }
    }

    /// Writes changed pages to the file and waits.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        // SAFETY: the map is there as long as self.
        unsafe { msync(self.start, self.len, MsyncFlags::SYNC) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: ours, and nobody holds a reference into it. Cannot fail on a map that is there.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}

/// Takes or gives back a record lock that belongs to the open file; does not wait. `kind` is one of
/// `F_RDLCK`, `F_WRLCK`, `F_UNLCK`.
pub(crate) fn record_lock(
    file: BorrowedFd<'_>,
    kind: i32,
    start: i64,
    len: i64,
) -> Result<(), Errno> {
    let lock = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: start,
        l_len: len,
        l_pid: 0,
    };
    // SAFETY: the call reads one flock, which is there.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    match done {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}

/// `truncate(2)`.
pub(crate) fn truncate(path: &std::path::Path, size: u64) -> Result<(), Errno> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    let size = i64::try_from(size).map_err(|_| Errno::INVAL)?;
    // SAFETY: the path ends with a 0 and is only read.
    match unsafe { libc::truncate(path.as_ptr(), size) } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}
