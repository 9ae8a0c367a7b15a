//! Multiple-mount protection makes a mount wait: it prints what it waits for, and how long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast_block::BlockDevice;
use steadfast_ext4::mount::protection_wait;

use crate::terminal;

/// What takes longer is printed.
const REPORT_AFTER: Duration = Duration::from_secs(2);

/// Does what mounts the file system on a device called `name`, or replays its journal; says what
/// it waits for where it takes long.
pub fn reporting_wait<T>(
    device: &Arc<dyn BlockDevice>,
    name: &str,
    read_only: bool,
    mount: impl FnOnce() -> T,
) -> T {
    let begun = Instant::now();
    // What cannot be read the mount says.
    let wait = if read_only { Ok(Duration::ZERO) } else { protection_wait(&**device) };
    let wait = wait.unwrap_or_default();
    if wait <= REPORT_AFTER {
        return mount();
    }
    let (seconds, mut is_explained) = (wait.as_secs(), false);
    let progress = || {
        if !std::mem::replace(&mut is_explained, true) {
            terminal::note(&format!(
                "{name}: waiting to see whether another host has the file system mounted \
                 (multiple-mount protection): {seconds} s, by the interval on the disk; Ctrl-C \
                 ends it"
            ));
        }
        let now = begun.elapsed();
        let what = format!("waiting for {name}: {} of {seconds} s", now.as_secs());
        (now < wait).then(|| (now.as_secs_f64() / wait.as_secs_f64(), what))
    };
    terminal::with_progress(REPORT_AFTER, progress, mount)
}
