//! What was found, in sentences: the first lines of the report.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use steadfast_crash::program::describe::counted;

use super::super::ci::findings::{Finding, Source};
use super::Report;

/// Findings that are named.
const NAMED: usize = 5;

/// Prints it, and an empty line.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    let mut seen = BTreeSet::new();
    let findings = report.results.findings.iter().filter(|finding| !finding.known);
    // What the states show and the calls explain is one finding: the calls have the fix.
    let by_calls = |finding: &Finding<'_>| matches!(finding.source, Source::Calls(_));
    let mut new: Vec<&Finding<'_>> = findings.collect();
    new.sort_by_key(|finding| !by_calls(finding));
    new.retain(|finding| seen.insert((finding.rule, finding.title.as_str())));
    let known = report.results.findings.len() - report.results.counts().1;
    let is_whole = report.results.left.is_empty() && !report.explored.stopped;
    if new.is_empty() {
        let found = if known > 0 { "nothing new" } else { "nothing" };
        let part = if is_whole { "" } else { ", which are not all" };
        writeln!(out, "Found {found} in {}{part}.\n", looked_at(report))?;
        return Ok(());
    }
    let more = if known > 0 { format!(", {known} more are known") } else { String::new() };
    writeln!(out, "Found {}{more}:", counted(new.len() as u64, "fault"))?;
    for finding in new.iter().take(NAMED) {
        writeln!(out, "  {}", finding.what)?;
        if !matches!(finding.source, Source::Reaction) {
            writeln!(out, "    on {}", finding.on)?;
        }
        if !finding.fix.is_empty() {
            writeln!(out, "    to fix it, {}", finding.fix.join(" and "))?;
        }
    }
    if new.len() > NAMED {
        writeln!(out, "  and {} more, below", new.len() - NAMED)?;
    }
    Ok(writeln!(out)?)
}

fn looked_at(report: &Report<'_>) -> String {
    let of_disk = counted(report.explored.outcome.states, "state");
    let models = report.explored.by_calls.iter().flat_map(|of| &of.reports[..of.asked]);
    let by_calls: u64 = models.map(|(_, of)| of.states).sum();
    match by_calls {
        0 => format!("{of_disk} of the recorded disk"),
        n => format!("{of_disk} of the recorded disk and {n} by the calls alone"),
    }
}
