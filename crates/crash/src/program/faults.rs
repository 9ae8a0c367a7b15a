//! Failures that somebody asks for: the next call of a kind on a path fails, and what it was about
//! is lost.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steadfast_runtime::Mutex;
use steadfast_vfs::FsError;

/// Failures that may be waiting.
const FAULTS_MAX: usize = 1000;
/// The path that stands for every file.
const ANY: &[u8] = b"*";

/// Which calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum FaultKind {
    /// fsync, fdatasync, msync; of a file or a directory.
    Fsync,
    /// Any call that writes bytes.
    Write,
}

/// The error that they return.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumString,
    strum::IntoStaticStr,
)]
pub enum FaultError {
    /// The device failed.
    #[strum(serialize = "EIO")]
    Io,
    /// No space was left.
    #[strum(serialize = "ENOSPC")]
    NoSpace,
    /// The user's quota was used up.
    #[strum(serialize = "EDQUOT")]
    Quota,
}

impl FaultError {
    /// Its name in errno(3).
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl From<FaultError> for FsError {
    fn from(error: FaultError) -> FsError {
        match error {
            FaultError::Io => FsError::Io { what: "asked for".into() },
            FaultError::NoSpace => FsError::NoSpace { what: "blocks" },
            FaultError::Quota => FsError::QuotaExceeded,
        }
    }
}

/// Calls that are to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFault {
    /// Of this kind.
    pub kind: FaultKind,
    /// On this path, without a leading '/'; `*` is every one.
    pub path: Vec<u8>,
    /// With this error.
    pub error: FaultError,
    /// So many of them, the next ones.
    pub times: u32,
}

/// Too many failures are waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{FAULTS_MAX} failures are waiting for their calls: no more are taken")]
pub struct TooManyFaults;

/// The failures that wait for their calls. Clones are the same list.
#[derive(Debug, Clone, Default)]
pub struct CallFaults(Arc<Mutex<Vec<CallFault>>>);

impl CallFaults {
    /// Asks for a failure; of several for one call, the first one comes first.
    ///
    /// # Errors
    /// Too many are waiting.
    pub fn add(&self, fault: CallFault) -> Result<(), TooManyFaults> {
        let mut waiting = self.0.lock();
        if waiting.len() >= FAULTS_MAX {
            return Err(TooManyFaults);
        }
        waiting.push(fault);
        Ok(())
    }

    /// Those that are still waiting.
    pub fn waiting(&self) -> Vec<CallFault> {
        self.0.lock().clone()
    }

    /// A call begins: the error that it is to return.
    pub(super) fn next(&self, kind: FaultKind, path: &[u8]) -> Option<FaultError> {
        let mut waiting = self.0.lock();
        let is_its =
            |fault: &CallFault| fault.kind == kind && (fault.path == path || fault.path == ANY);
        let place = waiting.iter().position(is_its)?;
        let CallFault { error, times, .. } = &mut waiting[place];
        let error = *error;
        *times = times.saturating_sub(1);
        if *times == 0 {
            waiting.remove(place);
        }
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind, path: &str, error: FaultError, times: u32) -> CallFault {
        CallFault { kind, path: path.into(), error, times }
    }

    #[test]
    fn each_failure_is_for_its_own_calls() {
        use FaultError::{Io, NoSpace};
        use FaultKind::{Fsync, Write};
        let faults = CallFaults::default();
        faults.add(fault(Fsync, "a", Io, 2)).unwrap();
        faults.add(fault(Write, "*", NoSpace, 1)).unwrap();
        assert_eq!(faults.next(Fsync, b"b"), None);
        assert_eq!(faults.next(Write, b"b"), Some(NoSpace));
        assert_eq!(faults.next(Write, b"b"), None);
        let both = [faults.next(Fsync, b"a"), faults.next(Fsync, b"a"), faults.next(Fsync, b"a")];
        assert_eq!(both, [Some(Io), Some(Io), None]);
        assert_eq!(faults.waiting(), []);
        assert_eq!("EIO".parse(), Ok(Io));
        assert_eq!((NoSpace.name(), "fsync".parse()), ("ENOSPC", Ok(Fsync)));
    }

    #[test]
    fn the_list_is_bounded() {
        let faults = CallFaults::default();
        let add = || faults.add(fault(FaultKind::Write, "x", FaultError::Io, 1));
        let added = (0..2 * FAULTS_MAX).filter(|_| add().is_ok()).count();
        assert_eq!(added, FAULTS_MAX);
    }
}
