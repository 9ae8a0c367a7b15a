//! Failures of this machine, which say nothing of what was to be judged.

use crate::{Usage, terminal};

/// An error that says nothing of what was to be judged, after these words.
pub fn not_found(e: anyhow::Error, words: &str) -> anyhow::Error {
    if crate::exit_status::status_of(&e) != 1 {
        return e;
    }
    Usage(format!("{words}{}", terminal::with_causes(&e))).into()
}

/// A failure of this machine says nothing of the program: status 1 is for what was found.
pub fn not_judged(e: anyhow::Error) -> anyhow::Error {
    not_found(e, "nothing was judged: ")
}
