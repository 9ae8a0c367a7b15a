//! The HTML report in a browser: nothing is cut off, nothing covers another, nothing is loaded,
//! no script runs; on a laptop, in a narrow window, on paper and in the dark.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

mod browser;

use browser::{Browser, Seen};
use scraper::{ElementRef, Html, Selector};
use serde_json::{Value, json};
use steadfast_lab::report;
use steadfast_lab::results::{Note, Results};
use steadfast_lab::table::grids;

/// What is kept of the long runs.
const STORED: [&str; 2] = [
    include_str!("../../../../docs/results/nvram-journal-full.json"),
    include_str!("../../../../docs/results/data-at-risk.json"),
];

/// A label that is more than a label.
const EVIL: &str = "</title><script>document.title='ran'</script>\
                    <img src=x onerror=\"document.title='ran'\">\"'&";

fn stored() -> impl Iterator<Item = Results> {
    STORED.into_iter().map(|json| Results::read(json).unwrap())
}

/// The stored results with words in all places that would run if they could.
fn hostile() -> Results {
    fn poison(value: &mut Value) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(poison),
            Value::Object(all) => {
                for (key, value) in all.iter_mut() {
                    let free = ["label", "title", "author", "test", "command", "devices", "mount"];
                    match value {
                        Value::String(text) if free.contains(&key.as_str()) => {
                            text.insert_str(0, EVIL);
                        }
                        Value::Array(all) if key == "findings" || key == "devices" => {
                            all.push(EVIL.into());
                        }
                        other => poison(other),
                    }
                }
            }
            _ => {}
        }
    }
    let mut value: Value = serde_json::from_str(STORED[1]).unwrap();
    poison(&mut value);
    let mut results = Results::read(&value.to_string()).unwrap();
    results.notes.push(Note::alarm(EVIL));
    results.reproduce = Some(EVIL.into());
    results
}

#[test]
fn the_picture_in_readme_is_that_of_the_stored_results() {
    let results = Results::read(STORED[1]).unwrap();
    let kept = include_str!("../../../../docs/images/data-at-risk.svg");
    assert!(report::chart_svg(&results) == kept, "lab show FILE --chart draws another");
}

#[test]
fn no_word_of_a_scenario_is_markup() {
    let html = report::html(&hostile());
    assert!(!html.contains("<script") && !html.contains("<img"), "a label is markup");
    assert!(html.matches("&lt;script&gt;").count() > 20);
    // No other file: the names of XML's namespaces are the only addresses.
    for html in stored().map(|r| report::html(&r)) {
        let addresses = html.matches("://").count();
        assert_eq!(addresses, html.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
        assert!(!html.contains("url(") && !html.contains("@import") && !html.contains("src="));
    }
}

/// What a page has is HTML, and its tables have every cell of the terminal's.
#[test]
fn every_cell_of_the_tables_is_on_the_page() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = |element: ElementRef<'_>| words(&element.text().collect::<Vec<_>>().join(" "));
    let select = |what: &str| Selector::parse(what).unwrap();
    let (row, heading, name, cell) =
        (select("table tbody tr"), select("thead th"), select("th"), select("td"));
    for results in stored().chain([hostile(), sizes()]) {
        let page = Html::parse_document(&report::html(&results));
        assert_eq!(page.errors, Vec::<std::borrow::Cow<'_, str>>::new());
        let mut shown: Vec<String> = Vec::new();
        for row in page.select(&row) {
            let Some(table) = row.ancestors().filter_map(ElementRef::wrap).nth(1) else { continue };
            let headings: Vec<String> = table.select(&heading).map(text).collect();
            let Some(name) = row.select(&name).next().map(text) else { continue };
            let cells = row.select(&cell).map(text).zip(headings.iter().skip(1));
            shown.extend(cells.map(|(cell, heading)| format!("{name} | {heading} | {cell}")));
        }
        for grid in grids(&results) {
            let grid = grid.narrow(true);
            for line in &grid.lines {
                for (heading, (cell, alarm)) in grid.headings.iter().zip(&line.cells) {
                    let (value, more) = cell.text();
                    let more = more.map_or(String::new(), |more| format!(" ({more})"));
                    let cell = format!("{}{value}{more}", if *alarm { "! " } else { "" });
                    let (name, heading) = (words(&line.name), words(&heading.text));
                    let wanted = format!("{name} | {heading} | {}", words(&cell));
                    assert!(shown.contains(&wanted), "{}: {wanted}\n{shown:#?}", grid.title);
                }
            }
        }
    }
}

/// The stored speeds with what a benchmark over a matrix of sizes brings: two configurations, three
/// tests, sizes as in the source's lines.
fn sizes() -> Results {
    let mut value: Value = serde_json::from_str(STORED[0]).unwrap();
    let mut grids = Vec::new();
    for (number, variant) in
        ["internal", "external", "external-async", "external-data"].into_iter().enumerate()
    {
        for test in ["write", "read", "random write"] {
            let mut cells = Vec::new();
            for file in 6..=17 {
                for record in (2..=14).filter(|r| *r <= file) {
                    let speed = 40.0 * f64::from(record + number as u32).exp2() / f64::from(file);
                    cells.push(json!({ "file_kb": 1 << file, "record_kb": 1 << record,
                        "kb_per_s": speed, "only_the_cache": false }));
                }
            }
            grids.push(
                json!({ "kind": "matrix", "variant": variant, "test": test, "cells": cells }),
            );
        }
    }
    for run in value["runs"].as_array_mut().unwrap() {
        let rows = run["measurements"].as_array_mut().unwrap();
        rows.retain(|row| row["kind"] != "speed" && row["kind"] != "ratio");
        rows.extend(grids.clone());
    }
    for (i, variant) in value["variants"].as_array_mut().unwrap().iter_mut().enumerate() {
        variant["configuration"] = if i % 2 == 0 { "low" } else { "high" }.into();
    }
    let configuration = |name: &str, label: &str| {
        json!({ "name": name, "label": label, "command": "iozone -Raze",
            "risk_command": "iozone -Raze" })
    };
    value["configurations"] = json!([
        configuration("low", "little memory, fsync"),
        configuration("high", "much memory, no fsync")
    ]);
    value["medium"] = json!({ "read_mb_per_s": 25.0, "write_mb_per_s": 11.0 });
    let sentence = |verdict: &str| {
        json!({ "name": "reads", "said": "the read performance is largely comparable <b>",
            "verdict": verdict, "criterion": "fastest over slowest at most 1.5", "reason": "so",
            "cells_that_fit": 90, "cells": 110, "needed": 0.9, "median": 1.2, "worst": 3.0,
            "worst_at": "64k, 4k", "explained": "because" })
    };
    value["sentences"] = json!([sentence("agrees"), sentence("disagrees")]);
    Results::read(&value.to_string()).unwrap()
}

#[test]
fn every_figure_of_a_matrix_is_drawn_and_written() {
    let html = report::html(&sizes());
    // Two configurations, three tests: a graph each, and a heat map for each of their variants.
    assert_eq!(html.matches("role=\"img\"").count(), 6 + 12);
    let cells = (6..=17).map(|file: usize| file.min(14) - 1).sum::<usize>();
    let squares: usize = (0..8).map(|i| html.matches(&format!("class=\"h{i}\"")).count()).sum();
    assert_eq!(squares, 12 * cells);
    assert!(html.contains("medium reads: 25 MB/s") && html.contains("much memory, no fsync"));
    for part in ["largely comparable &lt;b&gt;", "DISAGREES", "Why otherwise"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_browser_shows_all_of_it() {
    let Some(browser) = Browser::find() else {
        let word = std::env::var_os("STEADFAST_SOAK").map_or("LEFT TO SOAK", |_| "SKIPPED");
        println!("{word}: no Chromium is installed");
        return;
    };
    let names = ["speed", "risk", "hostile", "sizes"];
    let shown = || names.into_iter().zip(stored().chain([hostile(), sizes()]));
    shown().for_each(|(name, r)| browser.put(&format!("{name}.html"), &report::html(&r)));
    browser.keep_pictures(&["speed", "risk", "sizes"]);
    for (name, results) in shown() {
        // A laptop, a narrow window, a sheet of A4 within its margins.
        for Seen { width, title, scripts, ran, faults, ground } in browser.look(name, false) {
            assert!(faults.is_empty(), "{name}, {width} wide: {faults:#?}");
            assert_eq!((title, scripts, ran), (results.title.clone(), 0, false), "{name}");
            assert_eq!(ground, "rgb(255, 255, 255)", "{name}");
        }
    }
    for seen in browser.look("speed", true) {
        assert!(seen.faults.is_empty() && seen.ground == "rgb(21, 24, 28)", "{seen:#?}");
    }
    let pages = browser.print("speed");
    assert!((2..20).contains(&pages), "{pages} pages");
}
