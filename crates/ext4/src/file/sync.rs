//! Making things durable.

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_block::BlockError;
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_journal::Tid;
use steadfast_journal::{Journal, JournalError};
use steadfast_runtime::cpu;

use crate::meta::MetaLog;
use crate::mounted::{Ext4, key};
use crate::planted::Bug;
use crate::state::{Inode, OpenFile};

/// Simulated processor time from the end of a commit until who waited for it runs again: the
/// commit task wakes it, the scheduler switches to it. The commit task itself goes on at once.
const WAKE_UP: Duration = Duration::from_micros(5);

impl Ext4 {
    /// Makes a file durable: its data in `range` (all without one), then the transaction that
    /// last changed the inode or, `data_only`, the last one that the data cannot be read back
    /// without.
    pub(crate) fn sync_file(
        &self,
        file: &OpenFile,
        range: Option<Range<u64>>,
        data_only: bool,
    ) -> Result<()> {
        let inode = &*file.inode;
        if self.is_dax(inode) {
            return self.sync_dax(inode, data_only);
        }
        let range = range.unwrap_or(0..u64::MAX);
        let written = self.pages.flush_range(key(inode.no), range.clone());
        {
            let mut told = file.errors.lock().unwrap_or_else(PoisonError::into_inner);
            self.pages.error_since(key(inode.no), &mut told)?;
        }
        written?;
        self.pages.check_lost(key(inode.no), &range)?;
        let tid = {
            let state = inode.state();
            if data_only { state.datasync_tid } else { state.sync_tid }
        };
        self.make_durable(tid, inode.outside.load(Ordering::SeqCst))
    }

    /// The same for a file that is used in place: nothing of it is in the page cache, and what was
    /// stored needs a fence.
    fn sync_dax(&self, inode: &Inode, data_only: bool) -> Result<()> {
        if !matches!(self.volume.log, MetaLog::Journal(_)) {
            // Nobody counts the flushes.
            self.fence()?;
        }
        let tid = {
            let state = inode.state();
            if data_only { state.datasync_tid } else { state.sync_tid }
        };
        self.make_durable(tid, inode.outside.load(Ordering::SeqCst))
    }

    /// Commits the transaction if it has not been, and flushes the file system's device if flush
    /// `outside` has not been made, by the commit or anybody else: data that is not in the log and
    /// has been written may still be in the device's cache (see `outside`). Of what is all in the
    /// log, `outside` is 0.
    pub(crate) fn make_durable(&self, tid: Tid, outside: u64) -> Result<()> {
        let MetaLog::Journal(journal) = &self.volume.log else {
            return self.volume.log.commit(tid);
        };
        if let Some(e) = journal.aborted() {
            return Err(e.into());
        }
        if journal.is_durable(tid) {
            return self.flush_outside(journal, outside);
        }
        if tid == journal.running_tid()
            && !journal.committed_tid().is_at_least(tid)
            && self.fast_commit(journal, tid)?
        {
            return self.flush_outside(journal, outside);
        }
        let waits = !journal.committed_tid().is_at_least(tid);
        journal.commit(tid)?;
        if waits {
            cpu(WAKE_UP);
        }
        self.flush_outside(journal, outside)
    }

    /// Makes sure that flush `outside` of the file system's device has been made. A failure is
    /// final.
    fn flush_outside(&self, journal: &Journal, outside: u64) -> Result<()> {
        if journal.flushes().covers(outside) {
            return Ok(());
        }
        journal.flushes().flush().map_err(|e| self.flush_failed(e))
    }

    /// Makes what this thread has stored in the device's memory durable, and nothing else. A
    /// failure is final.
    pub(super) fn fence(&self) -> Result<()> {
        self.memory()?.fence().map_err(|e| self.flush_failed(e))
    }

    /// Nobody knows what of all that was written before is durable.
    fn flush_failed(&self, e: BlockError) -> Ext4Error {
        self.volume.status.set_read_only(format!("flushing the file system's device failed: {e}"));
        if let MetaLog::Journal(journal) = &self.volume.log {
            journal.abort(&JournalError::Block(e.clone()));
        }
        Ext4Error::Block(e)
    }

    /// Makes everything durable.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let written = self.pages.flush_all();
        // Without a journal the commit writes everything to its place, and flushes.
        self.volume.log.commit(self.volume.log.running_tid())?;
        if let MetaLog::Journal(journal) = &self.volume.log
            && !self.volume.has(Bug::SyncWithoutFlush)
        {
            self.flush_outside(journal, self.volume.outside.load(Ordering::SeqCst))?;
        }
        Ok(written?)
    }
}
