//! `steadfast lab run`: runs a scenario and shows what came out.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use steadfast_lab::results::{Results, RiskRow, summary};
use steadfast_lab::table::{self, Layout};
use steadfast_lab::{LabError, RunOptions, Watch, report, run_seeds};

use super::outputs::Outputs;
use crate::cli::{LabRun, TableFormat};
use crate::terminal::{self, Progress};
use crate::{Outcome, Usage};

/// Seeds of one run, at most: each is a whole run, and its figures are kept.
const SEEDS_MOST: u64 = 1000;
/// The exit status of a run that was interrupted and has told what there was: as of a program that
/// SIGINT has ended.
const INTERRUPTED: u8 = 130;

/// Runs one scenario: tables to `out`, and the files that were asked for.
pub fn run(args: &LabRun, out: &mut dyn Write) -> Result<Outcome> {
    let scenario = super::find(&args.scenario)?;
    let seeds = seeds(args)?;
    let outputs = Outputs::tried(args)?;
    let options = RunOptions {
        full: args.full,
        cuts: args.cuts,
        seed: args.seed,
        record: outputs.record.clone(),
    };
    let stop = stop_on_signals()?;
    let progress = Progress::start();
    let watch = Watch { progress: &|share, what| progress.set(share, what), stop: &stop };
    let results = run_seeds(&scenario, &options, &seeds, &watch);
    progress.finish();
    let results = results.map_err(|e| match e {
        LabError::Variant { .. } => anyhow::Error::new(e),
        e => Usage(e.to_string()).into(),
    })?;
    show(args, &results, out)?;
    write(&outputs, &results)?;
    Ok(match results.partial {
        true => Outcome::Told(INTERRUPTED),
        false if unexpected_loss(&results) => Outcome::Problem,
        false => Outcome::Good,
    })
}

fn seeds(args: &LabRun) -> Result<Vec<u64>> {
    if !(1..=SEEDS_MOST).contains(&args.seeds) {
        let what = format!("--seeds {}: it must be from 1 to {SEEDS_MOST}", args.seeds);
        return Err(Usage(what).into());
    }
    let last = args.seed.checked_add(args.seeds - 1);
    let last = last.ok_or_else(|| Usage(format!("--seed {}: too large", args.seed)))?;
    Ok((args.seed..=last).collect())
}

/// The first signal asks to stop, with what there is; the second ends the program.
fn stop_on_signals() -> Result<Arc<AtomicBool>> {
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
fn show(args: &LabRun, results: &Results, out: &mut dyn Write) -> Result<()> {
    let json_to_stdout = args.json.as_deref() == Some(Path::new("-"));
    match args.format {
        _ if json_to_stdout => write!(out, "{}", summary::json(results)?)?,
        TableFormat::Json => write!(out, "{}", summary::json(results)?)?,
        TableFormat::Csv => write!(out, "{}", table::csv(results))?,
        TableFormat::Markdown => write!(out, "{}", table::markdown(results, args.wide))?,
        TableFormat::Text => {
            write!(out, "{}", table::text(results, layout(args)))?;
            tell_findings(args, results, out)?;
        }
    }
    Ok(())
}

/// For the terminal, or 80 columns of ASCII for whatever else reads.
fn layout(args: &LabRun) -> Layout {
    let terminal = std::io::stdout().is_terminal();
    Layout {
        width: table::terminal_width().filter(|_| terminal).unwrap_or(80).max(40),
        drawn: terminal,
        coloured: terminal && std::env::var_os("NO_COLOR").is_none(),
        wide: args.wide,
    }
}

fn write(outputs: &Outputs, results: &Results) -> Result<()> {
    if let Some(json) = &outputs.json {
        json.write(&summary::json(results)?)?;
    }
    if let Some(html) = &outputs.report {
        html.write(&report::html(results))?;
        terminal::note(&format!("Report: {}", html.path().display()));
    }
    if let Some(chart) = &outputs.chart {
        chart.write(&report::chart_svg(results))?;
    }
    if let Some(folder) = &outputs.record {
        terminal::note(&format!("Recordings: {}", folder.display()));
    }
    Ok(())
}

/// Whether a variant of ours on honest devices broke a promise or was damaged.
fn unexpected_loss(results: &Results) -> bool {
    results.runs.iter().flat_map(|run| &run.risk).any(|r| {
        let variant = results.variant(&r.variant);
        // The kernel's file systems are what they are.
        let ours = variant.is_none_or(|v| v.kernel.is_none());
        let control = variant.is_some_and(|v| v.control);
        ours && !control && (r.broken_promises > 0 || r.damage.events > 0 || r.e2fsck_damage > 0)
    })
}

/// The first finding of each variant and, where the run can be made again, the command that tells
/// its story.
fn tell_findings(args: &LabRun, results: &Results, out: &mut dyn Write) -> Result<()> {
    let first = |name: &str| -> Option<(u64, &RiskRow, &String)> {
        results.runs.iter().find_map(|run| {
            let row = run.risk.iter().find(|r| r.variant == name)?;
            Some((run.seed, row, row.findings.first()?))
        })
    };
    let found: Vec<_> =
        results.variants.iter().filter_map(|v| Some((v, first(&v.name)?))).collect();
    if !found.is_empty() {
        writeln!(out, "\nThe first that was found of each variant (--report has more):")?;
    }
    for (variant, (seed, row, finding)) in found {
        write!(out, "{}", terminal::hanging("  ", &format!("{}: {finding}", row.variant)))?;
        let number = finding.strip_prefix("cut ").and_then(|rest| rest.split(' ').next());
        if let (None, Some(number)) = (&variant.kernel, number) {
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
