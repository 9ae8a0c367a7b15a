//! Updates, and the transactions that they join.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use steadfast_block::Completion;
use steadfast_runtime::Nanos;

use crate::ondisk::layout::Layout;
use crate::{FsBlock, LogBlock, Tid};

/// Called once, with the transaction's number, when the transaction is durable; see
/// [`Update::on_commit`].
pub type OnCommit = Box<dyn FnOnce(Tid) + Send>;

/// One atomic change of the file system: after a crash it is complete or absent.
#[derive(Default)]
pub struct Update {
    /// Whole new contents of blocks, one block size each, never changed afterwards. Of several
    /// for the same block the last counts.
    pub writes: Vec<(FsBlock, Bytes)>,
    /// Blocks that were journaled and are free now: their older images must be neither replayed nor
    /// checkpointed any more. A block that is also in `writes` is a new one: it is written.
    ///
    /// The caller does not reuse such a block, except as another journaled block, before the
    /// transaction has committed (`on_commit`): until then its older image may still be
    /// checkpointed, and after a crash the block still belongs to its former owner.
    pub revokes: Vec<FsBlock>,
    /// Data writes to the file system's device that must be durable before this update is
    /// (data=ordered is exactly this list). An error among them aborts the journal.
    pub wait_for: Vec<Completion>,
    /// Run when the update is durable, before waiters of the commit continue; never run if it does
    /// not become durable. They run on the commit task: they must not wait, call the journal, or
    /// take a lock that the caller holds across [`submit`](crate::Journal::submit).
    pub on_commit: Vec<OnCommit>,
}

impl std::fmt::Debug for Update {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Update")
            .field("writes", &self.writes.iter().map(|(b, _)| b).collect::<Vec<_>>())
            .field("revokes", &self.revokes)
            .field("wait_for", &self.wait_for.len())
            .field("on_commit", &self.on_commit.len())
            .finish()
    }
}

/// The running transaction: what the next commit will hold.
#[derive(Default)]
pub(crate) struct RunningTransaction {
    pub started: Nanos,
    pub writes: BTreeMap<FsBlock, Bytes>,
    /// Never a block that is in `writes`.
    pub revokes: BTreeSet<FsBlock>,
    pub wait_for: Vec<Completion>,
    pub on_commit: Vec<OnCommit>,
}

impl RunningTransaction {
    pub(crate) fn new(started: Nanos) -> Self {
        RunningTransaction { started, ..RunningTransaction::default() }
    }

    pub(crate) fn log_blocks(&self, layout: &Layout) -> u32 {
        layout.log_blocks(self.writes.len(), self.revokes.len()) as u32
    }

    /// Log blocks with an update of this size joined, at most: blocks in both count twice.
    pub(crate) fn log_blocks_with(&self, writes: usize, revokes: usize, layout: &Layout) -> usize {
        layout.log_blocks(self.writes.len() + writes, self.revokes.len() + revokes)
    }

    /// Joins an update: its revokes first, then its writes.
    /// `cancels`: what is written again is not revoked any more.
    pub(crate) fn join(&mut self, update: Update, cancels: bool) {
        for block in update.revokes {
            self.writes.remove(&block);
            self.revokes.insert(block);
        }
        let ascending = update.writes.is_sorted_by(|a, b| a.0 < b.0);
        if ascending && self.writes.is_empty() && self.revokes.is_empty() {
            // All at once.
            self.writes = update.writes.into_iter().collect();
        } else {
            for (block, image) in update.writes {
                if cancels {
                    self.revokes.remove(&block);
                }
                self.writes.insert(block, image);
            }
        }
        self.wait_for.extend(update.wait_for);
        self.on_commit.extend(update.on_commit);
    }
}

/// A transaction that is being written to the log: nothing joins it any more.
pub(crate) struct CommittingTransaction {
    pub tid: Tid,
    pub log_start: LogBlock,
    pub log_blocks: u32,
    pub writes: BTreeMap<FsBlock, Bytes>,
    pub revokes: BTreeSet<FsBlock>,
}

/// A committed transaction whose log space is still needed.
pub(crate) struct CommittedTransaction {
    pub tid: Tid,
    pub log_start: LogBlock,
    pub log_blocks: u32,
    /// Blocks it logged, ascending.
    pub blocks: Vec<FsBlock>,
    /// How many of them are newest here and not yet home.
    pub live: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_of_write_and_revoke_counts() {
        let (a, b) = (FsBlock(1), FsBlock(2));
        let image = |n: u8| Bytes::from(vec![n; 4]);
        let mut t = RunningTransaction::new(Nanos::ZERO);
        t.join(Update { writes: vec![(a, image(1)), (b, image(1))], ..Update::default() }, true);
        t.join(Update { revokes: vec![a], ..Update::default() }, true);
        assert_eq!((t.writes.len(), t.revokes.len()), (1, 1));
        t.join(Update { writes: vec![(a, image(2)), (a, image(3))], ..Update::default() }, true);
        assert_eq!((t.writes[&a].clone(), t.revokes.len()), (image(3), 0));
        let both = Update { writes: vec![(b, image(9))], revokes: vec![b], ..Update::default() };
        t.join(both, true);
        assert_eq!((t.writes[&b].clone(), t.revokes.len()), (image(9), 0));
    }
}
