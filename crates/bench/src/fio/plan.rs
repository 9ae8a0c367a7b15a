//! Which jobs run on which files: the sections with their clones, in groups; and what cannot be.

use std::sync::Arc;

use steadfast_runtime::random_u64;
use steadfast_runtime::rng::Rng;

use super::io_log::{self, IoLog};
use super::job_file::{self, JobSurroundings};
use super::log_job;
use super::options::{
    self, FileSize, IoEngine, JobDescription, JobOptions, ReplayOptions, RequestKind, row,
};
use super::wrong::{JobFileError, LineOrigin};
use crate::places::{Distribution, RANKS_MAX};

/// Jobs of a run, at most: fio's own limit.
const JOBS_MAX: usize = 4096;
/// Requests in flight of all jobs, at most.
const IN_FLIGHT_MAX: u64 = 4096;
/// Bytes of the data of all requests in flight, at most.
const BUFFERS_MAX: u64 = 4 << 30;
/// Bytes of a request, at most.
pub(super) const REQUEST_MAX: u64 = BUFFERS_MAX / 4;
/// Files of all jobs, at most.
const FILES_MAX: u64 = 1 << 20;
/// Bytes of a file.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 60;
/// Blocks of a job that a map of random requests, or of blocks to be verified, may have.
const MAP_MAX: u64 = 1 << 32;
/// Bytes of which each says what it is, of what is verified.
pub(super) const STAMPED: u64 = steadfast_block::pattern::SECTOR as u64;

/// What a plan is made for.
pub struct PlanTarget<'a> {
    /// What absolute paths count from.
    pub root: AbsoluteRoot,
    /// How long a file is that is there, by its path from the root.
    pub existing: &'a dyn Fn(&str) -> Option<u64>,
    /// Only sections of these names are run; without one all.
    pub only: &'a [String],
}

/// What an absolute path of a job file means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbsoluteRoot {
    /// The root of the file system that the jobs run on.
    FileSystem,
    /// The folder that the jobs run in has this path, and others are refused.
    Folder(String),
}

/// A job file, ready to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct FioPlan {
    /// Each job and its clones.
    pub jobs: Vec<Arc<FioJob>>,
    /// What a reader of the figures should know.
    pub notes: Vec<String>,
}

/// A job of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct FioJob {
    /// What it does.
    pub options: JobOptions,
    /// Its own lines: name and value.
    pub own: Vec<(String, Option<String>)>,
    /// Those of the `[global]` sections.
    pub globals: Vec<(String, Option<String>)>,
    /// Where its section is.
    pub at: LineOrigin,
    /// Its number among the clones of its section.
    pub clone: u64,
    /// Which group its figures belong to.
    pub group: u64,
    /// Jobs before it that must have ended.
    pub after: StartRule,
    /// What it reads and writes.
    pub files: Vec<FioFile>,
    /// Bytes of all requests of one pass.
    pub total: u64,
    /// What its random choices begin from.
    pub seed: u64,
    /// The log that it replays.
    pub(super) log: Option<Arc<IoLog>>,
}

/// What a job waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartRule {
    /// All jobs with a smaller number.
    Before(usize),
    /// These jobs, from and to below.
    Of(usize, usize),
}

/// A file of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioFile {
    /// From the root of the file system.
    pub path: String,
    /// Where its part begins.
    pub start: u64,
    /// Bytes of it.
    pub len: u64,
}

/// The text of a job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    /// As its errors call it.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// Reads and plans job files: all their jobs are of one run.
///
/// # Errors
/// All lines that are wrong, or of which not everything is here.
pub fn plan(
    files: &[JobFile],
    around: &dyn JobSurroundings,
    target: &PlanTarget<'_>,
) -> Result<FioPlan, JobFileError> {
    let mut wrong = JobFileError::default();
    let mut jobs = Vec::new();
    for JobFile { name, text } in files {
        let read = job_file::sections(text, name, around).and_then(options::described);
        match read {
            Ok(read) => jobs.extend(read),
            Err(e) => wrong.lines.extend(e.lines),
        }
    }
    let mut jobs: Vec<JobDescription> = wrong.or(jobs)?;
    for name in target.only {
        if !jobs.iter().any(|job| job.section.name == *name) {
            let file = files.first().map_or("", |file| &file.name);
            let at = LineOrigin { file: file.into(), line: 1 };
            return Err(JobFileError::one(&at, format!("there is no section '{name}'")));
        }
    }
    jobs.retain(|job| target.only.is_empty() || target.only.contains(&job.section.name));
    let mut planner = Planner::default();
    jobs.iter().for_each(|job| planner.add(job, around, target));
    planner.look_at_all();
    planner.wrong.or(FioPlan { jobs: planner.jobs, notes: planner.notes })
}

#[derive(Default)]
struct Planner {
    jobs: Vec<Arc<FioJob>>,
    notes: Vec<String>,
    wrong: JobFileError,
    group: u64,
    /// Jobs with a smaller number have ended when the next one begins.
    barrier: usize,
    /// Logs that were read.
    logs: Vec<(ReplayOptions, Arc<IoLog>)>,
}

impl Planner {
    fn add(&mut self, job: &JobDescription, around: &dyn JobSurroundings, target: &PlanTarget<'_>) {
        // A long log is not read for a run that there will not be.
        if job.options.replay.log.is_some() && !self.wrong.lines.is_empty() {
            return;
        }
        let log = match self.log(job, around) {
            Ok(log) => log,
            Err(e) => return self.wrong.lines.extend(e.lines),
        };
        let by_log = log.as_ref().map(|log| log_job::with_log(job, log));
        let job = by_log.as_ref().unwrap_or(job);
        let options = &job.options;
        for note in &job.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        let before = self.wrong.lines.len();
        self.contradictions(job, log.as_deref());
        if self.wrong.lines.len() > before {
            return;
        }
        let is_first = self.jobs.is_empty();
        if (options.stonewall || options.new_group) && !is_first {
            self.group += 1;
        }
        let first = self.jobs.len();
        if first + options.numjobs as usize > JOBS_MAX {
            let what = format!("more than {JOBS_MAX} jobs altogether");
            return self.wrong.note(&job.place_of(&["numjobs"]), what);
        }
        if options.stonewall {
            self.barrier = first;
        }
        let after = match &options.wait_for {
            None => StartRule::Before(self.barrier),
            Some(name) => {
                let named = |job: &Arc<FioJob>| job.options.name == *name;
                match self.jobs.iter().position(named).zip(self.jobs.iter().rposition(named)) {
                    Some((from, last)) => StartRule::Of(from, last + 1),
                    None => {
                        let what = format!("wait_for: no job '{name}' is before it");
                        return self.wrong.note(&job.place_of(&["wait_for"]), what);
                    }
                }
            }
        };
        for clone in 0..options.numjobs {
            let seed = match (options.randseed, options.randrepeat) {
                (Some(seed), _) => seed,
                (None, true) => 0,
                (None, false) => random_u64(),
            };
            let number = self.jobs.len() as u64;
            let known = match &log {
                Some(log) => log_job::files(job, log, clone, target).map(|f| (f, log.bytes)),
                None => files(job, clone, target).map_err(|(names, e)| (job.place_of(names), e)),
            };
            let (files, total) = match known {
                Ok(known) => known,
                Err((at, what)) => return self.wrong.note(&at, what),
            };
            let pair = |s: &job_file::JobSetting| {
                (row(&s.name).map_or(s.name.clone(), |row| row.name.into()), s.value.clone())
            };
            self.jobs.push(Arc::new(FioJob {
                options: options.clone(),
                own: job.section.settings.iter().map(pair).collect(),
                globals: job.section.globals.iter().map(pair).collect(),
                at: job.section.at.clone(),
                clone,
                group: self.group,
                after,
                files,
                total,
                // Drawn: seeds that are multiples of the generator's own step would give each job
                // the sequence of the job before it, a request later.
                seed: Rng::new(seed ^ (number + 1)).bits(),
                log: log.clone(),
            }));
            if self.jobs.iter().map(|job| job.files.len() as u64).sum::<u64>() > FILES_MAX {
                let what = format!("more than {FILES_MAX} files altogether");
                return self.wrong.note(&job.place_of(&["nrfiles", "numjobs"]), what);
            }
        }
    }

    /// The log that a job replays; one that other jobs replay, too, is read once.
    fn log(
        &mut self,
        job: &JobDescription,
        around: &dyn JobSurroundings,
    ) -> Result<Option<Arc<IoLog>>, JobFileError> {
        let replay = &job.options.replay;
        let Some(name) = &replay.log else { return Ok(None) };
        if let Some((_, log)) = self.logs.iter().find(|(known, _)| known == replay) {
            return Ok(Some(Arc::clone(log)));
        }
        let mut text = around.log(name).map_err(|why| {
            JobFileError::one(&job.place_of(&["read_iolog"]), format!("read_iolog {name}: {why}"))
        })?;
        let lines: u64 = self.logs.iter().map(|(_, log)| log.lines).sum();
        let log = io_log::read(&mut *text, name, replay, io_log::LINES_MAX - lines)?;
        let log = Arc::new(log);
        self.logs.push((replay.clone(), Arc::clone(&log)));
        Ok(Some(log))
    }

    /// Notes what does not go together in a job.
    fn contradictions(&mut self, job: &JobDescription, log: Option<&IoLog>) {
        let o = &job.options;
        let mut wrong = |names: &[&str], what: String| self.wrong.note(&job.place_of(names), what);
        if o.time_based && o.runtime.is_none() {
            wrong(&["time_based"], "time_based needs runtime".into());
        }
        if o.rate.iter().any(Option::is_some) && o.rate_iops.iter().any(Option::is_some) {
            wrong(&["rate_iops"], "rate and rate_iops exclude each other".into());
        }
        if o.engine == IoEngine::Calls && o.iodepth > 1 {
            let at = job.place_of(&["iodepth"]);
            let engine = &o.engine_name;
            let note = format!("{at}: the engine {engine} has one request in flight, not more");
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        let mut wrong = |names: &[&str], what: String| self.wrong.note(&job.place_of(names), what);
        let sizes_by: &[&str] = match log {
            Some(_) => &["read_iolog"],
            None => &["bs", "bsrange", "bssplit"],
        };
        for kind in RequestKind::ALL.into_iter().filter(|kind| o.mix.has(*kind)) {
            let sizes = &o.sizes[kind as usize];
            let all = sizes.split.iter().map(|(size, _)| *size).chain([sizes.least, sizes.most]);
            // Of a log the offsets, too.
            let multiple = |of: u64| match log {
                Some(log) => log.is_in_sectors,
                None => all.clone().all(|size| size.is_multiple_of(of)),
            };
            if o.direct && (!multiple(STAMPED) || (o.bs_unaligned && sizes.least != sizes.most)) {
                wrong(sizes_by, format!("direct=1 needs multiples of {STAMPED} bytes"));
            }
            if o.verify.is_some() && (!multiple(STAMPED) || o.bs_unaligned) {
                let what = format!("verify needs requests in multiples of {STAMPED} bytes");
                wrong(sizes_by, what);
            }
            if sizes.most > REQUEST_MAX {
                let what = format!("a request of {} bytes: at most {REQUEST_MAX}", sizes.most);
                wrong(sizes_by, what);
            }
        }
        if log.is_some() && o.verify.is_some() && o.mix.writes && o.iodepth > 1 {
            let what = "verify of a log with iodepth: of two writes of one block in flight none is \
                        known to be the last";
            wrong(&["verify"], what.into());
        }
        if o.verify.is_some() && o.mix.writes && o.buffers == options::Buffers::Zeros {
            wrong(&["zero_buffers"], "zeros do not say which block they are: no verify".into());
        }
        let overlaps = o.norandommap || o.distribution != Distribution::Random;
        if o.verify.is_some() && o.mix.writes && o.mix.random && overlaps && o.iodepth > 1 {
            let what = "verify with iodepth needs a map: of two writes of one block in flight none \
                        is known to be the last";
            wrong(&["norandommap", "random_distribution"], what.into());
        }
        if o.verify.is_some() && o.mix.writes && o.time_based && o.iodepth > 1 {
            let what = "verify with iodepth needs an end: time_based=1 writes blocks again";
            wrong(&["time_based"], what.into());
        }
        if o.verify.is_some() && o.engine == IoEngine::Null {
            wrong(&["verify"], "the engine null reads nothing".into());
        }
    }

    /// Notes what all jobs together have too much of.
    fn look_at_all(&mut self) {
        let (mut in_flight, mut bytes) = (0u64, 0u64);
        for job in &self.jobs {
            let largest = job.options.sizes.iter().map(|sizes| sizes.most).max().unwrap_or(0);
            in_flight += job.depth();
            bytes = bytes.saturating_add(job.depth() * largest);
        }
        let at = self.jobs.first().map(|job| job.at.clone());
        let Some(at) = at else { return };
        if in_flight > IN_FLIGHT_MAX {
            let what = format!(
                "iodepth and numjobs make {in_flight} requests in flight; at most {IN_FLIGHT_MAX}"
            );
            self.wrong.note(&at, what);
        } else if bytes > BUFFERS_MAX {
            let what = format!("the requests in flight have {bytes} bytes; at most {BUFFERS_MAX}");
            self.wrong.note(&at, what);
        }
    }
}

impl FioJob {
    /// Whether its engine makes no requests.
    pub(super) fn is_null(&self) -> bool {
        self.options.engine == IoEngine::Null
    }

    /// Requests in flight.
    pub(super) fn depth(&self) -> u64 {
        match self.options.engine {
            IoEngine::Tasks => self.options.iodepth,
            IoEngine::Calls | IoEngine::Null => 1,
        }
    }

    /// What random offsets of a kind of requests are multiples of, in bytes.
    pub(super) fn align(&self, kind: RequestKind) -> u64 {
        let o = &self.options;
        o.align[kind as usize].unwrap_or(o.sizes[kind as usize].least)
    }

    /// Bytes of a block of the map of random requests.
    pub(super) fn map_block(&self) -> u64 {
        let kinds = RequestKind::ALL.into_iter().filter(|kind| self.options.mix.has(*kind));
        kinds.map(|kind| self.align(kind)).min().unwrap_or(1)
    }

    /// Whether each block is come to once before any comes again.
    pub(super) fn has_map(&self) -> bool {
        let o = &self.options;
        o.mix.random && !o.norandommap && o.distribution == Distribution::Random
    }
}

/// Options that something wrong is about, and what it is.
type WrongOptions = (&'static [&'static str], String);

/// The files of a clone of a job, and bytes of its requests.
fn files(
    job: &JobDescription,
    clone: u64,
    target: &PlanTarget<'_>,
) -> Result<(Vec<FioFile>, u64), WrongOptions> {
    const SIZES: &[&str] = &["size", "filesize", "nrfiles"];
    let o = &job.options;
    let paths = paths(job, clone, target)?;
    let count = paths.len() as u64;
    let mut files = Vec::new();
    for path in paths {
        let existing = (target.existing)(&path);
        let missing = || {
            let what = format!("job '{}': size is missing, and '{path}' is not there", o.name);
            (SIZES, what)
        };
        let increment = o.offset_increment.of(existing.unwrap_or(0)).saturating_mul(clone);
        let start = o.offset.of(existing.unwrap_or(0)).saturating_add(increment);
        let len = match (o.filesize, o.size) {
            (Some((least, most)), _) => {
                let mut rng = Rng::new(clone ^ files.len() as u64);
                least + rng.below(most - least + 1)
            }
            (None, Some(FileSize::Bytes(bytes))) => bytes / count,
            (None, Some(share)) => share.of(existing.ok_or_else(missing)?),
            (None, None) => existing.ok_or_else(missing)?.saturating_sub(start),
        };
        if start.saturating_add(len) > FILE_BYTES_MAX {
            return Err((SIZES, format!("'{path}' has more than {FILE_BYTES_MAX} bytes")));
        }
        files.push(FioFile { path, start, len });
    }
    let all: u64 = files.iter().map(|file| file.len).sum();
    for kind in RequestKind::ALL.into_iter().filter(|kind| o.mix.has(*kind)) {
        let least = o.sizes[kind as usize].least;
        if !files.iter().any(|file| file.len >= least) {
            let what = format!("job '{}': no file has room for a request of {least} bytes", o.name);
            return Err((&["bs", "bsrange", "bssplit"], what));
        }
        let align = o.align[kind as usize].unwrap_or(least).max(1);
        let most = files.iter().map(|file| file.len / align).max().unwrap_or(0);
        if o.mix.random && o.distribution.keeps_ranks() && most > RANKS_MAX {
            let what = format!("{} over more than {RANKS_MAX} blocks", o.distribution);
            return Err((&["random_distribution"], what));
        }
        let maps = o.mix.random && !o.norandommap || o.verify.is_some();
        if maps && all / align > MAP_MAX {
            let what = format!(
                "job '{}': a map of more than {MAP_MAX} blocks; norandommap=1 does without, and \
                 larger requests need a smaller one",
                o.name
            );
            return Err((SIZES, what));
        }
    }
    let whole = match o.size {
        Some(FileSize::Bytes(bytes)) => bytes.min(all),
        _ => all,
    };
    let total = o.io_size.map_or(whole, |size| size.of(whole));
    Ok((files, total))
}

/// Paths of the files from the root.
fn paths(
    job: &JobDescription,
    clone: u64,
    target: &PlanTarget<'_>,
) -> Result<Vec<String>, WrongOptions> {
    let o = &job.options;
    let named: Vec<String> = match o.filename.is_empty() {
        false => o.filename.clone(),
        true => (0..o.nrfiles).map(|number| made_name(o, clone, number)).collect(),
    };
    let place =
        |name| path_from_root(o, clone, name, &target.root).map_err(|what| (FILE_OPTIONS, what));
    named.into_iter().map(place).collect()
}

/// Where a file of this name is, in the job's folder; or why it cannot be there.
pub(super) fn path_from_root(
    o: &JobOptions,
    clone: u64,
    name: String,
    root: &AbsoluteRoot,
) -> Result<String, String> {
    let folder = match &o.directory[..] {
        [] => "",
        folders if o.filename.is_empty() => &folders[clone as usize % folders.len()],
        folders => &folders[0],
    };
    let path = match folder {
        "" => name,
        folder => format!("{}/{name}", folder.trim_end_matches('/')),
    };
    if path.split('/').any(|part| part == "..") {
        return Err(format!("'{path}': \"..\" may lead out of the folder"));
    }
    let AbsoluteRoot::Folder(root) = root else { return Ok(path) };
    let below = path.strip_prefix(root.as_str()).and_then(|rest| rest.strip_prefix('/'));
    match below {
        Some(below) => Ok(below.to_owned()),
        None if path.starts_with('/') => Err(format!(
            "'{path}' is outside of the folder {root}; with --folder FOLDER such paths begin there"
        )),
        None => Ok(path),
    }
}

/// Options that name files.
const FILE_OPTIONS: &[&str] = &["filename", "directory", "filename_format"];

/// The name of a file that the job file does not name.
fn made_name(o: &JobOptions, clone: u64, number: u64) -> String {
    o.filename_format
        .replace("$jobname", &o.name.replace('/', "."))
        .replace("$jobnum", &clone.to_string())
        .replace("$filenum", &number.to_string())
        .replace("$clientuid", "localhost")
}
