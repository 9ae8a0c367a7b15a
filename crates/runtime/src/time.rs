//! The clock: [`Nanos`], [`now`], [`sleep`], and [`cpu`] for work that takes processor time.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use crate::sim;

/// A point in time, in nanoseconds since the simulation began or, in real time, since the
/// process first asked for the time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The first instant.
    pub const ZERO: Nanos = Nanos(0);

    /// Seconds, as a float: for rates and for people.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to this instant; zero if `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Nanos {
    type Output = Nanos;
    fn add(self, rhs: Duration) -> Nanos {
        let ns = u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX);
        Nanos(self.0.saturating_add(ns))
    }
}

impl AddAssign<Duration> for Nanos {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub for Nanos {
    type Output = Duration;
    fn sub(self, rhs: Nanos) -> Duration {
        self.since(rhs)
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// The present instant of the world the caller lives in.
pub fn now() -> Nanos {
    sim::with_current(|core| core.now())
        .unwrap_or_else(|| Nanos(u64::try_from(epoch().elapsed().as_nanos()).unwrap_or(u64::MAX)))
}

/// [`now`], for times that are stored, for example on a disk. In a simulation they may advance in
/// larger steps ([`Sim::date_step`](crate::Sim::date_step)).
pub fn date() -> Nanos {
    sim::with_current(|core| core.date()).unwrap_or_else(now)
}

/// Nanoseconds since 1970: the machine's clock, which may be set, and which goes on while the
/// machine sleeps; in a simulation [`date`], which begins at `simulated_epoch_ns`.
pub fn unix_ns(simulated_epoch_ns: u64) -> u64 {
    if let Some(date) = sim::with_current(|core| core.date()) {
        return simulated_epoch_ns.saturating_add(date.0);
    }
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

/// Waits for `duration` of the caller's world's time.
pub fn sleep(duration: Duration) {
    if sim::is_simulated() {
        sleep_until(now() + duration);
    } else if !duration.is_zero() {
        std::thread::sleep(duration);
    }
}

/// Waits until `deadline`; returns at once if it has passed.
pub fn sleep_until(deadline: Nanos) {
    if sim::is_simulated() {
        sim::sleep_until(deadline);
    } else {
        sleep(deadline.since(now()));
    }
}

/// Accounts for processor work of the given length, done on behalf of the caller.
///
/// In real time the work itself has taken the time, so this does nothing. In the simulation code
/// takes no time, so work with a relevant cost (a system call, a copy of a page, a checksum)
/// declares it here. The task then occupies one of the simulated processors for that long, and
/// waits for one if all are busy.
pub fn cpu(work: Duration) {
    if sim::is_simulated() && !work.is_zero() {
        sim::cpu(work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_moves_forward() {
        let a = now();
        sleep(Duration::from_millis(2));
        assert!(now() - a >= Duration::from_millis(2));
    }

    #[test]
    fn nanos_print_as_seconds() {
        assert_eq!(format!("{:?}", Nanos(1_500_000_000)), "1.500000000s");
    }
}
