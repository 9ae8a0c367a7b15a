//! Verifies the results of all shards, and hands them over in the order of the plan.
//!
//! What an engine says of its tasks is not asked: the files show whether a shard is whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use crate::plan::PlannedCase;
use crate::result_lines::{Attempt, CaseOutcome};
use crate::result_reader::{ResultItem, ResultReader};
use crate::{MergeFault, PlanFile, Result, SweepCase, SweepError, attempts, compare};

/// Files that are open at a time, at most; and how many of those that the process may have are left
/// to others.
const OPEN_MAX: u64 = 4096;
const LEFT: u64 = 64;

/// What was merged.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeTotals {
    /// Cases, each once.
    pub cases: u64,
    /// How many of them could not be computed.
    pub failed: u64,
    /// That all of them took together.
    pub seconds: f64,
    /// The machines that ran them.
    pub hosts: BTreeSet<String>,
}

/// Merges the results of all shards of a plan: files, and those in folders. `take` gets the cases
/// in the order of the plan, and may say that it cannot take one; what it was given counts only if
/// the merge returns without an error.
///
/// # Errors
/// The results are not those of this plan, whole and each once ([`SweepError::Refused`]); a file
/// cannot be read; or what `take` says.
pub fn merge(
    plan: &PlanFile,
    files: &[PathBuf],
    take: &mut dyn FnMut(SweepCase, CaseOutcome) -> Result<(), String>,
) -> Result<MergeTotals> {
    let mut readers = ResultReaders { all: opened(plan, files)?, open: 0, most: open_most() };
    let mut merged = MergeTotals { cases: 0, failed: 0, seconds: 0.0, hosts: BTreeSet::new() };
    let mut cases = plan.planned()?;
    while let Some(PlannedCase { case, shard }) = cases.read()? {
        let (next, reader) = readers.read(shard)?;
        let end = match next {
            Ok(ResultItem::Case(end, _)) if end.case == case.name => end,
            Ok(ResultItem::Case(end, line)) => {
                let what = format!("case '{}' stands where '{}' belongs", end.case, case.name);
                return refused(MergeFault::altered(reader.path(), line, what));
            }
            Ok(ResultItem::CutOff | ResultItem::Whole) => return refused(cut_off(plan, reader)),
            Err(fault) => return refused(fault),
        };
        merged.cases += 1;
        merged.seconds += end.seconds;
        let outcome = end.outcome();
        merged.failed += u64::from(matches!(outcome, CaseOutcome::Failed(_)));
        let name = case.name.clone();
        take(case, outcome).map_err(|what| SweepError::Taking { case: name, what })?;
    }
    for shard in 0..plan.shards() {
        let (next, reader) = readers.read(shard)?;
        match next {
            Ok(ResultItem::Whole) => {}
            Ok(ResultItem::CutOff) => return refused(cut_off(plan, reader)),
            Ok(ResultItem::Case(end, line)) => {
                let what = format!("case '{}' is not of this shard", end.case);
                return refused(MergeFault::altered(reader.path(), line, what));
            }
            Err(fault) => return refused(fault),
        }
        merged.hosts.append(&mut reader.hosts);
    }
    Ok(merged)
}

fn refused<T>(fault: MergeFault) -> Result<T> {
    Err(SweepError::Refused(vec![fault]))
}

fn cut_off(plan: &PlanFile, reader: &ResultReader) -> MergeFault {
    let shard = reader.first.shard;
    MergeFault::CutOff {
        file: reader.path().to_owned(),
        run: plan.run_command(),
        shard,
        done: reader.done,
        cases: plan.cases_of(shard),
    }
}

/// A file for each shard: all that is wrong with their beginnings is said at once.
fn opened(plan: &PlanFile, files: &[PathBuf]) -> Result<HashMap<u32, ResultReader>> {
    let mut faults = Vec::new();
    let mut by_shard: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
    let mut like: Option<(PathBuf, Attempt)> = None;
    for file in attempts::expanded(files)? {
        let reader = match ResultReader::open(&file, plan)? {
            Ok(reader) => reader,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        let (other, attempt) = like.get_or_insert_with(|| (file.clone(), reader.first.clone()));
        let same = MergeFault::other_tools((&file, &reader.first), (other, attempt));
        faults.extend(same.err());
        by_shard.entry(reader.first.shard).or_default().push(file);
    }
    let mut readers = HashMap::new();
    for shard in 0..plan.shards() {
        let files = by_shard.remove(&shard).unwrap_or_default();
        let file = match &files[..] {
            [] => {
                let (shards, cases) = (plan.shards(), plan.cases_of(shard));
                let run = plan.run_command();
                faults.push(MergeFault::Missing { run, shard, shards, cases });
                continue;
            }
            [one] => Ok(one.clone()),
            several => compare::only(plan, shard, several)?,
        };
        match file.map(|file| ResultReader::open(&file, plan)) {
            Ok(reader) => match reader? {
                Ok(reader) => drop(readers.insert(shard, reader)),
                Err(fault) => faults.push(fault),
            },
            Err(fault) => faults.push(fault),
        }
    }
    match faults.is_empty() {
        true => Ok(readers),
        false => Err(SweepError::Refused(faults)),
    }
}

fn open_most() -> u64 {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    most.unwrap_or(OPEN_MAX).saturating_sub(LEFT).clamp(1, OPEN_MAX)
}

/// The files of all shards, of which only so many are open.
struct ResultReaders {
    all: HashMap<u32, ResultReader>,
    open: u64,
    most: u64,
}

impl ResultReaders {
    fn read(
        &mut self,
        shard: u32,
    ) -> Result<(std::result::Result<ResultItem, MergeFault>, &mut ResultReader)> {
        let closed = self.all.get(&shard).is_some_and(|reader| !reader.is_open());
        if closed && self.open >= self.most {
            self.all.values_mut().for_each(ResultReader::close);
            self.open = 0;
        }
        self.open += u64::from(closed);
        let none = || SweepError::NoSuch(format!("there is no file of shard {shard}"));
        let reader = self.all.get_mut(&shard).ok_or_else(none)?;
        Ok((reader.read()?, reader))
    }
}
