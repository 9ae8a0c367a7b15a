//! Makes the kernel forget what it has cached, after a change that it does not know of.
//!
//! But for `write_out` and `below`, no notification here waits for the kernel, so a request may
//! send one before it is answered. The notification of a single name (FUSE_NOTIFY_INVAL_ENTRY)
//! does wait: for the lock of its directory, which the kernel holds until the request is answered.
//! It has a thread of its own.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_fuse_lowlevel::{Notifier, Session};

use crate::bridge::{Bridge, NodeId, OpenInodes, ROOT};

/// Makes the kernel forget what it has cached, after a change that did not come through it.
pub struct Invalidator {
    notifier: Notifier,
    opened: Arc<OpenInodes>,
    stale: Arc<Mutex<Stale>>,
}

/// Inodes of which the kernel is to forget the contents.
#[derive(Default)]
struct Stale {
    numbers: BTreeSet<u64>,
    /// A thread is at it.
    is_worked_on: bool,
}

impl Invalidator {
    pub(crate) fn of(session: &Session<Bridge>, opened: &Arc<OpenInodes>) -> Self {
        let (notifier, opened) = (session.notifier(), Arc::clone(opened));
        Invalidator { notifier, opened, stale: Arc::default() }
    }

    /// The kernel forgets all names, attributes and pages. What is open keeps its attributes.
    ///
    /// # Errors
    /// A kernel before 6.16 cannot: unmount and mount again. Nothing is forgotten then.
    pub fn everything(&self) -> std::io::Result<()> {
        self.notifier.new_epoch()?;
        for number in std::iter::once(ROOT).chain(self.opened.all()) {
            // OK to ignore: what the kernel does not know it need not forget.
            let _ = self.notifier.inval_inode(number, 0, 0);
        }
        Ok(())
    }

    /// The kernel forgets an inode's attributes, and no pages: they are locked while they are
    /// written.
    pub(crate) fn attributes(&self, number: u64) {
        // A negative offset means attributes only.
        // OK to ignore: what the kernel does not know it need not forget.
        let _ = self.notifier.inval_inode(number, -1, 0);
    }

    /// The kernel forgets an inode's attributes and pages, soon after the caller's answer: until
    /// then it may hold locks of the pages.
    pub(crate) fn contents(&self, number: u64) {
        let mut stale = lock(&self.stale);
        stale.numbers.insert(number);
        if std::mem::replace(&mut stale.is_worked_on, true) {
            return;
        }
        drop(stale);
        let (notifier, stale) = (self.notifier.clone(), Arc::clone(&self.stale));
        let forget = move || {
            loop {
                let mut left = lock(&stale);
                let Some(number) = left.numbers.pop_first() else {
                    left.is_worked_on = false;
                    break;
                };
                drop(left);
                // OK to ignore, as above.
                let _ = notifier.inval_inode(number, 0, 0);
            }
        };
        let spawned = std::thread::Builder::new().name("stale contents".into()).spawn(forget);
        if let Err(e) = spawned {
            lock(&self.stale).is_worked_on = false;
            tracing::warn!("the kernel may show contents as they were before a failure: {e}");
        }
    }

    /// The kernel writes out the changed pages of an inode, and forgets its attributes and pages.
    /// Waits for these writes, so a thread that serves must not call it.
    pub(crate) fn write_out(&self, number: u64) {
        // OK to ignore, as above. The kernel itself tells fsync of a write that failed.
        let _ = self.notifier.inval_inode(number, 0, 0);
    }

    /// The kernel forgets a name of the root, and all that is known below it. Waits for who works
    /// in the root, so a thread that serves must not call it.
    pub fn below(&self, name: &OsStr) {
        // OK to ignore, as above.
        let _ = self.notifier.inval_entry(ROOT, name.as_bytes());
    }

    /// The kernel looks these names up again, and asks for the attributes of their directories:
    /// before the caller's answer, or soon after it with a kernel before 6.16.
    pub(crate) fn names(&self, names: &[(NodeId, &[u8])]) {
        names.iter().for_each(|(dir, _)| self.attributes(dir.0));
        if self.notifier.new_epoch().is_ok() {
            return;
        }
        let notifier = self.notifier.clone();
        let names: Vec<(NodeId, Vec<u8>)> =
            names.iter().map(|(dir, name)| (*dir, (*name).to_owned())).collect();
        let forget = move || {
            for (dir, name) in &names {
                // OK to ignore, as above.
                let _ = notifier.inval_entry(dir.0, name);
            }
        };
        let spawned = std::thread::Builder::new().name("stale names".into()).spawn(forget);
        if let Err(e) = spawned {
            tracing::warn!("the kernel may show names as they were before a failure: {e}");
        }
    }
}

/// Each user finishes what it does to it.
fn lock(of: &Mutex<Stale>) -> MutexGuard<'_, Stale> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

steadfast_runtime::debug_fields!(Invalidator);
