//! A signal stops what runs many workloads: nothing is left behind, and what is known is printed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::kernel;
use super::lab::{Lab, text};

/// Lets `steadfast crash WORDS` run for a while, interrupts it, and says how it has ended: its
/// status and what it printed.
fn interrupted(lab: &Lab, words: &[&str]) -> (Option<i32>, String) {
    // What is left of other uses of the folder is not ours.
    let folder = lab.path("tmp");
    std::fs::create_dir_all(&folder).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .arg("crash")
        .args(words)
        .env("TMPDIR", &folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let here = folder.display().to_string();
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // OK to ignore: it may have ended.
    let _ = kill_process(pid, Signal::INT);
    let out = steadfast_suite::output_of(Duration::from_secs(300), child).unwrap();
    let (table, left) = (mounts(), std::fs::read_dir(&folder).unwrap().count());
    assert!(!table.contains(&here) && left == 0, "{left} left:\n{table}\n{}", text(&out.stderr));
    (out.status.code(), format!("{}\n{}", text(&out.stdout), text(&out.stderr)))
}

/// Also where the signal has ended the program: what it was to do was not done.
#[test]
fn a_run_whose_program_is_stopped_is_no_success() {
    let Some(lab) = Lab::new() else { return };
    let words = ["run", "--cuts", "3", "--linger", "0.1", "--", "sh", "-c"];
    let (status, said) = interrupted(&lab, &[&words[..], &["echo x > f; sleep 600"]].concat());
    assert_eq!(status, Some(130), "{said}");
}

/// Neither a finding nor a wrong use, and the command is not waited for.
#[test]
fn a_set_up_that_is_stopped_ends_the_run() {
    let Some(lab) = Lab::new() else { return };
    for json in [&[][..], &["--json"]] {
        let words = [&["run"], json, &["--setup", "touch a; sleep 600", "--", "true"]].concat();
        let (status, said) = interrupted(&lab, &words);
        assert_eq!(status, Some(130), "{said}");
        assert!(said.contains("stopped, nothing was judged"), "{said}");
        assert_eq!(said.contains("\"exit_status\": 130"), !json.is_empty(), "{said}");
    }
}

/// What it would go on with is the folder below the mount.
#[test]
fn a_program_does_not_outlive_a_killed_run() {
    let Some(lab) = Lab::new() else { return };
    let pid = lab.path("pid");
    let program = format!("sh -c 'echo $$ > {}; sleep 600' & wait", pid.display());
    let words = ["run", "--linger", "0", "--cuts", "2", "--", "sh", "-c", &program];
    let mut child = Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .arg("crash")
        .args(words)
        .env("TMPDIR", lab.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let within = |what: &dyn Fn() -> bool| {
        let end = Instant::now() + Duration::from_secs(60);
        while !what() {
            assert!(Instant::now() < end, "too late");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let number = || std::fs::read_to_string(&pid).unwrap_or_default().trim().to_owned();
    within(&|| !number().is_empty());
    let status = format!("/proc/{}/stat", number());
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = || {
        let stat = std::fs::read_to_string(&status).unwrap_or_default();
        stat.contains("(sh)") && !stat.contains("(sh) Z")
    };
    within(&|| !runs());
}

/// Judges' files are nobody else's, whatever the mode of the program's folder.
#[test]
fn other_users_cannot_read_what_judges_get() {
    let Some(lab) = Lab::new() else { return };
    let as_other = "setpriv --reuid 65534 --clear-groups";
    for how in ["served", "copied"] {
        // They may ask for what they know: a name, or a listing.
        let judge = format!(
            "chmod 755 . && cd / && ! {as_other} ls $(dirname $(dirname $STEADFAST_TREE)) && \
             {as_other} cat $STEADFAST_TREE/f"
        );
        let words = ["--linger", "0", "--cuts", "2", "--model", "none", "--judge-files", how];
        let judge = ["--judge", &judge, "--", "sh", "-c", "echo text > f; sync f ."];
        // Of the tree without a cut it must be content.
        lab.run(&[&words[..], &judge].concat());
    }
}

/// Before any step has begun, too: the first one is not carried out.
#[test]
fn an_early_signal_stops_the_first_step() {
    let Some(lab) = Lab::new() else { return };
    let folder = lab.path("tmp");
    std::fs::create_dir_all(&folder).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .args(["crash", "run", "--size", "4g", "--setup", "sleep 600", "--", "true"])
        .env("TMPDIR", &folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    let hears_it = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("2");
        u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0
    };
    while !hears_it() {
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(pid, Signal::INT).unwrap();
    let out = steadfast_suite::output_of(Duration::from_secs(300), child).unwrap();
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(130), "{said}");
    assert!(said.contains("stopped, nothing was judged"), "{said}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "{said}");
}

/// What has left the set-up's group of processes lives on; it is not the program's.
#[test]
fn what_a_set_up_leaves_is_named() {
    let Some(lab) = Lab::new() else { return };
    let setup = "setsid sh -c 'echo $$ > \"$TMPDIR/number\"; exec sleep 600' & \
        while ! test -s \"$TMPDIR/number\"; do :; done";
    let words = ["run", "--cuts", "3", "--linger", "0", "--setup", setup, "--", "true"];
    let out = lab.crash(&words);
    let number = std::fs::read_to_string(lab.path("number")).unwrap();
    let _ = kill_process(Pid::from_raw(number.trim().parse().unwrap()).unwrap(), Signal::KILL);
    let said = text(&out.stderr);
    assert!(said.contains("the set-up has started still uses"), "{:?} {said}", out.status);
}

/// What the script has left, whose number is in the folder's file, is killed.
fn kill_left(lab: &Lab) {
    let number = std::fs::read_to_string(lab.path("number")).unwrap();
    kill_process(Pid::from_raw(number.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
}

/// It may live for ever: neither the recording nor the message of a set-up that failed waits for
/// it. What was recorded is still mounted when its states are.
#[test]
fn what_is_left_in_the_kernels_mount_is_not_waited_for() {
    let Some(lab) = Lab::new() else { return };
    if !kernel::works(&lab) {
        return;
    }
    let leaves = "setsid sh -c 'echo $$ > \"$TMPDIR/number\"; exec sleep 600' > /dev/null 2>&1 & \
        while ! test -s \"$TMPDIR/number\"; do :; done";
    let xfs = ["run", "--fs", "kernel-xfs", "--size", "400m", "--cuts", "2", "--states", "1"];
    let program = ["--linger", "0", "--record", "run.crash", "--", "sh", "-c", leaves];
    let out = lab.crash(&[&xfs[..], &program].concat());
    kill_left(&lab);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stdout));
    assert!(said.contains("the program has started still uses the mount"), "{said}");
    assert!(lab.path("run.crash").exists(), "{said}");

    std::fs::remove_file(lab.path("number")).unwrap();
    let setup = format!("{leaves}; echo no such user; exit 3");
    let fs = ["run", "--fs", "kernel-ext4", "--cuts", "none", "--linger", "0"];
    let out = lab.crash(&[&fs[..], &["--setup", &setup, "--", "true"]].concat());
    kill_left(&lab);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("no such user"), "{said}");
}

/// A container or a service that was started meanwhile has a copy of every mount: of ours too.
#[test]
fn a_copy_in_another_mount_namespace_is_not_waited_for() {
    let Some(lab) = Lab::new() else { return };
    let copies = "setsid unshare --mount --propagation private sh -c \
        'echo $$ > \"$TMPDIR/number\"; exec sleep 600' > /dev/null 2>&1 & \
        while ! test -s \"$TMPDIR/number\"; do :; done; echo x > f; sync f";
    let plan = ["run", "--cuts", "2", "--linger", "0"];
    for steps in [vec!["--", "sh", "-c", copies], vec!["--setup", copies, "--", "true"]] {
        let begun = Instant::now();
        let out = lab.crash(&[&plan[..], &steps].concat());
        kill_left(&lab);
        std::fs::remove_file(lab.path("number")).unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stdout));
        assert!(said.contains("in another mount namespace was cut off: process"), "{said}");
        assert!(begun.elapsed() < Duration::from_secs(300), "{said}");
    }
}

/// The program is ended with the run, and a run that has judged nothing is no success.
#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let Some(lab) = Lab::new() else { return };
    let program = "echo $$ > \"$TMPDIR/number\"; echo a; sleep 1; echo b; exec sleep 600";
    let words = ["run", "--cuts", "3", "--linger", "0", "--", "sh", "-c", program];
    let mut child =
        lab.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "a\n");
    let out = steadfast_suite::output_of(Duration::from_secs(300), child).unwrap();
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("nothing was judged: showing what the program prints"), "{said}");
    let number = std::fs::read_to_string(lab.path("number")).unwrap();
    assert!(!std::path::Path::new("/proc").join(number.trim()).exists(), "{said}");
}

/// It is there and does not read, neither the program's lines nor the report.
#[test]
fn a_reader_that_stalls_does_not_keep_a_signal() {
    let Some(lab) = Lab::new() else { return };
    let program = "yes | head -c 1000000; echo > \"$TMPDIR/number\"; exec sleep 600";
    let words = ["run", "--cuts", "3", "--linger", "0", "--", "sh", "-c", program];
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .arg("crash")
        .args(words)
        .env("TMPDIR", lab.path(""))
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !lab.path("number").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(300), "it does not end");
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    let out = child.wait_with_output().unwrap();
    drop(reader);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(130), "{said}");
    assert!(said.contains("nobody reads") && said.contains("are not shown"), "{said}");
}

/// The status is that of what was found.
#[test]
fn a_report_that_nobody_reads_is_a_finding_all_the_same() {
    let Some(lab) = Lab::new() else { return };
    let run = ["run", "--cuts", "3", "--linger", "0", "--record", "run.crash"];
    for (judge, found) in [("false", 1), ("true", 0)] {
        for json in [&[][..], &["--json"]] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let words = [&run[..], json, &["--judge", judge, "--", "touch", "file"]].concat();
            let out = lab.command(&words).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
            let out = out.wait_with_output().unwrap();
            assert_eq!(out.status.code(), Some(found), "{words:?}\n{}", text(&out.stderr));
        }
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let shown = lab.command(&["show", "run.crash", "--cut", "0", "--judge", judge]);
        assert_eq!({ shown }.stdout(writer).status().unwrap().code(), Some(found), "{judge}");
    }
}
