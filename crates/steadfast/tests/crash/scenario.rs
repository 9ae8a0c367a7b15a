//! `crash show` reproduces a cut of `lab run`, and describes the same.

use std::process::{Command, Output};

use serde_json::Value;

use super::lab::text;

const SCENARIO: &str = r#"
version = 1
name = "short"
title = "A short run"
about = "A short run."

[workload]
files = { seconds = 2, pause_ms = 10 }
cuts = 12
lying_cuts_per_4 = 1

[device.ssd]
kind = "ssd"
description = "a small drive"
sectors = 131072
write_cache = "volatile"

[[variant]]
name = "writeback"
label = "names before contents"
disk = "ssd"
mount = "data=writeback,noauto_da_alloc,commit=1"
"#;

fn steadfast(folder: &std::path::Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    let limit = std::time::Duration::from_secs(300);
    steadfast_suite::output(limit, command.args(words).current_dir(folder)).unwrap()
}

/// "cut 3 at 1.5s, tick 77: what was found": the number, and what was found.
fn of_finding(finding: &str) -> (&str, &str) {
    let (head, what) = finding.split_once(": ").unwrap();
    (head.split(' ').nth(1).unwrap(), what)
}

#[test]
fn a_cut_of_a_scenario_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let here = |words: &[&str]| steadfast(folder.path(), words);
    std::fs::write(folder.path().join("short.toml"), SCENARIO).unwrap();
    let ran = here(&["lab", "run", "short.toml", "--seed", "3", "--json", "-"]);
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let rows = report["runs"][0]["measurements"].as_array().unwrap();
    let risk = rows.iter().find(|row| row["kind"] == "risk").unwrap();
    let findings = risk["findings"].as_array().unwrap();
    // With data=writeback a rename may be there before what was written.
    let finding = findings[0].as_str().unwrap();
    let (number, what) = of_finding(finding);
    let cut = ["crash", "show", "short.toml", "--variant", "writeback", "--seed", "3", "--cut"];
    let shown = here(&[&cut[..], &[number, "--image", "cut.img", "--tree", "tree"]].concat());
    let story = text(&shown.stdout);
    assert_eq!(shown.status.code(), Some(1), "{story}\n{}", text(&shown.stderr));
    // Lines are folded to 80 columns.
    let in_a_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(in_a_line(&story).contains(&in_a_line(what)), "{finding}\n{story}");
    for part in ["The last that happened before:", "In doubt:", "The next boot finds", "Taken:"] {
        assert!(story.contains(part), "{part}\n{story}");
    }
    assert!(folder.path().join("tree/config").is_dir());
    assert_eq!(std::fs::metadata(folder.path().join("cut.img")).unwrap().len(), 131_072 * 512);

    // The run for people prints that command.
    let line = ["lab", "run", "short.toml", "--seed", "3", "--wide", "--report", "short.html"];
    let ran = here(&line);
    let command = format!("steadfast {} {number}\n", cut.join(" "));
    // A long command goes on below.
    let printed = text(&ran.stdout).replace(" \\\n      ", " ");
    assert!(printed.contains(&command), "{command}\n{printed}");

    for (words, why) in
        [(&["--cut", "12"][..], "no cut 12"), (&["--cut", "x"], "invalid value"), (&[], "--cut")]
    {
        let words = [&["crash", "show", "short.toml", "--variant", "writeback"], words].concat();
        let out = here(&words);
        assert_eq!(out.status.code(), Some(2), "{words:?}");
        assert!(text(&out.stderr).contains(why), "{words:?}: {}", text(&out.stderr));
    }
    let out = here(&["crash", "show", "short.toml", "--variant", "ordred", "--cut", "1"]);
    assert!(out.status.code() == Some(2) && text(&out.stderr).contains("there are: writeback"));
}
