//! `steadfast lab run`: runs a scenario and shows what came out.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, anyhow};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use steadfast_lab::results::{Results, RiskRow, summary};
use steadfast_lab::table::{self, Choice, Layout};
use steadfast_lab::{RunOptions, Watch, report, run_seeds};
use steadfast_setup::Overwrite;
use steadfast_vfs::bounded;

use super::outputs::{self, Folder, Output};
use crate::cli::{LabRun, LabShow, RunOutput, TableFormat, TableLooks};
use crate::terminal::{self, Progress};
use crate::{CommandEnd, Usage};

/// Seeds of one run, at most: each is a whole run, and its figures are kept.
const SEEDS_MOST: u64 = 1000;
/// The exit status of a run that was interrupted and has printed what there was: as of a program
/// that SIGINT has ended.
pub const INTERRUPTED: u8 = 130;
/// Bytes of a document of results that is shown, at most.
const RESULTS_MAX: u64 = 64 << 20;

/// Runs one scenario: tables to `out`, and the files that were asked for.
pub fn run(args: &LabRun, out: &mut dyn Write) -> Result<CommandEnd> {
    let scenario = super::find(&args.scenario)?;
    let seeds = seeds(args.seed, args.seeds)?;
    let shown = ShownRun { scenario: &args.scenario, cuts: args.cuts, output: &args.output };
    let outputs = shown.tried()?;
    let record = args.record.as_deref().map(Folder::tried).transpose()?;
    let recordings = record.as_ref().map(|f| Arc::new(f.recordings()));
    let options = RunOptions {
        full: args.full,
        cuts: args.cuts,
        seed: args.seed,
        peers: args.peers,
        real: args.real.then(|| Overwrite::of(args.destroy)),
        band: args.band,
        record: recordings.clone(),
    };
    let stop = stop_on_signals()?;
    let progress = Progress::start();
    let watch = Watch { progress: &|share, what| progress.set(share, what), stop: &stop };
    let results = run_seeds(&scenario, &options, &seeds, &watch);
    progress.finish();
    let lost = recordings.and_then(|recordings| recordings.take_failure());
    let recorded = record.map(|folder| folder.end(lost.is_none()));
    let results = results.map_err(super::to_anyhow)?;
    let printed = shown.print(&results, out);
    let written = write(&outputs, &results);
    recorded.iter().for_each(|what| terminal::note(what));
    // The results first: they are what the time was spent for.
    all([printed, written, lost.map_or(Ok(()), |e| Err(e.into()))])?;
    Ok(end(&results))
}

/// What results are of, and how they are shown: of a run, and of one that was merged.
pub struct ShownRun<'a> {
    /// As it was named.
    pub scenario: &'a str,
    /// As many as were asked for.
    pub cuts: Option<u64>,
    /// How.
    pub output: &'a RunOutput,
}

impl ShownRun<'_> {
    /// The files that were asked for, tried before the work.
    pub fn tried(&self) -> Result<[Option<Output>; 3], Usage> {
        let RunOutput { json, report, chart, .. } = self.output;
        let wanted = [
            ("--json", outputs::unless_stdout(json.as_ref())),
            ("--report", report.as_deref()),
            ("--chart", chart.as_deref()),
        ];
        outputs::tried(wanted, [self.scenario])
    }

    /// Prints and writes all of it: how the command ends.
    pub fn finish(
        &self,
        files: &[Option<Output>; 3],
        results: &Results,
        out: &mut dyn Write,
    ) -> Result<CommandEnd> {
        all([self.print(results, out), write(files, results)])?;
        Ok(end(results))
    }

    /// To `out`, as it was asked for.
    fn print(&self, results: &Results, out: &mut dyn Write) -> Result<()> {
        if self.output.json.as_deref() == Some(Path::new("-")) {
            return Ok(write!(out, "{}", summary::json(results)?)?);
        }
        show(results, &self.output.looks, &Choice::default(), out)?;
        match self.output.looks.format {
            TableFormat::Text if self.output.looks.wide => print_findings(self, results, out),
            _ => Ok(()),
        }
    }
}

/// How a run with these results ends; what failed is said.
fn end(results: &Results) -> CommandEnd {
    for failure in &results.failures {
        terminal::error(&anyhow!("variant '{}': {}", failure.variant, failure.what));
    }
    match results.partial {
        true => CommandEnd::Status(INTERRUPTED),
        false if !results.failures.is_empty() || unexpected_loss(results) => CommandEnd::Problem,
        false => CommandEnd::Good,
    }
}

/// The last of the errors; those before it are printed, so that each is known.
pub fn all<const N: usize>(done: [Result<()>; N]) -> Result<()> {
    let mut failed: Option<anyhow::Error> = None;
    for e in done.into_iter().filter_map(Result::err) {
        if let Some(before) = failed.replace(e) {
            terminal::error(&before);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// So many seeds from the first on.
pub fn seeds(first: u64, number: u64) -> Result<Vec<u64>> {
    if !(1..=SEEDS_MOST).contains(&number) {
        usage!("--seeds {number}: it must be from 1 to {SEEDS_MOST}");
    }
    let last = first.checked_add(number - 1);
    let last = last.ok_or_else(|| Usage(format!("--seed {first}: too large")))?;
    Ok((first..=last).collect())
}

/// The first signal asks to stop, with what there is; the second ends the program.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let second = i32::from(INTERRUPTED);
        flag::register_conditional_shutdown(signal, second, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .context("signals")?;
    }
    Ok(stop)
}

/// Prints what was found in the format that was asked for.
fn show(results: &Results, looks: &TableLooks, choice: &Choice, out: &mut dyn Write) -> Result<()> {
    let text = match looks.format {
        TableFormat::Json => summary::json(results)?,
        TableFormat::Csv => table::csv(results, choice),
        TableFormat::Markdown => terminal::harmless(&table::markdown(results, looks.wide, choice)),
        TableFormat::Text if choice.is_all() && !looks.wide => {
            table::answer_text(results, layout(looks))
        }
        TableFormat::Text => table::chosen_text(results, layout(looks), choice),
    };
    Ok(write!(out, "{text}")?)
}

/// Shows results that `lab run --json` has written.
pub fn show_saved(args: &LabShow, out: &mut dyn Write) -> Result<()> {
    let file = args.file.display();
    let json = bounded::text(&args.file, RESULTS_MAX);
    let json = json.map_err(|e| Usage(format!("{file}: {e}")))?;
    let results = Results::read(&json).map_err(|what| Usage(format!("{file}: {what}")))?;
    let choice = Choice { tables: args.tables.clone(), columns: args.columns.clone() };
    if choice.of(table::grids(&results)).is_empty() {
        let titles = table::grids(&results).into_iter().map(|grid| format!("'{}'", grid.title));
        let known = titles.collect::<Vec<_>>().join(", ");
        usage!("{file}: nothing is called so; the tables are {known}");
    }
    let wanted = [("--report", args.report.as_deref()), ("--chart", args.chart.as_deref())];
    let [report, chart] = outputs::tried(wanted, [file.to_string()])?;
    let printed = match args.json {
        true => summary::json(&results).map_err(Into::into).and_then(|s| Ok(write!(out, "{s}")?)),
        false => show(&results, &args.looks, &choice, out),
    };
    all([printed, write(&[None, report, chart], &results)])
}

/// For the terminal, or 80 columns of ASCII for whatever else reads.
fn layout(looks: &TableLooks) -> Layout {
    let terminal = std::io::stdout().is_terminal();
    Layout {
        width: table::terminal_width().filter(|_| terminal).unwrap_or(80).max(40),
        drawn: terminal,
        coloured: terminal && std::env::var_os("NO_COLOR").is_none(),
        wide: looks.wide,
    }
}

/// Writes all files, also where one of them cannot be.
fn write([json, report, chart]: &[Option<Output>; 3], results: &Results) -> Result<()> {
    let json = json.as_ref().map_or(Ok(()), |json| json.write(&summary::json(results)?));
    let report = report.as_ref().map_or(Ok(()), |html| {
        html.write(report::html(results))?;
        let path = html.path();
        // A browser takes it from anywhere.
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        terminal::note(&format!("Report, for a browser: {}", whole.display()));
        Ok(())
    });
    let chart = chart.as_ref().map_or(Ok(()), |chart| chart.write(report::chart_svg(results)));
    all([json, report, chart])
}

/// Whether a variant of ours on honest devices broke a promise or was damaged, or something could
/// not be judged.
fn unexpected_loss(results: &Results) -> bool {
    results.all::<RiskRow>().any(|r| {
        let variant = results.variant(&r.variant);
        // The kernel's file systems are what they are.
        let ours = variant.is_none_or(|v| v.kernel.is_none());
        let control = variant.is_some_and(|v| v.control);
        let lost = r.broken_promises > 0 || r.damage.events > 0 || r.e2fsck_damage > 0;
        // What was not judged was not found good.
        ours && !control && lost || r.not_judged.is_some()
    })
}

/// The first finding of each variant and, where the run can be reproduced, the command that
/// describes it.
fn print_findings(args: &ShownRun<'_>, results: &Results, out: &mut dyn Write) -> Result<()> {
    let first = |name: &str| -> Option<(u64, &RiskRow, &String)> {
        results.runs.iter().find_map(|run| {
            let row = run.of::<RiskRow>().find(|r| r.variant == name)?;
            Some((run.seed, row, row.findings.first()?))
        })
    };
    let found: Vec<_> =
        results.variants.iter().filter_map(|v| Some((v, first(&v.name)?))).collect();
    if !found.is_empty() {
        writeln!(out, "\nThe first that was found of each variant (--report has more):")?;
    }
    // Names and findings are anybody's.
    let out = &mut terminal::Harmless::text(out);
    for (variant, (seed, row, finding)) in found {
        write!(out, "{}", terminal::hanging("  ", &format!("{}: {finding}", row.variant)))?;
        let number = finding.strip_prefix("cut ").and_then(|rest| rest.split(' ').next());
        let is_reproduced = variant.kernel.is_none() && variant.fuse.is_none();
        if let (true, Some(number)) = (is_reproduced, number) {
            let cuts = args.cuts.map_or(String::new(), |n| format!(" --cuts {n}"));
            writeln!(
                out,
                "    steadfast crash show {} --variant {} \\\n      --seed {seed}{cuts} --cut \
                 {number}",
                args.scenario, row.variant
            )?;
        }
    }
    Ok(())
}
