//! Reports of what goes wrong in the background, and of what is lost.

use std::sync::Arc;

use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_pagecache::{FailedPages, PAGE};

use crate::meta::MetaLog;
use crate::mounted::Ext4;
use crate::state::{UnwrittenPart, WriteError};

impl Ext4 {
    /// Reports to `listener` everything that goes wrong where nobody waits for an answer. It may
    /// be called from any thread, with locks of the file system held: it must not call the file
    /// system, but for [`path_of`](Self::path_of). Only the first listener is heard.
    pub fn on_trouble(&self, listener: impl Fn(&WriteError<'_>) + Send + Sync + 'static) {
        let listener = Arc::new(listener);
        self.volume.status.listen(listener.clone());
        if let MetaLog::Journal(journal) = &self.parts.log {
            // The cause may come here by both ways, and is reported once.
            let status = Arc::clone(&self.volume.status);
            journal.on_abort(move |cause| status.notify_read_only(&cause.to_string()));
        }
    }

    /// Data that is not on the device as it was written: what is lost if the mount ends now. Up to
    /// `most` parts of files.
    pub fn unwritten(&self, most: usize) -> Vec<UnwrittenPart> {
        self.pages.failed_pages(most).iter().map(|pages| self.part(pages)).collect()
    }

    /// Files whose data may be on the device, and whose last transaction is lost with the journal:
    /// of those that are in memory. Nothing while the journal works.
    pub fn lost_with_journal(&self) -> Vec<InodeNo> {
        let MetaLog::Journal(journal) = &self.parts.log else { return Vec::new() };
        if journal.aborted().is_none() {
            return Vec::new();
        }
        let committed = journal.committed_tid();
        let mut lost = self.parts.inodes.with_data_in(|tid| !committed.is_at_least(tid));
        lost.retain(|no| !self.volume.layout.is_reserved(*no));
        lost
    }

    /// Where a file is, by the names that were used lately; `None` if they do not lead to it.
    pub fn path_of(&self, inode: InodeNo) -> Option<Vec<u8>> {
        self.parts.names.path_of(inode)
    }

    /// The bytes of pages, up to the end of the file.
    pub(crate) fn part(&self, pages: &FailedPages) -> UnwrittenPart {
        // OK to cast: the page cache knows files by the numbers that we have given.
        let inode = InodeNo(pages.file.0 as u32);
        let (from, to) = (pages.pages.start * PAGE as u64, pages.pages.end * PAGE as u64);
        let size = self.parts.inodes.get(inode).map(|inode| inode.state().size_written());
        let to = size.filter(|size| *size > from).map_or(to, |size| size.min(to));
        UnwrittenPart { inode, bytes: from..to, kept: pages.retry }
    }
}
