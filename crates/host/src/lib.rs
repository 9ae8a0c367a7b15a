//! Loop devices and mounts of the host's kernel. Tests use the kernel as a judge (it mounts our
//! images and recovers them after power cuts) and as a peer (it is measured beside Steadfast).
//! Needs root; but for the table of mounts ([`mounts`]), which says who has a device in use.
//!
//! Devices and mounts are released when the value is dropped, also if a test fails. This needs
//! retries: a child process that was just started keeps inherited descriptors until it runs, and a
//! search for a free loop device opens them all for a moment. So an unmount is retried while it is
//! busy, and a detach is waited for.

mod folder;
mod guard;
mod leftovers;
mod loops;
mod mount;
pub mod mounts;
mod program;

pub use folder::{Folder, clear_leftovers};
pub use guard::{GroupGuard, MountFolder};
pub use leftovers::dead_mounts;
pub use loops::{LoopDevice, is_attached};
pub use mount::Mount;
pub use program::ToolError;

use std::time::{Duration, Instant};

/// How long something is tried again, and the pause between two tries.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Tries again until `done` is true, for some seconds however long a try takes.
fn retry(done: impl FnMut() -> bool) -> bool {
    retry_for(PATIENCE, done)
}

fn retry_for(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
