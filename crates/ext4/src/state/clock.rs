//! The time that goes into inodes.
//!
//! It moves in ticks, so that a second write within a tick changes no time and needs no
//! transaction. But where somebody has looked at an inode's times since they were set, the next
//! change gets the exact time, so that whoever looks again sees that there was one. No time that
//! is given out later is before it: a file that was changed last never looks older than another.
//! Source: the kernel's Documentation/filesystems/multigrain-ts.rst.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use steadfast_runtime::{date, is_simulated, now};
use steadfast_vfs::Timestamp;

/// The tick, in nanoseconds: the kernel's at 250 Hz.
pub const TICK_NS: u64 = 4_000_000;

/// The wall clock; in a simulation, a date that begins where the configuration says.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Nanoseconds since 1970 at the runtime's time zero.
    base_ns: u64,
}

impl Clock {
    /// A clock. `simulated_epoch` is the date, in seconds since 1970, at which a simulation
    /// begins; in real time the machine's clock is asked once, here.
    pub fn new(simulated_epoch: u64) -> Self {
        if is_simulated() {
            return Clock { base_ns: simulated_epoch.saturating_mul(1_000_000_000) };
        }
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let wall_ns = since_1970.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        Clock { base_ns: wall_ns.saturating_sub(now().0) }
    }

    /// Nanoseconds since 1970 at the runtime's time zero.
    pub fn unix_ns_at_zero(&self) -> u64 {
        self.base_ns
    }

    fn unix_ns(&self) -> u64 {
        self.base_ns + date().0
    }

    /// Seconds since 1970.
    pub fn seconds(&self) -> u64 {
        self.unix_ns() / 1_000_000_000
    }
}

/// The times that a file system's inodes get.
pub(crate) struct Stamps {
    clock: Clock,
    /// The latest exact time that was given out, in nanoseconds since 1970.
    exact: AtomicU64,
}

impl Stamps {
    pub fn new(clock: Clock) -> Stamps {
        Stamps { clock, exact: AtomicU64::new(0) }
    }

    /// The time now: the beginning of the tick, or the latest exact time within it.
    pub fn tick(&self) -> Timestamp {
        let now = self.clock.unix_ns();
        timestamp((now - now % TICK_NS).max(self.exact.load(Ordering::Relaxed)))
    }

    /// The time for a change of an inode that was changed last at `last`; `seen`: somebody knows
    /// that time.
    pub fn for_change(&self, last: Timestamp, seen: bool) -> Timestamp {
        let tick = self.tick();
        if !seen || tick > last {
            return tick;
        }
        let now = self.clock.unix_ns();
        timestamp(self.exact.fetch_max(now, Ordering::Relaxed).max(now))
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
}
