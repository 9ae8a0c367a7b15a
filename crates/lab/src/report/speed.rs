//! The speeds of benchmarks beside the published ones.

use super::plot::{Frame, Plot, ROW, widest};
use super::scale::Scale;
use super::svg::{Drawing, compact};
use super::theme::COLOURS;
use crate::results::{FilesRow, PeerRow, Results, RowContext, SpeedRow, Spread, VariantInfo};
use crate::table;

/// A bar that lies in its row.
struct Bar<'a> {
    /// Before it.
    name: &'a str,
    /// Which colour.
    series: usize,
    /// The median is drawn, and the range as a line across the bar's end.
    value: Spread,
    /// What the source says, if it says something: a mark across the bar.
    published: Option<f64>,
}

fn figure(v: f64) -> String {
    if (1.0..1e4).contains(&v) { format!("{v:.1}") } else { compact(v) }
}

/// Bars with their figures, from zero. Of more than there are colours all have one: each has its
/// name beside it, and two of one colour would seem to belong together.
fn bars(title: &str, unit: &str, rows: Vec<Bar<'_>>) -> Drawing {
    let many = rows.len() > COLOURS;
    let label = |bar: &Bar<'_>| {
        let value = figure(bar.value.median());
        bar.published.map_or(value.clone(), |p| format!("{value} | {}", figure(p)))
    };
    let in_words = |bar: &Bar<'_>| {
        let published = bar.published.map(|p| format!(", published {}", figure(p)));
        let value = figure(bar.value.median());
        format!("{}: {value} {unit}{}", bar.name, published.unwrap_or_default())
    };
    let labels: Vec<String> = rows.iter().map(label).collect();
    let words: Vec<String> = rows.iter().map(in_words).collect();
    let all = rows.iter().flat_map(|bar| bar.published.into_iter().chain([bar.value.max()]));
    let mut plot = Plot::new(Frame {
        title,
        description: &words.join("; "),
        x: (Scale::of(false, all), unit),
        y: (Scale::names(rows.iter().map(|bar| bar.name)), ""),
        legend: (&[], false),
        width: 500.0,
        height: ROW * rows.len() as f64,
        right: widest(labels.iter().map(String::as_str)) + 14.0,
    });
    for (i, bar) in rows.iter().enumerate() {
        let series = if many { 0 } else { bar.series };
        plot.bar(i, (0.0, bar.value.median()), series, &words[i]);
        plot.range(i, &bar.value);
        if let Some(published) = bar.published {
            plot.upright(i, published, &words[i]);
        }
        plot.row_text(i, &labels[i]);
    }
    plot.end()
}

/// A chart a test: a bar a variant.
pub(super) fn panels(results: &Results) -> Vec<Drawing> {
    table::tests(results).into_iter().map(|test| panel(results, test)).collect()
}

fn panel<'r>(results: &'r Results, test: &str) -> Drawing {
    let bar = |(series, name): (usize, &'r str)| {
        let rows = table::find(results, test, name);
        let mib = |figure: fn(&SpeedRow) -> Option<f64>| -> Vec<f64> {
            rows.iter().filter_map(|r| figure(r)).map(|kb| kb / 1024.0).collect()
        };
        let value = mib(|r| Some(r.kb_per_s));
        (!value.is_empty()).then(|| Bar {
            name,
            series,
            value: Spread::of(&value),
            published: mib(|r| r.published_kb_per_s).first().copied(),
        })
    };
    let variants = table::measured(results).into_iter().enumerate();
    bars(&results.test_label(test), "MiB/s", variants.filter_map(bar).collect())
}

/// A chart of the workload of files for each way to a file system: a bar a variant.
pub(super) fn of_files<'r>(results: &'r Results) -> Vec<Drawing> {
    let chart = |way: &String| {
        let bar = |(series, variant): (usize, &'r VariantInfo)| {
            let rows = results.all::<FilesRow>();
            let own = rows.filter(|f| f.variant == variant.name && f.way() == *way);
            let speeds: Vec<Spread> = own.map(|f| f.operations_per_s).collect();
            let value = Spread::over(&speeds);
            let name = &variant.name;
            (!speeds.is_empty()).then_some(Bar { name, series, value, published: None })
        };
        let rows = results.variants.iter().enumerate().filter_map(bar).collect();
        bars(way, "calls/s", rows)
    };
    results.ways().iter().map(chart).collect()
}

/// A chart a test of the runs in real time beside the kernel's: a bar a variant.
pub(super) fn of_peers<'r>(results: &'r Results) -> Vec<Drawing> {
    let mut tests: Vec<&str> = results.peers.iter().map(|p| p.test.as_str()).collect();
    tests.dedup();
    let chart = |test: &&str| {
        let rows = results.peers.iter().filter(|p| p.test == *test).enumerate();
        let bar = |(series, row): (usize, &'r PeerRow)| Bar {
            name: &row.variant,
            series,
            value: row.kb_per_s.map(|kb| kb / 1024.0),
            published: None,
        };
        let rows = rows.map(bar).collect();
        bars(test, "MiB/s", rows)
    };
    tests.iter().map(chart).collect()
}

/// Whether the source says something of any of them.
pub(super) fn has_published(results: &Results) -> bool {
    results.all::<SpeedRow>().any(|r| r.published_kb_per_s.is_some())
}
