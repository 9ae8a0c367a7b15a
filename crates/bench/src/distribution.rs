//! How long many calls took, counted in steps of time that grow with it: what is drawn and added
//! up. Percentiles come from finer counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Steps to ten times the time: a step is 12 % wide.
const STEPS: f64 = 20.0;
/// A nanosecond; whatever took less counts here.
const FIRST: i32 = -60;

/// Counts of calls by how long they took.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LatencyHistogram {
    /// A step and how many calls are in it: step k is from 10^(k/20) microseconds on, up to where
    /// step k + 1 begins.
    steps: Vec<(i32, u64)>,
}

impl LatencyHistogram {
    /// Of the times of calls, in microseconds.
    pub fn of_us(times: impl Iterator<Item = f64>) -> LatencyHistogram {
        LatencyHistogram::counted(times.map(|us| (us, 1)))
    }

    /// Of times in microseconds that each happened so often.
    pub fn counted(times: impl Iterator<Item = (f64, u64)>) -> LatencyHistogram {
        // OK to cast: the logarithm of a number is small; of none it is the first step.
        let step = |us: f64| (us.log10() * STEPS + 1e-9).floor().max(f64::from(FIRST)) as i32;
        LatencyHistogram::of_steps(times.map(|(us, count)| (step(us), count)))
    }

    fn of_steps(counts: impl Iterator<Item = (i32, u64)>) -> LatencyHistogram {
        let mut steps: BTreeMap<i32, u64> = BTreeMap::new();
        counts.for_each(|(step, count)| *steps.entry(step).or_default() += count);
        LatencyHistogram { steps: steps.into_iter().collect() }
    }

    /// Several as one; `None` of none.
    pub fn sum<'a>(all: impl Iterator<Item = &'a LatencyHistogram>) -> Option<LatencyHistogram> {
        let sum = LatencyHistogram::of_steps(all.flat_map(|d| &d.steps).copied());
        (!sum.steps.is_empty()).then_some(sum)
    }

    /// How many calls.
    pub fn count(&self) -> u64 {
        self.steps.iter().map(|(_, count)| count).sum()
    }

    /// The corners of the line that gives, for each time in microseconds, the share of all calls
    /// that took as long or longer: where each step that has calls begins, and, where calls are
    /// missing behind it, where it ends.
    pub fn as_long(&self) -> Vec<(f64, f64)> {
        let (all, mut left) = (self.count() as f64, self.count());
        let begin = |step: i32| 10f64.powf(f64::from(step) / STEPS);
        let mut corners = Vec::new();
        for (i, (step, count)) in self.steps.iter().enumerate() {
            corners.push((begin(*step), left as f64 / all));
            left = left.saturating_sub(*count);
            if self.steps.get(i + 1).is_some_and(|(next, _)| *next > step + 1) {
                corners.push((begin(step + 1), left as f64 / all));
            }
        }
        corners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_a_twentieth_of_a_decade() {
        let d = LatencyHistogram::of_us([1.0, 1.1, 1.2, 1000.0, 0.0, f64::NAN].into_iter());
        assert_eq!(d.steps, [(-60, 2), (0, 2), (1, 1), (60, 1)]);
        let long = d.as_long();
        let shares: Vec<f64> = long.iter().map(|(_, share)| share * 6.0).collect();
        assert_eq!(shares, [6.0, 4.0, 4.0, 2.0, 1.0, 1.0]);
        // Between them nothing falls where no call was.
        assert_eq!(long[2].0, 1.0);
        assert!((long[4].0 - 1.2589).abs() < 1e-4 && (long[5].0 - 1000.0).abs() < 1e-9, "{long:?}");
        let both = LatencyHistogram::sum([&d, &d].into_iter()).unwrap();
        assert_eq!((both.count(), both.as_long()), (12, long));
        assert_eq!(LatencyHistogram::sum(std::iter::empty()), None);
        let json = serde_json::to_string(&d).unwrap();
        assert_eq!(json, "[[-60,2],[0,2],[1,1],[60,1]]");
        assert_eq!(serde_json::from_str::<LatencyHistogram>(&json).unwrap(), d);
    }
}
