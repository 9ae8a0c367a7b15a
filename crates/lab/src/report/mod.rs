//! The HTML report: one page that loads no other file, and its charts.
//!
//! ```text
//! page      what stands where
//! style     how it looks: screen, paper, dark
//! tables    the tables of the terminal, with all columns
//! sentences what the source says, checked
//!
//! speed     speeds beside published ones        bars
//! latency   how long calls took                 lines
//! matrix    speeds by file and record size      lines, heat maps
//! risk      what cuts take                      points, marks
//! ages      how old it was, over the run        lines
//! waiting   the request scheduler's queue       lines
//! progress  calls that had returned, over time  lines
//! sweep     the cases of a sweep                squares, on a page of their own
//!
//! plot      one chart: scales, and marks where they put them
//! labels    of points, so that none covers another
//! scale, svg, theme   axes, elements, colours
//! ```

mod ages;
mod labels;
mod latency;
mod lines;
mod matrix;
mod page;
pub(crate) mod plot;
mod progress;
mod risk;
pub(crate) mod scale;
mod sentences;
mod speed;
mod style;
pub(crate) mod svg;
pub mod sweep;
mod tables;
mod theme;
mod waiting;

use steadfast_vfs::foreign::lines as harmless;

use crate::results::Results;

pub(crate) use latency::fsyncs as syncs;
pub(crate) use page::{figures, notes, whole as whole_page};
pub(crate) use progress::timeline;

/// The whole report.
pub fn html(results: &Results) -> String {
    harmless(&page::page(results))
}

/// The charts by themselves: of the queue over time, or of the speeds of every test, or the points
/// of the variants.
pub fn chart_svg(results: &Results) -> String {
    let mut charts = (waiting::all(results), "the request scheduler's queue".to_owned());
    if charts.0.is_empty() {
        charts = (speed::panels(results), format!("throughput, {}", results.clock));
    }
    if charts.0.is_empty() {
        charts.0.extend(risk::against_speed(results));
    }
    harmless(&svg::alone(&format!("{}: {}", results.title, charts.1), &charts.0))
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
