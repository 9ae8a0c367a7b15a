//! A budget: what is left is said, what is found can be shown, and with time enough all is as
//! without one.

use serde_json::Value;

use super::lab::{Lab, text};
use super::replaced::{FORGETS, JUDGE, SYNCS, words};

#[test]
fn what_is_not_explored_is_said() {
    let Some(lab) = Lab::new() else { return };
    let script = lab.script("syncs", SYNCS);
    let judge = ["--judge", JUDGE, "--budget", "1ms", "--junit", "a.xml"];
    let out = lab.crash(&[&["run"], &words("noauto_da_alloc", &judge, &script)[..]].concat());
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stderr));
    for part in [
        "nothing in what was explored",
        "(stopped early)",
        "budget    1ms is used up. Not explored:",
        "states of the recorded disk: ",
        "the calls by what POSIX promises: ",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    let suites = super::ci::junit(&lab, "a.xml");
    assert_eq!(suites[0]["cases"][0]["inner"][0][0], "skipped", "{suites:#}");
    let (report, found) = lab.run(&words("noauto_da_alloc", &judge, &script));
    assert!(!found && report["budget"] == "1ms", "{report:#}");
    let left = &report["not_explored"]["instants"];
    let all = left.as_u64().unwrap() + report["cuts"].as_u64().unwrap();
    assert!(left.as_u64().unwrap() > 5 && all > 20, "{report:#}");
    assert!(!report["stopped"].as_bool().unwrap(), "{report:#}");
}

#[test]
fn what_is_found_within_it_can_be_shown() {
    let Some(lab) = Lab::new() else { return };
    let script = lab.script("forgets", FORGETS);
    let judge = ["--judge", JUDGE, "--record", "run.crash", "--budget", "5m"];
    let (report, found) = lab.run(&words("noauto_da_alloc", &judge, &script));
    assert!(found && report["not_explored"].is_null(), "{report:#}");
    let kinds = |report: &Value| {
        let findings = report["findings"].as_array().unwrap().clone();
        findings.iter().map(|finding| finding["fingerprint"].clone()).collect::<Vec<_>>()
    };
    let state = report["findings"][0]["first_state"].as_u64().unwrap().to_string();
    let out = lab.crash(&["show", "run.crash", "--cut", &state, "--judge", JUDGE]);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stdout));
    let judge = ["--judge", JUDGE];
    let (without, _) = lab.run(&words("noauto_da_alloc", &judge, &script));
    assert_eq!(kinds(&report), kinds(&without), "{report:#} {without:#}");
}
