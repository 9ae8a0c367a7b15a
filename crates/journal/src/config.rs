//! How a journal behaves.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use smart_default::SmartDefault;

use steadfast_block::planted::BugSwitch;

use crate::planted::Bug;
use crate::{CheckpointHook, Checksums};

/// How a journal behaves; the default is what the kernel does where it has the choice.
#[derive(Debug, Clone, SmartDefault)]
pub struct Config {
    /// Longest time that an update stays uncommitted (kernel: mount option `commit=`, 5 s).
    #[default(Duration::from_secs(5))]
    pub commit_interval: Duration,
    /// Commit only on request: not by time, and not because the running transaction is large. A
    /// transaction may then take the whole log; an update that exceeds it fails with
    /// [`JournalError::Full`](crate::JournalError::Full).
    pub on_demand: bool,
    /// How long a commit that somebody waits for may be delayed so that other tasks can join it:
    /// at most this, and at most the average time of a commit, counted from the transaction's
    /// first update. Zero: start at once. (Kernel: `max_batch_time`, 15 ms; there it applies
    /// only to handles marked synchronous, which fsync is not, so zero is what fsync sees.)
    /// While a commit runs, all who come meanwhile share the next one in any case.
    pub max_batch_time: Duration,
    /// Write the commit block together with the rest and flush once, after it (kernel:
    /// `journal_async_commit`). Needs checksums. Must not be combined with data=ordered on one
    /// device: the commit block may reach the medium before the data does. The owner sees to that.
    pub async_commit: bool,
    /// Keep a part of the log for fast commits (kernel: the `fast_commit` feature), and take them
    /// (see [`Journal::fast_commit`](crate::Journal::fast_commit)).
    pub fast_commits: bool,
    /// Change how blocks are protected; `None` keeps what the superblock says.
    pub checksums: Option<Checksums>,
    /// Use 64-bit block numbers from now on, if the journal does not yet.
    pub wide: bool,
    /// Accept an external log on a device that loses its contents with the power, or may.
    pub accept_volatile: bool,
    /// Start a checkpoint in the background when more than this part of the log is in use.
    #[default(0.5)]
    pub checkpoint_start_fraction: f64,
    /// A checkpoint frees the oldest transactions until at most this part of the log is in use.
    /// With 0 it takes all that are committed: the largest batch, and so the longest sorted runs.
    #[default(0.0)]
    pub checkpoint_stop_fraction: f64,
    /// Home writes in flight during a checkpoint.
    #[default(32)]
    pub checkpoint_in_flight: usize,
    /// Largest write to the log or to home places, bytes.
    #[default(1 << 20)]
    pub max_request_bytes: usize,
    /// Most bytes of block images in memory that are not checkpointed: beyond, new updates wait for
    /// a commit and a checkpoint, which begins at half of it. One update alone (see
    /// [`Journal::max_update_blocks`](crate::Journal::max_update_blocks)), and with `on_demand` the
    /// running transaction, may be larger. Default: the size of the log.
    #[default(u64::MAX)]
    pub image_bytes_max: u64,
    /// Bytes counted for an image beside its contents.
    pub image_overhead_bytes: u64,
    /// Their present size, updated by the journal: for others that share the memory.
    pub image_bytes: Arc<AtomicU64>,
    /// The date at which a simulation begins, in nanoseconds since 1970: commit blocks carry the
    /// time, [`steadfast_runtime::unix_ns`].
    pub simulated_epoch_ns: u64,
    /// Called before every checkpoint.
    pub before_checkpoint: Option<Arc<dyn CheckpointHook>>,
    /// Simulated processor time to checksum one byte, in picoseconds. Default 80: CRC-32C with
    /// the processor's instruction runs at 10 to 15 GB/s from cache, and a logged block comes
    /// from memory.
    #[default(80)]
    pub cpu_checksum_ps_per_byte: u64,
    /// Simulated processor time to add one block to a transaction, its log request and its
    /// checkpoint list. Default 400 ns.
    #[default(Duration::from_nanos(400))]
    pub cpu_per_block: Duration,
    /// A bug that the crash explorer is to find.
    pub planted: BugSwitch<Bug>,
}

impl Config {
    /// Whether this bug is switched on.
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.planted.has(bug)
    }

    /// Simulated processor time for adding so many blocks and checksumming so many bytes.
    pub(crate) fn cpu_cost(&self, blocks: u32, summed_bytes: usize) -> Duration {
        let ps = self.cpu_checksum_ps_per_byte.saturating_mul(summed_bytes as u64);
        self.cpu_per_block * blocks + Duration::from_nanos(ps / 1000)
    }
}
