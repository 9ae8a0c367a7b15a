//! The time that goes into inodes.

use std::time::SystemTime;

use steadfast_runtime::{date, is_simulated, now};
use steadfast_vfs::Timestamp;

/// Inode times move in steps of this, in nanoseconds: the kernel's tick at 250 Hz, so that two
/// writes within one tick change no time and need no transaction (`current_time`).
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

    /// The time now, as an inode gets it: at the beginning of the tick.
    pub fn tick(&self) -> Timestamp {
        let ns = self.base_ns + date().0;
        let ns = ns - ns % TICK_NS;
        Timestamp { secs: (ns / 1_000_000_000) as i64, nanos: (ns % 1_000_000_000) as u32 }
    }

    /// Seconds since 1970.
    pub fn seconds(&self) -> u64 {
        (self.base_ns + date().0) / 1_000_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use steadfast_runtime::{Sim, sleep};

    #[test]
    fn simulated_time_begins_at_the_epoch_and_ticks() {
        let times = Sim::new(0).run(|| {
            let clock = Clock::new(1_000_000_000);
            let a = clock.tick();
            sleep(Duration::from_millis(3));
            let b = clock.tick();
            sleep(Duration::from_millis(3));
            (a, b, clock.tick())
        });
        let (a, b, c) = times.unwrap();
        assert_eq!((a, b), (Timestamp { secs: 1_000_000_000, nanos: 0 }, a));
        assert_eq!(c.nanos, 4_000_000);
    }
}
