//! What was found, in sentences: the first lines of the report.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use steadfast_crash::persistence::Model;
use steadfast_crash::program::describe::counted;

use super::super::ci::findings::{Finding, Source};
use super::Report;
use crate::commands::crash::judged::JudgedRun;

/// Findings that are named, at most.
pub const NAMED: usize = 5;

/// Prints it, with so many findings, and an empty line; `rest`: where the others are.
pub fn print(report: &Report<'_>, (named, rest): (usize, &str), out: &mut dyn Write) -> Result<()> {
    if let Some(why) = report.runs.iter().find_map(|run| run.without_cut.as_ref()) {
        writeln!(out, "Without any cut {why}. Mend the judge, or the program, first.\n")?;
    }
    let (known, new) = (report.results.counts().0, new(report));
    let is_partial = report.runs.iter().any(JudgedRun::is_partial);
    let is_whole = report.results.left.is_empty() && !is_partial;
    if new.is_empty() {
        let found = if known > 0 { "nothing new" } else { "nothing" };
        let part = if is_whole { "" } else { ", which are not all" };
        writeln!(out, "Found {found} in {}{part}.\n", looked_at(report))?;
        return Ok(());
    }
    let more = if known > 0 { format!(", {known} more are known") } else { String::new() };
    writeln!(out, "Found {}{more}:", counted(new.len() as u64, "fault"))?;
    for finding in new.iter().take(named) {
        writeln!(out, "  {}", finding.what)?;
        if !matches!(finding.source, Source::Reaction) {
            writeln!(out, "    on {}", on(report, finding))?;
        }
        finding.print_place(out)?;
        if !finding.fix.is_empty() {
            writeln!(out, "    to fix it, {}", finding.fix.join(" and "))?;
        }
    }
    if new.len() > named {
        writeln!(out, "  and {} more{rest}", new.len() - named)?;
    }
    Ok(writeln!(out)?)
}

/// Where it was found: of what no model of a file system has, where the states show it.
fn on(report: &Report<'_>, finding: &Finding<'_>) -> String {
    let is_named = |finding: &Finding<'_>| match &finding.source {
        Source::Calls(of) => of.wrong_on.iter().any(|model| *model != Model::Posix),
        _ => true,
    };
    let same = |other: &&Finding<'_>| {
        is_named(other) && (other.rule, &other.title) == (finding.rule, &finding.title)
    };
    let shown = report.results.findings.iter().find(same).filter(|_| !is_named(finding));
    shown.unwrap_or(finding).everywhere()
}

/// The findings that nobody knows. What the states show and the calls explain is one: the calls
/// have the fix.
pub fn new<'a>(report: &Report<'a>) -> Vec<&'a Finding<'a>> {
    let mut seen = BTreeSet::new();
    let findings = report.results.findings.iter().filter(|finding| !finding.known);
    let by_calls = |finding: &Finding<'_>| matches!(finding.source, Source::Calls(_));
    let mut new: Vec<&Finding<'_>> = findings.collect();
    new.sort_by_key(|finding| !by_calls(finding));
    new.retain(|finding| seen.insert((finding.rule, finding.title.as_str())));
    new
}

/// What was looked at.
pub fn looked_at(report: &Report<'_>) -> String {
    let of_disk: u64 = report.runs.iter().map(|run| run.explored.outcome.states).sum();
    let of_disk = counted(of_disk, "state");
    let models = report.runs.iter().flat_map(|run| &run.explored.by_calls);
    let models = models.flat_map(|of| &of.reports[..of.asked]);
    let by_calls: u64 = models.map(|(_, of)| of.states).sum();
    let disks = match report.runs.len() {
        1 if report.runs[0].setup.joined.is_empty() => "of the recorded disk".to_owned(),
        1 => "of the recorded disks".to_owned(),
        n => format!("of the recorded disks of {n} file systems"),
    };
    match by_calls {
        0 => format!("{of_disk} {disks}"),
        n => format!("{of_disk} {disks} and {n} by the calls alone"),
    }
}
