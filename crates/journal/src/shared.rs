//! What the tasks of a journal share with its owner.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use steadfast_block::BlockDevice;
use steadfast_runtime::{Condvar, Mutex};

use crate::fast::FastArea;
use crate::flushes::Flushes;
use crate::ondisk::layout::Layout;
use crate::ondisk::superblock::{JournalSuperblock, MIN_LOG_BLOCKS};
use crate::planted::Bug;
use crate::state::State;
use crate::superblock_writer::SuperblockWriter;
use crate::{Checksums, Config, JournalError, JournalFeatures, Log, LogBlock, Result};

/// `-EIO`, what the superblock says of an aborted journal.
const EIO: i32 = -5;

/// Called with the cause when the journal is aborted.
pub(crate) type OnAbort = Box<dyn Fn(&JournalError) + Send + Sync>;

/// What the journal's tasks and its owner share.
pub(crate) struct JournalCore {
    pub log: Log,
    pub fs: Arc<dyn BlockDevice>,
    pub config: Config,
    pub layout: Layout,
    pub uuid: [u8; 16],
    pub log_first: LogBlock,
    pub log_end: LogBlock,
    /// A power cut may leave a log block half written.
    pub log_tears_blocks: bool,
    /// The log is on a device of its own, and that has a volatile cache.
    log_cached: bool,
    /// Of the file system's device, which may be the log's too.
    pub fs_flushes: Arc<Flushes>,
    pub superblock: SuperblockWriter,
    /// Whether the journal is aborted, and the newest durable transaction: copies of the state for
    /// callers that ask at every call and must not wait for its lock.
    pub failed: AtomicBool,
    pub durable: AtomicU32,
    /// Listener for an abort.
    pub on_abort: OnceLock<OnAbort>,
    /// Held while a fast commit is made. Taken before the other locks.
    pub fast_area: Mutex<FastArea>,
    /// Never held across a wait for a device. Taken after the superblock writer's lock, never
    /// before it.
    pub state: Mutex<State>,
    /// The commit task may have something to do.
    pub commit_work: Condvar,
    /// The checkpoint task may have something to do.
    pub checkpoint_work: Condvar,
    /// A transaction was closed or committed, log space was freed, home writes completed, or the
    /// journal was aborted.
    pub progress: Condvar,
}

impl JournalCore {
    /// Of a clean log, for the file system on `fs`.
    pub(crate) fn open(log: Log, fs: Arc<dyn BlockDevice>, config: Config) -> Result<JournalCore> {
        check_fitness(&log, &config)?;
        let (mut sb, block) = log.read_superblock_block()?;
        if sb.start().is_some() {
            let what = "the journal holds transactions that must be recovered first";
            return Err(JournalError::refused(what));
        }
        sb.set_features(features(&sb, &config)?);
        let info = log.device().info();
        let flushes = Flushes::new(Arc::clone(&fs));
        if !log.is_external() && log.memory().is_some() {
            // A flush for the log is one of the file system's device.
            flushes.after_store();
        }
        let state = State::new(&sb);
        Ok(JournalCore {
            layout: Layout::of(&sb),
            uuid: *sb.uuid().as_bytes(),
            log_first: sb.first(),
            log_end: sb.end(),
            log_tears_blocks: info.atomic_write < log.block_size(),
            log_cached: info.volatile_cache,
            fs_flushes: Arc::new(flushes),
            superblock: SuperblockWriter::new(log.clone(), sb, &block),
            failed: AtomicBool::new(false),
            durable: AtomicU32::new(state.committed_tid.0),
            on_abort: OnceLock::new(),
            fast_area: Mutex::default(),
            state: Mutex::new(state),
            commit_work: Condvar::new(),
            checkpoint_work: Condvar::new(),
            progress: Condvar::new(),
            log,
            fs,
            config,
        })
    }

    pub(crate) fn flush_log(&self) -> Result<()> {
        if !self.log.is_external() {
            return self.flush_fs();
        }
        if let Some(memory) = self.log.memory() {
            memory.fence()?;
        }
        if self.log_cached { Ok(self.log.device().flush()?) } else { Ok(()) }
    }

    pub(crate) fn flush_fs(&self) -> Result<()> {
        Ok(self.fs_flushes.flush()?)
    }

    /// Aborts the journal; only the first cause counts. All waiters get it.
    pub(crate) fn abort(&self, cause: &JournalError) {
        let mut st = self.state.lock();
        if st.aborted.is_some() {
            return;
        }
        self.set_aborted(&mut st, cause.to_string());
        drop(st);
        self.wake_all();
        if let Some(listener) = self.on_abort.get() {
            listener(cause);
        }
        // For the next mount; a failure here cannot be reported.
        let _ = self.superblock.update(true, |sb| {
            sb.set_errno(EIO);
            Some(())
        });
    }

    /// In memory only.
    pub(crate) fn set_aborted(&self, st: &mut State, cause: String) {
        st.aborted = Some(JournalError::Aborted { cause });
        self.failed.store(true, Ordering::Release);
    }

    pub(crate) fn wake_all(&self) {
        self.commit_work.notify_all();
        self.checkpoint_work.notify_all();
        self.progress.notify_all();
    }

    /// The most block images to be kept in memory ([`crate::Config::image_bytes_max`]).
    pub(crate) fn images_max(&self) -> usize {
        let most = self.config.image_bytes_max / self.bytes_an_image();
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// What one takes in memory.
    pub(crate) fn bytes_an_image(&self) -> u64 {
        u64::from(self.log.block_size()) + self.config.image_overhead_bytes
    }

    /// Updates the memory use of the images.
    pub(crate) fn note_images(&self, st: &State) {
        let bytes = st.images() as u64 * self.bytes_an_image();
        self.config.image_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Refuses a log device that is less persistent than the file system's device. (An internal log is
/// on the same device.)
fn check_fitness(log: &Log, config: &Config) -> Result<()> {
    if !log.is_external() || config.accept_volatile {
        return Ok(());
    }
    match log.device().info().unfit_to_persist() {
        None => Ok(()),
        Some(reason) => Err(JournalError::refused(format!(
            "{reason}: it must not hold a journal, because losing the journal damages the file \
             system; accept a volatile journal explicitly if that is acceptable"
        ))),
    }
}

/// The features that the journal will have from its next superblock on.
fn features(sb: &JournalSuperblock, config: &Config) -> Result<JournalFeatures> {
    let mut f = sb.features();
    if let Some(checksums) = config.checksums {
        f.set_checksums(checksums);
    }
    let unsafely = config.has(Bug::AsyncCommitWithoutChecksum);
    if unsafely {
        f.set_checksums(Checksums::None);
    }
    if config.async_commit && f.checksums() == Checksums::None && !unsafely {
        let what = "async_commit needs checksums: without them a torn commit is not noticed";
        return Err(JournalError::refused(what));
    }
    f.set_incompat(JournalFeatures::ASYNC_COMMIT, config.async_commit);
    f.set_incompat(JournalFeatures::REVOKE, true);
    let room = sb.has_room_for_fast_commits();
    if config.fast_commits && !room {
        return Err(JournalError::refused(format!(
            "fast commits need {} blocks beside {MIN_LOG_BLOCKS} for transactions, and the journal \
             has {}: make a larger one, or do without fast_commit",
            sb.fast_blocks_wanted(),
            sb.max_len()
        )));
    }
    // The kernel and e2fsck treat a log with the feature but without room for it as damaged.
    let fast = config.fast_commits || f.has_incompat(JournalFeatures::FAST_COMMIT);
    f.set_incompat(JournalFeatures::FAST_COMMIT, fast && room);
    if config.wide {
        f.set_incompat(JournalFeatures::WIDE, true);
    }
    Ok(f)
}
