//! Interleavings times crash states: two tasks, preempted where a transaction begins, a commit is
//! asked for or a lock is taken, and every run cut everywhere; in three data modes, on internal and
//! external journals.
//!
//! Always: of all pairs of two operations beside two, each twentieth, others in each set-up, in
//! every schedule with up to two preemptions, where transactions begin and commits are asked for;
//! one operation beside a write and its fsync, preempted once, at every point, locks too; and three
//! tasks and locks, drawn. With `STEADFAST_SOAK` all pairs. Figures are printed with `--nocapture`.

// The figures are for people who run a soak.
#![allow(clippy::print_stdout)]

use std::cell::Cell;
use std::io::Write;
use std::time::Instant;

use steadfast_crash::explore::{Plan, SecondCuts};
use steadfast_crash::states::StateBound;
use steadfast_ext4::DataMode;
use steadfast_selftest::mixed::Setup;
use steadfast_selftest::small::{
    ScheduleReport, ScheduledCase, Schedules, SmallMachine, TaskSequences, explore_schedules,
};

const QUICK: StateBound = StateBound::exhaustive(8, false, 1);

fn explored(name: &str, setup: Setup, pairs: &[TaskSequences], schedules: &Schedules) {
    let plan = Plan {
        bound: QUICK,
        e2fsck_every: 2000,
        second: SecondCuts { every: 200, ..SecondCuts::NONE },
        ..Plan::EVERYWHERE
    };
    let begun = Instant::now();
    let machine = SmallMachine::new(setup).unwrap_or_else(|e| panic!("{name}: {e}"));
    let printed = Cell::new(0);
    // Says at once what was found: a soak goes on for hours.
    let progress = |so_far: &ScheduleReport| {
        for finding in so_far.explored.findings.iter().skip(printed.get()) {
            let _ = writeln!(std::io::stderr(), "FOUND: {name}: {finding}");
        }
        printed.set(so_far.explored.findings.len());
    };
    let done = explore_schedules(&machine, pairs, schedules, &plan, &progress)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    println!("FIGURES: {name}: {done}, {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(done.explored.wrong(), 0, "{name}: {:#?}", done.explored.findings);
    assert!(done.distinct > done.pairs, "{name}: no preemption changed anything");
}

/// Of the pairs of two operations each, one in so many; in a soak each.
const PAIRS_EVERY: usize = 20;
/// What is drawn: of three tasks so many, and of pairs one in so many; of each so many schedules.
const THREES: usize = 40;
const LOCKS_EVERY: usize = 200;
const DRAWN: (u64, u64) = (6, 1);

/// `first` is the first pair that is taken, below [`PAIRS_EVERY`].
fn of_setup(data: DataMode, external: bool, first: usize) {
    let setup = ScheduledCase::setup(data, external);
    let journal = if external { "external" } else { "internal" };
    let explored = |what: &str, pairs: &[TaskSequences], schedules: Schedules| {
        let name = format!("{}, {journal}, {what}", format!("{data:?}").to_lowercase());
        explored(&name, setup, pairs, &schedules);
    };
    let of_two = |first, every| {
        TaskSequences::of_two().into_iter().skip(first).step_by(every).collect::<Vec<_>>()
    };
    let soak = std::env::var_os("STEADFAST_SOAK").is_some();
    let (first, every) = if soak { (0, 1) } else { (first, PAIRS_EVERY) };
    let drawn = Schedules { drawn: Some(DRAWN), ..Schedules::all(2) };
    explored("two beside two", &of_two(first, every), Schedules::all(2));
    explored("three, drawn", &TaskSequences::of_three(THREES, 1), drawn.clone());
    explored("locks, drawn", &of_two(0, LOCKS_EVERY), Schedules { locks: true, ..drawn });
    let locks = Schedules { locks: true, ..Schedules::all(1) };
    explored("locks, one beside an fsync", &TaskSequences::beside_an_fsync(1), locks);
}

#[test]
fn schedules_ordered_internal() {
    of_setup(DataMode::Ordered, false, 0);
}

#[test]
fn schedules_ordered_external() {
    of_setup(DataMode::Ordered, true, 1);
}

#[test]
fn schedules_journal_internal() {
    of_setup(DataMode::Journal, false, 2);
}

#[test]
fn schedules_journal_external() {
    of_setup(DataMode::Journal, true, 3);
}

#[test]
fn schedules_transact_internal() {
    of_setup(DataMode::Transact, false, 4);
}

#[test]
fn schedules_transact_external() {
    of_setup(DataMode::Transact, true, 5);
}
