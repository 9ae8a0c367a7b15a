//! What an exploration showed, and one state of it.

use steadfast_crash::figures::StateFigures;
use steadfast_devices::store::Store;

/// Findings kept in words; the counts go on.
pub(super) const FINDINGS_KEPT: usize = 12;

/// What was explored, and what it showed.
#[derive(Debug, Clone, Default)]
pub struct SequenceReport {
    /// Sequences recorded.
    pub sequences: u64,
    /// Instants at which something else may be left, or something else is promised, than at the
    /// instant before.
    pub cuts: u64,
    /// Of these, cuts all of whose states were looked at.
    pub exhausted: u64,
    /// States looked at, over all cuts.
    pub states: u64,
    /// Different states, judged each.
    pub distinct: u64,
    /// Of these, states that did not recover: one that recovery cannot distinguish from them had.
    pub pruned: u64,
    /// States that recovered by themselves too, to compare.
    pub compared: u64,
    /// Of these, states that showed something else than was known.
    pub differing: u64,
    /// Recoveries that did not read the same after the same: what proves the pruning wrong.
    pub contradictions: u64,
    /// Recoveries cut in their turn, judged too.
    pub second_cuts: u64,
    /// States that broke a promise.
    pub broken: u64,
    /// States with bytes in a file that nobody wrote there.
    pub stale: u64,
    /// States with damage, by our check or because they could not be mounted or read.
    pub damaged: u64,
    /// States judged by e2fsck.
    pub e2fsck: u64,
    /// States in which e2fsck found something.
    pub e2fsck_refuted: u64,
    /// States of which e2fsck was asked and could not answer.
    pub e2fsck_unanswered: u64,
    /// The first findings in words: sequence, cut, and what survived.
    pub findings: Vec<String>,
    /// States as the cuts left them, for other judges: the disk, then the journal's device.
    pub kept: Vec<Vec<Store>>,
}

impl SequenceReport {
    /// How many states are not as they must be, or not known to be.
    pub fn wrong(&self) -> u64 {
        let shown = self.broken + self.stale + self.damaged;
        let e2fsck = self.e2fsck_refuted + self.e2fsck_unanswered;
        shown + e2fsck + self.differing + self.contradictions
    }

    /// Adds another part of the same exploration.
    pub fn add(&mut self, other: SequenceReport) {
        self.sequences += other.sequences;
        self.cuts += other.cuts;
        self.exhausted += other.exhausted;
        self.states += other.states;
        self.distinct += other.distinct;
        self.pruned += other.pruned;
        self.compared += other.compared;
        self.differing += other.differing;
        self.contradictions += other.contradictions;
        self.second_cuts += other.second_cuts;
        self.broken += other.broken;
        self.stale += other.stale;
        self.damaged += other.damaged;
        self.e2fsck += other.e2fsck;
        self.e2fsck_refuted += other.e2fsck_refuted;
        self.e2fsck_unanswered += other.e2fsck_unanswered;
        self.findings.extend(other.findings);
        self.findings.truncate(FINDINGS_KEPT);
        self.kept.extend(other.kept);
    }
}

impl std::fmt::Display for SequenceReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} sequences, {} cuts ({} exhausted), {} states, {} distinct, {} pruned ({} of {} \
             differ), {} cut again: {} broken promises, {} stale, {} damaged, {} of {} refuted by \
             e2fsck, {} without its answer",
            self.sequences,
            self.cuts,
            self.exhausted,
            self.states,
            self.distinct,
            self.pruned,
            self.differing + self.contradictions,
            self.compared,
            self.second_cuts,
            self.broken,
            self.stale,
            self.damaged,
            self.e2fsck_refuted,
            self.e2fsck,
            self.e2fsck_unanswered
        )
    }
}

/// What a state showed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Verdict {
    pub broken: bool,
    pub stale: bool,
    pub damaged: bool,
    pub lost: u64,
    pub words: Vec<String>,
}

impl Verdict {
    pub fn of(cut: StateFigures) -> Verdict {
        Verdict {
            broken: cut.broken_promises > 0,
            stale: cut.stale_bytes > 0,
            damaged: !cut.damage.is_empty(),
            lost: cut.lost_operations,
            words: cut.findings.into_iter().chain(cut.damage).collect(),
        }
    }
}
