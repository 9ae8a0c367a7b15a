//! Making things durable.

use std::ops::Range;
use std::sync::PoisonError;
use std::time::Duration;

use steadfast_journal::JournalError;
use steadfast_runtime::cpu;

use crate::error::{Ext4Error, Result};
use crate::fs::{Ext4, OpenFile, key};
use crate::meta::{MetaLog, Tid};

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
        let written = self.pages.flush_range(key(inode.no), range.unwrap_or(0..u64::MAX));
        {
            let mut told = file.errors.lock().unwrap_or_else(PoisonError::into_inner);
            self.pages.error_since(key(inode.no), &mut told)?;
        }
        written?;
        let tid = {
            let state = inode.state();
            if data_only { state.datasync_tid } else { state.sync_tid }
        };
        self.make_durable(tid)
    }

    /// Commits the transaction if it has not been. The file system's device is flushed on the
    /// way, or here if the commit does not do it: a data write that has completed may still be
    /// in the device's cache.
    pub(crate) fn make_durable(&self, tid: Tid) -> Result<()> {
        let MetaLog::Journal(journal) = &self.volume.log else {
            return self.volume.log.commit(tid);
        };
        if let Some(e) = journal.aborted() {
            return Err(e.into());
        }
        if tid == journal.running_tid()
            && !journal.committed_tid().is_at_least(tid)
            && self.fast_commit(journal, tid)?
        {
            return Ok(());
        }
        // A commit that begins from here on flushes the device that its own log is on; of one
        // that has begun it is not known whether the flush is still to come.
        let begins_later = !journal.log().is_external() && tid == journal.running_tid();
        let waits = !journal.committed_tid().is_at_least(tid);
        journal.commit(tid)?;
        if waits {
            cpu(WAKE_UP);
        }
        if begins_later && journal.committed_tid().is_at_least(tid) {
            return Ok(());
        }
        self.flush_device()
    }

    /// Flushes the file system's device. A failure is final.
    pub(crate) fn flush_device(&self) -> Result<()> {
        let device = &self.volume.device;
        if !device.info().volatile_cache {
            return Ok(());
        }
        device.flush().map_err(|e| {
            let what = format!("flushing the file system's device failed: {e}");
            self.volume.status.set_read_only(what);
            if let MetaLog::Journal(journal) = &self.volume.log {
                journal.abort(&JournalError::Block(e.clone()));
            }
            Ext4Error::Block(e)
        })
    }

    /// Makes everything durable.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let written = self.pages.flush_all();
        self.volume.log.commit(self.volume.log.running_tid())?;
        self.flush_device()?;
        Ok(written?)
    }
}
