//! The same script on the kernel's ext4.

use serde_json::json;

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
    let kernel = ["--fs", "kernel-ext4", "--cuts", "flushes", "--states", "3"];
    let kernel = [&kernel[..], &["--judge", JUDGE, "--model", "none"]].concat();
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
    assert_eq!(report["not_measured"], json!([]), "{report:#}");

    // The calls are seen: without a judge, what every program may expect is judged.
    let kernel = ["--fs", "kernel-ext4", "--cuts", "flushes", "--states", "3", "--model", "none"];
    let (report, found) = lab.run(&words("noauto_da_alloc", &kernel, &forgets));
    assert!(found, "{report:#}");
    assert_eq!(report["findings"][0]["wrong"][0]["kind"], "not asked for", "{report:#}");
    let (report, found) = lab.run(&words("noauto_da_alloc", &kernel, &syncs));
    assert!(!found, "{report:#}");
    assert!(report["recorded"]["calls"].as_u64().unwrap() > 5, "{report:#}");
}

/// Which of them lose it is what the run says.
#[test]
fn a_fault_is_found_on_those_that_have_it() {
    let Some(lab) = Lab::new() else { return };
    if !works(&lab) {
        return;
    }
    let fs = "kernel-ext4,kernel-ext4:noauto_da_alloc";
    let kernel = ["--fs", fs, "--cuts", "flushes", "--states", "3", "--model", "none"];
    let forgets = lab.script("forgets", FORGETS);
    let (report, found) = lab.run_several(&words("commit=60", &kernel, &forgets));
    assert!(found, "{report:#}");
    let finding = &report["findings"][0];
    assert_eq!(finding["on"], json!(["kernel-ext4:noauto_da_alloc"]), "{report:#}");
    assert_eq!(finding["not_on"], json!(["kernel-ext4"]), "{report:#}");
}
