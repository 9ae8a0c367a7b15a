//! What came of a run under power cuts, for people; [`json`] has it for programs.

mod answer;
pub mod json;
mod screen;
mod several;

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use steadfast_crash::program::describe::{bytes, counted, since};
use steadfast_crash::program::exposure::{CutExposure, ExposureSummary};
use steadfast_crash::program::{Command, ProgramRun};

use super::budget::Budget;
use super::ci::findings::Source;
use super::ci::results::Results;
use super::file_systems::SkippedFs;
use super::judged::JudgedRun;
use super::show_command::quoted;
use crate::terminal::{Harmless, WrappedOutput};

/// Kinds of findings that are reported in words.
const KINDS_SHOWN: usize = 5;
/// Reasons of what is not measured that are reported in words.
const REASONS_SHOWN: usize = 5;

/// What is said of a finding that the baseline has.
pub const KNOWN: &str = "known: it is in the baseline";

/// Kinds of what failed that are named.
const TROUBLES_SHOWN: usize = 3;

/// Everything that is reported.
pub struct Report<'a> {
    /// The runs, one on each file system.
    pub runs: &'a [JudgedRun<'a>],
    /// The file systems that were not tested.
    pub skipped: &'a [SkippedFs],
    /// Who judged.
    pub judge: Option<&'a Command>,
    /// What was found, for all reports.
    pub results: &'a Results<'a>,
    /// How long it could be explored.
    pub budget: Option<&'a Budget>,
}

impl JudgedRun<'_> {
    /// What was promised, as far as anybody knows, and not judged.
    fn unmeasured(&self) -> Vec<&str> {
        let reasons = self.explored.outcome.unmeasured.iter().map(String::as_str);
        let no_calls = "the program changed nothing in the mounted folder: nothing was at stake";
        let first = (self.run.own_calls() == 0).then_some(no_calls);
        first.into_iter().chain(reasons).collect()
    }

    /// Whether not all of it was explored.
    fn is_partial(&self) -> bool {
        self.explored.stopped || self.explored.outcome.not_explored.is_some()
    }
}

/// A recording in one line.
pub fn in_numbers(run: &ProgramRun) -> String {
    let totals = run.totals();
    format!(
        "{:.3} s, {}, {}; {} ({}), {}",
        totals.time.as_secs_f64(),
        counted(run.own_calls() as u64, "call"),
        counted(run.lines.iter().filter(|line| !line.marked).count() as u64, "printed line"),
        counted(totals.writes, "write"),
        bytes(totals.bytes),
        match totals.flushes {
            1 => "1 flush".to_owned(),
            n => format!("{n} flushes"),
        },
    )
}

/// What failed, each in one line, with the number of states where it was more than one.
fn troubles(troubles: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    troubles.iter().for_each(|trouble| *counts.entry(trouble).or_default() += 1);
    let mut lines: Vec<(&str, u64)> = counts.into_iter().collect();
    lines.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = lines.len().saturating_sub(TROUBLES_SHOWN);
    let line = |(trouble, count): &(&str, u64)| match count {
        1 => (*trouble).to_owned(),
        _ => format!("{trouble} ({})", counted(*count, "state")),
    };
    let mut shown: Vec<String> = lines.iter().take(TROUBLES_SHOWN).map(line).collect();
    if more > 0 {
        shown.push(format!("and {more} more (--json has all)"));
    }
    shown
}

/// What 50 % of the cuts take at most, what 99 % do, and the most; of too few instants there is no
/// 99 %. By the nearest rank: no median, which may be the mean of two.
fn in_three(ExposureSummary { p50, p99, max, .. }: &ExposureSummary) -> String {
    let three = |of: &dyn Fn(&CutExposure) -> String| {
        let p99 = p99.as_ref().map_or("-".into(), of);
        [of(p50), p99, of(max)].join(" / ")
    };
    format!(
        "{} bytes, {} calls, {} ms\n          (50 % / 99 % / most)",
        three(&|e| e.bytes.to_string()),
        three(&|e| e.calls.to_string()),
        three(&|e| format!("{:.0}", e.age.as_secs_f64() * 1e3)),
    )
}

/// For people: what fits a terminal, or all of it.
pub fn text(report: &Report<'_>, wide: bool, out: &mut dyn Write) -> Result<()> {
    if !wide {
        return Ok(out.write_all(&screen::text(report)?)?);
    }
    // Names and what a judge says are anybody's.
    let out = &mut Harmless::text(WrappedOutput::new(out));
    match report.runs {
        [run] => of_one(report, run, out)?,
        _ => several::text(report, out)?,
    }
    of_baseline(report.results, out)?;
    of_budget(report, out)
}

fn of_one(report: &Report<'_>, run: &JudgedRun<'_>, out: &mut dyn Write) -> Result<()> {
    answer::print(report, (answer::NAMED, ", below"), out)?;
    of_recording(report, run, out)?;
    of_states(report, run, out)?;
    several::skipped(report, out)?;
    run.reactions.text(&run.run, out)?;
    match &run.explored.by_calls {
        Some(by_calls) => by_calls.text(&run.run, report.results.findings, out),
        None => Ok(()),
    }
}

/// What is known and what is new, and what is not there any more.
fn of_baseline(results: &Results<'_>, out: &mut dyn Write) -> Result<()> {
    let Some(baseline) = results.baseline else { return Ok(()) };
    let (known, new) = results.counts();
    writeln!(out, "\nbaseline  {}: {known} known, {new} new", baseline.path.display())?;
    results.fixed().iter().try_for_each(|what| Ok(writeln!(out, "          {what}")?))
}

/// What there was no time for.
fn of_budget(report: &Report<'_>, out: &mut dyn Write) -> Result<()> {
    let Some(budget) = report.budget.filter(|_| report.runs.iter().any(|run| run.explored.spent))
    else {
        return Ok(());
    };
    if report.results.left.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nbudget    {budget} is used up. Not explored:")?;
    let mut left = report.results.left.iter();
    left.try_for_each(|what| Ok(writeln!(out, "          {what}")?))
}

/// What was recorded and cut, and who judged.
fn of_recording(report: &Report<'_>, of: &JudgedRun<'_>, out: &mut dyn Write) -> Result<()> {
    let JudgedRun { setup, run, ended, explored, .. } = of;
    let outcome = &explored.outcome;
    writeln!(out, "recorded  {}", setup.in_words())?;
    writeln!(out, "          {}", in_numbers(run))?;
    for line in ended.lines() {
        writeln!(out, "          {line}")?;
    }
    let stopped = if of.is_partial() { " (stopped early)" } else { "" };
    writeln!(
        out,
        "cut       at {}: {}, {}{stopped}",
        counted(outcome.cuts, "instant"),
        counted(outcome.states, "state"),
        counted(outcome.trees, "different tree"),
    )?;
    let judge = match report.judge {
        Some(judge) => quoted(&judge.command),
        None => "what every program may expect".into(),
    };
    writeln!(out, "judged    by {judge}")?;
    if let Some(asked) = of.asked.as_ref().filter(|asked| asked.known > 0) {
        let runs = counted(asked.runs, "time");
        let known = counted(asked.known, "time");
        writeln!(out, "          run {runs}; {known} it would have read what it had read before")?;
    }
    if let Some([one, other]) = of.asked.as_ref().and_then(|asked| asked.differed.as_ref()) {
        let what = "it was run for each tree then: of what reads the same it said";
        writeln!(out, "note      {what} {} and {}", quoted(one), quoted(other))?;
    }
    if let Some(summary) = &explored.exposed {
        writeln!(out, "exposed   {}", in_three(summary))?;
    }
    if let Some(why) = &of.without_cut {
        writeln!(out, "note      also without any cut {why}")?;
    }
    for line in troubles(&outcome.troubles) {
        writeln!(out, "trouble   {line}")?;
    }
    Ok(())
}

/// What the states of the recorded devices show.
fn of_states(report: &Report<'_>, of: &JudgedRun<'_>, out: &mut dyn Write) -> Result<()> {
    let JudgedRun { run, explored, .. } = of;
    let outcome = &explored.outcome;
    let findings = report.results.findings.iter();
    let of_states = findings.filter_map(|finding| match finding.source {
        Source::States(first) => Some((finding, first)),
        Source::Calls(_) | Source::Reaction => None,
    });
    let groups: Vec<_> = of_states.collect();
    let unmeasured = of.unmeasured();
    let notes = unmeasured.iter().take(REASONS_SHOWN).map(|why| format!("not measured: {why}"));
    let mut notes: Vec<String> = notes.collect();
    if unmeasured.len() > notes.len() {
        notes.push(format!("and {} more (--json has all)", unmeasured.len() - notes.len()));
    }
    if groups.is_empty() {
        let but = match (notes.is_empty(), outcome.not_explored.is_some()) {
            (true, true) => " in what was explored",
            (true, false) => "",
            (false, _) => " in what is measured;",
        };
        let but = match report.results.findings.is_empty() {
            false if but.is_empty() => " in these states",
            _ => but,
        };
        writeln!(out, "found     nothing{but}")?;
        return notes.iter().try_for_each(|line| Ok(writeln!(out, "          {line}")?));
    }
    let are = if outcome.bad_states == 1 { "is" } else { "are" };
    writeln!(
        out,
        "found     {} of {} {are} wrong:",
        outcome.bad_states,
        counted(outcome.states, "state")
    )?;
    for (finding, first) in groups.iter().take(KINDS_SHOWN) {
        writeln!(out, "\n  {}", finding.what)?;
        let at = since(run, first.cut.at);
        let states = counted(finding.states, "state");
        write!(out, "    {states}, the first is {} (at {at:.3} s)", first.state)?;
        match &finding.show {
            Some(command) => writeln!(out, ":\n    {command}")?,
            None => writeln!(out, "; no recording is kept that could show it")?,
        }
        if finding.known {
            writeln!(out, "    {KNOWN}")?;
        }
    }
    if groups.len() > KINDS_SHOWN {
        writeln!(out, "\n  and {} other kinds (--json has all)", groups.len() - KINDS_SHOWN)?;
    }
    if let (Some(decisive), Some(first)) = (&explored.decisive, outcome.findings.first()) {
        writeln!(out, "\n  state {}: {decisive}", first.state)?;
    }
    if !notes.is_empty() {
        writeln!(out)?;
    }
    notes.iter().try_for_each(|line| Ok(writeln!(out, "  {line}")?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_crash::program::exposure::summary;

    use super::*;

    #[test]
    fn few_instants_have_no_99_percent() {
        let cut = |bytes| CutExposure { bytes, calls: 1, age: Duration::from_millis(bytes) };
        let line = |n: u64| in_three(&summary(&(1..=n).map(cut).collect::<Vec<_>>()).unwrap());
        let expected =
            "20 / - / 40 bytes, 1 / - / 1 calls, 20 / - / 40 ms\n          (50 % / 99 % / most)";
        assert_eq!(line(40), expected);
        assert!(line(400).starts_with("200 / 396 / 400 bytes, 1 / 1 / 1 calls"), "{}", line(400));
    }

    #[test]
    fn what_failed_is_said_once() {
        let all = ["no room", "no judge", "no room", "a", "b"].map(str::to_owned);
        let expected = ["no room (2 states)", "a", "b", "and 1 more (--json has all)"];
        assert_eq!(troubles(&all), expected);
        assert!(troubles(&[]).is_empty());
    }
}
