//! The simulated machine: processors, memory, and how the operating system above the disk writes
//! and reads ahead.

use steadfast_ext4::MountOptions;
use steadfast_pagecache::Settings;

use super::LineError;

/// The simulated machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Processors.
    pub cpus: usize,
    /// Page cache as a share of the benchmark's data (all children's files together), so that a
    /// run at a smaller size sees the same relation of memory to data.
    pub page_cache_per_data: f64,
    /// Page cache in MiB, instead of that share.
    pub memory_mb: Option<u64>,
    /// Free space kept behind a growing file, in MiB at most
    /// ([`window_max`](MountOptions::window_max)).
    pub file_window_mb: u64,
    /// The largest window that is read ahead, in KiB.
    pub read_ahead_kb: u64,
    /// The largest request that write-back, a commit or a checkpoint makes, in KiB.
    pub request_kb: u64,
    /// What `/proc/sys/vm/bdflush` of Linux 2.4 holds; without it, today's `vm.dirty_*`.
    pub bdflush: Option<[u32; 9]>,
    /// What has been dirty for so many seconds is written; `None`: as a mount has it, by the age of
    /// `commit=`. (With `bdflush` its numbers count.)
    pub dirty_expire_s: Option<f64>,
    /// How often it is looked for, in seconds.
    pub dirty_writeback_s: Option<f64>,
    /// Home writes of a checkpoint that are on their way at once, in KiB.
    pub checkpoint_kb: u64,
    /// A checkpoint begins when more than this of the log is in use, in per cent ...
    pub checkpoint_from_percent: f64,
    /// ... and ends when at most this is.
    pub checkpoint_to_percent: f64,
    /// Processor time of a record that dd copies from or to a device, beside the driver's, in us.
    pub dd_device_us: f64,
    /// The same of a file, beside the file system's.
    pub dd_file_us: f64,
}

impl Machine {
    /// [`file_window_mb`](Self::file_window_mb) in bytes.
    pub(crate) fn file_window_bytes(&self) -> u64 {
        self.file_window_mb << 20
    }

    /// The mount options that the machine decides, with so much page cache.
    pub fn apply(&self, memory_bytes: u64, to: &mut MountOptions) {
        let request = self.request_kb << 10;
        let pages = match &self.bdflush {
            // Nothing bounded what 2.4 had on its way but the queue.
            Some(nine) => Settings {
                writeback_inflight_bytes: memory_bytes,
                writeback_chunk_bytes: memory_bytes,
                ..Settings::from_bdflush(nine)
            },
            None => {
                to.write_by_commit_age();
                let ms = |seconds: f64| (seconds * 1e3).round() as u64;
                let pages = to.page_cache.clone();
                Settings {
                    dirty_expire_ms: self.dirty_expire_s.map_or(pages.dirty_expire_ms, ms),
                    writeback_interval_ms: (self.dirty_writeback_s)
                        .map_or(pages.writeback_interval_ms, ms),
                    ..pages
                }
            }
        };
        to.page_cache = Settings {
            read_ahead_max_bytes: self.read_ahead_kb << 10,
            writeback_batch_bytes: request,
            ..pages
        };
        to.limit_memory(memory_bytes);
        to.window_max = self.file_window_bytes();
        let journal = &mut to.journal;
        // OK to cast: bounded by the reader.
        journal.max_request_bytes = request.min(self.checkpoint_kb << 10) as usize;
        journal.checkpoint_in_flight =
            ((self.checkpoint_kb << 10) as usize / journal.max_request_bytes).max(1);
        journal.checkpoint_start_fraction = self.checkpoint_from_percent / 100.0;
        journal.checkpoint_stop_fraction = self.checkpoint_to_percent / 100.0;
    }
}

/// The nine numbers of `/proc/sys/vm/bdflush`; an empty text: none, today's settings.
///
/// # Errors
/// They are not nine whole numbers that the kernel takes.
pub fn bdflush(text: &str) -> Result<Option<[u32; 9]>, LineError> {
    if text.is_empty() {
        return Ok(None);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let numbers: Result<Vec<u32>, _> = words.iter().map(|w| w.parse::<u32>()).collect();
    let numbers = numbers.map_err(|_| LineError::BdflushNumbers(text.to_owned()))?;
    let n = numbers.len();
    let nine: [u32; 9] = numbers.try_into().map_err(|_| LineError::BdflushCount(n))?;
    for (place, number, most) in BOUNDS.map(|(i, most)| (i + 1, nine[i], most)) {
        if number > most {
            return Err(LineError::BdflushTooLarge { place, most, number });
        }
    }
    Ok(Some(nine))
}

/// What Linux 2.4 takes at most (fs/buffer.c, `bdflush_max`; a tick is 10 ms): the two percentages,
/// the interval, and the age of a buffer.
const BOUNDS: [(usize, u32); 4] = [(0, 100), (4, 1_000_000), (5, 1_000_000), (6, 100)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::stack::mount_options;

    #[test]
    fn dirty_data_waits_as_long_as_on_a_mount_unless_it_is_said() {
        let text = include_str!("../../scenarios/data-at-risk.toml");
        let scenario = Scenario::parse(text, "data-at-risk").unwrap();
        let waits = |name: &str| {
            let variant = scenario.variants.iter().find(|v| v.name == name).unwrap();
            let mut options = mount_options(&format!("{},commit=9", variant.mount)).unwrap();
            scenario.machine_of(variant).apply(64 << 20, &mut options);
            let pages = options.page_cache;
            (pages.dirty_expire_ms, pages.writeback_interval_ms)
        };
        assert_eq!(waits("ordered"), (9000, 4500));
        assert_eq!(waits("ordered-30s"), (30_000, 5000));
    }

    #[test]
    fn bdflush_has_nine_numbers() {
        let line = "40 0 0 0 60 300 60 0 0";
        assert_eq!(bdflush(line).unwrap(), Some([40, 0, 0, 0, 60, 300, 60, 0, 0]));
        assert_eq!(bdflush("").unwrap(), None);
        assert!(bdflush("40 0").unwrap_err().to_string().contains("not 2"));
        assert!(
            bdflush("40 0 0 0 60 300 60 0 x").unwrap_err().to_string().contains("whole numbers")
        );
        assert!(bdflush("-1 0 0 0 60 300 60 0 0").is_err());
        assert!(bdflush("101 0 0 0 60 300 60 0 0").unwrap_err().to_string().contains("number 1"));
        assert!(
            bdflush("40 0 0 0 60 300 101 0 0")
                .unwrap_err()
                .to_string()
                .contains("at most 100, not 101")
        );
    }
}
