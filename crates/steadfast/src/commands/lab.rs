//! `steadfast lab`: runs scenarios and shows what came out.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use steadfast_devices::model::parameters::Kind;
use steadfast_lab::devices;
use steadfast_lab::results::{Results, summary};
use steadfast_lab::scenario::{Scenario, Variant, keys};
use steadfast_lab::{LabError, RunOptions, report, run as run_scenario, stack, table};

use crate::cli::{LabRun, ListFormat};
use crate::terminal::{self, Progress};
use crate::{Outcome, Usage};

/// Lists the scenarios that come with the program.
pub fn list(out: &mut dyn Write) -> Result<()> {
    for s in Scenario::embedded() {
        writeln!(out, "{}\n  {}\n  {}\n  variants:", s.name, s.title, s.about.trim())?;
        let width = s.variants.iter().map(|v| v.name.len()).max().unwrap_or(0);
        for v in &s.variants {
            writeln!(out, "    {:width$}  {}", v.name, v.label)?;
        }
    }
    Ok(())
}

/// Lists the kinds of devices, or one with its parameters.
pub fn devices(kind: Option<&str>, format: Option<ListFormat>, out: &mut dyn Write) -> Result<()> {
    match (kind.and_then(Kind::of_name), format) {
        (Some(kind), _) => write!(out, "{}", devices::text(kind))?,
        (None, Some(ListFormat::Markdown)) => write!(out, "{}", devices::markdown())?,
        (None, Some(ListFormat::Json)) => {
            writeln!(out, "{}", serde_json::to_string_pretty(&devices::json())?)?;
        }
        (None, None) => {
            write!(out, "{}", devices::list())?;
            writeln!(
                out,
                "\nThe parameters of one, with their sources: steadfast lab devices KIND"
            )?;
        }
    }
    Ok(())
}

/// Lists the keys of scenario files.
pub fn keys(markdown: bool, out: &mut dyn Write) -> Result<()> {
    let text = if markdown { keys::markdown() } else { keys::text() };
    Ok(write!(out, "{text}")?)
}

/// A scenario by its name or file.
pub fn find(name_or_file: &str) -> Result<Scenario, Usage> {
    Scenario::find(name_or_file).map_err(|e| Usage(e.to_string()))
}

/// Reads a scenario, makes and mounts the file systems of its variants; runs nothing.
pub fn check(name_or_file: &str, out: &mut dyn Write) -> Result<()> {
    let scenario = find(name_or_file)?;
    let wrong: Vec<String> = scenario
        .variants
        .iter()
        .filter_map(|variant| Some(stack::try_out(&scenario, variant).err()?.to_string()))
        .collect();
    if !wrong.is_empty() {
        return Err(Usage(format!("{}: {}", scenario.name, wrong.join("\n  "))).into());
    }
    let (variants, devices) = (scenario.variants.len(), scenario.devices.len());
    writeln!(out, "{}: good: {variants} variants, {devices} devices", scenario.name)?;
    Ok(())
}

/// Runs one scenario: tables to `out`, and the files that were asked for.
pub fn run(args: &LabRun, out: &mut dyn Write) -> Result<Outcome> {
    let scenario = find(&args.scenario)?;
    let options = RunOptions { full: args.full, cuts: args.cuts, seed: args.seed };
    let progress = Progress::start();
    let results = run_scenario(&scenario, &options, &|share, what| progress.set(share, what));
    progress.finish();
    let results = results.map_err(|e| match e {
        LabError::Variant { .. } => anyhow::Error::new(e),
        e => Usage(e.to_string()).into(),
    })?;
    let to_stdout = args.json.as_deref() == Some(Path::new("-"));
    if to_stdout {
        write!(out, "{}", json(&results)?)?;
    } else {
        write!(out, "{}", table::text(&results, table::Layout::default()))?;
        tell_findings(args, &scenario, &results, out)?;
        if let Some(path) = &args.json {
            write_file(path, &json(&results)?)?;
        }
    }
    let report_path = match &args.report {
        Some(path) => Some(path.clone()),
        // A run that is read by a program leaves no file that was not asked for.
        None if to_stdout => None,
        None => Some(format!("{}.html", results.scenario).into()),
    };
    if let Some(path) = report_path {
        write_file(&path, &report::html(&results))?;
        terminal::note(&format!("Report: {}", path.display()));
    }
    if let Some(path) = &args.chart {
        write_file(path, &report::chart_svg(&results))?;
    }
    Ok(if unexpected_loss(&scenario, &results) { Outcome::Problem } else { Outcome::Good })
}

/// Whether a variant of ours on honest devices broke a promise or was damaged.
fn unexpected_loss(scenario: &Scenario, results: &Results) -> bool {
    results.only().risk.iter().any(|r| {
        let variant = scenario.variants.iter().find(|v| v.name == r.variant);
        // The kernel's file systems are what they are.
        let ours = variant.is_none_or(|v| v.kernel.is_none());
        let lies = variant.is_some_and(|v| scenario.lies(v));
        ours && !lies && (r.broken_promises > 0 || r.damage.events > 0 || r.e2fsck_damage > 0)
    })
}

/// The first finding of each variant and, where the run can be made again, the command that tells
/// its story.
fn tell_findings(
    args: &LabRun,
    scenario: &Scenario,
    results: &Results,
    out: &mut dyn Write,
) -> Result<()> {
    let mut found =
        results.only().risk.iter().filter_map(|r| Some((r, r.findings.first()?))).peekable();
    if found.peek().is_some() {
        writeln!(out, "\nThe first that was found of each variant (more in the report):")?;
    }
    for (row, finding) in found {
        writeln!(out, "  {}: {finding}", row.variant)?;
        let kernel = |v: &Variant| v.name == row.variant && v.kernel.is_some();
        let number = finding.strip_prefix("cut ").and_then(|rest| rest.split(' ').next());
        if let (false, Some(number)) = (scenario.variants.iter().any(kernel), number) {
            let cuts = args.cuts.map_or(String::new(), |n| format!(" --cuts {n}"));
            writeln!(
                out,
                "    steadfast crash show {} --variant {} --seed {}{cuts} --cut {number}",
                args.scenario, row.variant, args.seed
            )?;
        }
    }
    Ok(())
}

fn json(results: &Results) -> Result<String> {
    Ok(summary::json(results)?)
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
