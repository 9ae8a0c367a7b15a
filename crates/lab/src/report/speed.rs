//! The speeds of benchmarks beside the published ones.

use super::bars::{Bar, HorizontalBars, svg};
use crate::results::{FilesRow, PeerRow, Results, SpeedRow, Spread, SumKind, VariantInfo};
use crate::table;

/// A chart a test: a bar a variant.
pub(super) fn panels(results: &Results) -> Vec<String> {
    table::tests(results).into_iter().map(|test| svg(&panel(results, test))).collect()
}

fn panel(results: &Results, test: &str) -> HorizontalBars {
    let parent = of_test(results, test).any(|r| r.figure == SumKind::Parent);
    let bar = |(series, name): (usize, &str)| {
        let rows = table::find(results, test, name);
        let mb = |figure: fn(&SpeedRow) -> Option<f64>| -> Vec<f64> {
            rows.iter().filter_map(|r| figure(r)).map(|kb| kb / 1024.0).collect()
        };
        let value = mb(|r| Some(r.kb_per_s));
        (!value.is_empty()).then(|| Bar {
            name: name.into(),
            series,
            value: Spread::of(&value),
            published: mb(|r| r.published_kb_per_s).first().copied(),
        })
    };
    let variants = table::measured(results).into_iter().enumerate();
    HorizontalBars {
        title: if parent { format!("{test} (parent)") } else { test.into() },
        unit: "MB/s".into(),
        rows: variants.filter_map(bar).collect(),
    }
}

/// A chart of the workload of files for each way to a file system: a bar a variant.
pub(super) fn of_files(results: &Results) -> Vec<String> {
    let chart = |way: &String| {
        let bar = |(series, variant): (usize, &VariantInfo)| {
            let rows = results.all::<FilesRow>();
            let own = rows.filter(|f| f.variant == variant.name && f.way() == *way);
            let speeds: Vec<Spread> = own.map(|f| f.operations_per_s).collect();
            let value = Spread::over(&speeds);
            let name = variant.name.clone();
            (!speeds.is_empty()).then_some(Bar { name, series, value, published: None })
        };
        let rows = results.variants.iter().enumerate().filter_map(bar).collect();
        svg(&HorizontalBars { title: way.clone(), unit: "calls/s".into(), rows })
    };
    results.ways().iter().map(chart).collect()
}

/// A chart a test of the runs in real time beside the kernel's: a bar a variant.
pub(super) fn of_peers(results: &Results) -> Vec<String> {
    let mut tests: Vec<&str> = results.peers.iter().map(|p| p.test.as_str()).collect();
    tests.dedup();
    let chart = |test: &&str| {
        let rows = results.peers.iter().filter(|p| p.test == *test).enumerate();
        let bar = |(series, row): (usize, &PeerRow)| Bar {
            name: row.variant.clone(),
            series,
            value: row.kb_per_s.map(|kb| kb / 1024.0),
            published: None,
        };
        let rows = rows.map(bar).collect();
        svg(&HorizontalBars { title: (*test).into(), unit: "MB/s".into(), rows })
    };
    tests.iter().map(chart).collect()
}

fn of_test<'r>(results: &'r Results, test: &str) -> impl Iterator<Item = &'r SpeedRow> {
    results.all::<SpeedRow>().filter(move |r| r.test == test)
}

/// Whether the source says something of any of them.
pub(super) fn has_published(results: &Results) -> bool {
    results.all::<SpeedRow>().any(|r| r.published_kb_per_s.is_some())
}
