//! How a sweep that fails ends.

use steadfast_sweep::SweepError;

use crate::Usage;

/// Results that are refused are a problem that was found; what cannot be read, planned or named is
/// the caller's.
pub fn to_anyhow(e: SweepError) -> anyhow::Error {
    match e {
        SweepError::Writing(e) => e.into(),
        e if e.is_problem() => e.into(),
        e => Usage(e.to_string()).into(),
    }
}
