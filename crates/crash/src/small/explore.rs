//! Records sequences, cuts them everywhere, and judges every state that is new.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;
use steadfast_runtime::Sim;

use super::machine::{Run, SmallMachine};
use super::sequence::Sequence;
use super::states::{Bound, Choice, Doubts, Units};
use crate::e2fsck::E2fsck;
use crate::explore::{
    Machine, Recorded, Recovered, cut_again, left_at, record_recovery, recover, structure,
};
use crate::figures::Cut;
use crate::judge::Judge;
use crate::opinion::Opinion;

/// Findings kept in words; the counts go on.
const FINDINGS_KEPT: usize = 12;
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

/// What was explored, and what it showed.
#[derive(Debug, Clone, Default)]
pub struct Explored {
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
    /// Recoveries cut in their turn, judged too.
    pub again: u64,
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

impl Explored {
    /// How many states are not as they must be, or not known to be.
    pub fn wrong(&self) -> u64 {
        self.broken + self.stale + self.damaged + self.e2fsck_refuted + self.e2fsck_unanswered
    }

    /// Adds another part of the same exploration.
    pub fn add(&mut self, other: Explored) {
        self.sequences += other.sequences;
        self.cuts += other.cuts;
        self.exhausted += other.exhausted;
        self.states += other.states;
        self.distinct += other.distinct;
        self.again += other.again;
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

impl std::fmt::Display for Explored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} sequences, {} cuts ({} exhausted), {} states, {} distinct, {} cut again: {} broken \
             promises, {} stale, {} damaged, {} of {} refuted by e2fsck, {} without its answer",
            self.sequences,
            self.cuts,
            self.exhausted,
            self.states,
            self.distinct,
            self.again,
            self.broken,
            self.stale,
            self.damaged,
            self.e2fsck_refuted,
            self.e2fsck,
            self.e2fsck_unanswered
        )
    }
}

/// A state to be judged.
struct State {
    contents: Vec<Store>,
    at: Moment,
    /// For people, made when it is needed.
    doubts: Arc<Doubts>,
    choice: Choice,
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
        let sequences = std::slice::from_ref(sequence);
        let run = machine.record(sequences, None)?;
        explorer.sequences(&format!("sequence {number}, {sequence}"), sequences, run);
        progress(&explorer.figures);
    }
    Ok(explorer.figures)
}

pub(super) struct Explorer {
    machine: Arc<dyn Machine>,
    plan: Plan,
    e2fsck: Option<E2fsck>,
    /// States judged: base, what was done and promised, contents.
    seen: HashSet<(u64, u128)>,
    /// What the structure check said of recovered disks: most states recover to few.
    checked: HashMap<u128, Vec<String>>,
    pub figures: Explored,
}

impl Explorer {
    pub fn new(machine: &SmallMachine, plan: &Plan) -> Explorer {
        let shared: Arc<dyn Machine> = Arc::new(machine.clone());
        Explorer {
            machine: shared,
            plan: *plan,
            e2fsck: (plan.e2fsck_every > 0).then(E2fsck::find).flatten(),
            seen: HashSet::new(),
            checked: HashMap::new(),
            figures: Explored::default(),
        }
    }

    /// Cuts a recorded run everywhere. `sequences` are what its tasks did, `name` is for people.
    pub fn sequences(&mut self, name: &str, sequences: &[Sequence], run: Run) {
        self.figures.sequences += 1;
        let Run { recorded, begin, progress, judge: promised } = run;
        let Recorded { bases, recording, judge } = recorded;
        let units = Units::new(&recording, &bases);
        let start: Vec<u128> = bases.iter().map(Store::digest).collect();
        let mut batch = Vec::new();
        let mut last = None;
        for cut in begin..=recording.last_cut() {
            let before = |of_task: &Vec<(u64, u64)>| {
                let started = of_task.iter().filter(|(s, _)| *s < cut).count();
                (started, of_task.iter().filter(|(_, a)| *a < cut).count())
            };
            let counts: Vec<(usize, usize)> = progress.iter().map(before).collect();
            let doubts = Arc::new(units.at(&recording, cut));
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
                promised.joint(cut).hash(&mut hasher);
            }
            let context = hasher.finish();
            let choices = doubts.choices(self.plan.bound, self.plan.seed ^ context);
            self.figures.cuts += 1;
            self.figures.exhausted += u64::from(doubts.count() <= self.plan.bound.exhaustive);
            let at = Moment { tick: cut, at: recording.time_of(cut) };
            let mut sure = None;
            for choice in choices {
                self.figures.states += 1;
                if !self.seen.insert((context, units.digest(&doubts, &choice))) {
                    continue;
                }
                self.figures.distinct += 1;
                let number = self.figures.distinct;
                let nth = |every: u64| every > 0 && number.is_multiple_of(every);
                let sure = sure.get_or_insert_with(|| units.sure(&doubts, &bases));
                let contents = units.contents(&doubts, sure, &choice);
                if nth(self.plan.keep_every) {
                    self.figures.kept.push(contents.clone());
                }
                batch.push(State {
                    contents,
                    at,
                    doubts: Arc::clone(&doubts),
                    choice,
                    again: nth(self.plan.again_every),
                    again_whole: nth(self.plan.again_whole_every),
                    e2fsck: nth(self.plan.e2fsck_every),
                });
                if batch.len() == BATCH {
                    self.judge(name, &units, &judge, std::mem::take(&mut batch));
                }
            }
        }
        self.judge(name, &units, &judge, batch);
    }

    fn judge(&mut self, name: &str, units: &Units, judge: &Arc<dyn Judge>, b: Vec<State>) {
        let contents = |s: &State| (s.contents.clone(), s.at);
        let recovered = self.recover_all(judge, b.iter().map(contents).collect());
        for (state, recovered) in b.iter().zip(recovered) {
            let e2fsck = state.e2fsck;
            let mut words = self.account(recovered, e2fsck);
            if state.again {
                words.extend(self.again(judge, state));
            }
            if state.again_whole {
                words.extend(self.again_whole(judge, state));
            }
            if !words.is_empty() && self.figures.findings.len() < FINDINGS_KEPT {
                let story = units.story(&state.doubts, &state.choice);
                self.figures.findings.push(format!(
                    "{name}; cut at tick {}, {story}: {}",
                    state.at.tick,
                    words.join("; ")
                ));
            }
        }
    }

    /// Cuts the recovery of a state too.
    fn again(&mut self, judge: &Arc<dyn Judge>, state: &State) -> Vec<String> {
        self.figures.again += 1;
        let mut choices = Rng::new(self.plan.seed ^ self.figures.distinct);
        match cut_again(&self.machine, state.contents.clone(), &mut choices) {
            Ok(contents) => {
                let recovered = self.recover_all(judge, vec![(contents, state.at)]);
                recovered.into_iter().flat_map(|r| self.account(r, false)).collect()
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
        recovered.into_iter().flat_map(|r| self.account(r, false)).collect()
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

    /// Counts what a state has shown; what is wrong with it, in words.
    fn account(&mut self, recovered: Recovered, sampled: bool) -> Vec<String> {
        let Recovered { mut cut, contents } = recovered;
        if let Some(contents) = contents {
            let disk = &contents[self.machine.disk()];
            let found = self.checked.entry(disk.digest()).or_insert_with(|| structure(disk));
            cut.damage.extend(found.iter().cloned());
            if let Some(e2fsck) = self.e2fsck.as_ref().filter(|_| sampled) {
                let journal = self.machine.journal().map(|j| &contents[j]);
                match e2fsck.judge(disk, journal) {
                    Opinion::Clean => self.figures.e2fsck += 1,
                    Opinion::Damaged(said) => {
                        self.figures.e2fsck += 1;
                        self.figures.e2fsck_refuted += 1;
                        cut.findings.push(format!("e2fsck: {said}"));
                    }
                    Opinion::NotGiven(why) => {
                        self.figures.e2fsck_unanswered += 1;
                        cut.findings.push(format!("e2fsck gave no answer: {why}"));
                    }
                }
            }
        }
        self.figures.broken += u64::from(cut.broken_promises > 0);
        self.figures.stale += u64::from(cut.stale_bytes > 0);
        self.figures.damaged += u64::from(!cut.damage.is_empty());
        cut.findings.into_iter().chain(cut.damage).collect()
    }
}
