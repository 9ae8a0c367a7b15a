//! Where a run is cut.

use std::fmt;
use std::str::FromStr;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::Recording;
use steadfast_runtime::Nanos;

/// Where a run is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// Nowhere.
    None,
    /// At so many instants drawn from the seed: every second one evenly over the time, the others
    /// evenly over what happened, so that the long quiet parts and the short busy ones both get
    /// their share. Fewer where two fall together.
    Sampled(u64),
    /// Around everything that makes something durable ([`Recording::boundaries`]), and at the end.
    Flushes,
    /// After every single thing that happened.
    All,
}

impl Places {
    /// The cuts, ascending, no two the same.
    pub(super) fn ticks(self, recording: &Recording, seed: u64) -> Vec<u64> {
        let (first, last) = (recording.first_cut(), recording.last_cut());
        let mut ticks = match self {
            Places::None => Vec::new(),
            Places::Sampled(count) => sampled(recording, count, &mut Rng::new(seed)),
            Places::Flushes => {
                let mut ticks = recording.boundaries();
                ticks.push(last);
                ticks
            }
            Places::All => (first..=last).collect(),
        };
        ticks.sort_unstable();
        ticks.dedup();
        ticks
    }
}

fn sampled(recording: &Recording, count: u64, rng: &mut Rng) -> Vec<u64> {
    let (first, last) = (recording.first_cut(), recording.last_cut());
    let (from, to) = (recording.time_of(first).0, recording.time_of(last).0);
    let one = |number: u64| match number % 2 {
        0 => recording.cut_at(Nanos(from + rng.below((to - from).saturating_add(1)))),
        _ => first + rng.below(last - first + 1),
    };
    (0..count).map(one).collect()
}

impl FromStr for Places {
    type Err = String;

    /// `none`, `flushes`, `all`, or how many instants are drawn.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Places::None),
            "flushes" => Ok(Places::Flushes),
            "all" => Ok(Places::All),
            number => number.parse().map(Places::Sampled).map_err(|_| {
                format!("'{text}' is no choice of cuts: none, a number, flushes or all")
            }),
        }
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Places::None => f.write_str("none"),
            Places::Sampled(count) => write!(f, "{count}"),
            Places::Flushes => f.write_str("flushes"),
            Places::All => f.write_str("all"),
        }
    }
}
