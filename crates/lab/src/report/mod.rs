//! The HTML report: one self-contained file.

pub mod chart;
pub mod scatter;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::results::{Percentiles, Point, Results, Row, Spread, VariantInfo};
use crate::table::{self, Grid};
use chart::{Bars, Series};
use scatter::Scatter;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0;
        font-size: 13px; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
th { border-bottom: 2px solid #888; }
td.bad { color: #b00020; font-weight: 600; }
code { background: #f4f4f4; padding: .1rem .3rem; }
svg { width: 100%; height: auto; }
.alarm { color: #b00020; font-weight: 600; }
.note { background: #fff8e1; border-left: 4px solid #e69f00; padding: .4rem .8rem; }
";

/// The whole report.
pub fn html(results: &Results) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (results.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (results.title) }
                (intro(results))
                @if !results.notes.is_empty() {
                    h2 { "Notes" }
                    @for note in &results.notes { p.note.alarm[note.alarm] { (note.text) } }
                }
                @for chart in charts(results) { (PreEscaped(chart)) }
                @for grid in table::grids(results) { (grid_table(&grid)) }
                (findings(results))
                p { "Made by steadfast. Seeds " (seeds(results))
                    ": the same command with the same seeds gives the same figures. Where there "
                    "are several, each figure is their median, with the range in brackets." }
            }
        }
    };
    page.into_string()
}

fn intro(results: &Results) -> Markup {
    html! {
        p { "Workload: " code {
            (results.command)
        } }
        @if let Some(cut) = &results.risk_command {
            p { "Power cuts during: " code { (cut) } }
        }
        @if let Some(source) = &results.source { p { "Published figures: " (source) "." } }
        table {
            thead { tr { th { "variant" } th { "what it is" } th { "devices" } th { "mount" }
                         th { "time of the run" } } }
            tbody {
                @for v in &results.variants {
                    tr {
                        td { (v.name) } td { (v.label) } td { (v.devices.join("; ")) }
                        td { @if let Some(kernel) = &v.kernel { "Linux " (kernel) " " }
                             code { (v.mount) } }
                        td { (time_of(results, v)) }
                    }
                }
            }
        }
    }
}

/// How long a variant's run was, by which clock; of several, the first seed's.
fn time_of(results: &Results, variant: &VariantInfo) -> String {
    let run = results.only();
    if let Some(took) = run.took.iter().find(|t| t.variant == variant.name) {
        return format!("{:.1} s, virtual clock", took.virtual_seconds);
    }
    match run.files.iter().find(|f| f.variant == variant.name) {
        Some(f) => format!("{:.1} s, {} clock", f.elapsed_seconds, f.clock.name()),
        None if results.peers.iter().any(|p| p.variant == variant.name) => "wall clock".into(),
        None if variant.kernel.is_some() => "left out".into(),
        None => "cut only".into(),
    }
}

fn seeds(results: &Results) -> String {
    results.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// The charts that the results have figures for.
fn charts(results: &Results) -> Vec<String> {
    let run = results.only();
    let mut charts = Vec::new();
    if !run.rows.is_empty() {
        charts.push(chart::svg(&speed_chart(results)));
    }
    if !run.risk.is_empty() {
        charts.push(chart::svg(&exposure_chart(results)));
    }
    if !run.speed_and_exposure.is_empty() {
        charts.push(scatter::svg(&exposure_against_speed(results)));
    }
    charts
}

/// The chart of the speeds: bars of every test, or the points of the variants.
pub fn chart_svg(results: &Results) -> String {
    if results.only().rows.is_empty() {
        scatter::svg(&exposure_against_speed(results))
    } else {
        chart::svg(&speed_chart(results))
    }
}

/// The grouped bars of every test: measured solid, published hatched.
pub fn speed_chart(results: &Results) -> Bars {
    let tests = table::tests(results);
    let mut series = Vec::new();
    let shown = table::measured(results);
    // Variants that answer to the same published figures show them once.
    let mut published_shown: Vec<Vec<Option<f64>>> = Vec::new();
    for (colour, name) in shown.into_iter().enumerate() {
        let rows: Vec<_> = tests.iter().map(|t| table::find(results, t, name)).collect();
        let mb = |kb: &[f64]| (!kb.is_empty()).then(|| Spread::of(kb).median() / 1024.0);
        series.push(Series {
            name: name.into(),
            colour,
            hatched: false,
            values: rows.iter().map(|r| mb(&each(r, |r| Some(r.kb_per_s)))).collect(),
        });
        let published: Vec<Option<f64>> =
            rows.iter().map(|r| mb(&each(r, |r| r.published_kb_per_s))).collect();
        if published.iter().any(Option::is_some) && !published_shown.contains(&published) {
            series.push(Series {
                name: format!("{name} (published)"),
                colour,
                hatched: true,
                values: published.clone(),
            });
            published_shown.push(published);
        }
    }
    Bars {
        title: format!("{}: throughput", results.title),
        unit: "MB/s".into(),
        groups: tests.iter().map(|t| (*t).into()).collect(),
        series,
        logarithmic: false,
    }
}

fn each(rows: &[&Row], figure: fn(&Row) -> Option<f64>) -> Vec<f64> {
    rows.iter().filter_map(|r| figure(r)).collect()
}

/// What a cut takes of acknowledged work, on a logarithmic axis; of several seeds the median.
pub fn exposure_chart(results: &Results) -> Bars {
    let risk = || results.runs.iter().flat_map(|run| &run.risk);
    let cut: Vec<&str> = results
        .variants
        .iter()
        .map(|v| v.name.as_str())
        .filter(|name| risk().any(|r| r.variant == *name))
        .collect();
    let of = |variant: &str, value: fn(&Percentiles) -> Option<f64>| {
        let rows = risk().filter(|r| r.variant == variant);
        let values: Vec<f64> = rows.filter_map(|r| value(&r.exposure_bytes)).collect();
        (!values.is_empty()).then(|| Spread::of(&values).median() / 1024.0)
    };
    let figure = |name: &str, colour, value: fn(&Percentiles) -> Option<f64>| Series {
        name: name.into(),
        colour,
        hatched: false,
        values: cut.iter().map(|variant| of(variant, value)).collect(),
    };
    Bars {
        title: "Acknowledged work lost at power failure (KiB, logarithmic)".into(),
        unit: "KiB".into(),
        groups: cut.iter().map(|name| (*name).into()).collect(),
        series: vec![
            figure("p50", 5, |p| Some(p.p50())),
            figure("p99 (of 400 cuts or more)", 0, Percentiles::p99),
            figure("max", 1, |p| Some(p.max())),
        ],
        logarithmic: true,
    }
}

/// One point a variant: what it does in a second, and what a cut takes; the medians of the seeds.
fn exposure_against_speed(results: &Results) -> Scatter {
    let all = || results.runs.iter().flat_map(|run| &run.speed_and_exposure);
    let (unit, exposure_is) = all().next().map_or(("", ""), |p| (&p.speed_unit, &p.exposure_is));
    let of = |name: &str| {
        let own = || all().filter(|p| p.variant == name);
        own().next()?;
        let median = |f: fn(&Point) -> f64| Spread::of(&own().map(f).collect::<Vec<_>>()).median();
        let (lost, speed) = (median(|p| p.exposure_bytes / 1024.0), median(|p| p.speed.median()));
        Some((name.to_owned(), lost, speed))
    };
    Scatter {
        title: format!("{}: speed against exposure (logarithmic)", results.title),
        x: format!("KiB of acknowledged work lost at power failure, {exposure_is}"),
        y: unit.into(),
        points: results.variants.iter().filter_map(|v| of(&v.name)).collect(),
    }
}

/// A table with all its columns. What must not be is marked.
fn grid_table(grid: &Grid) -> Markup {
    let grid = grid.narrow(true);
    html! {
        h2 { (grid.title) }
        table {
            thead { tr { th {} @for h in &grid.headings { th { (h.text) } } } }
            tbody {
                @for line in &grid.lines {
                    tr {
                        td { (line.name) }
                        @for (cell, alarm) in &line.cells {
                            @let (value, more) = cell.text();
                            td.bad[*alarm] {
                                (value)
                                @if let Some(more) = more { br; small { "(" (more) ")" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn findings(results: &Results) -> Markup {
    html! {
        @for run in &results.runs {
            @for r in run.risk.iter().filter(|r| !r.findings.is_empty()) {
                p { strong { (r.variant) } ", seed " (run.seed) ": first findings" }
                ul { @for f in &r.findings { li { (f) } } }
            }
        }
    }
}
