//! The journal in use: joining updates, waiting for commits and for log space.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_runtime::{JoinHandle, Mutex, MutexGuard, now, preemption_point, spawn};

use crate::flushes::Flushes;
use crate::ondisk::superblock::{JournalSuperblock, MIN_LOG_BLOCKS};
use crate::planted::Bug;
use crate::shared::JournalCore;
use crate::state::State;
use crate::transaction::{RunningTransaction, Update};
use crate::{
    Config, FastTag, FsBlock, JournalError, JournalStats, Log, Result, Tid, checkpoint, commit,
    fast,
};

/// A journal in use. It has two tasks: one commits, one checkpoints.
///
/// [`close`](Journal::close) leaves a clean log. Dropping the journal without it leaves the log as
/// a power cut would, to be recovered; the tasks end.
pub struct Journal {
    pub(crate) shared: Arc<JournalCore>,
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
        let shared = Arc::new(JournalCore::open(log, fs, config)?);
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
        st.running.get_or_insert_with(|| RunningTransaction::new(started)).join(update, cancels);
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
            st.check_alive()?;
            if st.closing {
                return Err(JournalError::refused("the journal is closed"));
            }
            let layout = st.layout;
            let joined = |r: &RunningTransaction| r.log_blocks_with(writes, revokes, &layout);
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
            st.check_alive()?;
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

    /// Makes `tags` durable as a fast commit of transaction `tid`: all that its updates so far
    /// have done since its last fast commit. Waits. False if it cannot be one: the transaction
    /// is not the running one (any more), nothing has joined it, fast commits are off, the journal
    /// commits on demand only, or there is no room; then the transaction must be committed.
    ///
    /// # Errors
    /// [`JournalError::Aborted`], or the failure of a device, which
    /// aborts the journal.
    pub fn fast_commit(&self, tid: Tid, tags: &[FastTag]) -> Result<bool> {
        fast::commit(&self.shared, tid, tags)
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
        self.mark_clean().inspect_err(|e| self.shared.abort(e))
    }

    /// Checkpoints everything that is committed now.
    pub fn checkpoint_committed(&self) -> Result<()> {
        let shared = &*self.shared;
        let mut st = shared.state.lock();
        let last = st.committed_tid;
        while last.is_at_least(st.tail_tid) {
            st.check_alive()?;
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

    /// Bytes of block images in memory that are not home, and the most that there may be: the
    /// bound ([`Config::image_bytes_max`]), or of a small log what it can hold.
    pub fn image_bytes(&self) -> (u64, u64) {
        let shared = &*self.shared;
        let log = u64::from(self.usage().1) * shared.bytes_an_image();
        let now = shared.config.image_bytes.load(Ordering::Relaxed);
        (now, shared.config.image_bytes_max.min(log))
    }

    /// The superblock as last written, or as it will be written first.
    pub fn superblock(&self) -> JournalSuperblock {
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
