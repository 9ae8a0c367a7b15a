//! The files of a folder of results, and what former attempts at a shard have left in them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::result_lines::{Attempt, CaseRecord};
use crate::result_reader::{ResultItem, ResultReader};
use crate::{MergeFault, PlanFile, Result, SweepError};

/// A shard that is whole, and what an attempt at it writes until then.
const WHOLE: &str = "jsonl";
const PART: &str = "part";

fn stem(shard: u32) -> String {
    format!("shard-{shard:06}")
}

/// The file of a shard that is whole.
pub(crate) fn whole(folder: &Path, shard: u32) -> PathBuf {
    folder.join(format!("{}.{WHOLE}", stem(shard)))
}

/// The file of an attempt, which nobody else writes to.
pub(crate) fn part(folder: &Path, shard: u32, host: &str, pid: u32, at_ms: u64) -> PathBuf {
    let host: String =
        host.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    folder.join(format!("{}.{host}-{pid}-{at_ms}.{PART}", stem(shard)))
}

/// What attempts at a shard have left, and the shard's own file, if there is one.
fn of_shard(folder: &Path, shard: u32) -> Result<Vec<PathBuf>> {
    let own = format!("{}.", stem(shard));
    let mut files = results_in(folder)?;
    files.retain(|file| file.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&own)));
    Ok(files)
}

/// The files of results in a folder.
fn results_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = |e| SweepError::io(folder, e);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let ends = path.extension().is_some_and(|end| end == WHOLE || end == PART);
        if ends && name.is_some_and(|name| name.starts_with("shard-")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Files, and those of results in folders.
pub(crate) fn expanded(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => files.extend(results_in(path)?),
            false => files.push(path.clone()),
        }
    }
    Ok(files)
}

/// What is left of former attempts at a shard.
#[derive(Debug, Default)]
pub(crate) struct FormerRun {
    /// The file that has the most cases.
    pub best: Option<PathBuf>,
    /// So many bytes of it are good.
    pub bytes: u64,
    /// Cases in them, and how many of these failed.
    pub cases: u64,
    pub failed: u64,
    /// What they took.
    pub seconds: f64,
    /// All files, of attempts that have ended or are believed to have.
    pub files: Vec<PathBuf>,
}

/// A file of a former attempt, while its lines are read.
struct FormerFile {
    reader: ResultReader,
    good: FormerRun,
}

/// Looks for what can be resumed. What is not as it was written is not taken, nor what follows it:
/// the cases are run again.
///
/// # Errors
/// There is something of another plan or program, or of a machine with other tools, or a case with
/// two results.
pub(crate) fn former(
    plan: &PlanFile,
    folder: &Path,
    (shard, own): (u32, &Attempt),
) -> Result<FormerRun> {
    let files = of_shard(folder, shard)?;
    let mut candidates = Vec::new();
    for file in &files {
        match ResultReader::open(file, plan)? {
            Ok(reader) if reader.first.shard == shard => {
                let same = MergeFault::other_tools((file, &reader.first), (folder, own));
                same.map_err(|fault| SweepError::Folder(Box::new(fault)))?;
                candidates.push(FormerFile { reader, good: FormerRun::default() });
            }
            Err(fault @ (MergeFault::OtherPlan { .. } | MergeFault::OtherProgram { .. })) => {
                return Err(SweepError::Folder(Box::new(fault)));
            }
            // Killed before its first line was written, or named so by somebody.
            Ok(_) | Err(_) => {}
        }
    }
    let mut best = FormerRun::default();
    let mut cases = plan.planned_of(shard)?;
    while let Some(case) = cases.read()? {
        let mut first: Option<(PathBuf, u64, Box<CaseRecord>)> = None;
        let mut going = Vec::new();
        for mut candidate in candidates {
            let read = candidate.reader.read()?;
            let Ok(ResultItem::Case(end, line)) = read else { continue };
            if end.case != case.name {
                continue;
            }
            let path = candidate.reader.path().to_owned();
            let good = &mut candidate.good;
            good.cases += 1;
            good.failed += u64::from(end.failed.is_some());
            good.seconds += end.seconds;
            good.bytes = candidate.reader.offset();
            if good.cases > best.cases {
                best = FormerRun { best: Some(path.clone()), files: Vec::new(), ..*good };
            }
            match &first {
                Some((other, other_line, other_end)) if !end.is_like(other_end) => {
                    let files = Box::new([(other.clone(), *other_line), (path, line)]);
                    let (run, case) = (plan.run_command(), case.name);
                    let unlike = MergeFault::Unlike { run, case, files };
                    return Err(SweepError::Folder(Box::new(unlike)));
                }
                Some(_) => {}
                None => first = Some((path, line, end)),
            }
            going.push(candidate);
        }
        candidates = going;
        if candidates.is_empty() {
            break;
        }
    }
    Ok(FormerRun { files, ..best })
}
