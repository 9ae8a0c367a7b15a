//! Loop devices and mounts of the host's kernel. Tests use the kernel as a judge (it mounts our
//! images and recovers them after power cuts) and as a peer (it is measured beside Steadfast).
//! Needs root.
//!
//! Devices and mounts are released when the value is dropped, also if a test fails. This needs
//! retries: a child process that was just started keeps inherited descriptors until it runs, and a
//! search for a free loop device opens them all for a moment. So an unmount is retried while it is
//! busy, and a detach is waited for.

mod loops;
mod mount;
mod program;

pub use loops::{LoopDevice, is_attached};
pub use mount::Mount;
pub use program::Failed;

use std::time::Duration;

/// Number of retries, and the pause between them.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// Retries for some seconds, until `done` is true.
fn retry(mut done: impl FnMut() -> bool) -> bool {
    (0..TRIES).any(|_| {
        let yes = done();
        if !yes {
            std::thread::sleep(PAUSE);
        }
        yes
    })
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
