//! What came of a run under power cuts, as JSON.

use std::io::Write;

use anyhow::Result;
use serde_json::json;
use steadfast_crash::program::describe::since;
use steadfast_crash::program::explore::{NotExplored, Wrong, WrongState};
use steadfast_crash::program::exposure::CutExposure;

use super::super::ci::findings::{Finding, Rule, Source};
use super::super::judged::JudgedRun;
use super::{Report, several};
use crate::document;

/// What is wrong, as JSON.
fn wrong(wrong: &Wrong) -> serde_json::Value {
    let kind = match wrong {
        Wrong::SecondOpinion(who, _) => who.clone().into_owned(),
        wrong => Rule::of(wrong).name().replace('-', " "),
    };
    let output = match wrong {
        Wrong::Judge(_, output) | Wrong::SecondOpinion(_, output) => Some(output),
        _ => None,
    };
    json!({ "kind": kind, "what": wrong.what(), "output": output })
}

/// What was left, as JSON.
pub fn not_explored(left: NotExplored) -> serde_json::Value {
    let NotExplored { instants, partly, states } = left;
    json!({ "instants": instants, "instants_in_part": partly, "states": states })
}

/// The stack of the call that it is about, the innermost function first; `null` where it is not
/// known.
pub fn stack(finding: &Finding<'_>) -> serde_json::Value {
    serde_json::json!(finding.call.as_ref().map(|call| &call.stack))
}

/// Prints it: of one file system what came of it, of several what was found with where, then each.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    if let [run] = report.runs {
        let mut body = of_run(report, 0, run);
        if !report.skipped.is_empty() {
            body["skipped"] = skipped(report);
        }
        return Ok(document::print(out, "steadfast-crash", 1, body)?);
    }
    let names = |finding: &Finding<'_>, has: bool| {
        let states = several::states_of(finding, report.runs.len());
        let of = report.runs.iter().zip(states).filter(|(_, states)| states.is_some() == has);
        of.map(|(run, _)| run.setup.name.clone()).collect::<Vec<_>>()
    };
    let findings = report.results.findings.iter().map(|finding| {
        let shows = finding.show.iter().chain(finding.also.iter().flat_map(|also| &also.show));
        json!({
            "what": finding.what,
            "rule": finding.rule.name(),
            "fingerprint": finding.fingerprint(),
            "known": finding.known,
            "by_calls": matches!(finding.source, Source::Calls(_)),
            "on": names(finding, true),
            "not_on": names(finding, false),
            "fix": finding.fix,
            "stack": stack(finding),
            "show": shows.collect::<Vec<_>>(),
        })
    });
    let findings: Vec<_> = findings.collect();
    let each = report.runs.iter().enumerate();
    let each: Vec<_> = each.map(|(number, run)| of_run(report, number, run)).collect();
    let body = json!({ "findings": findings, "skipped": skipped(report), "file_systems": each });
    Ok(document::print(out, "steadfast-crash-several", 1, body)?)
}

fn skipped(report: &Report<'_>) -> serde_json::Value {
    let of = report.skipped.iter();
    of.map(|fs| json!({ "name": fs.name, "why": fs.why, "failed": fs.has_failed })).collect()
}

/// What a finding's states on one of the file systems are.
fn on_run<'a>(
    finding: &'a Finding<'a>,
    number: usize,
) -> Option<(&'a WrongState, u64, Option<&'a str>)> {
    let also = finding.also.iter().find(|also| also.run == number);
    match (&finding.source, also) {
        (_, Some(also)) => Some((also.first, also.states, also.show.as_deref())),
        (Source::States(first), _) if finding.run == number => {
            Some((first, finding.states, finding.show.as_deref()))
        }
        _ => None,
    }
}

fn of_run(report: &Report<'_>, number: usize, of: &JudgedRun<'_>) -> serde_json::Value {
    let results = report.results;
    let JudgedRun { setup, run, ended, explored, .. } = of;
    let (outcome, totals) = (&explored.outcome, run.totals());
    let is_program = ended.server.is_none();
    let of_states = results.findings.iter().filter_map(|finding| {
        let (first, states, show) = on_run(finding, number)?;
        Some(json!({
            "what": finding.what,
            "fingerprint": finding.fingerprint(),
            "known": finding.known,
            "states": states,
            "first_state": first.state,
            "at_seconds": since(run, first.cut.at),
            "wrong": first.wrong.iter().map(wrong).collect::<Vec<_>>(),
            "fix": finding.fix,
            "stack": stack(finding),
            "show": show,
        }))
    });
    let findings: Vec<_> = of_states.collect();
    let baseline = results.baseline.map(|baseline| {
        let (known, new) = results.counts();
        json!({
            "file": baseline.path.display().to_string(),
            "known": known,
            "new": new,
            "not_found": results.fixed(),
        })
    });
    let exposed = explored.exposed.map_or(json!({}), |all| {
        let one = |e: CutExposure| {
            json!({ "bytes": e.bytes, "calls": e.calls, "ms": e.age.as_secs_f64() * 1e3 })
        };
        json!({ "n": all.n, "p50": one(all.p50), "p99": all.p99.map(one), "max": one(all.max) })
    });
    json!({
        "recorded": {
            "setup": setup.in_words(),
            "seconds": totals.time.as_secs_f64(),
            "calls": run.own_calls(),
            "lines": run.lines.len(),
            "writes": totals.writes,
            "bytes": totals.bytes,
            "flushes": totals.flushes,
            "program": is_program.then(|| ended.program.in_words()),
            "client": (!is_program).then(|| ended.program.in_words()),
            "server": ended.server.as_ref().map(|server| {
                json!({ "ended": server.in_words(), "printed_last": server.last })
            }),
        },
        "cuts": outcome.cuts,
        "states": outcome.states,
        "trees": outcome.trees,
        "judged": outcome.judged,
        "judge": of.asked.as_ref().map(|asked| {
            json!({ "runs": asked.runs, "known": asked.known, "differed": asked.differed })
        }),
        "bad_states": outcome.bad_states,
        "second_opinions": outcome.second_opinions,
        "exposure": exposed,
        "stopped": explored.stopped,
        "budget": report.budget.map(ToString::to_string),
        "not_explored": outcome.not_explored.map(not_explored),
        "without_cut": of.without_cut,
        "troubles": outcome.troubles,
        "not_measured": of.unmeasured(),
        "findings": findings,
        "by_calls": explored.by_calls.as_ref().map(|of| of.json(run, results.findings)),
        "control": of.reactions.json(run),
        "baseline": baseline,
        "decisive": explored.decisive.as_ref().map(ToString::to_string),
        "recording": of.kept.as_ref().map(|path| path.display().to_string()),
    })
}
