//! The journal in use: joining updates, waiting for commits and for log space.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_runtime::{Condvar, JoinHandle, Mutex, MutexGuard, now, preemption_point, spawn};

use crate::fast::FastArea;
use crate::flushes::Flushes;
use crate::ondisk::layout::Layout;
use crate::ondisk::superblock::{MIN_LOG_BLOCKS, Superblock};
use crate::planted::Bug;
use crate::state::State;
use crate::superblock_writer::SuperblockWriter;
use crate::transaction::{Running, Update};
use crate::{
    Checksums, Config, Features, FsBlock, JournalError, Log, LogBlock, Result, Tid, checkpoint,
    commit,
};

/// `-EIO`, what the superblock says of an aborted journal.
const EIO: i32 = -5;

/// Counts since the journal was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalStats {
    /// Updates that have joined a transaction.
    pub updates: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Log blocks that they took, control blocks included.
    pub logged_blocks: u64,
    /// Checkpoint rounds.
    pub checkpoints: u64,
    /// Blocks written home.
    pub home_blocks: u64,
    /// Requests in which they were written.
    pub home_writes: u64,
    /// Times that an update had to wait for log space.
    pub space_waits: u64,
    /// Fast commits.
    pub fast_commits: u64,
    /// Log blocks that they took.
    pub fast_blocks: u64,
}

/// Called with the cause when the journal is aborted.
pub(crate) type OnAbort = Box<dyn Fn(&JournalError) + Send + Sync>;

/// What the journal's tasks and its owner share.
pub(crate) struct Shared {
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

impl Shared {
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

    fn wake_all(&self) {
        self.commit_work.notify_all();
        self.checkpoint_work.notify_all();
        self.progress.notify_all();
    }
}

impl Config {
    /// Simulated processor time for adding so many blocks and checksumming so many bytes.
    pub(crate) fn cpu_cost(&self, blocks: u32, summed_bytes: usize) -> Duration {
        let ps = self.cpu_checksum_ps_per_byte.saturating_mul(summed_bytes as u64);
        self.cpu_per_block * blocks + Duration::from_nanos(ps / 1000)
    }
}

/// A journal in use. It has two tasks: one commits, one checkpoints.
///
/// [`close`](Journal::close) leaves a clean log. Dropping the journal without it leaves the log as
/// a power cut would, to be recovered; the tasks end.
pub struct Journal {
    pub(crate) shared: Arc<Shared>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("log", &self.shared.log).finish()
    }
}

impl Journal {
    /// Opens a clean log ([`recover`](crate::recover) first if it may not be) of the file system
    /// on `fs`. Nothing is written until the first commit.
    pub fn open(log: Log, fs: Arc<dyn BlockDevice>, config: Config) -> Result<Arc<Journal>> {
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
        let shared = Arc::new(Shared {
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
        });
        let (a, b) = (Arc::clone(&shared), Arc::clone(&shared));
        let tasks = vec![
            spawn("journal commit", move || commit::run(&a)),
            spawn("journal checkpoint", move || checkpoint::run(&b)),
        ];
        Ok(Arc::new(Journal { shared, tasks: Mutex::new(tasks) }))
    }

    /// Joins an update to the running transaction, whole or not at all, and returns the
    /// transaction's number. Waits if the transaction is full or the log has no room.
    ///
    /// # Errors
    /// [`JournalError::Aborted`]; [`JournalError::Full`] if the journal commits on demand only and
    /// the transaction would not fit the log; [`JournalError::Refused`] if the update can never
    /// fit (see [`max_update_blocks`](Self::max_update_blocks)), an image has the wrong size, or a
    /// block number needs 64 bits and the journal has 32.
    pub fn submit(&self, update: Update) -> Result<Tid> {
        self.check_update(&update)?;
        let mut st = self.room_for(update.writes.len(), update.revokes.len())?;
        let tid = st.running_tid;
        let first = st.running.is_none();
        let started = now();
        let cancels = !self.shared.config.has(Bug::RevokeNotCancelled);
        st.running.get_or_insert_with(|| Running::new(started)).join(update, cancels);
        st.stats.updates += 1;
        self.shared.note_images(&st);
        let wanted = st.commit_request.is_at_least(tid);
        let wake = first && (wanted || !st.commit_timer);
        drop(st);
        if wake {
            // The commit interval counts from here.
            self.shared.commit_work.notify_all();
        }
        Ok(tid)
    }

    /// Waits until an update of this size can join at once. For callers that must not wait for the
    /// log under their own locks: wait here first, then lock, then submit.
    pub fn wait_for_room(&self, writes: usize, revokes: usize) -> Result<()> {
        self.room_for(writes, revokes).map(drop)
    }

    fn check_update(&self, update: &Update) -> Result<()> {
        let block_size = self.shared.log.block_size() as usize;
        if let Some((block, image)) = update.writes.iter().find(|(_, i)| i.len() != block_size) {
            return Err(JournalError::refused(format!(
                "the image of block {block} has {} bytes, a block {block_size}",
                image.len()
            )));
        }
        let numbers = update.writes.iter().map(|(b, _)| b).chain(&update.revokes);
        if let Some(high) = numbers.max().filter(|b| b.0 >> 32 != 0)
            && !self.shared.layout.wide
        {
            return Err(JournalError::refused(format!(
                "block {high} does not fit the journal's 32-bit block numbers"
            )));
        }
        Ok(())
    }

    /// Waits until an update of this size can join the running transaction.
    fn room_for(&self, writes: usize, revokes: usize) -> Result<MutexGuard<'_, State>> {
        let shared = &*self.shared;
        let mut st = shared.state.lock();
        let alone = st.layout.log_blocks(writes, revokes);
        let max = st.max_transaction() as usize;
        if alone > max {
            return Err(JournalError::refused(format!(
                "an update of {writes} blocks needs {alone} log blocks; the journal takes {max} at \
                 once: split the operation, or make a larger journal"
            )));
        }
        let mut waited = false;
        loop {
            if let Some(e) = &st.aborted {
                return Err(e.clone());
            }
            if st.closing || st.stopping {
                return Err(JournalError::refused("the journal is closed"));
            }
            let layout = st.layout;
            let joined = |r: &Running| r.log_blocks_with(writes, revokes, &layout);
            let wanted = st.running.as_ref().map_or(alone, joined);
            let whole = st.capacity() as usize - 1;
            if shared.config.on_demand && wanted > whole {
                return Err(JournalError::Full { wanted, capacity: whole });
            }
            let crowded = st.images().saturating_add(writes) > shared.images_max();
            let closes = st.running.is_some() && !shared.config.on_demand;
            let is_full = wanted > max || (crowded && st.images_to_checkpoint() == 0);
            if is_full && closes {
                let tid = st.running_tid;
                st.running_full = true;
                shared.commit_work.notify_all();
                st = shared.progress.wait_while(st, |st| {
                    st.running_tid == tid && st.aborted.is_none() && !st.stopping
                });
            } else if !st.has_room(wanted) || (crowded && st.images_to_checkpoint() > 0) {
                st.stats.space_waits += u64::from(!std::mem::replace(&mut waited, true));
                st.space_waiters += 1;
                shared.checkpoint_work.notify_all();
                st = shared.progress.wait(st);
                st.space_waiters -= 1;
            } else {
                return Ok(st);
            }
        }
    }

    /// The most block images that one [`Update`] should hold, if it revokes no more than a
    /// block-full: about a quarter of the log, and not more than may be in memory
    /// ([`Config::image_bytes_max`]), but at least what fits the smallest log. A larger one is
    /// taken alone, up to what the log takes.
    pub fn max_update_blocks(&self) -> usize {
        let st = self.shared.state.lock();
        let max = st.max_transaction() as usize;
        // A commit block, a revoke block, and a descriptor for each group of images.
        let group = st.layout.tags_per_descriptor();
        let images = (max - 2) * group / (group + 1);
        debug_assert!(st.layout.log_blocks(images, 1) <= max);
        images.min(self.shared.images_max().max(MIN_LOG_BLOCKS as usize / 4))
    }

    /// The newest contents of a block that is not (known to be) at its home location: of the
    /// running, the committing, or a committed transaction. `None`: the home location is up to
    /// date, or the block was revoked and has no journaled contents.
    pub fn image(&self, block: FsBlock) -> Option<Bytes> {
        self.shared.state.lock().image(block)
    }

    /// Number of the transaction that the next update would join.
    pub fn running_tid(&self) -> Tid {
        self.shared.state.lock().running_tid
    }

    /// The newest transaction that is durable.
    pub fn committed_tid(&self) -> Tid {
        self.shared.state.lock().committed_tid
    }

    /// Whether this transaction is durable, without waiting: a transaction that has just become
    /// durable may be missed.
    pub fn is_durable(&self, tid: Tid) -> bool {
        Tid(self.shared.durable.load(Ordering::Acquire)).is_at_least(tid)
    }

    /// Makes transaction `tid` and all before it durable, and waits. Callers that arrive during a
    /// commit share the next one. A number without updates stands for all updates so far.
    pub fn commit(&self, tid: Tid) -> Result<()> {
        // Between the update and the commit other tasks may add updates.
        preemption_point();
        let shared = &*self.shared;
        let mut st = shared.state.lock();
        let mut target = tid;
        if tid.is_at_least(st.running_tid) {
            let last = if st.running.is_some() { 0 } else { u32::MAX };
            target = st.running_tid.plus(last);
        }
        loop {
            if st.committed_tid.is_at_least(target) {
                return Ok(());
            }
            if let Some(e) = &st.aborted {
                return Err(e.clone());
            }
            if st.stopping {
                return Err(JournalError::refused("the journal is closed"));
            }
            let at_once = !st.commit_busy && shared.config.max_batch_time.is_zero();
            if at_once && let Some(work) = commit::close(shared, &mut st) {
                drop(st);
                commit::perform(shared, work);
                st = shared.state.lock();
                continue;
            }
            if target.is_after(st.commit_request) {
                st.request_commit(target);
                shared.commit_work.notify_all();
            }
            st = shared.progress.wait(st);
        }
    }

    /// Starts the commit of transaction `tid` without waiting for it.
    pub fn start_commit(&self, tid: Tid) {
        let mut st = self.shared.state.lock();
        if !tid.is_after(st.running_tid) {
            st.request_commit(tid);
        }
        drop(st);
        self.shared.commit_work.notify_all();
    }

    /// Commits and checkpoints everything, and marks the log clean unless updates have joined in
    /// between.
    pub fn checkpoint_all(&self) -> Result<()> {
        let last = self.running_tid();
        self.commit(last)?;
        self.checkpoint_committed()?;
        let marked = self.mark_clean();
        if let Err(e) = &marked {
            self.shared.abort(e);
        }
        marked
    }

    /// Checkpoints everything that is committed now.
    pub fn checkpoint_committed(&self) -> Result<()> {
        let shared = &*self.shared;
        let mut st = shared.state.lock();
        let last = st.committed_tid;
        while last.is_at_least(st.tail_tid) {
            if let Some(e) = &st.aborted {
                return Err(e.clone());
            }
            if st.stopping {
                return Err(JournalError::refused("the journal is closed"));
            }
            if st.checkpoint_request.is_none_or(|tid| last.is_after(tid)) {
                st.checkpoint_request = Some(last);
            }
            shared.checkpoint_work.notify_all();
            st = shared.progress.wait(st);
        }
        if st.checkpoint_request == Some(last) {
            st.checkpoint_request = None;
        }
        Ok(())
    }

    /// Writes a superblock that says that the log is clean, if it is.
    fn mark_clean(&self) -> Result<()> {
        let shared = &*self.shared;
        shared.superblock.update(true, |sb| {
            let mut st = shared.state.lock();
            if !st.is_empty() || st.marked_empty || st.aborted.is_some() {
                return None;
            }
            // A later commit waits for the superblock writer and then writes its start.
            st.marked_empty = true;
            sb.set_tail(None, st.running_tid);
            Some(())
        })
    }

    /// Commits and checkpoints everything, marks the log clean and ends the tasks. Updates that
    /// come meanwhile or later are refused.
    pub fn close(&self) -> Result<()> {
        self.shared.state.lock().closing = true;
        self.shared.progress.notify_all();
        let outcome = self.checkpoint_all();
        self.end_tasks();
        outcome.and(self.aborted().map_or(Ok(()), Err))
    }

    /// Stops the tasks at once and waits for them: the log stays as after a power cut, but writes
    /// in flight have completed on return.
    pub fn abandon(&self) {
        self.end_tasks();
    }

    fn end_tasks(&self) {
        self.shared.state.lock().stopping = true;
        self.shared.wake_all();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            if let Err(panicked) = task.join() {
                panicked.resume();
            }
        }
        let shared = &*self.shared;
        let st = shared.progress.wait_while(shared.state.lock(), |st| st.commit_busy);
        drop(st);
    }

    /// The first failure, if there was one; the journal writes nothing any more.
    pub fn aborted(&self) -> Option<JournalError> {
        match self.shared.failed.load(Ordering::Acquire) {
            true => self.shared.state.lock().aborted.clone(),
            false => None,
        }
    }

    /// Sets the listener that is called with the cause when the journal is aborted: otherwise a
    /// failed commit without a waiter is not reported. It is called by the task that found the
    /// failure and must not call the journal. Only the first listener is used.
    pub fn on_abort(&self, listener: impl Fn(&JournalError) + Send + Sync + 'static) {
        if self.shared.on_abort.set(Box::new(listener)).is_ok()
            && let Some(e) = self.aborted()
            && let Some(listener) = self.shared.on_abort.get()
        {
            listener(&e);
        }
    }

    /// Aborts the journal because of a failure in the file system: nothing more is committed.
    pub fn abort(&self, cause: &JournalError) {
        self.shared.abort(cause);
    }

    /// Counts since the journal was opened.
    pub fn stats(&self) -> JournalStats {
        self.shared.state.lock().stats
    }

    /// The flushes of the file system's device. Every flush of the device is made through this.
    pub fn flushes(&self) -> &Arc<Flushes> {
        &self.shared.fs_flushes
    }

    /// Log blocks in use and log blocks that there are.
    pub fn usage(&self) -> (u32, u32) {
        let st = self.shared.state.lock();
        (st.used, st.capacity())
    }

    /// The superblock as last written, or as it will be written first.
    pub fn superblock(&self) -> Superblock {
        self.shared.superblock.get()
    }

    /// Where the log lives.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The lock is never held across a wait, so this does not wait either.
        self.shared.state.lock().stopping = true;
        self.shared.wake_all();
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
fn features(sb: &Superblock, config: &Config) -> Result<Features> {
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
    f.set_incompat(Features::ASYNC_COMMIT, config.async_commit);
    f.set_incompat(Features::REVOKE, true);
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
    let fast = config.fast_commits || f.has_incompat(Features::FAST_COMMIT);
    f.set_incompat(Features::FAST_COMMIT, fast && room);
    if config.wide {
        f.set_incompat(Features::WIDE, true);
    }
    Ok(f)
}
