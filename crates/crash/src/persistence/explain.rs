//! Why a state is wrong, in the program's own calls, and what would help.

use std::collections::BTreeSet;

use super::explore::{ModelExploration, ModelFinding};
use super::model::{Chosen, Model, Ordered};
use super::states::Instant;
use super::steps::{Effect, Steps, Sync, Synced, name_of};
use crate::program::explore::WrongState;

/// Judgements that are spent on one finding.
const JUDGEMENTS: u32 = 300;

/// A sync that the program lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSync {
    /// fsync of what.
    pub of: Synced,
    /// In words: `fsync of settings.new before rename settings.new to settings`.
    pub words: String,
    /// Its instant.
    tick: u64,
}

impl MissingSync {
    fn sync(&self) -> Sync {
        Sync { of: self.of, began: self.tick, ended: self.tick }
    }
}

/// What else would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A file is cut or written over in place: until all of it is written, neither what it held nor
    /// what it is to hold is there.
    WriteAnew,
}

impl Change {
    /// In words.
    pub fn in_words(self) -> &'static str {
        match self {
            Change::WriteAnew => {
                "write a new file, fsync it, rename it over the old one, fsync the folder"
            }
        }
    }
}

/// Why a state is wrong.
#[derive(Debug, Clone, Default)]
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

impl ModelExploration<'_> {
    /// Why a finding of a model is wrong.
    pub fn explain(
        &self,
        model: Model,
        finding: &ModelFinding,
        go_on: &(dyn Fn() -> bool + std::marker::Sync),
    ) -> Explanation {
        let steps = Steps::of(&self.run.calls, self.base, model.halves_renames());
        let ordered = Ordered::new(&steps, model);
        let kind = kind_of(&finding.found);
        let cut = finding.survivors.cut;
        let mut spent = 0;
        let mut is_wrong = |chosen: &Chosen| {
            spent += 1;
            spent <= JUDGEMENTS && go_on() && {
                let found = WrongState { wrong: self.wrong(&ordered, chosen, cut), ..finding.found.clone() };
                kind_of(&found) == kind
            }
        };
        let (chosen, lost, there) = fewest(&ordered, &finding.survivors.chosen, cut, &mut is_wrong);
        let calls_of = |places: &[usize]| {
            let calls: BTreeSet<usize> = places.iter().map(|place| steps.all[*place].call).collect();
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
            None if missing.len() > 1 && !found(&missing) => missing,
            None => Vec::new(),
        };
        if explanation.syncs.is_empty() {
            explanation.change = in_place(&steps, &lost, &chosen).then_some(Change::WriteAnew);
        }
        explanation
    }

    /// Syncs that would have kept what is lost, each before what relies on it: a call that is there,
    /// or a line that was printed.
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
            let of: Vec<Synced> = match effect {
                Effect::Make { file, .. } | Effect::Attributes { file, .. } => {
                    vec![Synced::File(*file)]
                }
                effect if effect.is_contents() => vec![Synced::File(effect.file())],
                effect => effect.places().map(|place| Synced::Names(place.dir)).collect(),
            };
            let relies = there.iter().map(|place| steps.all[*place].call);
            let relies = relies.filter(|call| *call > step.call).min();
            let printed = self.run.lines.iter().map(|line| line.printed);
            let printed = printed.filter(|at| at.tick > step.returned && at.tick < cut.at.tick).last();
            let (tick, before) = match (relies, printed) {
                (Some(call), _) => (calls[call].started.tick, format!("before {}", calls[call])),
                (None, Some(at)) => {
                    let line = &self.run.lines[self.run.printed_before(at.tick)];
                    let text = String::from_utf8_lossy(&line.text);
                    (at.tick, format!("before it prints '{}'", crate::tree::shown(text.as_bytes())))
                }
                (None, None) => (step.returned.saturating_add(1), format!("after {}", calls[step.call])),
            };
            for of in of {
                let what = match of {
                    Synced::Names(dir) => format!("fsync of the folder {}", name_of(&calls[..], dir)),
                    Synced::File(file) => format!("fsync of {}", name_at(steps, calls, file, step.call)),
                    _ => continue,
                };
                let sync = MissingSync { of, words: format!("{what} {before}"), tick };
                if !missing.iter().any(|other| other.of == sync.of) {
                    missing.push(sync);
                }
            }
        }
        missing
    }
}

/// The file's name when a call was about it.
fn name_at(steps: &Steps, calls: &[crate::program::Call], file: u64, call: usize) -> String {
    let _ = steps;
    name_of(&calls[..=call], file)
}

/// A file was cut or written over, and not all of that is there.
fn in_place(steps: &Steps, lost: &[usize], chosen: &Chosen) -> bool {
    lost.iter().any(|place| {
        let lost = &steps.all[*place].effect;
        let file = lost.file();
        lost.is_contents()
            && steps.all.iter().zip(chosen).any(|(step, there)| {
                *there && step.effect.is_contents() && step.effect.file() == file
            })
    })
}

/// What is wrong, without numbers, so that two states are wrong in the same way.
fn kind_of(found: &WrongState) -> Option<String> {
    found.wrong.first().map(|wrong| crate::program::explore::without_numbers(&wrong.what()))
}

/// The state with as little lost as can be, and then as little there beyond what is durable; what is
/// lost, what is there.
fn fewest(
    ordered: &Ordered<'_>,
    chosen: &Chosen,
    cut: Instant,
    is_wrong: &mut dyn FnMut(&Chosen) -> bool,
) -> (Chosen, Vec<usize>, Vec<usize>) {
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
