//! `lab run --record`: an independent script computes the figures of every cut again.

use std::process::Command;

use super::{Desk, TINY, rows};

#[test]
fn recordings_can_be_counted_again() {
    let d = Desk::new();
    std::fs::write(d.path().join("tiny.toml"), TINY).unwrap();
    let document = d.good("lab run tiny.toml --seeds 2 --record r --format json");
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recompute.py");
    let ran = std::process::Command::new("python3").arg(script).arg(d.path().join("r")).output();
    let Ok(ran) = ran else {
        println!("SKIPPED: needs python3");
        return;
    };
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{printed}{}", String::from_utf8_lossy(&ran.stderr));
    // Of a run that cut nothing there is no recording, and both say so.
    let line = "lab run tiny.toml --cuts 0 --record none";
    assert!(String::from_utf8_lossy(&d.run(line).stderr).contains("Nothing was recorded"));
    assert!(!d.path().join("none").exists());
    let silent = Command::new("python3").arg(script).arg(d.path().join("none")).output().unwrap();
    assert_eq!(silent.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&silent.stderr).contains("no recording"));
    for (run, seed) in document["runs"].as_array().unwrap().iter().zip(1..) {
        for row in rows(run, "risk") {
            let name = row["variant"].as_str().unwrap();
            let begin = printed.find(&format!("seed-{seed}/{name}:")).unwrap();
            let lost = &row["exposure_bytes"];
            let want = format!("lost bytes: p50 {}, max of 6 {}", lost["p50"], lost["max"]);
            let want = want.replace(".0", "");
            let own = printed[begin..].lines().nth(2).unwrap();
            assert_eq!(own.trim(), want, "{printed}");
        }
    }
}

/// Names, holes, sizes, links: every figure of every cut follows from the recording alone, and one
/// that does not is seen.
#[test]
fn what_cuts_took_of_files_with_names_is_counted_again() {
    let d = Desk::new();
    let files = "files = { seconds = 2, pause_ms = 2, log_kb = 16, letters_kept = 20 }";
    let iozone = TINY
        .lines()
        .filter(|l| !["iozone", "quick_", "risk_", "loss_"].iter().any(|key| l.starts_with(key)));
    let iozone: Vec<&str> = iozone.collect();
    let scenario = iozone.join("\n").replace("[workload]", &format!("[workload]\n{files}"));
    std::fs::write(d.path().join("named.toml"), scenario).unwrap();
    let document = d.good("lab run named.toml --cuts 40 --record r --format json");
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recompute.py");
    let count = || Command::new("python3").arg(script).arg(d.path().join("r")).output();
    let Ok(ran) = count() else {
        println!("SKIPPED: needs python3");
        return;
    };
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{printed}{}", String::from_utf8_lossy(&ran.stderr));
    let row = rows(&document["runs"][0], "risk")[0];
    for figure in ["broken_promises", "torn_units", "stale_bytes", "empty_after_rename"] {
        assert!(printed.contains(&format!("{figure} {}", row[figure])), "{figure}: {printed}");
    }
    assert!(row["exposure_bytes"]["max"].as_f64().unwrap() > 0.0, "{row}");
    // Whoever changes a figure is told which.
    let folder = d.path().join("r/seed-1").join(row["variant"].as_str().unwrap());
    let cuts = std::fs::read_to_string(folder.join("cuts.jsonl")).unwrap();
    let changed = cuts.replacen("\"stale_bytes\":0", "\"stale_bytes\":512", 1);
    assert_ne!(cuts, changed);
    std::fs::write(folder.join("cuts.jsonl"), changed).unwrap();
    let ran = count().unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{printed}");
    assert!(printed.contains("stale_bytes: 512 was counted, it is 0"), "{printed}");
}
