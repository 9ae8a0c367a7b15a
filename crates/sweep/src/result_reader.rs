//! Reads a file of results, and verifies each line against what came before.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::digest::hex;
use crate::lines::LineReader;
use crate::result_lines::{Attempt, CaseRecord, ResultLine};
use crate::{CaseCosts, MergeFault, PlanFile, Result, SweepError};

/// What a read of a file of results gives: a fault is no error of the reading.
pub(crate) type Read<T> = Result<std::result::Result<T, MergeFault>>;

/// What a file's next line is.
#[derive(Debug)]
pub(crate) enum ResultItem {
    /// A case has ended; the number of its line.
    Case(Box<CaseRecord>, u64),
    /// The manifest, and nothing follows it.
    Whole,
    /// No manifest: what is there is good.
    CutOff,
}

/// Reads a shard's file.
pub(crate) struct ResultReader {
    path: PathBuf,
    plan: String,
    program: String,
    pub first: Attempt,
    /// `None`: closed for a while, as too many are open.
    lines: Option<LineReader>,
    /// Where the next line begins, and how many were before.
    at: (u64, u64),
    digest: Sha256,
    /// Of the attempt that goes on.
    host: String,
    /// Of all attempts until now.
    pub hosts: BTreeSet<String>,
    clock_ms: u64,
    pub done: u64,
}

impl ResultReader {
    /// Opens a file, and reads which shard it is of.
    pub fn open(path: &Path, plan: &PlanFile) -> Read<ResultReader> {
        let mut lines = LineReader::open(path)?;
        let Some(line) = lines.read()? else {
            return Ok(Err(MergeFault::altered(path, 1, "there is no line in it")));
        };
        let Some(first) = ResultLine::attempt(line) else {
            return Ok(Err(MergeFault::altered(
                path,
                1,
                "it does not begin as a sweep's results do",
            )));
        };
        let (wanted, program) = (plan.fingerprint(), &plan.head().program.sha256);
        let file = path.to_owned();
        if first.plan != wanted {
            let (found, wanted) = (first.plan, wanted.to_owned());
            return Ok(Err(MergeFault::OtherPlan { file, found, wanted }));
        }
        if let Err(what) = ResultLine::read(wanted, line) {
            return Ok(Err(MergeFault::altered(path, 1, what)));
        }
        if first.program != *program {
            let (found, wanted) = (first.program, program.clone());
            return Ok(Err(MergeFault::OtherProgram { file, found, wanted }));
        }
        if first.shard >= plan.shards() {
            let what = format!("the plan has no shard {}", first.shard);
            return Ok(Err(MergeFault::altered(path, 1, what)));
        }
        Ok(Ok(ResultReader {
            path: file,
            plan: wanted.to_owned(),
            program: program.clone(),
            host: first.host.clone(),
            hosts: BTreeSet::new(),
            clock_ms: first.at_ms,
            first,
            lines: None,
            at: (0, 0),
            digest: Sha256::new(),
            done: 0,
        }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_open(&self) -> bool {
        self.lines.is_some()
    }

    /// Closes the file until it is read again.
    pub fn close(&mut self) {
        self.lines = None;
    }

    /// Where the next line begins.
    pub fn offset(&self) -> u64 {
        self.at.0
    }

    /// The next case or the end; attempts are verified on the way.
    pub fn read(&mut self) -> Read<ResultItem> {
        loop {
            let mut lines = match self.lines.take() {
                Some(lines) => lines,
                None => LineReader::open_at(&self.path, self.at.0, self.at.1)?,
            };
            let Some(line) = lines.read()? else { return Ok(Ok(ResultItem::CutOff)) };
            let number = self.at.1 + 1;
            let read = match ResultLine::read(&self.plan, line) {
                Ok(read) => read,
                Err(what) => return Ok(Err(MergeFault::altered(&self.path, number, what))),
            };
            let before = match &read {
                ResultLine::Manifest(_) => Some(hex(&self.digest.clone().finalize())),
                _ => None,
            };
            self.digest.update(line);
            self.digest.update(b"\n");
            if let Err(fault) = self.clock(&read, number) {
                return Ok(Err(fault));
            }
            let wrong = |what: &str| Ok(Err(MergeFault::altered(&self.path, number, what)));
            let next = match read {
                ResultLine::Attempt(attempt) => {
                    let same = attempt.plan == self.plan
                        && attempt.program == self.program
                        && attempt.shard == self.first.shard;
                    if !same {
                        return wrong("this attempt is of another plan, program or shard");
                    }
                    let (file, first) = (&*self.path, &self.first);
                    if let Err(fault) = MergeFault::other_tools((file, &attempt), (file, first)) {
                        return Ok(Err(fault));
                    }
                    self.hosts.insert(attempt.host);
                    None
                }
                ResultLine::Case(end) => {
                    self.done += 1;
                    Some(ResultItem::Case(Box::new(end), number))
                }
                ResultLine::Manifest(manifest) => {
                    let good = Some(&manifest.results) == before.as_ref()
                        && manifest.cases == self.done
                        && manifest.plan == self.plan
                        && manifest.program == self.program
                        && manifest.shard == self.first.shard;
                    if !good {
                        return wrong("the manifest is not of the lines before it");
                    }
                    if lines.read()?.is_some() || lines.has_rest() {
                        return wrong("something follows the manifest");
                    }
                    Some(ResultItem::Whole)
                }
            };
            self.at = (lines.offset(), lines.number());
            self.lines = Some(lines);
            if let Some(next) = next {
                return Ok(Ok(next));
            }
        }
    }

    /// A clock may differ from another machine's, but it does not go back.
    fn clock(&mut self, line: &ResultLine, number: u64) -> std::result::Result<(), MergeFault> {
        if let ResultLine::Attempt(attempt) = line
            && attempt.host != self.host
        {
            self.host.clone_from(&attempt.host);
            self.clock_ms = attempt.at_ms;
        }
        let at = line.at_ms();
        if let Some(back_ms) = self.clock_ms.checked_sub(at).filter(|back| *back > 0) {
            let (file, host) = (self.path.clone(), self.host.clone());
            return Err(MergeFault::ClockBack { file, line: number, host, back_ms });
        }
        self.clock_ms = at;
        Ok(())
    }
}

/// How long the cases in these files took: of any plan's, as far as they can be read.
///
/// # Errors
/// A file cannot be read.
pub fn costs(files: &[PathBuf]) -> Result<CaseCosts> {
    let mut costs = CaseCosts::default();
    for file in crate::attempts::expanded(files)? {
        let mut lines = LineReader::open(&file)?;
        let first = lines.read()?.and_then(ResultLine::attempt);
        let what = || SweepError::NoSuch(format!("{}: no results of a sweep", file.display()));
        let plan = first.ok_or_else(what)?.plan;
        while let Some(line) = lines.read()? {
            if let Ok(ResultLine::Case(end)) = ResultLine::read(&plan, line) {
                costs.add(&end.case, end.seconds);
            }
        }
    }
    Ok(costs)
}
