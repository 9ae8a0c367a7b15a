//! The life of a baseline: written, known, new, fixed; of another one, and damaged.

use serde_json::Value;

use super::ci::{FORGETS, junit, quick, sarif};
use super::lab::Lab;

const RIGHT: &str = "echo new > t; sync t; mv t f";
/// A second mistake beside the first one.
const MORE: &str = "echo new > t; mv t f; echo one > u; mv u g";

/// A folder with the baseline of the first mistake.
fn known() -> Option<Lab> {
    let lab = Lab::new()?;
    let (status, out, errors) = quick(&lab, &["--write-baseline", "known.toml"], FORGETS);
    assert_eq!(status, Some(0), "{out}{errors}");
    Some(lab)
}

#[test]
fn what_is_known_does_not_fail() {
    let Some(lab) = known() else { return };
    let written = std::fs::read_to_string(lab.path("known.toml")).unwrap();
    assert!(written.contains("replaced by rename without fsync"), "{written}");
    assert!(written.contains("program = \"./script\""), "{written}");
    let files = ["--baseline", "known.toml", "--junit", "a.xml", "--sarif", "a.sarif"];
    let annotated = [&files[..], &["--annotations", "github"]].concat();
    let (status, out, errors) = quick(&lab, &annotated, FORGETS);
    assert_eq!(status, Some(0), "{out}{errors}");
    assert!(out.contains("baseline  known.toml: 1 known, 0 new"), "{out}");
    assert!(out.contains("\n::notice file=script,title=power cut%2C known%3A f"), "{out}");
    assert!(!out.contains("::error"), "{out}");
    let suites = junit(&lab, "a.xml");
    let inner = &suites[1]["cases"][1]["inner"][0];
    let message = inner[1].as_str().unwrap();
    assert!(inner[0] == "skipped" && message.starts_with("known: After a power cut"), "{suites:#}");
    assert_eq!(suites[1]["failures"], "0", "{suites:#}");
    let result = &sarif(&lab, "a.sarif")["runs"][0]["results"][0];
    assert_eq!(result["baselineState"], "unchanged", "{result:#}");
    assert_eq!(result["suppressions"][0]["kind"], "external", "{result:#}");
}

#[test]
fn what_is_new_fails() {
    let Some(lab) = known() else { return };
    let files = ["--baseline", "known.toml", "--junit", "a.xml", "--sarif", "a.sarif", "--json"];
    let (status, out, errors) = quick(&lab, &files, MORE);
    assert_eq!(status, Some(1), "{out}{errors}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let counts = (&report["baseline"]["known"], &report["baseline"]["new"]);
    assert_eq!(counts, (&1.into(), &1.into()), "{report:#}");
    let suites = junit(&lab, "a.xml");
    let counts = (&suites[1]["failures"], &suites[1]["tests"]);
    assert_eq!(counts, (&"1".into(), &"3".into()), "{suites:#}");
    let log = sarif(&lab, "a.sarif");
    let results = log["runs"][0]["results"].as_array().unwrap();
    let suppressed = |of: &&Value| of["suppressions"].as_array().unwrap().len() == 1;
    assert_eq!((results.len(), results.iter().filter(suppressed).count()), (2, 1), "{log:#}");
}

#[test]
fn what_is_fixed_is_said() {
    let Some(lab) = known() else { return };
    let (status, out, errors) = quick(&lab, &["--baseline", "known.toml"], RIGHT);
    assert_eq!(status, Some(0), "{out}{errors}");
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("known.toml: 0 known, 0 new fixed: not found, remove it from"), "{out}");
    // Of what was not explored nothing is known.
    let cut_short = ["--baseline", "known.toml", "--budget", "1ns"];
    let (status, out, errors) = quick(&lab, &cut_short, RIGHT);
    assert_eq!(status, Some(0), "{out}{errors}");
    assert!(out.contains("not seen in what was explored") && !out.contains("fixed"), "{out}");
}

/// It stays what it was but for what has changed: reasons are the user's.
#[test]
fn a_baseline_is_brought_up_to_date() {
    let Some(lab) = known() else { return };
    let path = lab.path("known.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{}why = \"a cache\"\n", text)).unwrap();
    let both = ["--baseline", "known.toml", "--write-baseline", "known.toml"];
    let (status, out, errors) = quick(&lab, &both, MORE);
    assert_eq!(status, Some(0), "{out}{errors}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("why = \"a cache\"") && text.matches("[[finding]]").count() == 2,
        "{text}"
    );
    let (status, ..) = quick(&lab, &["--baseline", "known.toml"], MORE);
    assert_eq!(status, Some(0));
    // Cut short, it loses nothing.
    let (status, ..) = quick(&lab, &[&both[..], &["--budget", "1ns"]].concat(), RIGHT);
    assert_eq!((status, std::fs::read_to_string(&path).unwrap()), (Some(0), text));
    let (status, ..) = quick(&lab, &both, RIGHT);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(status == Some(0) && !text.contains("[[finding]]"), "{text}");
    // Of no findings, too.
    let (status, ..) = quick(&lab, &["--baseline", "known.toml"], FORGETS);
    assert_eq!(status, Some(1));
}

#[test]
fn another_ones_baseline_is_refused() {
    let Some(lab) = known() else { return };
    let script = "echo ran > \"$TMPDIR/begun\"";
    for (more, named) in [
        (&["--judge", "true"][..], "of another judge: none, and this run has true"),
        (&["--model", "xfs"], "of another --model: posix, and this run has xfs"),
        (&["-o", "data=journal"], "of another file system"),
    ] {
        let (status, _, errors) =
            quick(&lab, &[more, &["--baseline", "known.toml"]].concat(), script);
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.contains(named) && errors.contains("--write-baseline"), "{errors}");
    }
    let words = ["run", "--setup", "echo old > f", "--baseline", "known.toml", "--", "true"];
    let out = lab.crash(&words);
    let said = super::lab::text(&out.stderr);
    assert!(
        out.status.code() == Some(2) && said.contains("of another program: ./script"),
        "{said}"
    );
    assert!(!lab.path("begun").exists());
}

#[test]
fn a_garbled_baseline_is_refused() {
    let Some(lab) = known() else { return };
    let good = std::fs::read_to_string(lab.path("known.toml")).unwrap();
    let path = lab.path("bad.toml");
    let script = "echo ran > \"$TMPDIR/begun\"";
    for (text, named) in [
        ("no baseline".to_owned(), "line 1"),
        (String::new(), "format = \"steadfast-crash-baseline\" is missing"),
        (good.replace("version = 1", "version = 9"), "version 9"),
        (good.replace("[[finding]]", "[[finding"), "at line "),
        (good.replace("fingerprints =", "prints ="), "at line "),
        (good.replace("[of]", "[off]"), "at line "),
        ("\u{0}".repeat(20), "line 1"),
        ("x".repeat(2 << 20), "longer than 1 MiB"),
    ] {
        std::fs::write(&path, &text).unwrap();
        let (status, _, errors) = quick(&lab, &["--baseline", "bad.toml"], script);
        assert_eq!(status, Some(2), "{named}: {errors}");
        assert!(errors.contains("--baseline bad.toml") && errors.contains(named), "{errors}");
    }
    std::fs::write(&path, b"\xff\xfe").unwrap();
    for (file, named) in [("bad.toml", "UTF-8"), ("none.toml", "No such file"), (".", "no file")] {
        let (status, _, errors) = quick(&lab, &["--baseline", file], script);
        assert!(status == Some(2) && errors.contains(named), "{file}: {errors}");
    }
    assert!(!lab.path("begun").exists());
}
