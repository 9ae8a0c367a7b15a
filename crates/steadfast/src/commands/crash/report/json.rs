//! What came of a run under power cuts, as JSON.

use std::io::Write;

use anyhow::Result;
use serde_json::json;
use steadfast_crash::program::describe::since;
use steadfast_crash::program::explore::{NotExplored, Wrong};
use steadfast_crash::program::exposure::{CutExposure, summary};

use super::super::ci::findings::{Rule, Source};
use super::Report;
use crate::document;

/// What is wrong, as JSON.
fn wrong(wrong: &Wrong) -> serde_json::Value {
    let kind = match wrong {
        Wrong::SecondOpinion(who, _) => (*who).to_owned(),
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

/// Prints it.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    let Report { setup, run, ended, explored, results, .. } = report;
    let (outcome, totals) = (&explored.outcome, run.totals());
    let is_program = ended.server.is_none();
    let of_states = results.findings.iter().filter_map(|finding| {
        let Source::States(first) = finding.source else { return None };
        Some(json!({
            "what": finding.what,
            "fingerprint": finding.fingerprint(),
            "known": finding.known,
            "states": finding.states,
            "first_state": first.state,
            "at_seconds": since(run, first.cut.at),
            "wrong": first.wrong.iter().map(wrong).collect::<Vec<_>>(),
            "fix": finding.fix,
            "show": finding.show,
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
    let exposed = summary(&explored.exposed).map_or(json!({}), |all| {
        let one = |e: CutExposure| {
            json!({ "bytes": e.bytes, "calls": e.calls, "ms": e.age.as_secs_f64() * 1e3 })
        };
        json!({ "n": all.n, "p50": one(all.p50), "p99": all.p99.map(one), "max": one(all.max) })
    });
    let body = json!({
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
        "bad_states": outcome.bad_states,
        "second_opinions": outcome.second_opinions,
        "exposure": exposed,
        "stopped": explored.stopped,
        "budget": report.budget.map(ToString::to_string),
        "not_explored": outcome.not_explored.map(not_explored),
        "without_cut": report.without_cut,
        "troubles": outcome.troubles,
        "not_measured": report.unmeasured(),
        "findings": findings,
        "by_calls": explored.by_calls.as_ref().map(|of| of.json(run, results.findings)),
        "control": report.reactions.json(run),
        "baseline": baseline,
        "decisive": explored.decisive.as_ref().map(ToString::to_string),
        "recording": results.recording.map(|path| path.display().to_string()),
    });
    Ok(document::print(out, "steadfast-crash", 1, body)?)
}
