//! Records sequences, cuts them everywhere, and judges every state that is new.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;
use steadfast_runtime::Sim;

pub use super::explored::Explored;
use super::explored::{FINDINGS_KEPT, Verdict};
use super::machine::{Run, SmallMachine};
use super::prune::{Base, OutcomeNo, Place, Pruner, Pruning};
use super::sequence::Sequence;
use super::states::{Bound, Choice, Doubts, Units};
use crate::e2fsck::E2fsck;
use crate::explore::{
    Machine, Recorded, Recovered, cut_again, left_at, record_recovery, recover, structure,
};
use crate::figures::Cut;
use crate::judge::Judge;
use crate::mixed::judge::MixedJudge;
use crate::opinion::Opinion;

/// States that recover in one simulation, one after the other.
const BATCH: usize = 64;

/// How to explore.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How many states of a cut.
    pub bound: Bound,
    /// Seed of what is drawn beyond the bound.
    pub seed: u64,
    /// Every n-th new state is judged by e2fsck too, where it is installed; 0: none.
    pub e2fsck_every: u64,
    /// Of every n-th new state the recovery is cut too, at an instant drawn from the seed; 0: of
    /// none.
    pub again_every: u64,
    /// Of every n-th new state the recovery is cut at each of its instants, three times: nothing in
    /// doubt is there, all of it is, some; 0: of none.
    pub again_whole_every: u64,
    /// Every n-th new state is kept in [`Explored::kept`]; 0: none.
    pub keep_every: u64,
}

/// A state to be judged.
struct State {
    number: u64,
    contents: Vec<Store>,
    at: Moment,
    /// For people, made when it is needed.
    doubts: Arc<Doubts>,
    choice: Choice,
    /// What is known of it, if it recovers to compare.
    known: Option<Arc<Verdict>>,
    again: bool,
    again_whole: bool,
    e2fsck: bool,
}

/// Explores the sequences one after the other, in this task. `progress` is told after each what
/// there is so far.
///
/// # Errors
/// If a sequence could not be recorded, in words.
pub fn explore(
    machine: &SmallMachine,
    sequences: &[Sequence],
    plan: &Plan,
    progress: &dyn Fn(&Explored),
) -> Result<Explored, String> {
    let mut explorer = Explorer::new(machine, plan);
    for (number, sequence) in sequences.iter().enumerate() {
        explorer.sequence(machine, number, sequence)?;
        progress(&explorer.figures);
    }
    Ok(explorer.figures)
}

pub(super) struct Explorer {
    machine: Arc<dyn Machine>,
    plan: Plan,
    pruning: Pruning,
    e2fsck: Option<E2fsck>,
    /// States judged: base, what was done and promised, contents.
    seen: HashSet<(u64, u128)>,
    /// What the structure check said of recovered disks: most states recover to few.
    checked: HashMap<u128, Vec<String>>,
    pruner: Pruner,
    /// Of the run that is being cut: the verdict on an outcome, by what was done and promised.
    verdicts: HashMap<(u64, OutcomeNo), Arc<Verdict>>,
    /// Of each state, by number, its verdict in short, if somebody wants to compare.
    pub told: Option<Vec<(u64, u64)>>,
    pub figures: Explored,
}

/// A run that is being cut.
struct Cutting<'r> {
    name: &'r str,
    units: Units,
    recorded: Arc<dyn Judge>,
    judge: Arc<MixedJudge>,
    bases: Vec<Store>,
    base: Option<Arc<Base>>,
    tasks: usize,
    batch: Vec<State>,
}

/// One of its cuts.
struct CutAt {
    context: u64,
    at: Moment,
    doubts: Arc<Doubts>,
    /// What is beyond doubt, once it is needed.
    sure: Option<Vec<Store>>,
    place: Option<Place>,
}

impl CutAt {
    fn sure(&mut self, run: &Cutting<'_>) -> &[Store] {
        self.sure.get_or_insert_with(|| run.units.sure(&self.doubts, &run.bases))
    }

    fn contents(&mut self, run: &Cutting<'_>, choice: &Choice) -> Vec<Store> {
        let doubts = Arc::clone(&self.doubts);
        run.units.contents(&doubts, self.sure(run), choice)
    }
}

impl Explorer {
    pub fn new(machine: &SmallMachine, plan: &Plan) -> Explorer {
        Explorer::with(machine, plan, Pruning::ON)
    }

    pub fn with(machine: &SmallMachine, plan: &Plan, pruning: Pruning) -> Explorer {
        let shared: Arc<dyn Machine> = Arc::new(machine.clone());
        Explorer {
            machine: shared,
            plan: *plan,
            pruning,
            e2fsck: (plan.e2fsck_every > 0).then(E2fsck::find).flatten(),
            seen: HashSet::new(),
            checked: HashMap::new(),
            pruner: Pruner::new(machine, plan.seed, pruning),
            verdicts: HashMap::new(),
            told: None,
            figures: Explored::default(),
        }
    }

    /// Records a sequence and cuts it everywhere.
    pub fn sequence(
        &mut self,
        machine: &SmallMachine,
        number: usize,
        sequence: &Sequence,
    ) -> Result<(), String> {
        let sequences = std::slice::from_ref(sequence);
        let run = machine.record(sequences, None)?;
        self.sequences(&format!("sequence {number}, {sequence}"), sequences, run);
        Ok(())
    }

    /// Cuts a recorded run everywhere. `sequences` are what its tasks did, `name` is for people.
    pub fn sequences(&mut self, name: &str, sequences: &[Sequence], run: Run) {
        self.figures.sequences += 1;
        self.verdicts.clear();
        let Run { recorded, judge, begin, progress } = run;
        let Recorded { bases, recording, judge: recorded } = recorded;
        let units = Units::new(&recording, &bases);
        let start: Vec<u128> = bases.iter().map(Store::digest).collect();
        let base = self.pruning.on.then(|| self.pruner.base(&start, &bases));
        let (tasks, batch) = (sequences.len(), Vec::new());
        let mut run = Cutting { name, units, recorded, judge, bases, base, tasks, batch };
        let mut last = None;
        for cut in begin..=recording.last_cut() {
            let before = |of_task: &Vec<(u64, u64)>| {
                let started = of_task.iter().filter(|(s, _)| *s < cut).count();
                (started, of_task.iter().filter(|(_, a)| *a < cut).count())
            };
            let counts: Vec<(usize, usize)> = progress.iter().map(before).collect();
            let doubts = Arc::new(run.units.at(&recording, cut));
            let now = (counts.clone(), Arc::clone(&doubts));
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
            self.cut(&mut run, CutAt { context, at, doubts, sure: None, place: None });
        }
        self.judge(&mut run);
        self.figures.contradictions = self.pruner.contradictions;
    }

    /// Judges the states of a cut that are new.
    fn cut(&mut self, run: &mut Cutting<'_>, mut cut: CutAt) {
        let doubts = Arc::clone(&cut.doubts);
        let choices = doubts.choices(self.plan.bound, self.plan.seed ^ cut.context);
        self.figures.cuts += 1;
        self.figures.exhausted += u64::from(doubts.count() <= self.plan.bound.exhaustive);
        for choice in choices {
            self.figures.states += 1;
            if !self.seen.insert((cut.context, run.units.digest(&doubts, &choice))) {
                continue;
            }
            self.figures.distinct += 1;
            let number = self.figures.distinct;
            let nth = |every: u64| every > 0 && number.is_multiple_of(every);
            if nth(self.plan.keep_every) {
                let contents = cut.contents(run, &choice);
                self.figures.kept.push(contents);
            }
            let (again, again_whole) =
                (nth(self.plan.again_every), nth(self.plan.again_whole_every));
            let e2fsck = nth(self.plan.e2fsck_every);
            let known = if self.pruning.on { self.known(run, &mut cut, &choice) } else { None };
            let compare = again || again_whole || e2fsck || nth(self.pruning.compare_every);
            if let Some(verdict) = &known {
                self.count(number, verdict);
                if !verdict.words.is_empty() {
                    self.found(run, &cut.doubts, &choice, cut.at, &verdict.words);
                }
                if !compare {
                    continue;
                }
            }
            let contents = cut.contents(run, &choice);
            let doubts = Arc::clone(&doubts);
            let at = cut.at;
            run.batch.push(State {
                number,
                contents,
                at,
                doubts,
                choice,
                known,
                again,
                again_whole,
                e2fsck,
            });
            if run.batch.len() == BATCH {
                self.judge(run);
            }
        }
    }

    /// The verdict on a state, from one that recovery cannot tell apart from it or from its own
    /// recovery. `None` if that did not end.
    fn known(
        &mut self,
        run: &Cutting<'_>,
        cut: &mut CutAt,
        choice: &Choice,
    ) -> Option<Arc<Verdict>> {
        let doubts = Arc::clone(&cut.doubts);
        let mut place = match cut.place.take() {
            Some(place) => place,
            None => {
                let base = run.base.as_ref()?;
                let sure = cut.sure(run);
                self.pruner.at(base, (&run.units, &doubts, sure), run.tasks)
            }
        };
        let found = self.pruner.find(&mut place, (&run.units, &doubts), choice);
        self.figures.pruned += u64::from(found.is_some());
        let outcome = found.or_else(|| {
            let state = (cut.contents(run, choice), &run.judge);
            self.pruner.recover(&mut place, (&run.units, &doubts), choice, state)
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
        let contents = |s: &State| (s.contents.clone(), s.at);
        let recovered = self.recover_all(&run.recorded, batch.iter().map(contents).collect());
        for (state, recovered) in batch.iter().zip(recovered) {
            let (verdict, mut words) = self.verdict(recovered, state.e2fsck);
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
            if state.again {
                words.extend(self.again(&run.recorded, state));
            }
            if state.again_whole {
                words.extend(self.again_whole(&run.recorded, state));
            }
            if !words.is_empty() {
                self.found(run, &state.doubts, &state.choice, state.at, &words);
            }
        }
    }

    fn found(
        &mut self,
        run: &Cutting<'_>,
        doubts: &Doubts,
        choice: &Choice,
        at: Moment,
        words: &[String],
    ) {
        if self.figures.findings.len() < FINDINGS_KEPT {
            let story = run.units.story(doubts, choice);
            let (name, tick, words) = (run.name, at.tick, words.join("; "));
            self.figures.findings.push(format!("{name}; cut at tick {tick}, {story}: {words}"));
        }
    }

    fn count(&mut self, number: u64, verdict: &Verdict) {
        self.figures.broken += u64::from(verdict.broken);
        self.figures.stale += u64::from(verdict.stale);
        self.figures.damaged += u64::from(verdict.damaged);
        if let Some(told) = &mut self.told {
            let mut hasher = DefaultHasher::new();
            verdict.hash(&mut hasher);
            told.push((number, hasher.finish()));
        }
    }

    /// Cuts the recovery of a state too.
    fn again(&mut self, judge: &Arc<dyn Judge>, state: &State) -> Vec<String> {
        self.figures.again += 1;
        let mut choices = Rng::new(self.plan.seed ^ self.figures.distinct);
        match cut_again(&self.machine, state.contents.clone(), &mut choices) {
            Ok(contents) => {
                let recovered = self.recover_all(judge, vec![(contents, state.at)]);
                recovered.into_iter().flat_map(|r| self.account(r)).collect()
            }
            Err(why) => {
                self.figures.damaged += 1;
                vec![format!("cut again: {why}")]
            }
        }
    }

    /// Cuts the recovery of a state wherever it can be cut.
    fn again_whole(&mut self, judge: &Arc<dyn Judge>, state: &State) -> Vec<String> {
        let mut choices = Rng::new(self.plan.seed ^ self.figures.distinct);
        let recording = record_recovery(&self.machine, state.contents.clone(), choices.bits());
        let recording = match recording {
            Ok(recording) => recording,
            Err(why) => {
                self.figures.damaged += 1;
                return vec![format!("cut again: {why}")];
            }
        };
        let mut seen = HashSet::new();
        let mut left = Vec::new();
        for cut in recording.first_cut()..=recording.last_cut() {
            for keep_percent in [0, 100, 50] {
                let stores = left_at(&recording, &state.contents, cut, keep_percent, &mut choices);
                if seen.insert(stores.iter().map(Store::digest).collect::<Vec<_>>()) {
                    left.push((stores, state.at));
                }
            }
        }
        self.figures.again += left.len() as u64;
        let recovered = self.recover_all(judge, left);
        recovered.into_iter().flat_map(|r| self.account(r)).collect()
    }

    /// Lets states recover, all in one simulation. Should it stop, each in one of its own.
    fn recover_all(
        &self,
        judge: &Arc<dyn Judge>,
        states: Vec<(Vec<Store>, Moment)>,
    ) -> Vec<Recovered> {
        let (machine, inner) = (Arc::clone(&self.machine), Arc::clone(judge));
        let all = states.clone();
        let one_by_one = move || {
            let recovered = all.into_iter().map(|(c, at)| recover(&*machine, c, &*inner, at));
            recovered.collect::<Vec<_>>()
        };
        match Sim::new(self.plan.seed).run(one_by_one) {
            Ok(recovered) => recovered,
            Err(why) if states.len() == 1 => {
                let cut = Cut::unmountable(states[0].1.at, format!("recovery stopped: {why}"));
                vec![Recovered { cut, contents: None }]
            }
            Err(_) => {
                states.into_iter().flat_map(|state| self.recover_all(judge, vec![state])).collect()
            }
        }
    }

    /// What a state that was cut again has shown, counted: what is wrong with it, in words.
    fn account(&mut self, recovered: Recovered) -> Vec<String> {
        let (verdict, _) = self.verdict(recovered, false);
        self.figures.broken += u64::from(verdict.broken);
        self.figures.stale += u64::from(verdict.stale);
        self.figures.damaged += u64::from(verdict.damaged);
        verdict.words
    }

    /// What a state has shown, and what e2fsck says of it if it is to be asked.
    fn verdict(&mut self, recovered: Recovered, sampled: bool) -> (Verdict, Vec<String>) {
        let Recovered { mut cut, contents } = recovered;
        let mut said = Vec::new();
        if let Some(contents) = contents {
            let disk = &contents[self.machine.disk()];
            let found = self.checked.entry(disk.digest()).or_insert_with(|| structure(disk));
            cut.damage.extend(found.iter().cloned());
            if let Some(e2fsck) = self.e2fsck.as_ref().filter(|_| sampled) {
                let journal = self.machine.journal().map(|j| &contents[j]);
                match e2fsck.judge(disk, journal) {
                    Opinion::Clean => self.figures.e2fsck += 1,
                    Opinion::Damaged(why) => {
                        self.figures.e2fsck += 1;
                        self.figures.e2fsck_refuted += 1;
                        said.push(format!("e2fsck: {why}"));
                    }
                    Opinion::NotGiven(why) => {
                        self.figures.e2fsck_unanswered += 1;
                        said.push(format!("e2fsck gave no answer: {why}"));
                    }
                }
            }
        }
        (Verdict::of(cut), said)
    }
}
