//! Which of the writes in doubt make a state of a program's run wrong.

use super::Tree;
use super::explore::Exploration;
use crate::error::Result;
use crate::states::State;

pub use crate::explore::Decisive;

/// Finds them, with so many recoveries at most.
///
/// # Errors
/// The judge could not be asked.
pub fn shrink(
    exploration: &Exploration<'_>,
    state: &State,
    base: &Tree,
    recoveries: u32,
) -> Result<Decisive> {
    let mut trouble = None;
    let run = (&exploration.run.bases[..], &exploration.run.recording);
    let decisive = Decisive::find(run, state, recoveries, &mut |contents| match exploration
        .wrong(contents, state, base)
    {
        Ok(wrong) => !wrong.is_empty(),
        Err(why) => {
            trouble.get_or_insert(why);
            false
        }
    });
    trouble.map_or(Ok(decisive), Err)
}
