//! Which leg a read goes to, and in which order writes go to the legs.

use std::time::Duration;

use crate::ondisk::label::LEGS_MAX;

/// Which leg serves a read, of those that hold the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadPolicy {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Each leg answers for a contiguous part of the volume: few seeks.
    Geometric,
    /// The first in the order of legs.
    First,
    /// This leg, by its place; the first of the others where it cannot.
    Preferred(usize),
    /// The one that will probably answer first: measured latency times queue depth.
    Adaptive,
}

/// How a write goes to the legs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WritePolicy {
    /// To all at once.
    #[default]
    Parallel,
    /// To one after the other.
    Serial,
    /// To all at once; answered when the durable legs have it. The others follow.
    WriteBehind,
}

/// Most acknowledged writes that a leg may be behind by.
pub(super) const BEHIND_MAX: usize = 64;
/// Every so many reads the adaptive policy asks another leg, to see whether it is faster by now.
const EXPLORE_EVERY: u64 = 64;
/// Weight of the newest measurement in the mean latency, as a divisor.
const LATENCY_WEIGHT: u64 = 8;

/// Read policy, write policy and pass of a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policies {
    /// For reads.
    pub read: ReadPolicy,
    /// For writes.
    pub write: WritePolicy,
    /// When it is resynced, of several mirrors: 1 first, 9 last; 0 is not resynced by itself.
    pub pass: Pass,
}

/// Refuses policies that name a leg that no mirror has.
pub(crate) fn check_policies(policies: Policies) -> crate::Result<()> {
    match policies.read {
        ReadPolicy::Preferred(slot) if slot >= LEGS_MAX => {
            refuse!("leg {slot} cannot be preferred: legs have the places 0 to {}", LEGS_MAX - 1)
        }
        _ => Ok(()),
    }
}

/// The place of a mirror among those that are resynced, 0 to 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pass(u8);

impl Pass {
    /// Largest pass.
    pub const MAX: u8 = 9;

    /// A pass, if it is one.
    pub fn new(pass: u8) -> Option<Pass> {
        (pass <= Pass::MAX).then_some(Pass(pass))
    }

    /// As a number.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl Default for Pass {
    fn default() -> Self {
        Pass(1)
    }
}

impl ReadPolicy {
    /// For people and command lines.
    pub fn name(self) -> String {
        match self {
            ReadPolicy::RoundRobin => "roundrobin".into(),
            ReadPolicy::Geometric => "geometric".into(),
            ReadPolicy::First => "first".into(),
            ReadPolicy::Preferred(slot) => format!("preferred:{slot}"),
            ReadPolicy::Adaptive => "adaptive".into(),
        }
    }

    /// The policy of that name.
    pub fn named(name: &str) -> Option<ReadPolicy> {
        Some(match name {
            "roundrobin" => ReadPolicy::RoundRobin,
            "geometric" => ReadPolicy::Geometric,
            "first" => ReadPolicy::First,
            "adaptive" => ReadPolicy::Adaptive,
            _ => {
                let slot = name.strip_prefix("preferred:")?.parse().ok()?;
                (slot < crate::ondisk::label::LEGS_MAX).then_some(ReadPolicy::Preferred(slot))?
            }
        })
    }
}

impl WritePolicy {
    /// For people and command lines.
    pub fn name(self) -> &'static str {
        match self {
            WritePolicy::Parallel => "parallel",
            WritePolicy::Serial => "serial",
            WritePolicy::WriteBehind => "write-behind",
        }
    }

    /// The policy of that name.
    pub fn named(name: &str) -> Option<WritePolicy> {
        [WritePolicy::Parallel, WritePolicy::Serial, WritePolicy::WriteBehind]
            .into_iter()
            .find(|p| p.name() == name)
    }
}

impl Policies {
    /// As in a label.
    pub(crate) fn to_bytes(self) -> [u8; 4] {
        let (read, slot) = match self.read {
            ReadPolicy::RoundRobin => (0, 0),
            ReadPolicy::Geometric => (1, 0),
            ReadPolicy::First => (2, 0),
            // OK to truncate: a leg's place.
            ReadPolicy::Preferred(slot) => (3, slot as u8),
            ReadPolicy::Adaptive => (4, 0),
        };
        let write = match self.write {
            WritePolicy::Parallel => 0,
            WritePolicy::Serial => 1,
            WritePolicy::WriteBehind => 2,
        };
        [read, slot, write, self.pass.0]
    }

    /// From a label; what is not known is as it is by default.
    pub(crate) fn from_bytes([read, slot, write, pass]: [u8; 4]) -> Policies {
        let read = match read {
            1 => ReadPolicy::Geometric,
            2 => ReadPolicy::First,
            3 => ReadPolicy::Preferred(usize::from(slot)),
            4 => ReadPolicy::Adaptive,
            _ => ReadPolicy::RoundRobin,
        };
        let write = match write {
            1 => WritePolicy::Serial,
            2 => WritePolicy::WriteBehind,
            _ => WritePolicy::Parallel,
        };
        Policies { read, write, pass: Pass::new(pass).unwrap_or_default() }
    }
}

/// What is measured of a leg's reads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LegLatency {
    /// Mean time of a read, in nanoseconds; 0: none yet.
    pub latency_ns: u64,
    /// Reads in flight.
    pub in_flight: u64,
}

impl LegLatency {
    pub fn answered(&mut self, took: Duration) {
        // At least one, so that zero means "none yet".
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.latency_ns = match self.latency_ns {
            0 => took,
            mean => mean - mean / LATENCY_WEIGHT + took.div_ceil(LATENCY_WEIGHT),
        };
    }

    /// When one more read would be answered.
    fn expected_ns(&self) -> u64 {
        self.latency_ns.saturating_mul(self.in_flight + 1)
    }
}

/// Chooses one of the legs in `candidates` (a mask that is not empty) for a read at `offset` of a
/// volume of `size` bytes. `reads` counts all reads so far, `last` is where the last one went.
#[inline]
pub(super) fn choose(
    policy: ReadPolicy,
    candidates: u8,
    (offset, size): (u64, u64),
    (reads, last): (u64, usize),
    measured: &[LegLatency],
) -> usize {
    let first = candidates.trailing_zeros() as usize;
    let has = |slot: usize| slot < 8 && candidates >> slot & 1 == 1;
    let nth = |n: usize| (0..8).filter(|s| has(*s)).nth(n).unwrap_or(first);
    let count = candidates.count_ones() as usize;
    if count == 1 {
        return first;
    }
    match policy {
        ReadPolicy::First => first,
        ReadPolicy::Preferred(slot) => {
            if has(slot) {
                slot
            } else {
                first
            }
        }
        ReadPolicy::RoundRobin => {
            (1..=8).map(|step| (last + step) % 8).find(|slot| has(*slot)).unwrap_or(first)
        }
        ReadPolicy::Geometric => nth((offset / size.div_ceil(count as u64).max(1)) as usize),
        ReadPolicy::Adaptive => {
            let legs = (0..measured.len()).filter(|s| has(*s));
            if let Some(new) = legs.clone().find(|s| measured[*s].latency_ns == 0) {
                return new;
            }
            if reads % EXPLORE_EVERY == EXPLORE_EVERY - 1 {
                return nth((reads / EXPLORE_EVERY) as usize % count);
            }
            legs.min_by_key(|s| measured[*s].expected_ns()).unwrap_or(first)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(policy: ReadPolicy, candidates: u8, offset: u64, last: usize) -> usize {
        choose(policy, candidates, (offset, 1000), (0, last), &[LegLatency::default(); 4])
    }

    #[test]
    fn policies_choose_as_they_say() {
        assert_eq!(at(ReadPolicy::RoundRobin, 0b1011, 0, 1), 3);
        assert_eq!(at(ReadPolicy::RoundRobin, 0b1011, 0, 3), 0);
        assert_eq!(at(ReadPolicy::Geometric, 0b1011, 333, 0), 0);
        assert_eq!(at(ReadPolicy::Geometric, 0b1011, 334, 0), 1);
        assert_eq!(at(ReadPolicy::Geometric, 0b1011, 999, 0), 3);
        assert_eq!(at(ReadPolicy::First, 0b1010, 999, 0), 1);
        assert_eq!(at(ReadPolicy::Preferred(3), 0b1010, 0, 0), 3);
        assert_eq!(at(ReadPolicy::Preferred(2), 0b1010, 0, 0), 1);
    }

    #[test]
    fn adaptive_prefers_the_fast_leg_until_it_is_busy() {
        let mut legs = [LegLatency::default(); 2];
        let choice =
            |legs: &[LegLatency]| choose(ReadPolicy::Adaptive, 0b11, (0, 1000), (0, 0), legs);
        legs[0].answered(Duration::from_micros(8000));
        assert_eq!(choice(&legs), 1, "never measured");
        legs[1].answered(Duration::from_micros(2000));
        assert_eq!(choice(&legs), 1);
        legs[1].in_flight = 4;
        assert_eq!(choice(&legs), 0);
        // Sometimes the slow leg is read again.
        let explored = (0..256).filter(|reads| {
            legs[1].in_flight = 0;
            choose(ReadPolicy::Adaptive, 0b11, (0, 1000), (*reads, 0), &legs) == 0
        });
        assert_eq!(explored.count(), 2);
    }

    #[test]
    fn policies_come_back_from_a_label() {
        for (read, write) in [
            (ReadPolicy::RoundRobin, WritePolicy::Parallel),
            (ReadPolicy::Geometric, WritePolicy::Serial),
            (ReadPolicy::First, WritePolicy::WriteBehind),
            (ReadPolicy::Preferred(2), WritePolicy::Parallel),
            (ReadPolicy::Adaptive, WritePolicy::Parallel),
        ] {
            let policies = Policies { read, write, pass: Pass(7) };
            assert_eq!(Policies::from_bytes(policies.to_bytes()), policies);
            assert_eq!(ReadPolicy::named(&read.name()), Some(read));
            assert_eq!(WritePolicy::named(write.name()), Some(write));
        }
    }
}
