//! What a scenario runs: IOzone, the workload of files ...

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use steadfast_crash::risk::FilesWorkload;

use super::{DdSpec, HdparmSpec, LineError, RandomReadSpec, Variant};
use crate::ScenarioError;

/// What is run, as written in the file; which keys may stand beside each other is known where it is
/// read.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// IOzone's command line, as published (without the program's name).
    pub iozone: Option<String>,
    /// Of a matrix: the command line of a run without `--full`.
    pub quick_iozone: Option<String>,
    /// The same of the recorded run whose power is cut.
    pub risk_iozone: Option<String>,
    /// The same of the runs in real time beside the kernel's file systems.
    pub peers_iozone: Option<String>,
    /// Of several matrices, by name: each variant names its own.
    pub configurations: BTreeMap<String, Configuration>,
    /// File size (`-s`) of a run without `--full`.
    pub quick_size: Option<String>,
    /// Whether a run at `quick_size` is a scale model: the capacity of its disks (`hdd`) shrinks
    /// with the files. See [`ModelParams::scaled`](steadfast_devices::model::ModelParams::scaled).
    pub quick_scales_disks: bool,
    /// File size (`-s`) of the recorded run whose power is cut.
    pub risk_size: Option<String>,
    /// File size (`-s`) of the runs in real time beside the kernel's file systems.
    pub peers_size: Option<String>,
    /// For these the capacity of disks (`hdd`) is divided by this.
    pub peers_scale: u64,
    /// The workload of files.
    pub files: Option<FilesSpec>,
    /// The workload of blocks.
    pub legs: Option<LegsSpec>,
    /// A file is read while another is written.
    pub read_under_write: Option<ReadUnderWriteSpec>,
    /// Copies by dd.
    pub dd: Vec<DdSpec>,
    /// Timings by hdparm.
    pub hdparm: Vec<HdparmSpec>,
    /// Reads at random places.
    pub random_reads: Vec<RandomReadSpec>,
    /// Cuts for each variant unless `--cuts` says otherwise.
    pub cuts: u64,
    /// With `iozone`: as many without `--full`, and a quarter of it of the measured run itself.
    pub quick_cuts: Option<u64>,
    /// With `iozone`: cuts of the measured run itself, to see what they take (default 24). 0: none.
    pub loss_cuts: u64,
    /// With `files`, where file systems of the kernel take part: how often each variant is run in
    /// real time for its speed, by turns (default 5).
    pub speed_runs: u64,
    /// How long each of these runs makes calls, in seconds (default 2).
    pub speed_seconds: f64,
    /// Cuts of a variant of the kernel's, each of which takes a mount in real time; as many as the
    /// others have if it is absent.
    pub kernel_cuts: Option<u64>,
    /// For every four cuts of a variant this many of each of its controls (default 1): the same run
    /// on drives that ignore flushes, and by a file system that asks for none. 0: none.
    pub lying_cuts_per_4: u64,
}

/// A configuration of the benchmark: IOzone's command lines in single or auto mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// For people.
    pub label: String,
    /// As published.
    pub iozone: String,
    /// Of a run without `--full`.
    pub quick_iozone: String,
    /// Of the recorded run whose power is cut.
    pub risk_iozone: String,
    /// Of the runs in real time beside the kernel's file systems.
    pub peers_iozone: Option<String>,
}

/// IOzone's command lines of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines<'a> {
    /// As published.
    pub full: &'a str,
    /// Of a run without `--full`.
    pub quick: &'a str,
    /// Of the recorded run whose power is cut.
    pub risk: &'a str,
    /// Of the runs in real time beside the kernel's file systems.
    pub peers: Option<&'a str>,
}

/// The workload of files (`steadfast_crash::risk`).
#[derive(Debug, Clone, PartialEq)]
pub struct FilesSpec {
    /// How long the programs make calls, in seconds.
    pub seconds: f64,
    /// Rounds (a few calls each) that each program makes at the least, however long they take.
    pub rounds_least: u64,
    /// Mean pause after a call, in milliseconds.
    pub pause_ms: f64,
    /// A log file is full at so many KiB.
    pub log_kb: u64,
    /// Log files that are kept.
    pub logs_kept: usize,
    /// The table, in KiB.
    pub table_kb: u64,
    /// Configurations.
    pub configs: u64,
    /// Letters that are kept.
    pub letters_kept: usize,
    /// Of a hundred letters, so many are synced.
    pub letters_synced_percent: u64,
    /// Downloads that are kept.
    pub downloads_kept: u64,
}

impl FilesSpec {
    /// The workload, with a seed.
    pub fn workload(&self, seed: u64) -> FilesWorkload {
        FilesWorkload {
            seed,
            run_for: Duration::from_secs_f64(self.seconds),
            rounds_least: self.rounds_least,
            pause: Duration::from_secs_f64(self.pause_ms / 1e3),
            log_bytes: self.log_kb << 10,
            logs_kept: self.logs_kept,
            table_bytes: self.table_kb << 10,
            configs: self.configs,
            letters_kept: self.letters_kept,
            letters_synced_percent: self.letters_synced_percent,
            downloads_kept: self.downloads_kept,
        }
    }

    /// In words, as a report shows it.
    pub fn description(&self) -> String {
        format!(
            "files: {} s of log ({} KiB x {}), table ({} KiB), {} configurations, mail \
             ({} letters, {} % synced), database, store, downloads (of 1 MiB x {}), backups; {} ms \
             between calls",
            self.seconds,
            self.log_kb,
            self.logs_kept,
            self.table_kb,
            self.configs,
            self.letters_kept,
            self.letters_synced_percent,
            self.downloads_kept,
            self.pause_ms
        )
    }
}

/// Tasks write blocks of the variant's disk, without a file system: what cuts of it take is
/// reported by block and by leg.
#[derive(Debug, Clone, PartialEq)]
pub struct LegsSpec {
    /// How long they write, in seconds.
    pub seconds: f64,
    /// Tasks.
    pub writers: u64,
    /// Mean pause before a write, in milliseconds.
    pub pause_ms: f64,
    /// Each flushes after so many writes.
    pub flush_every: u64,
    /// The first so many KiB of the disk are written.
    pub area_kb: u64,
}

impl LegsSpec {
    /// In words, as a report shows it.
    pub fn description(&self) -> String {
        format!(
            "blocks: {} tasks write 4 KiB each of the first {} KiB for {} s, {} ms between writes, \
             a flush after {}",
            self.writers, self.area_kb, self.seconds, self.pause_ms, self.flush_every
        )
    }
}

/// A file is read while another is written flat out.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadUnderWriteSpec {
    /// The writer.
    pub storm: Storm,
    /// The file that is read, in MiB.
    pub file_mb: u64,
    /// What a read(2) asks for, in KiB.
    pub read_kb: u64,
    /// Where that file is.
    pub places: Vec<ReadFile>,
    /// Reads under the writer, of each place.
    pub trials: u64,
    /// As many without `--full`.
    pub quick_trials: Option<u64>,
    /// Reads before there is a writer.
    pub idle_trials: u64,
    /// Seconds of writing before the first read.
    pub settle_s: f64,
    /// Mean pause before each read, in seconds.
    pub pause_s: f64,
}

impl ReadUnderWriteSpec {
    /// [`file_mb`](Self::file_mb) in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_mb << 20
    }

    /// [`read_kb`](Self::read_kb) in bytes.
    pub fn read_bytes(&self) -> u64 {
        self.read_kb << 10
    }
}

/// Where the file is that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadFile {
    /// In another file system on the same disk.
    Other,
    /// In the one that is written to.
    Same,
}

impl ReadFile {
    /// Both.
    pub const ALL: [ReadFile; 2] = [ReadFile::Other, ReadFile::Same];

    /// The name of its test.
    pub fn test(self) -> &'static str {
        match self {
            ReadFile::Other => "read, other file system",
            ReadFile::Same => "read, same file system",
        }
    }
}

/// A dd(1) that is run again and again: zeros into one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storm {
    /// The command, as published.
    pub line: String,
    /// `of=`.
    pub file: String,
    /// `bs=`, in bytes.
    pub block_bytes: u64,
    /// `count=`.
    pub count: u64,
}

impl Storm {
    /// Reads the command; zeros from /dev/zero into a file, `bs=` at a time, `count=` times.
    ///
    /// # Errors
    /// What of it is something else.
    pub fn parse(line: &str) -> Result<Storm, LineError> {
        let mut words = line.split_whitespace();
        if words.next() != Some("dd") {
            return Err(LineError::NotDd);
        }
        let (mut file, mut block_bytes, mut count) = (None, None, None);
        for word in words {
            let number =
                |v: &str| v.parse::<u64>().map_err(|_| LineError::NoNumber(word.to_owned()));
            match word.split_once('=') {
                Some(("if", "/dev/zero")) => {}
                Some(("of", name)) if !name.is_empty() && !name.contains('/') => file = Some(name),
                Some(("bs", n)) => block_bytes = Some(number(n)?),
                Some(("count", n)) => count = Some(number(n)?),
                _ => return Err(LineError::NotOfWriter(word.to_owned())),
            }
        }
        let storm = Storm {
            line: line.split_whitespace().collect::<Vec<_>>().join(" "),
            file: file.ok_or(LineError::Missing("of="))?.to_owned(),
            block_bytes: block_bytes.ok_or(LineError::Missing("bs="))?,
            count: count.ok_or(LineError::Missing("count="))?,
        };
        let fits = storm.block_bytes.is_multiple_of(512)
            && (512..=16 << 20).contains(&storm.block_bytes)
            && (4 << 20) % storm.block_bytes == 0;
        if !fits {
            return Err(LineError::BlockSize);
        }
        if storm.count == 0 {
            return Err(LineError::NothingWritten);
        }
        Ok(storm)
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.block_bytes.saturating_mul(self.count)
    }
}

/// A kind of workload, with what it needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WorkloadKind<'a> {
    /// IOzone: command line, size of a quick run, size of the run that is cut.
    Iozone {
        /// The command line.
        line: &'a str,
        /// `quick_size`.
        quick_size: &'a str,
        /// `risk_size`.
        risk_size: &'a str,
    },
    /// IOzone in single or auto mode: `Workload::lines_of` has the command lines of a variant.
    Matrix,
    /// The workload of files.
    Files(&'a FilesSpec),
    /// The workload of blocks.
    Legs(&'a LegsSpec),
    /// A file is read while another is written.
    ReadUnderWrite(&'a ReadUnderWriteSpec),
    /// Copies by dd.
    Dd(&'a [DdSpec]),
    /// Timings by hdparm.
    Hdparm(&'a [HdparmSpec]),
    /// Reads at random places.
    RandomReads(&'a [RandomReadSpec]),
}

impl Workload {
    /// All that it is: what is measured first.
    ///
    /// # Errors
    /// Nothing, or a size that IOzone needs is not there: no file is read so.
    pub fn kinds(&self) -> Result<Vec<WorkloadKind<'_>>, ScenarioError> {
        let mut kinds = Vec::new();
        if let Some(line) = &self.iozone {
            match (&self.quick_size, &self.risk_size) {
                (Some(quick_size), Some(risk_size)) => {
                    kinds.push(WorkloadKind::Iozone { line, quick_size, risk_size });
                }
                _ if self.is_matrix() => kinds.push(WorkloadKind::Matrix),
                _ => return Err(ScenarioError::NoSizes),
            }
        } else if self.is_matrix() {
            kinds.push(WorkloadKind::Matrix);
        }
        kinds.extend(self.read_under_write.as_ref().map(WorkloadKind::ReadUnderWrite));
        kinds.extend((!self.dd.is_empty()).then_some(WorkloadKind::Dd(&self.dd)));
        kinds.extend((!self.hdparm.is_empty()).then_some(WorkloadKind::Hdparm(&self.hdparm)));
        let random = &self.random_reads;
        kinds.extend((!random.is_empty()).then_some(WorkloadKind::RandomReads(random)));
        kinds.extend(self.files.as_ref().map(WorkloadKind::Files));
        kinds.extend(self.legs.as_ref().map(WorkloadKind::Legs));
        if kinds.is_empty() {
            return Err(ScenarioError::NoWorkload);
        }
        Ok(kinds)
    }

    /// Whether IOzone runs a matrix, in single or auto mode.
    fn is_matrix(&self) -> bool {
        self.quick_iozone.is_some() || !self.configurations.is_empty()
    }

    /// The command lines of a variant's matrix; `None`: none is run.
    pub(crate) fn lines_of(&self, variant: &Variant) -> Option<Lines<'_>> {
        if let Some(name) = &variant.configuration {
            let c = self.configurations.get(name)?;
            return Some(Lines {
                full: &c.iozone,
                quick: &c.quick_iozone,
                risk: &c.risk_iozone,
                peers: c.peers_iozone.as_deref(),
            });
        }
        Some(Lines {
            full: self.iozone.as_deref()?,
            quick: self.quick_iozone.as_deref()?,
            risk: self.risk_iozone.as_deref()?,
            peers: self.peers_iozone.as_deref(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_writer_is_read_and_others_are_refused() {
        let line = "dd if=/dev/zero of=largefile bs=16384 count=131072";
        let storm = Storm::parse(line).unwrap();
        assert_eq!((storm.bytes(), storm.file.as_str()), (2 << 30, "largefile"));
        let refused =
            |from: &str, to: &str| Storm::parse(&line.replace(from, to)).unwrap_err().to_string();
        assert!(refused("/dev/zero", "/dev/sda").contains("if=/dev/sda"));
        assert!(refused("largefile", "a/b").contains("of=a/b"));
        assert!(refused("bs=16384", "").contains("bs= is missing"));
        assert!(refused("16384", "1000").contains("power of two"));
        assert!(refused("131072", "0").contains("nothing"));
        assert!(refused("131072", "1x").contains("count=1x"));
        assert!(refused("dd ", "cp ").contains("dd"));
    }
}
