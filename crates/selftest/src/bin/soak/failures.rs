//! The record of failures: `failures.jsonl` has a line for each failing case of each commit,
//! `failing.jsonl` of each kind the newest (it fails now) and the quickest (it is the best to debug
//! with), as TigerBeetle's fuzzing keeps them.
//!
//! Both are made from the results and from what was there, and renamed into place: two that write
//! at once leave one of them, and the next one adds what is missing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use steadfast_selftest::soak::{SoakCases, SoakResult};
use steadfast_sweep::{CaseOutcome, EndedCase, PlanFile, SweepProgress};

use crate::error::{Result, SoakError};

/// The files are made anew this often, at most, until the end.
const EVERY: Duration = Duration::from_secs(10);
/// The kind of a case that could not be explored.
const UNEXPLORED: &str = "not explored";

/// A failing case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    commit: Option<String>,
    case: String,
    seed: u64,
    seconds: f64,
    command: String,
    kind: String,
    what: String,
    /// The beginning of its SHA-256.
    program: String,
    /// Milliseconds since 1970.
    at_ms: u64,
}

impl Failure {
    fn key(&self) -> (String, String, String) {
        (self.program.clone(), self.case.clone(), self.kind.clone())
    }
}

/// Writes the record of a plan's failures.
pub struct FailureRecord<'p> {
    plan: &'p PlanFile,
    cases: &'p SoakCases,
    results: &'p Path,
    folder: PathBuf,
    written: Option<Instant>,
}

impl<'p> FailureRecord<'p> {
    pub fn new(
        plan: &'p PlanFile,
        cases: &'p SoakCases,
        results: &'p Path,
        folder: PathBuf,
    ) -> FailureRecord<'p> {
        FailureRecord { plan, cases, results, folder, written: None }
    }

    /// A case has failed: unless it was done a moment ago, all that is in the results is recorded.
    pub fn failed(&mut self) -> Result<()> {
        if self.written.is_some_and(|written| written.elapsed() < EVERY) {
            return Ok(());
        }
        self.write().map(drop)
    }

    /// Records all; what is to be looked at of this program's, in words.
    pub fn write(&mut self) -> Result<Vec<String>> {
        let file = self.folder.join("failures.jsonl");
        let mut all = BTreeMap::new();
        for failure in before(&file)? {
            all.insert(failure.key(), failure);
        }
        SweepProgress::new(self.plan, self.results).ended(&mut |end| {
            for failure in self.failures(&end) {
                all.insert(failure.key(), failure);
            }
        })?;
        self.written = Some(Instant::now());
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let mut all: Vec<Failure> = all.into_values().collect();
        all.sort_by(|a, b| a.at_ms.cmp(&b.at_ms).then_with(|| a.case.cmp(&b.case)));
        put(&file, &all)?;
        let failing: Vec<Failure> = kept(&all).into_iter().map(|(_, failure)| failure).collect();
        put(&self.folder.join("failing.jsonl"), &failing)?;
        let own = self.program();
        all.retain(|failure| failure.program == own);
        Ok(kept(&all).iter().map(|(place, failure)| words(place, failure)).collect())
    }

    fn program(&self) -> String {
        self.plan.head().program.sha256.chars().take(16).collect()
    }

    /// Those of a case.
    fn failures(&self, end: &EndedCase) -> Vec<Failure> {
        let settings = self.cases.settings();
        let failure = |kind: &str, what: &str, command: Option<String>| Failure {
            commit: settings.commit.clone(),
            case: end.case.clone(),
            seed: settings.seed,
            seconds: end.seconds,
            command: command.unwrap_or_else(|| self.cases.command(&end.case)),
            kind: kind.into(),
            what: what.into(),
            program: self.program(),
            at_ms: end.at_ms,
        };
        match &end.outcome {
            CaseOutcome::Failed(why) => vec![failure(UNEXPLORED, why, None)],
            CaseOutcome::Done(result) => {
                // What is no result of a soak is refused by the merge.
                let result: SoakResult = serde_json::from_value(result.clone()).unwrap_or_default();
                let findings = result.findings.into_iter();
                findings.map(|f| failure(&f.kind, &f.what, f.command)).collect()
            }
        }
    }
}

/// Of each kind the newest and the quickest; one line where both are the same.
fn kept(all: &[Failure]) -> Vec<(&'static str, Failure)> {
    let mut of_kind: BTreeMap<&str, Vec<&Failure>> = BTreeMap::new();
    for failure in all {
        of_kind.entry(&failure.kind).or_default().push(failure);
    }
    let mut kept = Vec::new();
    for failures in of_kind.into_values() {
        let newest = failures.iter().max_by_key(|failure| failure.at_ms);
        let quickest = failures.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        match (newest, quickest) {
            (Some(newest), Some(quickest)) if newest.key() == quickest.key() => {
                kept.push(("newest and quickest", (*newest).clone()));
            }
            (newest, quickest) => {
                kept.extend(newest.map(|failure| ("newest", (*failure).clone())));
                kept.extend(quickest.map(|failure| ("quickest", (*failure).clone())));
            }
        }
    }
    kept
}

fn words(place: &str, failure: &Failure) -> String {
    let Failure { commit, case, seconds, command, kind, what, .. } = failure;
    let commit = commit.as_deref().unwrap_or("unknown");
    format!("{kind}, the {place}: {case} ({seconds:.1} s, commit {commit})\n  {what}\n  {command}")
}

/// What an earlier record has.
fn before(file: &Path) -> Result<Vec<Failure>> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(file).map_err(|e| SoakError::io(file, &e))?;
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| {
            let (file, line) = (file.display(), number + 1);
            SoakError::usage(format!("{file}, line {line}: it is no failure ({e}); remove it"))
        })
    };
    text.lines().enumerate().map(read).collect()
}

/// Writes lines, and gives the file its name once it is whole.
fn put(file: &Path, lines: &[Failure]) -> Result<()> {
    let mut text = String::new();
    for line in lines {
        text += &(serde_json::to_string(line)? + "\n");
    }
    let new = file.with_extension(format!("{}.new", std::process::id()));
    let put = fs::write(&new, text).and_then(|()| fs::rename(&new, file));
    put.map_err(|e| SoakError::io(file, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(case: &str, kind: &str, seconds: f64, at_ms: u64) -> Failure {
        Failure {
            commit: Some("c0ffee".into()),
            case: case.into(),
            seed: 1,
            seconds,
            command: format!("run {case}"),
            kind: kind.into(),
            what: "a".into(),
            program: "0".into(),
            at_ms,
        }
    }

    #[test]
    fn the_newest_and_the_quickest_of_each_kind_are_kept() {
        let all = [
            failure("slow", "damage", 9.0, 1),
            failure("quick", "damage", 0.1, 2),
            failure("new", "damage", 5.0, 3),
            failure("only", "stale bytes", 1.0, 4),
        ];
        let kept = kept(&all);
        let names: Vec<(&str, &str)> = kept.iter().map(|(p, f)| (*p, f.case.as_str())).collect();
        let expected = [("newest", "new"), ("quickest", "quick"), ("newest and quickest", "only")];
        assert_eq!(names, expected);
    }
}
