//! What this machine can do with a folder's files beside reading and writing: map them, lock
//! them, and let its caches forget them.

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FlockOperation, fadvise, fcntl_lock};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use steadfast_bench::iozone::matrix::{Mapping, MatrixTarget, TargetError};

/// A folder of this machine.
pub struct HostTarget {
    folder: PathBuf,
}

impl HostTarget {
    pub fn new(folder: &Path) -> HostTarget {
        HostTarget { folder: folder.to_path_buf() }
    }

    fn open(&self, file: &str, writes: bool) -> Result<File, TargetError> {
        let path = self.folder.join(file);
        let opened = File::options().read(true).write(writes).open(&path);
        opened.map_err(|source| TargetError::Open { path: path.display().to_string(), source })
    }
}

/// A system call's failure.
fn failed(call: &'static str) -> impl Fn(Errno) -> TargetError {
    move |e| TargetError::Call { call, source: e.into() }
}

impl MatrixTarget for HostTarget {
    fn drop_caches(&self, file: &str) -> Result<String, TargetError> {
        let file = self.open(file, false)?;
        file.sync_all().map_err(|source| TargetError::Call { call: "fsync", source })?;
        // The whole page cache where that is allowed, else what it holds of the file.
        if std::fs::write("/proc/sys/vm/drop_caches", "1").is_ok() {
            return Ok("fsync, /proc/sys/vm/drop_caches".into());
        }
        let dropped = fadvise(file.as_fd(), 0, None, Advice::DontNeed);
        dropped.map_err(failed("posix_fadvise"))?;
        Ok("fsync, posix_fadvise(POSIX_FADV_DONTNEED)".into())
    }

    fn lock(&self, file: &str, writes: bool) -> Result<Box<dyn Send>, TargetError> {
        let file = self.open(file, writes)?;
        let how = if writes { FlockOperation::LockExclusive } else { FlockOperation::LockShared };
        fcntl_lock(&file, how).map_err(failed("fcntl"))?;
        // Closing it unlocks.
        Ok(Box::new(file))
    }

    fn map(&self, file: &str, len: u64, writes: bool) -> Result<Box<dyn Mapping>, TargetError> {
        let file = self.open(file, writes)?;
        let size = file.metadata()?.len();
        if writes && size < len {
            // Space must be there before: a page that cannot be written ends the program.
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, len)
                .map_err(failed("fallocate"))?;
        } else if size < len {
            return Err(TargetError::Short { size, len });
        }
        Ok(Box::new(HostMapping::new(&file, len, writes)?))
    }
}

/// A mapped file.
struct HostMapping {
    address: *mut c_void,
    len: usize,
}

#[allow(unsafe_code, reason = "the mapping belongs to this value alone")]
// SAFETY: the address is used only through this value, and is valid in every thread.
unsafe impl Send for HostMapping {}

#[allow(unsafe_code, reason = "mmap(2) has no safe form")]
impl HostMapping {
    fn new(file: &File, len: u64, writes: bool) -> Result<HostMapping, TargetError> {
        let len = usize::try_from(len)
            .map_err(|_| TargetError::NotHere("it is larger than memory can be"))?;
        let mut how = ProtFlags::READ;
        how.set(ProtFlags::WRITE, writes);
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let address = unsafe { mmap(std::ptr::null_mut(), len, how, MapFlags::SHARED, file, 0) };
        Ok(HostMapping { address: address.map_err(failed("mmap"))?, len })
    }

    fn at(&self, offset: u64, len: usize) -> *mut u8 {
        assert!(offset as usize <= self.len && len <= self.len - offset as usize);
        // SAFETY: within the mapping, as was just checked.
        unsafe { self.address.cast::<u8>().add(offset as usize) }
    }
}

#[allow(unsafe_code, reason = "a file that others may change is no slice")]
impl Mapping for HostMapping {
    fn read(&mut self, offset: u64, buf: &mut [u8]) {
        // SAFETY: `at` has checked the range, and `buf` is other memory.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at(offset, buf.len()), buf.as_mut_ptr(), buf.len())
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        // SAFETY: `at` has checked the range, and `data` is other memory.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), self.at(offset, data.len()), data.len())
        }
    }

    fn sync(&mut self, offset: u64, len: u64, wait: bool) -> Result<(), TargetError> {
        const PAGE: u64 = 4096;
        let from = offset - offset % PAGE;
        let len = (offset + len - from) as usize;
        let how = if wait { MsyncFlags::SYNC } else { MsyncFlags::ASYNC };
        // SAFETY: within the mapping, from the beginning of a page on.
        unsafe { msync(self.at(from, len).cast(), len, how) }.map_err(|e| TargetError::Io(e.into()))
    }
}

#[allow(unsafe_code, reason = "munmap(2) has no safe form")]
impl Drop for HostMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is whole and nobody uses it any more.
        let _ = unsafe { munmap(self.address, self.len) };
    }
}
