//! Many cases: plan, results and merge are streams.

use steadfast_sweep::{PlanHead, ShardRun, SweepError, write_plan};

use crate::common::{Sweep, square};

#[test]
fn cases_in_more_files_than_are_open_at_once() {
    let sweep = Sweep::done(10_000, 300);
    let mut number = 0;
    let merged = steadfast_sweep::merge(&sweep.plan, &[sweep.results()], &mut |case, outcome| {
        assert_eq!(outcome, square(&case));
        number += 1;
        Ok(())
    });
    assert_eq!((number, merged.unwrap().cases), (10_000, 10_000));
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
