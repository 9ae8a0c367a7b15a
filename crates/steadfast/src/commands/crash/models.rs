//! `crash run --model`: the recorded calls alone, judged by what file systems promise.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use serde_json::json;
use steadfast_crash::persistence::explain::Explanation;
use steadfast_crash::persistence::explore::ModelExploration;
use steadfast_crash::persistence::{Model, ModelReport};
use steadfast_crash::program::describe::counted;
use steadfast_crash::program::explore::without_numbers;
use steadfast_crash::program::{Judges, ProgramRun, Tree};

use super::cli::CrashRun;
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
pub struct Finding {
    /// In words.
    pub what: String,
    /// The model that it was found under first.
    pub model: Model,
    /// States with it under that model.
    pub states: u64,
    /// Its state of the smallest number.
    pub first: u64,
    /// Under which models it was found, and under which not.
    pub wrong_on: Vec<Model>,
    pub right_on: Vec<Model>,
    /// Why, in calls.
    pub why: Explanation,
    /// What else is wrong for the same reason: the same would help.
    pub also: Vec<String>,
}

/// What came of all models.
pub struct ModelReports {
    /// One each, those that were asked for first.
    pub reports: Vec<(Model, ModelReport)>,
    /// So many of them were asked for.
    pub asked: usize,
    /// What was found under those.
    pub findings: Vec<Finding>,
    /// Somebody has asked to stop, and not all was explored.
    pub stopped: bool,
}

/// The models of `--model`; none: `none`.
pub fn asked(args: &CrashRun) -> Result<Vec<Model>, Usage> {
    if args.model == ["none"] {
        return Ok(Vec::new());
    }
    let parse = |name: &String| {
        name.parse::<Model>().map_err(|_| {
            let names: Vec<&str> = Model::all().map(Model::name).collect();
            Usage(format!("--model {name}: there are {}, and none", names.join(", ")))
        })
    };
    let mut seen = BTreeSet::new();
    let mut models = args.model.iter().map(parse).collect::<Result<Vec<Model>, Usage>>()?;
    models.retain(|model| seen.insert(*model));
    Ok(models)
}

/// Explores the models that were asked for, and, where they find something, the others: they say
/// where it is safe. `progress` gets the share that is done and says whether to go on.
pub fn explore(
    models: &[Model],
    (run, base): (&ProgramRun, &Tree),
    judge: Option<&dyn Judges>,
    (seed, workers): (u64, usize),
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> ModelReports {
    let moments = 2 * run.calls.len() + run.lines.len();
    let cuts = CUTS.min(moments.max(1));
    let states = match judge {
        Some(_) => (JUDGED / cuts).clamp(STATES_LEAST, STATES),
        None => STATES,
    };
    let exploration = ModelExploration { run, base, judge, cuts, states, seed, workers };
    let one = |model: &Model| (*model, exploration.explore(*model, &[], progress));
    let mut reports: Vec<(Model, ModelReport)> = models.iter().map(one).collect();
    let asked = reports.len();
    if reports.iter().any(|(_, report)| report.bad_states > 0) {
        let others: Vec<Model> = Model::all().filter(|model| !models.contains(model)).collect();
        reports.extend(others.iter().map(one));
    }
    let mut findings: Vec<Finding> = Vec::new();
    for (model, report) in &reports[..asked] {
        for (what, first, states) in report.grouped() {
            let kind = without_numbers(&what);
            if findings.iter().any(|finding| without_numbers(&finding.what) == kind) {
                continue;
            }
            let has = |report: &ModelReport| {
                report.grouped().iter().any(|(what, _, _)| without_numbers(what) == kind)
            };
            let (wrong_on, right_on): (Vec<_>, Vec<_>) =
                reports.iter().partition(|(_, report)| has(report));
            let names =
                |of: Vec<&(Model, ModelReport)>| of.iter().map(|(model, _)| *model).collect();
            let explain = findings.len() < EXPLAINED && progress(1.0);
            let why = explain.then(|| exploration.explain(*model, first, &|| progress(1.0)));
            // Of an exploration that was stopped, that nothing was found says nothing.
            let why = why.filter(|_| progress(1.0)).unwrap_or_default();
            let helps = !why.syncs.is_empty() || why.change.is_some();
            let same = |other: &&mut Finding| {
                helps && other.why.syncs == why.syncs && other.why.change == why.change
            };
            if let Some(other) = findings.iter_mut().find(same) {
                other.also.push(what);
                other.states += states;
                other.wrong_on = union(&other.wrong_on, names(wrong_on));
                other.right_on.retain(|model| !other.wrong_on.contains(model));
                continue;
            }
            findings.push(Finding {
                also: Vec::new(),
                what,
                model: *model,
                states,
                first: first.found.state,
                wrong_on: names(wrong_on),
                right_on: names(right_on),
                why,
            });
        }
    }
    let stopped = !progress(1.0);
    if stopped {
        findings.iter_mut().for_each(|finding| finding.right_on.clear());
    }
    ModelReports { reports, asked, findings, stopped }
}

fn union(some: &[Model], more: Vec<Model>) -> Vec<Model> {
    let all: BTreeSet<Model> = some.iter().copied().chain(more).collect();
    all.into_iter().collect()
}

fn listed(models: &[Model]) -> String {
    models.iter().map(|model| model.in_words()).collect::<Vec<_>>().join(", ")
}

/// Where it was not found, and what saves it there: known of what only ext4's heuristic or its
/// journal of data keeps, which is so if ext4 without both does not.
fn not_found_on(finding: &Finding) -> String {
    let by_data = finding.wrong_on.contains(&Model::Ext4NoautoDaAlloc);
    let why = |model: &Model| match model {
        Model::Ext4 | Model::Ext4Writeback if by_data => {
            " (it writes out what a rename puts over a file)"
        }
        Model::Ext4Journal if by_data => " (all is in the journal, in order)",
        _ => "",
    };
    let one = |model: &Model| format!("{}{}", model.in_words(), why(model));
    finding.right_on.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl ModelReports {
    /// For people.
    pub fn text(&self, run: &ProgramRun, out: &mut dyn Write) -> Result<()> {
        let asked = &self.reports[..self.asked];
        let Some(first) = asked.first() else { return Ok(()) };
        let sum =
            |of: &dyn Fn(&ModelReport) -> u64| asked.iter().map(|(_, report)| of(report)).sum();
        let (states, trees): (u64, u64) = (sum(&|r| r.states), sum(&|r| r.trees));
        writeln!(
            out,
            "\nby calls  by {}: {}, {}, {}{}",
            listed(&asked.iter().map(|(model, _)| *model).collect::<Vec<_>>()),
            counted(first.1.cuts, "instant"),
            counted(states, "state"),
            counted(trees, "different tree"),
            if self.stopped { " (stopped early)" } else { "" },
        )?;
        if self.findings.is_empty() {
            writeln!(out, "found     nothing")?;
        }
        for finding in &self.findings {
            writeln!(out, "found     {}", finding.what)?;
            for what in &finding.also {
                writeln!(out, "    or        {what}")?;
            }
            writeln!(
                out,
                "    {} of {}",
                counted(finding.states, "state"),
                finding.model.in_words()
            )?;
            let wrong: Vec<Model> =
                finding.wrong_on.iter().copied().filter(|m| *m != Model::Posix).collect();
            if !wrong.is_empty() {
                writeln!(out, "    can happen on {}", listed(&wrong))?;
            }
            if !finding.right_on.is_empty() {
                writeln!(out, "    not found on {}", not_found_on(finding))?;
            }
            let call = |place: &usize| run.calls.get(*place).map(ToString::to_string);
            for line in finding.why.there.iter().filter_map(call) {
                writeln!(out, "    there     {line}")?;
            }
            for line in finding.why.lost.iter().filter_map(call) {
                writeln!(out, "    lost      {line}")?;
            }
            for sync in &finding.why.syncs {
                writeln!(out, "    add       {} (with it this is not found)", sync.words)?;
            }
            if let Some(change) = finding.why.change {
                writeln!(out, "    instead   {}", change.in_words())?;
            }
        }
        for (_, report) in asked {
            for why in &report.unmeasured {
                writeln!(out, "    not measured: {why}")?;
            }
        }
        Ok(())
    }

    /// For programs.
    pub fn json(&self, run: &ProgramRun) -> serde_json::Value {
        let names = |models: &[Model]| models.iter().map(|m| m.name()).collect::<Vec<_>>();
        let calls = |places: &[usize]| {
            let of = places.iter().filter_map(|place| run.calls.get(*place));
            of.map(ToString::to_string).collect::<Vec<_>>()
        };
        let report = |(model, report): &(Model, ModelReport)| {
            json!({
                "model": model.name(),
                "cuts": report.cuts,
                "states": report.states,
                "trees": report.trees,
                "judged": report.judged,
                "bad_states": report.bad_states,
                "not_measured": report.unmeasured,
                "troubles": report.troubles,
            })
        };
        let finding = |finding: &Finding| {
            json!({
                "what": finding.what,
                "also": finding.also,
                "model": finding.model.name(),
                "states": finding.states,
                "first_state": finding.first,
                "wrong_on": names(&finding.wrong_on),
                "right_on": names(&finding.right_on),
                "lost": calls(&finding.why.lost),
                "there": calls(&finding.why.there),
                "add": finding.why.syncs.iter().map(|sync| &sync.words).collect::<Vec<_>>(),
                "instead": finding.why.change.map(|change| change.in_words()),
            })
        };
        json!({
            "stopped": self.stopped,
            "asked": names(&self.reports[..self.asked].iter().map(|(m, _)| *m).collect::<Vec<_>>()),
            "reports": self.reports.iter().map(report).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }
}
