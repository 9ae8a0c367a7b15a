//! States that recovery cannot distinguish are judged once.
//!
//! While a state recovers, is read by the judge, is unmounted and checked, it is noted which
//! sectors are looked at before they are written ([`traced`]). All of that is deterministic, so a
//! state that holds the same in these sectors recovers to the same, whatever the others hold: the
//! [tree](trie) of all such paths leads a new state to the outcome of a former one, or to none.
//!
//! An [`RecoveryResult`] is what was found after recovery. What had been promised at the cut is no
//! part of it: every state is judged by its own promises.
//!
//! # What it stands on
//!
//! 1. All that recovery, the judge and the check know of a state they read from its devices, and
//!    each sector that they read is noted: nothing is read ahead there
//!    ([`BlockDevice::gains_by_reading_ahead`](steadfast_block::BlockDevice)).
//! 2. Each state that is traced recovers in a simulation of its own, with the same seed, the same
//!    date and nothing that another one has left in memory.
//! 3. Contents are compared by digests of 128 bits.
//!
//! Every n-th state recovers without any of this too, and must show the same
//! ([`Pruning::compare_every`]).

mod sectors;
#[cfg(test)]
mod tests;
mod traced;
mod trie;

use std::collections::HashMap;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::record::Moment;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_runtime::Sim;

pub(super) use self::sectors::Base;
use self::sectors::{Numbers, SectorContents};
use self::traced::{Look, Part, Trace, TraceOmission};
use self::trie::{Answer, Trie};
use super::machine::SmallMachine;
use crate::mixed::judge::{JudgeView, MixedJudge};
use steadfast_crash::explore::{BootedMachine, structure_on};
use steadfast_crash::figures::StateFigures;
use steadfast_crash::states::versions::{CutStates, Units};

/// Looks that are kept at the most; then all is forgotten.
const LOOKS_MAX: usize = 16 << 20;

/// Whether states that recovery cannot distinguish are judged once.
#[derive(Debug, Clone, Copy)]
pub struct Pruning {
    /// If not, each state recovers.
    pub on: bool,
    /// Every n-th state recovers on devices that are not traced too, and must show the same; 0:
    /// none.
    pub compare_every: u64,
    forgotten: TraceOmission,
}

impl Pruning {
    /// Each state recovers.
    pub const OFF: Pruning = Pruning { on: false, ..Pruning::ON };
    /// States are pruned, one in 200 is compared.
    pub const ON: Pruning =
        Pruning { on: true, compare_every: 200, forgotten: TraceOmission::Nothing };
}

impl Default for Pruning {
    fn default() -> Self {
        Pruning::ON
    }
}

/// What was found after a recovery.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RecoveryResult {
    /// What the judge saw, or why the mount was refused.
    seen: Result<JudgeView, String>,
    /// What the structure check found, or why the file system could not be unmounted.
    left: Result<Vec<String>, String>,
}

/// Number of an outcome.
pub(super) type OutcomeNo = u32;

/// Knows the outcomes of states that recovered.
pub(super) struct Pruner {
    machine: SmallMachine,
    seed: u64,
    forgotten: TraceOmission,
    numbers: Numbers,
    /// By the number of tasks whose folders the judge reads.
    tries: HashMap<usize, Trie>,
    outcomes: Vec<Arc<RecoveryResult>>,
    known: HashMap<Arc<RecoveryResult>, OutcomeNo>,
    /// See [`trie`].
    pub contradictions: u64,
}

/// A state of a cut.
pub(super) struct CutPosition {
    tasks: usize,
    base: Arc<Base>,
    sectors: SectorContents,
}

impl Pruner {
    pub fn new(machine: &SmallMachine, seed: u64, pruning: Pruning) -> Pruner {
        Pruner {
            machine: machine.clone(),
            seed,
            forgotten: pruning.forgotten,
            numbers: Numbers::default(),
            tries: HashMap::new(),
            outcomes: Vec::new(),
            known: HashMap::new(),
            contradictions: 0,
        }
    }

    /// The devices before the first cut.
    pub fn base(&mut self, digests: &[u128], bases: &[Store]) -> Arc<Base> {
        self.numbers.base(digests, bases)
    }

    /// A cut of a run of so many tasks.
    pub fn at(
        &mut self,
        base: &Arc<Base>,
        (units, cut_states, sure): (&Units, &CutStates, &[Store]),
        tasks: usize,
    ) -> CutPosition {
        let sectors = SectorContents::at(&mut self.numbers, base, units, cut_states, sure);
        CutPosition { tasks, base: Arc::clone(base), sectors }
    }

    /// The outcome of a state, if one that recovery cannot distinguish from it has recovered.
    pub fn find(
        &mut self,
        place: &mut CutPosition,
        (units, cut_states): (&Units, &CutStates),
        choice: &[u8],
    ) -> Option<OutcomeNo> {
        let state = place.sectors.chosen(&mut self.numbers, units, cut_states, choice);
        let (trie, numbers) = (self.tries.get(&place.tasks)?, &self.numbers);
        trie.find(|look| numbers.answer(state, look))
    }

    /// Lets a state recover and remembers what came of it. `None` if that did not end, or if
    /// it contradicts what is known.
    pub fn recover(
        &mut self,
        place: &mut CutPosition,
        (units, cut_states): (&Units, &CutStates),
        choice: &[u8],
        (contents, judge): (Vec<Store>, &Arc<MixedJudge>),
    ) -> Option<OutcomeNo> {
        let (outcome, looks) = self.traced(&place.base, contents, judge)?;
        let outcome = Arc::new(outcome);
        let next = self.outcomes.len() as OutcomeNo;
        let number = *self.known.entry(Arc::clone(&outcome)).or_insert(next);
        if number == next {
            self.outcomes.push(outcome);
        }
        let state = place.sectors.chosen(&mut self.numbers, units, cut_states, choice);
        let path: Vec<(Look, Answer)> =
            looks.into_iter().map(|look| (look, self.numbers.answer(state, look))).collect();
        let trie = self.tries.entry(place.tasks).or_default();
        if trie.held() > LOOKS_MAX {
            *trie = Trie::default();
        }
        match trie.add(&path, number) {
            Ok(()) => Some(number),
            Err(_) => {
                self.contradictions += 1;
                None
            }
        }
    }

    fn traced(
        &self,
        base: &Base,
        contents: Vec<Store>,
        judge: &Arc<MixedJudge>,
    ) -> Option<(RecoveryResult, Vec<Look>)> {
        let trace = Trace::new(&base.first, self.forgotten);
        let (machine, judge, noted) = (self.machine.clone(), Arc::clone(judge), trace.clone());
        let recovered =
            Sim::new(self.seed).run(move || recovered(&machine, contents, &judge, &noted));
        let (seen, left) = recovered.ok()?;
        trace.begin(Part::Check);
        let left = left.map(|contents| {
            let disk = Ram::from_store("recovered disk", contents[0].snapshot());
            structure_on(&trace.device(0, disk))
        });
        Some((RecoveryResult { seen, left }, trace.take()))
    }

    /// Judges an outcome by what was promised at a cut.
    pub fn judge(&self, outcome: OutcomeNo, judge: &MixedJudge, at: Moment) -> StateFigures {
        let RecoveryResult { seen, left } = &*self.outcomes[outcome as usize];
        let mut cut = match seen {
            Ok(view) => {
                let mut cut = StateFigures { at: at.at, ..StateFigures::default() };
                judge.judge_view(view, at, &mut cut);
                cut
            }
            Err(why) => return StateFigures::unmountable(at.at, why.clone()),
        };
        match left {
            Ok(found) => cut.damage.extend(found.iter().cloned()),
            Err(why) => cut.damage.push(why.clone()),
        }
        cut
    }
}

type PrunedRecovery = (Result<JudgeView, String>, Result<Vec<Store>, String>);

/// Recovers, looks and unmounts, on devices that are traced.
fn recovered(
    machine: &SmallMachine,
    contents: Vec<Store>,
    judge: &MixedJudge,
    trace: &Trace,
) -> PrunedRecovery {
    let device =
        |number: usize, ram: &Ram| -> Arc<dyn BlockDevice> { trace.device(number, ram.clone()) };
    let BootedMachine { fs, shut_down, .. } = match machine.boot(contents, &device) {
        Ok(booted) => booted,
        Err(why) => return (Err(format!("the mount was refused: {why}")), Err(String::new())),
    };
    trace.begin(Part::Judge);
    let seen = judge.look(&*fs);
    drop(fs);
    trace.begin(Part::Unmount);
    let left = shut_down();
    let why = |e| format!("the recovered file system could not be unmounted: {e}");
    (Ok(seen), left.map_err(why))
}
