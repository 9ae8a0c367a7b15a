//! Runs that were killed: at every byte of what they write, and beside another attempt.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;

use steadfast_sweep::{
    CaseCosts, CaseOutcome, EndedCase, MergeFault, ShardRun, SweepCase, SweepError, SweepProgress,
    costs,
};

use crate::common::{Sweep, square};

/// The plan's file too: a shorter one is refused, not taken for a smaller sweep.
#[test]
fn a_plan_cut_at_any_byte_is_refused() {
    let sweep = Sweep::new(4, 2, "a");
    let text = fs::read(sweep.plan.path()).unwrap();
    for end in 0..text.len() {
        fs::write(sweep.plan.path(), &text[..end]).unwrap();
        let opened = steadfast_sweep::PlanFile::open(sweep.plan.path());
        assert!(matches!(opened, Err(SweepError::Plan { .. })), "{end}: {opened:?}");
    }
}

#[test]
fn a_file_cut_at_any_byte_is_resumed() {
    let sweep = Sweep::done(6, 1);
    let text = fs::read(sweep.file(0)).unwrap();
    let expected = sweep.expected();
    let part = sweep.results().join("shard-000000.host-1-1.part");
    for end in 0..=text.len() {
        // What a killed attempt leaves, and a whole file that somebody has cut off.
        for file in [&part, &sweep.file(0)] {
            fs::remove_file(sweep.file(0)).unwrap_or_default();
            fs::write(file, &text[..end]).unwrap();
            let mut ran = 0;
            let run = ShardRun::new(&sweep.plan, 0, &sweep.results()).run(|case| {
                ran += 1;
                square(case)
            });
            if *file == sweep.file(0) && end < text.iter().position(|b| *b == b'\n').unwrap() + 1 {
                // It has lost what says whose it is: that is for a person to decide.
                assert!(matches!(run, Err(SweepError::Folder(_))), "{end}: {run:?}");
                continue;
            }
            let ended = run.unwrap();
            let lines = text[..end].iter().filter(|b| **b == b'\n').count() as u64;
            assert_eq!((ended.resumed, ran), (lines.saturating_sub(1).min(6), 6 - ended.resumed));
            assert_eq!(sweep.merged().unwrap(), expected, "{end}");
            assert_eq!(fs::read_dir(sweep.results()).unwrap().count(), 1, "{end}");
        }
    }
}

#[test]
fn what_was_altered_is_run_again() {
    let sweep = Sweep::done(6, 1);
    let text = sweep.text(0);
    let part = sweep.results().join("shard-000000.host-1-1.part");
    fs::remove_file(sweep.file(0)).unwrap();
    fs::write(part, text.replace("\"result\":9,", "\"result\":8,")).unwrap();
    let ended = ShardRun::new(&sweep.plan, 0, &sweep.results()).run(square).unwrap();
    assert_eq!((ended.resumed, ended.cases), (3, 6));
    assert_eq!(sweep.merged().unwrap(), sweep.expected());
}

/// Whoever has only so much time goes on another night.
#[test]
fn what_was_stopped_goes_on() {
    let sweep = Sweep::new(6, 1, "a");
    let results = sweep.results();
    for night in 1..=3 {
        let ran = Cell::new(0);
        let run = ShardRun::new(&sweep.plan, 0, &results).until(|| ran.get() == 2);
        let ended = run.run(|case| {
            ran.set(ran.get() + 1);
            square(case)
        });
        let ended = ended.unwrap();
        assert_eq!((ended.resumed, ended.is_whole), (2 * night - 2, night == 3), "{ended:?}");
        let mut seen = BTreeMap::new();
        let take = &mut |end: EndedCase| drop(seen.insert(end.case, end.outcome));
        SweepProgress::new(&sweep.plan, &results).ended(take).unwrap();
        assert_eq!(seen.len() as u64, 2 * night);
        assert!(sweep.expected().iter().all(|(n, o)| seen.get(n).is_none_or(|own| own == o)));
    }
    assert_eq!(sweep.merged().unwrap(), sweep.expected());
    assert_eq!(fs::read_dir(&results).unwrap().count(), 1);
}

/// A node that was thought lost goes on: it and its replacement do not meet in one file.
#[test]
fn two_attempts_at_once_do_no_harm() {
    let sweep = Sweep::new(6, 1, "a");
    let results = sweep.results();
    let mut number = 0;
    let slow = ShardRun::new(&sweep.plan, 0, &results).on_host("lost").run(|case| {
        number += 1;
        if number == 3 {
            let other = ShardRun::new(&sweep.plan, 0, &results).on_host("other").run(square);
            assert_eq!(other.unwrap().resumed, 2);
            assert_eq!(sweep.merged().unwrap(), sweep.expected());
        }
        square(case)
    });
    // Its file was taken away.
    assert!(matches!(slow, Err(SweepError::Io { .. })), "{slow:?}");
    assert_eq!(sweep.merged().unwrap(), sweep.expected());
    // A shard that is whole is not run again.
    let again = ShardRun::new(&sweep.plan, 0, &results).run(|_| panic!("it is there")).unwrap();
    assert_eq!((again.resumed, again.cases), (6, 6));
}

#[test]
fn unlike_results_of_two_attempts_are_not_resumed() {
    let sweep = Sweep::done(6, 1);
    let text = sweep.text(0);
    fs::rename(sweep.file(0), sweep.results().join("shard-000000.a-1-1.part")).unwrap();
    let wrong = |case: &SweepCase| match case.name.as_str() {
        "n-2" => CaseOutcome::Failed("no memory".into()),
        _ => square(case),
    };
    let other = sweep.path().join("other");
    fs::create_dir(&other).unwrap();
    let failed = ShardRun::new(&sweep.plan, 0, &other).run(wrong).unwrap().failed;
    assert_eq!(failed, 1);
    let manifest = text.lines().last().unwrap();
    let unlike = fs::read_to_string(other.join("shard-000000.jsonl")).unwrap();
    fs::write(sweep.results().join("shard-000000.b-1-1.part"), unlike.replace(manifest, ""))
        .unwrap();
    let run = ShardRun::new(&sweep.plan, 0, &sweep.results()).run(square);
    let Err(SweepError::Folder(fault)) = run else { panic!("{run:?}") };
    assert!(matches!(*fault, MergeFault::Unlike { .. }), "{fault}");
}

#[test]
fn progress_is_counted_from_the_files_while_they_grow() {
    let sweep = Sweep::new(20, 2, "a");
    let results = sweep.results();
    let mut progress = SweepProgress::new(&sweep.plan, &results);
    assert_eq!(progress.look().unwrap().done, 0);
    sweep.run(0);
    let mut number = 0;
    ShardRun::new(&sweep.plan, 1, &results)
        .run(|case| {
            let done = progress.look().unwrap();
            assert_eq!((done.done, done.failed), (10 + number, number.min(1)));
            assert_eq!((done.shards_done, done.shards_begun, done.cases), (1, 2, 20));
            number += 1;
            if number == 1 { CaseOutcome::Failed("no".into()) } else { square(case) }
        })
        .unwrap();
    let done = progress.look().unwrap();
    assert_eq!((done.done, done.failed, done.shards_done), (20, 1, 2));
}

#[test]
fn measured_times_deal_the_cases() {
    let sweep = Sweep::done(20, 2);
    assert_eq!(costs(&[sweep.results()]).unwrap().known(), 20);
    let mut costs = CaseCosts::default();
    (0..20).for_each(|n| costs.add(&format!("n-{n}"), if n == 4 { 100.0 } else { 1.0 }));
    let head = steadfast_sweep::PlanHead::new("squares", crate::common::program("a"), 2);
    let mut text = Vec::new();
    steadfast_sweep::write_plan(&head, || crate::common::cases(20), Some(&costs), &mut text)
        .unwrap();
    let path = sweep.path().join("dealt.json");
    fs::write(&path, text).unwrap();
    let plan = steadfast_sweep::PlanFile::open(&path).unwrap();
    let shard = plan.find("n-4").unwrap().shard;
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches(&format!("\"shard\":{shard},")).count(), 1);
}
