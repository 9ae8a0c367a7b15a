//! What the calls alone may leave: for people, and as JSON.

use std::io::Write;

use anyhow::Result;
use serde_json::json;
use steadfast_crash::persistence::{Model, ModelReport};
use steadfast_crash::program::ProgramRun;
use steadfast_crash::program::describe::counted;
use steadfast_crash::program::explore::Wrong;

use super::ci::findings::{CallPlace, Finding, Source};
use super::models::{FindingByCalls, ModelReports, listed};
use super::report::KNOWN;
use super::report::json::{not_explored, stack};

/// Where it was not found, and what saves it there: known of what only ext4's heuristic or its
/// journal of data keeps, which is so if ext4 without both does not.
fn not_found_on(finding: &FindingByCalls) -> String {
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

impl FindingByCalls {
    /// What would help, each as it could be told to do.
    pub fn fix(&self) -> Vec<String> {
        let syncs = self.why.syncs.iter().map(|sync| format!("add {}", sync.words));
        syncs.chain(self.why.change.map(|change| change.in_words().to_owned())).collect()
    }

    /// What is known of it beside what is wrong, in lines.
    pub fn lines(&self, run: &ProgramRun) -> Vec<String> {
        let mut lines: Vec<String> =
            self.also.iter().map(|wrong| format!("or        {}", wrong.what())).collect();
        lines.push(format!("{} of {}", counted(self.states, "state"), self.model.in_words()));
        let wrong: Vec<Model> =
            self.wrong_on.iter().copied().filter(|m| *m != Model::Posix).collect();
        if !wrong.is_empty() {
            lines.push(format!("may happen on {}", listed(&wrong)));
        }
        if !self.unknown_on.is_empty() {
            let on = listed(&self.unknown_on);
            lines.push(format!("not known of {on}: too little was explored"));
        }
        if !self.right_on.is_empty() {
            lines.push(format!("not found on {}", not_found_on(self)));
        }
        if !self.is_explained {
            lines.push("not explained: there was no time, or there are too many".into());
        }
        let call = |place: &usize| run.calls.get(*place).map(ToString::to_string);
        let there = self.why.there.iter().filter_map(call);
        lines.extend(there.map(|line| format!("there     {line}")));
        let lost = self.why.lost.iter().filter_map(call);
        lines.extend(lost.map(|line| format!("lost      {line}")));
        let add = |words: &str| format!("add       {words} (with it this is not found)");
        lines.extend(self.why.syncs.iter().map(|sync| add(&sync.words)));
        lines.extend(self.why.change.map(|change| format!("instead   {}", change.in_words())));
        lines
    }
}

impl ModelReports {
    /// For people; what was found by the calls is in the list of all findings.
    pub fn text(
        &self,
        run: &ProgramRun,
        findings: &[Finding<'_>],
        out: &mut dyn Write,
    ) -> Result<()> {
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
            let but = if self.stopped { " in what was explored" } else { "" };
            writeln!(out, "found     nothing{but}")?;
        }
        for finding in findings {
            let Source::Calls(of_calls) = finding.source else { continue };
            writeln!(out, "found     {}", finding.what)?;
            let place = finding.call.iter().flat_map(CallPlace::lines);
            for line in place.chain(of_calls.lines(run)) {
                writeln!(out, "    {line}")?;
            }
            if let Some(command) = &finding.show {
                writeln!(out, "    {command}")?;
            }
            if finding.known {
                writeln!(out, "    {KNOWN}")?;
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
    pub fn json(&self, run: &ProgramRun, findings: &[Finding<'_>]) -> serde_json::Value {
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
                "not_explored": report.not_explored.map(not_explored),
            })
        };
        let finding = |listed: &Finding<'_>| {
            let Source::Calls(finding) = listed.source else { return None };
            Some(json!({
                "what": listed.what,
                "also": finding.also.iter().map(Wrong::what).collect::<Vec<_>>(),
                "fingerprint": listed.fingerprint(),
                "fingerprints": listed.fingerprints,
                "known": listed.known,
                "model": finding.model.name(),
                "states": finding.states,
                "first_state": finding.first,
                "wrong_on": names(&finding.wrong_on),
                "right_on": names(&finding.right_on),
                "unknown_on": names(&finding.unknown_on),
                "explained": finding.is_explained,
                "lost": calls(&finding.why.lost),
                "there": calls(&finding.why.there),
                "add": finding.why.syncs.iter().map(|sync| &sync.words).collect::<Vec<_>>(),
                "instead": finding.why.change.map(|change| change.in_words()),
                "stack": stack(listed),
                "show": listed.show,
            }))
        };
        json!({
            "stopped": self.stopped,
            "asked": names(&self.reports[..self.asked].iter().map(|(m, _)| *m).collect::<Vec<_>>()),
            "reports": self.reports.iter().map(report).collect::<Vec<_>>(),
            "findings": findings.iter().filter_map(finding).collect::<Vec<_>>(),
        })
    }
}
