//! What a scenario runs: IOzone, or the workload of files.

use std::time::Duration;

use steadfast_crash::risk::FilesWorkload;

/// What is run, as written in the file: either `iozone` or `files`.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// IOzone's command line, as published (without the program's name).
    pub iozone: Option<String>,
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

/// The workload of files (`steadfast_crash::risk`): log, table, configurations, mail.
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
        }
    }

    /// In words, as a report shows it.
    pub fn description(&self) -> String {
        format!(
            "files: {} s of log ({} KiB x {}), table ({} KiB), {} configurations, mail; {} ms \
             between calls",
            self.seconds, self.log_kb, self.logs_kept, self.table_kb, self.configs, self.pause_ms
        )
    }
}

/// The workload's kind.
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
    /// The workload of files.
    Files(&'a FilesSpec),
}

impl Workload {
    /// Which of the two it is.
    ///
    /// # Errors
    /// Neither or both, or a size that IOzone needs is not there: no file is read so.
    pub fn kind(&self) -> Result<WorkloadKind<'_>, String> {
        match (&self.iozone, &self.files, &self.quick_size, &self.risk_size) {
            (Some(line), None, Some(quick_size), Some(risk_size)) => {
                Ok(WorkloadKind::Iozone { line, quick_size, risk_size })
            }
            (None, Some(files), ..) => Ok(WorkloadKind::Files(files)),
            _ => Err("[workload] is neither IOzone with its sizes nor the files".into()),
        }
    }
}
