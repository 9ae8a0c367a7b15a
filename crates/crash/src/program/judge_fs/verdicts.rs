//! What judges have said, by what they had read.

use std::collections::HashMap;

use super::reads::{JudgeView, ReadSet};
use crate::program::Judgement;

/// So many sets are compared with what is to be judged; those that have not helped for longest are
/// forgotten.
const SETS_KEPT: usize = 256;
/// So many things of them altogether: each is looked at for each tree.
const THINGS_KEPT: usize = 1 << 15;

/// By names, then by bytes, which take longer to compare.
type BySight = HashMap<u128, HashMap<u128, Judgement>>;

/// What was said, by what was read.
#[derive(Default)]
pub struct Verdicts {
    /// Those that have helped last come first.
    sets: Vec<(ReadSet, BySight)>,
}

impl Verdicts {
    /// What was said to a judge's question that would read the same here.
    pub fn find(&mut self, shown: JudgeView<'_>) -> Option<Judgement> {
        let known = |(reads, said): &(ReadSet, BySight)| {
            said.get(&reads.names(shown))?.get(&reads.contents(shown)).cloned()
        };
        let (place, said) =
            self.sets.iter().enumerate().find_map(|(n, set)| Some((n, known(set)?)))?;
        self.sets[..=place].rotate_right(1);
        Some(said)
    }

    /// Keeps what was said of this, of which these were read.
    pub fn keep(&mut self, reads: ReadSet, shown: JudgeView<'_>, said: Judgement) {
        let (names, bytes) = (reads.names(shown), reads.contents(shown));
        let place = self.sets.iter().position(|(known, _)| *known == reads).unwrap_or_else(|| {
            self.sets.insert(0, (reads, BySight::new()));
            let mut things = 0;
            let mut fits = |(reads, _): &(ReadSet, BySight)| {
                things += reads.len();
                things <= THINGS_KEPT
            };
            let kept = self.sets.iter().take(SETS_KEPT).take_while(|set| fits(set)).count();
            // The one that is new, in any case.
            self.sets.truncate(kept.max(1));
            0
        });
        self.sets[place].1.entry(names).or_default().insert(bytes, said);
    }

    /// Nothing is known any more.
    pub fn forget(&mut self) {
        self.sets.clear();
    }
}
