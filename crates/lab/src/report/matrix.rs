//! IOzone's tables by file size and record size: as the source draws them, a line a file system,
//! and as heat maps with every figure.

use maud::{Markup, PreEscaped, html};

use super::heat::{self, Heat, span};
use super::lines::{self, AxisSpec, LineSeries, Lines};
use crate::results::{GridCell, GridRow, Results, Spread, VariantInfo};

/// Everything there is of it; `None`: nothing was measured so.
pub(super) fn all(results: &Results) -> Option<Markup> {
    let tests = tests(results);
    (!tests.is_empty()).then(|| {
        html! {
            @for (configuration, variants) in configurations(results) {
                @if !configuration.is_empty() { h3 { (configuration) } }
                div.panels { @for test in &tests {
                    @if let Some(graph) = graph(results, test, &variants) {
                        figure { (PreEscaped(graph)) }
                    }
                } }
                @for test in &tests {
                    details open[*test == tests[0]] {
                        summary { (test) ": every figure" }
                        div.maps { @for chart in maps(results, test, &variants) {
                            figure { (PreEscaped(chart)) }
                        } }
                    }
                }
            }
        }
    })
}

fn tests(results: &Results) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in results.all::<GridRow>() {
        if !names.contains(&row.test.as_str()) {
            names.push(&row.test);
        }
    }
    names
}

/// Each configuration, in words, with the variants of it.
fn configurations(results: &Results) -> Vec<(String, Vec<&VariantInfo>)> {
    let of = |name: Option<&str>| -> Vec<&VariantInfo> {
        results.variants.iter().filter(|v| v.configuration.as_deref() == name).collect()
    };
    let named = results.configurations.iter().map(|c| (c.label.clone(), of(Some(&c.name))));
    let without = (String::new(), of(None));
    named.chain([without]).filter(|(_, variants)| !variants.is_empty()).collect()
}

/// The cells of a test and variant; of several seeds the median of each.
fn cells(results: &Results, test: &str, variant: &str) -> Vec<GridCell> {
    let own = |r: &&GridRow| r.test == test && r.variant == variant;
    let rows: Vec<&GridRow> = results.all::<GridRow>().filter(own).collect();
    let Some(first) = rows.first() else { return Vec::new() };
    let median = |(i, cell): (usize, &GridCell)| {
        let all: Vec<f64> = rows.iter().filter_map(|r| Some(r.cells.get(i)?.kb_per_s)).collect();
        GridCell { kb_per_s: Spread::of(&all).median(), ..cell.clone() }
    };
    first.cells.iter().enumerate().map(median).collect()
}

/// The source's kind of graph: files from the left to the right, and of each its records.
fn graph(results: &Results, test: &str, variants: &[&VariantInfo]) -> Option<String> {
    let all: Vec<(usize, &str, Vec<GridCell>)> = variants
        .iter()
        .enumerate()
        .map(|(i, v)| (i, v.name.as_str(), cells(results, test, &v.name)))
        .filter(|(_, _, cells)| !cells.is_empty())
        .collect();
    let longest = all.iter().map(|(_, _, cells)| cells).max_by_key(|cells| cells.len())?;
    let begins = |i: &usize| *i == 0 || longest[*i].file_kb != longest[i - 1].file_kb;
    let mut names: Vec<(usize, String)> =
        (0..longest.len()).filter(begins).map(|i| (i, size(longest[i].file_kb))).collect();
    // Names must not run into each other: about 40 units each.
    let room = longest.len() as f64 * 40.0 / 430.0;
    let mut last = f64::NEG_INFINITY;
    names.retain(|(i, _)| {
        let fits = *i as f64 - last >= room;
        last = if fits { *i as f64 } else { last };
        fits
    });
    let series = |(number, name, cells): &(usize, &str, Vec<GridCell>)| LineSeries {
        name: (*name).to_owned(),
        number: *number,
        points: cells.iter().enumerate().map(|(i, c)| (i as f64, c.kb_per_s)).collect(),
        marked: false,
    };
    let level = |mb: f64, what: &str| (mb * 1e6 / 1024.0, format!("medium {what}: {mb} MB/s"));
    let reads = test.contains("read");
    let levels = results.medium.iter().map(|m| match reads {
        true => level(m.read_mb_per_s, "reads"),
        false => level(m.write_mb_per_s, "writes"),
    });
    Some(lines::svg(&Lines {
        title: test.into(),
        description: format!(
            "Speed of {test} in kB/s, logarithmic, by file size and within it by record size; \
             every figure is in the heat maps"
        ),
        x: AxisSpec {
            steps: Some((longest.len(), names)),
            ..AxisSpec::linear("file size; between two of them its record sizes")
        },
        y: AxisSpec::logarithmic("kB/s"),
        series: all.iter().map(series).collect(),
        levels: levels.collect(),
        instants: vec![],
        at_least: (0.0, 0.0),
        size: (500.0, 320.0),
    }))
}

/// A heat map a variant, all with the same colours.
fn maps(results: &Results, test: &str, variants: &[&VariantInfo]) -> Vec<String> {
    let all: Vec<(&str, Vec<GridCell>)> =
        variants.iter().map(|v| (v.name.as_str(), cells(results, test, &v.name))).collect();
    let common = span(all.iter().flat_map(|(_, cells)| cells).map(|c| c.kb_per_s));
    all.iter()
        .filter(|(_, cells)| !cells.is_empty())
        .map(|(name, cells)| {
            let sizes = |of: fn(&GridCell) -> u64| {
                let mut sizes: Vec<u64> = cells.iter().map(of).collect();
                sizes.sort_unstable();
                sizes.dedup();
                sizes
            };
            let (files, records) = (sizes(|c| c.file_kb), sizes(|c| c.record_kb));
            let find = |file: u64, record: u64| {
                let cell = cells.iter().find(|c| c.file_kb == file && c.record_kb == record);
                cell.map(|c| c.kb_per_s)
            };
            let row = |file: &u64| records.iter().map(|r| find(*file, *r)).collect();
            heat::svg(&Heat {
                title: format!("{test}: {name}"),
                unit: "kB/s".into(),
                columns: ("record size".into(), records.iter().map(|r| size(*r)).collect()),
                rows: ("file".into(), files.iter().map(|f| size(*f)).collect()),
                values: files.iter().map(row).collect(),
                span: common,
            })
        })
        .collect()
}

fn size(kb: u64) -> String {
    if kb >= 1024 { format!("{}m", kb / 1024) } else { format!("{kb}k") }
}
