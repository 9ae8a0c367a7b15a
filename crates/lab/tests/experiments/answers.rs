//! What a run says first: of each scenario's kept results the screen beside what it was
//! (`golden/screens/NAME.txt`), and what must be said of results that are not good.

use std::path::Path;

use snapbox::{Data, assert_data_eq};
use steadfast_lab::results::{Note, Results};
use steadfast_lab::table::{Layout, answer_text};

/// A terminal's lines and columns.
const SCREEN: (usize, usize) = (24, 80);

const KEPT: [&str; 8] = [
    "data-at-risk",
    "emmc-transactional",
    "ext3-data-modes",
    "nvdimm-dax",
    "nvram-journal",
    "nvram-journal-band",
    "nvram-journal-full",
    "ramdisk-mirror",
];

fn kept(name: &str) -> Results {
    let path = format!("../../docs/results/{name}.json");
    Results::read(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn each_scenario_s_screen_is_as_it_was_and_fits() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/experiments/golden/screens");
    for name in KEPT {
        let screen = answer_text(&kept(name), Layout::default());
        let fits = |line: &str| line.chars().count() <= SCREEN.1;
        assert!(screen.lines().count() <= SCREEN.0, "{name}:\n{screen}");
        assert!(screen.lines().all(fits), "{name}:\n{screen}");
        let path = folder.join(format!("{name}.txt"));
        assert_data_eq!(screen, Data::read_from(&path, None).raw());
    }
}

#[test]
fn what_must_not_be_stands_first() {
    let mut results = kept("data-at-risk");
    results.notes.extend((1..=5).map(|n| Note::alarm(format!("BROKEN {n}"))));
    let screen = answer_text(&results, Layout { coloured: true, ..Layout::default() });
    let lines: Vec<&str> = screen.lines().collect();
    let red = |text: &str| format!("\u{1b}[1;31m{text}\u{1b}[0m");
    let alarms = ["BROKEN 1", "BROKEN 2", "BROKEN 3", "And 2 more of this kind: --wide."].map(red);
    assert_eq!(lines[1..5], alarms, "{screen}");
    assert!(lines.len() <= SCREEN.0, "{screen}");
}
