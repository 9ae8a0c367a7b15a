//! Several files of one shard, case by case: which of them is taken, and whether they are alike.

use std::path::PathBuf;

use crate::result_lines::CaseRecord;
use crate::result_reader::{ResultItem, ResultReader};
use crate::{MergeFault, PlanFile, Result};

/// A file while it is compared.
struct SideFile {
    reader: ResultReader,
    /// Read to its manifest, or as far as it goes.
    has_ended: bool,
    is_whole: bool,
}

/// The file of a shard to be taken, of several: the one with a manifest. A case with two results is
/// reported before all else.
pub(crate) fn only(
    plan: &PlanFile,
    shard: u32,
    files: &[PathBuf],
) -> Result<std::result::Result<PathBuf, MergeFault>> {
    let mut all = Vec::new();
    for file in files {
        match ResultReader::open(file, plan)? {
            Ok(reader) => all.push(SideFile { reader, has_ended: false, is_whole: false }),
            Err(fault) => return Ok(Err(fault)),
        }
    }
    while !all.iter().all(|beside| beside.has_ended) {
        let mut first: Option<(usize, u64, Box<CaseRecord>)> = None;
        for at in 0..all.len() {
            if all[at].has_ended {
                continue;
            }
            let end = match all[at].reader.read()? {
                Err(fault) => return Ok(Err(fault)),
                Ok(ResultItem::Case(end, line)) => Some((end, line)),
                Ok(ResultItem::Whole) => {
                    all[at].is_whole = true;
                    None
                }
                Ok(ResultItem::CutOff) => None,
            };
            let Some((end, line)) = end else {
                all[at].has_ended = true;
                continue;
            };
            match &first {
                // Another case in its place is found when the file is taken.
                Some((other, other_line, like)) if end.case == like.case && !end.is_like(like) => {
                    let of = |at: usize, line| (all[at].reader.path().to_owned(), line);
                    let files = Box::new([of(*other, *other_line), of(at, line)]);
                    let (run, case) = (plan.run_command(), end.case);
                    return Ok(Err(MergeFault::Unlike { run, case, files }));
                }
                Some(_) => {}
                None => first = Some((at, line, end)),
            }
        }
    }
    let mut whole = all.iter().filter(|beside| beside.is_whole);
    let path = |beside: &SideFile| beside.reader.path().to_owned();
    Ok(match (whole.next(), whole.next()) {
        (Some(one), Some(two)) => {
            Err(MergeFault::Doubled { shard, files: Box::new([path(one), path(two)]) })
        }
        (Some(one), None) => Ok(path(one)),
        // None is whole: the longest says how much is missing.
        _ => Ok(all.iter().max_by_key(|beside| beside.reader.done).map(path).unwrap_or_default()),
    })
}
