//! The repositories of `examples/`: the test of each fails with the finding that its README names,
//! and passes once its patch is applied.

use super::helpers::{GO, copied, python, ran, said};
use super::lab::Lab;

/// Runs the test of an example, which finds this, then again with the patch.
fn fails_until_patched(lab: &Lab, folder: &str, set: &[(&str, &str)], test: &[&str], found: &str) {
    let out = ran(lab, folder, set, test);
    // A finding is folded where it is printed.
    let report = said(&out).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!out.status.success() && report.contains(found), "{found}: {}", said(&out));
    let out = ran(lab, folder, set, &["patch", "-p1", "-i", "fix.patch"]);
    assert!(out.status.success(), "{}", said(&out));
    let out = ran(lab, folder, set, test);
    assert!(out.status.success(), "with the patch: {}", said(&out));
}

#[test]
fn a_spool_in_python_loses_jobs_until_it_syncs_its_folder() {
    let Some(lab) = Lab::new() else { return };
    let (plugin, folder) = (copied(&lab, "helpers/python"), copied(&lab, "examples/python"));
    let test = [python("pytest"), "-m", "pytest", "-p", "steadfast_powercut"];
    let found = "job 2 was accepted and is lost on ext4, ext4 with noauto_da_alloc, ext4 with \
                 data=writeback, ext4 with data=journal, XFS, btrfs, ext2 to fix it, add fsync of \
                 the folder spool before it marks 'accepted 2'";
    fails_until_patched(&lab, &folder, &[("PYTHONPATH", &plugin)], &test, found);
}

#[test]
fn a_ledger_in_go_does_not_open_until_it_cuts_a_torn_entry_off() {
    let Some(lab) = Lab::new() else { return };
    copied(&lab, "helpers/go");
    let folder = copied(&lab, "examples/go");
    let out = ran(&lab, &folder, &GO, &["go", "vet", "./..."]);
    assert!(out.status.success(), "{}", said(&out));
    let found = "line 1 of the ledger is damaged";
    fails_until_patched(&lab, &folder, &GO, &["go", "test"], found);
}

#[test]
fn an_invoice_number_in_rust_is_given_twice_until_it_is_not_written_in_place() {
    let Some(lab) = Lab::new() else { return };
    let folder = copied(&lab, "examples/rust");
    let target = lab.path("target").display().to_string();
    let found = "number 1 is handed out twice on ext4, ext4 with noauto_da_alloc, ext4 with \
                 data=writeback, ext4 with data=journal, XFS, btrfs, ext2 to fix it, write a new \
                 file, fsync it, rename it over the old one, fsync the folder";
    let test = ["cargo", "test", "--offline", "--locked"];
    fails_until_patched(&lab, &folder, &[("CARGO_TARGET_DIR", &target)], &test, found);
}
