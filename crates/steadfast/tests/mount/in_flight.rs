//! A mount that ends while many requests are under way: its process is killed, the connection is
//! aborted, it is taken away. Nobody waits for ever, and the disk needs no more than its journal.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use super::bench::Bench;

const CALLERS: usize = 300;
/// Long enough for each to have asked something.
const UNDER_WAY: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes, writes, syncs and removes files until something fails.
fn caller(at: &Path, number: usize) {
    let name = at.join(format!("f{number}"));
    let work = || -> std::io::Result<()> {
        let mut file = File::create(&name)?;
        file.write_all(&[7; 5000])?;
        file.sync_all()?;
        fs::metadata(&name)?;
        fs::remove_file(&name)
    };
    while work().is_ok() {}
}

/// Many callers; each says when it has ended.
fn callers(at: &Path) -> Receiver<()> {
    let (ended, all) = channel();
    // What lies below the mount has no such folder.
    let at = at.join("in");
    fs::create_dir(&at).unwrap();
    for number in 0..CALLERS {
        let (at, ended): (PathBuf, _) = (at.clone(), ended.clone());
        std::thread::spawn(move || {
            caller(&at, number);
            ended.send(()).unwrap();
        });
    }
    std::thread::sleep(UNDER_WAY);
    all
}

fn all_end(all: &Receiver<()>) {
    for left in (0..CALLERS).rev() {
        all.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{} still wait", left + 1));
    }
}

#[test]
fn nobody_waits_for_a_process_that_was_killed() {
    let Some(b) = Bench::with_image("64m") else { return };
    b.good("mount disk.img m");
    let (process, all) = (b.process(), callers(&b.at()));
    kill_process(process, Signal::KILL).unwrap();
    all_end(&all);
    b.good("umount m");
    // What its journal holds is replayed.
    assert!(b.command("e2fsck", &["-fy", "disk.img"]).status.code().is_some_and(|c| c < 2));
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn nobody_waits_for_a_connection_that_was_aborted() {
    let Some(b) = Bench::with_image("64m") else { return };
    b.good("mount disk.img m");
    let device = b.status()["device"].as_str().unwrap().to_owned();
    let all = callers(&b.at());
    let minor = device.split_once(':').unwrap().1;
    let control = b.path("control");
    fs::create_dir(&control).unwrap();
    let mount = ["-t", "fusectl", "none", control.to_str().unwrap()];
    assert!(b.command("mount", &mount).status.success());
    let aborted = fs::write(control.join(minor).join("abort"), "1");
    assert!(b.command("umount", &[control.to_str().unwrap()]).status.success());
    aborted.unwrap();
    all_end(&all);
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn who_works_in_a_mount_that_was_taken_away_is_served_to_the_end() {
    let Some(b) = Bench::with_image("64m") else { return };
    b.good("mount disk.img m");
    let (process, all) = (b.process(), callers(&b.at()));
    assert!(b.command("umount", &["-l", "m"]).status.success());
    // The names are gone, and with them each of them fails.
    all_end(&all);
    let gone = || !Path::new("/proc").join(process.as_raw_nonzero().to_string()).exists();
    // It writes first what so many have left, beside other tests.
    let begun = Instant::now();
    while !gone() {
        assert!(begun.elapsed() < PATIENCE, "the process has not ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    b.e2fsck_is_clean("disk.img");
}
