//! Interleavings times crash states: two tasks, preempted where a transaction begins, a commit is
//! asked for or a lock is taken, and every run cut everywhere; in three data modes, on internal and
//! external journals.
//!
//! Always: one operation beside a write and its fsync, preempted once, at every point; and up to
//! two operations beside them, preempted up to twice, where transactions begin and commits are
//! asked for. With `STEADFAST_SOAK`: of all pairs of two operations each one in some, preempted up
//! to twice. Figures are printed with `--nocapture`.

// The figures are for people who run a soak.
#![allow(clippy::print_stdout)]

use std::cell::Cell;
use std::io::Write;
use std::time::Instant;

use steadfast_crash::mixed::Setup;
use steadfast_crash::small::{
    Bound, Pair, Plan, Scheduled, Schedules, SmallMachine, explore_schedules,
};
use steadfast_ext4::DataMode;
use steadfast_vfs::TransactMask;

const QUICK: Bound = Bound { exhaustive: 8, single_units: false, random: 1 };
const WHOLE: Bound = Bound { exhaustive: 64, single_units: true, random: 4 };
/// The smallest blocks that there are.
const SMALL: Setup = Setup { block_size: 1024, ..Setup::PLAIN };
const EXTERNAL: Setup = Setup { external: true, ..SMALL };

fn explored(name: &str, setup: Setup, pairs: &[Pair], schedules: &Schedules, bound: Bound) {
    let plan = Plan {
        bound,
        seed: 1,
        e2fsck_every: 2000,
        again_every: 200,
        again_whole_every: 0,
        keep_every: 0,
    };
    let begun = Instant::now();
    let machine = SmallMachine::new(setup).unwrap_or_else(|e| panic!("{name}: {e}"));
    let told = Cell::new(0);
    // Says at once what was found: a soak goes on for hours.
    let progress = |so_far: &Scheduled| {
        for finding in so_far.explored.findings.iter().skip(told.get()) {
            let _ = writeln!(std::io::stderr(), "FOUND: {name}: {finding}");
        }
        told.set(so_far.explored.findings.len());
    };
    let done = explore_schedules(&machine, pairs, schedules, &plan, &progress)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    println!("FIGURES: {name}: {done}, {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(done.explored.wrong(), 0, "{name}: {:#?}", done.explored.findings);
    assert!(done.distinct > done.pairs, "{name}: no preemption changed anything");
}

/// One pair in so many, in a soak.
const SOAK_EVERY: usize = 97;

fn of_setup(name: &str, setup: Setup) {
    let schedules = |preemptions, locks| Schedules { preemptions, locks, first: Vec::new() };
    if std::env::var_os("STEADFAST_SOAK").is_some() {
        explored(name, setup, &Pair::of_two(SOAK_EVERY), &schedules(2, false), WHOLE);
    }
    let locks = format!("{name}, locks");
    explored(&locks, setup, &Pair::beside_an_fsync(1), &schedules(1, true), QUICK);
    explored(name, setup, &Pair::beside_an_fsync(2), &schedules(2, false), QUICK);
}

#[test]
fn schedules_ordered_internal() {
    of_setup("ordered, internal", SMALL);
}

#[test]
fn schedules_ordered_external() {
    of_setup("ordered, external", EXTERNAL);
}

#[test]
fn schedules_journal_internal() {
    of_setup("journal, internal", Setup { data: DataMode::Journal, ..SMALL });
}

#[test]
fn schedules_journal_external() {
    of_setup("journal, external", Setup { data: DataMode::Journal, ..EXTERNAL });
}

const POINTS: TransactMask = TransactMask::FSYNC.union(TransactMask::SYNC);

#[test]
fn schedules_transact_internal() {
    let transact = Setup { data: DataMode::Transact, points: Some(POINTS), ..SMALL };
    of_setup("transact, internal", transact);
}

#[test]
fn schedules_transact_external() {
    let transact = Setup { data: DataMode::Transact, points: Some(POINTS), ..EXTERNAL };
    of_setup("transact, external", transact);
}
