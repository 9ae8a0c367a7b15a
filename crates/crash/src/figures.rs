//! The data-at-risk figures: of one crash state, and of many.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Serialize, Serializer};
use steadfast_devices::filter::record::{Action as Asked, Recording};
use steadfast_runtime::Nanos;

use crate::account::Operation;
use crate::judge::FileLoss;
use crate::opinion::Opinion;

/// Findings kept in words; the counts go on.
const FINDINGS_KEPT: usize = 8;

/// What was found in one crash state, and what it lacks. As JSON it is a row of a recording
/// (docs/risk.md).
#[derive(Debug, Clone, Default, Serialize)]
pub struct StateFigures {
    /// The instant.
    #[serde(rename = "at_ns", serialize_with = "instant_ns")]
    pub at: Nanos,
    /// The same in the record's order of all that happened.
    pub tick: u64,
    /// Which of the plan's cuts it is, from 0: with the seeds it determines what survived.
    pub number: u64,
    /// The number of the plan's first cut that found every device with the same requests settled
    /// and the same in doubt. Such cuts differ only by what of the latter survived: they are one
    /// place, and not several trials.
    pub place: u64,
    /// From power on to mounted, virtual time.
    #[serde(rename = "recovery_ns", serialize_with = "ns")]
    pub recovery: Duration,
    /// Durable writes missing.
    pub broken_promises: u64,
    /// Bytes of acknowledged writes that no promise covered at the cut: the most that it may take.
    /// Counted by [`UnsyncedJudge`](crate::unsynced::UnsyncedJudge) only.
    #[serde(skip)]
    pub unsynced_bytes: u64,
    /// Acknowledged writes missing, in whole or in part.
    pub lost_operations: u64,
    /// Their missing bytes.
    pub lost_bytes: u64,
    /// From the oldest of them to the cut.
    #[serde(rename = "lost_age_ns", serialize_with = "ns")]
    pub lost_age: Duration,
    /// Writes half old, half new.
    pub torn_writes: u64,
    /// Units ([`crate::judge::UNIT`]) of one write half old, half new.
    pub torn_units: u64,
    /// Bytes never written to the file they are in.
    pub stale_bytes: u64,
    /// Missing writes of which a later one survived.
    pub order_violations: u64,
    /// Names that a rename gave to a file, of which data written before the rename is missing.
    pub empty_after_rename: u64,
    /// Those of them for which a file that was there before has gone.
    pub empty_after_replace: u64,
    /// What the structure check, the mount or a read found, in words.
    pub damage: Vec<String>,
    /// The mount was refused, or repairs that need nobody were not enough: manual repair is needed.
    pub manual_repair: bool,
    /// Why the mount was refused, if it was.
    #[serde(skip)]
    pub refused: Option<String>,
    /// What e2fsck says, where it was asked.
    #[serde(rename = "e2fsck_clean", serialize_with = "clean")]
    pub e2fsck: Option<Opinion>,
    /// What the kernel's own recovery makes of it, where it was asked.
    #[serde(skip)]
    pub kernel: Option<Opinion>,
    /// What failed on this machine, so that this cut could not be judged.
    #[serde(skip)]
    pub trouble: Option<String>,
    /// What the file system held, where that is noted ([`crate::found`]).
    pub found: Option<u64>,
    /// Broken promises and stale data, in words.
    #[serde(skip)]
    pub findings: Vec<String>,
}

// The form of these functions is serde's.

fn instant_ns<S: Serializer>(at: &Nanos, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(at.0)
}

fn ns<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn clean<S: Serializer>(opinion: &Option<Opinion>, to: S) -> Result<S::Ok, S::Error> {
    let given = opinion.as_ref().filter(|opinion| opinion.is_given());
    given.map(|opinion| *opinion == Opinion::Clean).serialize(to)
}

impl StateFigures {
    /// A cut after which the file system could not be mounted.
    pub fn unmountable(at: Nanos, why: String) -> Self {
        let refused = Some(why.clone());
        StateFigures {
            at,
            damage: vec![why],
            manual_repair: true,
            refused,
            ..StateFigures::default()
        }
    }

    /// Whether a promise is broken, stale data is exposed, or the structure is damaged, by our
    /// judges or another program's.
    pub fn is_wrong(&self) -> bool {
        let others = self.e2fsck.iter().chain(&self.kernel);
        self.broken_promises > 0
            || self.stale_bytes > 0
            || !self.damage.is_empty()
            || self.manual_repair
            || others.filter_map(Opinion::damage).next().is_some()
    }

    /// Counts what was lost with a file that is missing: work, promised or not.
    pub(crate) fn count_missing(&mut self, loss: &FileLoss) {
        self.lost_operations += loss.lost.len() as u64;
        self.lost_bytes += loss.lost_bytes;
        if let Some(oldest) = loss.oldest_lost {
            self.lost_age = self.lost_age.max(self.at - oldest);
        }
    }

    /// Counts what was found in one file.
    pub(crate) fn count_file(&mut self, loss: &FileLoss) {
        self.count_missing(loss);
        self.broken_promises += loss.broken.len() as u64;
        self.torn_writes += loss.torn.len() as u64;
        self.torn_units += loss.torn_units;
        self.stale_bytes += loss.stale_bytes;
        self.order_violations += loss.out_of_order.len() as u64;
    }

    /// Adds what was found in one file, with the words.
    pub fn add_file(&mut self, file: &str, ops: &[Operation], loss: &FileLoss) {
        self.count_file(loss);
        if let Some(i) = loss.broken.first() {
            let Operation { action, started, .. } = &ops[*i];
            self.findings.push(format!(
                "{file}: {action}, started at {:?}, was promised durable and is missing ({} such \
                 in this file)",
                started.at,
                loss.broken.len()
            ));
        }
        if loss.stale_bytes > 0 {
            self.findings
                .push(format!("{file}: {} bytes that were never written to it", loss.stale_bytes));
        }
    }
}

/// What all cuts of a variant took.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Of the run that was cut: two with one number asked the devices for the same in the same
    /// order, so their crash points may be at the same places. 0: not known.
    pub run: u64,
    /// One entry a cut, in the order of time, without the words.
    pub cuts: Vec<StateFigures>,
    /// The first findings, in words, with the cut's instant.
    pub findings: Vec<String>,
    /// Cuts of which nothing is known, and why the first is not: they are not among the others.
    pub not_judged: Option<(u64, String)>,
}

/// A number for what a run asked of its devices, and in which order; at most 52 bits, so that JSON
/// keeps it.
pub(crate) fn run_number(recording: &Recording) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    // FNV-1a, by words.
    let mut add = |word: u64| sum = (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    for event in recording.events() {
        let (kind, offset, len) = match &event.action {
            Asked::Write { offset, data, fua } => (1 + u64::from(*fua), *offset, data.len() as u64),
            Asked::Flush => (3, 0, 0),
            Asked::Discard { offset, len } => (4, *offset, *len),
            Asked::Store { offset, data } => (5, *offset, data.len() as u64),
            Asked::Persist { offset, len } => (6, *offset, *len),
            Asked::Fence => (7, 0, 0),
        };
        let completed = event.completed.map_or(u64::MAX, |moment| moment.tick);
        let device = u64::from(event.device.0);
        [device, kind, offset, len, event.submitted.tick, completed].into_iter().for_each(&mut add);
    }
    (sum ^ sum >> 52) & ((1 << 52) - 1) | 1
}

impl Figures {
    /// Adds a cut. One of which nothing is known is no trial.
    pub fn add(&mut self, mut cut: StateFigures) {
        if let Some(why) = cut.trouble.take() {
            self.not_judged.get_or_insert((0, why)).0 += 1;
            return;
        }
        let e2fsck = cut.e2fsck.iter().filter_map(Opinion::damage).map(|o| format!("e2fsck: {o}"));
        let kernel = cut.kernel.iter().filter_map(Opinion::damage);
        let others: Vec<String> = e2fsck.chain(kernel.map(|o| format!("kernel: {o}"))).collect();
        let words: Vec<String> =
            cut.findings.drain(..).chain(cut.damage.iter().cloned()).chain(others).collect();
        for w in words {
            if self.findings.len() < FINDINGS_KEPT {
                let StateFigures { number, tick, at, .. } = cut;
                self.findings.push(format!("cut {number} at {at:?}, tick {tick}: {w}"));
            }
        }
        self.cuts.push(cut);
    }

    /// Sum of one figure over the cuts.
    pub fn sum(&self, figure: impl Fn(&StateFigures) -> u64) -> u64 {
        self.cuts.iter().map(figure).sum()
    }

    /// How often another program was asked and could not answer, and why the first time.
    pub fn opinions_missing(&self) -> Option<(u64, String)> {
        let opinions = self.cuts.iter().flat_map(|c| c.e2fsck.iter().chain(&c.kernel));
        let mut missing = opinions.filter_map(Opinion::missing);
        let first = missing.next()?.to_owned();
        Some((1 + missing.count() as u64, first))
    }

    /// How many cuts have a property.
    pub fn count(&self, property: impl Fn(&StateFigures) -> bool) -> u64 {
        self.cuts.iter().filter(|c| property(c)).count() as u64
    }

    /// At how many different places a cut has a property.
    pub fn places(&self, property: impl Fn(&StateFigures) -> bool) -> u64 {
        let places = self.cuts.iter().filter(|c| property(c)).map(|c| c.place);
        places.collect::<BTreeSet<u64>>().len() as u64
    }
}
