//! All cuts of a run: recovered, judged, counted.

mod divided;
mod progress;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use steadfast_devices::filter::record::Moment;
use steadfast_devices::store::Store;

use super::judge::{Judges, RecoveredTree};
use super::passes::{self, Pass};
use super::recorded::{ByRules, Looks};
use super::rules::{self, Violation};
use super::{NoTree, ProgramRun, Tree, known_tree, recover};
use crate::error::{CrashError, Result};
use crate::explore::ext4::words;
use crate::explore::{Checks, Decisive, OtherJudges, Plan, System, Trial};
use crate::judge::Judge;
use crate::opinion::Opinion;
use crate::states::{State, States};
use crate::tree::KnownTree;

pub use super::passes::NotExplored;
pub use divided::{DividedExploration, ExplorationSum};
pub use progress::InstantsReport;

use progress::{ExploreProgress, TreeKey};

/// What is wrong with a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wrong {
    /// The mount was refused, or nothing could be read.
    Refused(String),
    /// The structure check of the recovered file system.
    Damage(String),
    /// The second opinion on it, or on what it left: whose, and what it is.
    SecondOpinion(Cow<'static, str>, String),
    /// The user's judge: its verdict, and all its output.
    Judge(String, String),
    /// What the file system had promised is not there.
    Promise(Violation),
    /// What the program relied on without having asked for it is not there.
    Unasked(Violation),
}

impl Wrong {
    /// In words, one line.
    pub fn what(&self) -> String {
        let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        match self {
            Wrong::Refused(why) => first(why),
            Wrong::Damage(what) => format!("damage: {}", first(what)),
            Wrong::SecondOpinion(who, what) => format!("{who}: {}", in_short(what)),
            Wrong::Judge(verdict, _) => verdict.clone(),
            Wrong::Promise(broken) => format!("a promise is broken: {}", broken.what),
            Wrong::Unasked(broken) => broken.what.clone(),
        }
    }

    /// Leaves of what a judge or another opinion has printed no more than is said in one line.
    fn shorten(&mut self) {
        match self {
            Wrong::Judge(_, output) => output.clear(),
            Wrong::SecondOpinion(_, said) => *said = in_short(said),
            _ => {}
        }
    }

    /// The same of all states that are wrong in the same way: of the rules without what differs
    /// from state to state, of others in words without numbers.
    pub fn kind(&self) -> String {
        match self {
            Wrong::Promise(broken) | Wrong::Unasked(broken) => broken.kind.clone(),
            _ => without_numbers(&self.what()),
        }
    }
}

/// What another opinion says, in one line.
fn in_short(said: &str) -> String {
    let lines = said.split_whitespace().collect::<Vec<_>>().join(" ");
    lines.chars().take(200).collect()
}

/// What is said of a tree.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// What is wrong.
    pub wrong: Vec<Wrong>,
    /// What had been promised and could not be judged, with the reason.
    pub unmeasured: BTreeSet<String>,
    /// Other opinions that were asked.
    second_opinions: u64,
}

/// A state that is wrong.
#[derive(Debug, Clone)]
pub struct WrongState {
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
pub struct ExplorationReport {
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
    pub findings: Vec<WrongState>,
    /// Recovered file systems of which another opinion was asked.
    pub second_opinions: u64,
    /// What failed on this machine, so that these states could not be judged.
    pub troubles: Vec<String>,
    /// What was promised and could not be judged at some cut, with the reason.
    pub unmeasured: BTreeSet<String>,
    /// What was left when [`Exploration::explore_by_value`] was not to go on.
    pub not_explored: Option<NotExplored>,
}

/// How to explore.
pub struct Exploration<'a> {
    /// What is cut.
    pub run: &'a ProgramRun,
    /// What recovers.
    pub system: &'a dyn System,
    /// Who judges; without, the rules do.
    pub judge: Option<&'a dyn Judges>,
    /// The crash states, what else fails, and who is asked too.
    pub plan: Plan,
    /// Equal contents are another state when more lines had been printed; else, when more calls had
    /// been made or had returned. A state's number depends on it.
    pub by_lines: bool,
    /// Threads.
    pub workers: usize,
}

impl<'a> Exploration<'a> {
    /// The states, in order.
    pub fn cuts(&self) -> States<'a> {
        let (run, by_lines) = (self.run, self.by_lines);
        run.states(self.plan.choice(), run.dense(self.plan.bound))
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
    pub fn base(&self) -> Result<Tree> {
        recover(self.system, self.run.bases.clone())?.tree.map_err(words)
    }

    /// Recovers and judges all states. `progress` gets after each how many cuts are done, of how
    /// many, and how many states; it says whether to go on.
    ///
    /// # Errors
    /// The file system before the run cannot be read.
    pub fn explore(
        &self,
        progress: &(dyn Fn(u64, u64, u64) -> bool + Sync),
    ) -> Result<ExplorationReport> {
        self.in_passes(&[Pass::All], progress)
    }

    /// The same states with the same numbers, but those first that are most likely to show
    /// something, for whoever may not have the time for all of them: where nothing or all of what
    /// is in doubt is there, at some instants, then at all of them; then the others of some
    /// instants, and of all. The states are made anew for each of these passes, which takes little
    /// of the time of judging them.
    ///
    /// # Errors
    /// As for [`explore`](Self::explore).
    pub fn explore_by_value(
        &self,
        progress: &(dyn Fn(u64, u64, u64) -> bool + Sync),
    ) -> Result<ExplorationReport> {
        self.in_passes(&Pass::BY_VALUE, progress)
    }

    fn in_passes(
        &self,
        order: &[Pass],
        progress: &(dyn Fn(u64, u64, u64) -> bool + Sync),
    ) -> Result<ExplorationReport> {
        let judging = self.judging()?;
        let shared = Mutex::new(ExploreProgress::default());
        let walked = passes::walk(order, self.workers, &|| self.cuts(), &|step| match step {
            passes::Step::Judge(state, cuts, all) => {
                let done = self.one(state, &judging, &shared);
                progress(cuts, all, done)
            }
            passes::Step::Skip(cuts, all) => progress(cuts, all, lock(&shared).states()),
        });
        let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut outcome = shared.report();
        (outcome.cuts, outcome.not_explored) = (walked.cuts, walked.left);
        Ok(outcome)
    }

    fn judging(&self) -> Result<Judging> {
        let base = self.base();
        let base =
            base.map_err(|e| CrashError::Run(format!("the file system before the run: {e}")))?;
        let rules: Arc<dyn Judge> = Arc::new(ByRules::new(self.run, base.clone()));
        let known = known_tree(self.system, self.run.bases.clone());
        Ok(Judging { base, rules, others: OtherJudges::of(&self.plan), known })
    }

    /// One state, and the second cuts that it is asked for; how many are done with it.
    fn one(&self, state: &State, judging: &Judging, shared: &Mutex<ExploreProgress>) -> u64 {
        let checks = self.plan.checks(state.number);
        let found = self.recovered(state, None, judging, checks, Some(shared));
        let mut done = lock(shared).count(state, found);
        if checks.second || checks.everywhere {
            let trial = judging.trial(self, &judging.rules, state.cut, Checks::NOTHING);
            let left = trial.second_states(&state.contents, &mut state.choices.clone(), checks);
            for left in left {
                let found = match left {
                    Ok(contents) => {
                        let nothing = Checks::NOTHING;
                        self.recovered(state, Some(contents), judging, nothing, Some(shared))
                    }
                    Err(why) => Ok(JudgedTree::refused(why.to_string())),
                };
                done = lock(shared).count(state, found);
            }
        }
        done
    }

    /// What becomes of a state, or of other contents at its crash point.
    fn recovered(
        &self,
        state: &State,
        contents: Option<Vec<Store>>,
        judging: &Judging,
        checks: Checks,
        shared: Option<&Mutex<ExploreProgress>>,
    ) -> Result<JudgedTree> {
        let looks = Arc::new(Looks::knowing(judging.known.clone()));
        let judge: Arc<dyn Judge> = Arc::clone(&looks) as Arc<dyn Judge>;
        let trial = judging.trial(self, &judge, state.cut, Checks { kernel: false, ..checks });
        let second = contents.is_none() && self.plan.second.percent > 0;
        let contents = contents.unwrap_or_else(|| state.contents.clone());
        let by_kernel = judging.trial(self, &judging.rules, state.cut, checks);
        let by_kernel = by_kernel.ask_kernel(&contents);
        let (found, contents) = match second {
            true => trial.run(contents, state.choices.clone()),
            false => trial.recover(contents, 1),
        };
        if let Some(why) = found.trouble {
            return Err(CrashError::Host(why));
        }
        let tree = match (looks.take(), found.refused) {
            (Some(tree), None) => tree.map_err(|why| NoTree::Unreadable(why).to_string()),
            (_, refused) => Err(refused.unwrap_or_default()),
        };
        let tree = match tree {
            Ok(tree) => tree,
            Err(why) => return Ok(JudgedTree::refused(why)),
        };
        let mut wrong: Vec<Wrong> = found.damage.into_iter().map(Wrong::Damage).collect();
        let promise = |what| Wrong::Promise(Violation::broken_promise(what));
        wrong.extend(found.findings.into_iter().map(promise));
        let mut second_opinions = 0;
        for (who, opinion) in [("e2fsck", found.e2fsck), ("the kernel", by_kernel)] {
            second_opinions += u64::from(opinion.is_some());
            match opinion {
                Some(Opinion::Damaged(what)) => wrong.push(Wrong::SecondOpinion(who.into(), what)),
                // What was found already is not lost for it.
                Some(Opinion::NotGiven(why)) if wrong.is_empty() => {
                    return Err(CrashError::Host(why));
                }
                Some(Opinion::NotGiven(_) | Opinion::Clean) | None => {}
            }
        }
        let key = (tree.digest(), age(self.run, self.by_lines, state.cut.tick));
        if wrong.is_empty() && shared.is_some_and(|shared| lock(shared).knows(key)) {
            return Ok(JudgedTree::Known(key, second_opinions));
        }
        let structure = wrong.is_empty();
        let mut verdict = self.verdict(&tree, contents.as_deref(), &judging.base, state.cut)?;
        wrong.append(&mut verdict.wrong);
        (verdict.wrong, verdict.second_opinions) = (wrong, second_opinions);
        // What the structure check found is this state's own, not the tree's.
        Ok(JudgedTree::Fresh(structure.then_some(key), verdict))
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
    ) -> Result<Verdict> {
        verdict(self.run, self.judge, &RecoveredTree { tree, contents }, base, cut)
    }

    /// What is wrong with the given contents at a state's crash point.
    ///
    /// # Errors
    /// The judge could not be asked.
    pub fn wrong(&self, contents: Vec<Store>, state: &State, base: &Tree) -> Result<Vec<Wrong>> {
        let rules: Arc<dyn Judge> = Arc::new(ByRules::new(self.run, Tree::default()));
        let judging =
            Judging { base: base.clone(), rules, others: OtherJudges::default(), known: None };
        match self.recovered(state, Some(contents), &judging, Checks::NOTHING, None)? {
            JudgedTree::Fresh(_, verdict) => Ok(verdict.wrong),
            JudgedTree::Known(..) => Ok(Vec::new()),
        }
    }

    /// Which of the writes in doubt make a state wrong, with so many recoveries at most. `go_on` is
    /// asked before each.
    ///
    /// # Errors
    /// The judge could not be asked, or it was not to go on.
    pub fn shrink(
        &self,
        state: &State,
        base: &Tree,
        recoveries: u32,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Decisive> {
        let mut trouble = None;
        let run = (&self.run.bases[..], &self.run.recording);
        let decisive = Decisive::find(run, state, recoveries, &mut |contents| {
            if !go_on() {
                trouble.get_or_insert_with(|| CrashError::host("stopped"));
            }
            if trouble.is_some() {
                return false;
            }
            match self.wrong(contents, state, base) {
                Ok(wrong) => !wrong.is_empty(),
                Err(why) => {
                    trouble = Some(why);
                    false
                }
            }
        });
        trouble.map_or(Ok(decisive), Err)
    }
}

/// What the judge, or without one the rules, say of what a cut has left; `base` is the tree before
/// the run.
///
/// # Errors
/// The judge could not be asked.
pub(crate) fn verdict(
    run: &ProgramRun,
    judge: Option<&dyn Judges>,
    left: &RecoveredTree<'_>,
    base: &Tree,
    cut: Moment,
) -> Result<Verdict> {
    let Some(judge) = judge else {
        let said = rules::judge(&run.calls, base, left.tree, cut.tick);
        let wrong = said
            .broken
            .into_iter()
            .map(|b| if b.promised { Wrong::Promise(b) } else { Wrong::Unasked(b) })
            .collect();
        return Ok(Verdict { wrong, unmeasured: said.unmeasured, second_opinions: 0 });
    };
    let said = judge
        .judge(left, &run.printed_text(cut.tick))
        .map_err(|e| CrashError::Host(format!("the judge could not be asked: {e}")))?;
    let wrong = said.summary().map(|verdict| Wrong::Judge(verdict, said.output));
    Ok(Verdict { wrong: wrong.into_iter().collect(), ..Verdict::default() })
}

/// Who judges, beside the user's judge.
struct Judging {
    base: Tree,
    /// The same with where its files lie.
    known: Option<Arc<KnownTree>>,
    rules: Arc<dyn Judge>,
    others: OtherJudges,
}

impl Judging {
    fn trial<'a>(
        &'a self,
        exploration: &'a Exploration<'_>,
        judge: &'a Arc<dyn Judge>,
        at: Moment,
        checks: Checks,
    ) -> Trial<'a> {
        self.others.trial((exploration.system, judge), &exploration.plan, at, checks)
    }
}

enum JudgedTree {
    Fresh(Option<TreeKey>, Verdict),
    /// It was judged before; how many other opinions were asked.
    Known(TreeKey, u64),
}

impl JudgedTree {
    fn refused(why: String) -> JudgedTree {
        let wrong = vec![Wrong::Refused(why)];
        JudgedTree::Fresh(None, Verdict { wrong, ..Verdict::default() })
    }
}

/// What a judge gets beside the tree: how many lines were printed, or how many calls had been
/// made or had returned.
fn age(run: &ProgramRun, by_lines: bool, tick: u64) -> u64 {
    match by_lines {
        true => run.printed_before(tick) as u64,
        false => run.recording.notes_before(tick).len() as u64,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Findings by what is wrong: the first state of each, and how many states there are. Numbers in
/// what follows the first colon make no difference: a judge may count, or say where.
pub fn grouped(findings: &[WrongState]) -> Vec<(String, &WrongState, u64)> {
    let mut groups: BTreeMap<String, (String, &WrongState, u64)> = BTreeMap::new();
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

/// How folders begin that are made for a state, with the word behind it and what is drawn.
const FOLDERS: &str = "steadfast-";

/// The text with '#' for what is drawn of the names of folders that are made for one state.
fn without_drawn(text: &str) -> String {
    let mut pieces = text.split(FOLDERS);
    let mut masked = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        masked.push_str(FOLDERS);
        let (word, rest) = piece.split_once('-').unwrap_or((piece, ""));
        let drawn = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        match word.bytes().all(|byte| byte.is_ascii_lowercase()) && drawn > 0 {
            true => masked.extend([word, "-#", &rest[drawn..]]),
            false => masked.push_str(piece),
        }
    }
    masked
}

/// The text with '#' for each number after its first colon, hexadecimal ones after 0x included, and
/// for what is drawn of folders' names.
pub fn without_numbers(text: &str) -> String {
    let text = &without_drawn(text);
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

    #[test]
    fn folders_of_one_state_are_no_kinds() {
        let said = |name: &str| format!("mount: /tmp/steadfast-mount-{name}: wrong fs type");
        assert_eq!(without_numbers(&said("ykK6Ak")), without_numbers(&said("Zz9abc")));
        assert_eq!(without_numbers(&said("ykK6Ak")), said("#"));
        for same in ["steadfast-", "steadfast-x", "a steadfast-Ab-cd file", "steadfast-mount-"] {
            assert_eq!(without_numbers(same), same);
        }
    }

    fn finding(state: u64, what: &str) -> WrongState {
        let cut = Moment { tick: state, at: Nanos(state) };
        let wrong = vec![Wrong::Promise(Violation::broken_promise(what.into()))];
        WrongState { state, cut, wrong, states: 2 }
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
        let kinds: Vec<_> = groups.iter().map(|(what, f, n)| (&what[..], f.state, *n)).collect();
        let promise = "a promise is broken: ";
        assert_eq!(
            kinds,
            [
                (&format!("{promise}3 rows are missing")[..], 4, 4),
                (&format!("{promise}row 0x7f is torn")[..], 5, 4)
            ]
        );
    }
}
