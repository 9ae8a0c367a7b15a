//! The corpus of named workloads on our own file systems.

#![allow(clippy::print_stdout, reason = "a skipped test says why; figures are for people")]

use std::time::Duration;

use steadfast_crash::e2fsck::E2fsck;
use steadfast_crash::explore::Plan;
use steadfast_crash::states::{CrashPoints, StateBound};
use steadfast_ext4::{DataMode, MountOptions};
use steadfast_selftest::corpus::{KNOWN, Own, OwnKind, Subject, ace, try_out};

fn plan(states: u64) -> Plan {
    let bound = StateBound { states, drawn: 4, ..StateBound::default() };
    Plan { places: CrashPoints::Flushes, bound, use_it: true, ..Plan::EVERYWHERE }
}

fn own(kind: OwnKind, data: DataMode) -> Own {
    let options = MountOptions { data, ..MountOptions::default() };
    Own::new("ours", kind, options, Duration::ZERO).unwrap()
}

/// `STEADFAST_SOAK`: so many times as many cases.
fn soak() -> usize {
    std::env::var("STEADFAST_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(1).max(1)
}

/// How many states there were, and the known bugs that are there, with what was wrong first.
fn known_on(subject: &dyn Subject, states: u64) -> (u64, Vec<String>) {
    let (mut all, mut failed) = (0, Vec::new());
    for known in &KNOWN {
        let outcome = try_out(subject, &known.workload(), &plan(states)).unwrap();
        // ext2 knows no fallocate.
        assert!(outcome.refused <= 2, "{}", known.name);
        all += outcome.states;
        if let Some((state, wrong)) = outcome.first {
            failed.push(format!("{}: state {state}: {wrong:?}", known.name));
        }
    }
    (all, failed)
}

#[test]
fn no_known_bug_is_ours() {
    for data in [DataMode::Ordered, DataMode::Journal, DataMode::Transact] {
        let (states, failed) = known_on(&own(OwnKind::Ext4, data), 24);
        assert!(failed.is_empty(), "{data:?}: {failed:#?}");
        assert!(states > 200, "{states}");
    }
}

/// The control: with flushes ignored all promises are empty.
#[test]
fn a_drive_that_ignores_flushes_fails_all() {
    let lying = own(OwnKind::Ext4, DataMode::Ordered).on_a_lying_disk();
    let (_, failed) = known_on(&lying, 24);
    assert!(failed.len() >= 24, "{failed:#?}");
}

/// The control without a journal: names are lost that the others keep.
#[test]
fn ext2_without_a_journal_loses_names() {
    if E2fsck::find().is_none() {
        println!("SKIPPED: e2fsck is not installed");
        return;
    }
    let (_, failed) = known_on(&own(OwnKind::Ext2, DataMode::Ordered), 4);
    let lost = |line: &&String| line.contains("is gone") || line.contains("none of its names");
    assert!(failed.iter().any(|line| lost(&line)), "{failed:#?}");
}

/// Workloads of two operations, right on our file system, of which the judge once demanded too
/// much: the bytes and links of a file under another one's durable name (the first four); zeros in
/// a sector behind the end of a file whose size is older than its bytes.
#[test]
fn what_was_not_promised_is_not_demanded() {
    const NUMBERS: [u32; 6] = [34_200, 37_160, 81_200, 110_440, 215_280, 221_080];
    let names = NUMBERS.map(|number| format!("seq-2/{number}"));
    let subject = own(OwnKind::Ext4, DataMode::Ordered);
    let mut found = 0;
    for workload in ace::seq2(0, 40).filter(|workload| names.contains(&workload.name)) {
        let outcome = try_out(&subject, &workload, &Plan { seed: 1, ..plan(24) }).unwrap();
        assert_eq!(outcome.first, None, "{workload}");
        found += 1;
        // The judge is no weaker for it.
        let lying = own(OwnKind::Ext4, DataMode::Ordered).on_a_lying_disk();
        let outcome = try_out(&lying, &workload, &Plan { seed: 1, ..plan(24) }).unwrap();
        assert!(outcome.first.is_some(), "{workload}");
    }
    assert_eq!(found, NUMBERS.len());
}

/// One in five of ACE's workloads of one operation, one in 9973 of those of two; the soak runs
/// more.
#[test]
fn ace_finds_nothing() {
    let subject = own(OwnKind::Ext4, DataMode::Ordered);
    let (one, two) = (5usize.div_ceil(soak()), 9973usize.div_ceil(soak()));
    for workload in ace::seq1().step_by(one).chain(ace::seq2(0, two)) {
        let outcome = try_out(&subject, &workload, &plan(8)).unwrap();
        assert_eq!(outcome.first, None, "{workload}");
    }
}
