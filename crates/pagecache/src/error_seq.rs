//! Write-back errors, reported once to every open handle.
//!
//! As Linux's `errseq_t` (lib/errseq.c): the file counts errors, and each handle has a cursor. An
//! error that no handle has seen is also reported to handles opened after it, so that it is not
//! lost between a close and an open.

use steadfast_vfs::{FsError, Result};

/// The last error that a handle has seen. Make one with
/// [`PageCache::error_cursor`](crate::PageCache::error_cursor) when the handle is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErrorCursor(u64);

/// Counts the errors of one file or of all.
#[derive(Debug, Default)]
pub(crate) struct ErrorSeq {
    count: u64,
    /// The highest count that a handle has seen (`ERRSEQ_SEEN`).
    seen: u64,
    last: Option<FsError>,
}

impl ErrorSeq {
    pub(crate) fn record(&mut self, error: FsError) {
        self.count += 1;
        self.last = Some(error);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn last(&self) -> Option<&FsError> {
        self.last.as_ref()
    }

    /// A new handle's cursor.
    pub(crate) fn sample(&self) -> ErrorCursor {
        // Below the count if no handle has seen the last error: the new handle then gets it.
        ErrorCursor(if self.seen == self.count { self.count } else { self.count - 1 })
    }

    /// The last error if `cursor` has not seen it; the cursor stays (`errseq_check`).
    pub(crate) fn check(&self, cursor: &ErrorCursor) -> Option<FsError> {
        if cursor.0 == self.count { None } else { self.last.clone() }
    }

    /// The last error if `cursor` has not seen it; advances the cursor
    /// (`errseq_check_and_advance`).
    pub(crate) fn check_and_advance(&mut self, cursor: &mut ErrorCursor) -> Result<()> {
        if cursor.0 == self.count {
            return Ok(());
        }
        cursor.0 = self.count;
        self.seen = self.count;
        match &self.last {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cursor_gets_an_error_once_and_a_late_one_an_unreported_one() {
        let mut seq = ErrorSeq::default();
        let (mut a, mut b) = (seq.sample(), seq.sample());
        assert_eq!(seq.check_and_advance(&mut a), Ok(()));
        seq.record(FsError::NotFound);
        let mut late = seq.sample();
        assert!(seq.check_and_advance(&mut late).is_err());
        assert!(seq.check_and_advance(&mut a).is_err() && seq.check_and_advance(&mut a).is_ok());
        assert!(seq.check_and_advance(&mut b).is_err() && seq.check_and_advance(&mut b).is_ok());
        let mut later = seq.sample();
        assert_eq!(seq.check_and_advance(&mut later), Ok(()));
    }
}
