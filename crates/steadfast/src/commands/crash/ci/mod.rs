//! What a CI reads: JUnit XML, SARIF, annotations, and the baseline of what is known. All of them
//! are made of one list of findings.

mod annotations;
mod baseline;
pub mod findings;
mod fingerprint;
mod junit;
mod sarif;

use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use steadfast_crash::persistence::Model;
use steadfast_crash::program::{Command, ProgramRun};

use super::cli::CrashRun;
use super::explored::Explored;
use super::setup::Setup;
use crate::Usage;
use crate::commands::lab::outputs::{self, Output};
use crate::commands::whole_file::place::Identity;
use crate::terminal;

use annotations::Annotations;
use baseline::{Baseline, TestedProgram};
use findings::{Finding, Source};

/// Which reports.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Write what was found to FILE, as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write what was found to FILE, as SARIF, which code scanning reads
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Print annotations of a GitHub workflow after the report (with --json to the standard error)
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    annotations: Annotations,
    /// Findings that FILE has are known: they are reported, and do not count
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write what was found to FILE as known: a new baseline, or the one of --baseline
    #[arg(long, value_name = "FILE")]
    pub write_baseline: Option<PathBuf>,
}

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
        setup: &Setup,
        judge: Option<&Command>,
        models: &[Model],
    ) -> Result<ReportFiles, Usage> {
        let ReportArgs { junit, sarif, baseline, write_baseline, .. } = &args.reports;
        let wanted = [
            ("--record", args.record.as_deref()),
            ("--junit", junit.as_deref()),
            ("--sarif", sarif.as_deref()),
            ("--write-baseline", write_baseline.as_deref()),
        ];
        // A baseline may be brought up to date.
        let both = baseline.as_deref().zip(write_baseline.as_deref());
        let is_updated = both.is_some_and(|(read, written)| outputs::is_same(read, written));
        let read = baseline.as_ref().filter(|_| !is_updated);
        let [_, junit, sarif, new_baseline] = outputs::tried(wanted, read)?;
        for (option, path) in wanted {
            if let Some(path) = path.filter(|path| is_output(path)) {
                let what = "what is printed goes there; name another file";
                usage!("{option} {}: {what}", path.display());
            }
        }
        let tested = TestedProgram::of(&args.program, judge, setup, models);
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

/// What was judged by itself: the states of the disk, or the calls by a model.
pub struct JudgedPart<'a> {
    /// In words.
    pub name: String,
    model: Option<Model>,
    /// What failed, so that states could not be judged.
    pub troubles: &'a [String],
    /// What was not explored.
    pub left: Option<String>,
}

impl JudgedPart<'_> {
    /// Whether a finding is of it.
    pub fn is_of(&self, finding: &Finding<'_>) -> bool {
        match finding.source {
            Source::States(_) | Source::Reaction => self.model.is_none(),
            Source::Calls(of) => self.model == Some(of.model),
        }
    }
}

/// All that reports are made of.
pub struct Results<'a> {
    /// What was found.
    pub findings: &'a [Finding<'a>],
    /// What was judged.
    pub parts: Vec<JudgedPart<'a>>,
    /// What was not explored, in words.
    pub left: Vec<String>,
    /// The recording.
    pub run: &'a ProgramRun,
    /// Where it is kept.
    pub recording: Option<&'a Path>,
    /// What is known.
    pub baseline: Option<&'a Baseline>,
    /// The program with its arguments.
    pub program: String,
    /// The program's name.
    pub program_name: String,
    /// The program's file, or the script that it runs, where it is below the working directory:
    /// the path from there.
    pub file: Option<String>,
}

impl<'a> Results<'a> {
    /// Of what was explored of this program.
    pub fn of(
        (run, explored): (&'a ProgramRun, &'a Explored),
        (setup, program): (&Setup, &[String]),
        findings: &'a [Finding<'a>],
        baseline: Option<&'a Baseline>,
        recording: Option<&'a Path>,
    ) -> Results<'a> {
        let of_states = |not| super::explored::in_words(not, explored.outcome.cuts);
        let states = JudgedPart {
            name: format!("states of the recorded disk: {}", setup.in_words()),
            model: None,
            // OK to index: these were the first.
            troubles: &explored.outcome.troubles[..explored.states_troubles],
            left: explored.outcome.not_explored.map(of_states),
        };
        let mut parts = vec![states];
        for (model, report) in explored.by_calls.iter().flat_map(|of| &of.reports[..of.asked]) {
            parts.push(JudgedPart {
                name: format!("the calls by {}", model.in_words()),
                model: Some(*model),
                troubles: &report.troubles,
                left: report.not_explored.map(|not| super::explored::in_words(not, report.cuts)),
            });
        }
        let name = program.first().map(|name| Path::new(name).file_name());
        let name = name.flatten().map_or("program".into(), |name| name.to_string_lossy());
        Results {
            findings,
            parts,
            left: explored.left(),
            run,
            recording,
            baseline,
            program: program.join(" "),
            program_name: name.into_owned(),
            file: program.iter().find_map(|word| below_here(word)),
        }
    }

    /// Whether what is not among the findings is not there.
    fn is_whole(&self) -> bool {
        self.left.is_empty() && !self.has_troubles()
    }

    fn has_troubles(&self) -> bool {
        self.parts.iter().any(|part| !part.troubles.is_empty())
    }

    /// The known findings that were not found.
    fn not_found(&self) -> Vec<&'a baseline::KnownFinding> {
        self.baseline.map_or(Vec::new(), |baseline| baseline.not_found(self.findings))
    }

    /// The same in sentences.
    pub fn fixed(&self) -> Vec<String> {
        let Some(baseline) = self.baseline else { return Vec::new() };
        let path = baseline.path.display();
        let say = |known: &baseline::KnownFinding| {
            let what = &known.what;
            terminal::harmless(&match self.is_whole() {
                true => format!("fixed: not found, remove it from {path}: {what}"),
                false => format!("not seen in what was explored, and known in {path}: {what}"),
            })
        };
        self.not_found().into_iter().map(say).collect()
    }

    /// How many findings are known, and how many are new.
    pub fn counts(&self) -> (usize, usize) {
        let known = self.findings.iter().filter(|finding| finding.known).count();
        (known, self.findings.len() - known)
    }
}

/// A regular file's path from the working directory, if it is below that.
fn below_here(word: &str) -> Option<String> {
    let here = std::env::current_dir().ok()?.canonicalize().ok()?;
    let file = here.join(word).canonicalize().ok().filter(|file| file.is_file())?;
    file.strip_prefix(here).ok()?.to_str().map(str::to_owned)
}
