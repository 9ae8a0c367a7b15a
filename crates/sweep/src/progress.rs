//! How far a sweep is, from its files alone: the same on any machine that sees them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::lines::LineReader;
use crate::result_lines::ResultLine;
use crate::{CaseOutcome, PlanFile, Result, attempts};

/// Counts what is in the files of a sweep. Each look reads what is new.
pub struct SweepProgress<'p> {
    plan: &'p PlanFile,
    folder: PathBuf,
    files: BTreeMap<PathBuf, FileTail>,
}

/// A file, as far as it was read.
#[derive(Default)]
struct FileTail {
    shard: Option<u32>,
    offset: u64,
    lines: u64,
    done: u64,
    failed: u64,
    /// Of what this file's own attempt has done: when it began, and its cases.
    begun_ms: u64,
    own: u64,
    last_ms: u64,
    is_whole: bool,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SweepCounts {
    /// Cases that have ended.
    pub done: u64,
    /// How many of them could not be computed.
    pub failed: u64,
    /// All cases.
    pub cases: u64,
    /// Shards that are whole.
    pub shards_done: u32,
    /// Shards that have begun.
    pub shards_begun: u32,
    /// All shards.
    pub shards: u32,
    /// Cases a second, by the times in the files; `None`: not known yet.
    pub per_second: Option<f64>,
    /// At that rate.
    pub seconds_left: Option<f64>,
}

/// A case that has ended, in results that need not be whole.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedCase {
    /// Its name.
    pub case: String,
    /// What came of it.
    pub outcome: CaseOutcome,
    /// What it took.
    pub seconds: f64,
    /// When it ended: milliseconds since 1970.
    pub at_ms: u64,
}

impl<'p> SweepProgress<'p> {
    /// Of a plan, whose results are in a folder.
    pub fn new(plan: &'p PlanFile, folder: &Path) -> SweepProgress<'p> {
        SweepProgress { plan, folder: folder.into(), files: BTreeMap::new() }
    }

    /// Reads what is new. Nothing is verified but each line by itself: that is the merge's.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn look(&mut self) -> Result<SweepCounts> {
        let there = attempts::expanded(std::slice::from_ref(&self.folder))?;
        self.files.retain(|file, _| there.contains(file));
        for file in there {
            let tail = self.files.entry(file.clone()).or_default();
            let mut lines = match LineReader::open_at(&file, tail.offset, tail.lines) {
                Ok(lines) => lines,
                // It has got its last name meanwhile.
                Err(_) if !file.exists() => continue,
                Err(e) => return Err(e),
            };
            while let Some(line) = lines.read()? {
                tail.take(ResultLine::read(self.plan.fingerprint(), line).ok());
            }
            (tail.offset, tail.lines) = (lines.offset(), lines.number());
        }
        Ok(self.sum())
    }

    /// Of several files of a shard the one that is farthest.
    fn farthest(&self) -> BTreeMap<u32, (&Path, &FileTail)> {
        let mut of_shard: BTreeMap<u32, (&Path, &FileTail)> = BTreeMap::new();
        for (file, tail) in &self.files {
            let Some(shard) = tail.shard else { continue };
            let best = of_shard.entry(shard).or_insert((file, tail));
            if (tail.is_whole, tail.done) > (best.1.is_whole, best.1.done) {
                *best = (file, tail);
            }
        }
        of_shard
    }

    /// Reads what is new, and gives what came of each case that has ended, in no order.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn ended(&mut self, take: &mut dyn FnMut(EndedCase)) -> Result<SweepCounts> {
        let counts = self.look()?;
        for (file, _) in self.farthest().into_values() {
            let mut lines = match LineReader::open(file) {
                Ok(lines) => lines,
                Err(_) if !file.exists() => continue,
                Err(e) => return Err(e),
            };
            while let Some(line) = lines.read()? {
                let line = ResultLine::read(self.plan.fingerprint(), line);
                let Ok(ResultLine::Case(end)) = line else { continue };
                let (case, seconds, at_ms) = (end.case.clone(), end.seconds, end.at_ms);
                take(EndedCase { case, outcome: end.outcome(), seconds, at_ms });
            }
        }
        Ok(counts)
    }

    fn sum(&self) -> SweepCounts {
        let of_shard = self.farthest();
        let of_shard: Vec<&FileTail> = of_shard.into_values().map(|(_, tail)| tail).collect();
        let sum = |of: fn(&FileTail) -> u64| of_shard.iter().map(|tail| of(tail)).sum::<u64>();
        let (done, own) = (sum(|tail| tail.done), sum(|tail| tail.own));
        let begun = of_shard.iter().filter(|t| t.own > 0).map(|tail| tail.begun_ms).min();
        let last = of_shard.iter().filter(|t| t.own > 0).map(|tail| tail.last_ms).max();
        let ms = begun.zip(last).and_then(|(begun, last)| last.checked_sub(begun));
        let rate = ms.filter(|ms| *ms > 0).map(|ms| own as f64 * 1e3 / ms as f64);
        let cases = self.plan.cases();
        let count = |of: fn(&FileTail) -> bool| {
            // OK to cast: there are no more than shards.
            of_shard.iter().filter(|tail| of(tail)).count() as u32
        };
        SweepCounts {
            done,
            failed: sum(|tail| tail.failed),
            cases,
            shards_done: count(|tail| tail.is_whole),
            shards_begun: count(|_| true),
            shards: self.plan.shards(),
            per_second: rate,
            seconds_left: rate.map(|rate| cases.saturating_sub(done) as f64 / rate),
        }
    }
}

impl FileTail {
    /// Takes a line in; one that is of no sweep, or of another plan's, is none.
    fn take(&mut self, line: Option<ResultLine>) {
        match line {
            Some(ResultLine::Attempt(attempt)) => {
                self.shard = Some(attempt.shard);
                (self.begun_ms, self.own) = (attempt.at_ms, 0);
            }
            Some(ResultLine::Case(end)) => {
                self.done += 1;
                self.own += 1;
                self.failed += u64::from(end.failed.is_some());
                self.last_ms = end.at_ms;
            }
            Some(ResultLine::Manifest(_)) => self.is_whole = true,
            None => {}
        }
    }
}

impl std::fmt::Display for SweepCounts {
    /// In a line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SweepCounts { done, failed, cases, shards_done, shards_begun, shards, .. } = self;
        write!(f, "{done} of {cases} cases ({failed} failed)")?;
        if let Some(rate) = self.per_second {
            write!(f, ", {rate:.2}/s")?;
        }
        if let Some(left) = self.seconds_left.filter(|_| done < cases) {
            write!(f, ", about {left:.0} s left")?;
        }
        write!(f, "; of {shards} shards {shards_done} whole, {shards_begun} begun")
    }
}
