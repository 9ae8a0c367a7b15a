//! IOzone's tables by file size and record size: as the source draws them, a line a file system,
//! and as heat maps with every figure.

use maud::{Markup, PreEscaped, html};

use super::plot::{Frame, Plot};
use super::scale::Scale;
use super::svg::{Drawing, compact};
use super::theme::HEATS;
use crate::results::{GridCell, GridRow, Results, Spread, VariantInfo, distinct};

/// Everything there is of it; `None`: nothing was measured so.
pub(super) fn all(results: &Results) -> Option<Markup> {
    let tests = tests(results);
    (!tests.is_empty()).then(|| {
        html! {
            @for (configuration, variants) in configurations(results) {
                @if !configuration.is_empty() { h3 { (configuration) } }
                div.panels { @for test in &tests {
                    @if let Some(graph) = graph(results, test, &variants) {
                        figure { (PreEscaped(graph.svg)) }
                    }
                } }
                @for test in &tests {
                    details open[*test == tests[0]] {
                        summary { (test) ": every figure" }
                        div.maps { @for chart in maps(results, test, &variants) {
                            figure { (PreEscaped(chart.svg)) }
                        } }
                    }
                }
            }
        }
    })
}

fn tests(results: &Results) -> Vec<&str> {
    distinct(results.all::<GridRow>().map(|row| row.test.as_str()))
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
fn graph(results: &Results, test: &str, variants: &[&VariantInfo]) -> Option<Drawing> {
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
    let level = results.medium.iter().map(|m| match test.contains("read") {
        true => (m.read_mb_per_s, "reads"),
        false => (m.write_mb_per_s, "writes"),
    });
    let level = level.map(|(mb, what)| (mb * 1e6 / 1024.0, format!("medium {what}: {mb} MB/s")));
    let levels: Vec<(f64, String)> = level.collect();
    let speeds = all.iter().flat_map(|(_, _, cells)| cells).map(|c| c.kb_per_s);
    let legend: Vec<(usize, &str)> = all.iter().map(|(i, name, _)| (*i, *name)).collect();
    let mut plot = Plot::new(Frame {
        title: test,
        description: &format!(
            "Speed of {test} in KiB/s, logarithmic, by file size and within it by record size; \
             every figure is in the heat maps"
        ),
        x: (
            Scale::Names { places: longest.len(), names },
            "file size; between two of them its record sizes",
        ),
        y: (Scale::of(true, speeds.chain(levels.iter().map(|l| l.0))), "KiB/s"),
        legend: (&legend, true),
        width: 500.0,
        height: 210.0,
        right: 22.0,
    });
    levels.iter().for_each(|(level, name)| plot.level(*level, name));
    for (number, name, cells) in &all {
        let points = cells.iter().enumerate().map(|(i, c)| (i as f64, c.kb_per_s));
        plot.line(&points.collect::<Vec<_>>(), *number, name);
    }
    Some(plot.end())
}

/// The least and the most of figures above zero.
pub(super) fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|v| *v > 0.0 && v.is_finite()).fold(None, |span, v| {
        let (least, most) = span.unwrap_or((v, v));
        Some((v.min(least), v.max(most)))
    })
}

/// Which of the colours a figure has: by its logarithm, as speeds differ by their ratio.
pub(super) fn heat(value: f64, span: Option<(f64, f64)>) -> usize {
    let Some((least, most)) = span.filter(|(least, most)| least < most) else { return 0 };
    let share = (value.max(least) / least).ln() / (most / least).ln();
    // OK to cast: from 0 to 1, but for the very last.
    ((share.clamp(0.0, 1.0) * HEATS as f64) as usize).min(HEATS - 1)
}

/// A heat map a variant, all with the same colours.
fn maps(results: &Results, test: &str, variants: &[&VariantInfo]) -> Vec<Drawing> {
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
            heat_map(&format!("{test}: {name}"), cells, common, &files, &records)
        })
        .collect()
}

/// A square a pair of sizes, darker where there is more, with the figure in it.
fn heat_map(
    title: &str,
    cells: &[GridCell],
    colours: Option<(f64, f64)>,
    files: &[u64],
    records: &[u64],
) -> Drawing {
    let own = span(cells.iter().map(|c| c.kb_per_s));
    let description = own.map_or("nothing was measured".into(), |(least, most)| {
        format!("from {} to {} KiB/s", compact(least), compact(most))
    });
    let names = |sizes: &[u64]| {
        let names: Vec<String> = sizes.iter().map(|s| size(*s)).collect();
        Scale::names(names.iter().map(String::as_str))
    };
    let mut plot = Plot::new(Frame {
        title,
        description: &description,
        x: (names(records), &format!("record size; {description}")),
        y: (names(files), "file"),
        legend: (&[], false),
        width: (64.0 + 37.0 * records.len() as f64).max(360.0),
        height: 20.0 * files.len() as f64,
        right: 4.0,
    });
    for cell in cells {
        let (file, record, kb) = (cell.file_kb, cell.record_kb, cell.kb_per_s);
        let place = |sizes: &[u64], of| sizes.iter().position(|s| *s == of).unwrap_or(0);
        let tooltip = format!("{}, {}: {kb:.0} KiB/s", size(file), size(record));
        let at = (place(records, record), place(files, file));
        plot.cell(at, heat(kb, colours), &compact(kb), &tooltip);
    }
    plot.end()
}

fn size(kb: u64) -> String {
    if kb >= 1024 { format!("{}m", kb / 1024) } else { format!("{kb}k") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_darker_and_every_figure_is_written() {
        let cell = |record_kb, file_kb, kb_per_s| GridCell {
            file_kb,
            record_kb,
            kb_per_s,
            only_the_cache: false,
        };
        let cells = [cell(4, 64, 10.0), cell(4, 128, 100.0), cell(8, 128, 10_000.0)];
        let common = span(cells.iter().map(|c| c.kb_per_s));
        let s = heat_map("write", &cells, common, &[64, 128], &[4, 8]).svg;
        assert_eq!(s.matches("class=\"h").count(), 3, "one is not measured");
        assert!(s.contains("class=\"h0\"") && s.contains("class=\"h7\"") && s.contains(">10k<"));
        assert!(s.contains("128k, 8k: 10000 KiB/s") && s.contains("from 10 to 10k KiB/s"));
        let same = (heat(5.0, None), heat(5.0, Some((5.0, 5.0))), heat(1.0, Some((5.0, 9.0))));
        assert_eq!(same, (0, 0, 0));
        assert_eq!(span([0.0, f64::NAN].into_iter()), None);
        assert!(heat_map("", &[], None, &[], &[]).svg.contains("nothing was measured"));
    }
}
