//! How a replay went on: when how many of its calls had returned.

use std::time::Duration;

/// So many instants are kept at most.
const POINTS: usize = 64;

/// When calls had returned: of every so manieth call, in bounded memory whatever their number.
#[derive(Debug, Clone)]
pub struct ReplayProgress {
    every: u64,
    calls: u64,
    at: Vec<Duration>,
    /// When the last one had.
    last: Duration,
}

impl Default for ReplayProgress {
    fn default() -> ReplayProgress {
        ReplayProgress { every: 1, calls: 0, at: Vec::new(), last: Duration::ZERO }
    }
}

impl ReplayProgress {
    /// One more has returned, so long after the beginning.
    pub(super) fn add(&mut self, at: Duration) {
        self.calls += 1;
        self.last = self.last.max(at);
        if !self.calls.is_multiple_of(self.every) {
            return;
        }
        if self.at.len() == POINTS {
            // Of each pair the later one stays.
            let mut is_later = false;
            self.at.retain(|_| {
                is_later = !is_later;
                !is_later
            });
            self.every *= 2;
            if !self.calls.is_multiple_of(self.every) {
                return;
            }
        }
        self.at.push(at);
    }

    /// How many calls had returned, and how long after the beginning.
    pub fn points(&self) -> impl Iterator<Item = (u64, Duration)> {
        let even = self.at.iter().enumerate().map(|(i, at)| ((i as u64 + 1) * self.every, *at));
        let is_even = self.calls.is_multiple_of(self.every);
        even.chain((!is_even).then_some((self.calls, self.last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_are_even_and_few() {
        for calls in [0_u64, 1, 63, 64, 65, 128, 1000, 100_003] {
            let mut progress = ReplayProgress::default();
            (1..=calls).for_each(|n| progress.add(Duration::from_millis(n)));
            let mut points: Vec<_> = progress.points().collect();
            assert_eq!(points.last().map_or(0, |(n, _)| *n), calls);
            points.pop_if(|(n, _)| !n.is_multiple_of(progress.every));
            let every = points.first().map_or(1, |(n, _)| *n);
            assert!(points.len() <= POINTS && points.len() as u64 == calls / every, "{calls}");
            assert!(points.len() >= POINTS / 2 || every == 1, "{calls}: {}", points.len());
            for (n, (count, at)) in (1..).zip(points) {
                assert_eq!((count, at), (n * every, Duration::from_millis(n * every)), "{calls}");
            }
        }
    }
}
