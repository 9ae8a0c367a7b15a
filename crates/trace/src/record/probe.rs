//! What a trip through the mount costs.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::format::Trip;

/// So many calls are timed, after some that only warm up.
const CALLS: usize = 300;
const WARM_UP: usize = 30;
/// Before each a pause of up to so many us.
const PAUSE_US: u64 = 200;

/// How long the last call took below, in ns.
#[derive(Default)]
pub(super) struct LowerTime(AtomicU64, Mutex<()>);

impl LowerTime {
    /// Times what is done below the mount.
    pub fn time<T>(&self, call: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let answer = call();
        self.0.store(ns(began.elapsed()), Ordering::Release);
        answer
    }

    /// Makes a call through the mount again and again: what of its time was not spent below.
    pub fn probe<E>(&self, ask: impl Fn() -> Result<(), E>) -> Result<Trip, E> {
        let _one_at_a_time = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        let mut trips = Vec::with_capacity(CALLS);
        for n in 0..WARM_UP + CALLS {
            // As programs do: something in between, and who answers has gone to sleep.
            let pause = Duration::from_micros((n as u64 * 37) % PAUSE_US);
            let until = Instant::now() + pause;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            let began = Instant::now();
            ask()?;
            let took = ns(began.elapsed());
            if n >= WARM_UP {
                trips.push(took.saturating_sub(self.0.load(Ordering::Acquire)));
            }
        }
        trips.sort_unstable();
        // OK to index: there are `CALLS`.
        let (least_ns, most_ns) = (trips[0], trips[CALLS - 1]);
        Ok(Trip { median_ns: trips[CALLS / 2], least_ns, most_ns, calls: CALLS as u64 })
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
