//! When the next request may be made: rates, and time to think.

use std::time::Duration;

use steadfast_block::rng::Rng;

use super::options::{JobOptions, RatePacing, RequestKind};
use crate::places::uniform;

const SECOND: u64 = 1_000_000_000;

/// The pace of a job. Times are nanoseconds of one clock.
pub(super) struct Pace {
    rates: [Option<KindRate>; 2],
    thinktime: Duration,
    think_blocks: u64,
    since_thought: u64,
    /// Nothing is made before.
    not_before: u64,
}

/// The rate of a kind of requests.
struct KindRate {
    /// Bytes a second.
    bytes: u64,
    /// Bytes of a request, for those that come at random.
    least: u64,
    pacing: RatePacing,
    rng: Rng,
    began: u64,
    issued: u64,
    /// When the next one is due, if they come at random.
    due: u64,
}

impl Pace {
    pub(super) fn new(o: &JobOptions, seed: u64, now: u64) -> Pace {
        let rate = |kind: RequestKind| {
            let at = kind as usize;
            let least = o.sizes[at].least;
            let of_requests = o.rate_iops[at].map(|n| n.saturating_mul(least));
            let bytes = o.rate[at].or(of_requests)?;
            let rng = Rng::new(seed ^ 0x7061_6365 ^ at as u64);
            let pacing = o.rate_process;
            Some(KindRate { bytes, least, pacing, rng, began: now, issued: 0, due: now })
        };
        Pace {
            rates: RequestKind::ALL.map(rate),
            thinktime: o.thinktime,
            think_blocks: o.thinktime_blocks,
            since_thought: 0,
            not_before: now,
        }
    }

    /// When the next request of a kind is due; 0: at once.
    fn due(&self, kind: RequestKind) -> u64 {
        self.rates[kind as usize].as_ref().map_or(0, KindRate::due)
    }

    /// Of a mix the kind that is due, or due sooner, where the one that was drawn has a rate and is
    /// not due.
    pub(super) fn kind(&self, drawn: RequestKind, now: u64) -> RequestKind {
        let other = match drawn {
            RequestKind::Read => RequestKind::Write,
            RequestKind::Write => RequestKind::Read,
        };
        let (due, due_other) = (self.due(drawn), self.due(other));
        if due > now && due_other < due { other } else { drawn }
    }

    /// Notes that a request of so many bytes is made, and when.
    pub(super) fn take(&mut self, kind: RequestKind, bytes: u64, now: u64) -> u64 {
        let at = match &mut self.rates[kind as usize] {
            None => 0,
            Some(rate) => {
                let at = rate.due();
                rate.take(bytes);
                at
            }
        };
        let at = at.max(self.not_before).max(now);
        self.since_thought += 1;
        at
    }

    /// A request has returned: from when on the next one may be made.
    pub(super) fn returned(&mut self, now: u64) {
        if !self.thinktime.is_zero() && self.since_thought >= self.think_blocks {
            let think = u64::try_from(self.thinktime.as_nanos()).unwrap_or(u64::MAX);
            self.not_before = now.saturating_add(think);
            self.since_thought = 0;
        }
    }
}

impl KindRate {
    fn due(&self) -> u64 {
        match self.pacing {
            RatePacing::Poisson => self.due,
            // OK to cast: a job of 2^64 ns ends before.
            RatePacing::Linear => {
                let past = u128::from(self.issued) * u128::from(SECOND) / u128::from(self.bytes);
                self.began.saturating_add(past.min(u128::from(u64::MAX)) as u64)
            }
        }
    }

    fn take(&mut self, bytes: u64) {
        self.issued = self.issued.saturating_add(bytes);
        let mean = self.least as f64 / self.bytes as f64 * SECOND as f64;
        // Exponential: of 1 - u, which is never 0.
        let step = -(1.0 - uniform(&mut self.rng)).ln() * mean;
        self.due = self.due.saturating_add(step as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(rate_process: RatePacing) -> JobOptions {
        let mut options = JobOptions::default();
        options.rate_iops = [Some(1000), Some(500)];
        options.rate_process = rate_process;
        options
    }

    #[test]
    fn a_rate_is_kept() {
        let mut pace = Pace::new(&options(RatePacing::Linear), 1, 5);
        let at: Vec<u64> = (0..3).map(|_| pace.take(RequestKind::Read, 4096, 5)).collect();
        assert_eq!(at, [5, 1_000_005, 2_000_005]);
        assert_eq!(pace.take(RequestKind::Write, 4096, 7), 7);
        assert_eq!(pace.take(RequestKind::Write, 4096, 7), 2_000_005);
        // The one that is due sooner.
        assert_eq!(pace.kind(RequestKind::Write, 5), RequestKind::Read);
        let mut pace = Pace::new(&options(RatePacing::Poisson), 1, 0);
        let last = (0..100_000).map(|_| pace.take(RequestKind::Read, 4096, 0)).last().unwrap();
        assert!((98..102).contains(&(last / SECOND)), "{last}");
    }

    #[test]
    fn it_thinks_after_so_many() {
        let thinktime = Duration::from_micros(10);
        let mut o = JobOptions::default();
        (o.thinktime, o.thinktime_blocks) = (thinktime, 2);
        let mut pace = Pace::new(&o, 1, 0);
        let mut now = 0;
        let mut at = Vec::new();
        for _ in 0..5 {
            now = pace.take(RequestKind::Read, 4096, now) + 100;
            at.push(now - 100);
            pace.returned(now);
        }
        assert_eq!(at, [0, 100, 10_200, 10_300, 20_400]);
    }
}
