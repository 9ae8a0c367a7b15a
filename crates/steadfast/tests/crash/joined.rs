//! Several file systems that lose power together.

use super::lab::{Lab, text};

const LOG_ON_A_CARD: &str = "wal=nvram-journal:external";
const JUDGE: &str = "! grep -q acknowledged $STEADFAST_PRINTED || grep -q new data || \
                     grep -q new wal/log";

/// A log is written ahead and synced; the data follow, and the log is removed. The data are synced
/// before their rename and behind it, or not.
fn program([before, behind]: [&str; 2]) -> String {
    format!(
        "set -e; mkdir -p wal; echo old > data; sync data .; echo new > wal/log; \
         sync wal/log wal; echo acknowledged; echo new > data.tmp; {before} mv data.tmp data; \
         {behind} rm wal/log; sync wal"
    )
}

/// With both on one disk the sync of the log's folder commits the rename too: one journal has the
/// order. With two nothing has.
#[test]
fn a_log_on_another_device_is_gone_before_the_data_are_there() {
    let Some(lab) = Lab::new() else { return };
    let run = |stack: &[&str], program: &str| {
        let words = ["--linger", "0", "--cuts", "all", "--model", "none", "--judge", JUDGE];
        let keep = ["--record", "run.crash", "--", "sh", "-c", program];
        lab.run(&[stack, &words, &keep].concat())
    };
    let on_two = ["--stack", LOG_ON_A_CARD];
    let (report, found) = run(&[], &program(["", ""]));
    assert!(!found, "{report:#}");
    let (report, found) = run(&on_two, &program(["sync data.tmp;", "sync .;"]));
    assert!(!found && report["trees"].as_u64() > Some(3), "{report:#}");
    let (report, found) = run(&on_two, &program(["", ""]));
    assert!(found, "{report:#}");
    let state = report["findings"][0]["first_state"].to_string();
    let out = lab.crash(&["show", "run.crash", "--cut", &state, "--judge", JUDGE]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("wal/ on nvram-journal/external"), "{said}");
    let image = lab.crash(&["show", "run.crash", "--cut", &state, "--image", "disk.img"]);
    assert!(image.status.code() == Some(2) && text(&image.stderr).contains("several disks"));
}

/// Names do not lead from one to the other, and what was there before is on its own disk. mv(1)
/// copies then, and removes what it has not synced.
#[test]
fn they_are_mounts_to_the_program() {
    let Some(lab) = Lab::new() else { return };
    let setup = "echo set up > wal/before; echo set up > before";
    let program = "ln before wal/hard 2> /dev/null && exit 9; rmdir wal 2> /dev/null && exit 8; \
                   mv wal elsewhere 2> /dev/null && exit 7; mv before wal/moved; \
                   sync wal/moved wal; \
                   cat wal/before wal/moved; ls -i wal";
    let judge = "grep -q 'set up' wal/before && { grep -q 'set up' before || \
                 grep -q 'set up' wal/moved; }";
    let words = ["--stack", LOG_ON_A_CARD, "--linger", "0", "--setup", setup, "--judge", judge];
    let (report, found) = lab.run(&[&words[..], &["--", "sh", "-c", program]].concat());
    assert!(found && report["recorded"]["lines"].as_u64() > Some(3), "{report:#}");
    let of_calls = &report["by_calls"]["findings"];
    let add = |n: usize| of_calls[n]["add"][0].as_str().unwrap_or_default().to_owned();
    assert_eq!(add(0), "fsync of the folder wal before unlink before", "{report:#}");
    assert_eq!(add(1), "fsync of wal/moved before unlink before", "{report:#}");
}

/// What is read of a tree is bounded by the space of all.
#[test]
fn the_second_one_may_hold_more_than_the_first() {
    let Some(lab) = Lab::new() else { return };
    let words = ["--stack", LOG_ON_A_CARD, "--size", "32m", "--linger", "0", "--cuts", "2"];
    let judge = ["--model", "none", "--judge", "test -d wal", "--", "sh", "-c"];
    let program = "head -c 200M /dev/zero | tr '\\0' x > wal/big; sync wal/big wal";
    let (report, found) = lab.run(&[&words[..], &judge, &[program]].concat());
    assert!(!found, "{report:#}");
    let gone = lab.crash(&["run", "--stack", LOG_ON_A_CARD, "--setup", "mv wal x", "--", "true"]);
    let said = text(&gone.stderr);
    assert!(said.contains("is mounted") || said.contains("busy"), "{said}");
}

#[test]
fn what_cannot_be_mounted_in_a_folder_is_refused() {
    let Some(lab) = Lab::new() else { return };
    let card = "nvram-journal:external";
    let wrong: [(&[&str], &str); 7] = [
        (&["--stack", card, "--stack", card], "there is one already"),
        (&["--stack", LOG_ON_A_CARD, "--stack", "wal/in=nvram-journal:external"], "already"),
        (&["--stack", "a/../b=nvram-journal:external"], "a path from the working folder"),
        (&["--stack", "wal=none"], "'none' is no scenario"),
        (&["--stack", LOG_ON_A_CARD, "--fs", "xfs"], "only Steadfast's own"),
        (&["--stack", LOG_ON_A_CARD, "--model", "ext4"], "of one file system alone"),
        (&["--stack", card, "--size", "1g"], "no --device, --size, --media"),
    ];
    for (words, why) in wrong {
        let out = lab.crash(&[&["run"], words, &["--", "true"]].concat());
        let said = text(&out.stderr);
        assert!(out.status.code() == Some(2) && said.contains(why), "{words:?}: {said}");
    }
}
