//! Why a state is wrong, in the program's own calls, and what would help.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::explore::{ModelExploration, ModelFinding};
use super::model::{Model, StepOrder, StepSet};
use super::states::Instant;
use super::steps::{Effect, Steps, Sync, SyncScope, name_of};
use super::world::ROOT;
use crate::program::explore::{WrongState, without_numbers};
use crate::program::{Line, Origin};
use crate::tree::shown;

/// Judgements that are spent on one finding.
const JUDGEMENTS: u32 = 300;

/// A sync that the program lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingSync {
    /// fsync of what.
    pub of: SyncScope,
    /// In words: `fsync of settings.new before rename settings.new to settings`.
    pub words: String,
    /// The place of the call before or after which it belongs; before a line is printed, of what
    /// lacks it. `None`: of no call, as an msync.
    pub call: Option<usize>,
    /// Its instant.
    tick: u64,
}

impl MissingSync {
    fn sync(&self) -> Sync {
        Sync { of: self.of, began: self.tick, ended: self.tick }
    }
}

/// What else would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Several calls are one change, and nothing says after a cut between them which are done.
    Together,
    /// A file is cut or written over in place: until all of it is written, neither what it held nor
    /// what it is to hold is there.
    WriteAnew,
}

impl Change {
    /// In words.
    pub fn in_words(self) -> &'static str {
        match self {
            Change::Together => {
                "make the change with one rename, or log it first: a cut comes between its calls"
            }
            Change::WriteAnew => {
                "write a new file, fsync it, rename it over the old one, fsync the folder"
            }
        }
    }
}

/// Why a state is wrong.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Explanation {
    /// Calls whose effect is lost: without these losses nothing would be wrong.
    pub lost: Vec<usize>,
    /// Calls that are there although nothing promised them: without them nothing would be wrong.
    pub there: Vec<usize>,
    /// Syncs with which it was not found any more.
    pub syncs: Vec<MissingSync>,
    /// What else would help.
    pub change: Option<Change>,
}

impl Explanation {
    /// The place of the call that it is about: where the first sync is lacking, or else the last
    /// that is there, or the first that is lost.
    pub fn call(&self) -> Option<usize> {
        let shown = self.there.last().or(self.lost.first()).copied();
        self.syncs.first().map_or(shown, |sync| sync.call)
    }
}

impl ModelExploration<'_> {
    /// Why a finding of a model is wrong.
    pub fn explain(
        &self,
        model: Model,
        finding: &ModelFinding,
        go_on: &(dyn Fn() -> bool + std::marker::Sync),
    ) -> Explanation {
        let steps = Steps::of(&self.run.calls, self.base, model.halves_renames());
        let ordered = StepOrder::new(&steps, model);
        let kind = kind_of(&finding.found);
        let cut = finding.survivors.cut;
        let mut spent = 0;
        let mut is_wrong = |chosen: &StepSet| {
            spent += 1;
            spent <= JUDGEMENTS && go_on() && {
                let found = WrongState {
                    wrong: self.wrong(&ordered, chosen, cut),
                    ..finding.found.clone()
                };
                kind_of(&found) == kind
            }
        };
        let (chosen, lost, there) = fewest(&ordered, &finding.survivors.chosen, cut, &mut is_wrong);
        let calls_of = |places: &[usize]| {
            let calls: BTreeSet<usize> =
                places.iter().map(|place| steps.all[*place].call).collect();
            calls.into_iter().collect::<Vec<usize>>()
        };
        let mut explanation = Explanation {
            lost: calls_of(&lost),
            there: calls_of(&there),
            ..Explanation::default()
        };
        let found = |syncs: &[MissingSync]| {
            let more: Vec<Sync> = syncs.iter().map(MissingSync::sync).collect();
            let report = self.explore(model, &more, &|_| go_on());
            report.findings.iter().any(|finding| kind_of(&finding.found) == kind)
        };
        let missing = self.missing(&steps, &lost, &there, cut);
        // One of them, if one is enough; else all.
        let alone = missing.iter().find(|sync| !found(std::slice::from_ref(sync)));
        explanation.syncs = match alone {
            Some(sync) => vec![sync.clone()],
            None if missing.len() > 1 && !found(&missing) => missing.clone(),
            None => Vec::new(),
        };
        if explanation.syncs.is_empty() {
            let each = missing.iter().map(|sync| self.each_time(&steps, sync.of));
            let mut each = each.filter(|syncs| syncs.len() > 1);
            // All of them have the same words.
            explanation.syncs =
                each.find(|syncs| !found(syncs)).map_or(Vec::new(), |all| all[..1].to_vec());
        }
        if explanation.syncs.is_empty() {
            let renames = self.each_replacement(&steps, &there);
            let folders = renames.first().and_then(|_| {
                let of = missing.iter().find(|sync| matches!(sync.of, SyncScope::Names(_)))?.of;
                Some(self.each_time(&steps, of))
            });
            let both = [&renames[..], folders.as_deref().unwrap_or_default()].concat();
            explanation.syncs = match renames.first() {
                Some(rename) if !found(&renames) => vec![rename.clone()],
                Some(rename) if both.len() > renames.len() && !found(&both) => {
                    vec![rename.clone(), both[renames.len()].clone()]
                }
                _ => Vec::new(),
            };
        }
        if explanation.syncs.is_empty() {
            explanation.syncs = self.mapped(&ordered, &chosen, cut, &mut is_wrong);
        }
        if explanation.syncs.is_empty() {
            explanation.change = match (in_place(&steps, &lost, &there), lost.is_empty()) {
                (true, _) => Some(Change::WriteAnew),
                (false, true) => Some(Change::Together),
                (false, false) => None,
            };
        }
        explanation
    }

    /// An msync: what the kernel wrote back of a memory map would have made it right, after the cut
    /// or so late before it that no sync of that write would help. The store was before all of it.
    fn mapped(
        &self,
        ordered: &StepOrder<'_>,
        chosen: &StepSet,
        cut: Instant,
        is_wrong: &mut dyn FnMut(&StepSet) -> bool,
    ) -> Vec<MissingSync> {
        let (calls, all) = (&self.run.calls, &ordered.steps.all);
        let mut files: Vec<u64> = all
            .iter()
            .filter(|step| calls[step.call].origin == Origin::Kernel && step.effect.is_contents())
            .map(|step| step.effect.file())
            .collect();
        files.dedup();
        let helps = |file: &u64, is_wrong: &mut dyn FnMut(&StepSet) -> bool| {
            let with = all.iter().zip(chosen).map(|(step, there)| {
                let of_map = calls[step.call].origin == Origin::Kernel
                    && step.effect.is_contents()
                    && step.effect.file() == *file;
                *there || of_map
            });
            !is_wrong(&with.collect())
        };
        let Some(file) = files.into_iter().find(|file| helps(file, is_wrong)) else {
            return Vec::new();
        };
        let printed = self.run.printed_before(cut.at.tick).checked_sub(1);
        let (tick, before) = match printed.and_then(|line| self.run.lines.get(line)) {
            Some(line) => (line.printed.tick, before_line(line)),
            None => (cut.at.tick, "before it goes on".into()),
        };
        // A store is no call: how many there were, and which of them a line is about, nobody saw.
        let before = if self.run.lines.len() > 1 { "after each change in it" } else { &before };
        let words = format!("msync of {} {before}", name_of(calls, Some(self.base), file));
        vec![MissingSync { of: SyncScope::File(file), words, call: None, tick }]
    }

    /// A sync of the same after each call that changes it, all with the same words: where a call is
    /// made again and again, it lacks its sync each time.
    fn each_time(&self, steps: &Steps, of: SyncScope) -> Vec<MissingSync> {
        let calls = &self.run.calls;
        let (what, after) = match of {
            SyncScope::Names(ROOT) => ("the folder it works in".into(), "change in it"),
            SyncScope::Names(dir) => {
                (format!("the folder {}", name_of(calls, Some(self.base), dir)), "change in it")
            }
            SyncScope::File(file) => (name_of(calls, Some(self.base), file), "write to it"),
            _ => return Vec::new(),
        };
        let words = format!("fsync of {what} after each {after}");
        let is_of = |effect: &Effect| match of {
            SyncScope::Names(dir) => effect.places().any(|place| place.dir == dir),
            _ => !effect.is_name() && SyncScope::File(effect.file()) == of,
        };
        let changes = steps.all.iter().filter(|step| is_of(&step.effect));
        let ticks: BTreeMap<u64, usize> =
            changes.map(|step| (step.returned.saturating_add(1), step.call)).collect();
        let sync = |(tick, call)| MissingSync { of, words: words.clone(), call: Some(call), tick };
        ticks.into_iter().map(sync).collect()
    }

    /// A sync of each file before it is renamed to what another one of the program's is called: a
    /// program that saves by a rename lacks it each time.
    fn each_replacement(&self, steps: &Steps, there: &[usize]) -> Vec<MissingSync> {
        let calls = &self.run.calls;
        let target = there.iter().find_map(|place| match &steps.all[*place].effect {
            Effect::Move { to, .. } => Some(to),
            _ => None,
        });
        let moves = steps.all.iter().filter_map(|step| match &step.effect {
            Effect::Move { to, file, .. } if Some(to) == target => Some((*file, step.call)),
            _ => None,
        });
        let of_move = |(file, call): (u64, usize)| {
            let from = name_of(&calls[..call], Some(self.base), file);
            let words = format!("fsync of {from} before each rename of it");
            let tick = calls[call].started.tick;
            MissingSync { of: SyncScope::File(file), words, call: Some(call), tick }
        };
        let moves: Vec<MissingSync> = moves.map(of_move).collect();
        // What is done once has been tried.
        if moves.len() > 1 { moves } else { Vec::new() }
    }

    /// Syncs that would have kept what is lost, each before what relies on it: a call that is
    /// there, or a line that was printed.
    fn missing(
        &self,
        steps: &Steps,
        lost: &[usize],
        there: &[usize],
        cut: Instant,
    ) -> Vec<MissingSync> {
        let calls = &self.run.calls;
        let mut missing: Vec<MissingSync> = Vec::new();
        for place in lost {
            let step = &steps.all[*place];
            let effect = &step.effect;
            let of: Vec<SyncScope> = match effect {
                Effect::Make { file, .. } | Effect::Attributes { file, .. } => {
                    vec![SyncScope::File(*file)]
                }
                effect if effect.is_contents() => vec![SyncScope::File(effect.file())],
                // Of a move the new name first: it is what would be missed.
                effect => {
                    let mut of: Vec<SyncScope> =
                        effect.places().map(|place| SyncScope::Names(place.dir)).collect();
                    of.reverse();
                    of
                }
            };
            let relies = there.iter().map(|place| steps.all[*place].call);
            // Without any of them nothing would be wrong: the last one, which shows the others.
            let relies = relies.filter(|call| *call > step.call).max();
            let printed = self.run.lines.iter().map(|line| line.printed);
            let printed =
                printed.filter(|at| at.tick > step.returned && at.tick < cut.at.tick).last();
            let (call, tick, before) = match (relies, printed) {
                (Some(call), _) => {
                    (call, calls[call].started.tick, format!("before {}", calls[call]))
                }
                (None, Some(at)) => {
                    // OK to index: the line is one of these.
                    let line = &self.run.lines[self.run.printed_before(at.tick)];
                    (step.call, at.tick, before_line(line))
                }
                (None, None) => {
                    let after = format!("after {}", calls[step.call]);
                    (step.call, step.returned.saturating_add(1), after)
                }
            };
            for of in of {
                let what = match of {
                    SyncScope::Names(ROOT) => "fsync of the folder it works in".into(),
                    SyncScope::Names(dir) => {
                        format!("fsync of the folder {}", name_of(calls, Some(self.base), dir))
                    }
                    SyncScope::File(file) => {
                        // What the kernel wrote back was written through a memory map.
                        let mapped = calls[step.call].origin == Origin::Kernel;
                        let how = if mapped { "msync" } else { "fsync" };
                        format!("{how} of {}", name_of(&calls[..=step.call], Some(self.base), file))
                    }
                    _ => continue,
                };
                let words = format!("{what} {before}");
                let sync = MissingSync { of, words, call: Some(call), tick };
                if !missing.iter().any(|other| other.of == sync.of) {
                    missing.push(sync);
                }
            }
        }
        missing
    }
}

fn before_line(line: &Line) -> String {
    let says = if line.marked { "marks" } else { "prints" };
    format!("before it {says} '{}'", shown(&line.text))
}

/// A file that was there before was cut or written over, and not all of that is there.
fn in_place(steps: &Steps, lost: &[usize], there: &[usize]) -> bool {
    let of = |place: &usize| &steps.all[*place].effect;
    there.iter().map(of).any(|effect| {
        let file = effect.file();
        let is_new = there
            .iter()
            .map(of)
            .any(|other| matches!(other, Effect::Make { file: made, .. } if *made == file));
        let cut = matches!(effect, Effect::Size { shorter: true, .. });
        let torn = effect.is_contents()
            && lost.iter().map(of).any(|lost| lost.is_contents() && lost.file() == file);
        !is_new && (cut || torn)
    })
}

/// What is wrong, without numbers, so that two states are wrong in the same way.
fn kind_of(found: &WrongState) -> Option<String> {
    found.wrong.first().map(|wrong| without_numbers(&wrong.what()))
}

/// The state with as little lost as can be, and then as little there beyond what is durable; what
/// is lost, what is there.
fn fewest(
    ordered: &StepOrder<'_>,
    chosen: &StepSet,
    cut: Instant,
    is_wrong: &mut dyn FnMut(&StepSet) -> bool,
) -> (StepSet, Vec<usize>, Vec<usize>) {
    let all = &ordered.steps.all;
    let begun = all.partition_point(|step| step.started < cut.at.tick);
    let kept = ordered.durable(cut.at.tick, &[]);
    let mut chosen = chosen.clone();
    for place in (0..begun).rev() {
        if !chosen[place] {
            let mut more = chosen.clone();
            more[place] = true;
            ordered.close(&mut more);
            if is_wrong(&more) {
                chosen = more;
            }
        }
    }
    let lost: Vec<usize> = (0..begun).filter(|place| !chosen[*place]).collect();
    let mut fewer = chosen.clone();
    for place in (0..begun).rev() {
        if fewer[place] && !kept[place] {
            let mut less = fewer.clone();
            less[place] = false;
            ordered.open(&mut less, &kept);
            if is_wrong(&less) {
                fewer = less;
            }
        }
    }
    let there = (0..begun).filter(|place| fewer[*place] && !kept[*place]).collect();
    (chosen, lost, there)
}
