//! What may be said of a sample: percentiles that its size allows, a rate with its upper bound,
//! and the range of what was run several times.
//!
//! The fields are private, so that nothing can print a percentile of too few values or a rate
//! without its bound.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steadfast_crash::figures::{Figures, StateFigures};
use steadfast_statistics::{Percentile, median, nearest_rank};

use super::binomial::upper_bound;

/// How sure a [`Rate`]'s bound is.
const CONFIDENCE: f64 = 0.95;

/// Median, 99th percentile and maximum of a sample. The 99th percentile is there from 400 values
/// on; of fewer, it would be the maximum by another name.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct Percentiles {
    n: u64,
    p50: f64,
    p99: Option<f64>,
    max: f64,
}

/// What of a sample stands for its bad end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tail {
    /// The 99th percentile: one value in a hundred is above it.
    P99(f64),
    /// The greatest of so many values: too few for a percentile.
    MaxOf(u64, f64),
}

impl Tail {
    /// The value.
    pub fn value(self) -> f64 {
        match self {
            Tail::P99(value) | Tail::MaxOf(_, value) => value,
        }
    }

    /// What it is: "p99", "max of 60".
    pub fn name(self) -> String {
        match self {
            Tail::P99(_) => "p99".into(),
            Tail::MaxOf(n, _) => format!("max of {n}"),
        }
    }
}

impl Percentiles {
    /// Of the given values (nearest rank); zeros if there are none.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let Some(&max) = values.last() else { return Percentiles::default() };
        let rank = |share| nearest_rank(&values, share).unwrap_or(max);
        let p99 = Some(rank(Percentile::P99.share()));
        Percentiles::known(values.len() as u64, rank(0.5), p99, max)
    }

    /// Of `n` values whose percentiles somebody else has found; of too few there is no 99th.
    pub fn known(n: u64, p50: f64, p99: Option<f64>, max: f64) -> Self {
        Percentiles { n, p50, p99: p99.filter(|_| Percentile::P99.is_in(n)), max }
    }

    /// How many values there were.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The median.
    pub fn p50(&self) -> f64 {
        self.p50
    }

    /// The 99th percentile, if there were 400 values or more.
    pub fn p99(&self) -> Option<f64> {
        self.p99
    }

    /// The greatest.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// The 99th percentile or, of too few values, the greatest.
    pub fn tail(&self) -> Tail {
        self.p99.map_or(Tail::MaxOf(self.n, self.max), Tail::P99)
    }
}

/// How many of the cuts had something happen to them, with the upper bound of its rate.
///
/// Cuts at the same place of a run (see [`place`](steadfast_crash::figures::StateFigures::place))
/// are no trials of their own: the bound goes by places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "Counts", into = "Counts")]
pub struct Rate {
    /// Cuts to which it happened.
    pub events: u64,
    /// All cuts.
    pub of: u64,
    /// Different places at which it happened.
    pub places_with_events: u64,
    /// Different places that were cut.
    pub places: u64,
    /// Which run was cut (see [`steadfast_crash::figures::Figures::run`]); 0: not known.
    pub run: u64,
}

/// How many of the cuts had something happen to them, with the upper bound of its rate.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Counts {
    /// Cuts to which it happened.
    events: u64,
    /// All cuts.
    of: u64,
    /// Distinct places at which it happened.
    places_with_events: u64,
    /// Distinct places that were cut.
    places: u64,
    /// Upper bound of the rate at 95 % confidence, in per cent, by places. It follows from the
    /// others, and is not read.
    #[serde(skip_deserializing)]
    #[cfg_attr(test, schemars(range(min = 0, max = 100)))]
    at_most_percent: f64,
    /// Which run was cut; 0: not known.
    #[serde(default)]
    run: u64,
}

impl From<Rate> for Counts {
    fn from(rate: Rate) -> Counts {
        let at_most_percent = rate.at_most_percent();
        let Rate { events, of, places_with_events, places, run } = rate;
        Counts { events, of, places_with_events, places, at_most_percent, run }
    }
}

/// More cuts than anybody makes: the time that a bound takes grows with their root.
const CUTS_MAX: u64 = 10_000_000;

impl TryFrom<Counts> for Rate {
    type Error = String;

    fn try_from(counts: Counts) -> Result<Rate, String> {
        let Counts { events, of, places_with_events, places, run, .. } = counts;
        if events > of || places_with_events > places || places > of || of > CUTS_MAX {
            return Err(format!(
                "{events} of {of} cuts, {places_with_events} of {places} places: no such run is \
                 possible"
            ));
        }
        Ok(Rate { events, of, places_with_events, places, run })
    }
}

impl Rate {
    /// `events` of `of`, each at a place of its own.
    pub fn new(events: u64, of: u64) -> Self {
        let events = events.min(of);
        Rate { events, of, places_with_events: events, places: of, run: 0 }
    }

    /// How many of the cuts have a property.
    pub(crate) fn of_cuts(figures: &Figures, property: impl Fn(&StateFigures) -> bool) -> Self {
        Rate {
            events: figures.count(&property),
            of: figures.cuts.len() as u64,
            places_with_events: figures.places(&property),
            places: figures.places(|_| true),
            run: figures.run,
        }
    }

    /// The rate's upper bound at 95 % confidence, in per cent: if it were higher, so few events
    /// would be seen less often than once in twenty. With n different places this is 3 / n for no
    /// event (the rule of three), else the one-sided bound of Clopper and Pearson (Biometrika 26,
    /// 1934). 100 without any cut.
    pub(crate) fn at_most_percent(&self) -> f64 {
        let (events, n) = (self.places_with_events, self.places);
        if events >= n {
            return 100.0;
        }
        if events == 0 {
            return (300.0 / n as f64).min(100.0);
        }
        upper_bound(events, n, 1.0 - CONFIDENCE) * 100.0
    }

    /// Several samples as one. Those of different runs have different places. Of one and the same
    /// run, as another seed may give, only so many places are certain as the largest sample has,
    /// and each may be another one at which it happened.
    pub fn of_all(samples: &[Rate]) -> Rate {
        let (mut all, mut runs) = (Rate::default(), BTreeMap::<u64, Rate>::new());
        for sample in samples {
            all.events += sample.events;
            all.of += sample.of;
            if sample.run == 0 {
                all.places_with_events += sample.places_with_events;
                all.places += sample.places;
                continue;
            }
            let run = runs.entry(sample.run).or_default();
            run.places = run.places.max(sample.places);
            run.places_with_events += sample.places_with_events;
        }
        for run in runs.values() {
            all.places += run.places;
            all.places_with_events += run.places_with_events.min(run.places);
        }
        match runs.first_key_value() {
            Some((run, _)) if runs.len() == 1 && samples.iter().all(|s| s.run == *run) => {
                Rate { run: *run, ..all }
            }
            _ => all,
        }
    }
}

/// Median and range of what was run several times: over the seeds, or runs in real time.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct Spread {
    median: f64,
    min: f64,
    max: f64,
    runs: u64,
}

impl Spread {
    /// Of the values of all runs; zeros if there are none. Of an even number the median is the
    /// mean of the two in the middle.
    pub fn of(values: &[f64]) -> Self {
        let Some(median) = median(values) else { return Spread::default() };
        let min = values.iter().copied().min_by(f64::total_cmp).unwrap_or(median);
        let max = values.iter().copied().max_by(f64::total_cmp).unwrap_or(median);
        Spread { median, min, max, runs: values.len() as u64 }
    }

    /// Of what has a spread itself (runs in real time, for each seed): the median of the medians,
    /// the least, the greatest.
    pub fn over(spreads: &[Spread]) -> Self {
        let medians: Vec<f64> = spreads.iter().map(|s| s.median).collect();
        let least = spreads.iter().map(|s| s.min).fold(f64::INFINITY, f64::min);
        let greatest = spreads.iter().map(|s| s.max).fold(f64::NEG_INFINITY, f64::max);
        match spreads {
            [] => Spread::default(),
            _ => Spread {
                min: least,
                max: greatest,
                runs: spreads.iter().map(|s| s.runs).sum(),
                ..Spread::of(&medians)
            },
        }
    }

    /// Each value as something else that is greater where it is greater.
    #[must_use]
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Spread {
        Spread { median: f(self.median), min: f(self.min), max: f(self.max), runs: self.runs }
    }

    /// The value in the middle.
    pub fn median(&self) -> f64 {
        self.median
    }

    /// The least.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The greatest.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// Of how many runs.
    pub fn runs(&self) -> u64 {
        self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank_and_need_enough_values() {
        let p = Percentiles::of((1..=1000).map(f64::from).collect());
        assert_eq!((p.p50(), p.p99(), p.max()), (500.0, Some(990.0), 1000.0));
        assert_eq!(p.tail(), Tail::P99(990.0));
        let p = Percentiles::of((1..=400).map(f64::from).collect());
        assert_eq!(p.p99(), Some(396.0));
        let few = Percentiles::of((1..=399).map(f64::from).collect());
        assert_eq!((few.p99(), few.tail()), (None, Tail::MaxOf(399, 399.0)));
        assert_eq!(few.tail().name(), "max of 399");
        assert_eq!(Percentiles::known(60, 1.0, Some(9.0), 9.0).p99(), None);
        assert_eq!(Percentiles::of(vec![]), Percentiles::default());
    }

    #[test]
    fn a_rate_has_its_bound() {
        let percent = |events, of| Rate::new(events, of).at_most_percent();
        assert_eq!(percent(0, 400), 0.75);
        assert_eq!(percent(0, 60), 5.0);
        assert_eq!((percent(0, 0), percent(5, 5), percent(0, 2)), (100.0, 100.0, 100.0));
        // By sums of exact binomial coefficients: 7.663999 and 42.917041.
        assert!((percent(1, 60) - 7.664).abs() < 0.001, "{}", percent(1, 60));
        assert!((percent(19, 60) - 42.917).abs() < 0.001, "{}", percent(19, 60));
        // Nothing underflows in a long run.
        assert!((10.0..11.0).contains(&percent(10_000, 100_000)), "{}", percent(10_000, 100_000));
        let both = Rate::of_all(&[Rate::new(1, 60), Rate::new(0, 40)]);
        assert_eq!(both, Rate::new(1, 100));
    }

    /// A document may say anything; what is computed from it takes a moment.
    #[test]
    fn counts_that_no_run_has_are_refused() {
        let read = |events: u64, of: u64, hit: u64, places: u64| {
            let text = format!(
                r#"{{"events":{events},"of":{of},"places_with_events":{hit},"places":{places}}}"#
            );
            serde_json::from_str::<Rate>(&text).map_err(|e| e.to_string())
        };
        for events in [1_000_000, 9_990_000] {
            let rate = read(events, 10_000_000, events, 10_000_000).unwrap();
            let above = rate.at_most_percent() - events as f64 / 100_000.0;
            assert!((0.0..0.1).contains(&above), "{above}");
        }
        for (events, of, hit, places) in
            [(1 << 50, 1 << 53, 1 << 50, 1 << 53), (5, 4, 1, 4), (4, 5, 6, 5), (1, 5, 1, 6)]
        {
            let refused = read(events, of, hit, places).unwrap_err();
            assert!(refused.contains("no such run"), "{refused}");
        }
    }

    /// Two seeds that made one run of the devices: the places are not counted twice.
    #[test]
    fn cuts_of_one_run_are_no_further_places() {
        let of_run = |run, events, of| Rate { run, ..Rate::new(events, of) };
        let both = Rate::of_all(&[of_run(7, 0, 50), of_run(7, 0, 48)]);
        assert_eq!((both.of, both.places, both.at_most_percent()), (98, 50, 6.0));
        let both = Rate::of_all(&[of_run(7, 2, 50), of_run(7, 1, 48)]);
        assert_eq!((both.events, both.places_with_events, both.places, both.run), (3, 3, 50, 7));
        let three = Rate::of_all(&[of_run(7, 0, 50), of_run(8, 0, 48), of_run(7, 0, 20)]);
        assert_eq!((three.of, three.places, three.run), (118, 98, 0));
    }

    #[test]
    fn cuts_at_one_place_are_one_trial() {
        let mut figures = Figures::default();
        for number in 0..100 {
            // Half of them in one pause, all of which broke something.
            let (place, broken_promises) = if number < 50 { (0, 1) } else { (number, 0) };
            figures.add(StateFigures { number, place, broken_promises, ..StateFigures::default() });
        }
        let damage = Rate::of_cuts(&figures, |c| !c.damage.is_empty());
        assert_eq!((damage.events, damage.of, damage.places), (0, 100, 51));
        assert_eq!(damage.at_most_percent(), 300.0 / 51.0);
        let broken = Rate::of_cuts(&figures, |c| c.broken_promises > 0);
        assert_eq!((broken.events, broken.places_with_events, broken.places), (50, 1, 51));
        assert_eq!(broken.at_most_percent(), Rate::new(1, 51).at_most_percent());
        assert_eq!(Rate::of_all(&[broken, damage]).places, 102);
    }

    #[test]
    fn a_spread_has_median_and_range() {
        let s = Spread::of(&[3.0, 1.0, 2.0, 10.0]);
        assert_eq!((s.median(), s.min(), s.max(), s.runs()), (2.5, 1.0, 10.0, 4));
        let both = Spread::over(&[s, Spread::of(&[4.5])]);
        assert_eq!((both.median(), both.min(), both.max(), both.runs()), (3.5, 1.0, 10.0, 5));
        assert_eq!(Spread::over(&[]), Spread::default());
    }
}
