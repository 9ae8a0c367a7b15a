//! What was judged, what was found and what was left: what all reports are made of.

use std::path::Path;

use steadfast_crash::persistence::Model;
use steadfast_crash::program::ProgramRun;

use super::super::explored;
use super::super::judged::JudgedRun;
use super::baseline::{Baseline, KnownFinding};
use super::findings::{Finding, Source};
use crate::terminal;

/// What was judged by itself: the states of the disk, or the calls by a model.
pub struct JudgedPart<'a> {
    /// In words.
    pub name: String,
    /// Of which run.
    run: usize,
    model: Option<Model>,
    /// Where the recording is kept.
    pub recording: Option<&'a Path>,
    /// How the program failed, if that counts.
    pub program_failed: Option<String>,
    /// What failed, so that states could not be judged.
    pub troubles: &'a [String],
    /// What was not explored.
    pub left: Option<String>,
}

impl JudgedPart<'_> {
    /// Whether a finding is of it.
    pub fn is_of(&self, finding: &Finding<'_>) -> bool {
        let of_run =
            finding.run == self.run || finding.also.iter().any(|also| also.run == self.run);
        of_run
            && match finding.source {
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
    /// The recording; of several file systems that on the first, whose calls were judged.
    pub run: &'a ProgramRun,
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
    /// Of what was explored of this program, on each file system; nothing where there was none.
    pub fn of(
        runs: &'a [JudgedRun<'a>],
        (program, ignore_status): (&[String], bool),
        findings: &'a [Finding<'a>],
        baseline: Option<&'a Baseline>,
    ) -> Option<Results<'a>> {
        let parts = runs.iter().enumerate().flat_map(|run| parts_of(run, ignore_status));
        // Of one run nobody asks which.
        let on = |run: &JudgedRun<'_>| match runs.len() {
            1 => String::new(),
            _ => format!("{}: ", run.setup.fs.name()),
        };
        let left = runs.iter().flat_map(|run| {
            let left = run.explored.left().into_iter();
            left.map(|left| on(run) + &left).collect::<Vec<_>>()
        });
        let name = program.first().map(|name| Path::new(name).file_name());
        let name = name.flatten().map_or("program".into(), |name| name.to_string_lossy());
        Some(Results {
            findings,
            parts: parts.collect(),
            left: left.collect(),
            run: &runs.first()?.run,
            baseline,
            program: program.join(" "),
            program_name: name.into_owned(),
            file: program.iter().find_map(|word| below_here(word)),
        })
    }

    /// Whether what is not among the findings is not there.
    pub fn is_whole(&self) -> bool {
        self.left.is_empty() && !self.has_troubles()
    }

    /// Whether states could not be judged, or the program failed.
    pub fn has_troubles(&self) -> bool {
        self.parts.iter().any(|part| !part.troubles.is_empty() || part.program_failed.is_some())
    }

    /// The known findings that were not found.
    pub fn not_found(&self) -> Vec<&'a KnownFinding> {
        self.baseline.map_or(Vec::new(), |baseline| baseline.not_found(self.findings))
    }

    /// The same in sentences.
    pub fn fixed(&self) -> Vec<String> {
        let Some(baseline) = self.baseline else { return Vec::new() };
        let path = baseline.path.display();
        let say = |known: &KnownFinding| {
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

/// What was judged of a run.
fn parts_of<'a>(
    (number, run): (usize, &'a JudgedRun<'a>),
    ignore_status: bool,
) -> Vec<JudgedPart<'a>> {
    let JudgedRun { explored, setup, .. } = run;
    let recording = run.kept.as_deref();
    let of_states = |not| explored::in_words(not, explored.outcome.cuts);
    let mut parts = vec![JudgedPart {
        name: format!("states of the recorded disk: {}", setup.in_words()),
        run: number,
        model: None,
        recording,
        program_failed: if ignore_status { None } else { run.has_failed() },
        // OK to index: these were the first.
        troubles: &explored.outcome.troubles[..explored.states_troubles],
        left: explored.outcome.not_explored.map(of_states),
    }];
    for (model, report) in explored.by_calls.iter().flat_map(|of| &of.reports[..of.asked]) {
        parts.push(JudgedPart {
            name: format!("the calls by {}", model.in_words()),
            run: number,
            model: Some(*model),
            recording,
            program_failed: None,
            troubles: &report.troubles,
            left: report.not_explored.map(|not| explored::in_words(not, report.cuts)),
        });
    }
    parts
}

/// A regular file's path from the working directory, if it is below that.
fn below_here(word: &str) -> Option<String> {
    let here = std::env::current_dir().ok()?.canonicalize().ok()?;
    let file = here.join(word).canonicalize().ok().filter(|file| file.is_file())?;
    file.strip_prefix(here).ok()?.to_str().map(str::to_owned)
}
