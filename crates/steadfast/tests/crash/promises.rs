//! What counts as a call of the program's, and as a promise to it; what a run begins with.

use super::lab::Lab;

/// Runs a script without lingering; the report, and whether something was found.
fn ran(lab: &Lab, setup: &str, script: &str, cuts: &str) -> (serde_json::Value, bool) {
    let script = lab.script("script", script);
    let words = ["-o", "commit=60", "--linger", "0.1", "--cuts", cuts, "--setup", setup];
    lab.run(&[&words[..], &["--", "sh", &script]].concat())
}

#[test]
fn a_listing_does_not_make_false_alarms() {
    let Some(lab) = Lab::new() else { return };
    let setup = "mkdir -p d/5; echo x > d/5/f; sync";
    let (report, found) = ran(&lab, setup, "find . -name f | xargs rm; sync d", "200");
    assert!(!found, "{report:#}");
    assert_eq!(report["not_measured"], serde_json::json!([]), "{report:#}");
}

#[test]
fn the_programs_calls_are_counted_and_not_the_kernels_requests() {
    let Some(lab) = Lab::new() else { return };
    // FUSE takes at most a MiB at a time: 3, 1 and 3 requests; and a sync after each durable one.
    for (dd, calls) in [
        ("bs=3M count=2", 3),
        ("bs=1M count=3", 4),
        ("bs=3M count=2 oflag=dsync", 3),
        ("bs=3M count=1 conv=fsync", 3),
    ] {
        let script = format!("dd if=/dev/zero of=f status=none {dd}");
        let (report, _) = ran(&lab, "true", &script, "none");
        assert_eq!(report["recorded"]["calls"], calls, "{dd}: {report:#}");
    }
}

#[test]
fn what_is_written_again_after_a_promise_is_not_measured() {
    let Some(lab) = Lab::new() else { return };
    let script = "echo one > log; sync log; printf X | dd of=log conv=notrunc status=none";
    let (report, found) = ran(&lab, "true", script, "all");
    assert!(!found, "{report:#}");
    let why = report["not_measured"][0].as_str().unwrap();
    assert!(why.starts_with("log: written again"), "{report:#}");
    // Behind it is another range: what was promised is judged at every cut.
    let script = "echo one > log; sync log; echo two >> log";
    let (report, found) = ran(&lab, "true", script, "all");
    assert!(!found, "{report:#}");
    assert_eq!(report["not_measured"], serde_json::json!([]), "{report:#}");
}

/// Whatever makes transaction points: the run begins with what the set-up has left.
#[test]
fn a_set_up_stays_with_data_transact() {
    let Some(lab) = Lab::new() else { return };
    for mask in ["fsync,sync,timed=5s", "none", "no-umount"] {
        let options = format!("data=transact,transact={mask}");
        let judge = ["--judge", "cat kept", "--judge-prints", "kept"];
        let plan = ["-o", &options, "--setup", "echo kept > kept", "--linger", "0"];
        let (report, found) = lab.run(&[&plan[..], &judge, &["--", "touch", "new"]].concat());
        assert!(!found, "{mask}: {report:#}");
    }
}

#[test]
fn another_user_may_set_up_and_run() {
    let Some(lab) = Lab::new() else { return };
    // As a server does that does not run as root; the judge too.
    let other = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let setup = format!("mkdir own; chown 65534:65534 own; {other} touch own/made");
    let judge = format!("{other} test -f own/made");
    let script = lab.script("script", &format!("{other} sh -c 'echo x > own/more'"));
    let words = ["--linger", "0", "--cuts", "flushes", "--jobs", "1", "--setup", &setup];
    let (report, found) =
        lab.run(&[&words[..], &["--judge", &judge, "--", "sh", &script]].concat());
    assert!(!found && report["states"].as_u64().unwrap() > 0, "{report:#}");
}

/// e2fsck -p comes before the mount, as at a boot: what it mends is no damage.
#[test]
fn ext2_is_repaired_before_it_is_judged() {
    let Some(lab) = Lab::new() else { return };
    let words = ["--fs", "ext2", "-o", "commit=1", "--linger", "2", "--cuts", "40"];
    let program = "for n in 1 2 3 4; do mkdir d$n; echo $n > d$n/f; done; sync d1/f; rm d2/f";
    let words = [&words[..], &["--states", "4", "--setup", "echo old > kept"]].concat();
    let judge = ["--judge", "cat kept", "--judge-prints", "old"];
    let (report, _) = lab.run(&[&words[..], &judge, &["--", "sh", "-c", program]].concat());
    for finding in report["findings"].as_array().unwrap() {
        let what = finding["what"].as_str().unwrap();
        assert!(what.starts_with("damage: manual repair is needed"), "{report:#}");
    }
    // How many there are depends on how the machine's time was divided.
    assert!(report["states"].as_u64().unwrap() > 5, "{report:#}");
}

/// As `steadfast mount -o sync`, which does to names what `dirsync` does.
#[test]
fn sync_makes_names_durable() {
    let Some(lab) = Lab::new() else { return };
    let judge = ["--judge", "test ! -s \"$STEADFAST_PRINTED\" || test -d d"];
    // By the mount alone: POSIX promises nothing of a folder that is not synced.
    let plan = ["--linger", "0.2", "--cuts", "all", "--states", "3", "--model", "none"];
    let program = ["--", "sh", "-c", "mkdir d; echo made; sleep 0.1; echo x > f"];
    let found = |options: &str| {
        let options = format!("commit=60{options}");
        lab.run(&[&["-o", &options][..], &plan, &judge, &program].concat())
    };
    let (report, is_found) = found("");
    assert!(is_found, "the promise is one that others break: {report:#}");
    for options in [",sync", ",dirsync"] {
        let (report, is_found) = found(options);
        assert!(!is_found, "{options}: {report:#}");
    }
}
