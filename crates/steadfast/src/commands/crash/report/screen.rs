//! What was found, in a terminal of 24 lines of 80 columns: the findings in sentences, what they
//! are of, and how to see the first. `--wide` has the rest.

use std::io::Write;

use anyhow::Result;

use super::{Report, answer, of_baseline, of_recording, several};
use crate::commands::crash::judged::JudgedRun;
use crate::terminal::{Harmless, WrappedOutput, counted};

/// Lines of a terminal.
const LINES: usize = 24;
const REST: &str = "All findings, states and commands: --wide; for programs: --json\n";

/// As many findings as have room, one at least.
pub fn text(report: &Report<'_>) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for named in (1..=answer::NAMED).rev() {
        text = of_findings(report, named)?;
        if lines(&text) < LINES {
            break;
        }
    }
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let last = ends.take(LINES - 1).last();
    text.truncate(last.map_or(0, |last| last + 1));
    text.extend(REST.bytes());
    Ok(text)
}

/// With so many findings.
fn of_findings(report: &Report<'_>, named: usize) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    {
        // Names and what a judge says are anybody's.
        let mut out = Harmless::text(WrappedOutput::new(&mut text));
        match report.runs {
            [run] => of_one(report, run, named, &mut out)?,
            _ => several::screen(report, named, &mut out)?,
        }
        of_baseline(report.results, &mut out)?;
    }
    Ok(text)
}

fn lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

fn of_one(
    report: &Report<'_>,
    run: &JudgedRun<'_>,
    named: usize,
    out: &mut dyn Write,
) -> Result<()> {
    answer::print(report, (named, ""), out)?;
    of_recording(report, run, out)?;
    several::skipped(report, out)?;
    of_unmeasured(report, out)?;
    first(report, out)
}

/// What no figure is of, and what there was no time for.
pub fn of_unmeasured(report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    let mut why: Vec<&str> = report.runs.iter().flat_map(JudgedRun::unmeasured).collect();
    why.dedup();
    if let Some(first) = why.first() {
        let more = match why.len() - 1 {
            0 => String::new(),
            n => format!("; and {n} more"),
        };
        writeln!(out, "note      not measured: {first}{more}")?;
    }
    let spent = report.runs.iter().any(|run| run.explored.spent);
    if let Some(budget) = report.budget.filter(|_| spent && !report.results.left.is_empty()) {
        let left = counted(report.results.left.len() as u64, "part");
        writeln!(out, "budget    {budget} is used up: {left} not explored")?;
    }
    Ok(())
}

/// The command that shows the first finding.
pub fn first(report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    let new = answer::new(report);
    let same = |of: &&super::super::ci::findings::Finding<'_>| {
        new.iter().any(|new| (new.rule, &new.title) == (of.rule, &of.title))
    };
    let shown = report.results.findings.iter().filter(same).find_map(|of| of.show.as_ref());
    match shown {
        Some(command) => Ok(writeln!(out, "to see it\n    {command}")?),
        None => Ok(()),
    }
}
