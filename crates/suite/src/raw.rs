//! The calls that need `unsafe`: memory maps, record locks, ioctls, libaio, a thread's own working
//! folder.

#![expect(unsafe_code, reason = "no crate offers these calls safely; each place says why it is")]

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// O_DSYNC as the kernel has it: rustix means O_SYNC by both names.
pub(crate) const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as u32);

/// Gives the calling thread a umask and a working folder of its own.
pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    assert_eq!(flags, UnshareFlags::FS, "a table of open files of its own would break OwnedFd");
    // SAFETY: umask and working folder are no memory, and nothing owns them.
    unsafe { unshare_unsafe(flags) }
}

/// A file in memory.
#[derive(Debug)]
pub(crate) struct MappedFile {
    start: *mut c_void,
    len: usize,
}

// SAFETY: the pointer is the mapping's own; who has the Map has all of it.
unsafe impl Send for MappedFile {}

impl MappedFile {
    /// Maps `len` bytes of a file from `offset` on.
    pub(crate) fn new(
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        protection: ProtFlags,
        flags: MapFlags,
    ) -> Result<MappedFile, Errno> {
        // SAFETY: the kernel chooses an address that nothing else uses.
        let start = unsafe { mmap(std::ptr::null_mut(), len, protection, flags, file, offset)? };
        Ok(MappedFile { start, len })
    }

    /// Copies bytes out. The pages must exist: a read beyond the file's last page kills us.
    pub(crate) fn read(&self, at: usize, bytes: &mut [u8]) {
        assert!(at + bytes.len() <= self.len, "within the map");
        for (i, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: inside the map, by the assertion. Volatile, as others change the file.
            *byte = unsafe { self.start.cast::<u8>().add(at + i).read_volatile() };
        }
    }

    /// Copies bytes in; the map must be writable, and see [`MappedFile::read`].
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

impl Drop for MappedFile {
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

/// `ioctl(2)` with an argument in memory, which is as long as any that a number can name.
pub(crate) fn ioctl(
    file: BorrowedFd<'_>,
    number: u32,
    argument: &mut [u8; 1 << 14],
) -> Result<(), Errno> {
    // SAFETY: a number says in 14 bits how many bytes of the argument are read and written.
    match unsafe { libc::ioctl(file.as_raw_fd(), number.into(), argument.as_mut_ptr()) } {
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

/// `sync_file_range(2)`: writes the range out and waits for it.
pub(crate) fn sync_file_range(
    file: &std::os::fd::OwnedFd,
    offset: u64,
    len: usize,
) -> Result<(), Errno> {
    let offset = i64::try_from(offset).map_err(|_| Errno::INVAL)?;
    let len = i64::try_from(len).map_err(|_| Errno::INVAL)?;
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the file is open, and no memory is passed.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}

/// One write by the system calls of libaio: submitted, and waited for. `bytes` are aligned as
/// O_DIRECT asks. Returns how many bytes were written.
///
/// # Errors
/// The system refused, or the write failed.
pub fn aio_write(file: BorrowedFd<'_>, offset: u64, bytes: &[u8]) -> Result<usize, Errno> {
    /// `struct io_event` of linux/aio_abi.h.
    #[repr(C)]
    #[derive(Default)]
    struct Event {
        data: u64,
        object: u64,
        result: i64,
        more: i64,
    }
    /// IOCB_CMD_PWRITE.
    const WRITE: u16 = 1;
    let fail = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
    let mut context: libc::c_ulong = 0;
    // SAFETY: all zeros are a request with no flags.
    let mut request: libc::iocb = unsafe { std::mem::zeroed() };
    request.aio_lio_opcode = WRITE;
    request.aio_fildes = file.as_raw_fd() as u32;
    request.aio_buf = bytes.as_ptr() as u64;
    request.aio_nbytes = bytes.len() as u64;
    request.aio_offset = i64::try_from(offset).map_err(|_| Errno::INVAL)?;
    let mut event = Event::default();
    // SAFETY: request, data and event outlive the calls: the last ends all that is under way.
    unsafe {
        if libc::syscall(libc::SYS_io_setup, 1, &raw mut context) < 0 {
            return Err(fail());
        }
        let mut list = [&raw mut request];
        let submitted = libc::syscall(libc::SYS_io_submit, context, 1, list.as_mut_ptr());
        let failed = (submitted < 1).then(fail);
        let none = std::ptr::null_mut::<libc::timespec>();
        if failed.is_none() {
            libc::syscall(libc::SYS_io_getevents, context, 1, 1, &raw mut event, none);
        }
        libc::syscall(libc::SYS_io_destroy, context);
        if let Some(errno) = failed {
            return Err(errno);
        }
    }
    usize::try_from(event.result).map_err(|_| Errno::from_raw_os_error(-event.result as i32))
}
