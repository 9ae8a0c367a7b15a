//! The machine: processors, memory, and how the operating system above the disk writes
//! and reads ahead.

use std::time::Duration;

use steadfast_ext4::MountOptions;
use steadfast_pagecache::Settings;

/// The machine.
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

/// The page cache where neither the description nor the data says how large it is.
const MEMORY_BYTES: u64 = 64 << 20;

impl Machine {
    /// Bytes of the page cache, under a benchmark with so many bytes of data: as the description
    /// says, else that share of the data.
    pub fn page_cache_bytes(&self, data_bytes: Option<u64>) -> u64 {
        let of = |data: u64| ((data as f64 * self.page_cache_per_data) as u64).max(4 << 20);
        let said = self.memory_mb.map(|mb| mb << 20);
        said.or(data_bytes.map(of)).unwrap_or(MEMORY_BYTES)
    }

    /// Processor time of a record that dd copies from or to a device, or else a file, beside what
    /// driver and file system take.
    pub fn dd_record(&self, of_device: bool) -> Duration {
        let us = if of_device { self.dd_device_us } else { self.dd_file_us };
        Duration::from_secs_f64(us / 1e6)
    }

    /// [`file_window_mb`](Self::file_window_mb) in bytes.
    fn file_window_bytes(&self) -> u64 {
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
