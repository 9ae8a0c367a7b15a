//! `crash run --model`: the recorded calls alone, judged by what file systems promise.

use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZero;

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
    seed: u64,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> ModelReports {
    let moments = 2 * run.calls.len() + run.lines.len();
    let cuts = CUTS.min(moments.max(1));
    let states = match judge {
        Some(_) => (JUDGED / cuts).clamp(STATES_LEAST, STATES),
        None => STATES,
    };
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
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
            let why = match explain {
                true => exploration.explain(*model, first, &|| progress(1.0)),
                false => Explanation::default(),
            };
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
    ModelReports { reports, asked, findings }
}

fn union(some: &[Model], more: Vec<Model>) -> Vec<Model> {
    let all: BTreeSet<Model> = some.iter().copied().chain(more).collect();
    all.into_iter().collect()
}

/// Why a model has no such state.
fn saved_by(model: Model) -> &'static str {
    match model {
        Model::Ext4 | Model::Ext4Writeback => " (it writes out what a rename puts over a file)",
        Model::Ext4Journal => " (all is in the journal, in order)",
        _ => " (names are in the journal, in order)",
    }
}

fn listed(models: &[Model], because: bool) -> String {
    let one = |model: &Model| {
        format!("{}{}", model.in_words(), if because { saved_by(*model) } else { "" })
    };
    models.iter().map(one).collect::<Vec<_>>().join(", ")
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
            "\nby calls  by {}: {}, {}, {}",
            asked.iter().map(|(model, _)| model.in_words()).collect::<Vec<_>>().join(", "),
            counted(first.1.cuts, "instant"),
            counted(states, "state"),
            counted(trees, "different tree"),
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
                writeln!(out, "    can happen on {}", listed(&wrong, false))?;
            }
            if !finding.right_on.is_empty() {
                writeln!(out, "    cannot on {}", listed(&finding.right_on, true))?;
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
            "asked": names(&self.reports[..self.asked].iter().map(|(m, _)| *m).collect::<Vec<_>>()),
            "reports": self.reports.iter().map(report).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }
}
