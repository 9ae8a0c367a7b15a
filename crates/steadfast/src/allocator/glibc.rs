//! Memory that is free goes back to the system.
//!
//! A mount's buffers come and go in many threads and in all sizes. The C library gives each thread
//! an arena of its own, which stays as large as it ever was, and a mount of 96 MiB grew without
//! end. With two arenas for all, and with what is free in them given back now and then, more often
//! when the process comes near the bound on a mount's memory (docs/mount.md), that bound holds.
//! Another allocator would do, but it would have to be built from C, and this program needs nothing
//! but Rust.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often free memory is given back: seldom enough to cost nothing, often enough that what a
/// burst has left does not add to the next one.
const EVERY: Duration = Duration::from_millis(500);

/// What the process may have beside its cache before it gives memory back after each
/// [`BURST`]: less than half of what docs/mount.md allows it.
const BESIDE: u64 = 24 << 20;

/// Bytes of large pieces.
const BURST: u64 = 8 << 20;

/// A large piece, in bytes: one that a request's data needs, not a page.
const LARGE: usize = 64 << 10;

/// From how many bytes of its own on the process is near its bound; it has none at first.
static NEAR: AtomicU64 = AtomicU64::new(u64::MAX);

/// Bytes freed in large pieces since it was last looked.
static FREED: AtomicU64 = AtomicU64::new(0);

/// Settings for a mount, before it has threads. Nothing else promises a bound on its memory, and
/// nothing else has them.
#[allow(unsafe_code, reason = "the C library's settings; see SAFETY")]
pub fn set_up() {
    /// Arenas for all threads.
    const ARENAS: i32 = 2;
    /// Bytes from which on memory is asked of the system and given back to it singly. A request's
    /// buffer of 1 MiB must not be: its 256 page faults cost more than what is done with it.
    const SINGLY: i32 = 8 << 20;
    /// Bytes that may be free at an arena's end before they are given back at once.
    const KEPT: i32 = 16 << 20;
    // SAFETY: mallopt takes numbers, and changes how later calls find room, nothing else.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, SINGLY);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}

/// Gives free memory back as long as the process runs: for one that serves a mount with a cache of
/// so many bytes.
pub fn give_back(cache: u64) {
    NEAR.store(cache.saturating_add(BESIDE), Ordering::Relaxed);
    let work = || loop {
        std::thread::sleep(EVERY);
        trim();
    };
    // OK to go without: memory is given back later then, or not.
    let _ = std::thread::Builder::new().name("memory".into()).spawn(work);
}

/// The C library's allocator; counts what is freed in large pieces. A process that has little time
/// frees as much between two looks at the clock as one that has much: so it is bytes that count
/// when it is near its bound.
pub struct GlibcAllocator;

// SAFETY: every call is the system allocator's with the same arguments; what is done beside it
// neither touches the memory nor panics.
#[allow(unsafe_code, reason = "the trait is unsafe; see SAFETY")]
unsafe impl GlobalAlloc for GlibcAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
        if layout.size() >= LARGE {
            freed(layout.size() as u64);
        }
    }
}

/// So much has been freed in one piece.
fn freed(bytes: u64) {
    let near = NEAR.load(Ordering::Relaxed);
    if near == u64::MAX || FREED.fetch_add(bytes, Ordering::Relaxed) + bytes < BURST {
        return;
    }
    FREED.store(0, Ordering::Relaxed);
    if own().is_some_and(|own| own >= near) {
        trim();
    }
}

#[allow(unsafe_code, reason = "the C library has no other name for it; see SAFETY")]
fn trim() {
    // SAFETY: it takes a number of bytes to keep, and touches only memory that is free.
    unsafe { libc::malloc_trim(0) };
}

/// Bytes of memory that are the process's own: all that is resident but the pages of its program,
/// which are in the system's page cache (proc_pid_statm(5)).
fn own() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = pages.split_whitespace().skip(1).map_while(|p| p.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}
