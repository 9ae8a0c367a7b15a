//! What a run reports without `--wide`: the answer, in a terminal's 24 lines of 80 columns.

use std::path::Path;

use snapbox::{Data, assert_data_eq};

use super::lab::{Lab, text};
use super::replaced::FORGETS;

/// What was reported, behind what the program has printed.
fn report(lab: &Lab, setup: &str, script: &str) -> String {
    let words = ["run", "--linger", "0.2", "-o", "noauto_da_alloc", "--record", "run.crash"];
    let more = ["--setup", setup, "--", "sh", script];
    let out = lab.plain(&[&words[..], &more].concat()).output().unwrap();
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}{}", text(&out.stderr));
    let at = said.find("Found ").unwrap_or_else(|| panic!("{said}"));
    let report = said[at..].to_owned();
    let fits = report.lines().all(|line| line.chars().count() <= 80);
    assert!(fits && report.lines().count() <= 24, "{report}");
    report
}

/// Numbers, which differ from run to run, are `N`.
fn without_figures(report: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    for c in report.chars() {
        match (c.is_ascii_digit(), before.is_ascii_digit()) {
            (true, true) => {}
            (true, false) => out.push('N'),
            (false, _) => out.push(c),
        }
        before = c;
    }
    out
}

#[test]
fn a_finding_its_figures_and_how_to_see_it() {
    let Some(lab) = Lab::new() else { return };
    let script = lab.script("forgets", FORGETS);
    let report = report(&lab, "echo colour=blue > settings", &script);
    let kept = Data::read_from(Path::new("tests/crash/screen.txt"), None).raw();
    assert_data_eq!(without_figures(&report), kept);
}

#[test]
fn of_many_findings_as_many_as_have_room() {
    let Some(lab) = Lab::new() else { return };
    let each = |line: &str| format!("for i in 1 2 3 4 5 6 7 8 9; do {line}; done\n");
    let renames = each("echo new > $i.new; mv $i.new the-settings-of-the-program-number-$i");
    let script = lab.script("forgets", &format!("{renames}echo end > log\nsync log\n"));
    let report =
        report(&lab, &each("echo an old one > the-settings-of-the-program-number-$i"), &script);
    for part in ["Found 9 faults:", "\n  and ", "\nto see it\n", "--wide; for programs: --json\n"] {
        assert!(report.contains(part), "{part:?} is not in:\n{report}");
    }
}
