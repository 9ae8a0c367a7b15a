//! Wrong use is reported, with status 2.

use super::lab::{Lab, text};

#[test]
fn wrong_words_are_named() {
    let Some(lab) = Lab::new() else { return };
    let wrong: [(&[&str], &str); 13] = [
        (&["run", "--fs", "zfs", "--", "true"], "--fs zfs is unknown: choose ext2, ext3, ext4, "),
        (&["run", "-o", "remount", "--", "true"], "journal=, remount"),
        (&["run", "--device", "tape", "--", "true"], "invalid value 'tape'"),
        (&["run", "--cuts", "some", "--", "true"], "boundaries:N, unsynced:N or pauses:N"),
        (&["run", "-o", "data=mirrored", "--", "true"], "data=mirrored"),
        (&["run", "--size", "8k", "--", "true"], "--size"),
        (&["run", "--device", "hdd", "--size", "64m", "--", "true"], "1024m"),
        (&["run", "--fs", "xfs", "--device", "ram", "--", "true"], "own file systems: choose "),
        (&["run", "--record", "/dev/stdout", "--", "true"], "what is printed goes there"),
        (&["run", "--setup", "exit 3", "--", "true"], "--setup"),
        (&["run", "--setup", "echo no such user; exit 1", "--", "true"], "1: no such user"),
        (&["run", "--jobs", "0", "--", "true"], "--jobs"),
        (&["run", "--", "no-such-program"], "no-such-program"),
    ];
    for (words, named) in wrong {
        let out = lab.crash(words);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}\n{said}");
        assert!(said.contains(named), "{words:?}\n{said}");
    }
}

/// By the name of the file that the shell has opened for it.
#[test]
fn a_recording_is_no_output() {
    let Some(lab) = Lab::new() else { return };
    for is_error in [false, true] {
        let log = std::fs::File::create(lab.path("log")).unwrap();
        let mut run = lab.command(&["run", "--record", "log", "--", "touch", "begun"]);
        let (out, errors) = std::io::pipe().map(|(read, write)| (write, read)).unwrap();
        match is_error {
            true => run.stdout(out).stderr(log),
            false => run.stdout(log).stderr(out),
        };
        let status = run.status().unwrap();
        drop(run);
        let said = match is_error {
            true => std::fs::read_to_string(lab.path("log")).unwrap(),
            false => std::io::read_to_string(errors).unwrap(),
        };
        assert!(status.code() == Some(2) && said.contains("what is printed goes there"), "{said}");
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

/// Before the state is reproduced and recovered, which may take minutes.
#[test]
fn outputs_that_cannot_be_are_refused_at_once() {
    let Some(lab) = Lab::new() else { return };
    let run = ["run", "--linger", "0", "--cuts", "flushes", "--record", "run.crash"];
    let out = lab.crash(&[&run[..], &["--", "touch", "file"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let before = std::fs::read(lab.path("run.crash")).unwrap();
    std::fs::create_dir(lab.path("there")).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, lab.path("pipe"), mode).unwrap();
    let wrong: [(&[&str], &str); 9] = [
        (&["--image", "pipe"], "--image pipe: an image is written to a regular file only"),
        (&["--image", "/dev/full"], "--image /dev/full: an image is written to a regular file"),
        (&["--image", "/dev/stdout"], "which is not the output"),
        (&["--tree", "there"], "--tree there: it is there already"),
        (&["--tree", "none/after"], "--tree none/after"),
        (&["--image", "there"], "--image"),
        (&["--image", "none/img"], "--image"),
        (&["--image", "run.crash"], "the recording itself"),
        (&["--image", "new", "--tree", "new"], "name the same file"),
    ];
    for (words, named) in wrong {
        let out = lab.crash(&[&["show", "run.crash", "--cut", "1"], words].concat());
        let (printed, said) = (text(&out.stdout), text(&out.stderr));
        assert_eq!(out.status.code(), Some(2), "{words:?}\n{said}");
        assert!(said.contains(named) && printed.is_empty(), "{words:?}\n{said}\n{printed}");
    }
    assert!(!lab.path("new").exists());
    assert!(std::fs::read(lab.path("run.crash")).unwrap() == before);
}

/// A recording that nobody can keep is no finding.
#[test]
fn a_report_that_cannot_be_written_is_no_finding() {
    let Some(lab) = Lab::new() else { return };
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let words = ["run", "--linger", "0", "--cuts", "1", "--", "true"];
    assert_eq!(lab.command(&words).stdout(full).status().unwrap().code(), Some(2));
}

#[test]
fn what_a_program_leaves_running_does_not_keep_the_mount() {
    let Some(lab) = Lab::new() else { return };
    let script = lab.script("left", "echo x > f\nsleep 3000 > /dev/null 2>&1 &\necho left\n");
    let plan = ["--linger", "0.1", "--cuts", "flushes", "--", "sh", &script];
    let (report, found) = lab.run(&plan);
    assert!(!found, "{report:#}");
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let here = lab.path("").display().to_string();
    assert!(!table.contains(&here), "something is still mounted in {here}:\n{table}");
}

#[test]
fn who_changes_nothing_has_nothing_at_stake() {
    let Some(lab) = Lab::new() else { return };
    let out = lab.crash(&["run", "--linger", "0", "--", "true"]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stderr));
    assert!(said.contains("nothing in what is measured") && said.contains("at stake"), "{said}");
}

/// A test whose program fails has not tested what it was to.
#[test]
fn a_program_that_fails_is_no_success() {
    let Some(lab) = Lab::new() else { return };
    let words = ["--linger", "0", "--junit", "j.xml", "--", "false"];
    let out = lab.crash(&[&["run"], &words[..]].concat());
    let (said, errors) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(2), "{said}{errors}");
    assert!(errors.contains("nothing was found, and the program ended with status 1"), "{errors}");
    let junit = std::fs::read_to_string(lab.path("j.xml")).unwrap();
    assert!(junit.contains("errors=\"1\""), "{junit}");
    let out = lab.crash(&[&["run", "--ignore-status"], &words[..]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
}

/// It says nothing of the files.
#[test]
fn a_judge_that_is_not_there_is_no_finding() {
    let Some(lab) = Lab::new() else { return };
    let words = ["run", "--linger", "0", "--judge", "nosuchjudge", "--"];
    let out = lab.crash(&[&words[..], &["sh", "-c", "echo x > f"]].concat());
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("nosuchjudge") && said.contains("cannot be run"), "{said}");
}

/// What e2fsck says names no file that another state has under another name.
#[test]
fn damage_of_ext2_is_one_kind() {
    let Some(lab) = Lab::new() else { return };
    let words = ["run", "--json", "--fs", "ext2", "--linger", "0", "--model", "none", "--"];
    let out = lab.crash(&[&words[..], &["sh", "-c", "echo a > f; sync f"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let all = report["findings"].as_array().unwrap();
    assert!(!all.is_empty(), "{report:#}");
    let said = all.iter().map(|finding| finding["what"].as_str().unwrap());
    assert!(said.clone().all(|what| !what.contains("/tmp")), "{report:#}");
    let kinds: std::collections::BTreeSet<&str> = said.collect();
    assert_eq!(kinds.len(), all.len(), "{report:#}");
}
