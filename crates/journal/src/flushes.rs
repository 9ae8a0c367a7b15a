//! Numbered flushes of the file system's device, so that a caller can see whether another one has
//! made the flush that it needs.
//!
//! A flush covers the writes that completed before it was submitted. A write that completes after
//! `n` flushes have begun is covered by flush `n + 1` and every later one; flush `n` may or may not
//! cover it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use steadfast_block::BlockDevice;

/// See the module's text. Everybody who flushes the device does it through this.
pub struct Flushes {
    device: Arc<dyn BlockDevice>,
    /// The device has a volatile cache: what has completed may still be lost.
    cached: bool,
    /// The device is memory, and stores are made to it: these need a fence, whatever holds for
    /// writes.
    stored: AtomicBool,
    begun: AtomicU64,
    /// The highest number of those that have succeeded.
    done: AtomicU64,
}

steadfast_runtime::debug_fields!(Flushes: begun, done);

impl Flushes {
    pub(crate) fn new(device: Arc<dyn BlockDevice>) -> Self {
        let cached = device.info().volatile_cache;
        Flushes {
            device,
            cached,
            stored: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// Number of the first flush that is sure to cover every write that has completed by now.
    pub fn next(&self) -> u64 {
        self.begun.load(Ordering::SeqCst) + 1
    }

    /// The same for what the caller's thread has stored in the device's memory and written back,
    /// without a fence.
    pub fn after_store(&self) -> u64 {
        if !self.stored.load(Ordering::Relaxed) {
            self.stored.store(true, Ordering::SeqCst);
        }
        // The flush may run in another thread, and a fence waits for the stores of its own thread
        // only. So this thread's stores must be in the power-fail domain before the number is
        // taken: this instruction waits for them (Intel SDM, volume 2, CLWB).
        fence(Ordering::SeqCst);
        self.next()
    }

    fn none_needed(&self) -> bool {
        !self.cached && !self.stored.load(Ordering::SeqCst)
    }

    /// Whether what needs flush `number` is durable: that one or a later one has been made, or
    /// there is no volatile cache. Nothing needs flush 0.
    pub fn covers(&self, number: u64) -> bool {
        self.none_needed() || self.done.load(Ordering::SeqCst) >= number
    }

    /// Flushes the device, if it has a volatile cache. Waits. The caller makes a failure permanent.
    ///
    /// # Errors
    /// That of the device.
    pub fn flush(&self) -> steadfast_block::Result<()> {
        if self.none_needed() {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        if self.stored.load(Ordering::SeqCst)
            && let Some(memory) = self.device.direct_memory()
        {
            memory.fence()?;
        }
        if self.cached {
            self.device.flush()?;
        }
        self.done.fetch_max(number, Ordering::SeqCst);
        Ok(())
    }

    /// Marks the device as flushed without a flush: part of a planted bug.
    pub(crate) fn mark_flushed(&self) {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        self.done.fetch_max(number, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Disk;

    #[test]
    fn a_flush_covers_what_completed_before_it_began() {
        let flushes = Flushes::new(Disk::cached("disk", 1 << 20).device());
        assert!(flushes.covers(0));
        let early = flushes.next();
        assert!(!flushes.covers(early));
        flushes.flush().unwrap();
        assert!(flushes.covers(early));
        let late = flushes.next();
        assert!(!flushes.covers(late) && late > early);
        let stable = Flushes::new(Disk::new("disk", 1 << 20).device());
        assert!(stable.covers(stable.next()));
    }
}
