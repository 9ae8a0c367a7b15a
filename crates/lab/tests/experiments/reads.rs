//! The scenario of ext3's data modes at a small size: what is measured stands in reads.jsonl, a row
//! a line (`STEADFAST_PIN=1 cargo test -p steadfast-lab --test experiments reads` writes it anew),
//! and what the scenario is about holds at that size too.

use std::path::Path;

use steadfast_lab::results::{QueueSeries, ReadRow, Results};
use steadfast_lab::scenario::{ReadFile, Scenario};
use steadfast_lab::{LabError, RunOptions, report, run, table};

use crate::golden::assert_tables;

/// Files of 2 MiB, one read in each place.
fn small(names: &[&str]) -> Scenario {
    let mut scenario = Scenario::find("ext3-data-modes").unwrap();
    scenario.variants.retain(|v| names.contains(&v.name.as_str()));
    assert_eq!(scenario.variants.len(), names.len());
    let reads = scenario.workload.read_under_write.as_mut().unwrap();
    (reads.file_mb, reads.quick_trials, reads.idle_trials) = (2, Some(1), 1);
    reads.places = vec![ReadFile::Other];
    reads.settle_s = 4.0;
    scenario
}

fn measured(scenario: &Scenario) -> Results {
    let options = RunOptions { cuts: Some(0), ..RunOptions::default() };
    run(scenario, &options, &|_, _| ()).unwrap()
}

fn row<'r>(results: &'r Results, variant: &str) -> &'r ReadRow {
    results.only().of::<ReadRow>().find(|r| r.variant == variant).unwrap()
}

/// Numbers to six digits, more than any table shows.
fn line(r: &ReadRow) -> String {
    format!(
        "{} {}: idle {:.5e} s, beside the writer {:.5e} s, writer {:.5e} kB/s",
        r.variant,
        r.test,
        r.idle_seconds.p50(),
        r.seconds.p50(),
        r.written_kb_per_s
    )
}

#[test]
fn a_reader_waits_behind_the_queue_and_not_behind_the_log() {
    let scenario = small(&["writeback", "journal", "writeback-deadline", "recommended"]);
    let results = measured(&scenario);
    let seconds = |variant: &str| row(&results, variant).seconds.p50();
    // (So small a file is read in few steps, each of which meets the writer anywhere.)
    assert!(seconds("writeback") > 4.0 * seconds("journal"), "{results:#?}");
    assert!(seconds("writeback") > 4.0 * seconds("writeback-deadline"), "{results:#?}");
    assert!(seconds("recommended") < seconds("writeback-deadline"), "{results:#?}");
    let most = |variant: &str| {
        let queue = results.only().of::<QueueSeries>().find(|q| q.variant == variant).unwrap();
        let mut depths = queue.write_kb.clone();
        depths.sort_by(f64::total_cmp);
        depths[depths.len() / 2]
    };
    assert!(most("writeback") > 10_000.0 && most("journal") < 3000.0, "{results:#?}");

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/experiments/reads.jsonl");
    let found: Vec<String> = results.only().of::<ReadRow>().map(line).collect();
    if std::env::var_os("STEADFAST_PIN").is_some() {
        std::fs::write(&path, found.join("\n") + "\n").unwrap();
    }
    let pinned = std::fs::read_to_string(&path).unwrap();
    assert_eq!(pinned.lines().collect::<Vec<_>>(), found, "if on purpose: STEADFAST_PIN=1");

    assert_tables("ext3-data-modes", &results);
    // The same seed gives the same bytes, and what was found is reported.
    let again = measured(&scenario);
    let json = |r: &Results| steadfast_lab::results::summary::json(r).unwrap();
    assert_eq!(json(&results), json(&again));
    let shown = table::text(&results, table::Layout::default());
    for part in ["times idle", "writer", "published", "recommended"] {
        assert!(shown.contains(part), "no {part:?} in:\n{shown}");
    }
    assert!(shown.lines().all(|l| l.chars().count() <= 80), "{shown}");
    let chart = report::chart_svg(&results);
    // Of each variant two lines, and each in the legend.
    let variants = results.variants.len();
    assert_eq!(chart.matches("<polyline").count(), 4 * variants, "{chart}");
}

#[test]
fn what_has_no_room_is_refused() {
    let mut scenario = small(&["journal"]);
    scenario.workload.read_under_write.as_mut().unwrap().quick_trials = Some(100_000);
    let options = RunOptions { cuts: Some(0), ..RunOptions::default() };
    match run(&scenario, &options, &|_, _| ()) {
        Err(LabError::Scenario { why, .. }) => {
            assert!(why.to_string().contains("no room"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}
