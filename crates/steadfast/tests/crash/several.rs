//! A program on several file systems.

use serde_json::{Value, json};

use super::lab::{Lab, text};
use super::replaced::{FORGETS, JUDGE, SYNCS, words};

const SEVERAL: &str = "ext4:noauto_da_alloc,ext4,ext4:noauto_da_alloc:data=writeback";

#[test]
fn what_is_found_is_said_with_where() {
    let Some(lab) = Lab::new() else { return };
    let forgets = lab.script("forgets", FORGETS);
    let (junit, sarif) = ("several.xml", "several.sarif");
    let options = ["--fs", SEVERAL, "--judge", JUDGE, "--model", "none"];
    let files = ["--junit", junit, "--sarif", sarif, "--record", "run.crash"];
    let all = [&options[..], &files].concat();
    let (report, found) = lab.run_several(&words("commit=60", &all, &forgets));
    assert!(found, "{report:#}");
    let finding = &report["findings"][0];
    let on = ["ext4:noauto_da_alloc", "ext4:noauto_da_alloc:data=writeback"];
    assert_eq!(finding["on"], json!(on), "{report:#}");
    assert_eq!(finding["not_on"], json!(["ext4"]), "{report:#}");
    let each: Vec<bool> = report["file_systems"].as_array().unwrap().iter().map(is_bad).collect();
    assert_eq!(each, [true, false, true], "{report:#}");
    // Each has its recording, which shows it.
    for show in finding["show"].as_array().unwrap() {
        let program = env!("CARGO_BIN_EXE_steadfast");
        let line = show.as_str().unwrap().replacen("steadfast", program, 1);
        let mut shell = std::process::Command::new("sh");
        let shown = shell.args(["-c", &line]).current_dir(lab.path("")).output().unwrap();
        assert_eq!(shown.status.code(), Some(1), "{show}: {}", text(&shown.stderr));
    }
    assert!(lab.path("run-ext4.crash").exists());
    // A suite of each, and one alert of both.
    let junit = std::fs::read_to_string(lab.path(junit)).unwrap();
    assert_eq!(junit.matches("<testsuite ").count(), 3, "{junit}");
    assert_eq!(junit.matches("<failure ").count(), 2, "{junit}");
    let sarif: Value = serde_json::from_slice(&std::fs::read(lab.path(sarif)).unwrap()).unwrap();
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 1, "{sarif:#}");

    let known = [&options[..], &["--write-baseline", "known.toml"]].concat();
    let (_, found) = lab.run_several(&words("commit=60", &known, &forgets));
    assert!(!found);
    let known = [&options[..], &["--baseline", "known.toml"]].concat();
    let (report, found) = lab.run_several(&words("commit=60", &known, &forgets));
    assert!(!found, "{report:#}");
}

fn is_bad(report: &Value) -> bool {
    report["bad_states"].as_u64().unwrap() > 0
}

#[test]
fn what_is_not_found_anywhere_is_said_of_all() {
    let Some(lab) = Lab::new() else { return };
    let syncs = lab.script("syncs", SYNCS);
    let all = ["--fs", SEVERAL, "--judge", JUDGE];
    let out = lab.crash(&[&["run"][..], &words("commit=60", &all, &syncs)].concat());
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let first = said.lines().find(|line| line.starts_with("Found")).unwrap();
    assert!(first.starts_with("Found nothing in "), "{said}");
    assert!(said.contains("of the recorded disks of 3 file systems"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
}
