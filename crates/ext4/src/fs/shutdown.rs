//! Going down at once, for tests of crashes: the disk stays as a power cut would leave it.

use steadfast_vfs::{Result, Shutdown};

use crate::file::sync_all;
use crate::meta::MetaLog;
use crate::mounted::Ext4;

impl Ext4 {
    /// Goes down. From then on every operation fails with EIO, and nothing is written any more
    /// but what is on its way to the device already.
    pub(super) fn go_down(&self, how: Shutdown) -> Result<()> {
        let written = match how {
            // Without its data the transaction must not be committed.
            Shutdown::Flush | Shutdown::FlushJournal if self.parts.transacts() => self.make_point(),
            Shutdown::Flush => self.run(|| sync_all(self)),
            Shutdown::FlushJournal => {
                self.run(|| self.parts.log.commit(self.parts.log.running_tid()))
            }
            Shutdown::Now => Ok(()),
        };
        self.volume.status.set_down();
        if let MetaLog::Journal(journal) = &self.parts.log {
            journal.abandon();
        }
        // Its writes fail at once now; what is in flight arrives.
        self.pages.shutdown();
        written
    }
}
