//! The HTML report in a browser: nothing is cut off, nothing covers another, nothing is loaded,
//! no script runs; on a laptop, in a narrow window, on paper and in the dark.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

#[path = "report/browser.rs"]
mod browser;

use browser::{Browser, Seen};
use serde_json::Value;
use steadfast_lab::report;
use steadfast_lab::results::{Note, Results};

/// What is kept of the long runs.
const STORED: [&str; 2] = [
    include_str!("../../../docs/results/nvram-journal-full.json"),
    include_str!("../../../docs/results/data-at-risk.json"),
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
    results.again = Some(EVIL.into());
    results
}

#[test]
fn no_word_of_a_scenario_is_markup() {
    let html = report::html(&hostile());
    assert!(!html.contains("<script") && !html.contains("<img"), "a label is markup");
    assert!(html.matches("&lt;script&gt;").count() > 20);
    // Nothing from elsewhere: the names of XML's namespaces are the only addresses.
    for html in stored().map(|r| report::html(&r)) {
        let addresses = html.matches("://").count();
        assert_eq!(addresses, html.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
        assert!(!html.contains("url(") && !html.contains("@import") && !html.contains("src="));
    }
}

#[test]
fn a_browser_shows_all_of_it() {
    let Some(browser) = Browser::find() else {
        println!("SKIPPED: no Chromium is installed");
        return;
    };
    let shown = || ["speed", "risk", "hostile"].into_iter().zip(stored().chain([hostile()]));
    shown().for_each(|(name, r)| browser.put(&format!("{name}.html"), &report::html(&r)));
    browser.keep_pictures(&["speed", "risk"]);
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
