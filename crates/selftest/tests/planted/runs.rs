//! Bugs that long random runs find, cut at some places.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use steadfast_crash::explore::{CrashPoints, Plan, SecondCuts};
use steadfast_crash::figures::StateFigures;
use steadfast_crash::planted::StackBug;
use steadfast_ext4::{Bug as Ext4Bug, DataMode};
use steadfast_journal::Bug as JournalBug;
use steadfast_selftest::mixed::{Case, Setup};
use steadfast_selftest::shrink::Effort;

const TASKS: usize = 3;
const OPERATIONS: usize = 70;
/// How much to try to make a case small.
const EFFORT: Effort = Effort { runs: 110, recoveries: 120 };
/// A case is small if it has at most so many operations.
const SMALL: usize = 20;
/// Cuts of one recorded run.
const CUTS: u64 = 24;
/// So many cuts of a run are few.
const FEW: u64 = 2;
/// So many times the cuts where few of them have found the bug.
const DENSER: u64 = 4;
/// Runs in which a bug must be found.
const RUNS: u64 = 40;

/// A run and its cuts: those of even seeds around flushes.
fn case(setup: Setup, seed: u64, again_percent: u64) -> Case {
    let places = if seed.is_multiple_of(2) {
        CrashPoints::Boundaries(CUTS)
    } else {
        CrashPoints::Spread(CUTS)
    };
    let second = SecondCuts { percent: again_percent, ..SecondCuts::NONE };
    // Once a run: each state is checked by us, and an image for e2fsck takes longer than its cut.
    let plan = Plan { e2fsck_every: CUTS, second, ..Plan::trials(places, seed) };
    Case { setup, seed, tasks: TASKS, operations: OPERATIONS, plan }
}

/// Looks for the bug, run after run; then at the same runs without it.
fn finds(name: &str, bug: StackBug, setup: Setup, again_percent: u64) {
    let planted = Setup { planted: Some(bug), ..setup };
    let mut found = None;
    let begun = Instant::now();
    for seed in 0..RUNS {
        let case = case(planted, seed, again_percent);
        let figures = case.explore().unwrap_or_else(|e| panic!("{name}: seed {seed}: {e}"));
        let wrong = figures.count(StateFigures::is_wrong);
        if let Some(first) = figures.cuts.iter().find(|cut| cut.is_wrong()) {
            let (took, finding) = (begun.elapsed().as_secs_f32(), &figures.findings[0]);
            println!(
                "FIGURES: {name}: {took:.1} s, seed {seed}, {wrong} of {CUTS} cuts: {finding}"
            );
            println!("{name}: {}", case.command(Some(first.number)));
            found = Some((case, wrong));
            break;
        }
    }
    let (found, wrong) =
        found.unwrap_or_else(|| panic!("{name}: not found in {RUNS} runs of {CUTS} cuts"));
    (0..=found.seed).for_each(|seed| finds_nothing(name, &case(setup, seed, again_percent)));
    let mut again: Case = found.to_string().parse().unwrap();
    // What few cuts of all see, most shorter runs show too, but between so few cuts.
    if wrong <= FEW {
        again.plan.places = again.plan.places.with_count(CUTS * DENSER);
    }
    let shrunk =
        again.shrink(&StateFigures::is_wrong, EFFORT).unwrap_or_else(|e| panic!("{name}: {e}"));
    let shrunk = shrunk.unwrap_or_else(|| panic!("{name}: found once only"));
    println!("FIGURES: {name}: {shrunk}");
    assert!(shrunk.script.len() <= SMALL, "{name}: {} operations", shrunk.script.len());
}

/// A run without a bug. Several bugs are looked for in the same runs, each of which is the same
/// whenever it is made: once is enough.
fn finds_nothing(name: &str, case: &Case) {
    static DONE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let done = || DONE.lock().unwrap_or_else(PoisonError::into_inner);
    // With its plan: the command does not say where it is cut.
    let run = format!("{case:?}");
    if done().contains(&run) {
        return;
    }
    let figures = case.explore().unwrap_or_else(|e| panic!("{name}: {e}"));
    let wrong = figures.count(StateFigures::is_wrong);
    assert_eq!(wrong, 0, "without {name}: {:#?}", figures.findings);
    done().insert(run);
}

/// External journal on a card.
const EXTERNAL: Setup = Setup { external: true, ..Setup::PLAIN };
/// Checkpoints all the time.
const CHECKPOINTS: Setup = Setup { checkpoint_percent: 2, ..Setup::PLAIN };
/// Names and blocks come and go.
const CHURN: Setup = Setup { churn: true, ..Setup::PLAIN };

#[test]
fn commit_record_without_pre_flush() {
    let bug = StackBug::Journal(JournalBug::CommitWithoutPreflush);
    finds("commit record without pre-flush", bug, Setup::PLAIN, 0);
}

#[test]
fn tail_advanced_before_the_flush() {
    let bug = StackBug::Journal(JournalBug::TailBeforeFlush);
    finds("checkpoint tail advanced before the data-disk flush", bug, CHECKPOINTS, 0);
}

#[test]
fn missing_revoke() {
    let bug = StackBug::Journal(JournalBug::MissingRevoke);
    finds("missing revoke", bug, CHURN, 0);
}

#[test]
fn ordered_data_not_waited_for() {
    let bug = StackBug::Journal(JournalBug::OrderedDataNotWaitedFor);
    finds("ordered data not waited for", bug, EXTERNAL, 0);
}

/// On one device the flush before the commit block covers what was not waited for, unless it is
/// late.
#[test]
fn ordered_data_not_waited_for_on_one_device() {
    let bug = StackBug::Journal(JournalBug::OrderedDataNotWaitedFor);
    let setup = Setup { stragglers: true, ..Setup::PLAIN };
    finds("ordered data not waited for, one device", bug, setup, 0);
}

#[test]
fn freed_block_reused_before_commit() {
    let bug = StackBug::Ext4(Ext4Bug::FreedBlockReused);
    finds("freed block reused before commit", bug, CHURN, 0);
}

#[test]
fn orphan_not_recorded() {
    let bug = StackBug::Ext4(Ext4Bug::OrphanNotRecorded);
    finds("orphan not recorded", bug, CHURN, 0);
}

#[test]
fn async_commit_without_checksum() {
    let bug = StackBug::Journal(JournalBug::AsyncCommitWithoutChecksum);
    let setup = Setup { data: DataMode::Writeback, async_commit: true, ..Setup::PLAIN };
    finds("async commit without checksum", bug, setup, 0);
}

#[test]
fn fs_device_flush_omitted() {
    let bug = StackBug::Journal(JournalBug::FsFlushOmitted);
    finds("external journal's fs-device flush omitted", bug, EXTERNAL, 0);
}

#[test]
fn recovery_not_idempotent() {
    let bug = StackBug::Journal(JournalBug::RecoveryNotIdempotent);
    finds("recovery not idempotent", bug, Setup::PLAIN, 100);
}

#[test]
fn directory_entry_before_inode() {
    let bug = StackBug::Ext4(Ext4Bug::EntryBeforeInode);
    finds("directory entry before inode", bug, Setup::PLAIN, 0);
}

/// The disk is memory, and files are used in place.
const IN_PLACE: Setup = Setup { dax: true, external: true, memory_journal: true, ..Setup::PLAIN };

#[test]
fn dax_fence_omitted() {
    finds("no fence before the transaction", StackBug::Ext4(Ext4Bug::DaxFenceOmitted), IN_PLACE, 0);
}

#[test]
fn dax_write_back_omitted() {
    finds("lines not written back", StackBug::Ext4(Ext4Bug::DaxWriteBackOmitted), IN_PLACE, 0);
}

#[test]
fn dax_data_after_its_transaction() {
    let bug = StackBug::Ext4(Ext4Bug::DaxDataAfterItsTransaction);
    finds("data stored after its transaction", bug, IN_PLACE, 0);
}

#[test]
fn dax_fsync_without_fence() {
    finds("fsync without a fence", StackBug::Ext4(Ext4Bug::DaxFsyncWithoutFence), IN_PLACE, 0);
}

/// The journal is on memory.
const ON_MEMORY: Setup = Setup { external: true, memory_journal: true, ..Setup::PLAIN };

#[test]
fn memory_commit_without_a_fence_before_it() {
    let bug = StackBug::Journal(JournalBug::CommitWithoutPreflush);
    finds("commit block stored without a fence before it", bug, ON_MEMORY, 0);
}

#[test]
fn memory_log_lines_not_written_back() {
    let bug = StackBug::Journal(JournalBug::LogLinesNotWrittenBack);
    finds("lines of the log not written back", bug, ON_MEMORY, 0);
}

#[test]
fn memory_commit_block_first() {
    let bug = StackBug::Journal(JournalBug::CommitBlockFirst);
    finds("commit block stored before its blocks", bug, ON_MEMORY, 0);
}
