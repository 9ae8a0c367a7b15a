//! What goes wrong, and how it is reported.

use std::fs::{self, File};
use std::io::Write;

use rustix::process::{Signal, kill_process};

use super::bench::{Bench, lives, until};

#[test]
fn a_killed_process_loses_nothing_that_was_synced() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let mut file = File::create(b.at().join("kept")).unwrap();
    file.write_all(b"synced").unwrap();
    file.sync_all().unwrap();
    fs::write(b.at().join("perhaps"), vec![1; 100_000]).unwrap();
    let process = b.process();
    kill_process(process, Signal::KILL).unwrap();
    until("the process dies", || !lives(process));
    drop(file);
    let said = b.bad("mount disk.img m", 2);
    assert!(said.contains("umount"), "{said}");
    let said = b.bad("status m", 1);
    assert!(said.contains("umount"), "{said}");
    b.good("umount m");
    b.good("mount disk.img m");
    assert_eq!(fs::read_to_string(b.at().join("kept")).unwrap(), "synced");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

/// A mount is made only if it can be served: threads share a connection where there are too few
/// file descriptors for one each.
#[test]
fn few_file_descriptors_are_enough_or_refused() {
    let Some(b) = Bench::with_image("32m") else { return };
    let program = env!("CARGO_BIN_EXE_steadfast");
    let with = |limit: u32, threads: u32| {
        let line =
            format!("ulimit -n {limit}; exec {program} mount -o threads={threads} disk.img m");
        b.command("sh", &["-c", &line])
    };
    for limit in [64, 48] {
        let said = with(limit, 64);
        assert!(said.status.success(), "{limit}: {said:?}");
        fs::write(b.at().join("file"), "text").unwrap();
        b.good("umount m");
    }
    for limit in [12, 16, 24] {
        let said = with(limit, 4);
        assert_eq!(said.status.code(), Some(1), "{limit}: {said:?}");
        let words = String::from_utf8_lossy(&said.stderr);
        assert!(words.contains("ulimit -n"), "{limit}: {words}");
        // There is nothing that nobody serves.
        assert_eq!(fs::read_dir(b.at()).unwrap().count(), 0);
    }
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn what_is_in_use_is_refused() {
    let Some(b) = Bench::with_image("32m") else { return };
    fs::create_dir(b.path("n")).unwrap();
    b.good("mount disk.img m");
    let said = b.bad("mount disk.img n", 2);
    assert!(said.contains("in use"), "{said}");
    let open = File::create(b.at().join("open")).unwrap();
    let said = b.bad("umount m", 1);
    assert!(said.contains("in use"), "{said}");
    drop(open);
    b.good("umount m");
    b.bad("umount m", 2);
    b.bad("mount disk.img m -o data=mirrored", 2);
    b.bad("mount disk.img nowhere", 2);
    b.bad("mount nothing.img m", 2);
    b.bad("mount disk.img", 2);
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn a_signal_and_a_plain_umount_write_everything() {
    let Some(b) = Bench::with_image("32m") else { return };
    for (round, by_signal) in [true, false].into_iter().enumerate() {
        b.good("mount disk.img m");
        fs::write(b.at().join(format!("f{round}")), vec![3; 1 << 20]).unwrap();
        let process = b.process();
        if by_signal {
            kill_process(process, Signal::TERM).unwrap();
        } else {
            rustix::mount::unmount(b.at(), rustix::mount::UnmountFlags::empty()).unwrap();
        }
        until("the process ends", || !lives(process));
        b.e2fsck_is_clean("disk.img");
    }
    b.good("mount disk.img m");
    assert_eq!(fs::read(b.at().join("f0")).unwrap(), vec![3; 1 << 20]);
    assert_eq!(fs::read(b.at().join("f1")).unwrap(), vec![3; 1 << 20]);
    b.good("umount m");
}

/// Under nohup(1) a mount outlives the terminal that it was made at; without, SIGHUP unmounts.
#[test]
fn a_hang_up_that_is_ignored_unmounts_nothing() {
    let Some(b) = Bench::with_image("32m") else { return };
    let program = env!("CARGO_BIN_EXE_steadfast");
    let line = format!("trap '' HUP; exec {program} mount disk.img m");
    let out = b.command("sh", &["-c", &line]);
    assert!(out.status.success(), "{out:?}");
    let process = b.process();
    kill_process(process, Signal::HUP).unwrap();
    fs::write(b.at().join("file"), "written after it").unwrap();
    assert!(lives(process));
    b.good("umount m");
    b.good("mount disk.img m");
    assert_eq!(fs::read_to_string(b.at().join("file")).unwrap(), "written after it");
    let process = b.process();
    kill_process(process, Signal::HUP).unwrap();
    until("it unmounts", || !lives(process));
    b.e2fsck_is_clean("disk.img");
}
