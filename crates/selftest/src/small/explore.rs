//! Records sequences, cuts them everywhere, and judges every state that is new.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;

pub use super::explored::SequenceReport;
use super::explored::{FINDINGS_KEPT, Verdict};
use super::machine::{SequenceRun, SmallMachine};
use super::prune::{Base, CutPosition, OutcomeNo, Pruner, Pruning};
use super::sequence::Sequence;
use crate::mixed::judge::MixedJudge;
use steadfast_crash::Result;
use steadfast_crash::explore::{
    Checks, CutSource, OtherJudges, Plan, RebootTarget, System, recover_all, structure,
};
use steadfast_crash::figures::StateFigures;
use steadfast_crash::opinion::Opinion;
use steadfast_crash::states::versions::{Choice, CutStates, Units};

/// States that recover in one simulation, one after the other.
const BATCH: usize = 64;

/// A state to be judged.
struct State {
    number: u64,
    contents: Vec<Store>,
    at: Moment,
    /// For people, made when it is needed.
    cut_states: Arc<CutStates>,
    choice: Choice,
    /// What is known of it, if it recovers to compare.
    known: Option<Arc<Verdict>>,
    checks: Checks,
}

/// Explores the sequences one after the other, in this task, at every crash point at which
/// something else may be left or something else is promised than before. `progress` gets after
/// each what there is so far.
///
/// # Errors
/// If a sequence could not be recorded, in words.
pub fn explore(
    machine: &SmallMachine,
    sequences: &[Sequence],
    plan: &Plan,
    progress: &dyn Fn(&SequenceReport),
) -> Result<SequenceReport> {
    let mut explorer = Explorer::new(machine, plan);
    for (number, sequence) in sequences.iter().enumerate() {
        explorer.sequence(machine, number, sequence)?;
        progress(&explorer.figures);
    }
    Ok(explorer.figures)
}

pub(super) struct Explorer {
    machine: Arc<dyn RebootTarget>,
    plan: Plan,
    pruning: Pruning,
    others: OtherJudges,
    /// Every n-th new state is kept in [`SequenceReport::kept`]; 0: none.
    pub keep_every: u64,
    /// States judged: base, what was done and promised, contents.
    seen: HashSet<(u64, u128)>,
    /// What the structure check said of recovered disks: most states recover to few.
    checked: HashMap<u128, Vec<String>>,
    pruner: Pruner,
    /// Of the run that is being cut: the verdict on an outcome, by what was done and promised.
    verdicts: HashMap<(u64, OutcomeNo), Arc<Verdict>>,
    /// Of each state, by number, its verdict in short, if somebody wants to compare.
    pub verdict_hashes: Option<Vec<(u64, u64)>>,
    pub figures: SequenceReport,
}

/// A run that is being cut.
struct Cutting<'r> {
    name: &'r str,
    units: Units,
    recorded: &'r CutSource,
    judge: Arc<MixedJudge>,
    base: Option<Arc<Base>>,
    tasks: usize,
    batch: Vec<State>,
}

/// One of its cuts.
struct CutAt {
    context: u64,
    at: Moment,
    cut_states: Arc<CutStates>,
    /// What is beyond doubt, once it is needed.
    sure: Option<Vec<Store>>,
    place: Option<CutPosition>,
}

impl CutAt {
    fn sure(&mut self, run: &Cutting<'_>) -> &[Store] {
        self.sure.get_or_insert_with(|| run.units.sure(&self.cut_states, &run.recorded.bases))
    }

    fn contents(&mut self, run: &Cutting<'_>, choice: &Choice) -> Vec<Store> {
        let cut_states = Arc::clone(&self.cut_states);
        run.units.contents(&cut_states, self.sure(run), choice)
    }
}

impl Explorer {
    pub fn new(machine: &SmallMachine, plan: &Plan) -> Explorer {
        Explorer::with(machine, plan, Pruning::ON)
    }

    pub fn with(machine: &SmallMachine, plan: &Plan, pruning: Pruning) -> Explorer {
        let on = pruning.on && !plan.use_it;
        let mut pruning = pruning;
        pruning.on = on;
        let shared: Arc<dyn RebootTarget> = Arc::new(machine.clone());
        Explorer {
            machine: shared,
            plan: *plan,
            pruning,
            others: OtherJudges::of(plan),
            keep_every: 0,
            seen: HashSet::new(),
            checked: HashMap::new(),
            pruner: Pruner::new(machine, plan.seed, pruning),
            verdicts: HashMap::new(),
            verdict_hashes: None,
            figures: SequenceReport::default(),
        }
    }

    /// Records a sequence and cuts it everywhere.
    pub fn sequence(
        &mut self,
        machine: &SmallMachine,
        number: usize,
        sequence: &Sequence,
    ) -> Result<()> {
        let sequences = std::slice::from_ref(sequence);
        let run = machine.record(sequences, None)?;
        self.sequences(&format!("sequence {number}, {sequence}"), sequences, run);
        Ok(())
    }

    /// Cuts a recorded run everywhere. `sequences` are what its tasks did, `name` is for people.
    pub fn sequences(&mut self, name: &str, sequences: &[Sequence], run: SequenceRun) {
        self.figures.sequences += 1;
        self.verdicts.clear();
        let SequenceRun { recorded, judge, begin, progress } = run;
        let CutSource { bases, recording, .. } = &recorded;
        let units = Units::new(recording, bases);
        let start: Vec<u128> = bases.iter().map(Store::digest).collect();
        let base = self.pruning.on.then(|| self.pruner.base(&start, bases));
        let (tasks, batch) = (sequences.len(), Vec::new());
        let recorded = &recorded;
        let mut run = Cutting { name, units, recorded, judge, base, tasks, batch };
        let mut last = None;
        for cut in begin..=recording.last_crash_point() {
            let before = |of_task: &Vec<(u64, u64)>| {
                let started = of_task.iter().filter(|(s, _)| *s < cut).count();
                (started, of_task.iter().filter(|(_, a)| *a < cut).count())
            };
            let counts: Vec<(usize, usize)> = progress.iter().map(before).collect();
            let cut_states = Arc::new(run.units.at(recording, cut));
            let now = (counts.clone(), Arc::clone(&cut_states));
            if last.replace(now.clone()).is_some_and(|before| before == now) {
                continue;
            }
            let mut hasher = DefaultHasher::new();
            start.hash(&mut hasher);
            for (sequence, (started, acknowledged)) in sequences.iter().zip(&counts) {
                // More has started than there are operations: the unmount, which belongs to all.
                let begun = &sequence.operations[..(*started).min(sequence.len())];
                (sequence.start, begun, started, acknowledged).hash(&mut hasher);
            }
            if sequences.len() > 1 {
                // What came before what counts only as far as the judge asks.
                run.judge.joint(cut).hash(&mut hasher);
            }
            let context = hasher.finish();
            let at = Moment { tick: cut, at: recording.time_of(cut) };
            self.cut(&mut run, CutAt { context, at, cut_states, sure: None, place: None });
        }
        self.judge(&mut run);
        self.figures.contradictions = self.pruner.contradictions;
    }

    /// Judges the states of a cut that are new.
    fn cut(&mut self, run: &mut Cutting<'_>, mut cut: CutAt) {
        let cut_states = Arc::clone(&cut.cut_states);
        let choices = cut_states.choices(self.plan.bound, self.plan.seed ^ cut.context);
        self.figures.cuts += 1;
        self.figures.exhausted +=
            u64::from(cut_states.count() as u64 <= self.plan.bound.combinations);
        for choice in choices {
            self.figures.states += 1;
            if !self.seen.insert((cut.context, run.units.digest(&cut_states, &choice))) {
                continue;
            }
            self.figures.distinct += 1;
            let number = self.figures.distinct;
            let nth = |every: u64| every > 0 && number.is_multiple_of(every);
            if self.keep_every > 0 && number.is_multiple_of(self.keep_every) {
                let contents = cut.contents(run, &choice);
                self.figures.kept.push(contents);
            }
            let checks = self.plan.checks(number);
            let known = if self.pruning.on { self.known(run, &mut cut, &choice) } else { None };
            let compare = checks != Checks::NOTHING || nth(self.pruning.compare_every);
            if let Some(verdict) = &known {
                self.count(number, verdict);
                if !verdict.words.is_empty() {
                    self.found(run, &cut.cut_states, &choice, cut.at, &verdict.words);
                }
                if !compare {
                    continue;
                }
            }
            let contents = cut.contents(run, &choice);
            let cut_states = Arc::clone(&cut_states);
            let at = cut.at;
            run.batch.push(State { number, contents, at, cut_states, choice, known, checks });
            if run.batch.len() == BATCH {
                self.judge(run);
            }
        }
    }

    /// The verdict on a state, from one that recovery cannot distinguish from it or from its own
    /// recovery. `None` if that did not end.
    fn known(
        &mut self,
        run: &Cutting<'_>,
        cut: &mut CutAt,
        choice: &Choice,
    ) -> Option<Arc<Verdict>> {
        let cut_states = Arc::clone(&cut.cut_states);
        let mut place = match cut.place.take() {
            Some(place) => place,
            None => {
                let base = run.base.as_ref()?;
                let sure = cut.sure(run);
                self.pruner.at(base, (&run.units, &cut_states, sure), run.tasks)
            }
        };
        let found = self.pruner.find(&mut place, (&run.units, &cut_states), choice);
        self.figures.pruned += u64::from(found.is_some());
        let outcome = found.or_else(|| {
            let state = (cut.contents(run, choice), &run.judge);
            self.pruner.recover(&mut place, (&run.units, &cut_states), choice, state)
        });
        cut.place = Some(place);
        let outcome = outcome?;
        let verdict = self.verdicts.entry((cut.context, outcome)).or_insert_with(|| {
            Arc::new(Verdict::of(self.pruner.judge(outcome, &run.judge, cut.at)))
        });
        Some(Arc::clone(verdict))
    }

    /// Lets the states of the batch recover and judges each by itself.
    fn judge(&mut self, run: &mut Cutting<'_>) {
        let batch = std::mem::take(&mut run.batch);
        let states = batch.iter().map(|s| (s.contents.clone(), s.at, s.checks)).collect();
        for (state, cut) in batch.iter().zip(self.recover_all(run.recorded, states)) {
            let mut words = self.opinions(&cut);
            let verdict = Verdict::of(cut);
            match &state.known {
                Some(known) => {
                    self.figures.compared += 1;
                    if **known != verdict {
                        self.figures.differing += 1;
                        words.push(format!("pruned: {known:?}; by itself: {verdict:?}"));
                    }
                }
                None => {
                    self.count(state.number, &verdict);
                    words.extend(verdict.words);
                }
            }
            words.extend(self.second_cuts(run.recorded, state));
            if !words.is_empty() {
                self.found(run, &state.cut_states, &state.choice, state.at, &words);
            }
        }
    }

    fn found(
        &mut self,
        run: &Cutting<'_>,
        cut_states: &CutStates,
        choice: &Choice,
        at: Moment,
        words: &[String],
    ) {
        if self.figures.findings.len() < FINDINGS_KEPT {
            let description = described(&run.units, cut_states, choice);
            let (name, tick, words) = (run.name, at.tick, words.join("; "));
            self.figures
                .findings
                .push(format!("{name}; cut at tick {tick}, {description}: {words}"));
        }
    }

    fn count(&mut self, number: u64, verdict: &Verdict) {
        self.add(verdict);
        if let Some(hashes) = &mut self.verdict_hashes {
            let mut hasher = DefaultHasher::new();
            verdict.hash(&mut hasher);
            hashes.push((number, hasher.finish()));
        }
    }

    /// Cuts the recovery of a state too, once or wherever it can be cut.
    fn second_cuts(&mut self, recorded: &CutSource, state: &State) -> Vec<String> {
        let Checks { second, everywhere, .. } = state.checks;
        let mut words = Vec::new();
        let nothing = Checks::NOTHING;
        for checks in [Checks { second, ..nothing }, Checks { everywhere, ..nothing }] {
            if checks == nothing {
                continue;
            }
            let mut choices = Rng::new(self.plan.seed ^ self.figures.distinct);
            let trial =
                self.others.trial((&self.machine, &recorded.judge), &self.plan, state.at, nothing);
            let left = trial.second_states(&state.contents, &mut choices, checks);
            self.figures.second_cuts += left.len() as u64;
            let mut states = Vec::new();
            for left in left {
                match left {
                    Ok(contents) => states.push((contents, state.at, nothing)),
                    Err(why) => {
                        self.figures.damaged += 1;
                        words.push(format!("recovery cut: {why}"));
                    }
                }
            }
            for cut in self.recover_all(recorded, states) {
                let verdict = Verdict::of(cut);
                self.add(&verdict);
                words.extend(verdict.words);
            }
        }
        words
    }

    /// Lets states recover, and judges each by its own promises.
    fn recover_all(
        &mut self,
        recorded: &CutSource,
        states: Vec<(Vec<Store>, Moment, Checks)>,
    ) -> Vec<StateFigures> {
        let (others, plan, checked) = (&self.others, &self.plan, &mut self.checked);
        let system: &dyn System = &self.machine;
        let trial = |(contents, at, checks): (Vec<Store>, Moment, Checks)| {
            (others.trial((system, &recorded.judge), plan, at, checks), contents)
        };
        let states = states.into_iter().map(trial).collect();
        recover_all(system, states, plan.seed, &mut |disk| {
            checked.entry(disk.digest()).or_insert_with(|| structure(disk)).clone()
        })
    }

    fn add(&mut self, verdict: &Verdict) {
        self.figures.broken += u64::from(verdict.broken);
        self.figures.stale += u64::from(verdict.stale);
        self.figures.damaged += u64::from(verdict.damaged);
    }

    /// Counts what other programs say of a state: what is wrong, in words.
    fn opinions(&mut self, cut: &StateFigures) -> Vec<String> {
        let mut words = Vec::new();
        for (who, opinion) in [("e2fsck", &cut.e2fsck), ("the kernel", &cut.kernel)] {
            match opinion {
                None => {}
                Some(Opinion::Clean) => self.figures.e2fsck += 1,
                Some(Opinion::Damaged(why)) => {
                    self.figures.e2fsck += 1;
                    self.figures.e2fsck_refuted += 1;
                    words.push(format!("{who}: {why}"));
                }
                Some(Opinion::NotGiven(why)) => {
                    self.figures.e2fsck_unanswered += 1;
                    words.push(format!("{who} gave no answer: {why}"));
                }
            }
        }
        words
    }
}

/// A state in words: which units in doubt hold what is new.
fn described(units: &Units, cut_states: &CutStates, choice: &[u8]) -> String {
    let new = cut_states.options.iter().zip(choice).filter(|(_, c)| **c > 0);
    let new = new.map(|((unit, options), c)| {
        let (device, offset) = units.place(*unit);
        format!("{device}:{offset:#x}={c}/{}", options.len() - 1)
    });
    let new: Vec<String> = new.collect();
    format!("{} of {} units in uncertainty are new: {}", new.len(), choice.len(), new.join(" "))
}
