//! Atomic groups: operations that become durable together or not at all.
//!
//! A group is the time between two points in which no other point is made. The volume has one at a
//! time, and what others do meanwhile is part of it. A group that runs out of space is *spent*:
//! nothing more is changed, and its end takes it back.
//!
//! A group that must go back while a file is open cannot, and has *failed*: the close of the last
//! file takes it back. Until then nothing is changed, and every request for a promise (fsync,
//! sync, close, a point) fails.

use steadfast_journal::Journal;
use steadfast_vfs::{FsError, Result};

use crate::mounted::Ext4;
use crate::state::Transact;

impl Ext4 {
    /// Begins a group, with a point: to this state a group that fails goes back.
    ///
    /// # Errors
    /// Busy: there is one. As for a point.
    pub(crate) fn open_group(&self) -> Result<()> {
        let (transact, journal) = self.journal_of_points()?;
        self.make_point()?;
        let _exclusive = transact.gate.write();
        if transact.state().group_open {
            return Err(self.group_is_open());
        }
        // What came between the first point and the gate.
        let ended = self.end_transaction(transact, journal)?;
        self.await_commit(transact, journal, ended)?;
        let mut state = transact.state();
        state.group_open = true;
        state.groups += 1;
        drop(state);
        Ok(())
    }

    /// Ends the group: with a point, or back to where it began. A group that is spent, or whose
    /// point fails, goes back in any case, which is then the error. While a file is open it cannot
    /// go back: it has failed, and does so when the last file is closed
    /// ([`settle_group`](Self::settle_group)).
    ///
    /// # Errors
    /// Invalid: no group is open. Busy: it must go back and files are open. No space: it was
    /// spent.
    pub(crate) fn close_group(&self, commit: bool) -> Result<()> {
        let (transact, journal) = self.journal_of_points()?;
        let exclusive = transact.gate.write();
        if !transact.state().group_open {
            return Err(FsError::Invalid { what: "no atomic group is open" });
        }
        let failed = transact.state().group_failed.clone();
        let mut outcome = match failed {
            Some(why) => Err(why),
            None if self.is_spent() => Err(does_not_fit()),
            None => Ok(()),
        };
        if commit && outcome.is_ok() {
            // From here on nothing that found no space is part of it.
            transact.state().groups += 1;
            match self.end_transaction(transact, journal) {
                Ok(ended) => {
                    self.forget_group(transact);
                    drop(exclusive);
                    return self.await_commit(transact, journal, ended);
                }
                Err(e) => outcome = Err(e),
            }
        }
        // Before it is seen whether a file is open: whoever closes the last one looks at this.
        let why = outcome.clone().err();
        transact.state().group_failed.get_or_insert_with(|| gone(why.as_ref()));
        self.set_spent(true);
        self.take_group_back(transact, journal).map_err(|e| match e {
            FsError::Busy { .. } => FsError::Busy {
                what: "files are open: what has failed is taken back when the last one is closed",
            },
            e => e,
        })?;
        match outcome {
            Err(FsError::NoSpace { .. }) if commit => Err(did_not_fit()),
            outcome if commit => outcome,
            _ => Ok(()),
        }
    }

    /// A file has been closed: a group that has failed goes back if it was the last that was open.
    ///
    /// # Errors
    /// As for a rollback, but for Busy.
    pub(crate) fn settle_group(&self) -> Result<()> {
        let Ok((transact, journal)) = self.journal_of_points() else { return Ok(()) };
        if transact.state().group_failed.is_none() {
            return Ok(());
        }
        let _exclusive = transact.gate.write();
        if transact.state().group_failed.is_none() {
            return Ok(());
        }
        match self.take_group_back(transact, journal) {
            Err(FsError::Busy { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    /// Goes back to where the group began. The caller has the gate.
    pub(super) fn take_group_back(&self, transact: &Transact, journal: &Journal) -> Result<()> {
        self.discard(transact, journal, false)?;
        self.forget_group(transact);
        Ok(())
    }

    /// There is no group any more.
    pub(super) fn forget_group(&self, transact: &Transact) {
        let mut state = transact.state();
        state.group_open = false;
        state.group_failed = None;
        // Under the guard: who spends a group must not do so between the two.
        self.set_spent(false);
        drop(state);
        self.parts.holds.retry();
    }

    /// A point or another group cannot be: a group is open, or has failed.
    pub(super) fn group_is_open(&self) -> FsError {
        self.group_failure().unwrap_or(FsError::Busy { what: "an atomic group is open" })
    }

    /// Why nothing of the open group will be kept; `None` if it may be, or there is no group.
    pub(crate) fn group_failure(&self) -> Option<FsError> {
        let transact = self.transact.as_ref()?;
        let state = transact.state();
        if !state.group_open {
            return None;
        }
        state.group_failed.clone().or_else(|| self.is_spent().then(does_not_fit))
    }

    /// An operation found no space: if it was part of the open group, that has failed as a whole.
    /// It has let go of the gate, so that the group may have ended.
    pub(super) fn spend_group(&self, transact: &Transact, group: Option<u64>) {
        let state = transact.state();
        if state.group_open && group == Some(state.groups) {
            self.set_spent(true);
        }
        drop(state);
    }

    fn is_spent(&self) -> bool {
        self.parts.allocator.fresh.as_ref().is_some_and(|fresh| fresh.is_spent())
    }

    fn set_spent(&self, spent: bool) {
        if let Some(fresh) = &self.parts.allocator.fresh {
            fresh.set_spent(spent);
        }
    }
}

/// What is said in a group that is spent and still there.
fn does_not_fit() -> FsError {
    FsError::NoSpace { what: "the atomic group did not fit: nothing of it is kept" }
}

/// What is said when it has gone back.
fn did_not_fit() -> FsError {
    FsError::NoSpace { what: "the atomic group did not fit and was taken back" }
}

/// What is said of everything in a group that has failed and cannot go back yet.
fn gone(why: Option<&FsError>) -> FsError {
    match why {
        Some(no_space @ FsError::NoSpace { .. }) => no_space.clone(),
        why => {
            let why = why.map(|e| format!(" ({e})")).unwrap_or_default();
            let what = format!(
                "the atomic group has failed{why}: nothing of it is kept, and it is taken back \
                 when the last open file is closed"
            );
            FsError::Io { what }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request};
    use steadfast_devices::source::Ram;
    use steadfast_ext4_mkfs::{Options, make};
    use steadfast_vfs::{FileSystem, NewNode, OpenFlags};

    use crate::mounted::Ext4;
    use crate::{DataMode, MountOptions};

    type Work = Box<dyn FnOnce() + Send>;

    /// A disk that does something else first when it is next written to.
    struct Disk {
        next: Ram,
        first: Mutex<Option<Work>>,
    }

    impl BlockDevice for Disk {
        fn info(&self) -> DeviceInfo {
            self.next.info()
        }

        fn submit(&self, request: Request) -> Completion {
            if !matches!(request, Request::Read { .. }) {
                let first = self.first.lock().unwrap().take();
                first.into_iter().for_each(|work| work());
            }
            self.next.submit(request)
        }
    }

    /// An operation found no space, has let go of the gate, and says so while the group commits:
    /// that is not said of what comes after the group.
    #[test]
    fn a_group_that_commits_leaves_nothing_spent() {
        let next = Ram::new("disk", 32 << 20).persistent();
        let device: Arc<dyn BlockDevice> = Arc::new(next.clone());
        make(&device, &Options::random(1_700_000_000)).unwrap();
        let disk = Arc::new(Disk { next, first: Mutex::new(None) });
        let options = MountOptions { data: DataMode::Transact, ..MountOptions::default() };
        let fs = Ext4::mount(disk.clone(), options).unwrap();
        let write = |name: &[u8]| {
            let rw = OpenFlags::READ | OpenFlags::WRITE;
            let (_, fh) = fs.create(fs.root(), name, NewNode::default(), rw)?;
            fs.write(fh, 0, vec![1; 5000].into())?;
            fs.release(fh)
        };
        fs.begin_group().unwrap();
        write(b"inside").unwrap();
        let spending = Arc::clone(&fs);
        let found_none = fs.transacting().unwrap().group();
        assert!(found_none.is_some());
        *disk.first.lock().unwrap() = Some(Box::new(move || {
            spending.spend_group(spending.transacting().unwrap(), found_none);
            // What is closed meanwhile, and what is promised, is not that of a group that failed.
            assert!(!spending.is_spent() && spending.group_failure().is_none());
        }));
        fs.end_group(true).unwrap();
        assert!(disk.first.lock().unwrap().is_none());
        // Nor is it said of the next group.
        fs.begin_group().unwrap();
        fs.spend_group(fs.transacting().unwrap(), found_none);
        assert!(!fs.is_spent());
        write(b"after").unwrap();
        fs.end_group(true).unwrap();
        assert_eq!(fs.lookup(fs.root(), b"after").unwrap().size, 5000);
        fs.unmount().unwrap();
    }
}
