//! The data-at-risk scenario, small: what is known of each mode must show in its figures.

use steadfast_devices::model::ModelParams;
use steadfast_lab::results::{AgeSeries, FilesRow, Point, Results, RiskRow};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::table::{self, Layout};
use steadfast_lab::{RunOptions, run};

use crate::golden::assert_tables;
use crate::schema::assert_described;
use steadfast_setup::DeviceSpec;

/// A soak makes so many times as many cuts.
fn soak() -> u64 {
    std::env::var("STEADFAST_SOAK").ok().and_then(|f| f.parse().ok()).unwrap_or(1)
}

/// The scenario's variants of ours, on a smaller disk, for a shorter time.
fn small() -> Scenario {
    let mut scenario = Scenario::find("data-at-risk").unwrap();
    scenario.variants.retain(|v| v.kernel.is_none() && v.fuse.is_none());
    let files = scenario.workload.files.as_mut().unwrap();
    (files.seconds, files.pause_ms) = (2.5, 2.5);
    (files.log_kb, files.table_kb) = (64, 256);
    let ssd = scenario.topology.devices.values_mut().filter_map(DeviceSpec::model_mut).find_map(
        |model| match model {
            ModelParams::Ssd(disk) => Some(disk),
            _ => None,
        },
    );
    let disk = ssd.expect("the scenario's disk is an SSD");
    disk.sectors = (64 << 20) / 512;
    scenario
}

fn results(scenario: &Scenario, cuts: u64) -> Results {
    let options = RunOptions { cuts: Some(cuts), seed: 7, ..RunOptions::default() };
    run(scenario, &options, &|_, _| ()).unwrap()
}

#[test]
fn known_truths_show_up() {
    let scenario = small();
    let results = results(&scenario, 40 * soak());
    assert_described(&results);
    assert_tables("data-at-risk", &results);
    let row = |name: &str| -> &RiskRow {
        results.only().of::<RiskRow>().find(|r| r.variant == name).unwrap()
    };
    for r in results.only().of::<RiskRow>() {
        assert_eq!(
            (r.broken_promises, r.damage.events, r.manual_repair.events),
            (0, 0, 0),
            "{r:#?}"
        );
        assert_eq!(r.e2fsck_damage, 0, "{r:#?}");
        // data=writeback commits where a block is without waiting for what is in it.
        assert!(r.stale_bytes == 0 || r.variant == "writeback", "{r:#?}");
        let lying = r.control_flush_ignored.as_ref().unwrap();
        assert!(lying.broken_promises > 0, "a lying cache breaks promises everywhere: {r:#?}");
        let omitted = r.control_flushes_omitted.as_ref().unwrap();
        assert!(omitted.broken_promises > 0, "a flush that is missing is seen: {r:#?}");
        assert!(r.exposure_operations.max() > 0.0 && r.exposure_ms.max() > 0.0, "{r:#?}");
    }
    // A rename is committed before what was written to the file, unless somebody sees to it.
    assert!(row("writeback").empty_after_replace > 0, "{:#?}", row("writeback"));
    assert_eq!(row("ordered").empty_after_replace, 0, "{:#?}", row("ordered"));
    // Overwriting in place is torn; what goes through the log or to a new place is not.
    let in_place = row("ordered").torn_writes + row("writeback").torn_writes;
    assert!(in_place > 0, "{:#?}", row("ordered"));
    assert_eq!(row("journal").torn_units, 0, "{:#?}", row("journal"));
    let transact = row("transact");
    assert_eq!((transact.torn_writes, transact.torn_units), (0, 0), "{transact:#?}");
    for mode in ["journal", "transact"] {
        let r = row(mode);
        assert_eq!((r.order_violations, r.empty_after_rename), (0, 0), "{r:#?}");
    }
    assert_eq!(results.only().of::<FilesRow>().count(), 6);
    for f in results.only().of::<FilesRow>() {
        assert!(
            f.operations > 500 && f.fsyncs > 50 && f.operations_per_s.median() > 100.0,
            "{f:#?}"
        );
        assert!(f.fsync_ms.p50() > 0.0 && f.elapsed_seconds >= 2.5, "{f:#?}");
    }
    assert_eq!(results.only().of::<Point>().count(), 6);
    // How old what each cut took was, in the order of time.
    for series in results.only().of::<AgeSeries>() {
        assert!(series.at_ms.is_sorted() && series.at_ms.len() == series.age_ms.len());
        assert!(series.at_ms.iter().zip(&series.age_ms).all(|(at, age)| age <= at), "{series:?}");
        assert!(series.at_ms.last().is_some_and(|at| *at > 2000), "{series:?}");
    }
    assert_eq!(results.only().of::<AgeSeries>().count(), 6);
    // Readable at 80 columns, with all columns too.
    for wide in [false, true] {
        let text = table::text(&results, Layout { wide, ..Layout::default() });
        assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 80), "{text}");
    }
    let html = steadfast_lab::report::html(&results);
    assert!(html.contains("speed against exposure") && html.contains("empty after rename"));
    assert!(html.contains("age of the oldest that was lost"));
    assert!(html.contains("steadfast lab run data-at-risk.toml --cuts"), "{html}");
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let mut scenario = small();
    scenario.variants.retain(|v| v.name == "ordered");
    scenario.workload.files.as_mut().unwrap().seconds = 0.5;
    assert_eq!(results(&scenario, 4), results(&scenario, 4));
}
