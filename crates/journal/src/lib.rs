//! JBD2: commit, checkpoint, recovery and revoke, on an internal or external log.

mod error;

pub use error::{JournalError, Result};
