//! What a CI reads: JUnit XML, SARIF, annotations, and the baseline of what is known. All of them
//! are made of one list of findings.

mod annotations;
pub mod args;
mod baseline;
pub mod findings;
mod fingerprint;
mod junit;
pub mod results;
mod sarif;

use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use steadfast_crash::persistence::Model;
use steadfast_crash::program::Command;

use super::cli::CrashRun;
use super::file_systems;
use super::setup::Setup;
use crate::Usage;
use crate::commands::lab::outputs::{self, Output};
use crate::commands::whole_file::place::Identity;
use crate::terminal;

use args::ReportArgs;
use baseline::{Baseline, TestedProgram};
use results::Results;

/// The files of a run: tried, and not changed yet.
pub struct ReportFiles {
    junit: Option<Output>,
    sarif: Option<Output>,
    new_baseline: Option<Output>,
    annotations: bool,
    baseline: Option<Baseline>,
    tested: TestedProgram,
}

impl ReportFiles {
    /// Tries what will be written, the recording too, and reads the baseline: before the program is
    /// run for nothing.
    pub fn tried(
        args: &CrashRun,
        setups: &[Setup],
        judge: Option<&Command>,
        models: &[Model],
    ) -> Result<ReportFiles, Usage> {
        let ReportArgs { junit, sarif, baseline, write_baseline, .. } = &args.reports;
        let recordings: Vec<PathBuf> = args
            .record
            .iter()
            .flat_map(|path| {
                setups.iter().map(|setup| file_systems::record_path(path, setups, setup))
            })
            .collect();
        let (first, more) = match recordings.split_first() {
            Some((first, more)) => (Some(first.as_path()), more),
            None => (None, &[][..]),
        };
        let wanted = [
            ("--record", first),
            ("--junit", junit.as_deref()),
            ("--sarif", sarif.as_deref()),
            ("--write-baseline", write_baseline.as_deref()),
        ];
        // A baseline may be brought up to date.
        let both = baseline.as_deref().zip(write_baseline.as_deref());
        let is_updated = both.is_some_and(|(read, written)| outputs::is_same(read, written));
        let read = baseline.as_ref().filter(|_| !is_updated);
        for recording in more {
            let [_, others @ ..] = wanted;
            let [junit, sarif, new_baseline] = others;
            outputs::tried([("--record", Some(&**recording)), junit, sarif, new_baseline], read)?;
        }
        let [_, junit, sarif, new_baseline] = outputs::tried(wanted, read)?;
        for (option, path) in wanted {
            if let Some(path) = path.filter(|path| is_output(path)) {
                let what = "what is printed goes there; name another file";
                usage!("{option} {}: {what}", path.display());
            }
        }
        let program = (&args.program[..], args.client.client.as_deref());
        let tested = TestedProgram::of(program, judge, setups, models);
        let baseline = baseline.as_ref().map(|path| Baseline::read(path, &tested));
        let baseline = baseline.transpose().map_err(|e| Usage(e.to_string()))?;
        let annotations = args.reports.annotations.are_wanted();
        Ok(ReportFiles { junit, sarif, new_baseline, annotations, baseline, tested })
    }

    /// Whether findings are known. Those of a run that was `stopped` are not written to a baseline.
    pub fn knows(&self, fingerprints: &[String], stopped: bool) -> bool {
        let known = |baseline: &Baseline| baseline.known(fingerprints).is_some();
        self.baseline.as_ref().is_some_and(known) || (self.new_baseline.is_some() && !stopped)
    }

    /// The baseline that was read.
    pub fn baseline(&self) -> Option<&Baseline> {
        self.baseline.as_ref()
    }

    /// Writes all of them. What cannot be written is said.
    pub fn write(&self, results: &Results<'_>, stopped: bool) -> ReportsWritten {
        let junit = self.junit.as_ref().map(|to| junit::text(results).and_then(|t| to.write(t)));
        let sarif =
            self.sarif.as_ref().map(|to| Ok(sarif::text(results)?).and_then(|t| to.write(t)));
        let baseline = match &self.new_baseline {
            Some(to) if stopped => {
                let path = to.path().display();
                terminal::note(&format!("{path} is as it was: not all was explored"));
                None
            }
            to => to.as_ref().map(|to| self.write_baseline(to, results)),
        };
        let is_there = |done: &Option<Result<()>>| {
            let failed = done.as_ref().and_then(|done| done.as_ref().err());
            failed.into_iter().for_each(terminal::error);
            failed.is_none()
        };
        let [junit, sarif, baseline] = [junit, sarif, baseline].each_ref().map(is_there);
        ReportsWritten { all: junit && sarif && baseline, baseline }
    }

    fn write_baseline(&self, to: &Output, results: &Results<'_>) -> Result<()> {
        let kept = if results.is_whole() { Vec::new() } else { results.not_found() };
        let old = self.baseline.as_ref();
        to.write(baseline::text(&self.tested, results.findings, old, &kept)?)
    }

    /// Prints the report on the standard output, where annotations follow it.
    pub fn print_report(
        &self,
        out: &mut dyn Write,
        report: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        if self.annotations { annotations::without_commands(out, report) } else { report(out) }
    }

    /// Prints the annotations, where they are wanted.
    pub fn annotate(&self, results: &Results<'_>, out: &mut dyn Write) -> Result<()> {
        if self.annotations { Ok(annotations::print(results, out)?) } else { Ok(()) }
    }
}

/// What of the reports is there.
#[derive(Debug, Clone, Copy)]
pub struct ReportsWritten {
    /// All that were asked for.
    pub all: bool,
    /// The baseline, if one was to be written.
    pub baseline: bool,
}

/// Whether a path leads to the standard output or error: the program's lines, the report and notes
/// would be among a file's bytes.
fn is_output(path: &Path) -> bool {
    let Ok(there) = std::fs::metadata(path) else { return false };
    // Of devices a terminal alone keeps what it is given.
    let keeps =
        |output: BorrowedFd<'_>| !there.file_type().is_char_device() || output.is_terminal();
    [rustix::stdio::stdout(), rustix::stdio::stderr()].into_iter().any(|output| {
        let same = Identity::of(&output).is_ok_and(|of| of == Identity::in_metadata(&there));
        same && keeps(output)
    })
}
