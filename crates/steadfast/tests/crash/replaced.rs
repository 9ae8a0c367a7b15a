//! A script that writes a file anew and renames it over the old one.

use super::lab::{Lab, text};

/// It forgets to sync what it renames. The program beside it syncs something else, and with that
/// the journal: the rename is durable then, what the file holds is not.
pub const FORGETS: &str = "\
echo 'colour=red' > settings.new
echo 'size=large' >> settings.new
mv settings.new settings
echo replaced
echo 'settings replaced' > log
sync log
echo logged
";

/// It syncs first.
pub const SYNCS: &str = "\
echo 'colour=red' > settings.new
echo 'size=large' >> settings.new
sync settings.new
mv settings.new settings
echo replaced
echo 'settings replaced' > log
sync log
echo logged
";

/// The old text or the new one.
pub const JUDGE: &str = "case $(cat settings) in colour=blue | 'colour=red\nsize=large') ;; \
     *) echo \"settings: $(wc -c < settings) bytes\"; exit 1;; esac";

/// The words of `crash run` for a script.
pub fn words<'w>(options: &'w str, judge: &'w [&'w str], script: &'w str) -> Vec<&'w str> {
    // Time alone writes nothing: a machine may be slow.
    let setup = [
        "-o",
        options,
        "-o",
        "commit=60",
        "--setup",
        "echo colour=blue > settings",
        "--linger",
        "0.2",
    ];
    [&setup[..], judge, &["--", "sh", script]].concat()
}

#[test]
fn a_rename_without_fsync_is_found() {
    let Some(lab) = Lab::new() else { return };
    let script = lab.script("forgets", FORGETS);
    let judged: [&[&str]; 2] = [&["--judge", JUDGE], &[]];
    for options in ["data=writeback,noauto_da_alloc", "noauto_da_alloc"] {
        for judge in judged {
            let (report, found) = lab.run(&words(options, judge, &script));
            assert!(found, "{options} {judge:?}: {report:#}");
            let kind = if judge.is_empty() { "not asked for" } else { "judge" };
            let what = &report["findings"][0];
            assert_eq!(what["wrong"][0]["kind"], kind, "{report:#}");
        }
    }
}

#[test]
fn with_an_fsync_nothing_is_found() {
    let Some(lab) = Lab::new() else { return };
    let script = lab.script("syncs", SYNCS);
    for options in ["data=writeback,noauto_da_alloc", "noauto_da_alloc", "data=journal"] {
        for judge in [&["--judge", JUDGE][..], &[]] {
            let (report, found) = lab.run(&words(options, judge, &script));
            assert!(!found, "{options} {judge:?}: {report:#}");
            assert!(report["states"].as_u64().unwrap() > 20, "{report:#}");
        }
    }
}

#[test]
fn other_machines_keep_it_too() {
    let Some(lab) = Lab::new() else { return };
    let script = lab.script("syncs", SYNCS);
    for machine in [
        &["--journal", "nvram"][..],
        &["--fs", "ext3", "--device", "emmc"],
        &["--fs", "ext3", "--device", "hdd"],
        &["--device", "ram", "--cuts", "flushes"],
    ] {
        let judge = [machine, &["--judge", JUDGE]].concat();
        let (report, found) = lab.run(&words("data=ordered", &judge, &script));
        assert!(!found, "{machine:?}: {report:#}");
        let exposure = &report["exposure"];
        assert!(exposure["max"]["calls"].as_u64().unwrap() >= 1, "{report:#}");
        // So few cuts have no 99th percentile.
        assert!(exposure["n"].as_u64().unwrap() < 400 && exposure["p99"].is_null(), "{report:#}");
    }
}

#[test]
fn a_finding_is_shown_again_by_its_command() {
    let Some(lab) = Lab::new() else { return };
    let script = lab.script("forgets", FORGETS);
    let judge = ["--judge", JUDGE, "--record", "run.crash"];
    let (report, found) = lab.run(&words("noauto_da_alloc", &judge, &script));
    assert!(found);
    let what = &report["findings"][0];
    let state = what["first_state"].as_u64().unwrap().to_string();
    let command = what["show"].as_str().unwrap();
    assert!(command.starts_with("steadfast crash show run.crash --cut "), "{command}");
    let show = ["show", "run.crash", "--cut", &state, "--judge", JUDGE];
    let more = ["--shrink", "--tree", "after", "--image", "crashed.img"];
    let out = lab.crash(&[&show[..], &more].concat());
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}{}", text(&out.stderr));
    for part in [
        &format!("State {state} of ext4 -o noauto_da_alloc,commit=60"),
        "rename settings.new to settings",
        "printed: replaced",
        "settings  0 bytes  (changed)",
        "Wrong: the judge ended with status 1: settings: 0 bytes",
        "Shrunk: ",
    ] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
    assert_eq!(std::fs::read(lab.path("after/settings")).unwrap(), b"");
    // What the cut left can be looked at by hand.
    let fsck = std::process::Command::new("timeout")
        .args(["-s", "KILL", "60", "e2fsck", "-fy"])
        .arg(lab.path("crashed.img"))
        .output()
        .unwrap();
    assert!(matches!(fsck.status.code(), Some(0 | 1)), "{}", text(&fsck.stdout));
    // State 0 is the file system before anything has happened.
    let out = lab.crash(&["show", "run.crash", "--cut", "0", "--judge", JUDGE]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stdout));
    let out = lab.crash(&["show", "run.crash"]);
    assert!(text(&out.stdout).contains("noauto_da_alloc"), "{}", text(&out.stdout));
}

/// A described stack is cut as a disk is: its volumes are assembled after each cut, memory is
/// blank, and what a program forgets is found there too.
#[test]
fn described_stacks_are_cut_too() {
    let Some(lab) = Lab::new() else { return };
    std::fs::write(lab.path("stacks.toml"), include_str!("stacks.toml")).unwrap();
    std::fs::write(lab.path("setup.toml"), include_str!("../dd/setup.toml")).unwrap();
    let (forgets, syncs) = (lab.script("forgets", FORGETS), lab.script("syncs", SYNCS));
    for stack in ["stacks.toml:mirror", "stacks.toml:in-place", "setup.toml"] {
        let judge = ["--stack", stack, "--judge", JUDGE];
        let (report, found) = lab.run(&words("data=ordered", &judge, &syncs));
        assert!(!found, "{stack}: {report:#}");
        assert!(report["states"].as_u64().unwrap() > 20, "{report:#}");
    }
    // Only memory holds what this one says is durable.
    let judge = ["--stack", "ramdisk-mirror:ram-cache", "--judge", JUDGE];
    let (report, found) = lab.run(&words("data=ordered", &judge, &syncs));
    assert!(found, "{report:#}");
    let judge = ["--stack", "stacks.toml:mirror", "--judge", JUDGE, "--record", "run.crash"];
    let (report, found) = lab.run(&words("data=writeback", &judge, &forgets));
    assert!(found, "{report:#}");
    // The recording has the description with it.
    std::fs::remove_file(lab.path("stacks.toml")).unwrap();
    let state = report["findings"][0]["first_state"].as_u64().unwrap().to_string();
    let out = lab.crash(&["show", "run.crash", "--cut", &state, "--judge", JUDGE]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}{}", text(&out.stderr));
    assert!(said.contains(&format!("State {state} of stacks.toml/mirror -o ")), "{said}");
    let out = lab.crash(&["show", "run.crash", "--cut", &state, "--image", "crashed.img"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
}
