//! The parameters of the workload of files.
//!
//! By default it takes a minute and a half: what nobody syncs waits for up to 35 seconds for the
//! timers of a file system (`vm.dirty_expire_centisecs`, `vm.dirty_writeback_centisecs`) and some
//! for a commit. So many letters are kept that none of them is removed before.

use steadfast_setup::table;

table! {
    /// The workload's parameters, as scenarios of the laboratory write them; `seed` decides every
    /// choice.
    pub struct FilesWorkload: "workload.files", beside seed: u64 {
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

impl FilesWorkload {
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
