//! The memory that the kernel and an entry of a ring share: where requests appear and answers are
//! put.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Bytes of `struct fuse_uring_req_header`: three parts of 128, 128 and 32 bytes.
pub(super) const HEADERS: usize = 288;
/// Where the operation's own structure is, which is 128 bytes long.
pub(super) const OPERATION: usize = 128;
/// Where `struct fuse_uring_ent_in_out` is: flags, the number to answer by, and bytes of payload.
pub(super) const IN_OUT: usize = 256;
/// Before the payload, so that it begins with a page.
const PAYLOAD: usize = 4096;

/// Memory of one entry. The kernel writes to it between the submission of a command and its
/// completion, and nobody else may look at it then.
#[derive(Debug)]
pub(super) struct EntryMemory {
    start: NonNull<u8>,
    payload: usize,
}

// SAFETY: it is memory of the whole process, of which this is the only owner.
#[expect(unsafe_code, reason = "a pointer to memory that is owned")]
unsafe impl Send for EntryMemory {}

impl EntryMemory {
    /// With room for so many bytes of payload. Pages that nobody touches cost nothing.
    ///
    /// # Errors
    /// There is no memory.
    #[expect(unsafe_code, reason = "memory that the kernel writes to")]
    pub fn new(payload: usize) -> io::Result<EntryMemory> {
        let (access, how) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: new memory, wherever the kernel puts it.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), PAYLOAD + payload, access, how) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(EntryMemory { start, payload })
    }

    /// What the kernel is told: where headers and payload are, as `struct iovec`.
    pub fn io_vectors(&self) -> [libc::iovec; 2] {
        let start = self.start.as_ptr();
        let payload = start.wrapping_add(PAYLOAD);
        [
            libc::iovec { iov_base: start.cast(), iov_len: HEADERS },
            libc::iovec { iov_base: payload.cast(), iov_len: self.payload },
        ]
    }

    /// The headers and the payload, while no command is under way.
    #[expect(unsafe_code, reason = "memory that the kernel writes to")]
    pub fn parts(&mut self) -> (&mut [u8; HEADERS], &mut [u8]) {
        let start = self.start.as_ptr();
        // SAFETY: both lie within the mapping, apart from each other; it is owned, and borrowed
        // from `self` for as long as they are. Who calls has seen the command's completion.
        unsafe {
            let payload = std::slice::from_raw_parts_mut(start.add(PAYLOAD), self.payload);
            (&mut *start.cast(), payload)
        }
    }
}

impl Drop for EntryMemory {
    #[expect(unsafe_code, reason = "memory that the kernel writes to")]
    fn drop(&mut self) {
        // OK to ignore: it is the mapping's own range.
        // SAFETY: it is mapped, and nobody has a reference into it. The ring that had commands with
        // it is closed before (fields are dropped in order).
        let _ = unsafe { munmap(self.start.as_ptr().cast(), PAYLOAD + self.payload) };
    }
}
