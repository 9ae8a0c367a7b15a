//! Reports that a CI reads: parsed by others, true, and tried before the program is run.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::lab::{Lab, text};

/// It replaces a file by one that it has not synced: found by the calls alone.
pub const FORGETS: &str = "echo new > t; mv t f";
/// A run by the calls alone, which takes little time.
pub const QUICK: [&str; 7] =
    ["run", "--linger", "0", "--cuts", "none", "--setup", "echo old > f; echo old > g"];

/// Makes the program of a script; how it is called.
fn program(lab: &Lab, script: &str) -> &'static str {
    let path = lab.script("script", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    "./script"
}

/// Runs a script quickly: status, output, errors.
pub fn quick(lab: &Lab, more: &[&str], script: &str) -> (Option<i32>, String, String) {
    let words = [&QUICK[..], more, &["--", program(lab, script)]].concat();
    let out = lab.command(&words).env_remove("GITHUB_ACTIONS").output().unwrap();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

/// A JUnit file as Python reads it: suites, of each name and attributes, and its tests with the
/// kind and message of what is in them.
pub fn junit(lab: &Lab, name: &str) -> Value {
    let script = "\
import json, sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == 'testsuites'
def test(of):
    inner = [[c.tag, c.get('message'), c.get('type'), c.text] for c in of]
    return {'name': of.get('name'), 'class': of.get('classname'), 'inner': inner}
print(json.dumps([{**s.attrib, 'cases': [test(c) for c in s.iter('testcase')]}
                  for s in root.findall('testsuite')]))
";
    let python = Command::new("python3").args(["-c", script]).arg(lab.path(name)).output().unwrap();
    assert!(python.status.success(), "{}", text(&python.stderr));
    serde_json::from_slice(&python.stdout).unwrap()
}

pub fn sarif(lab: &Lab, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(lab.path(name)).unwrap()).unwrap()
}

#[test]
fn all_reports_say_the_same() {
    let Some(lab) = Lab::new() else { return };
    let files = ["--junit", "a.xml", "--sarif", "a.sarif", "--annotations", "github", "--json"];
    let (status, out, errors) = quick(&lab, &files, FORGETS);
    assert_eq!(status, Some(1), "{out}{errors}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let found = &report["by_calls"]["findings"][0];
    let fingerprint = found["fingerprint"].as_str().unwrap();
    assert_eq!(fingerprint.len(), 16, "{report:#}");

    let suites = junit(&lab, "a.xml");
    assert_eq!(suites.as_array().unwrap().len(), 2, "{suites:#}");
    assert_eq!((&suites[1]["tests"], &suites[1]["failures"]), (&"2".into(), &"1".into()));
    let case = &suites[1]["cases"][1];
    assert_eq!(case["name"], "f: replaced by rename without fsync", "{suites:#}");
    let [tag, message, kind, body] = [0, 1, 2, 3].map(|n| case["inner"][0][n].as_str().unwrap());
    assert_eq!((tag, kind), ("failure", "not-asked-for"));
    let fix = "; to fix it, add fsync of t before rename t to f";
    assert!(message.starts_with("After a power cut on ") && message.ends_with(fix), "{message}");
    assert!(body.contains(fingerprint) && body.contains("lost      write t"), "{body}");

    let log = sarif(&lab, "a.sarif");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    let named = driver["name"].is_string() && driver["version"].is_string();
    assert!(named && run["invocations"][0]["executionSuccessful"] == true, "{log:#}");
    let result = &run["results"][0];
    let rule = &driver["rules"][result["ruleIndex"].as_u64().unwrap() as usize]["id"];
    assert_eq!((rule, &result["level"]), (&result["ruleId"], &"error".into()), "{log:#}");
    assert_eq!(result["message"]["text"], message);
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "script", "{log:#}");
    assert_eq!(place["region"]["startLine"], 1);
    assert_eq!(result["partialFingerprints"]["steadfastFinding/v1"], fingerprint);
    assert!(result.get("suppressions").is_none(), "{log:#}");

    let line = errors.lines().find(|line| line.starts_with("::error ")).unwrap();
    let head = "::error file=script,title=power cut%3A f%3A replaced by rename without fsync::";
    assert!(line.starts_with(head) && line.contains(message), "{line}");
}

#[test]
fn another_run_has_the_same_fingerprints() {
    let Some(lab) = Lab::new() else { return };
    let prints = |more: &[&str], script: &str| {
        let (_, out, errors) = quick(&lab, &[more, &["--json"]].concat(), script);
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e} {errors}"));
        let findings = report["by_calls"]["findings"].as_array().unwrap().clone();
        findings.iter().map(|f| f["fingerprint"].clone()).collect::<Vec<_>>()
    };
    let one = prints(&[], FORGETS);
    assert_eq!(one.len(), 1);
    assert_eq!(one, prints(&["--seed", "9", "--jobs", "1"], "echo newer > t; sleep 0.1; mv t f"));
    assert_ne!(one, prints(&[], "echo new > t; mv t g"));
}

/// Names and what a judge prints are anybody's.
#[test]
fn nasty_names_are_escaped() {
    let Some(lab) = Lab::new() else { return };
    let name = r#"printf 'f\n::error::100%%<&\001\033[31m"'"#;
    std::fs::write(lab.path("name"), name).unwrap();
    let script =
        format!("f=$({name}); echo old > \"$f\"; sync \"$f\" .; echo new > t; mv t \"$f\"");
    let judge = r"printf '::error::5%%\r\001\033[2J<&]]>\377\n'; exit 1";
    for judge in [&[][..], &["--judge", judge]] {
        let files = ["--junit", "a.xml", "--sarif", "a.sarif", "--annotations", "github"];
        let (status, out, errors) = quick(&lab, &[&files[..], judge].concat(), &script);
        assert_eq!(status, Some(1), "{out}{errors}");
        let raw = std::fs::read_to_string(lab.path("a.xml")).unwrap();
        assert!(!raw.contains(['\u{1}', '\u{1b}']), "{raw}");
        let suites = junit(&lab, "a.xml");
        let all = suites.to_string();
        assert!(all.contains("::error::") && all.contains("<&"), "{suites:#}");
        assert!(sarif(&lab, "a.sarif")["runs"][0]["results"].to_string().contains("<&"));
        // What is in the report is none to GitHub, which is told so.
        let (_, after) = out.split_once("::stop-commands::").unwrap();
        let (word, after) = after.split_once('\n').unwrap();
        let (_, after) = after.split_once(&format!("::{word}::\n")).unwrap();
        let is_command = |line: &&str| line.trim_start().starts_with("::");
        let commands: Vec<&str> = after.lines().filter(is_command).collect();
        let ours = |line: &&str| line.starts_with("::error file=script,title=power cut");
        assert!(commands.iter().all(ours), "{out}");
        assert!(commands.iter().any(|line| line.contains("%25")), "{commands:?}");
    }
}

#[test]
fn annotations_are_for_github() {
    let Some(lab) = Lab::new() else { return };
    let program = program(&lab, FORGETS);
    for (set, option, expected) in [
        (Some("true"), "auto", true),
        (Some("false"), "auto", false),
        (None, "auto", false),
        (None, "github", true),
        (Some("true"), "none", false),
    ] {
        let more = ["--annotations", option, "--", program];
        let mut command = lab.command(&[&QUICK[..], &more].concat());
        command.env_remove("GITHUB_ACTIONS");
        set.map(|set| command.env("GITHUB_ACTIONS", set));
        let out = command.output().unwrap();
        let said = text(&out.stdout);
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert_eq!(said.contains("\n::error file=script"), expected, "{set:?} {option}: {said}");
    }
}

/// Nothing was found: that is said, too.
#[test]
fn a_good_program_passes() {
    let Some(lab) = Lab::new() else { return };
    let files = ["--junit", "a.xml", "--sarif", "a.sarif", "--annotations", "github"];
    let right = "echo new > t; sync t; mv t f";
    let (status, out, errors) = quick(&lab, &files, right);
    assert_eq!(status, Some(0), "{out}{errors}");
    assert!(!out.contains("::error") && !out.contains("::notice"), "{out}");
    let suites = junit(&lab, "a.xml");
    for suite in suites.as_array().unwrap() {
        let counts = ["tests", "failures", "errors"].map(|key| suite[key].as_str().unwrap());
        assert_eq!(counts, ["1", "0", "0"], "{suites:#}");
    }
    assert_eq!(sarif(&lab, "a.sarif")["runs"][0]["results"], serde_json::json!([]));
}

/// Before the program is run, which may take long.
#[test]
fn files_are_tried_first() {
    let Some(lab) = Lab::new() else { return };
    std::fs::create_dir(lab.path("folder")).unwrap();
    let script = "echo ran > \"$TMPDIR/begun\"";
    for option in ["--junit", "--sarif", "--write-baseline"] {
        for path in ["folder", "none/file", "/proc/none", "/dev/stdout", "-"] {
            let (status, _, errors) = quick(&lab, &[option, path], script);
            assert_eq!(status, Some(2), "{option} {path}: {errors}");
            assert!(errors.contains(option), "{option} {path}: {errors}");
        }
    }
    let (status, _, errors) = quick(&lab, &["--junit", "a", "--sarif", "a"], script);
    assert!(status == Some(2) && errors.contains("name the same file"), "{errors}");
    let (status, _, errors) = quick(&lab, &["--budget", "5"], script);
    assert!(status == Some(2) && errors.contains("90s, 5m, 1h30m"), "{errors}");
    assert!(!lab.path("begun").exists() && !lab.path("a").exists());
}

/// A disk that is full afterwards: what was found counts.
#[test]
fn a_report_that_is_not_there_is_no_success() {
    let Some(lab) = Lab::new() else { return };
    for (script, expected) in [(FORGETS, 1), ("echo new > t; sync t; mv t f", 2)] {
        for option in ["--junit", "--sarif"] {
            let (status, out, errors) = quick(&lab, &[option, "/dev/full"], script);
            assert_eq!(status, Some(expected), "{option}: {out}{errors}");
            assert!(errors.contains("cannot write /dev/full"), "{errors}");
        }
    }
}

/// A recording is opened elsewhere, by the command that the reports have.
#[test]
fn an_artefact_is_shown_elsewhere() {
    let Some(lab) = Lab::new() else { return };
    let setup = ["run", "-o", "noauto_da_alloc,commit=60", "--linger", "0", "--setup"];
    let program = "echo new > t; mv t f; echo x > log; sync log";
    let files = ["echo old > f", "--record", "run.crash", "--sarif", "a.sarif", "--", "sh", "-c"];
    let out = lab.crash(&[&setup[..], &files, &[program]].concat());
    assert_eq!(out.status.code(), Some(1), "{}{}", text(&out.stdout), text(&out.stderr));
    let log = sarif(&lab, "a.sarif");
    let show = log["runs"][0]["results"][0]["properties"]["show"].as_str().unwrap();
    let words: Vec<&str> = show.split(' ').skip(2).collect();
    assert_eq!(&words[..2], ["show", "run.crash"], "{show}");
    std::fs::create_dir(lab.path("elsewhere")).unwrap();
    std::fs::rename(lab.path("run.crash"), lab.path("elsewhere/run.crash")).unwrap();
    let mut command = lab.command(&words);
    let out = command.current_dir(lab.path("elsewhere")).stdin(Stdio::null()).output().unwrap();
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}{}", text(&out.stderr));
    assert!(said.contains("Wrong: f: replaced by rename without fsync"), "{said}");
}
