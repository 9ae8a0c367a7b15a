//! What a scenario runs: IOzone, or the workload of files.

use std::time::Duration;

use serde::Deserialize;
use steadfast_crash::risk::FilesWorkload;

/// What is run, as written in the file: either `iozone` or `files`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// IOzone's command line, as published (without the program's name).
    #[serde(default)]
    pub iozone: Option<String>,
    /// File size (`-s`) of a run without `--full`.
    #[serde(default)]
    pub quick_size: Option<String>,
    /// Whether a run at `quick_size` is a scale model: the capacity of its disks (`hdd`) shrinks
    /// with the files. See [`ModelParams::scaled`](steadfast_devices::model::ModelParams::scaled).
    #[serde(default)]
    pub quick_scales_disks: bool,
    /// File size (`-s`) of the recorded run whose power is cut.
    #[serde(default)]
    pub risk_size: Option<String>,
    /// The workload of files.
    #[serde(default)]
    pub files: Option<FilesSpec>,
    /// Cuts for each variant unless `--cuts` says otherwise.
    pub cuts: u64,
    /// Cuts of a variant of the kernel's, each of which takes a mount in real time; as many as the
    /// others have if it is absent.
    #[serde(default)]
    pub kernel_cuts: Option<u64>,
    /// For every four cuts of a variant this many of each of its controls (default 1): the same run
    /// on drives that ignore flushes, and by a file system that asks for none. 0: none.
    #[serde(default = "one")]
    pub lying_cuts_per_4: u64,
}

fn one() -> u64 {
    1
}

/// The workload of files (`steadfast_crash::risk`): log, table, configurations, mail.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
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

impl Default for FilesSpec {
    fn default() -> Self {
        let w = FilesWorkload::default();
        FilesSpec {
            seconds: w.run_for.as_secs_f64(),
            rounds_least: w.rounds_least,
            pause_ms: w.pause.as_secs_f64() * 1e3,
            log_kb: w.log_bytes >> 10,
            logs_kept: w.logs_kept,
            table_kb: w.table_bytes >> 10,
            configs: w.configs,
        }
    }
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

    fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: f64, least: f64, most: f64| {
            let fits = (least..=most).contains(&value);
            let wrong =
                || format!("workload.files.{name} is {value}; it must be from {least} to {most}");
            fits.then_some(()).ok_or_else(wrong)
        };
        within("seconds", self.seconds, 0.1, 3600.0)?;
        within("rounds_least", self.rounds_least as f64, 0.0, 1e6)?;
        within("pause_ms", self.pause_ms, 0.0, 10_000.0)?;
        within("log_kb", self.log_kb as f64, 8.0, 65_536.0)?;
        within("logs_kept", self.logs_kept as f64, 1.0, 1000.0)?;
        within("table_kb", self.table_kb as f64, 16.0, 65_536.0)?;
        within("configs", self.configs as f64, 1.0, 1000.0)
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
    /// Neither or both, or a key that the other needs.
    pub fn kind(&self) -> Result<WorkloadKind<'_>, String> {
        let missing = |key| format!("workload.{key} is missing: workload.iozone needs it");
        match (&self.iozone, &self.files) {
            (Some(line), None) => Ok(WorkloadKind::Iozone {
                line,
                quick_size: self.quick_size.as_deref().ok_or_else(|| missing("quick_size"))?,
                risk_size: self.risk_size.as_deref().ok_or_else(|| missing("risk_size"))?,
            }),
            (None, Some(files)) => {
                let sizes = [("quick_size", &self.quick_size), ("risk_size", &self.risk_size)];
                if let Some((key, _)) = sizes.iter().find(|(_, size)| size.is_some()) {
                    return Err(format!("workload.{key} belongs to workload.iozone, not to files"));
                }
                if self.quick_scales_disks {
                    return Err("workload.quick_scales_disks belongs to workload.iozone".into());
                }
                files.check().map(|()| WorkloadKind::Files(files))
            }
            (None, None) => Err("[workload] has neither 'iozone' nor 'files'".into()),
            (Some(_), Some(_)) => {
                Err("[workload] has both 'iozone' and 'files'; a scenario runs one".into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(text: &str) -> Result<String, String> {
        let workload: Workload = toml::from_str(text).map_err(|e| e.to_string())?;
        workload.kind().map(|k| format!("{k:?}"))
    }

    #[test]
    fn it_is_one_of_two() {
        assert!(kind_of("cuts = 1").unwrap_err().contains("neither"));
        assert!(kind_of("cuts = 1\niozone = ''\nfiles = {}").unwrap_err().contains("both"));
        assert!(kind_of("cuts = 1\niozone = ''").unwrap_err().contains("quick_size"));
        assert!(kind_of("cuts = 1\nfiles = {}\nrisk_size = '1m'").unwrap_err().contains("risk_si"));
        assert!(kind_of("cuts = 1\nfiles = { second = 1 }").unwrap_err().contains("second"));
        assert!(kind_of("cuts = 1\nfiles = { seconds = 0 }").unwrap_err().contains("seconds is 0"));
        assert!(kind_of("cuts = 1\nfiles = {}").unwrap().contains("seconds: 12"));
    }

    #[test]
    fn the_default_is_the_workloads_own() {
        assert_eq!(FilesSpec::default().workload(1), FilesWorkload::default());
    }
}
