//! All cuts of a run: recovered, judged, counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;

use super::judge::{Judges, Left};
use super::rules;
use super::{Recovers, Run, Tree};
use crate::cuts::{Choice, Cuts, State};
use crate::opinion::Opinion;

/// Findings kept in words; the counts go on.
const FINDINGS_KEPT: usize = 1000;
/// Reasons of what is not measured that are kept.
const REASONS_KEPT: usize = 100;

/// What is wrong with a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// The mount was refused, or nothing could be read.
    Refused(String),
    /// The structure check of the recovered file system.
    Damage(String),
    /// The second opinion on it.
    SecondOpinion(String),
    /// The user's judge: its verdict, and all its output.
    Judge(String, String),
    /// What the file system had promised is not there.
    Promise(String),
    /// What the program relied on without having asked for it is not there.
    Unasked(String),
}

impl Wrong {
    /// In words, one line.
    pub fn what(&self) -> String {
        let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        match self {
            Wrong::Refused(why) => first(why),
            Wrong::Damage(what) => format!("damage: {}", first(what)),
            Wrong::SecondOpinion(what) => {
                let lines = what.split_whitespace().collect::<Vec<_>>().join(" ");
                format!("e2fsck: {}", lines.chars().take(200).collect::<String>())
            }
            Wrong::Judge(verdict, _) => verdict.clone(),
            Wrong::Promise(what) => format!("a promise is broken: {what}"),
            Wrong::Unasked(what) => what.clone(),
        }
    }
}

/// What is said of a tree.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// What is wrong.
    pub wrong: Vec<Wrong>,
    /// What had been promised and could not be judged, with the reason.
    pub unmeasured: BTreeSet<String>,
}

/// A state that is wrong.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The state's number.
    pub state: u64,
    /// The cut.
    pub cut: Moment,
    /// What is wrong.
    pub wrong: Vec<Wrong>,
    /// How many states showed this very tree, to a judge who knew the same lines.
    pub states: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Instants at which the power was cut.
    pub cuts: u64,
    /// States that were recovered.
    pub states: u64,
    /// Different trees that they gave.
    pub trees: u64,
    /// Trees that were judged: the same tree again where more had been printed.
    pub judged: u64,
    /// States that were wrong.
    pub bad_states: u64,
    /// Of these, one for each tree, in the order of the states.
    pub findings: Vec<Finding>,
    /// Recovered file systems of which another opinion was asked.
    pub second_opinions: u64,
    /// What of the machine around failed: nothing is known of these states.
    pub troubles: Vec<String>,
    /// What was promised and could not be judged at some cut, with the reason.
    pub unmeasured: BTreeSet<String>,
}

/// How to explore.
pub struct Exploration<'a> {
    /// What is cut.
    pub run: &'a Run,
    /// Who recovers.
    pub recovers: &'a dyn Recovers,
    /// Who judges; without, the rules do.
    pub judge: Option<&'a dyn Judges>,
    /// The cuts and states.
    pub choice: Choice,
    /// Equal contents are another state when more lines had been printed; else, when more calls had
    /// been made or had returned. A state's number depends on it.
    pub by_lines: bool,
    /// Every n-th state gets a second opinion; 0: none.
    pub second_opinion_every: u64,
    /// Threads.
    pub workers: usize,
}

/// Where the finding is, kept for whoever sees the same.
type Verdicts = HashMap<(u128, u64), Option<usize>>;

#[derive(Default)]
struct Shared {
    outcome: Outcome,
    trees: HashMap<u128, ()>,
    verdicts: Verdicts,
}

impl<'a> Exploration<'a> {
    /// The states, in order.
    pub fn cuts(&self) -> Cuts<'a> {
        let run = self.run;
        let by_lines = self.by_lines;
        Cuts::new(&run.bases, &run.recording, self.choice)
            .with_age(move |tick| age(run, by_lines, tick))
    }

    /// The state of a number.
    pub fn state(&self, number: u64) -> Option<State> {
        self.cuts().find(|state| state.number == number)
    }

    /// The tree at the beginning of the run.
    ///
    /// # Errors
    /// It cannot be recovered.
    pub fn base(&self) -> Result<Tree, String> {
        self.recovers.recover(self.run.bases.clone())?.tree
    }

    /// Recovers and judges all states. `progress` is told after each how many cuts are done, of how
    /// many, and how many states; it says whether to go on.
    ///
    /// # Errors
    /// The file system before the run cannot be read.
    pub fn explore(
        &self,
        progress: &(dyn Fn(u64, u64, u64) -> bool + Sync),
    ) -> Result<Outcome, String> {
        let base = self.base().map_err(|e| format!("the file system before the run: {e}"))?;
        let states = Mutex::new(self.cuts());
        let all = lock(&states).cuts_left() as u64;
        let shared = Mutex::new(Shared::default());
        std::thread::scope(|scope| {
            for _ in 0..self.workers.max(1) {
                scope.spawn(|| {
                    while let Some((state, cuts)) = next(&states) {
                        let done = self.one(state, &base, &shared);
                        if !progress(cuts, all, done) {
                            break;
                        }
                    }
                });
            }
        });
        let Shared { mut outcome, trees, verdicts } =
            shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome.trees = trees.len() as u64;
        outcome.judged = verdicts.len() as u64;
        outcome.findings.sort_by_key(|finding| finding.state);
        outcome.cuts = lock(&states).cuts();
        Ok(outcome)
    }

    /// One state; how many are done with it.
    fn one(&self, state: State, base: &Tree, shared: &Mutex<Shared>) -> u64 {
        let State { number, cut, contents, .. } = state;
        let asked =
            self.second_opinion_every > 0 && number.is_multiple_of(self.second_opinion_every);
        let found = self.recovered(contents, cut, base, asked, Some(shared));
        let mut all = lock(shared);
        all.outcome.states += 1;
        match found {
            Ok(Found::Fresh(key, Verdict { wrong, unmeasured })) => {
                let reasons = &mut all.outcome.unmeasured;
                let room = REASONS_KEPT.saturating_sub(reasons.len());
                reasons.extend(unmeasured.into_iter().take(room));
                let outcome = &mut all.outcome;
                let place = (!wrong.is_empty()).then(|| {
                    outcome.bad_states += 1;
                    outcome.findings.push(Finding { state: number, cut, wrong, states: 1 });
                    outcome.findings.len() - 1
                });
                let place = place.filter(|place| *place < FINDINGS_KEPT);
                all.outcome.findings.truncate(FINDINGS_KEPT);
                if let Some(key) = key {
                    all.trees.insert(key.0, ());
                    all.verdicts.insert(key, place);
                }
            }
            Ok(Found::Known(Some(place))) => {
                all.outcome.bad_states += 1;
                // OK to index: places are of findings that were kept.
                let finding = &mut all.outcome.findings[place];
                finding.states += 1;
                if number < finding.state {
                    (finding.state, finding.cut) = (number, cut);
                }
            }
            Ok(Found::Known(None)) => {}
            Err(trouble) => all.outcome.troubles.push(trouble),
        }
        if asked {
            all.outcome.second_opinions += 1;
        }
        all.outcome.states
    }

    fn recovered(
        &self,
        contents: Vec<Store>,
        cut: Moment,
        base: &Tree,
        second_opinion: bool,
        shared: Option<&Mutex<Shared>>,
    ) -> Result<Found, String> {
        let recovered = self.recovers.recover(contents)?;
        let tree = match recovered.tree {
            Ok(tree) => tree,
            Err(why) => {
                let verdict = Verdict { wrong: vec![Wrong::Refused(why)], ..Verdict::default() };
                return Ok(Found::Fresh(None, verdict));
            }
        };
        let mut wrong: Vec<Wrong> = recovered.damage.into_iter().map(Wrong::Damage).collect();
        if let (true, Some(contents)) = (second_opinion, &recovered.contents) {
            match self.recovers.second_opinion(contents) {
                Some(Opinion::Damaged(what)) => wrong.push(Wrong::SecondOpinion(what)),
                // What was found already is not lost for it.
                Some(Opinion::NotGiven(why)) if wrong.is_empty() => return Err(why),
                Some(Opinion::NotGiven(_)) => {}
                Some(Opinion::Clean) | None => {}
            }
        }
        let key = (tree.digest(), age(self.run, self.by_lines, cut.tick));
        if wrong.is_empty()
            && let Some(known) = shared.and_then(|s| lock(s).verdicts.get(&key).copied())
        {
            return Ok(Found::Known(known));
        }
        let structure = wrong.is_empty();
        let mut verdict = self.verdict(&tree, recovered.contents.as_deref(), base, cut)?;
        wrong.append(&mut verdict.wrong);
        verdict.wrong = wrong;
        // What the structure check found is this state's own, not the tree's.
        Ok(Found::Fresh(structure.then_some(key), verdict))
    }

    /// What the judge, or without one the rules, say of a tree, and of the contents of the devices
    /// where they are known.
    ///
    /// # Errors
    /// The judge could not be asked.
    pub fn verdict(
        &self,
        tree: &Tree,
        contents: Option<&[Store]>,
        base: &Tree,
        cut: Moment,
    ) -> Result<Verdict, String> {
        let Some(judge) = self.judge else {
            let said = rules::judge(&self.run.calls, base, tree, cut.tick);
            let wrong = said
                .broken
                .into_iter()
                .map(|b| if b.promised { Wrong::Promise(b.what) } else { Wrong::Unasked(b.what) })
                .collect();
            return Ok(Verdict { wrong, unmeasured: said.unmeasured });
        };
        let said = judge
            .judge(&Left { tree, contents }, &self.run.printed_text(cut.tick))
            .map_err(|e| format!("the judge could not be asked: {e}"))?;
        let wrong = said.summary().map(|verdict| Wrong::Judge(verdict, said.output));
        Ok(Verdict { wrong: wrong.into_iter().collect(), ..Verdict::default() })
    }

    /// What is wrong with the given contents at a cut.
    ///
    /// # Errors
    /// The judge could not be asked.
    pub fn wrong(
        &self,
        contents: Vec<Store>,
        cut: Moment,
        base: &Tree,
    ) -> Result<Vec<Wrong>, String> {
        match self.recovered(contents, cut, base, false, None)? {
            Found::Fresh(_, verdict) => Ok(verdict.wrong),
            Found::Known(_) => Ok(Vec::new()),
        }
    }
}

enum Found {
    Fresh(Option<(u128, u64)>, Verdict),
    Known(Option<usize>),
}

/// What a judge is told beside the tree: how many lines were printed, or how many calls had been
/// made or had returned.
fn age(run: &Run, by_lines: bool, tick: u64) -> u64 {
    match by_lines {
        true => run.printed_before(tick) as u64,
        false => run.recording.notes_before(tick).len() as u64,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next(states: &Mutex<Cuts<'_>>) -> Option<(State, u64)> {
    let mut states = lock(states);
    let state = states.next()?;
    Some((state, states.cuts()))
}

/// Findings by what is wrong: the first state of each, and how many states there are. Numbers in
/// what follows the first colon make no difference: a judge may count, or say where.
pub fn grouped(findings: &[Finding]) -> Vec<(String, &Finding, u64)> {
    let mut groups: BTreeMap<String, (String, &Finding, u64)> = BTreeMap::new();
    for finding in findings {
        let Some(wrong) = finding.wrong.first() else { continue };
        let what = wrong.what();
        let group = groups.entry(without_numbers(&what)).or_insert((what.clone(), finding, 0));
        group.2 += finding.states;
        if finding.state < group.1.state {
            (group.0, group.1) = (what, finding);
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|(_, finding, _)| finding.state);
    groups
}

/// The text with '#' for each number after its first colon, hexadecimal ones after 0x included.
fn without_numbers(text: &str) -> String {
    let (head, mut rest) = text.split_at(text.find(": ").unwrap_or(text.len()));
    let mut masked = head.to_owned();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let len = match number.strip_prefix("0x") {
            Some(hex) => 2 + hex.bytes().take_while(u8::is_ascii_hexdigit).count(),
            None => number.bytes().take_while(u8::is_ascii_digit).count(),
        };
        masked.push_str(before);
        masked.push('#');
        rest = &number[len..];
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use steadfast_runtime::Nanos;

    use super::*;

    fn finding(state: u64, what: &str) -> Finding {
        let cut = Moment { tick: state, at: Nanos(state) };
        Finding { state, cut, wrong: vec![Wrong::Promise(what.into())], states: 2 }
    }

    #[test]
    fn kinds_are_not_split_by_numbers() {
        let findings = [
            finding(9, "12 rows are missing"),
            finding(4, "3 rows are missing"),
            finding(5, "row 0x7f is torn"),
            finding(6, "row 0xa0 is torn"),
        ];
        let groups = grouped(&findings);
        let told: Vec<_> = groups.iter().map(|(what, f, n)| (&what[..], f.state, *n)).collect();
        let promise = "a promise is broken: ";
        assert_eq!(
            told,
            [
                (&format!("{promise}3 rows are missing")[..], 4, 4),
                (&format!("{promise}row 0x7f is torn")[..], 5, 4)
            ]
        );
    }
}
