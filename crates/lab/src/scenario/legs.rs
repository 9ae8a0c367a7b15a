//! `workload.legs` of a scenario file: what is cut without a file system.

use steadfast_setup::table;

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
