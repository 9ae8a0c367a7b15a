//! What a job's lines say: fio's options, of which [`rows`] is the list.

mod left_out;
mod replay;
mod shape;
mod table;
mod taken;
mod value;

use std::time::Duration;

use steadfast_vfs::options::slip_of;

use super::job_file::{JobSection, JobSetting};
use super::wrong::JobFileError;
use crate::places::Distribution;

pub use replay::{ReplayOptions, SkipKinds};
pub use shape::{
    BlockSizes, Buffers, FileOrder, FileSize, IoEngine, RatePacing, RequestKind, RequestMix,
    Verification, WriteSync,
};
pub use table::OptionRow;
use value::SizePrefixes;

/// A job as its lines describe it.
#[derive(Debug, Clone, PartialEq, smart_default::SmartDefault)]
pub struct JobOptions {
    /// Its name, from the section or `name`.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// Files by name.
    pub filename: Vec<String>,
    /// Folders of the files.
    pub directory: Vec<String>,
    /// How files are named that have no name.
    #[default = "$jobname.$jobnum.$filenum"]
    pub filename_format: String,
    /// How many files have no name.
    #[default = 1]
    pub nrfiles: u64,
    /// Which of the files is next.
    pub file_order: FileOrder,
    /// Reads, writes, or both; one after the other or at random places.
    pub mix: RequestMix,
    /// Of a hundred requests of a mix so many are reads.
    #[default = 50]
    pub read_percent: u64,
    /// Bytes of a read and of a write.
    pub sizes: [BlockSizes; 2],
    /// Lengths of requests need not be whole multiples of the smallest.
    pub bs_unaligned: bool,
    /// Bytes that random offsets are multiples of; `None`: the smallest request.
    pub align: [Option<u64>; 2],
    /// Bytes of all files together.
    pub size: Option<FileSize>,
    /// Bytes to be read and written, where that is another number.
    pub io_size: Option<FileSize>,
    /// Bytes of a file, from and to.
    pub filesize: Option<(u64, u64)>,
    /// Where in a file a job begins.
    pub offset: FileSize,
    /// By how much later each further job begins.
    pub offset_increment: FileSize,
    /// So many requests at most.
    pub number_ios: Option<u64>,
    /// How often all of it is done.
    #[default = 1]
    pub loops: u64,
    /// How requests are made.
    pub engine: IoEngine,
    /// The name of it in the file.
    #[default = "psync"]
    pub engine_name: String,
    /// Requests in flight.
    #[default = 1]
    pub iodepth: u64,
    /// O_DIRECT.
    pub direct: bool,
    /// O_SYNC or O_DSYNC.
    pub sync: WriteSync,
    /// After so many writes an fsync; 0: none.
    pub fsync: u64,
    /// After so many writes an fdatasync; 0: none.
    pub fdatasync: u64,
    /// An fsync at the end, in the job's time.
    pub end_fsync: bool,
    /// An fsync before a file is closed.
    pub fsync_on_close: bool,
    /// An fsync of each file that was laid out, before the jobs run.
    #[default = true]
    pub create_fsync: bool,
    /// Files are laid out also where they are only written.
    pub overwrite: bool,
    /// Files that are only written get their space before.
    #[default = true]
    pub fallocate: bool,
    /// The page cache forgets a file when it is opened.
    #[default = true]
    pub invalidate: bool,
    /// The kernel is told whether offsets are random.
    #[default = true]
    pub fadvise_hint: bool,
    /// Files are removed at the end.
    pub unlink: bool,
    /// A job ends after this time.
    pub runtime: Option<Duration>,
    /// And not before.
    pub time_based: bool,
    /// This much of it is not counted.
    pub ramp_time: Duration,
    /// A job begins after a time in this range.
    pub startdelay: (Duration, Duration),
    /// A job waits after requests.
    pub thinktime: Duration,
    /// After so many.
    #[default = 1]
    pub thinktime_blocks: u64,
    /// Bytes a second of reads and of writes, at most.
    pub rate: [Option<u64>; 2],
    /// Requests a second, at most.
    pub rate_iops: [Option<u64>; 2],
    /// When the requests of a rate come.
    pub rate_process: RatePacing,
    /// Where random requests go.
    #[default(Distribution::Random)]
    pub distribution: Distribution,
    /// Random requests may come to a block several times before they came to all.
    pub norandommap: bool,
    /// What random choices begin from.
    pub randseed: Option<u64>,
    /// Random choices are the same in every run.
    #[default = true]
    pub randrepeat: bool,
    /// Whether what is read must be what was written.
    pub verify: Option<Verification>,
    /// Written blocks are read back.
    #[default = true]
    pub do_verify: bool,
    /// What is written.
    pub buffers: Buffers,
    /// A log whose requests it makes.
    pub replay: ReplayOptions,
    /// So many jobs of this kind.
    #[default = 1]
    pub numjobs: u64,
    /// It begins when those before it have ended.
    pub stonewall: bool,
    /// Its figures are not added to those before it.
    pub new_group: bool,
    /// The figures of a group are added up.
    pub group_reporting: bool,
    /// It begins when the job of this name has ended.
    pub wait_for: Option<String>,
    /// Percentiles that are reported, in %.
    #[default(PERCENTILES.to_vec())]
    pub percentiles: Vec<f64>,
    /// Those of the times from call to return.
    #[default = true]
    pub clat_percentiles: bool,
    /// Those of the whole times.
    pub lat_percentiles: bool,
    prefixes: SizePrefixes,
}

/// fio's percentiles.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// A job with its lines.
#[derive(Debug, Clone, PartialEq)]
pub struct JobDescription {
    /// The section and its lines.
    pub section: JobSection,
    /// What they mean.
    pub options: JobOptions,
    /// Lines that have no effect here, and why.
    pub notes: Vec<String>,
}

impl JobDescription {
    /// Where the last line of one of these options is, or else the section.
    pub(super) fn place_of(&self, names: &[&str]) -> super::wrong::LineOrigin {
        let own = self.section.settings.iter().rev().chain(self.section.globals.iter().rev());
        let mut named = own.filter(|s| row(&s.name).is_some_and(|row| names.contains(&row.name)));
        named.next().map_or_else(|| self.section.at.clone(), |setting| setting.at.clone())
    }
}

/// All options that are taken, those without effect at the end.
pub fn rows() -> impl Iterator<Item = &'static OptionRow> {
    taken::TAKEN.iter().chain(replay::REPLAY).chain(left_out::WITHOUT_EFFECT)
}

/// The row of an option, by its name or another that it has.
pub fn row(name: &str) -> Option<&'static OptionRow> {
    rows().find(|row| row.name == name || row.aliases.contains(&name))
}

/// The option that was meant where a name is none of fio's, but for a slip.
pub fn meant(name: &str) -> Option<&'static str> {
    let known = rows().flat_map(|row| row.aliases.iter().copied().chain([row.name]));
    slip_of(name, known).filter(|_| row(name).is_none() && left_out::why_not(name).is_none())
}

/// What the sections mean.
///
/// # Errors
/// All lines with options that are not supported, or with values that they do not take.
pub fn described(sections: Vec<JobSection>) -> Result<Vec<JobDescription>, JobFileError> {
    let mut wrong = JobFileError::default();
    let mut jobs = Vec::new();
    for section in sections {
        let mut options = JobOptions { name: section.name.clone(), ..JobOptions::default() };
        let mut notes = Vec::new();
        let lines: Vec<&JobSetting> = section.globals.iter().chain(&section.settings).collect();
        // It says what the prefixes of all sizes mean.
        let first = lines.iter().filter(|s| s.name == "kb_base");
        let others = lines.iter().filter(|s| s.name != "kb_base");
        for setting in first.chain(others) {
            let told = told(&mut options, setting);
            let is_known = |what: &String| {
                wrong.lines.iter().any(|line| line.at == setting.at && line.what == *what)
            };
            match told {
                Err(what) if is_known(&what) => {}
                Err(what) if is_elsewhere(setting) => {
                    wrong.note_unsupported(&setting.at, what);
                }
                Err(what) => wrong.note(&setting.at, what),
                Ok(note) => notes.extend(note.map(|note| format!("{}: {note}", setting.at))),
            }
        }
        jobs.push(JobDescription { section, options, notes });
    }
    wrong.lines.sort_by(|a, b| (&a.at.file, a.at.line).cmp(&(&b.at.file, b.at.line)));
    wrong.or(jobs)
}

/// Whether fio has what the line asks for, and it is not here.
fn is_elsewhere(setting: &JobSetting) -> bool {
    match row(&setting.name) {
        None => meant(&setting.name).is_none(),
        Some(row) => {
            row.name == "ioengine" && setting.value.as_deref().is_some_and(IoEngine::is_elsewhere)
        }
    }
}

/// Takes a line in; what is to be said of it.
fn told(options: &mut JobOptions, setting: &JobSetting) -> Result<Option<String>, String> {
    let name = &setting.name;
    let Some(row) = row(name) else {
        if let Some(meant) = meant(name) {
            return Err(format!("option '{name}' is unknown: did you mean {meant}?"));
        }
        let why = left_out::why_not(name).map_or_else(String::new, |why| format!(": {why}"));
        return Err(format!("option '{name}' of fio is not supported{why}"));
    };
    let value = match (&setting.value, row.takes_nothing) {
        (Some(value), _) => value.as_str(),
        (None, true) => "1",
        (None, false) => return Err(format!("option '{name}' needs a value: {}", row.form)),
    };
    match row.set {
        Some(set) => {
            set(options, value).map(|()| None).map_err(|e| format!("option '{name}': {e}"))
        }
        None => Ok(Some(format!("'{name}' has no effect here: {}", row.help))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_stands_once() {
        let mut seen = BTreeSet::new();
        let not = left_out::NOT.iter().map(|(name, _)| name);
        for name in rows().flat_map(|row| [&row.name].into_iter().chain(row.aliases)).chain(not) {
            assert!(seen.insert(name), "{name}");
        }
    }
}
