//! The JSON of `lab run --json`, as `lab show` reads it: read, written again, shown as a table, a
//! page and a chart.
#![cfg_attr(feature = "libfuzzer", no_main)]

use steadfast_lab::report::{chart_svg, html};
use steadfast_lab::results::{Results, summary};
use steadfast_lab::table::{Layout, text};

pub fn run(input: &[u8]) {
    let Ok(json) = std::str::from_utf8(input) else { return };
    let Ok(results) = Results::read(json) else { return };
    let written = summary::json(&results).expect("what was read can be written");
    let again = Results::read(&written).expect("what was written can be read");
    assert_eq!(again, results);
    drop(text(&results, Layout::default()));
    drop(html(&results));
    drop(chart_svg(&results));
}

steadfast_fuzz::target!(run);
