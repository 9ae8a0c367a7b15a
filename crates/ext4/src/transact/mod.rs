//! data=transact: data and metadata become durable together, at transaction points.
//!
//! # What holds
//!
//! 1. The journal's running transaction is open from one point to the next; nothing but a point
//!    ends it: no timer of the journal, no full log, no fsync of its own.
//! 2. Every operation joins it whole. Operations hold the *gate* shared while they change things;
//!    a point holds it exclusively while it writes out the page cache (which finds places for the
//!    data and puts the mapping into the transaction) and ends the transaction. It waits for the
//!    commit after it has let go of the gate.
//! 3. No block that the last point holds is overwritten ([`crate::file`], `out_of_place`), and none
//!    that the transaction frees is used again before it has committed.
//! 4. Data that the transaction's mapping shows is on the device before its commit block is.
//!
//! So a power cut leaves exactly the last point, and it leaves it to anybody who can replay a
//! journal: on disk it is ext4 like any other.
//!
//! # Failures are final
//!
//! A write-back that fails has lost data that its program believes written: a later point would
//! be a state that never was. Every later point fails with the first error; a
//! [rollback](Ext4::roll_back) ends that, if the journal itself is well.

mod group;
mod point;
mod rollback;
mod run;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use steadfast_ext4_format::Result;
use steadfast_vfs::FsError;

use crate::mounted::Ext4;
use crate::state::{LastPoint, SincePoint, Transact};

impl Ext4 {
    pub(crate) fn transacting(&self) -> steadfast_vfs::Result<&Transact> {
        self.transact.as_ref().ok_or_else(|| FsError::Unsupported {
            what: "transaction points: mount with data=transact".into(),
        })
    }

    /// The end of a mount: what it has changed itself is a point, the first to go back to.
    pub(crate) fn start_transacting(self: &Arc<Self>) -> Result<()> {
        let Some(transact) = &self.transact else { return Ok(()) };
        self.make_point()?;
        self.note_point_of_mount(transact);
        let fs = Arc::downgrade(self);
        transact.timer.start(move || {
            let Some(fs) = fs.upgrade() else { return false };
            // A failure is reported by the next point that somebody asks for. During a group there
            // is none: the group's end is one.
            let _ = fs.make_point();
            true
        });
        Ok(())
    }

    /// How often the file system has gone back to a transaction point: what was read before the
    /// last time may no longer be so.
    pub fn rollbacks(&self) -> u64 {
        self.transact.as_ref().map_or(0, |t| t.rollbacks.load(Ordering::Acquire))
    }

    /// The last transaction point; `None` without data=transact.
    pub fn last_point(&self) -> Option<LastPoint> {
        self.transact.as_ref().and_then(|transact| transact.state().last)
    }

    /// What came after the last transaction point; `None` without data=transact, or when there is
    /// no journal to go back in.
    pub fn since_point(&self) -> Option<SincePoint> {
        self.transact.as_ref()?;
        let journal = self.journal()?;
        let block = self.volume.block_size();
        let placed = self.parts.allocator.fresh.as_ref().map_or(0, |fresh| fresh.len());
        let waiting = self.parts.allocator.counts().promised();
        Some(SincePoint {
            data_bytes: (placed + waiting) * block,
            metadata_bytes: u64::from(journal.running_blocks().0) * block,
        })
    }

    /// What the unmount has discarded, because the mask said so or the last point failed; `None`
    /// if nothing was.
    pub fn discarded(&self) -> Option<SincePoint> {
        self.transact.as_ref().and_then(|transact| transact.state().discarded)
    }

    /// Something may have changed: the time to the next point runs.
    pub(crate) fn note_change(&self) {
        if let Some(transact) = &self.transact
            && transact.timer.listens()
            && self.journal().is_some_and(|journal| self.is_changed(journal))
        {
            transact.timer.note();
        }
    }
}
