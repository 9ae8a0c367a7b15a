//! How long a thread has run: between two calls that is what the program did itself, whatever the
//! way through the mount took this time.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::order::ThreadRun;

/// Threads whose file is open, at most: with more all are opened anew.
const OPEN_MAX: usize = 512;

/// The threads' `/proc/TID/schedstat` (Documentation/scheduler/sched-stats.rst of the kernel).
#[derive(Default)]
pub(super) struct ThreadClocks(Mutex<HashMap<u32, Arc<File>>>);

impl ThreadClocks {
    /// What a thread has run until it went to sleep; of one that runs it may be less. `None`: it is
    /// gone, or the system does not say.
    pub fn of(&self, thread: u32) -> Option<ThreadRun> {
        let mut text = [0; 80];
        let known = self.open().get(&thread).cloned();
        if let Some(len) = known.and_then(|file| file.read_at(&mut text, 0).ok()) {
            return parse(text.get(..len)?);
        }
        // A thread that is gone may have left its number to another one.
        let file = Arc::new(File::open(format!("/proc/{thread}/schedstat")).ok()?);
        let len = file.read_at(&mut text, 0).ok()?;
        let mut open = self.open();
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        open.insert(thread, file);
        drop(open);
        parse(text.get(..len)?)
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<File>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse(text: &[u8]) -> Option<ThreadRun> {
    let text = str::from_utf8(text).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(|n| n.parse().ok());
    Some(ThreadRun {
        ran_ns: numbers.next()??,
        queued_ns: numbers.next()??,
        times: numbers.next()??,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_has_run() {
        let clocks = ThreadClocks::default();
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let before = clocks.of(thread).unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_millis(20);
        while std::time::Instant::now() < end {}
        std::thread::sleep(std::time::Duration::from_millis(1));
        let after = clocks.of(thread).unwrap();
        assert!(after.ran_ns > before.ran_ns && after.times > before.times, "{before:?} {after:?}");
        assert_eq!(clocks.of(u32::MAX), None);
    }

    #[test]
    fn only_three_numbers_are_times() {
        assert_eq!(parse(b"12 3 4\n"), Some(ThreadRun { ran_ns: 12, queued_ns: 3, times: 4 }));
        for text in [&b""[..], b"12", b"12 3", b"12 x 4", b"-1 2 3", b"\xff"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
