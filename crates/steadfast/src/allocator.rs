//! Memory that is free goes back to the system.
//!
//! A mount's buffers come and go in many threads and in all sizes. The C library gives each thread
//! an arena of its own, which stays as large as it ever was, and a mount of 96 MiB grew without
//! end. With two arenas for all, and with what is free in them given back now and then, more often
//! when the process comes near the bound on a mount's memory (docs/mount.md), that bound holds.
//! Another allocator would do, but it would have to be built from C, and this program needs nothing
//! but Rust.

use std::time::Duration;

/// How often free memory is given back: seldom enough to cost nothing, often enough that what a
/// burst has left does not add to the next one.
const EVERY: Duration = Duration::from_millis(500);

/// How often a busy process looks whether it must give memory back at once.
const LOOK: Duration = Duration::from_millis(100);

/// What the process may have beside its cache before it gives memory back at each look: two thirds
/// of what docs/mount.md allows it.
const BESIDE: u64 = 40 << 20;

/// Settings for a mount, before it has threads. Nothing else promises a bound on its memory, and
/// nothing else has them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
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
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "the C library has no other name for it; see SAFETY")]
pub fn give_back(cache: u64) {
    let work = move || {
        let (mut before, mut waited) = (None, Duration::ZERO);
        loop {
            // A process at rest is not woken more often than it need be.
            let resident = resident();
            let pause = if resident == before { EVERY } else { LOOK };
            before = resident;
            std::thread::sleep(pause);
            waited += pause;
            if waited < EVERY && resident.is_some_and(|r| r < cache.saturating_add(BESIDE)) {
                continue;
            }
            waited = Duration::ZERO;
            // SAFETY: it takes a number of bytes to keep, and touches only memory that is free.
            unsafe { libc::malloc_trim(0) };
        }
    };
    // OK to go without: memory is given back later then, or not.
    let _ = std::thread::Builder::new().name("memory".into()).spawn(work);
}

/// Bytes of the process that are in memory (proc_pid_statm(5)).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Other C libraries give memory back by themselves, or have no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn set_up() {}

/// See there.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back(_cache: u64) {}
