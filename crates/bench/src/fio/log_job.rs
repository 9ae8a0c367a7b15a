//! What a log makes of the job that replays it, as in fio: its requests, their sizes and its files
//! are the log's, whatever the job's lines say.

use super::io_log::IoLog;
use super::options::{BlockSizes, JobDescription, RequestKind, RequestMix, row};
use super::plan::{FioFile, PlanTarget, path_from_root};
use super::wrong::LineOrigin;

/// Options that say nothing of a job with a log.
const WITHOUT_EFFECT: &[&str] = &[
    "rw",
    "rwmixread",
    "rwmixwrite",
    "bs",
    "bsrange",
    "bssplit",
    "bs_unaligned",
    "blockalign",
    "size",
    "io_size",
    "filesize",
    "offset",
    "offset_increment",
    "filename",
    "filename_format",
    "nrfiles",
    "file_service_type",
    "number_ios",
    "loops",
    "time_based",
    "rate",
    "rate_iops",
    "rate_process",
    "random_distribution",
    "norandommap",
    "fsync",
    "fdatasync",
    "overwrite",
    "fallocate",
];

/// The job with what the log says.
pub(super) fn with_log(job: &JobDescription, log: &IoLog) -> JobDescription {
    let mut job = job.clone();
    let lines = job.section.globals.iter().chain(&job.section.settings);
    let notes = lines.filter_map(|line| {
        let name = row(&line.name)?.name;
        let has_none = WITHOUT_EFFECT.contains(&name);
        let note = || format!("{}: '{name}' has no effect with read_iolog", line.at);
        has_none.then(note)
    });
    job.notes.extend(notes.chain(log.note.clone()));
    let o = &mut job.options;
    let has = |kind: RequestKind| log.sizes[kind as usize].is_some();
    let (reads, writes) = (has(RequestKind::Read), has(RequestKind::Write));
    o.mix = RequestMix { reads, writes, ..RequestMix::default() };
    o.sizes = log.sizes.map(|size| match size {
        Some((least, most)) => BlockSizes { least, most, split: Vec::new() },
        None => BlockSizes::default(),
    });
    (o.bs_unaligned, o.align) = (false, [None; 2]);
    (o.number_ios, o.loops, o.time_based) = (None, 1, false);
    (o.rate, o.rate_iops) = ([None; 2], [None; 2]);
    (o.fsync, o.fdatasync) = (0, 0);
    job
}

/// The files of a log; or where one is named that cannot be, and why. Those that are read before
/// they are written are laid out so far; others are made where the log opens them.
pub(super) fn files(
    job: &JobDescription,
    log: &IoLog,
    clone: u64,
    target: &PlanTarget<'_>,
) -> Result<Vec<FioFile>, (LineOrigin, String)> {
    let files = log.files.iter().map(|file| {
        let path = path_from_root(&job.options, clone, file.name.clone(), &target.root);
        let path = path.map_err(|what| (file.at.clone(), what))?;
        Ok(FioFile { path, start: 0, len: file.needed })
    });
    files.collect()
}
