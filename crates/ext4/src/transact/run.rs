//! Operations between points.

use std::sync::atomic::Ordering;

use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::{FsError, TransactMask};

use crate::meta::LOG_FULL;
use crate::mounted::{Ext4, found_no_space};
use crate::state::{OpenFile, Transact};

/// Times that an operation without space is tried again.
const RETRIES: u32 = 4;

impl Ext4 {
    /// Runs an operation with the gate shared. One that finds no space is tried again after what is
    /// due has been deleted, and after a point, which makes freed blocks and the log usable, if the
    /// mask has VOLFULL.
    pub(crate) fn run_between_points<T>(
        &self,
        transact: &Transact,
        operation: &mut dyn FnMut() -> Result<T>,
    ) -> Result<T> {
        let mut tried = 0;
        let deleted = self.parts.holds.deleted();
        loop {
            let (outcome, group) = {
                let _shared = transact.gate.read();
                let outcome = operation();
                let group = outcome.is_err().then(|| transact.group()).flatten();
                (outcome, group)
            };
            if tried == 0 && found_no_space(&outcome) && self.parts.holds.settle(deleted) {
                tried += 1;
                continue;
            }
            let Err(Ext4Error::Fs(FsError::NoSpace { what })) = &outcome else {
                self.note_change();
                return outcome;
            };
            tried += 1;
            if tried > RETRIES || !self.make_space(transact, *what == LOG_FULL, tried)? {
                self.spend_group(transact, group);
                return outcome;
            }
        }
    }

    /// Runs an operation once, with the gate shared.
    pub(crate) fn run_once_between_points<T>(
        &self,
        transact: &Transact,
        operation: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let (outcome, group) = {
            let _shared = transact.gate.read();
            let outcome = operation();
            let group = outcome.is_err().then(|| transact.group()).flatten();
            (outcome, group)
        };
        match &outcome {
            Err(Ext4Error::Fs(FsError::NoSpace { .. })) => self.spend_group(transact, group),
            _ => self.note_change(),
        }
        outcome
    }

    /// Tries to make space; whether it makes sense to try again.
    fn make_space(&self, transact: &Transact, log_full: bool, tried: u32) -> Result<bool> {
        if log_full && tried == 1 {
            // Delayed data counts for more log blocks than it takes once it has its places.
            // An error stays with the files, and the next point will find it.
            let _ = self.pages.flush_all();
            return Ok(true);
        }
        if !transact.wants(TransactMask::VOLFULL) {
            return Ok(false);
        }
        if !log_full && self.parts.allocator.counts().busy_blocks == 0 {
            return Ok(false);
        }
        match self.make_point() {
            // A group has begun meanwhile, which the next try is part of.
            Err(FsError::Busy { .. }) => return Ok(true),
            made => made?,
        }
        self.parts.allocator.use_freed_committed(&self.parts.log, &self.parts.meta)?;
        Ok(true)
    }

    /// A file is being closed. The last of several descriptors, and the release that follows the
    /// last, make no further point unless the handle was written to meanwhile.
    pub(crate) fn point_after_close(&self, file: &OpenFile) -> steadfast_vfs::Result<()> {
        if !file.unanswered.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.point_after(TransactMask::CLOSE).inspect_err(|_| file.note_write())
    }

    /// An operation has succeeded: makes a point if the mask has one of `bits`.
    ///
    /// # Errors
    /// As for a point; why the open group has failed, whatever the mask says.
    pub(crate) fn point_after(&self, bits: TransactMask) -> steadfast_vfs::Result<()> {
        let Some(transact) = &self.transact else { return Ok(()) };
        if let Some(failure) = self.group_failure() {
            return Err(failure);
        }
        if !transact.wants(bits) {
            return Ok(());
        }
        match self.make_point() {
            // A group has begun meanwhile; its end is the point.
            Err(FsError::Busy { .. }) => Ok(()),
            outcome => outcome,
        }
    }
}
