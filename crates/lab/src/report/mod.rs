//! The HTML report: one page that loads no other file, and its charts.
//!
//! ```text
//! page      what stands where
//! style     how it looks: screen, paper, dark
//! tables    the tables of the terminal, with all columns
//! speed     speeds beside published ones     (bars)
//! latency   how long calls took              (lines)
//! matrix    speeds by file and record size   (lines, heat)
//! sentences what the source says, checked
//! risk      what cuts take                   (scatter, marks)
//! ages      how old it was, over the run     (lines)
//! svg, scale, theme   drawing, axes, colours
//! chart     grouped bars as a picture by itself
//! waiting   the request scheduler's queue   (lines); queues: as a picture by itself
//! ```

mod ages;
mod bars;
pub mod chart;
mod heat;
mod latency;
mod lines;
mod marks;
mod matrix;
mod page;
pub mod queues;
mod risk;
mod scale;
mod scatter;
mod sentences;
mod speed;
mod style;
mod svg;
mod tables;
mod theme;
mod waiting;

use steadfast_vfs::foreign::lines as harmless;

use crate::results::{Results, SpeedRow, Spread};
use crate::table;
use chart::{Bars, Series};
use queues::Queues;

pub(crate) use svg::escape;

/// The whole report.
pub fn html(results: &Results) -> String {
    harmless(&page::page(results))
}

/// The queue over time, if the run has looked at one: of several seeds the first's.
pub(crate) fn queue_chart(results: &Results) -> Option<String> {
    let series: Vec<_> = results.only().of().collect();
    let title = format!("{}: the request scheduler's queue", results.title);
    (!series.is_empty()).then(|| queues::svg(&Queues { title, series }))
}

/// As a picture by itself the queue over time, or the chart of the speeds: bars of every test, or
/// the points of the variants.
pub fn chart_svg(results: &Results) -> String {
    let chart = queue_chart(results);
    harmless(&chart.unwrap_or_else(|| match results.only().of::<SpeedRow>().next().is_none() {
        true => risk::against_speed(results).map(|chart| svg::alone(&chart)).unwrap_or_default(),
        false => chart::svg(&speed_chart(results)),
    }))
}

/// The command that reproduces the results.
fn reproduce(results: &Results) -> String {
    results.reproduce.clone().unwrap_or_else(|| {
        let mut command = format!("steadfast lab run {}", results.scenario);
        if results.full {
            command += " --full";
        }
        if !results.peers.is_empty() {
            command += " --peers";
        }
        if let Some(first) = results.seeds.first() {
            command += &format!(" --seed {first} --seeds {}", results.seeds.len());
        }
        command
    })
}

/// The grouped bars of every test: measured solid, published hatched.
fn speed_chart(results: &Results) -> Bars {
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

fn each(rows: &[&SpeedRow], figure: fn(&SpeedRow) -> Option<f64>) -> Vec<f64> {
    rows.iter().filter_map(|r| figure(r)).collect()
}
