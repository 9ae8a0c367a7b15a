//! The HTML report: one self-contained file.

pub mod chart;
pub mod scatter;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::results::{Figure, Results, VariantInfo};
use crate::table;
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
                @if !results.rows.is_empty() {
                    h2 { "Speed" }
                    (PreEscaped(chart::svg(&speed_chart(results))))
                    (speed_table(results))
                }
                @if !results.files.is_empty() {
                    h2 { "Speed" }
                    (set_ups(&results.files, |f| &f.variant, table::files_cells))
                }
                @if !results.ratios.is_empty() {
                    h2 { "Speed over the baseline" }
                    (ratio_table(results))
                }
                @if !results.risk.is_empty() {
                    h2 { "Data at risk" }
                    (PreEscaped(chart::svg(&exposure_chart(results))))
                    (risk_tables(results))
                }
                @if !results.speed_and_exposure.is_empty() {
                    h2 { "Speed against exposure" }
                    (PreEscaped(scatter::svg(&exposure_against_speed(results))))
                    (set_ups(&results.speed_and_exposure, |p| &p.variant, table::point_cells))
                }
                @if !results.notes.is_empty() {
                    h2 { "Notes" }
                    @for note in &results.notes { p.note { (note) } }
                }
                p { "Made by steadfast. Seed " (results.seed)
                    ": the same command with the same seed gives the same figures." }
            }
        }
    };
    page.into_string()
}

fn intro(results: &Results) -> Markup {
    html! {
        p { "Workload: " code {
            @if results.files.is_empty() { "iozone " } (results.command)
        } }
        @if let Some(cut) = &results.risk_command {
            p { "Power cuts during: " code { "iozone " (cut) } }
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

/// How long a variant's run was, by which clock.
fn time_of(results: &Results, variant: &VariantInfo) -> String {
    if let Some(seconds) = variant.virtual_seconds {
        return format!("{seconds:.1} s, virtual");
    }
    match results.files.iter().find(|f| f.variant == variant.name) {
        Some(f) => format!("{:.1} s, {}", f.elapsed_seconds, f.clock.name()),
        None if variant.kernel.is_some() => "left out".into(),
        None => "cut only".into(),
    }
}

/// The chart of the speeds: bars of every test, or the points of the variants.
pub fn chart_svg(results: &Results) -> String {
    if results.rows.is_empty() {
        scatter::svg(&exposure_against_speed(results))
    } else {
        chart::svg(&speed_chart(results))
    }
}

/// The grouped bars of every test: measured solid, published hatched.
pub fn speed_chart(results: &Results) -> Bars {
    let tests = table::tests(results);
    let mut series = Vec::new();
    let shown = results.variants.iter().filter(|v| v.virtual_seconds.is_some());
    // Variants that answer to the same published figures show them once.
    let mut published_shown: Vec<Vec<Option<f64>>> = Vec::new();
    for (colour, v) in shown.enumerate() {
        let rows: Vec<_> = tests.iter().map(|t| table::find(results, t, &v.name)).collect();
        let mb = |kb: f64| kb / 1024.0;
        series.push(Series {
            name: v.name.clone(),
            colour,
            hatched: false,
            values: rows.iter().map(|r| r.map(|r| mb(r.kb_per_s))).collect(),
        });
        let published: Vec<Option<f64>> =
            rows.iter().map(|r| r.and_then(|r| r.published_kb_per_s).map(mb)).collect();
        if published.iter().any(Option::is_some) && !published_shown.contains(&published) {
            series.push(Series {
                name: format!("{} (published)", v.name),
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

/// What a cut takes of acknowledged work, on a logarithmic axis.
pub fn exposure_chart(results: &Results) -> Bars {
    let figure = |name: &str, colour, value: fn(&crate::results::Percentiles) -> f64| Series {
        name: name.into(),
        colour,
        hatched: false,
        values: results.risk.iter().map(|r| Some(value(&r.exposure_bytes) / 1024.0)).collect(),
    };
    Bars {
        title: "Acknowledged work lost at power failure (KiB, logarithmic)".into(),
        unit: "KiB".into(),
        groups: results.risk.iter().map(|r| r.variant.clone()).collect(),
        series: vec![
            figure("p50", 5, |p| p.p50),
            figure("p99", 0, |p| p.p99),
            figure("max", 1, |p| p.max),
        ],
        logarithmic: true,
    }
}

/// One point a variant: what it does in a second, and what a cut takes.
fn exposure_against_speed(results: &Results) -> Scatter {
    let points = &results.speed_and_exposure;
    let unit = points.first().map_or("", |p| &p.speed_unit);
    Scatter {
        title: format!("{}: speed against exposure (logarithmic)", results.title),
        x: "KiB of acknowledged work that one cut in 100 takes".into(),
        y: unit.into(),
        points: points
            .iter()
            .map(|p| (p.variant.clone(), p.exposure_bytes / 1024.0, p.speed))
            .collect(),
    }
}

fn speed_table(results: &Results) -> Markup {
    let variants: Vec<_> =
        results.variants.iter().filter(|v| v.virtual_seconds.is_some()).collect();
    html! {
        table {
            thead { tr { th { "MB/s (latency of a record p50 / p99 / max, ms)" }
                @for v in &variants { th { (v.name) } th { "published" } } } }
            tbody {
                @for test in table::tests(results) {
                    tr {
                        td { (test) @if is_parent(results, test) { " (parent)" } }
                        @for v in &variants {
                            @let row = table::find(results, test, &v.name);
                            td { @if let Some(r) = row {
                                (format!("{:.1}", r.kb_per_s / 1024.0))
                                @if let Some(l) = &r.latency_us {
                                    small { (format!(" ({:.1} / {:.1} / {:.1})", l.p50 / 1e3,
                                                     l.p99 / 1e3, l.max / 1e3)) }
                                }
                            } }
                            td { @if let Some(p) = row.and_then(|r| r.published_kb_per_s) {
                                (format!("{:.1}", p / 1024.0)) } }
                        }
                    }
                }
            }
        }
    }
}

fn is_parent(results: &Results, test: &str) -> bool {
    results.rows.iter().any(|r| r.test == test && r.figure == Figure::Parent)
}

fn ratio_table(results: &Results) -> Markup {
    html! {
        table {
            thead { tr { th { "test" } th { "variant" } th { "over" } th { "ratio" }
                         th { "published" } th { "difference" } } }
            tbody {
                @for r in &results.ratios {
                    tr {
                        td { (r.test) } td { (r.variant) } td { (r.baseline) }
                        td { (format!("{:.2}x", r.ratio)) }
                        td { @if let Some(p) = r.published_ratio { (format!("{p:.2}x")) } }
                        td { @if let Some(d) = r.difference_percent { (format!("{d:+.1} %")) } }
                    }
                }
            }
        }
    }
}

/// A table with a row a variant. Figures that must be 0 are marked where they are not.
fn set_ups<R>(rows: &[R], name: fn(&R) -> &str, cells: fn(&R) -> Vec<table::Column>) -> Markup {
    let headings = rows.first().map(cells).unwrap_or_default();
    let must_be_0 = ["broken promises", "damage"];
    html! {
        table {
            thead { tr { th { "variant" } @for (h, _) in &headings { th { (h) } } } }
            tbody {
                @for r in rows {
                    tr {
                        td { (name(r)) }
                        @for (h, v) in cells(r) {
                            td.bad[must_be_0.contains(&h) && v != "0"] { (v) }
                        }
                    }
                }
            }
        }
    }
}

fn risk_tables(results: &Results) -> Markup {
    html! {
        (set_ups(&results.risk, |r| &r.variant, table::exposure_cells))
        (set_ups(&results.risk, |r| &r.variant, table::found_cells))
        @for r in results.risk.iter().filter(|r| !r.findings.is_empty()) {
            p { strong { (r.variant) } ": first findings" }
            ul { @for f in &r.findings { li { (f) } } }
        }
    }
}
