//! What is used wrongly is told, with status 2.

use super::lab::{Lab, text};

#[test]
fn wrong_words_are_named() {
    let Some(lab) = Lab::new() else { return };
    let wrong: [(&[&str], &str); 9] = [
        (&["run", "--fs", "zfs", "--", "true"], "--fs zfs"),
        (&["run", "--device", "tape", "--", "true"], "--device tape"),
        (&["run", "--cuts", "some", "--", "true"], "--cuts"),
        (&["run", "-o", "data=mirrored", "--", "true"], "data=mirrored"),
        (&["run", "--size", "8k", "--", "true"], "--size"),
        (&["run", "--device", "hdd", "--size", "64m", "--", "true"], "1024m"),
        (&["run", "--fs", "xfs", "--device", "ram", "--", "true"], "--device ram"),
        (&["run", "--setup", "exit 3", "--", "true"], "--setup"),
        (&["run", "--", "no-such-program"], "no-such-program"),
    ];
    for (words, named) in wrong {
        let out = lab.crash(words);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}\n{said}");
        assert!(said.contains(named), "{words:?}\n{said}");
    }
}

#[test]
fn bad_recordings_are_refused() {
    let Some(lab) = Lab::new() else { return };
    let out = lab.crash(&["show", "missing.crash"]);
    assert_eq!(out.status.code(), Some(2));
    std::fs::write(lab.path("bad.crash"), "no recording").unwrap();
    let out = lab.crash(&["show", "bad.crash", "--cut", "3"]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("bad.crash") && said.contains("no recording"), "{said}");
}
