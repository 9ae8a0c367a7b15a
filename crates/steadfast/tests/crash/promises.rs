//! What counts as a call of the program's, and as a promise to it.

use super::lab::Lab;

/// Runs a script without lingering; the report, and whether something was found.
fn ran(lab: &Lab, setup: &str, script: &str, cuts: &str) -> (serde_json::Value, bool) {
    let script = lab.script("script", script);
    let words = ["-o", "commit=60", "--linger", "0.1", "--cuts", cuts, "--setup", setup];
    lab.run(&[&words[..], &["--", "sh", &script]].concat())
}

#[test]
fn a_listing_does_not_make_false_alarms() {
    let Some(lab) = Lab::new() else { return };
    let setup = "mkdir -p d/5; echo x > d/5/f; sync";
    let (report, found) = ran(&lab, setup, "find . -name f | xargs rm; sync d", "200");
    assert!(!found, "{report:#}");
    assert_eq!(report["not_measured"], serde_json::json!([]), "{report:#}");
}

#[test]
fn the_programs_calls_are_counted_and_not_the_kernels_requests() {
    let Some(lab) = Lab::new() else { return };
    // FUSE takes at most a MiB at a time: 3, 1 and 3 requests; and a sync after each durable one.
    for (dd, calls) in [
        ("bs=3M count=2", 3),
        ("bs=1M count=3", 4),
        ("bs=3M count=2 oflag=dsync", 3),
        ("bs=3M count=1 conv=fsync", 3),
    ] {
        let script = format!("dd if=/dev/zero of=f status=none {dd}");
        let (report, _) = ran(&lab, "true", &script, "none");
        assert_eq!(report["recorded"]["calls"], calls, "{dd}: {report:#}");
    }
}

#[test]
fn what_is_written_again_after_a_promise_is_not_measured() {
    let Some(lab) = Lab::new() else { return };
    let script = "echo one > log; sync log; printf X | dd of=log conv=notrunc status=none";
    let (report, found) = ran(&lab, "true", script, "all");
    assert!(!found, "{report:#}");
    let why = report["not_measured"][0].as_str().unwrap();
    assert!(why.starts_with("log: written again"), "{report:#}");
    // Behind it is another range: what was promised is judged at every cut.
    let script = "echo one > log; sync log; echo two >> log";
    let (report, found) = ran(&lab, "true", script, "all");
    assert!(!found, "{report:#}");
    assert_eq!(report["not_measured"], serde_json::json!([]), "{report:#}");
}
