//! Frames of a host that is known, byte for byte.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use super::super::source::Reading;
use super::super::view::{Sort, View};
use super::*;

fn device(name: &str, user: Option<&str>, problem: Option<&str>) -> Value {
    json!({
        "name": name, "kind": "file", "path": format!("/{name}.img"), "bytes": 1 << 30,
        "volatile": false, "problem": problem, "used_by": user, "data_start": null,
        "map_blocks": null, "open": 0, "kernel": null,
    })
}

fn leg(slot: u64, name: &str, state: &str, lacking: u64) -> Value {
    json!({
        "slot": slot, "uuid": "", "component": name, "state": state, "volatile": false,
        "attached": true, "lacking_bytes": lacking, "error": null, "reads": 0, "read_bytes": 0,
        "writes": 0, "written_bytes": 0, "errors": 0, "read_latency_ns": 0,
    })
}

fn volume(name: &str, kind: &str, components: &[&str], mirror: Value) -> Value {
    json!({
        "name": name, "uuid": "", "kind": kind, "bytes": 1 << 30, "components": components,
        "interlace": null, "volatile": false, "problem": null, "used_by": null,
        "data_start": null, "map_blocks": null, "open": 0, "kernel": null, "mirror": mirror,
    })
}

fn counters(name: &str, each: u64) -> Value {
    json!({
        "name": name, "reads": each, "writes": 2 * each, "read_bytes": 65536 * each,
        "written_bytes": 4096 * each, "flushes": each / 4, "errors": 0, "in_flight": 0,
        "run_ns": 900_000 * each, "run_len_ns": 1_300_000 * each,
    })
}

/// A mirror that is resynced, a stripe, and two devices that nobody uses, so many seconds after
/// its start.
fn reading(seconds: u64) -> Reading {
    let legs = [leg(0, "disk1", "Okay", 0), leg(1, "ram\u{1b}0", "Resyncing", 300 << 20)];
    let mirror = json!({
        "legs": legs, "spares": ["disk9"], "read": "first", "write": "parallel", "pass": 1,
        "region_bytes": 1 << 20, "regions": { "unwritten": 5, "filling": 1, "dirty": 2,
        "clean": 1016 }, "generation": 7, "resync": { "done_bytes": 430, "total_bytes": 1000 },
        "whole": false, "failed": null,
    });
    let stack = json!({
        "version": "0", "pid": 4711, "up_ns": seconds * 1_000_000_000, "config": "/stack.toml",
        "tree": null, "aliases": [], "retired": [],
        "devices": [
            device("disk1", Some("d10"), None), device("disk2", Some("s"), None),
            device("free", None, None),
            device("gone", None, Some("/gone.img: No such file or directory (os error 2)")),
        ],
        "volumes": [
            volume("d10", "mirror", &["disk1", "ram0"], mirror),
            volume("a-stripe-of-a-long-name", "stripe", &["disk2"], Value::Null),
        ],
    });
    let of = [
        counters("disk1", 100 * seconds),
        counters("disk2", 3000 * seconds),
        counters("d10", 150 * seconds),
        counters("a-stripe-of-a-long-name", 2000 * seconds),
        counters("free", 0),
    ];
    let counters = json!({ "now_ns": seconds * 1_000_000_000, "of": of });
    Reading {
        stack: serde_json::from_value(stack).unwrap(),
        counters: serde_json::from_value(counters).unwrap(),
    }
}

fn view(sort: Sort) -> View {
    let mut view = View::new(sort, Duration::from_secs(2));
    view.take(reading(90_000));
    view.take(reading(90_002));
    view
}

fn frame(view: &View, columns: u16, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| render(view, frame.area(), frame.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..lines).map(|y| line(y).trim_end().to_owned() + "\n").collect()
}

/// As it should be, with the lines of the file that are not empty at its end.
fn is_as(frame: &str, golden: &str) {
    assert_eq!(frame, golden, "\n{frame}");
}

#[test]
fn a_screen_of_80_columns_has_everything() {
    is_as(&frame(&view(Sort::Name), 80, 24), include_str!("frames/80x24.txt"));
}

#[test]
fn a_small_screen_has_names_throughput_and_states() {
    is_as(&frame(&view(Sort::Write), 40, 12), include_str!("frames/40x12.txt"));
}

#[test]
fn what_the_columns_are_is_explained_above_the_keys() {
    let mut view = view(Sort::Latency);
    view.explains = true;
    view.scrolled = 2;
    is_as(&frame(&view, 100, 12), include_str!("frames/100x12.txt"));
}

#[test]
fn text_has_all_rows_however_many() {
    is_as(&text(&view(Sort::Read), 80), include_str!("frames/text.txt"));
}

/// Also where next to nothing fits.
#[test]
fn no_size_is_too_small() {
    for (columns, lines) in [(1, 1), (2, 2), (7, 3), (19, 4), (30, 1), (500, 2), (300, 100)] {
        for explains in [false, true] {
            let mut view = view(Sort::Queue);
            (view.explains, view.scrolled) = (explains, 1000);
            frame(&view, columns, lines);
        }
        assert!(!text(&View::new(Sort::Name, Duration::ZERO), columns).is_empty());
    }
}

#[test]
fn figures_fit_their_columns() {
    for rate in [0.0, 0.04, 0.1, 9.99, 99.96, 999.6, 12_345.6, 99_999.6, 1e7, 1e9] {
        assert!(count(rate).len() <= 6, "{}", count(rate));
    }
    for rate in [0.0, 999.4, 999.6, 1023.0, 1e5, 1_048_575.0, 3.2e9, 1e18] {
        assert!(bytes(rate).len() <= 6, "{}", bytes(rate));
    }
    for ms in [None, Some(0.0001), Some(9.9999), Some(999.96), Some(123_456.0)] {
        assert!(milliseconds(ms).len() <= 6, "{}", milliseconds(ms));
    }
}

/// A host that was started anew counts from zero; its first view is since its start.
#[test]
fn another_process_begins_anew() {
    let mut view = view(Sort::Name);
    let mut next = reading(10);
    next.stack.pid = 1;
    view.take(next);
    let rows = view.rows();
    assert!((rows[0].rates.reads - 150.0).abs() < 1e-6, "{rows:?}");
}
