//! Time of the processor that a simulation charges.

use std::time::Duration;

/// Simulated processor time of a system call that reads or writes, without the copying, which
/// the page cache accounts for: about what `lmbench` shows for a pread on a 3 GHz processor.
pub(crate) const CALL: Duration = Duration::from_nanos(2_000);
/// Simulated processor time of an operation on a name.
pub(crate) const NAME_CALL: Duration = Duration::from_nanos(4_000);
