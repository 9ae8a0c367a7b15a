//! `[machine]`: processors, memory, and how the operating system above the disk writes and reads
//! ahead.

use std::time::Duration;

use steadfast_ext4::MountOptions;
use steadfast_pagecache::Settings;

use crate::form::{Fields, FormValue, Value};
use crate::table;

table! {
    /// The machine.
    pub struct Machine: "[machine]", check Machine::check {
        /// Processors.
        cpus: usize = 4, from 1 to 1024;
        /// Page cache as a share of all the benchmark's files together, so that a run at a smaller
        /// size sees the same relation of memory to data.
        page_cache_per_data: f64 = 0.5, above 0 to 100;
        /// Free space kept behind a growing file, in MiB at most.
        file_window_mb: u64 = 8, from 1 to 128;
        /// Page cache in MiB. Blocks in the log that are not home count, and are written home at
        /// the limit of dirty memory.
        memory_mb: Option<u64>, else "`page_cache_per_data`", from 4 to 1048576;
        /// Largest window that is read ahead of a sequential reader, in KiB; 0 for none.
        read_ahead_kb: u64 = 128, from 0 to 65536;
        /// Largest request of write-back, a commit and a checkpoint, in KiB.
        request_kb: u64 = 1024, from 4 to 65536;
        /// The nine numbers of Linux 2.4's `/proc/sys/vm/bdflush`, in quotes: of them the first,
        /// fifth, sixth and seventh count; what is on its way is bounded by the scheduler only.
        bdflush: Bdflush, else "`dirty_expire_s`, `dirty_writeback_s`";
        /// What has been dirty for so many seconds is written. Linux: 30
        /// (`vm.dirty_expire_centisecs`). Of no effect with `bdflush`.
        dirty_expire_s: Option<f64>, else "the mount's `commit=`, as `steadfast mount` has it",
            from 0.1 to 86400;
        /// How often it is looked for, in seconds. Linux: 5 (`vm.dirty_writeback_centisecs`). Of
        /// no effect with `bdflush`.
        dirty_writeback_s: Option<f64>, else "half of the mount's `commit=`", from 0.1 to 86400;
        /// Home writes of a checkpoint that are on their way at once, in KiB.
        checkpoint_kb: u64 = 32768, from 4 to 1048576;
        /// A checkpoint begins automatically when more than this share of the log is in use, in
        /// per cent; with 100, when a task waits for room.
        checkpoint_from_percent: f64 = 50.0, from 0 to 100;
        /// It ends when at most this share is in use.
        checkpoint_to_percent: f64 = 0.0, from 0 to 100;
        /// Processor time of a record that dd copies from or to a device, beside the driver, in
        /// us.
        dd_device_us: f64 = 0.0, from 0 to 1000000;
        /// The same of a file, beside the file system's.
        dd_file_us: f64 = 0.0, from 0 to 1000000;
    }
}

/// The page cache where neither the description nor the data says how large it is.
const MEMORY_BYTES: u64 = 64 << 20;

/// What `/proc/sys/vm/bdflush` of Linux 2.4 holds; without it, and with an empty text, today's
/// `vm.dirty_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bdflush(pub Option<[u32; 9]>);

/// What Linux 2.4 takes at most (fs/buffer.c, `bdflush_max`; a tick is 10 ms): the two percentages,
/// the interval, and the age of a buffer.
const BDFLUSH_MAX: [(usize, u32); 4] = [(0, 100), (4, 1_000_000), (5, 1_000_000), (6, 100)];

impl Value for Bdflush {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let text: String = place.single()?;
        if text.is_empty() {
            return Some(Bdflush(None));
        }
        let wrong = |what: String| {
            place.wrong(what, "as /proc/sys/vm/bdflush has them");
            None
        };
        let numbers: Result<Vec<u32>, _> = text.split_whitespace().map(str::parse).collect();
        let Ok(numbers) = numbers else {
            return wrong(format!("`{text}` is not nine whole numbers"));
        };
        let n = numbers.len();
        let Ok(nine) = <[u32; 9]>::try_from(numbers) else {
            return wrong(format!("bdflush has nine numbers, not {n}"));
        };
        match BDFLUSH_MAX.iter().find(|(at, most)| nine[*at] > *most) {
            Some((at, most)) => {
                let (place, number) = (at + 1, nine[*at]);
                wrong(format!("number {place} of bdflush is at most {most}, not {number}"))
            }
            None => Some(Bdflush(Some(nine))),
        }
    }

    fn absent() -> Option<Self> {
        Some(Bdflush::default())
    }
}

impl Machine {
    fn check(fields: &Fields<'_>, machine: Option<&Machine>) {
        if fields.has("memory_mb") && fields.has("page_cache_per_data") {
            let help = "leave one of them out";
            fields.wrong("memory_mb", "`memory_mb` is instead of `page_cache_per_data`", help);
        }
        // The page cache and the journal know pages and blocks, not parts of them.
        for key in ["read_ahead_kb", "request_kb", "checkpoint_kb"] {
            if fields.get::<u64>(key).is_some_and(|kb| !kb.is_multiple_of(4)) {
                fields.wrong(key, format!("`{key}` must be a multiple of 4, a page"), "");
            }
        }
        let Some(machine) = machine else { return };
        let (from, to) = (machine.checkpoint_from_percent, machine.checkpoint_to_percent);
        let mut keys = ["checkpoint_to_percent", "checkpoint_from_percent"].into_iter();
        if let Some(key) = keys.find(|key| to > from && fields.has(key)) {
            let what = format!("a checkpoint would begin at {from} % and end at {to} %");
            let help = "`checkpoint_to_percent` is at most `checkpoint_from_percent`";
            fields.wrong(key, what, help);
        }
    }

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

    /// The mount options that the machine decides, with so much page cache.
    pub fn apply(&self, memory_bytes: u64, to: &mut MountOptions) {
        let request = self.request_kb << 10;
        let pages = match &self.bdflush.0 {
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
        to.window_max = self.file_window_mb << 20;
        let journal = &mut to.journal;
        // OK to cast: bounded by the reader.
        journal.max_request_bytes = request.min(self.checkpoint_kb << 10) as usize;
        journal.checkpoint_in_flight =
            ((self.checkpoint_kb << 10) as usize / journal.max_request_bytes).max(1);
        journal.checkpoint_start_fraction = self.checkpoint_from_percent / 100.0;
        journal.checkpoint_stop_fraction = self.checkpoint_to_percent / 100.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::read_text;

    #[test]
    fn bdflush_has_nine_numbers() {
        let read = |text: &str| {
            let text = format!("bdflush = '{text}'");
            let read = read_text(&text, |_| (), Machine::read_whole);
            read.map(|machine| machine.bdflush.0).map_err(|wrongs| wrongs[0].what.clone())
        };
        let line = "40 0 0 0 60 300 60 0 0";
        assert_eq!(read(line), Ok(Some([40, 0, 0, 0, 60, 300, 60, 0, 0])));
        assert_eq!(read(""), Ok(None));
        assert!(read("40 0").unwrap_err().contains("not 2"));
        assert!(read("40 0 0 0 60 300 60 0 x").unwrap_err().contains("whole numbers"));
        assert!(read("-1 0 0 0 60 300 60 0 0").is_err());
        assert!(read("101 0 0 0 60 300 60 0 0").unwrap_err().contains("number 1"));
        let last = read("40 0 0 0 60 300 101 0 0").unwrap_err();
        assert!(last.contains("at most 100, not 101"), "{last}");
    }
}
