//! What is counted while states are judged, and the form in which it is handed to another process.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use steadfast_devices::filter::record::Moment;
use steadfast_runtime::Nanos;

use super::{ExplorationReport, JudgedTree, Verdict, Wrong, WrongState};
use crate::error::{CrashError, Result};
use crate::states::State;

/// Findings kept in words; the counts go on.
const FINDINGS_KEPT: usize = 1000;
/// Reasons of what is not measured that are kept: the first by their letters.
const REASONS_KEPT: usize = 100;
/// Bytes of what judges have printed that are handed on with some instants, at most.
const OUTPUT_HANDED_ON: usize = 2 << 20;

/// What is said where a tree was judged twice, by two processes.
const DIFFERS: &str = "the judge says of one and the same tree that it is good, and that it is not";

/// What is judged: a tree by its digest, and what a judge knows beside it.
pub(super) type TreeKey = (u128, u64);

/// What is known of a tree that was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreePlace {
    Good,
    /// It is wrong; where the finding is.
    Kept(usize),
    /// It is wrong, and was one too many to be kept in words.
    Counted,
}

impl TreePlace {
    fn is_good(self) -> bool {
        self == TreePlace::Good
    }
}

/// What was counted so far.
#[derive(Default)]
pub(super) struct ExploreProgress {
    outcome: ExplorationReport,
    /// In order: what is written of it is the same each time.
    places: BTreeMap<TreeKey, TreePlace>,
}

/// What the states of some instants have shown, for whoever joins it with that of the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstantsReport {
    cuts: u64,
    states: u64,
    bad_states: u64,
    second_opinions: u64,
    findings: Vec<HandedFinding>,
    trees: Vec<HandedTree>,
    unmeasured: BTreeSet<String>,
    troubles: Vec<String>,
}

/// A state that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HandedFinding {
    state: u64,
    /// The cut: a [`Moment`] is written without its time.
    tick: u64,
    at: u64,
    states: u64,
    wrong: Vec<Wrong>,
}

/// A tree that was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HandedTree {
    /// Its digest in hexadecimal digits: JSON has no such large numbers.
    tree: String,
    age: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finding: Option<usize>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    counted: bool,
}

impl ExploreProgress {
    /// How many states there are.
    pub fn states(&self) -> u64 {
        self.outcome.states
    }

    /// Whether it was judged.
    pub fn knows(&self, key: TreeKey) -> bool {
        self.places.contains_key(&key)
    }

    /// Counts a state; how many there are with it.
    pub fn count(&mut self, state: &State, found: Result<JudgedTree>) -> u64 {
        self.outcome.states += 1;
        match found {
            Ok(JudgedTree::Fresh(key, verdict)) => {
                let Verdict { wrong, unmeasured, second_opinions } = verdict;
                self.outcome.second_opinions += second_opinions;
                self.unmeasured(unmeasured);
                let found = WrongState { state: state.number, cut: state.cut, wrong, states: 1 };
                self.found(key, found);
            }
            Ok(JudgedTree::Known(key, second_opinions)) => {
                self.outcome.second_opinions += second_opinions;
                self.again(key, state.number, state.cut, 1);
            }
            Err(trouble) => self.outcome.troubles.push(trouble.to_string()),
        }
        self.outcome.states
    }

    fn unmeasured(&mut self, reasons: BTreeSet<String>) {
        let kept = &mut self.outcome.unmeasured;
        kept.extend(reasons);
        while kept.len() > REASONS_KEPT {
            kept.pop_last();
        }
    }

    /// Takes in what was said of a tree, which may be that nothing is wrong. Another one may have
    /// judged it meanwhile.
    fn found(&mut self, key: Option<TreeKey>, found: WrongState) {
        if let Some(key) = key.filter(|key| self.knows(*key)) {
            return self.again(key, found.state, found.cut, found.states);
        }
        let place = self.keep(found);
        if let Some(key) = key {
            self.places.insert(key, place);
        }
    }

    fn keep(&mut self, found: WrongState) -> TreePlace {
        if found.wrong.is_empty() {
            return TreePlace::Good;
        }
        self.outcome.bad_states = self.outcome.bad_states.saturating_add(found.states);
        let findings = &mut self.outcome.findings;
        if findings.len() >= FINDINGS_KEPT {
            return TreePlace::Counted;
        }
        findings.push(found);
        TreePlace::Kept(findings.len() - 1)
    }

    /// The same tree in more states, of which this is the first.
    fn again(&mut self, key: TreeKey, number: u64, cut: Moment, states: u64) {
        match self.places.get(&key) {
            None | Some(TreePlace::Good) => return,
            Some(TreePlace::Counted) => {}
            Some(TreePlace::Kept(place)) => {
                if let Some(finding) = self.outcome.findings.get_mut(*place) {
                    finding.states = finding.states.saturating_add(states);
                    if number < finding.state {
                        (finding.state, finding.cut) = (number, cut);
                    }
                }
            }
        }
        self.outcome.bad_states = self.outcome.bad_states.saturating_add(states);
    }

    /// What came of it; instants are the caller's to count.
    pub fn report(self) -> ExplorationReport {
        let trees: HashSet<u128> = self.places.keys().map(|(tree, _)| *tree).collect();
        let mut outcome = self.outcome;
        outcome.trees = trees.len() as u64;
        outcome.judged = self.places.len() as u64;
        outcome.findings.sort_by_key(|finding| finding.state);
        outcome
    }

    /// The same for another process, of so many instants.
    pub fn handed_on(self, cuts: u64) -> InstantsReport {
        let ExploreProgress { outcome, places } = self;
        let ExplorationReport { states, bad_states, second_opinions, .. } = outcome;
        let trees = places.into_iter().map(|((tree, age), place)| HandedTree {
            tree: format!("{tree:032x}"),
            age,
            finding: match place {
                TreePlace::Kept(place) => Some(place),
                TreePlace::Good | TreePlace::Counted => None,
            },
            counted: place == TreePlace::Counted,
        });
        InstantsReport {
            cuts,
            states,
            bad_states,
            second_opinions,
            trees: trees.collect(),
            findings: handed_on(outcome.findings),
            unmeasured: outcome.unmeasured,
            troubles: outcome.troubles,
        }
    }

    /// Takes in what another process has handed on: of instants after those that were taken in.
    ///
    /// # Errors
    /// It is not as it is handed on.
    pub fn join(&mut self, report: InstantsReport) -> Result<u64> {
        let mut keys: BTreeMap<usize, TreeKey> = BTreeMap::new();
        let mut others = Vec::new();
        for HandedTree { tree, age, finding, counted } in report.trees {
            let digest = u128::from_str_radix(&tree, 16);
            let bad = |_| CrashError::Part(format!("'{tree}' is no digest of a tree"));
            let key = (digest.map_err(bad)?, age);
            match finding {
                Some(place) => drop(keys.insert(place, key)),
                None if counted => others.push((key, TreePlace::Counted)),
                None => others.push((key, TreePlace::Good)),
            }
        }
        let outcome = &mut self.outcome;
        outcome.states = outcome.states.saturating_add(report.states);
        outcome.second_opinions = outcome.second_opinions.saturating_add(report.second_opinions);
        outcome.troubles.extend(report.troubles);
        self.unmeasured(report.unmeasured);
        // What was too much to be kept there, is here.
        let named: u64 = report.findings.iter().map(|f| f.states).fold(0, u64::saturating_add);
        let more = report.bad_states.saturating_sub(named);
        self.outcome.bad_states = self.outcome.bad_states.saturating_add(more);
        for (place, found) in report.findings.into_iter().enumerate() {
            let HandedFinding { state, tick, at, states, wrong } = found;
            if wrong.is_empty() {
                let what = format!("nothing is wrong with state {state}, which is a finding");
                return Err(CrashError::Part(what));
            }
            let key = keys.get(&place).copied();
            if key.is_some_and(|key| self.places.get(&key) == Some(&TreePlace::Good)) {
                self.outcome.troubles.push(DIFFERS.into());
                continue;
            }
            let cut = Moment { tick, at: Nanos(at) };
            self.found(key, WrongState { state, cut, wrong, states });
        }
        for (key, place) in others {
            match self.places.entry(key) {
                Entry::Vacant(vacant) => drop(vacant.insert(place)),
                Entry::Occupied(known) if known.get().is_good() == place.is_good() => {}
                Entry::Occupied(_) => self.outcome.troubles.push(DIFFERS.into()),
            }
        }
        Ok(report.cuts)
    }
}

/// What is wrong, with all that judges have said of the first state of each kind: more is never
/// shown.
fn handed_on(findings: Vec<WrongState>) -> Vec<HandedFinding> {
    let mut kinds = HashSet::new();
    let mut room = OUTPUT_HANDED_ON;
    let one = |WrongState { state, cut, mut wrong, states }: WrongState| {
        let is_first = wrong.first().is_some_and(|first| kinds.insert(first.kind()));
        for wrong in &mut wrong {
            let (Wrong::Judge(_, output) | Wrong::SecondOpinion(_, output)) = &wrong else {
                continue;
            };
            match room.checked_sub(output.len()).filter(|_| is_first) {
                Some(left) => room = left,
                None => wrong.shorten(),
            }
        }
        HandedFinding { state, tick: cut.tick, at: cut.at.0, states, wrong }
    };
    findings.into_iter().map(one).collect()
}
