//! Many cases: plan, results and merge are streams.

#![allow(clippy::print_stdout, reason = "figures are for people")]

use std::fs;
use std::time::Instant;

use steadfast_sweep::{PlanHead, ShardRun, SweepError, write_plan};

use crate::common::{Sweep, square};

/// Plans, runs and merges; prints what each took.
fn stream(count: u64, shards: u32) {
    let begun = Instant::now();
    let sweep = Sweep::new(count, shards, "a");
    println!("{count} cases in {shards} shards: planned in {:.1?}", begun.elapsed());
    // One pass over the plan for all shards would be no run of a shard: of many only some are run
    // in turn, and the others' files are not needed.
    let begun = Instant::now();
    (0..shards).for_each(|shard| sweep.run(shard));
    println!("run in {:.1?}", begun.elapsed());
    let begun = Instant::now();
    let mut number = 0;
    let merged = steadfast_sweep::merge(&sweep.plan, &[sweep.results()], &mut |case, outcome| {
        assert_eq!(outcome, square(&case));
        number += 1;
        Ok(())
    });
    assert_eq!((number, merged.unwrap().cases), (count, count));
    println!("merged in {:.1?}", begun.elapsed());
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("{}", peak.unwrap_or_default());
}

#[test]
fn twenty_thousand_cases_in_more_files_than_are_open_at_once() {
    stream(20_000, 300);
}

/// `cargo test --release -p steadfast-sweep --test many -- --ignored --nocapture`
#[test]
#[ignore = "figures of docs/many-machines.md: half a minute and some hundred MB of disk"]
fn a_million_cases() {
    stream(1_000_000, 16);
}

#[test]
fn shards_that_would_be_empty_are_refused() {
    let plan = |cases, shards| {
        let head = PlanHead::new("squares", crate::common::program("a"), shards);
        write_plan(&head, || crate::common::cases(cases), None, &mut Vec::new())
    };
    for (cases, shards) in [(0, 1), (3, 4), (3, 0), (1, 100_001)] {
        let planned = plan(cases, shards);
        assert!(matches!(planned, Err(SweepError::Unplannable(_))), "{cases} in {shards}");
    }
    assert!(plan(3, 3).is_ok());
}

#[test]
fn a_shard_that_is_not_there_is_refused() {
    let sweep = Sweep::new(3, 2, "a");
    let run = ShardRun::new(&sweep.plan, 2, &sweep.results()).run(square);
    assert!(matches!(run, Err(SweepError::NoSuch(_))));
    assert!(matches!(sweep.plan.find("n-3"), Err(SweepError::NoSuch(_))));
}
