//! Commits: one transaction at a time, from memory to the log.
//!
//! # Who does it
//!
//! A caller that waits for a transaction which is not being committed commits it itself
//! ([`Journal::commit`](crate::Journal::commit)): handing it to another task and back would take
//! longer than writing a few blocks to memory or flash. The commit task commits transactions
//! without a waiter: those that are old enough, full, or requested earlier. `State::commit_busy`
//! allows one commit at a time.
//!
//! # Order
//!
//! 1. The running transaction is closed; a new one replaces it. Its place in the log is decided now
//!    (its size is known).
//! 2. If the superblock on disk says that the log is clean, it is written to say where this
//!    transaction begins. It must be durable before the commit block is; step 6 sees to that.
//! 3. Revoke blocks, then descriptor blocks each followed by its images, go to the log in large
//!    writes, all in flight together.
//! 4. The transaction's `wait_for` completions are waited for (data=ordered).
//! 5. If there were any, and the log is on another device than the file system, and the latter
//!    has a volatile cache: that device is flushed.
//! 6. The log writes are waited for. The log's device is flushed, and the commit block written
//!    with FUA (if it has a volatile cache; otherwise completion is durability).
//! 7. The transaction is added to the checkpoint list, `on_commit` runs, waiters continue.
//!
//! Where the log's device is memory, step 3 stores the blocks past the processor's caches, a flush
//! of it is a fence, and the commit block is stored and fenced: no request is made.
//!
//! With `async_commit` the commit block goes with step 3's writes, after steps 4 and 5, and one
//! flush of the log's device follows.
//!
//! # When the file system's device must be flushed
//!
//! A transaction may state that data is in place only if that data is durable before its commit
//! block. These statements are exactly the completions in `wait_for`.
//!
//! * *One device.* The flush in step 6 is submitted after those writes completed, so it covers
//!   them (media assumption 3), before the commit block is written. With `async_commit` there is
//!   no flush in between: that is why the owner must not combine it with data=ordered on one
//!   device.
//! * *Two devices.* Step 5 flushes it. When `wait_for` is empty the transaction states nothing new
//!   about that device. Data of earlier transactions was flushed before *their* commit blocks. Home
//!   writes of a checkpoint need no flush here: until they are flushed, their transactions stay in
//!   the log (see `checkpoint`).
//!
//! *Not* covered: data written in place that no update waited for. A file system that must make
//! such data durable (fsync after an overwrite) puts its completions into an update or flushes
//! itself.
//!
//! # A commit block is never torn
//!
//! A power cut may leave some sectors of a block new and some old, and the checksum of a commit
//! block covers the whole block. So if the device's sectors are smaller than a block, zeros are
//! written to the commit block's place along with step 3, before the flush. The commit block
//! differs from them only in its first sector: it is complete or absent.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::Completion;
use steadfast_runtime::{Nanos, now, unix_ns};

use crate::checkpoint;
use crate::checksum::{ImageSums, crc32_be};
use crate::fast;
use crate::ondisk::layout::Layout;
use crate::ondisk::tag::{ESCAPE, Tag};
use crate::ondisk::{MAGIC, commit_block, descriptor, revoke};
use crate::planted::Bug;
use crate::shared::JournalCore;
use crate::state::State;
use crate::transaction::{CommittingTransaction, OnCommit};
use crate::writer::Writer;
use crate::{Checksums, FsBlock, LogBlock, Result};

/// The body of the task.
pub(crate) fn run(shared: &Arc<JournalCore>) {
    while let Some(work) = next(shared) {
        perform(shared, work);
    }
}

/// Commits a closed transaction. If that fails the journal is aborted.
pub(crate) fn perform(shared: &JournalCore, work: Work) {
    let busy = Busy { shared };
    match Commit::new(shared, &work.transaction).write(&work) {
        Ok(CommitResult::Durable) => {
            let tid = work.transaction.tid;
            finish(shared, work);
            fast::retire(shared, tid);
        }
        Ok(CommitResult::Abandoned) => {}
        Err(e) => shared.abort(&e),
    }
    drop(busy);
}

/// A commit in progress; at its end, also after an error, the next one may begin.
struct Busy<'a> {
    shared: &'a JournalCore,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut st = self.shared.state.lock();
        st.commit_busy = false;
        if std::thread::panicking() && st.aborted.is_none() {
            // In memory only: the simulation of this task may be over, and then nothing can be
            // waited for.
            let cause = "a fault in the journal's code ended a commit half-way".into();
            self.shared.set_aborted(&mut st, cause);
        }
        let due = due_at(self.shared, &st).is_some_and(|due| due <= now());
        drop(st);
        self.shared.progress.notify_all();
        if due {
            self.shared.commit_work.notify_all();
        }
    }
}

/// A closed transaction and what its commit must wait for and do.
pub(crate) struct Work {
    transaction: Arc<CommittingTransaction>,
    wait_for: Vec<Completion>,
    on_commit: Vec<OnCommit>,
    /// The superblock on disk says that the log is clean.
    log_was_clean: bool,
    began: Nanos,
}

enum CommitResult {
    Durable,
    /// The journal was dropped meanwhile.
    Abandoned,
}

/// Waits until a commit is due and closes the running transaction; `None` when the task ends.
fn next(shared: &JournalCore) -> Option<Work> {
    let mut st = shared.state.lock();
    // A transaction that starts during this wait is due later, so its fsync need not wake this task
    // only to set its timer. Afterwards we wait without a timer.
    let look_again = now() + shared.config.commit_interval;
    loop {
        st.commit_timer = false;
        if st.stopping || st.aborted.is_some() {
            return None;
        }
        if st.commit_busy {
            // Its end wakes us if anything is due then.
            st = shared.commit_work.wait(st);
            continue;
        }
        let Some(due) = due_at(shared, &st) else {
            let left = look_again.since(now());
            if shared.config.on_demand || left.is_zero() {
                st = shared.commit_work.wait(st);
            } else {
                st.commit_timer = true;
                st = shared.commit_work.wait_timeout(st, left).0;
            }
            continue;
        };
        let left = due.since(now());
        if !left.is_zero() {
            st.commit_timer = true;
            st = shared.commit_work.wait_timeout(st, left).0;
            continue;
        }
        return close(shared, &mut st);
    }
}

/// Closes the running transaction, if there is one, for the caller to [`perform`] its commit.
/// None is in progress.
pub(crate) fn close(shared: &JournalCore, st: &mut State) -> Option<Work> {
    debug_assert!(!st.commit_busy);
    let log_revokes = !shared.config.has(Bug::MissingRevoke);
    let (transaction, running) = st.close_running(log_revokes)?;
    st.commit_busy = true;
    let log_was_clean = std::mem::take(&mut st.marked_empty);
    // Those who found the transaction full can join the next one.
    shared.progress.notify_all();
    let (wait_for, on_commit) = (running.wait_for, running.on_commit);
    Some(Work { transaction, wait_for, on_commit, log_was_clean, began: now() })
}

/// When the running transaction is to be committed; `None` if nothing has joined it, or nobody has
/// asked and it is committed on demand only.
fn due_at(shared: &JournalCore, st: &State) -> Option<Nanos> {
    let started = st.running.as_ref()?.started;
    if st.running_full {
        return Some(started);
    }
    if shared.config.on_demand {
        return st.commit_request.is_at_least(st.running_tid).then_some(started);
    }
    if st.commit_request.is_at_least(st.running_tid) {
        return Some(started + shared.config.max_batch_time.min(st.average_commit));
    }
    Some(started + shared.config.commit_interval)
}

/// Adds the transaction to the checkpoint list and wakes all waiters.
fn finish(shared: &JournalCore, work: Work) {
    let t = &work.transaction;
    let mut st = shared.state.lock();
    // A revoked block may be reused from here on. A home write of its image that is in flight now
    // would overwrite the new contents.
    while t.revokes.iter().any(|b| st.home_in_flight.binary_search(b).is_ok()) {
        st = shared.progress.wait(st);
    }
    st.add_to_checkpoint_list(t);
    shared.note_images(&st);
    drop(st);
    work.on_commit.into_iter().for_each(|f| f(t.tid));
    let mut st = shared.state.lock();
    st.committed_tid = t.tid;
    shared.durable.store(t.tid.0, std::sync::atomic::Ordering::Release);
    st.average_commit = average(st.average_commit, now() - work.began);
    st.stats.commits += 1;
    st.stats.logged_blocks += u64::from(t.log_blocks);
    // Not at every commit: waking a task for nothing costs processor time of the waiters.
    let checkpoint = checkpoint::wanted(shared, &st);
    drop(st);
    if checkpoint {
        shared.checkpoint_work.notify_all();
    }
}

/// The kernel's weights: three parts past, one part present.
fn average(past: Duration, present: Duration) -> Duration {
    if past.is_zero() { present } else { (past * 3 + present) / 4 }
}

/// A transaction that is being written to the log.
struct Commit<'a> {
    shared: &'a JournalCore,
    layout: Layout,
    t: &'a CommittingTransaction,
    next: u32,
    writer: Writer<'a>,
    v1_sum: u32,
}

impl<'a> Commit<'a> {
    fn new(shared: &'a JournalCore, t: &'a CommittingTransaction) -> Self {
        let writer = Writer::to_log(&shared.log, &shared.config);
        let (next, layout) = (t.log_start.0, shared.layout);
        Commit { shared, layout, t, next, writer, v1_sum: !0 }
    }

    fn write(mut self, work: &Work) -> Result<CommitResult> {
        if work.log_was_clean {
            self.shared.superblock.set_tail(self.t.log_start, self.t.tid, false)?;
            fast::clear(&self.shared.log, &self.shared.superblock.get(), false)?;
        }
        self.push_revokes();
        self.push_images();
        if self.layout.async_commit { self.end_async(work) } else { self.end_sync(work) }
    }

    fn end_sync(&mut self, work: &Work) -> Result<CommitResult> {
        let commit_at = LogBlock(self.next);
        if self.shared.config.has(Bug::CommitBlockFirst) {
            let block = Bytes::from(self.commit_block());
            self.shared.log.write_block(commit_at, block, true)?;
        } else if self.shared.log_tears_blocks {
            self.push(Bytes::from(vec![0; self.layout.block_size]));
        }
        self.writer.submit();
        self.wait_for_data(work)?;
        self.writer.finish()?;
        if self.shared.state.lock().stopping {
            return Ok(CommitResult::Abandoned);
        }
        if self.shared.config.has(Bug::CommitWithoutPreflush) {
            self.shared.fs_flushes.mark_flushed();
        } else {
            self.shared.flush_log()?;
        }
        let block = Bytes::from(self.commit_block());
        let durable = !self.shared.config.has(Bug::CommitNotDurable);
        self.shared.log.write_block(commit_at, block, durable)?;
        Ok(CommitResult::Durable)
    }

    fn end_async(&mut self, work: &Work) -> Result<CommitResult> {
        if !work.wait_for.is_empty() {
            self.writer.submit();
            self.wait_for_data(work)?;
        }
        if self.shared.state.lock().stopping {
            return Ok(CommitResult::Abandoned);
        }
        let block = self.commit_block();
        self.push(Bytes::from(block));
        self.writer.finish()?;
        self.shared.flush_log()?;
        Ok(CommitResult::Durable)
    }

    /// Steps 4 and 5.
    fn wait_for_data(&self, work: &Work) -> Result<()> {
        let config = &self.shared.config;
        if !config.has(Bug::OrderedDataNotWaitedFor) {
            Completion::wait_all(&work.wait_for)?;
        }
        let claims = self.shared.log.is_external() && !work.wait_for.is_empty();
        if claims && !config.has(Bug::FsFlushOmitted) {
            self.shared.flush_fs()?;
        }
        Ok(())
    }

    fn push_revokes(&mut self) {
        if self.shared.config.has(Bug::MissingRevoke) {
            return;
        }
        let blocks: Vec<FsBlock> = self.t.revokes.iter().copied().collect();
        for chunk in blocks.chunks(self.layout.revokes_per_block()) {
            let block = revoke::encode(&self.layout, self.t.tid, chunk);
            self.charge(1, block.len());
            self.push(Bytes::from(block));
        }
    }

    fn push_images(&mut self) {
        let mut left = self.t.writes.iter();
        let sums = ImageSums::new(self.layout, self.t.tid);
        loop {
            let group: Vec<_> = left.by_ref().take(self.layout.tags_per_descriptor()).collect();
            if group.is_empty() {
                return;
            }
            let mut tags = Vec::with_capacity(group.len());
            let mut images = Vec::with_capacity(group.len());
            for (block, image) in group {
                let (tag, image) = tag_of(&sums, *block, image);
                tags.push(tag);
                images.push(image);
            }
            let head = descriptor::encode(&self.layout, self.t.tid, &self.shared.uuid, &tags);
            self.push_summed(Bytes::from(head));
            images.into_iter().for_each(|image| self.push_summed(image));
        }
    }

    /// Pushes a block that checksum v1 covers.
    fn push_summed(&mut self, block: Bytes) {
        if self.layout.checksums == Checksums::V1 {
            self.v1_sum = crc32_be(self.v1_sum, &block);
        }
        self.charge(1, block.len());
        self.push(block);
    }

    fn push(&mut self, block: Bytes) {
        let (offset, _) = self.shared.log.place(LogBlock(self.next), 1);
        self.writer.push(offset, block);
        self.next += 1;
        let late = u32::from(self.shared.config.has(Bug::LogWrapsLate));
        if self.next == self.shared.log_end.0 {
            self.next = self.shared.log_first.0 + late;
        }
    }

    fn commit_block(&mut self) -> Vec<u8> {
        let unix_ns = unix_ns(self.shared.config.simulated_epoch_ns);
        commit_block::encode(&self.layout, self.t.tid, unix_ns, self.v1_sum)
    }

    fn charge(&mut self, blocks: u32, bytes: usize) {
        let summed = if self.layout.checksums == Checksums::None { 0 } else { bytes };
        self.writer.charge(self.shared.config.cpu_cost(blocks, summed));
    }
}

/// The tag of a block, and the block as it goes to the log.
pub(crate) fn tag_of(sums: &ImageSums, block: FsBlock, image: &Bytes) -> (Tag, Bytes) {
    let mut image = image.clone();
    let mut flags = 0;
    if image[..4] == MAGIC.to_be_bytes() {
        // Recovery must not take it for a control block of the log.
        let mut escaped = image.to_vec();
        escaped[..4].fill(0);
        (image, flags) = (Bytes::from(escaped), ESCAPE);
    }
    let checksum = sums.of(&image);
    (Tag { block, flags, checksum }, image)
}
