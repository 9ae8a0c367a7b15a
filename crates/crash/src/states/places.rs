//! Where a run is cut.

use std::fmt;
use std::mem::discriminant;
use std::str::FromStr;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{Moment, Recording};
use steadfast_runtime::Nanos;
use steadfast_vfs::options::choose;

use super::instants;

/// At which instants of a run the power goes: its crash points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoints {
    /// Nowhere.
    None,
    /// At so many instants drawn from the seed: every second one evenly over the time, the others
    /// evenly over what happened, so that the long quiet parts and the short busy ones both get
    /// their share; the last one at the very end, when all promises have been made. Fewer where
    /// two fall together.
    Sampled(u64),
    /// Around everything that makes something durable ([`Recording::boundaries`]), and at the end.
    Flushes,
    /// After every single thing that happened.
    All,
    /// So many trials: every second one evenly over the time without its pauses
    /// ([`ActiveTime`](super::ActiveTime)), the others evenly over what happened.
    Spread(u64),
    /// So many trials around what makes something durable (see [`Recording::boundaries`]), evenly
    /// over those places: just before a flush has ended, and just after a write that is durable by
    /// itself. There the most is in doubt, and what relies on an order that was not kept is seen.
    Boundaries(u64),
    /// So many trials while something was acknowledged and not promised (see
    /// [`Judge::unsynced`](crate::judge::Judge::unsynced)): every second one evenly over that time
    /// without its pauses, the others evenly over what happened in it. None, if that was never so.
    Unsynced(u64),
    /// So many trials of a program whose pauses count: every second one evenly over all time, each
    /// at an instant of its own; the others evenly over what happened, just before what came next;
    /// the last one at the very end.
    WithPauses(u64),
}

/// Places by how many there are.
type PointsFn = fn(u64) -> CrashPoints;

/// The words of [`CrashPoints`] with a number; one stands as its number alone.
const COUNTED: [(&str, PointsFn); 5] = [
    ("", CrashPoints::Sampled),
    ("spread", CrashPoints::Spread),
    ("boundaries", CrashPoints::Boundaries),
    ("unsynced", CrashPoints::Unsynced),
    ("pauses", CrashPoints::WithPauses),
];

impl CrashPoints {
    /// How many trials; `None`: as many as there are.
    pub fn count(self) -> Option<u64> {
        match self {
            CrashPoints::None => Some(0),
            CrashPoints::Sampled(count)
            | CrashPoints::Spread(count)
            | CrashPoints::Boundaries(count)
            | CrashPoints::Unsynced(count)
            | CrashPoints::WithPauses(count) => Some(count),
            CrashPoints::Flushes | CrashPoints::All => None,
        }
    }

    /// The same with so many trials, where they are counted.
    #[must_use]
    pub fn with_count(self, count: u64) -> CrashPoints {
        self.counted().map_or(self, |(_, places)| places(count))
    }

    /// The crash points within parts of the run, ascending: what is counted is drawn there. A part
    /// is its first and its last crash point.
    pub(super) fn ticks_within(
        self,
        recording: &Recording,
        parts: &[(u64, u64)],
        seed: u64,
    ) -> Vec<u64> {
        if let CrashPoints::Sampled(count) | CrashPoints::Spread(count) = self {
            return instants::within(recording, parts, count, seed);
        }
        let mut ticks = self.ticks(recording, &[], seed);
        ticks.retain(|tick| parts.iter().any(|(from, to)| (from..=to).contains(&tick)));
        ticks
    }

    fn counted(self) -> Option<(&'static str, PointsFn)> {
        COUNTED.into_iter().find(|(_, places)| discriminant(&places(0)) == discriminant(&self))
    }

    /// The moments of the crash points, ascending.
    pub(super) fn moments(
        self,
        recording: &Recording,
        unsynced: &[(u64, u64)],
        seed: u64,
    ) -> Vec<Moment> {
        if let CrashPoints::WithPauses(count) = self {
            return instants::with_pauses(recording, count, seed);
        }
        let ticks = self.ticks(recording, unsynced, seed).into_iter();
        ticks.map(|tick| Moment { tick, at: recording.time_of(tick) }).collect()
    }

    /// The crash points, ascending. Trials may meet at one. `unsynced`: see
    /// [`Judge::unsynced`](crate::judge::Judge::unsynced).
    pub(super) fn ticks(
        self,
        recording: &Recording,
        unsynced: &[(u64, u64)],
        seed: u64,
    ) -> Vec<u64> {
        let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
        let mut ticks = match self {
            CrashPoints::Spread(count) => return instants::spread(recording, count, seed),
            CrashPoints::Boundaries(count) => return instants::boundaries(recording, count, seed),
            CrashPoints::Unsynced(count) => {
                return instants::within(recording, unsynced, count, seed);
            }
            CrashPoints::WithPauses(count) => {
                let moments = instants::with_pauses(recording, count, seed);
                return moments.into_iter().map(|moment| moment.tick).collect();
            }
            CrashPoints::None => Vec::new(),
            CrashPoints::Sampled(count) => sampled(recording, count, &mut Rng::new(seed)),
            CrashPoints::Flushes => {
                let mut ticks = recording.boundaries();
                ticks.push(last);
                ticks
            }
            CrashPoints::All => (first..=last).collect(),
        };
        ticks.sort_unstable();
        ticks.dedup();
        ticks
    }
}

fn sampled(recording: &Recording, count: u64, rng: &mut Rng) -> Vec<u64> {
    let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
    let (from, to) = (recording.time_of(first).0, recording.time_of(last).0);
    let one = |number: u64| match number % 2 {
        0 => recording.crash_point_at(Nanos(from + rng.below((to - from).saturating_add(1)))),
        _ => first + rng.below(last - first + 1),
    };
    (0..count.saturating_sub(1)).map(one).chain((count > 0).then_some(last)).collect()
}

impl FromStr for CrashPoints {
    type Err = String;

    /// `none`, `flushes`, `all`, or how many instants are drawn; `spread:N`, `boundaries:N`,
    /// `unsynced:N` and `pauses:N`.
    fn from_str(text: &str) -> Result<Self, String> {
        let split = text.split_once(':').filter(|(word, _)| !word.is_empty());
        let (word, number) = split.unwrap_or(("", text));
        let known = COUNTED.iter().find(|(known, _)| *known == word);
        let counted = known.and_then(|(_, places)| Some(places(number.parse().ok()?)));
        if let Some(places) = counted {
            return Ok(places);
        }
        match text {
            "none" => Ok(CrashPoints::None),
            "flushes" => Ok(CrashPoints::Flushes),
            "all" => Ok(CrashPoints::All),
            _ => {
                let counted = COUNTED[1..].iter().map(|(word, _)| format!("{word}:N"));
                let words = ["none", "a number", "flushes", "all"].map(str::to_owned);
                Err(format!("'{text}' is unknown: {}", choose(words.into_iter().chain(counted))))
            }
        }
    }
}

impl fmt::Display for CrashPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.counted()) {
            (CrashPoints::Sampled(count), _) => write!(f, "{count}"),
            (_, Some((word, _))) => write!(f, "{word}:{}", self.count().unwrap_or(0)),
            (CrashPoints::Flushes, _) => f.write_str("flushes"),
            (CrashPoints::All, _) => f.write_str("all"),
            (_, None) => f.write_str("none"),
        }
    }
}
