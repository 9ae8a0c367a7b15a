//! Where the recordings of a run go.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::LabError;

/// Where recordings are written, and what kept one of them from it. A run goes on without them: its
/// results are worth more than a copy of what they come from.
#[derive(Debug)]
pub struct Recordings {
    pub(super) folder: PathBuf,
    /// What it is called in messages.
    pub(super) shown: PathBuf,
    failed: Mutex<Option<LabError>>,
}

impl Recordings {
    /// In this folder, which is called `shown` in messages; it is made if it is not there.
    pub fn new(folder: PathBuf, shown: PathBuf) -> Recordings {
        Recordings { folder, shown, failed: Mutex::new(None) }
    }

    /// Why the recordings are not whole, if they are not: after the first failure nothing more is
    /// written. The next time it is not there any more.
    pub fn take_failure(&self) -> Option<LabError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn fail(&self, why: LabError) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }
}
