//! The same script on the kernel's ext4.

use super::lab::{Lab, text};
use super::replaced::{FORGETS, JUDGE, SYNCS, words};

/// Whether this machine can; what is missing is said aloud.
#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
pub fn works(lab: &Lab) -> bool {
    let out = lab.crash(&["run", "--fs", "kernel-ext4", "--cuts", "none", "--", "true"]);
    match out.status.code() {
        Some(2) => {
            println!("SKIPPED: {}", text(&out.stderr));
            false
        }
        _ => true,
    }
}

#[test]
fn the_kernels_ext4_needs_the_fsync_too() {
    let Some(lab) = Lab::new() else { return };
    if !works(&lab) {
        return;
    }
    let kernel = ["--fs", "kernel-ext4", "--cuts", "flushes", "--states", "3", "--judge", JUDGE];
    let forgets = lab.script("forgets", FORGETS);
    let (report, found) = lab.run(&words("noauto_da_alloc", &kernel, &forgets));
    assert!(found, "{report:#}");
    assert_eq!(report["findings"][0]["wrong"][0]["kind"], "judge", "{report:#}");
    // A kernel's run is kept, and shown by the kernel, as any other.
    let recording = report["recording"].as_str().unwrap();
    let state = report["findings"][0]["first_state"].as_u64().unwrap().to_string();
    let show = ["show", recording, "--cut", &state, "--judge", JUDGE];
    let out = lab.crash(&show);
    let said = text(&out.stderr);
    assert!(out.status.code() == Some(2) && said.contains("say --kernel"), "{said}");
    let out = lab.crash(&[&show[..], &["--kernel"]].concat());
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}{}", text(&out.stderr));
    assert!(said.contains("Wrong: the judge ended with status 1"), "{said}");

    let syncs = lab.script("syncs", SYNCS);
    let (report, found) = lab.run(&words("noauto_da_alloc", &kernel, &syncs));
    assert!(!found, "{report:#}");
    // Calls that nobody has seen are no sign that nothing was at stake.
    assert_eq!(report["not_measured"], serde_json::json!([]), "{report:#}");

    // Nobody sees the calls: without a judge this is not the same as nothing lost.
    let kernel = ["--fs", "kernel-ext4", "--cuts", "flushes", "--states", "2"];
    let (report, found) = lab.run(&words("noauto_da_alloc", &kernel, &syncs));
    assert!(!found, "{report:#}");
    let why = report["not_measured"][0].as_str().unwrap();
    assert!(why.starts_with("what was promised: nobody sees the calls"), "{report:#}");
}
