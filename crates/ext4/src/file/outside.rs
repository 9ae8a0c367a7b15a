//! Data that is not in the log: who has to flush the device for it.
//!
//! A write of file data that has completed may still be in the device's cache. Who promises that
//! data needs a flush that began after the write had completed; any will do, that of a commit or of
//! somebody else's fsync (see [`Flushes`](steadfast_journal::Flushes)). So each such write notes,
//! when it completes, the number of the first flush that covers it: with its inode, and with the
//! volume for those who promise everything.
//!
//! What goes through the log is not noted. A checkpoint flushes the device before the log gives
//! up what it has written home, so whatever only the log promises, data=journal's data and all
//! names and attributes, needs no flush of the file system's device at all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use steadfast_block::{Completion, Payload, Request};

use crate::meta::{MetaLog, Parts, Txn};
use crate::state::Inode;

impl Parts {
    /// Starts a write of an inode's data to its place on the device.
    pub(super) fn submit_data(&self, inode: &Inode, offset: u64, data: Payload) -> Completion {
        let write = self.volume.device.submit(Request::Write { offset, data, fua: false });
        if let MetaLog::Journal(journal) = &self.log {
            let flushes = Arc::clone(journal.flushes());
            let (inode, all) = (Arc::clone(&inode.outside), Arc::clone(&self.outside));
            write.on_done(move |_| {
                let number = flushes.next();
                inode.fetch_max(number, Ordering::SeqCst);
                all.fetch_max(number, Ordering::SeqCst);
            });
        }
        write
    }
}

/// What `txn` changes is right only with the data that has been written to the inode's places: with
/// a log on another device the commit flushes the file system's device before it ends (jbd2's
/// `t_need_data_flush`). On the same device its one flush comes first anyway.
pub(super) fn commit_after_data(log: &MetaLog, txn: &mut Txn<'_>, inode: &Inode) {
    if let MetaLog::Journal(journal) = log
        && !journal.flushes().covers(inode.outside.load(Ordering::SeqCst))
    {
        txn.wait_for(Completion::ready(Ok(Bytes::new())));
    }
}
