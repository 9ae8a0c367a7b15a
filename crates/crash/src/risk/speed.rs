//! How fast the workload was served.

use std::time::Duration;

/// The calls that a run made and how long they took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Speed {
    /// Calls that were made.
    pub operations: u64,
    /// The time that the tasks spent in them, added up over the tasks.
    pub in_calls: Duration,
    /// How long each fsync, fdatasync and fsync of a directory took, in the order of the returns.
    pub syncs: Vec<Duration>,
    /// From the first call to the last return, pauses included.
    pub elapsed: Duration,
}

impl Speed {
    /// Calls a second of time spent in calls; 0 if they took none.
    pub fn operations_per_second(&self) -> f64 {
        let seconds = self.in_calls.as_secs_f64();
        if seconds > 0.0 { self.operations as f64 / seconds } else { 0.0 }
    }

    /// Adds what another task did at the same time.
    pub fn add(&mut self, other: Speed) {
        self.operations += other.operations;
        self.in_calls += other.in_calls;
        self.syncs.extend(other.syncs);
        self.elapsed = self.elapsed.max(other.elapsed);
    }

    /// Counts one call.
    pub fn count(&mut self, took: Duration, is_sync: bool) {
        self.operations += 1;
        self.in_calls += took;
        if is_sync {
            self.syncs.push(took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_add_up() {
        let mut one = Speed { elapsed: Duration::from_secs(3), ..Speed::default() };
        one.count(Duration::from_millis(1), false);
        one.count(Duration::from_millis(9), true);
        let mut two = Speed { elapsed: Duration::from_secs(2), ..Speed::default() };
        two.count(Duration::from_millis(10), true);
        one.add(two);
        assert_eq!(one.operations_per_second(), 150.0);
        assert_eq!((one.syncs.len(), one.elapsed), (2, Duration::from_secs(3)));
        assert_eq!(Speed::default().operations_per_second(), 0.0);
    }
}
