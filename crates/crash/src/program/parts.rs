//! Where the program itself has asked to be cut: instants of interest, and parts of the run.
//!
//! They are notes of the recording, in one order with calls, lines and writes: a recording says by
//! itself which states it has, and a state's number stays the same.

use steadfast_devices::filter::record::{Moment, Recording};

use super::ProgramRun;
use crate::states::{Choice, StateBound, States};

/// Notes with this label are instants that the program wants to be cut.
pub const CUT: u64 = 0x6375_7400;
/// With this one a part begins that is to be explored.
pub const BEGIN: u64 = 0x6265_6769;
/// With this one it ends.
pub const END: u64 = 0x656e_6400;

/// States of an instant that was asked for, at most.
const STATES: u64 = 1024;
/// States of all of them together, at about most: where there are many, each gets fewer.
const STATES_OF_ALL: u64 = 8192;

/// The instants and parts that a program has named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunParts {
    /// Instants of interest, each just after it was named; ascending.
    pub cuts: Vec<Moment>,
    /// The first and the last crash point of each part, ascending; empty: all of the run.
    pub parts: Vec<(u64, u64)>,
}

impl RunParts {
    /// Of a recording. A part that does not end lasts until the recording does.
    fn of(recording: &Recording) -> RunParts {
        let mut of_run = RunParts::default();
        let mut begun = None;
        for note in recording.notes() {
            let Moment { tick, at } = note.moment;
            match note.label {
                CUT => of_run.cuts.push(Moment { tick: tick + 1, at }),
                BEGIN => drop(begun.get_or_insert(tick + 1)),
                END => of_run.parts.extend(begun.take().map(|from| (from, tick))),
                _ => {}
            }
        }
        of_run.parts.extend(begun.map(|from| (from, recording.last_crash_point())));
        of_run
    }

    /// Whether a crash point is in a part that is explored.
    pub(crate) fn has(&self, tick: u64) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|(from, to)| (*from..=*to).contains(&tick))
    }

    /// How many states an instant gets that was asked for; others get `others`.
    pub(crate) fn states(&self, others: u64) -> u64 {
        let share = STATES_OF_ALL / (self.cuts.len() as u64).max(1);
        share.min(STATES).max(others)
    }
}

impl ProgramRun {
    /// The instants and parts that the program has named.
    pub fn parts(&self) -> RunParts {
        RunParts::of(&self.recording)
    }

    /// The crash states of a choice: at its places in the parts that the program has named, and,
    /// by `dense`, at the instants that it has named.
    pub(crate) fn states(&self, choice: Choice, dense: StateBound) -> States<'_> {
        let RunParts { cuts, parts } = self.parts();
        States::new(&self.bases, &self.recording, choice)
            .within_parts(&parts)
            .and_at(cuts.iter().map(|cut| cut.tick), dense)
    }

    /// As a choice's bound, but denser: for the instants that the program has named.
    pub(crate) fn dense(&self, bound: StateBound) -> StateBound {
        let states = self.parts().states(bound.states);
        StateBound {
            states,
            combinations: states.max(bound.combinations),
            drawn: (states / 4).max(bound.drawn),
            ..bound
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use steadfast_block::BlockDevice;
    use steadfast_devices::filter::record::{Durability, Record, RecordLog};
    use steadfast_devices::source::Ram;
    use steadfast_devices::store::Store;

    use super::*;
    use crate::states::CrashPoints;

    /// Forty writes; a note of each label given after the write of its number.
    fn run(notes: &[(u64, u64)]) -> ProgramRun {
        let log = RecordLog::new();
        let ram = Arc::new(Ram::new("ram", 1 << 20).with_volatile_cache());
        let disk = Record::with_durability(ram, &log, Durability::OnFlush);
        for n in 0..40 {
            disk.write(n * 512, vec![n as u8 + 1; 512].into()).unwrap();
            for (_, label) in notes.iter().filter(|(at, _)| *at == n) {
                log.note(*label, [0; 3]);
            }
        }
        let bases = vec![Store::new(1 << 20)];
        ProgramRun::new(Default::default(), bases, log.take(), vec![], vec![])
    }

    fn ticks(run: &ProgramRun, places: CrashPoints) -> Vec<u64> {
        let bound = StateBound::default();
        let choice = Choice { places, bound, seed: 1 };
        let mut ticks: Vec<u64> =
            run.states(choice, run.dense(bound)).map(|state| state.cut.tick).collect();
        ticks.dedup();
        ticks
    }

    #[test]
    fn nothing_named_is_everything() {
        let run = run(&[]);
        assert_eq!(run.parts(), RunParts::default());
        assert!(ticks(&run, CrashPoints::All).len() > 40);
        assert_eq!(ticks(&run, CrashPoints::None), []);
    }

    #[test]
    fn only_the_parts_are_cut() {
        let run = run(&[(5, BEGIN), (9, END), (20, BEGIN), (22, BEGIN), (24, END), (30, END)]);
        let parts = run.parts().parts;
        assert_eq!(parts.len(), 2);
        for places in [CrashPoints::All, CrashPoints::Sampled(50), CrashPoints::Spread(50)] {
            let ticks = ticks(&run, places);
            assert!(ticks.iter().all(|tick| run.parts().has(*tick)), "{places}: {ticks:?}");
            for (from, to) in &parts {
                let inside = ticks.iter().filter(|tick| (from..=to).contains(tick)).count();
                assert!(inside > 2, "{places}: {ticks:?}");
            }
        }
    }

    #[test]
    fn a_part_without_an_end_lasts() {
        let run = run(&[(35, BEGIN)]);
        let (from, to) = run.parts().parts[0];
        assert_eq!((to, to - from > 5), (run.recording.last_crash_point(), true));
    }

    #[test]
    fn an_instant_that_is_named_is_cut_densely() {
        let named = run(&[(30, CUT)]);
        let at = named.parts().cuts[0].tick;
        assert_eq!(ticks(&named, CrashPoints::None), [at]);
        let bound = StateBound::default();
        let count = |places, dense| {
            let states = named.states(Choice { places, bound, seed: 1 }, dense);
            states.filter(|state| state.cut.tick == at).count()
        };
        let few = count(CrashPoints::All, bound);
        let many = count(CrashPoints::None, named.dense(bound));
        assert!(few <= 48 && many > 3 * few, "{few} {many}");
        // Many of them share what there is for all.
        let crowd: Vec<(u64, u64)> = (0..40).flat_map(|n| vec![(n, CUT); 10]).collect();
        assert_eq!(run(&crowd).dense(bound).states, 48);
    }
}
