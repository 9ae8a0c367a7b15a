//! The cache's settings: today's kernel's `vm.dirty_*` and read-ahead, or 2.4's `bdflush`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::PAGE_U64;

/// A limit on dirty memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirtyLimit {
    /// Per cent of [`Settings::memory_bytes`].
    Percent(u8),
    /// Bytes.
    Bytes(u64),
}

impl DirtyLimit {
    fn pages(self, memory_pages: u64) -> u64 {
        match self {
            DirtyLimit::Percent(p) => {
                let p = u64::from(p.min(100));
                memory_pages / 100 * p + memory_pages % 100 * p / 100
            }
            DirtyLimit::Bytes(b) => b / PAGE_U64,
        }
    }
}

/// How much memory the cache uses and when it writes. Units are in the names. The defaults are
/// Linux's for memory of 512 MiB; processor costs are of a copy at about 10 GB/s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Memory for pages, in bytes; at least 64 pages are used. The limits in per cent refer to it.
    #[default(512 << 20)]
    pub memory_bytes: u64,
    /// Above this much dirty data the write-back task writes until it is below again
    /// (`vm.dirty_background_ratio`).
    #[default(DirtyLimit::Percent(10))]
    pub dirty_background: DirtyLimit,
    /// Above this much dirty and in-flight data writers wait (`vm.dirty_ratio`).
    #[default(DirtyLimit::Percent(20))]
    pub dirty_limit: DirtyLimit,
    /// A file that has been dirty for this long is written at the next interval, in milliseconds
    /// (`vm.dirty_expire_centisecs`).
    #[default(30_000)]
    pub dirty_expire_ms: u64,
    /// How often the write-back task looks for such files, in milliseconds; 0 = never
    /// (`vm.dirty_writeback_centisecs`).
    #[default(5_000)]
    pub writeback_interval_ms: u64,
    /// Most bytes written of one file before the next file has its turn.
    #[default(4 << 20)]
    pub writeback_chunk_bytes: u64,
    /// Most bytes handed to the store in one call.
    #[default(1 << 20)]
    pub writeback_batch_bytes: u64,
    /// Bytes in flight at which no further write-back is started.
    #[default(16 << 20)]
    pub writeback_inflight_bytes: u64,
    /// Largest read-ahead window in bytes; 0 turns read-ahead off (`read_ahead_kb`).
    #[default(128 << 10)]
    pub read_ahead_max_bytes: u64,
    /// Smallest first window of a sequential reader, in bytes.
    #[default(16 << 10)]
    pub read_ahead_initial_bytes: u64,
    /// Simulated processor time for copying, in nanoseconds for each KiB.
    #[default(100)]
    pub cpu_copy_ns_per_kib: u64,
    /// Simulated processor time to find, make or prepare a page, in nanoseconds.
    #[default(300)]
    pub cpu_page_ns: u64,
}

impl Settings {
    /// The nine numbers that Linux 2.4 kept in `/proc/sys/vm/bdflush`; the rest by default.
    ///
    /// | # | name | meaning here |
    /// |---|---|---|
    /// | 0 | `nfract` | per cent dirty at which background write-back starts |
    /// | 1 | `ndirty` | buffers written at one waking: ignored, write-back goes by bytes |
    /// | 2 | - | ignored (unused, formerly `nrefill`) |
    /// | 3 | - | ignored (unused) |
    /// | 4 | `interval` | jiffies of 10 ms between two looks for aged data; 0 = never |
    /// | 5 | `age_buffer` | jiffies of 10 ms after which data is aged |
    /// | 6 | `nfract_sync` | per cent dirty at which writers wait |
    /// | 7 | `nfract_stop_bdflush` | ignored (not in the kernels of 2001) |
    /// | 8 | - | ignored (unused) |
    ///
    /// Per cent above 100 count as 100. Source: `fs/buffer.c` and
    /// `Documentation/sysctl/vm.txt` of Linux 2.4.
    pub fn from_bdflush(bdflush: &[u32; 9]) -> Settings {
        let percent = |v: u32| DirtyLimit::Percent(u8::try_from(v.min(100)).unwrap_or(100));
        let jiffies_ms = |v: u32| u64::from(v) * 10;
        Settings {
            dirty_background: percent(bdflush[0]),
            writeback_interval_ms: jiffies_ms(bdflush[4]),
            dirty_expire_ms: jiffies_ms(bdflush[5]),
            dirty_limit: percent(bdflush[6]),
            ..Settings::default()
        }
    }

    /// Bytes of dirty and in-flight pages at which writers wait.
    pub fn dirty_limit_bytes(&self) -> u64 {
        self.limits().hard * PAGE_U64
    }

    /// The settings in pages, made consistent with each other.
    /// Bytes that it may take: a few pages are needed in any case.
    pub fn memory_limit_bytes(&self) -> u64 {
        self.memory_bytes.max(64 * PAGE_U64)
    }

    pub(crate) fn limits(&self) -> Limits {
        let memory = self.memory_limit_bytes() / PAGE_U64;
        // An eighth stays for reads, so that dirty data cannot lock them out of memory.
        let hard = self.dirty_limit.pages(memory).clamp(2, memory - memory / 8);
        let mut background = self.dirty_background.pages(memory);
        if background >= hard {
            background = hard / 2;
        }
        let inflight = (self.writeback_inflight_bytes / PAGE_U64).clamp(1, memory / 8);
        let batch = (self.writeback_batch_bytes / PAGE_U64).clamp(1, inflight);
        let read_ahead_max = (self.read_ahead_max_bytes / PAGE_U64).min(memory / 8);
        Limits {
            memory,
            background,
            hard,
            inflight,
            batch,
            retry: memory / 8,
            chunk: (self.writeback_chunk_bytes / PAGE_U64).max(batch),
            read_ahead_max,
            read_ahead_initial: (self.read_ahead_initial_bytes / PAGE_U64).clamp(1, memory / 8),
            read_piece: (memory / 8).min(256),
            write_piece: (hard / 2).clamp(1, 64),
            expire: Duration::from_millis(self.dirty_expire_ms),
            interval: (self.writeback_interval_ms > 0)
                .then(|| Duration::from_millis(self.writeback_interval_ms)),
        }
    }
}

/// [`Settings`] as the cache uses them, in pages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    /// Pages in all.
    pub memory: u64,
    /// Dirty pages above which write-back runs; below `hard`.
    pub background: u64,
    /// Dirty and in-flight pages above which writers wait.
    pub hard: u64,
    /// In-flight pages at which no further write-back starts.
    pub inflight: u64,
    /// Pages in one call to the store.
    pub batch: u64,
    /// Pages whose write-back failed that are kept to be written again.
    pub retry: u64,
    /// Pages of one file before the next has its turn.
    pub chunk: u64,
    /// Largest read-ahead window; 0 = no read-ahead.
    pub read_ahead_max: u64,
    /// Smallest first window.
    pub read_ahead_initial: u64,
    /// Pages that a read asks for at once.
    pub read_piece: u64,
    /// Pages that a write dirties between two checks of the limits.
    pub write_piece: u64,
    /// Age at which a dirty file is written.
    pub expire: Duration,
    /// Time between two looks for such files.
    pub interval: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bdflush_of_the_article() {
        let s = Settings::from_bdflush(&[40, 0, 0, 0, 60, 300, 60, 0, 0]);
        assert_eq!(s.dirty_background, DirtyLimit::Percent(40));
        assert_eq!(s.dirty_limit, DirtyLimit::Percent(60));
        assert_eq!((s.writeback_interval_ms, s.dirty_expire_ms), (600, 3000));
        assert_eq!(s.memory_bytes, Settings::default().memory_bytes);
    }

    #[test]
    fn settings_read_from_toml_and_default() {
        let text = "memory_bytes = 1048576\ndirty_limit = { bytes = 65536 }\n";
        let s: Settings = toml::from_str(text).unwrap();
        assert_eq!(s.dirty_limit, DirtyLimit::Bytes(65536));
        assert_eq!(s.dirty_background, DirtyLimit::Percent(10));
        assert!(toml::from_str::<Settings>("memory = 1").is_err());
        let again: Settings = toml::from_str(&toml::to_string(&s).unwrap()).unwrap();
        assert_eq!(again, s);
    }

    #[test]
    fn limits_are_consistent_whatever_the_settings() {
        for memory_bytes in [0, 1 << 20, u64::MAX] {
            for (bg, hard) in [(10, 20), (90, 10), (0, 0), (100, 100), (255, 255)] {
                let l = Settings {
                    memory_bytes,
                    dirty_background: DirtyLimit::Percent(bg),
                    dirty_limit: DirtyLimit::Percent(hard),
                    ..Settings::default()
                }
                .limits();
                assert!(l.background < l.hard && l.hard < l.memory, "{l:?}");
                assert!(l.write_piece <= l.hard && l.batch <= l.inflight, "{l:?}");
            }
        }
    }
}
