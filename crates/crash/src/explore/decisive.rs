//! Which of the writes in doubt make the difference, at one crash point.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use steadfast_devices::filter::record::Recording;
use steadfast_devices::store::Store;

use crate::delta::minimise;
use crate::states::{State, Unit, contents_where};

/// The fewest units in doubt that make the difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decisive {
    /// Units in doubt.
    pub in_doubt: usize,
    /// Those that matter.
    pub units: Vec<Unit>,
    /// They are lost and all others are there; else they are there and all others are lost.
    pub lost: bool,
}

impl Decisive {
    /// Finds them, with so many recoveries at most. `fails` is asked whether contents are wrong:
    /// those of `state` are. What they are wrong about may change on the way; that they are does
    /// not.
    pub fn find(
        (bases, recording): (&[Store], &Recording),
        state: &State,
        recoveries: u32,
        fails: &mut dyn FnMut(Vec<Store>) -> bool,
    ) -> Decisive {
        let (there, gone): (Vec<_>, Vec<_>) =
            state.in_doubt.iter().zip(&state.kept).partition(|(_, kept)| **kept);
        let units =
            |part: Vec<(&Unit, &bool)>| part.into_iter().map(|(u, _)| *u).collect::<Vec<_>>();
        let (there, gone) = (units(there), units(gone));
        let doubted: BTreeSet<Unit> = state.in_doubt.iter().copied().collect();
        let mut fails = |lost: &BTreeSet<Unit>| {
            // What makes no difference is as it would be.
            let keep = |unit: Unit| !doubted.contains(&unit) || !lost.contains(&unit);
            fails(contents_where(bases, recording, state.cut.tick, keep))
        };
        let half = (recoveries / 2).max(1);
        let lost = minimise(&gone, &mut { half }, |part| fails(&part.iter().copied().collect()));
        let kept = minimise(&there, &mut { half }, |part| {
            let kept: BTreeSet<Unit> = part.iter().copied().collect();
            fails(&doubted.difference(&kept).copied().collect())
        });
        let in_doubt = state.in_doubt.len();
        match lost.len() <= kept.len() {
            true => Decisive { in_doubt, units: lost, lost: true },
            false => Decisive { in_doubt, units: kept, lost: false },
        }
    }

    /// The units by device and write.
    pub fn writes(&self) -> BTreeMap<(u32, u64), Vec<u64>> {
        let mut writes: BTreeMap<(u32, u64), Vec<u64>> = BTreeMap::new();
        for unit in &self.units {
            writes.entry((unit.device, unit.submitted)).or_default().push(unit.offset);
        }
        writes
    }
}

impl fmt::Display for Decisive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decisive { in_doubt, units, lost } = self;
        let (these, others) = if *lost { ("lost", "there") } else { ("there", "lost") };
        let whatever = if *lost { "with all of them there" } else { "without any of them" };
        match (in_doubt, units.len()) {
            (0, _) => f.write_str("nothing was in doubt: the state is wrong in any case"),
            (_, 0) => {
                write!(f, "the writes in doubt are not the cause: also wrong {whatever}")
            }
            (_, n) => write!(
                f,
                "it is enough that {n} of {in_doubt} sectors in doubt are {these} (of {} writes) \
                 and all others {others}",
                self.writes().len()
            ),
        }
    }
}
