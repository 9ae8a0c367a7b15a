//! Making things durable.

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_block::BlockError;
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_journal::{Journal, JournalError, Tid};
use steadfast_runtime::cpu;

use super::in_place::{is_dax, memory};
use crate::fastcommit::fast_commit;
use crate::meta::MetaLog;
use crate::mounted::{Ext4, key};
use crate::planted::Bug;
use crate::state::{Inode, OpenFile};

/// Simulated processor time from the end of a commit until who waited for it runs again: the
/// commit task wakes it, the scheduler switches to it. The commit task itself goes on at once.
const WAKE_UP: Duration = Duration::from_micros(5);

/// Makes a file durable: its data in `range` (all without one), then the transaction that
/// last changed the inode or, `data_only`, the last one that the data cannot be read back
/// without.
pub(crate) fn sync_file(
    fs: &Ext4,
    file: &OpenFile,
    range: Option<Range<u64>>,
    data_only: bool,
) -> Result<()> {
    let inode = &*file.inode;
    if is_dax(fs, inode) {
        return sync_dax(fs, inode, data_only);
    }
    let range = range.unwrap_or(0..u64::MAX);
    let written = fs.pages.flush_range(key(inode.no), range.clone());
    {
        let mut cursor = file.errors.lock().unwrap_or_else(PoisonError::into_inner);
        fs.pages.error_since(key(inode.no), &mut cursor)?;
    }
    written?;
    fs.pages.check_lost(key(inode.no), &range)?;
    commit_inode(fs, inode, data_only)
}

/// The same for a file that is used in place: nothing of it is in the page cache, and what was
/// stored needs a fence.
fn sync_dax(fs: &Ext4, inode: &Inode, data_only: bool) -> Result<()> {
    if !matches!(fs.parts.log, MetaLog::Journal(_)) {
        // Nobody counts the flushes.
        fence(fs)?;
    }
    commit_inode(fs, inode, data_only)
}

fn commit_inode(fs: &Ext4, inode: &Inode, data_only: bool) -> Result<()> {
    let tid = {
        let state = inode.state();
        if data_only { state.datasync_tid } else { state.sync_tid }
    };
    make_durable(fs, tid, inode.outside.load(Ordering::SeqCst))
}

/// Commits the transaction if it has not been, and flushes the file system's device if flush
/// `outside` has not been made, by the commit or anybody else: data that is not in the log and
/// has been written may still be in the device's cache (see `outside`). Of what is all in the
/// log, `outside` is 0.
pub(crate) fn make_durable(fs: &Ext4, tid: Tid, outside: u64) -> Result<()> {
    let MetaLog::Journal(journal) = &fs.parts.log else {
        return fs.parts.log.commit(tid);
    };
    if let Some(e) = journal.aborted() {
        return Err(e.into());
    }
    if journal.is_durable(tid) {
        return flush_outside(fs, journal, outside);
    }
    if tid == journal.running_tid()
        && !journal.committed_tid().is_at_least(tid)
        && fast_commit(fs, journal, tid)?
    {
        return flush_outside(fs, journal, outside);
    }
    let waits = !journal.committed_tid().is_at_least(tid);
    journal.commit(tid)?;
    if waits {
        cpu(WAKE_UP);
    }
    flush_outside(fs, journal, outside)
}

/// Makes sure that flush `outside` of the file system's device has been made. A failure is
/// final.
fn flush_outside(fs: &Ext4, journal: &Journal, outside: u64) -> Result<()> {
    if journal.flushes().covers(outside) {
        return Ok(());
    }
    journal.flushes().flush().map_err(|e| flush_failed(fs, e))
}

/// Makes what this thread has stored in the device's memory durable, and nothing else. A
/// failure is final.
pub(crate) fn fence(fs: &Ext4) -> Result<()> {
    memory(fs)?.fence().map_err(|e| flush_failed(fs, e))
}

/// Nobody knows what of all that was written before is durable.
fn flush_failed(fs: &Ext4, e: BlockError) -> Ext4Error {
    fs.volume.status.set_read_only(format!("flushing the file system's device failed: {e}"));
    if let MetaLog::Journal(journal) = &fs.parts.log {
        journal.abort(&JournalError::Block(e.clone()));
    }
    Ext4Error::Block(e)
}

/// Makes everything durable.
pub(crate) fn sync_all(fs: &Ext4) -> Result<()> {
    let written = fs.pages.flush_all();
    // Without a journal the commit writes everything to its place, and flushes.
    fs.parts.log.commit(fs.parts.log.running_tid())?;
    if let MetaLog::Journal(journal) = &fs.parts.log
        && !fs.volume.has(Bug::SyncWithoutFlush)
    {
        flush_outside(fs, journal, fs.parts.outside.load(Ordering::SeqCst))?;
    }
    Ok(written?)
}
