//! The checkpoint task: committed images are written to their home locations, and their log space
//! is freed.
//!
//! # A round
//!
//! 1. The oldest transactions of the checkpoint list are chosen; of their images those that are
//!    newest among *committed* ones (`State::newest`). The
//!    [`CheckpointHook`](crate::CheckpointHook) is called. Sorted by block, they are written in
//!    large requests, several in flight.
//! 2. If anything was written: the file system's device is flushed.
//! 3. Written images leave `newest`; transactions without live images leave the checkpoint list.
//! 4. The superblock is written with the new tail, durably.
//! 5. Only now their log space is free.
//!
//! # Why this loses nothing
//!
//! *Never an uncommitted image.* `newest` is filled in `State::add_to_checkpoint_list`, after the
//! commit block is durable. If an uncommitted image were written home, a crash would leave half an
//! update.
//!
//! *A transaction leaves the log only when recovery does not need it.* Each of its images is (a)
//! home and flushed (steps 1 and 2 come before 3), or (b) replaced by an image in a younger
//! committed transaction, which is in the log until (a) to (c) hold for it, or (c) revoked by a
//! younger committed transaction. For (c): the log begins at the tail, so a revoked image leaves
//! the log before its revoke record.
//!
//! *A freed block is not overwritten after its reuse.* Transaction 1 logs block b, transaction 2
//! frees (revokes) it, then b holds file data written in place. The danger is that transaction 1's
//! image is written home, or replayed, over that data.
//!   * Before 2 has committed, b is not reused (the contract of `Update::revokes`). A home write of
//!     1's image is then harmless, and correct if the power fails before 2's commit.
//!   * When 2 has committed, `add_to_checkpoint_list` removes 1's image from `newest`: no later
//!     round writes it. The commit waits for a round that is writing it, before `on_commit`
//!     releases b: see `commit::finish`. The device applies the new data after the completed home
//!     write.
//!   * After a crash, recovery finds 2's revoke, as long as 1's image is in the log.
//!
//! *Rounds do not overlap*, so an older image never lands on top of a newer one.
//!
//! *No flush in step 2 when nothing was written*: then every image was case (b) or (c).

use std::sync::Arc;

use bytes::Bytes;

use crate::planted::Bug;
use crate::shared::JournalCore;
use crate::state::State;
use crate::writer::Writer;
use crate::{FsBlock, Result, Tid};

/// The body of the task.
pub(crate) fn run(shared: &Arc<JournalCore>) {
    while let Some(mut batch) = next(shared) {
        let written = write_home(shared, &mut batch);
        // In any case: a commit may be waiting for the writes of exactly these blocks.
        let mut st = shared.state.lock();
        st.end_home_writes();
        shared.note_images(&st);
        drop(st);
        shared.progress.notify_all();
        let released = written.and_then(|()| release(shared, &batch));
        if let Err(e) = released.and_then(|()| flush_late(shared)) {
            return shared.abort(&e);
        }
    }
}

/// Images to write home, ascending by block, and the transaction that each is from.
struct CheckpointBatch {
    images: Vec<(FsBlock, Bytes)>,
    tids: Vec<Tid>,
    /// The newest of the transactions that were chosen.
    newest: Tid,
}

/// Waits until there is something to do; `None` when the task ends.
fn next(shared: &JournalCore) -> Option<CheckpointBatch> {
    let mut st = shared.state.lock();
    loop {
        if st.stopping || st.aborted.is_some() {
            return None;
        }
        if wanted(shared, &st) {
            break;
        }
        st = shared.checkpoint_work.wait(st);
    }
    let mut chosen = Vec::new();
    let mut newest = st.tail_tid;
    for t in st.checkpoint_list.iter().take(how_many(shared, &st)) {
        newest = t.tid;
        for block in &t.blocks {
            if let Some(n) = st.newest.get(*block)
                && n.tid == t.tid
            {
                chosen.push((*block, t.tid, n.image.clone()));
            }
        }
    }
    // Mostly runs that are in order already, those of the transactions: a sort that sees them.
    chosen.sort_by_key(|(block, ..)| *block);
    let blocks = chosen.iter().map(|(block, ..)| *block).collect();
    st.begin_home_writes(blocks, newest);
    let tids = chosen.iter().map(|(_, tid, _)| *tid).collect();
    let images = chosen.into_iter().map(|(block, _, image)| (block, image)).collect();
    Some(CheckpointBatch { images, tids, newest })
}

pub(crate) fn wanted(shared: &JournalCore, st: &State) -> bool {
    let Some(oldest) = st.checkpoint_list.front() else { return false };
    let start = f64::from(st.capacity()) * shared.config.checkpoint_start_fraction;
    st.space_waiters > 0
        || f64::from(st.used) > start
        || st.newest.len() > shared.images_max() / 2
        || st.checkpoint_request.is_some_and(|tid| tid.is_at_least(oldest.tid))
}

/// How many of the oldest transactions a round takes.
fn how_many(shared: &JournalCore, st: &State) -> usize {
    let stop = f64::from(st.capacity()) * shared.config.checkpoint_stop_fraction;
    let mut used = st.used;
    let mut n = 0;
    for t in &st.checkpoint_list {
        let asked_for = st.checkpoint_request.is_some_and(|tid| tid.is_at_least(t.tid));
        if n > 0 && f64::from(used) <= stop && !asked_for {
            break;
        }
        used -= t.log_blocks;
        n += 1;
    }
    n
}

/// Steps 1 and 2. No write is in flight on return.
fn write_home(shared: &JournalCore, batch: &mut CheckpointBatch) -> Result<()> {
    if batch.images.is_empty() {
        return Ok(());
    }
    let config = &shared.config;
    if let Some(owner) = &config.before_checkpoint {
        owner.before_checkpoint(batch.newest, &mut batch.images)?;
    }
    let block_size = u64::from(shared.log.block_size());
    let mut writer =
        Writer::new(&*shared.fs, config.max_request_bytes, config.checkpoint_in_flight);
    for (block, image) in &mut batch.images {
        writer.charge(config.cpu_cost(1, 0));
        let newer = match config.has(Bug::UncommittedImageGoesHome) {
            true => shared.state.lock().image(*block),
            false => None,
        };
        writer.push(block.0 * block_size, newer.unwrap_or_else(|| std::mem::take(image)));
    }
    writer.finish()?;
    if !shared.config.has(Bug::TailBeforeFlush) {
        shared.flush_fs()?;
    }
    let mut st = shared.state.lock();
    st.stats.home_blocks += batch.images.len() as u64;
    st.stats.home_writes += writer.requests;
    Ok(())
}

/// What [`Bug::TailBeforeFlush`] does instead of step 2.
fn flush_late(shared: &JournalCore) -> Result<()> {
    if shared.config.has(Bug::TailBeforeFlush) { shared.flush_fs() } else { Ok(()) }
}

/// Steps 3 to 5.
fn release(shared: &JournalCore, batch: &CheckpointBatch) -> Result<()> {
    let mut st = shared.state.lock();
    if st.stopping {
        return Ok(());
    }
    for ((block, _), tid) in batch.images.iter().zip(&batch.tids) {
        st.mark_checkpointed(*block, *tid);
    }
    shared.note_images(&st);
    let freed = st.drop_finished();
    let (start, tid) =
        if shared.config.has(Bug::TailOneTooFar) { st.tail_after_oldest() } else { st.tail() };
    st.stats.checkpoints += 1;
    drop(st);
    if freed > 0 {
        shared.superblock.set_tail(start, tid, true)?;
        let mut st = shared.state.lock();
        st.used -= freed;
        st.tail_tid = tid;
    }
    shared.progress.notify_all();
    Ok(())
}
