//! `crash run --model`: the recorded calls alone, judged by what file systems promise.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use steadfast_crash::persistence::explain::Explanation;
use steadfast_crash::persistence::explore::ModelExploration;
use steadfast_crash::persistence::{Model, ModelReport};
use steadfast_crash::program::explore::{Wrong, without_numbers};
use steadfast_crash::program::{Judges, ProgramRun, Tree};

use super::setup::Setup;
use crate::Usage;

/// Instants and states of each without a judge, which cost little.
const CUTS: usize = 400;
const STATES: usize = 96;
/// Trees that a command judges, at about most: it is started for each.
const JUDGED: usize = 1200;
/// States of an instant, at the least.
const STATES_LEAST: usize = 6;
/// Kinds of findings that are explained.
const EXPLAINED: usize = 5;

/// What a model does not forbid and should not be.
#[derive(Serialize, Deserialize)]
pub struct FindingByCalls {
    /// What is wrong.
    pub wrong: Wrong,
    /// The model that it was found under first.
    pub model: Model,
    /// States with it under that model.
    pub states: u64,
    /// Its state of the smallest number.
    pub first: u64,
    /// Under which models it was found, and under which not.
    pub wrong_on: Vec<Model>,
    pub right_on: Vec<Model>,
    /// Of which models too little was explored to say.
    pub unknown_on: Vec<Model>,
    /// Why, in calls.
    pub why: Explanation,
    /// It was asked why: not of the last of many, nor where the time was up.
    pub is_explained: bool,
    /// What else is wrong for the same reason: the same would help.
    pub also: Vec<Wrong>,
}

/// What came of all models.
#[derive(Serialize, Deserialize)]
pub struct ModelReports {
    /// One each, those that were asked for first.
    pub reports: Vec<(Model, ModelReport)>,
    /// So many of them were asked for.
    pub asked: usize,
    /// What was found under those.
    pub findings: Vec<FindingByCalls>,
    /// Somebody has asked to stop, or the time was up, and not all was explored.
    pub stopped: bool,
}

/// How models are explored.
#[derive(Debug, Clone, Copy)]
pub struct ModelPlan {
    /// Decides what is drawn.
    pub seed: u64,
    /// Threads.
    pub workers: usize,
    /// The smallest losses first: there may not be the time for all.
    pub by_value: bool,
    /// Where something is found, the models that were not asked for say where it is safe: each is
    /// of one file system alone.
    pub others: bool,
}

/// The models of `--model`; none: `none`.
pub fn asked(names: &[String], setups: &[Setup]) -> Result<Vec<Model>, Usage> {
    if names == ["none"] {
        return Ok(Vec::new());
    }
    let mut seen = BTreeSet::new();
    let named = |name: &String| named(name, ", and none");
    let mut models = names.iter().map(named).collect::<Result<Vec<Model>, Usage>>()?;
    models.retain(|model| seen.insert(*model));
    let several = setups.iter().any(|setup| !setup.joined.is_empty());
    if let Some(model) = models.iter().find(|model| several && **model != Model::Posix) {
        usage!("--model {}: of one file system alone; say posix or none here", model.name());
    }
    Ok(models)
}

/// The model of this name; `more`: what else may be said.
pub fn named(name: &str, more: &str) -> Result<Model, Usage> {
    name.parse().map_err(|_| {
        let names: Vec<&str> = Model::all().map(Model::name).collect();
        Usage(format!("--model {name}: there are {}{more}", names.join(", ")))
    })
}

/// What is explored of a run: a state's number depends on it, and so on whether a judge was asked,
/// which costs more.
pub fn exploration<'a>(
    (run, base): (&'a ProgramRun, &'a Tree),
    judge: Option<&'a dyn Judges>,
    has_judge: bool,
    (seed, workers): (u64, usize),
) -> ModelExploration<'a> {
    let moments = 2 * run.calls.len() + run.lines.len();
    let cuts = CUTS.min(moments.max(1));
    let states = match has_judge {
        true => (JUDGED / cuts).clamp(STATES_LEAST, STATES),
        false => STATES,
    };
    ModelExploration { run, base, judge, cuts, states, seed, workers }
}

/// Explores the models that were asked for, and, where they find something, the others: they say
/// where it is safe. `progress` gets the share that is done and says whether to go on.
pub fn explore(
    models: &[Model],
    run: (&ProgramRun, &Tree),
    judge: Option<&dyn Judges>,
    plan: ModelPlan,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> ModelReports {
    let ModelPlan { seed, workers, by_value, others } = plan;
    let exploration = exploration(run, judge, judge.is_some(), (seed, workers));
    let one = |model: &Model| {
        let report = match by_value {
            true => exploration.explore_by_value(*model, progress),
            false => exploration.explore(*model, &[], progress),
        };
        (*model, report)
    };
    let mut reports: Vec<(Model, ModelReport)> = models.iter().map(one).collect();
    let asked = reports.len();
    if others && reports.iter().any(|(_, report)| report.bad_states > 0) {
        let others: Vec<Model> = Model::all().filter(|model| !models.contains(model)).collect();
        reports.extend(others.iter().map(one));
    }
    let mut findings: Vec<FindingByCalls> = Vec::new();
    for (model, report) in &reports[..asked] {
        for (what, first, states) in report.grouped() {
            let kind = without_numbers(&what);
            let is_same = |wrong: &Wrong| without_numbers(&wrong.what()) == kind;
            if findings.iter().any(|f| is_same(&f.wrong) || f.also.iter().any(is_same)) {
                continue;
            }
            let has = |report: &ModelReport| {
                report.grouped().iter().any(|(what, _, _)| without_numbers(what) == kind)
            };
            let Some(wrong) = first.found.wrong.first().cloned() else { continue };
            let (wrong_on, others): (Vec<_>, Vec<_>) =
                reports.iter().partition(|(_, report)| has(report));
            // Of what was left nothing is known.
            let (right_on, unknown_on): (Vec<_>, Vec<_>) =
                others.into_iter().partition(|(_, report)| report.not_explored.is_none());
            let names =
                |of: Vec<&(Model, ModelReport)>| of.iter().map(|(model, _)| *model).collect();
            let explain = findings.len() < EXPLAINED && progress(1.0);
            let why = explain.then(|| exploration.explain(*model, first, &|| progress(1.0)));
            // Of an exploration that was stopped, that nothing was found says nothing.
            let why = why.filter(|_| progress(1.0));
            let (is_explained, why) = (why.is_some(), why.unwrap_or_default());
            let helps = !why.syncs.is_empty() || why.change.is_some();
            let same = |other: &&mut FindingByCalls| {
                helps && other.why.syncs == why.syncs && other.why.change == why.change
            };
            if let Some(other) = findings.iter_mut().find(same) {
                other.also.push(wrong);
                other.states += states;
                other.wrong_on = union(&other.wrong_on, names(wrong_on));
                other.unknown_on = union(&other.unknown_on, names(unknown_on));
                other.unknown_on.retain(|model| !other.wrong_on.contains(model));
                let known = |model: &Model| {
                    !other.wrong_on.contains(model) && !other.unknown_on.contains(model)
                };
                other.right_on.retain(known);
                continue;
            }
            findings.push(FindingByCalls {
                also: Vec::new(),
                wrong,
                model: *model,
                states,
                first: first.found.state,
                wrong_on: names(wrong_on),
                right_on: names(right_on),
                unknown_on: names(unknown_on),
                why,
                is_explained,
            });
        }
    }
    let is_whole = |(_, report): &(Model, ModelReport)| report.not_explored.is_none();
    let stopped = !progress(1.0) || !reports.iter().all(is_whole);
    ModelReports { reports, asked, findings, stopped }
}

fn union(some: &[Model], more: Vec<Model>) -> Vec<Model> {
    let all: BTreeSet<Model> = some.iter().copied().chain(more).collect();
    all.into_iter().collect()
}

/// Models in words.
pub fn listed(models: &[Model]) -> String {
    models.iter().map(|model| model.in_words()).collect::<Vec<_>>().join(", ")
}
