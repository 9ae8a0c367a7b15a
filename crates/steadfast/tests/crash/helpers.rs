//! The helpers for other languages: installed as a user does, each finds the planted bugs of its
//! examples and nothing in their correct twins.

use std::process::{Command, Output};

use super::lab::{Lab, text};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Nothing but Go's standard library, and no compiler for C.
pub const GO: [(&str, &str); 3] = [("GOPROXY", "off"), ("GOFLAGS", ""), ("CGO_ENABLED", "0")];

/// Copies a folder of the repository to where it is in the repository: building leaves files beside
/// the sources.
pub fn copied(lab: &Lab, folder: &str) -> String {
    let mut copy = Command::new("cp");
    let done = copy.args(["-r", "--parents", folder]).arg(lab.path("")).current_dir(ROOT).status();
    assert!(done.unwrap().success(), "{folder}");
    lab.path(folder).display().to_string()
}

/// Runs a command that ends within five minutes, with `steadfast` named as a user would.
pub fn ran(lab: &Lab, folder: &str, environment: &[(&str, &str)], words: &[&str]) -> Output {
    Command::new("timeout")
        .args(["-s", "KILL", "300"])
        .args(words)
        .envs(environment.iter().copied())
        .env("STEADFAST", env!("CARGO_BIN_EXE_steadfast"))
        .env("TMPDIR", lab.path(""))
        .current_dir(folder)
        .output()
        .unwrap()
}

/// What it has printed.
pub fn said(out: &Output) -> String {
    text(&out.stdout) + &text(&out.stderr)
}

/// A Python that has these modules.
pub fn python(modules: &str) -> &'static str {
    let has = |python: &&str| {
        let asked = Command::new(*python).args(["-c", &format!("import {modules}")]).output();
        asked.is_ok_and(|asked| asked.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has);
    found.unwrap_or_else(|| panic!("no python3 has {modules}: see `cargo xtask test`"))
}

#[test]
fn a_pytest_plugin_finds_planted_bugs() {
    let Some(lab) = Lab::new() else { return };
    let folder = copied(&lab, "helpers/python");
    let wheel =
        ["-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", "."];
    let pip = python("setuptools, wheel, pip");
    let out = ran(&lab, &folder, &[], &[&[pip][..], &wheel, &["."]].concat());
    assert!(out.status.success(), "{}", said(&out));
    let install = ["-m", "pip", "install", "--no-deps", "--no-index", "--target", "site"];
    let wheel = "steadfast_powercut-0.1.0-py3-none-any.whl";
    let out = ran(&lab, &folder, &[], &[&[pip][..], &install, &[wheel]].concat());
    assert!(out.status.success(), "{}", said(&out));
    let site = format!("{folder}/site");
    // Not where the sources are, which would be taken instead of what is installed.
    let (at, examples) = (format!("{folder}/examples"), ["-m", "pytest", "-p", "no:cacheprovider"]);
    let environment = [("PYTHONPATH", &site[..])];
    let out = ran(&lab, &at, &environment, &[&[python("pytest")][..], &examples].concat());
    let said = said(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("3 failed, 5 passed"), "{said}");
    for found in [
        "settings: replaced by rename without fsync",
        "acked 0 is not in the journal",
        "fsync of journal failed as asked (EIO), and the program went on",
    ] {
        assert!(said.replace("\n          ", " ").contains(found), "{found}: {said}");
    }
    for test in ["settings", "appends", "failing_fsync"] {
        let failed = format!("FAILED test_store.py::TestPlanted::test_{test}");
        assert!(said.contains(&failed), "{failed}: {said}");
    }
}

#[test]
fn a_package_of_go_finds_planted_bugs() {
    let Some(lab) = Lab::new() else { return };
    let folder = copied(&lab, "helpers/go");
    let out = ran(&lab, &folder, &GO, &["go", "vet", "./..."]);
    assert!(out.status.success(), "{}", said(&out));
    let out = ran(&lab, &folder, &GO, &["go", "test", "-v", "./..."]);
    let said = said(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    for (test, how) in [
        ("TestPlanted/settings", "FAIL"),
        ("TestPlanted/appends", "FAIL"),
        ("TestPlanted/sync", "FAIL"),
        ("TestTwins/settings", "PASS"),
        ("TestTwins/appends", "PASS"),
        ("TestTwins/sync", "PASS"),
        ("TestTwins/words", "PASS"),
        ("TestWithoutSteadfastTheWordsDoNothing", "PASS"),
    ] {
        assert!(said.contains(&format!("--- {how}: {test} ")), "{test}: {said}");
    }
    for found in [
        "settings: replaced by rename without fsync",
        "acked 0: it is not in the journal",
        "fsync of journal failed as asked (EIO), and the program went on",
    ] {
        assert!(said.contains(found), "{found}: {said}");
    }
}
