//! `steadfast lab compare`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use serde_json::json;
use steadfast_lab::compare::{self, ComparedStacks, StackChoice, StackComparison};
use steadfast_lab::results::Results;
use steadfast_lab::{RunOptions, Watch, run_seeds};
use steadfast_trace::TraceError;
use steadfast_trace::format::{TraceEnd, TraceEntry};
use steadfast_trace::replay::{ReplayPace, TraceFile, TraceSource};
use steadfast_vfs::bounded;

use super::lab::outputs::{self, Output};
use super::lab::run::{INTERRUPTED, stop_on_signals};
use super::lab::to_anyhow;
use super::trace::{in_folder, wrong};
use crate::cli::LabCompare;
use crate::terminal::{self, Progress};
use crate::{CommandEnd, Usage, document};

/// About what share of the time the run takes that is cut.
const FIRST_SHARE: f64 = 0.8;

/// Runs the trace on all stacks, and prints what was found.
pub fn run(args: &LabCompare, out: &mut dyn Write) -> Result<CommandEnd> {
    if args.catalogue {
        out.write_all(compare::STACKS.as_bytes())?;
        return Ok(CommandEnd::Good);
    }
    let asked = ComparedTrace::of(args)?;
    let files = asked.tried(args)?;
    let (choice, file) = (&asked.choice, asked.file.as_path());
    let checked = args.check.as_deref().map(|folder| check(choice, file, folder)).transpose()?;
    let scenario = &asked.stacks.scenario;
    let [(options, _), (uncut, more_seeds)] = asked.runs(args);
    let stop = stop_on_signals()?;
    let progress = Progress::start();
    let part = |from: f64, to: f64| {
        let progress = &progress;
        move |share: f64, what: &str| progress.set(from + (to - from) * share, what)
    };
    let first = if more_seeds.is_empty() { 1.0 } else { FIRST_SHARE };
    let watch = Watch { progress: &part(0.0, first), stop: &stop };
    let results = run_seeds(scenario, &options, &[1], &watch);
    let watch = Watch { progress: &part(first, 1.0), stop: &stop };
    let more = match more_seeds.is_empty() || results.is_err() {
        true => None,
        false => Some(run_seeds(scenario, &uncut, &more_seeds, &watch)),
    };
    progress.finish();
    let results = results.map_err(to_anyhow)?;
    let more = more.transpose().map_err(to_anyhow)?;
    asked.show(args, (&results, more.as_ref()), checked.as_ref(), files, out)
}

/// A recorded program, and the stacks that it is put on.
pub struct ComparedTrace {
    file: PathBuf,
    calls: u64,
    recorded: Option<TraceEnd>,
    choice: StackChoice,
    /// What is run.
    pub stacks: ComparedStacks,
}

/// The files of results that are asked for: JSON, and a page.
type ComparisonFiles = [Option<Output>; 2];

impl ComparedTrace {
    /// Reads trace and catalogue.
    pub fn of(args: &LabCompare) -> Result<ComparedTrace> {
        let file = args.trace.clone().context("no trace")?;
        let (calls, recorded) = calls(&file)?;
        let catalogue = args.stacks.as_deref().map(read).transpose()?;
        let catalogue = catalogue.as_ref().map(|(text, origin)| (text.as_str(), origin.as_str()));
        let choice = StackChoice {
            flat_out: args.flat_out,
            only: args.only.clone(),
            budget: args.budget,
            cut_off: recorded.is_none().then_some(calls),
            recorded,
        };
        let stacks = compare::scenario(catalogue, &file, &choice).map_err(to_anyhow)?;
        Ok(ComparedTrace { file, calls, recorded, choice, stacks })
    }

    /// The runs of the scenario, with their seeds: one that is cut, and others that are not. Cuts
    /// are drawn, and more of them of one run say as much as some of each.
    pub fn runs(&self, args: &LabCompare) -> [(RunOptions, Vec<u64>); 2] {
        let options = RunOptions { cuts: args.cuts, ..RunOptions::default() };
        let uncut = RunOptions { cuts: Some(0), ..RunOptions::default() };
        [(options, vec![1]), (uncut, (2..=args.seeds).collect())]
    }

    /// The files that are asked for, tried before the work.
    pub fn tried(&self, args: &LabCompare) -> Result<ComparisonFiles, Usage> {
        let json_file = outputs::unless_stdout(args.json.as_ref());
        let inputs = args.trace.iter().chain(&args.stacks);
        let wanted = [("--json", json_file), ("--report", args.report.as_deref())];
        outputs::tried(wanted, inputs)
    }

    /// Prints and writes what the runs brought.
    pub fn show(
        &self,
        args: &LabCompare,
        (results, more): (&Results, Option<&Results>),
        checked: Option<&FolderCheck>,
        [json_file, page]: ComparisonFiles,
        out: &mut dyn Write,
    ) -> Result<CommandEnd> {
        let ComparedTrace { file, calls, recorded, choice, stacks } = self;
        let compared = StackComparison::new((stacks, choice), results, more);
        let body = || {
            json!({ "trace": file, "calls": calls, "cut_off": recorded.is_none(),
            "seeds": args.seeds, "flat_out": args.flat_out,
            "without_price": compared.without_price, "sentences": compared.sentences(),
            "check": checked, "currency": compared.currency, "budget": args.budget,
            "recorded_seconds": recorded.map(|end| end.at as f64 / 1e9),
            "recorded_status": recorded.and_then(|end| end.status),
            "interrupted": compared.stopped.is_some(), "stacks": &compared.rows,
            "notes": results.notes, "peak_memory_bytes": super::trace::peak_memory() })
        };
        match &args.json {
            Some(file) if file == Path::new("-") => {
                document::print(out, "steadfast-comparison", 1, body())?;
            }
            _ => {
                let replayed = checked.map(FolderCheck::sentence);
                if args.wide {
                    write!(out, "{}", compared.wide_text())?;
                    let notes = results.notes.iter().map(|note| &note.text);
                    for text in replayed.iter().chain(notes) {
                        write!(out, "\n{}", terminal::hanging("", text))?;
                    }
                } else {
                    write!(out, "{}", compared.text(&results.notes, replayed.as_deref()))?;
                }
            }
        }
        if let Some(file) = json_file {
            let mut written = Vec::new();
            document::print(&mut written, "steadfast-comparison", 1, body())?;
            file.write(&written)?;
        }
        if let Some(page) = page {
            let what = file.file_name().unwrap_or(file.as_os_str());
            page.write(compared.page(&what.to_string_lossy(), results))?;
        }
        for failure in &results.failures {
            terminal::error(&anyhow!("stack '{}': {}", failure.variant, failure.what));
        }
        Ok(match compared.stopped.is_some() {
            true => CommandEnd::Status(INTERRUPTED),
            false if !results.failures.is_empty() => CommandEnd::Problem,
            false => CommandEnd::Good,
        })
    }
}

/// A replay on a folder of this machine beside the recording.
#[derive(Serialize)]
pub struct FolderCheck {
    folder: PathBuf,
    recorded_seconds: f64,
    replayed_seconds: f64,
    /// Calls that returned something else than was recorded.
    differences: u64,
}

impl FolderCheck {
    fn sentence(&self) -> String {
        let FolderCheck { folder, recorded_seconds, replayed_seconds, differences } = self;
        let off = (replayed_seconds / recorded_seconds - 1.0) * 100.0;
        let differences = match differences {
            0 => "all calls returned what was recorded".to_owned(),
            n => format!("{} returned something else", terminal::counted(*n, "call")),
        };
        format!(
            "Replayed in {}: {replayed_seconds:.3} s, recorded in {recorded_seconds:.3} s \
             ({off:+.1} %); {differences}. Syncs may have been much faster or slower when they \
             were recorded than without recording, where processors go idle between calls.",
            folder.display()
        )
    }
}

fn check(choice: &StackChoice, file: &Path, folder: &Path) -> Result<FolderCheck> {
    let source = TraceFile { path: file.to_owned(), partial: choice.cut_off.is_some() };
    let pace = if choice.flat_out { ReplayPace::FlatOut } else { ReplayPace::Recorded };
    let (found, end) = in_folder(source, folder, pace)?;
    Ok(FolderCheck {
        folder: folder.to_owned(),
        recorded_seconds: end.at as f64 / 1e9,
        replayed_seconds: found.elapsed.as_secs_f64(),
        differences: found.differences.calls,
    })
}

/// Reads the whole trace once: what is wrong with it is known before minutes are spent. How many
/// calls it has, and its end; `None`: it was cut off after them.
fn calls(file: &Path) -> Result<(u64, Option<TraceEnd>), Usage> {
    let source = TraceFile { path: file.to_owned(), partial: false };
    let mut trace = source.read().map_err(wrong(file))?;
    let mut calls = 0;
    let end = loop {
        match trace.next_entry() {
            Ok(Some(entry)) => calls += u64::from(matches!(entry, TraceEntry::Call(_))),
            Ok(None) => break trace.end(),
            Err(TraceError::CutOff { .. }) => break None,
            Err(e) => return Err(wrong(file)(e)),
        }
    };
    if calls == 0 {
        usage!("{}: there is no call in it", file.display());
    }
    Ok((calls, end))
}

fn read(file: &Path) -> Result<(String, String), Usage> {
    let text = bounded::text(file, bounded::SETTINGS_MAX);
    let text = text.map_err(|e| Usage(format!("{}: {e}", file.display())))?;
    Ok((text, file.display().to_string()))
}
