//! A range of memory that is mapped from a file or device.

#![allow(unsafe_code, reason = "mmap(2) has no safe form")]

use std::ffi::c_void;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use super::instructions::{self, LINE, MemoryFailure};

/// Bytes from which on it is worth it to store past the caches: a line and what is beside it.
const STREAM_MIN: usize = 4 * LINE;
/// What `msync` takes multiples of.
const PAGE: usize = 4096;

/// A mapping; unmapped when it is dropped. Ranges are the caller's to check: one that is not
/// inside is a bug, and a panic.
pub(super) struct Mapping {
    address: *mut c_void,
    len: usize,
}

// SAFETY: the mapping is valid in every thread. It is only ever touched by copies that the compiler
// does not see into, so that two at a time are what they are between two processes: bytes of one
// and of the other.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes, shared. `synchronous`: with `MAP_SYNC`, which says that what is stored is
    /// durable when its lines have left the caches. It must be asked for with
    /// `MAP_SHARED_VALIDATE`: `MAP_SHARED` ignores it without a word (mmap(2)).
    pub fn new(
        file: impl AsFd,
        len: usize,
        writes: bool,
        synchronous: bool,
    ) -> Result<Mapping, Errno> {
        let mut how = ProtFlags::READ;
        how.set(ProtFlags::WRITE, writes);
        let flags = match synchronous {
            true => MapFlags::SHARED_VALIDATE | MapFlags::SYNC,
            false => MapFlags::SHARED,
        };
        instructions::catch_poison();
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let address = unsafe { mmap(std::ptr::null_mut(), len, how, flags, file, 0)? };
        Ok(Mapping { address, len })
    }

    /// Bytes mapped.
    pub fn len(&self) -> usize {
        self.len
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset <= self.len && len <= self.len - offset, "inside the mapping");
        // SAFETY: within the mapping, as was just checked.
        unsafe { self.address.cast::<u8>().add(offset) }
    }

    /// Copies from the mapping.
    pub fn load(&self, offset: usize, out: &mut [u8]) -> Result<(), MemoryFailure> {
        let from = self.at(offset, out.len());
        // SAFETY: `at` has checked the range; `out` is other memory.
        unsafe { instructions::load(out.as_mut_ptr(), from, out.len()) }
    }

    /// Copies into the mapping, by way of the caches.
    pub fn store(&self, offset: usize, data: &[u8]) -> Result<(), MemoryFailure> {
        let to = self.at(offset, data.len());
        // SAFETY: `at` has checked the range; `data` is other memory.
        unsafe { instructions::store(to, data.as_ptr(), data.len()) }
    }

    /// Copies into the mapping so that a fence makes it durable: whole lines past the caches where
    /// there are some, and what is left of it written back.
    pub fn store_through(&self, offset: usize, data: &[u8]) -> Result<(), MemoryFailure> {
        let head = if data.len() < STREAM_MIN {
            data.len()
        } else {
            offset.next_multiple_of(LINE) - offset
        };
        let (head, rest) = data.split_at(head);
        let (lines, tail) = rest.split_at(rest.len() / LINE * LINE);
        self.store_back(offset, head)?;
        let at = offset + head.len();
        if !lines.is_empty() {
            let to = self.at(at, lines.len());
            // SAFETY: `at` has checked the range, which is whole lines; `lines` is other memory.
            unsafe { instructions::stream(to, lines.as_ptr(), lines.len())? };
        }
        self.store_back(at + lines.len(), tail)
    }

    fn store_back(&self, offset: usize, data: &[u8]) -> Result<(), MemoryFailure> {
        if data.is_empty() {
            return Ok(());
        }
        self.store(offset, data)?;
        self.write_back(offset, data.len())
    }

    /// Starts to write lines back.
    pub fn write_back(&self, offset: usize, len: usize) -> Result<(), MemoryFailure> {
        let at = self.at(offset, len);
        // SAFETY: `at` has checked the range.
        unsafe { instructions::write_back(at, len) }
    }

    /// Has the kernel write a range to where the mapping comes from.
    pub fn sync(&self, offset: usize, len: usize) -> Result<(), Errno> {
        let from = offset / PAGE * PAGE;
        let len = offset + len - from;
        let at = self.at(from, len);
        // SAFETY: within the mapping, from the beginning of a page on.
        unsafe { msync(at.cast(), len, MsyncFlags::SYNC) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is whole and nobody uses it any more.
        let _ = unsafe { munmap(self.address, self.len) };
    }
}
