//! The comparison can fail: a pruning that forgets what was looked at is found out.

use std::time::Duration;

use steadfast_crash::explore::Plan;
use steadfast_crash::states::StateBound;

use super::*;
use crate::mixed::Setup;
use crate::small::explore::Explorer;
use crate::small::sequence::Sequence;
use crate::small::twice::{PruningCheck, explore_both};

const SMALL: Setup = Setup { block_size: 1024, ..Setup::PLAIN };
const EXTERNAL: Setup = Setup { external: true, ..SMALL };
/// Here something is found.
const LYING: Setup = Setup { lying: true, ..SMALL };
const PLAN: Plan = Plan { bound: StateBound::exhaustive(8, false, 1), ..Plan::EVERYWHERE };

/// One operation each, of which little is promised; or two, the second of which promises.
fn sequences(promises: bool) -> Vec<Sequence> {
    let promised = |s: &Sequence| !promises || s.len() == 2 && s.to_string().contains("sync");
    let every = if promises { 4 } else { 1 };
    Sequence::all(1 + usize::from(promises)).into_iter().filter(promised).step_by(every).collect()
}

fn twice(setup: Setup, forgotten: TraceOmission) -> PruningCheck {
    twice_of(&sequences(setup.lying), setup, forgotten)
}

fn twice_of(sequences: &[Sequence], setup: Setup, forgotten: TraceOmission) -> PruningCheck {
    let machine = SmallMachine::new(setup).unwrap();
    let pruning = Pruning { compare_every: 0, forgotten, ..Pruning::ON };
    let no_clock = || Duration::ZERO;
    explore_both(&machine, sequences, (&PLAN, 0), pruning, &no_clock, &|_| ()).unwrap()
}

/// Whether it is found by the comparison of all states, and by that of one in ten.
fn found(name: &str, setup: Setup, forgotten: TraceOmission) {
    let whole = twice(setup, forgotten);
    assert!(whole.differing > 0, "{name}: {}", whole.pruned);
    let machine = SmallMachine::new(setup).unwrap();
    let pruning = Pruning { compare_every: 10, forgotten, ..Pruning::ON };
    let mut explorer = Explorer::with(&machine, &PLAN, pruning);
    for (number, sequence) in sequences(setup.lying).iter().enumerate() {
        explorer.sequence(&machine, number, sequence).unwrap();
    }
    let figures = explorer.figures;
    assert!(figures.differing > 0 && figures.wrong() > 0, "{name}: {figures}");
}

#[test]
fn nothing_forgotten_nothing_differs() {
    for setup in [SMALL, EXTERNAL, LYING] {
        let whole = twice(setup, TraceOmission::Nothing);
        let figures = whole.pruned;
        assert_eq!((whole.differing, figures.contradictions), (0, 0), "{figures}");
        assert_eq!(whole.agreed, figures.distinct, "{figures}");
        assert_eq!(figures.wrong() > 0, setup.lying, "{figures}");
        assert!(figures.pruned * 2 > figures.distinct, "{figures}");
        assert_eq!(whole.unpruned.pruned, 0);
    }
}

#[test]
fn a_forgotten_journal_device_is_found() {
    found("journal device", EXTERNAL, TraceOmission::Device(1));
}

#[test]
fn a_forgotten_disk_is_found() {
    found("disk", EXTERNAL, TraceOmission::Device(0));
}

#[test]
fn forgotten_beginnings_are_found() {
    found("beginnings", SMALL, TraceOmission::Beginnings);
}

// On honest devices all states are good, whatever of them is looked at.

#[test]
fn a_forgotten_recovery_is_found() {
    found("recovery", LYING, TraceOmission::Part(Part::Mount));
}

#[test]
fn a_forgotten_judge_is_found() {
    found("judge", LYING, TraceOmission::Part(Part::Judge));
}

#[test]
fn a_forgotten_check_is_found() {
    // A mount reads nearly all that the check reads: few states differ, so all are compared, and
    // also of pairs of which nothing is promised.
    let pairs: Vec<Sequence> = Sequence::all(2).into_iter().step_by(3).collect();
    let whole = twice_of(&pairs, LYING, TraceOmission::Part(Part::Check));
    assert!(whole.differing > 0, "{}", whole.pruned);
}
