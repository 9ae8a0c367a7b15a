//! Which of the writes in doubt make a state of a program's run wrong.

use super::Tree;
use super::explore::Exploration;
use crate::error::{CrashError, Result};
use crate::states::State;

pub use crate::explore::Decisive;

/// Finds them, with so many recoveries at most. `go_on` is asked before each.
///
/// # Errors
/// The judge could not be asked, or it was not to go on.
pub fn shrink(
    exploration: &Exploration<'_>,
    state: &State,
    base: &Tree,
    recoveries: u32,
    go_on: &dyn Fn() -> bool,
) -> Result<Decisive> {
    let mut trouble = None;
    let run = (&exploration.run.bases[..], &exploration.run.recording);
    let decisive = Decisive::find(run, state, recoveries, &mut |contents| {
        if !go_on() {
            trouble.get_or_insert_with(|| CrashError::host("stopped"));
        }
        if trouble.is_some() {
            return false;
        }
        match exploration.wrong(contents, state, base) {
            Ok(wrong) => !wrong.is_empty(),
            Err(why) => {
                trouble = Some(why);
                false
            }
        }
    });
    trouble.map_or(Ok(decisive), Err)
}
