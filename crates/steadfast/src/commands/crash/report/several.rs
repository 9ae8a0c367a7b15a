//! What came of a program on several file systems: what was found, and on which of them.

use std::io::Write;

use anyhow::Result;
use steadfast_crash::program::describe::counted;

use super::super::ci::findings::{Finding, Source};
use super::super::judged::JudgedRun;
use super::{KNOWN, Report, answer, in_numbers, troubles};

/// Findings that are shown with their commands.
const SHOWN: usize = 12;

/// A finding's states on each file system; `None` where it was not found there.
pub fn states_of(finding: &Finding<'_>, runs: usize) -> Vec<Option<u64>> {
    let mut states = vec![None; runs];
    let of_disks = matches!(finding.source, Source::States(_));
    let first = of_disks.then_some((finding.run, finding.states));
    let also = finding.also.iter().map(|also| (also.run, also.states));
    for (run, count) in first.into_iter().chain(also) {
        if let Some(of) = states.get_mut(run) {
            *of = Some(count);
        }
    }
    states
}

/// Prints what fits a terminal: so many findings in sentences, and a line for each file system.
pub fn screen(report: &Report<'_>, named: usize, out: &mut dyn Write) -> Result<()> {
    answer::print(report, (named, ""), out)?;
    let findings = report.results.findings.iter();
    let of_disks: Vec<&Finding<'_>> =
        findings.filter(|f| matches!(f.source, Source::States(_))).collect();
    table(report, &of_disks, out)?;
    writeln!(out)?;
    skipped(report, out)?;
    for run in report.runs {
        if let Some(why) = &run.without_cut {
            writeln!(out, "note      {}: also without any cut {why}", run.setup.name)?;
        }
        for line in troubles(&run.explored.outcome.troubles).iter().take(1) {
            writeln!(out, "trouble   {}: {line}", run.setup.name)?;
        }
    }
    super::screen::of_unmeasured(report, out)?;
    super::screen::first(report, out)
}

/// Prints all of it.
pub fn text(report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    let findings = report.results.findings;
    let of_disks: Vec<&Finding<'_>> =
        findings.iter().filter(|f| matches!(f.source, Source::States(_))).collect();
    let is_elsewhere = |f: &&Finding<'_>| {
        !matches!(f.source, Source::States(_)) && !of_disks.iter().any(|disk| disk.is_same(f))
    };
    let others: Vec<&Finding<'_>> = findings.iter().filter(is_elsewhere).collect();
    if findings.is_empty() {
        let partial = report.runs.iter().any(JudgedRun::is_partial);
        let part = if partial { ", which are not all" } else { "" };
        writeln!(out, "Found nothing in {}{part}.", answer::looked_at(report))?;
    } else if of_disks.is_empty() {
        let on = counted(report.runs.len() as u64, "file system");
        writeln!(out, "Found nothing on {on}; elsewhere:")?;
    } else {
        let faults = counted(of_disks.len() as u64, "fault");
        writeln!(out, "Found {faults} on {}:", counted(report.runs.len() as u64, "file system"))?;
    }
    for finding in of_disks.iter().take(SHOWN) {
        of_finding(finding, report, out)?;
    }
    for finding in others.iter().take(SHOWN) {
        writeln!(out, "\n  {}", finding.what)?;
        match &finding.source {
            Source::Calls(_) => writeln!(out, "    by the calls alone: {}", finding.on)?,
            _ => writeln!(out, "    on {}", finding.on)?,
        }
        ends(finding, out)?;
    }
    let more = of_disks.len().saturating_sub(SHOWN) + others.len().saturating_sub(SHOWN);
    if more > 0 {
        writeln!(out, "\n  and {more} more (--json has all)")?;
    }
    writeln!(out)?;
    table(report, &of_disks, out)?;
    writeln!(out)?;
    of_runs(report, out)
}

fn of_finding(finding: &Finding<'_>, report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\n  {}", finding.what)?;
    let runs = report.runs;
    let states = states_of(finding, runs.len());
    let named = |has: bool| {
        let of = runs.iter().zip(&states).filter(|(_, states)| states.is_some() == has);
        of.map(|(run, _)| run.setup.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    match named(false) {
        none if none.is_empty() => writeln!(out, "    on all of them")?,
        not => writeln!(out, "    only on {}; not on {not}", named(true))?,
    }
    let by_calls = |f: &&Finding<'_>| matches!(f.source, Source::Calls(_)) && f.is_same(finding);
    if let Some(same) = report.results.findings.iter().find(by_calls) {
        writeln!(out, "    by the calls alone: {}", same.on)?;
    }
    ends(finding, out)
}

fn ends(finding: &Finding<'_>, out: &mut dyn Write) -> Result<()> {
    finding.print_place(out)?;
    if !finding.fix.is_empty() {
        writeln!(out, "    to fix it, {}", finding.fix.join(" and "))?;
    }
    for show in finding.show.iter().chain(finding.also.iter().flat_map(|also| &also.show)) {
        writeln!(out, "    {show}")?;
    }
    if finding.known {
        writeln!(out, "    {KNOWN}")?;
    }
    Ok(())
}

/// What was not tested.
pub fn skipped(report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    let mut all = report.skipped.iter();
    all.try_for_each(|skipped| {
        let word = if skipped.has_failed { "failed" } else { "skipped" };
        Ok(writeln!(out, "{word:8}  {}: {}", skipped.name, skipped.why)?)
    })
}

/// A line for each file system.
fn table(report: &Report<'_>, findings: &[&Finding<'_>], out: &mut dyn Write) -> Result<()> {
    let names = report.runs.iter().map(|run| run.setup.name.chars().count());
    let width = names.chain(["file system".len()]).max().unwrap_or_default();
    let heads = ["instants", "states", "wrong", "faults"];
    let [instants, states, wrong, faults] = heads;
    writeln!(out, "{:width$}  {instants:>8}  {states:>7}  {wrong:>7}  {faults:>6}", "file system")?;
    for (number, run) in report.runs.iter().enumerate() {
        let outcome = &run.explored.outcome;
        let found = |f: &&&Finding<'_>| states_of(f, report.runs.len())[number].is_some();
        let faults = findings.iter().filter(found).count();
        let early = if run.is_partial() { "  (stopped early)" } else { "" };
        writeln!(
            out,
            "{:width$}  {:>8}  {:>7}  {:>7}  {faults:>6}{early}",
            run.setup.name, outcome.cuts, outcome.states, outcome.bad_states
        )?;
    }
    Ok(())
}

/// What was not tested, and what was recorded.
fn of_runs(report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    skipped(report, out)?;
    for run in report.runs {
        writeln!(out, "recorded  {}: {}", run.setup.in_words(), in_numbers(&run.run))?;
        for line in run.ended.lines() {
            writeln!(out, "          {line}")?;
        }
        if let Some(why) = &run.without_cut {
            writeln!(out, "note      also without any cut {why}")?;
        }
        for line in troubles(&run.explored.outcome.troubles) {
            writeln!(out, "trouble   {line}")?;
        }
        for why in run.unmeasured() {
            writeln!(out, "          not measured: {why}")?;
        }
    }
    Ok(())
}
