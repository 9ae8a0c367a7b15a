//! Loop devices and mounts of the host's kernel, which is a judge of ours (it mounts what we wrote,
//! it recovers what a power cut left) and a peer (it is measured beside us). Needs root.
//!
//! What is taken is given back when the value is dropped, also by a test that fails. That takes
//! patience: a child that somebody else has just started holds on to everything it inherited until
//! it is running, and whoever looks for a free loop device opens them all for a moment. So an
//! unmount is asked for again while it is busy, and a detach is waited for.

mod loops;
mod mount;
mod program;

pub use loops::{LoopDevice, is_attached};
pub use mount::Mount;
pub use program::Failed;

use std::time::Duration;

/// How often something busy is asked for again, and how long after.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// Asks again and again for some seconds, until the answer is yes.
fn patiently(mut done: impl FnMut() -> bool) -> bool {
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
