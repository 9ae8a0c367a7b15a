//! The state of the journal in memory: the transactions, the newest image of each block, and the
//! log space in use.
//!
//! # Invariants
//!
//! 1. Transactions in the log have consecutive numbers: `checkpoint_list` (oldest first), then
//!    `committing`, then the running one. Recovery depends on it.
//! 2. `newest[b]` is the image of `b` in the *youngest committed* transaction that logged it, as
//!    long as that image is not home and no younger committed transaction has revoked `b`.
//!    `CommittedTransaction::live` counts a transaction's entries in `newest`. A transaction whose
//!    `live` is 0, with none older before it, is not needed in the log any more.
//! 3. `used` counts the blocks from the tail *on disk* to `head`, and `used` plus what the running
//!    transaction needs never exceeds the log. So a commit always has space; only updates that join
//!    wait for space.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::images::{Images, Newest};
use crate::ondisk::layout::Layout;
use crate::ondisk::superblock::JournalSuperblock;
use crate::transaction::{CommittedTransaction, CommittingTransaction, RunningTransaction};
use crate::{FsBlock, JournalError, JournalStats, LogBlock, Tid};

/// See the module's text. Guarded by the journal's state lock, which is never held across a
/// wait for a device.
#[derive(Default)]
pub(crate) struct State {
    pub layout: Layout,
    first: LogBlock,
    end: LogBlock,
    /// Where the next transaction to commit will begin.
    pub head: LogBlock,
    pub used: u32,
    /// Number of the running transaction, whether anything has joined it or not.
    pub running_tid: Tid,
    pub running: Option<RunningTransaction>,
    /// A task waits because the running transaction is full.
    pub running_full: bool,
    pub committing: Option<Arc<CommittingTransaction>>,
    /// A commit is in progress: no other may begin.
    pub commit_busy: bool,
    pub checkpoint_list: VecDeque<CommittedTransaction>,
    pub newest: Images,
    /// The commit task has set a timer, early enough for a transaction that begins now.
    pub commit_timer: bool,
    /// Transactions up to this one are durable.
    pub committed_tid: Tid,
    /// A commit of transactions up to this one is requested (jbd2: `j_commit_request`).
    pub commit_request: Tid,
    /// Transactions before this one have been checkpointed, and the superblock says so.
    pub tail_tid: Tid,
    /// A checkpoint of transactions up to this one is requested.
    pub checkpoint_request: Option<Tid>,
    /// Tasks that wait for log space.
    pub space_waiters: usize,
    /// Blocks whose images are being written home right now, ascending.
    pub home_in_flight: Vec<FsBlock>,
    /// The newest transaction that has one of these images.
    pub home_newest: Tid,
    /// How many of these images `newest` has lost meanwhile: in memory until they are written.
    pub home_replaced: usize,
    /// The superblock on disk says that the log is clean.
    pub marked_empty: bool,
    pub aborted: Option<JournalError>,
    /// No more updates: the journal is being closed.
    pub closing: bool,
    /// The tasks end at the next opportunity.
    pub stopping: bool,
    pub average_commit: Duration,
    pub stats: JournalStats,
}

impl State {
    /// Refuses what nothing comes of any more.
    pub(crate) fn check_alive(&self) -> crate::Result<()> {
        match &self.aborted {
            Some(e) => Err(e.clone()),
            None if self.stopping => Err(JournalError::refused("the journal is closed")),
            None => Ok(()),
        }
    }

    /// The state of a clean log.
    pub(crate) fn new(sb: &JournalSuperblock) -> Self {
        let running_tid = sb.sequence().plus(1);
        let before = sb.sequence();
        State {
            layout: Layout::of(sb),
            first: sb.first(),
            end: sb.end(),
            head: sb.first(),
            running_tid,
            committed_tid: before,
            commit_request: before,
            tail_tid: running_tid,
            home_newest: before,
            marked_empty: true,
            ..State::default()
        }
    }

    /// Blocks that transactions can use.
    pub(crate) fn capacity(&self) -> u32 {
        self.end.0 - self.first.0
    }

    /// Most log blocks of one transaction: a quarter of the log, as the kernel.
    pub(crate) fn max_transaction(&self) -> u32 {
        self.capacity() / 4
    }

    /// The log block `n` after `at`, going round.
    fn advance(&self, at: LogBlock, n: u32) -> LogBlock {
        let ahead = at.0 - self.first.0 + n;
        LogBlock(self.first.0 + ahead % self.capacity())
    }

    /// Closes the running transaction and gives it its place in the log. `log_revokes`: its revokes
    /// are logged.
    pub(crate) fn close_running(
        &mut self,
        log_revokes: bool,
    ) -> Option<(Arc<CommittingTransaction>, RunningTransaction)> {
        let mut running = self.running.take()?;
        let revokes = if log_revokes { running.revokes.len() } else { 0 };
        let log_blocks = self.layout.log_blocks(running.writes.len(), revokes) as u32;
        let committing = Arc::new(CommittingTransaction {
            tid: self.running_tid,
            log_start: self.head,
            log_blocks,
            writes: std::mem::take(&mut running.writes),
            revokes: std::mem::take(&mut running.revokes),
        });
        self.head = self.advance(self.head, log_blocks);
        self.used += log_blocks;
        self.running_tid = self.running_tid.plus(1);
        self.running_full = false;
        self.committing = Some(Arc::clone(&committing));
        Some((committing, running))
    }

    /// Adds a committed transaction to the checkpoint list (jbd2: `j_checkpoint_transactions`): its
    /// images become the newest, images that it revokes are removed.
    pub(crate) fn add_to_checkpoint_list(&mut self, t: &CommittingTransaction) {
        let blocks: Vec<FsBlock> = t.writes.keys().copied().collect();
        self.checkpoint_list.push_back(CommittedTransaction {
            tid: t.tid,
            log_start: t.log_start,
            log_blocks: t.log_blocks,
            live: blocks.len(),
            blocks,
        });
        for (block, image) in &t.writes {
            let entry = Newest { tid: t.tid, image: image.clone() };
            if let Some(older) = self.newest.insert(*block, entry) {
                self.replace_image(*block, older.tid);
            }
        }
        for block in &t.revokes {
            if let Some(older) = self.newest.remove(*block) {
                self.replace_image(*block, older.tid);
            }
        }
        self.committing = None;
    }

    /// An image was written to its home location: the log no longer needs it, unless there is a
    /// newer one.
    pub(crate) fn mark_checkpointed(&mut self, block: FsBlock, tid: Tid) {
        if self.newest.remove_if(block, |n| n.tid == tid).is_some() {
            self.drop_live_image(tid);
        }
    }

    /// A younger transaction has another image of the block, or has revoked it.
    fn replace_image(&mut self, block: FsBlock, older: Tid) {
        self.drop_live_image(older);
        let chosen = self.home_newest.is_at_least(older);
        if chosen && self.home_in_flight.binary_search(&block).is_ok() {
            self.home_replaced += 1;
        }
    }

    /// A checkpoint round begins to write the images of these blocks, ascending, of transactions
    /// up to `newest`.
    pub(crate) fn begin_home_writes(&mut self, blocks: Vec<FsBlock>, newest: Tid) {
        (self.home_in_flight, self.home_newest, self.home_replaced) = (blocks, newest, 0);
    }

    /// They have been written, or have failed: nothing holds them any more.
    pub(crate) fn end_home_writes(&mut self) {
        (self.home_in_flight, self.home_replaced) = (Vec::new(), 0);
    }

    fn drop_live_image(&mut self, tid: Tid) {
        // OK to unwrap: a transaction leaves `checkpoint_list` only when it has no live images.
        let oldest = self.checkpoint_list.front().unwrap().tid;
        let t = &mut self.checkpoint_list[tid.distance_from(oldest) as usize];
        debug_assert_eq!(t.tid, tid);
        t.live -= 1;
    }

    /// Removes the oldest transactions without live images from the list; returns the log blocks
    /// that they hold.
    pub(crate) fn drop_finished(&mut self) -> u32 {
        let mut freed = 0;
        while self.checkpoint_list.front().is_some_and(|t| t.live == 0) {
            // OK to unwrap: the condition has just looked at it.
            freed += self.checkpoint_list.pop_front().unwrap().log_blocks;
        }
        freed
    }

    /// The oldest transaction that the log must keep, or the next one to come: where it begins.
    pub(crate) fn tail(&self) -> (LogBlock, Tid) {
        if let Some(t) = self.checkpoint_list.front() {
            return (t.log_start, t.tid);
        }
        match &self.committing {
            Some(t) => (t.log_start, t.tid),
            None => (self.head, self.running_tid),
        }
    }

    /// The tail of [`Bug::TailOneTooFar`](crate::planted::Bug::TailOneTooFar).
    pub(crate) fn tail_after_oldest(&self) -> (LogBlock, Tid) {
        match (self.checkpoint_list.get(1), self.checkpoint_list.is_empty()) {
            (Some(second), _) => (second.log_start, second.tid),
            (None, false) => match &self.committing {
                Some(t) => (t.log_start, t.tid),
                None => (self.head, self.running_tid),
            },
            (None, true) => self.tail(),
        }
    }

    /// The newest image of a block that is not at its home location.
    pub(crate) fn image(&self, block: FsBlock) -> Option<Bytes> {
        if let Some(running) = &self.running {
            if let Some(image) = running.writes.get(&block) {
                return Some(image.clone());
            }
            if running.revokes.contains(&block) {
                return None;
            }
        }
        if let Some(t) = &self.committing {
            if let Some(image) = t.writes.get(&block) {
                return Some(image.clone());
            }
            if t.revokes.contains(&block) {
                return None;
            }
        }
        self.newest.get(block).map(|n| n.image.clone())
    }

    /// Block images in memory that are not checkpointed; an image in several transactions counts
    /// once for each.
    pub(crate) fn images(&self) -> usize {
        self.running.as_ref().map_or(0, |r| r.writes.len()) + self.images_to_checkpoint()
    }

    /// Those of them that commits and checkpoints will write without a request.
    pub(crate) fn images_to_checkpoint(&self) -> usize {
        self.committing.as_ref().map_or(0, |c| c.writes.len())
            + self.newest.len()
            + self.home_replaced
    }

    /// Whether the log has room for a running transaction of this size.
    pub(crate) fn has_room(&self, log_blocks: usize) -> bool {
        self.used as usize + log_blocks < self.capacity() as usize
    }

    pub(crate) fn request_commit(&mut self, tid: Tid) {
        if tid.is_after(self.commit_request) {
            self.commit_request = tid;
        }
    }

    /// Nothing is running, committing or waiting to be checkpointed.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_none() && self.committing.is_none() && self.checkpoint_list.is_empty()
    }
}
