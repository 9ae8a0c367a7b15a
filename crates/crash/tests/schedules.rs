//! Interleavings times crash states: two tasks, preempted wherever a transaction begins or a commit
//! is asked for, and every run cut everywhere.
//!
//! Always: one operation beside a write and its fsync, at most one preemption, in two set-ups. With
//! `STEADFAST_SOAK`: two operations beside two, at most two preemptions, in all data modes, on
//! internal and external journals. Figures are printed with `--nocapture`.

// The figures are for people who run a soak.
#![allow(clippy::print_stdout)]

use std::cell::Cell;
use std::io::Write;
use std::time::Instant;

use steadfast_crash::mixed::Setup;
use steadfast_crash::small::{
    Bound, Plan, Scheduled, Schedules, Sequence, SmallMachine, Start, explore_schedules,
};
use steadfast_ext4::DataMode;
use steadfast_vfs::TransactMask;

const QUICK: Bound = Bound { exhaustive: 8, single_units: false, random: 1 };
const WHOLE: Bound = Bound { exhaustive: 64, single_units: true, random: 4 };
/// The smallest blocks that there are.
const SMALL: Setup = Setup { block_size: 1024, ..Setup::PLAIN };
const EXTERNAL: Setup = Setup { external: true, ..SMALL };

/// Each sequence of so many operations beside a write and its fsync.
fn beside_an_fsync(longest: usize) -> Vec<[Sequence; 2]> {
    let fsync = Sequence::written_and_synced(Start::Populated);
    Sequence::all(longest).into_iter().map(|sequence| [sequence, fsync.clone()]).collect()
}

/// Pairs of two operations each, one in `every`.
fn of_two(every: usize) -> Vec<[Sequence; 2]> {
    let all: Vec<Sequence> = Sequence::all(2).into_iter().filter(|s| s.len() == 2).collect();
    let count = all.len();
    let pair = |n: usize| [all[n / count].clone(), all[n % count].clone()];
    (0..count * count).step_by(every).map(pair).collect()
}

fn explored(name: &str, setup: Setup, pairs: &[[Sequence; 2]], schedules: Schedules, bound: Bound) {
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

fn of_setup(name: &str, setup: Setup) {
    let soak = std::env::var_os("STEADFAST_SOAK").is_some();
    let (pairs, preemptions, bound) =
        if soak { (of_two(97), 2, WHOLE) } else { (beside_an_fsync(1), 1, QUICK) };
    let schedules = Schedules { preemptions, locks: false, every: 1 };
    explored(name, setup, &pairs, schedules, bound);
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
