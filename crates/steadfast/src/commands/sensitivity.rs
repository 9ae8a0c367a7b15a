//! `steadfast lab sensitivity`: which figure depends on what.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use steadfast_lab::Watch;
use steadfast_lab::scenario::{Scenario, tests};
use steadfast_lab::sensitivity::{self, Options, Sensitivity};
use steadfast_vfs::foreign;
use steadfast_vfs::options::choose;

use super::lab::outputs::{self, Output};
use super::lab::run::{INTERRUPTED, all, stop_on_signals};
use crate::cli::LabSensitivity;
use crate::document;
use crate::terminal::{self, Progress};
use crate::{CommandEnd, Usage};

/// Measures, and prints tables or JSON.
pub fn run(args: &LabSensitivity, out: &mut dyn Write) -> Result<CommandEnd> {
    let scenario = super::lab::find(&args.scenario)?;
    let figure = args.figure.as_deref().map(figure_of).transpose()?;
    check_figure(&scenario, figure)?;
    let files = tried(args)?;
    let progress = Progress::start();
    let stop = stop_on_signals()?;
    let watch = Watch { progress: &|share, what| progress.set(share, what), stop: &stop };
    let found = sensitivity::run(&scenario, &options(args), &watch);
    progress.finish();
    show(args, &found.map_err(super::lab::to_anyhow)?, files, out)
}

/// What is asked.
pub fn options(args: &LabSensitivity) -> Options {
    let (size, only) = (args.size.clone(), args.only.clone());
    Options { full: args.full, size, seed: args.seed, only }
}

/// The files that are asked for: one that cannot be written is reported before minutes of work, not
/// after.
pub fn tried(args: &LabSensitivity) -> Result<[Option<Output>; 2], Usage> {
    let wanted =
        [("--json", outputs::unless_stdout(args.json.as_ref())), ("--svg", args.svg.as_deref())];
    outputs::tried(wanted, [&args.scenario])
}

/// Prints and writes what was found.
pub fn show(
    args: &LabSensitivity,
    found: &Sensitivity,
    [json_file, svg_file]: [Option<Output>; 2],
    out: &mut dyn Write,
) -> Result<CommandEnd> {
    let figure = args.figure.as_deref().map(figure_of).transpose()?;
    let to_stdout = args.json.as_deref() == Some(Path::new("-"));
    let json = foreign::json(serde_json::to_string_pretty(found)? + "\n");
    let printed = match to_stdout {
        true => write!(out, "{json}"),
        false => write!(out, "{}", sensitivity::text(found, figure)),
    };
    // All of them, also where one cannot be written: they are what the time was spent for.
    let written = json_file.map_or(Ok(()), |file| file.write(&json));
    let drawn = match (svg_file, sensitivity::svg(found, figure)) {
        (Some(file), Some(svg)) => file.write(terminal::harmless(&svg)),
        (_, None) if figure.is_some() => {
            Err(Usage("--figure: that test is not run: nothing is drawn of it".into()).into())
        }
        _ => Ok(()),
    };
    all([printed.map_err(Into::into), written, drawn])?;
    Ok(match found.partial {
        true => CommandEnd::Status(INTERRUPTED),
        false if !found.failures.is_empty() => CommandEnd::Problem,
        false => CommandEnd::Good,
    })
}

/// A test and a variant.
fn figure_of(text: &str) -> Result<(&str, &str), Usage> {
    let wrong = || Usage(format!("--figure {text}: it is TEST/VARIANT, as \"pwrite/external\""));
    text.split_once('/').ok_or_else(wrong)
}

fn check_figure(scenario: &Scenario, figure: Option<(&str, &str)>) -> Result<(), Usage> {
    let Some((test, variant)) = figure else { return Ok(()) };
    let baseline = scenario.baseline();
    let others = scenario.variants.iter().filter(|v| v.run.speed() && v.name != baseline);
    let known: Vec<&str> = others.map(|v| v.name.as_str()).collect();
    if !known.contains(&variant) {
        usage!("--figure: variant '{variant}' is unknown: {}", choose(known));
    }
    let tests = tests(Some(&scenario.workload));
    if !tests.iter().any(|known| known == test) {
        usage!("--figure: test '{test}' is unknown: {}", choose(tests));
    }
    Ok(())
}

/// Lists the drives with their sources.
pub fn drives(json: bool, out: &mut dyn Write) -> Result<()> {
    if json {
        let all: Vec<Value> = sensitivity::drives()
            .map(|d| json!({ "name": d.name, "title": d.title, "sources": d.sources }))
            .collect();
        return Ok(document::print(out, "steadfast-drives", 1, json!({ "drives": all }))?);
    }
    for drive in sensitivity::drives() {
        writeln!(out, "{}\n  {}", drive.name, drive.title)?;
        for source in &drive.sources {
            write!(out, "{}", crate::terminal::hanging("    ", source))?;
        }
    }
    Ok(())
}
