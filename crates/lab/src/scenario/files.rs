//! `workload.files` and `workload.legs` of a scenario file: what is cut, with a file system and
//! without.

use std::time::Duration;

use steadfast_crash::risk::FilesWorkload;
use steadfast_setup::table;

table! {
    /// The workload of files (`steadfast_crash::risk`).
    pub struct FilesSpec: "workload.files" {
        /// How long calls are made.
        seconds: f64 = 90.0, from 0.1 to 3600;
        /// Rounds (a few calls each) of each program at the least, however long they take.
        rounds_least: u64 = 0, from 0 to 1000000;
        /// Mean pause after a call, in ms.
        pause_ms: f64 = 10.0, from 0 to 10000;
        /// Size of a full log, in KiB.
        log_kb: u64 = 256, from 8 to 65536;
        /// Logs that are kept.
        logs_kept: usize = 4, from 1 to 1000;
        /// The table, in KiB.
        table_kb: u64 = 1024, from 16 to 65536;
        /// Configurations.
        configs: u64 = 4, from 1 to 1000;
        /// Letters that are kept; the oldest beyond are removed. If they go before a file system's
        /// timer has written them, the age of what is lost is the workload's.
        letters_kept: usize = 1000, from 1 to 100000;
        /// Of a hundred letters, so many are synced.
        letters_synced_percent: u64 = 50, from 0 to 100;
        /// Downloads of 1 MiB that are kept. Most of the bytes that a cut takes are theirs: the
        /// more are kept, the more it can take before a file system's timer has written them.
        downloads_kept: u64 = 3, from 1 to 1000;
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

table! {
    /// Tasks write blocks of the variant's disk, without a file system: what cuts of it take is
    /// reported by block and by leg.
    pub struct LegsSpec: "workload.legs" {
        /// How long they write.
        seconds: f64 = 4.0, from 0.1 to 3600;
        /// Tasks.
        writers: u64 = 3, from 1 to 64;
        /// Mean pause of each before a write of 4 KiB, in ms.
        pause_ms: f64 = 5.0, from 0.01 to 10000;
        /// Each task flushes after this number of writes.
        flush_every: u64 = 8, from 1 to 1000000;
        /// KiB that are written, from the start of the disk.
        area_kb: u64 = 4096, from 256 to 1048576;
    }
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
