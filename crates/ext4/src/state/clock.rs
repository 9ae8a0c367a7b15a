//! The time that goes into inodes.
//!
//! It moves in ticks, so that a second write within a tick changes no time and needs no
//! transaction. But where somebody has looked at an inode's times since they were set, the next
//! change gets the exact time, so that whoever looks again sees that there was one. No time that
//! is given out later is before it: a file that was changed last never looks older than another.
//! Source: the kernel's Documentation/filesystems/multigrain-ts.rst.

use std::sync::atomic::{AtomicU64, Ordering};

use steadfast_runtime::{date, is_simulated, unix_ns};
use steadfast_vfs::Timestamp;

/// The tick, in nanoseconds: the kernel's at 250 Hz.
pub const TICK_NS: u64 = 4_000_000;

/// The wall clock; in a simulation, a date that begins where the configuration says.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    simulated_epoch_ns: u64,
}

impl Clock {
    /// A clock. `simulated_epoch` is the date, in seconds since 1970, at which a simulation
    /// begins.
    pub fn new(simulated_epoch: u64) -> Self {
        Clock { simulated_epoch_ns: simulated_epoch.saturating_mul(1_000_000_000) }
    }

    /// The date at which a simulation begins, in nanoseconds since 1970.
    pub fn simulated_epoch_ns(&self) -> u64 {
        self.simulated_epoch_ns
    }

    /// Seconds since 1970.
    pub fn seconds(&self) -> u64 {
        unix_ns(self.simulated_epoch_ns) / 1_000_000_000
    }
}

/// The times that a file system's inodes get.
pub(crate) struct Stamps {
    clock: Clock,
    /// The latest exact time that was given out, in the runtime's nanoseconds: of the wall clock it
    /// would be ahead of all that follow once that is set back.
    exact: AtomicU64,
    /// Nanoseconds since 1970 at the runtime's time zero, and when that was looked at.
    zero: AtomicU64,
    looked: AtomicU64,
}

/// How often the wall clock is looked at. Between, the runtime's moves it, which no one sets.
const LOOK_EVERY_NS: u64 = 100_000_000;
/// By so much it may be wrong.
const WRONG_NS: u64 = 1_000_000;
/// A look that took longer says nothing.
const LOOK_NS: u64 = 50_000;

impl Stamps {
    pub fn new(clock: Clock) -> Stamps {
        let zero = unix_ns(clock.simulated_epoch_ns).wrapping_sub(date().0);
        Stamps { clock, exact: 0.into(), zero: zero.into(), looked: date().0.into() }
    }

    /// Nanoseconds since 1970 at the runtime's time zero. That changes: the machine's clock is set,
    /// and goes on while the machine sleeps.
    fn zero(&self, now: u64) -> u64 {
        let zero = self.zero.load(Ordering::Relaxed);
        if is_simulated() || now.saturating_sub(self.looked.load(Ordering::Relaxed)) < LOOK_EVERY_NS
        {
            return zero;
        }
        let before = date().0;
        let wall = unix_ns(self.clock.simulated_epoch_ns);
        if date().0 - before > LOOK_NS {
            return zero;
        }
        self.looked.store(before, Ordering::Relaxed);
        let found = wall.wrapping_sub(before);
        if found.abs_diff(zero) <= WRONG_NS {
            return zero;
        }
        self.zero.store(found, Ordering::Relaxed);
        found
    }

    /// The time now: the beginning of the tick, or the latest exact time within it.
    pub fn tick(&self) -> Timestamp {
        let now = date().0;
        let zero = self.zero(now);
        let wall = zero.wrapping_add(now);
        let exact = zero.wrapping_add(self.exact.load(Ordering::Relaxed));
        timestamp((wall - wall % TICK_NS).max(exact))
    }

    /// The time for a change of an inode that was changed last at `last`; `seen`: somebody knows
    /// that time.
    pub fn for_change(&self, last: Timestamp, seen: bool) -> Timestamp {
        let tick = self.tick();
        if !seen || tick > last {
            return tick;
        }
        let now = date().0;
        let exact = self.exact.fetch_max(now, Ordering::Relaxed).max(now);
        timestamp(self.zero(now).wrapping_add(exact))
    }
}

fn timestamp(ns: u64) -> Timestamp {
    Timestamp { secs: (ns / 1_000_000_000) as i64, nanos: (ns % 1_000_000_000) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use steadfast_runtime::{Sim, sleep};

    #[test]
    fn simulated_time_begins_at_the_epoch_and_ticks() {
        let times = Sim::new(0).run(|| {
            let stamps = Stamps::new(Clock::new(1_000_000_000));
            let a = stamps.tick();
            sleep(Duration::from_millis(3));
            let b = stamps.tick();
            sleep(Duration::from_millis(3));
            (a, b, stamps.tick())
        });
        let (a, b, c) = times.unwrap();
        assert_eq!((a, b), (Timestamp { secs: 1_000_000_000, nanos: 0 }, a));
        assert_eq!(c.nanos, 4_000_000);
    }

    #[test]
    fn a_change_after_a_look_gets_the_exact_time_and_no_later_one_an_earlier() {
        let nanos = Sim::new(0).run(|| {
            let stamps = Stamps::new(Clock::new(1_000_000_000));
            let first = stamps.for_change(Timestamp::default(), true);
            sleep(Duration::from_millis(1));
            let unseen = stamps.for_change(first, false);
            let seen = stamps.for_change(first, true);
            sleep(Duration::from_millis(1));
            let others = stamps.for_change(first, false);
            sleep(Duration::from_millis(3));
            let next = stamps.for_change(seen, true);
            [first, unseen, seen, others, next].map(|t| t.nanos)
        });
        assert_eq!(nanos.unwrap(), [0, 0, 1_000_000, 1_000_000, 4_000_000]);
    }

    /// The machine's clock was set, or the machine slept: the next look sees it.
    #[test]
    fn times_follow_the_machines_clock() {
        let stamps = Stamps::new(Clock::new(0));
        for hours in [1_i64, -1] {
            let off = (hours * 3_600_000_000_000) as u64;
            stamps.zero.fetch_add(off, Ordering::Relaxed);
            let wrong = stamps.for_change(stamps.tick(), true);
            // A look may fail on a busy machine.
            let right = (0..1000).find_map(|_| {
                stamps.looked.store(0, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(u64::from(date().0 < LOOK_EVERY_NS)));
                let time = stamps.tick();
                let wall = (unix_ns(0) / 1_000_000_000) as i64;
                ((time.secs - wall).abs() < 60).then_some(time)
            });
            let right = right.expect("the time of the clock");
            assert!((wrong.secs - right.secs - hours * 3600).abs() < 60);
            // Set back, what was seen gets another time still.
            assert_ne!(stamps.for_change(wrong, true), wrong);
        }
    }
}
