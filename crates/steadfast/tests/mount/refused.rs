//! A mount that is refused has done nothing: what the journal holds is there for the next one.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::bench::{Bench, has_ended, text, until};

/// A folder's path that is too long for a socket in it (unix(7)).
const LONG: &str = "a-path-of-more-than-one-hundred-and-eight-bytes/\
                    so-that-no-socket-has-room-behind-it/which-the-system-refuses-when-it-is-bound";

/// Ends the process of the mount at m as a crash would.
fn crash(b: &Bench) {
    let process = b.process();
    kill_process(process, Signal::KILL).unwrap();
    until("the mount is dead", || fs::metadata(b.at()).is_err());
}

/// Refused by a shell that makes it so, in a mount namespace of its own.
fn refused_within(b: &Bench, make: &str, words: &str) -> String {
    let program = env!("CARGO_BIN_EXE_steadfast");
    let script = format!("{make} {program} {words}");
    let out = b.command("unshare", &["--mount", "sh", "-c", &script]);
    let said = text(&out.stderr);
    assert!(!out.status.success(), "{make} {words}: {said}");
    said
}

#[test]
fn a_refused_mount_leaves_the_journal_to_the_next() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let mut file = fs::File::create(b.at().join("kept")).unwrap();
    file.write_all(b"kept").unwrap();
    file.sync_all().unwrap();
    drop(file);
    crash(&b);
    let before = fs::read(b.path("disk.img")).unwrap();
    let unchanged = |what: &str| {
        assert!(fs::read(b.path("disk.img")).unwrap() == before, "{what}: the image has changed");
    };
    let said = b.bad("mount disk.img m", 2);
    assert!(said.contains("its process is gone"), "{said}");
    unchanged("a dead mount");
    b.good("umount m");
    for (folder, word) in [("nowhere", "is not there"), ("disk.img", "is not a directory")] {
        let said = b.bad(&format!("mount disk.img {folder}"), 2);
        assert!(said.contains(word), "{folder}: {said}");
        unchanged(folder);
    }
    b.make("other.img", "16m");
    b.good("mount other.img m");
    let said = b.bad("mount disk.img m", 2);
    assert!(said.contains("is mounted there"), "{said}");
    b.good("umount m");
    unchanged("an occupied folder");
    for (make, word) in [
        // No /dev/fuse; not allowed to mount; no room for the name of the control socket.
        ("touch no && mount --bind no /dev/fuse &&", "there is no /dev/fuse"),
        ("setpriv --bounding-set=-sys_admin", "--cap-add SYS_ADMIN"),
        ("mkdir -p $PWD/LONG && STEADFAST_RUNTIME_DIR=$PWD/LONG", "control socket"),
    ] {
        let said = refused_within(&b, &make.replace("LONG", LONG), "mount disk.img m");
        assert!(said.contains(word), "{make}: {said}");
        unchanged(make);
        assert_eq!(fs::read_dir(b.at()).unwrap().count(), 0, "{make}: something is mounted");
    }
    let out = b.run("mount disk.img m");
    assert!(out.status.success() && text(&out.stderr).contains("had not been unmounted"));
    assert_eq!(fs::read_to_string(b.at().join("kept")).unwrap(), "kept");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn a_label_is_on_the_device_at_once() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    b.ioctl("m", 0x4100_9432, "'a256', 'photographs'").unwrap();
    let shown = b.command("blkid", &["-p", "-s", "LABEL", "-o", "value", "disk.img"]);
    assert_eq!(text(&shown.stdout).trim(), "photographs");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

/// A name that is none: the others are listed, and the end is an error.
#[test]
fn a_bad_name_ends_no_list() {
    let Some(b) = Bench::new() else { return };
    // Names are hashed without a check of the blocks: nothing else is wrong.
    let made = b.command("mke2fs", &["-q", "-t", "ext4", "-O", "^metadata_csum", "disk.img", "8m"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    b.good("mount disk.img m");
    for n in 0..40 {
        fs::write(b.at().join(format!("name{n:02}")), "x").unwrap();
    }
    b.good("umount m");
    let mut image = fs::read(b.path("disk.img")).unwrap();
    let at = image.windows(6).position(|w| w == b"name07").unwrap();
    image[at + 4] = b'/';
    fs::write(b.path("disk.img"), &image).unwrap();
    b.good("mount disk.img m -o ro");
    let listed = b.command("ls", &["-f", "m"]);
    let names = text(&listed.stdout);
    assert!(!listed.status.success(), "{names}");
    assert!(text(&listed.stderr).contains("Structure needs cleaning"), "{:?}", listed.stderr);
    for n in (0..40).filter(|n| *n != 7) {
        assert!(names.contains(&format!("name{n:02}")), "{n}: {names}");
        assert!(b.at().join(format!("name{n:02}")).exists(), "{n}");
    }
    assert!(!names.contains("name/7"), "{names}");
    b.good("umount m");
    let out = b.run("ls disk.img /");
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(text(&out.stdout).matches("name").count(), 39, "{}", text(&out.stdout));
    assert!(text(&out.stderr).contains("'/' or NUL in the name"), "{}", text(&out.stderr));
    let out = b.run("get -r disk.img / out");
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(fs::read_dir(b.path("out")).unwrap().count(), 40, "{}", text(&out.stderr));
}

/// How long multiple-mount protection waits is the disk's word: it is said, and can be ended.
#[test]
fn a_long_wait_is_announced_and_ends_by_a_signal() {
    let Some(b) = Bench::new() else { return };
    let interval = "mmp_update_interval=300";
    let made =
        b.command("mke2fs", &["-q", "-t", "ext4", "-O", "mmp", "-E", interval, "disk.img", "8m"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    // What only reads waits for nothing.
    b.good("check disk.img");
    b.good("ls disk.img /");
    for words in [&["mkdir", "disk.img", "/dir"][..], &["mount", "disk.img", "m", "--foreground"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.env("STEADFAST_RUNTIME_DIR", b.path("run")).current_dir(b.path(""));
        let mut waits = command.args(words).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(waits.stderr.take().unwrap());
        // It is printed after two seconds; without it the program ends after minutes.
        while !line.contains("another host") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "{words:?} has ended");
        }
        kill_process(Pid::from_child(&waits), Signal::TERM).unwrap();
        assert!(!has_ended(&mut waits).success(), "{words:?}");
        // Twice, once one has been ended while it was there.
        let seconds = if words[0] == "mkdir" { 360 } else { 720 };
        let said = format!(": {seconds} s, by the interval on the disk");
        assert!(line.contains(&said), "{words:?}: {line}");
    }
}

#[test]
fn of_two_mounts_at_one_moment_one_is_refused() {
    let Some(b) = Bench::with_image("16m") else { return };
    b.make("other.img", "16m");
    for _ in 0..8 {
        let ends = std::thread::scope(|scope| {
            let other = scope.spawn(|| b.run("mount other.img m"));
            [b.run("mount disk.img m"), other.join().unwrap()]
        });
        let codes = ends.each_ref().map(|end| end.status.code());
        let said = ends.each_ref().map(|end| text(&end.stderr)).concat();
        assert!(matches!(codes, [Some(0), Some(2)] | [Some(2), Some(0)]), "{codes:?}: {said}");
        assert!(said.contains("is being made there") || said.contains("is mounted"), "{said}");
        assert!(b.at().join("lost+found").is_dir());
        b.good("umount m");
        assert!(fs::read_dir(b.at()).unwrap().next().is_none());
    }
    let left = fs::read_dir(b.path("run")).unwrap().count();
    assert_eq!(left, 0, "of the lock or of a socket");
}

/// The command that waits for the mount is killed alone: nobody reads that all is well.
#[test]
fn a_mount_that_nobody_waits_for_is_taken_away() {
    let Some(b) = Bench::with_image("32m") else { return };
    let program = env!("CARGO_BIN_EXE_steadfast");
    let script = format!("{program} mount --serves-in-background disk.img m > /dev/full");
    let out = b.command("sh", &["-c", &script]);
    assert!(!out.status.success(), "{}", text(&out.stderr));
    assert_eq!(fs::read_dir(b.at()).unwrap().count(), 0, "something is mounted");
    b.e2fsck_is_clean("disk.img");
}

/// The folder lies on a mount whose process does not answer. Over /dev/fuse: a request that waits
/// in an entry of a ring the kernel does not take back.
#[test]
fn who_waits_for_a_mount_point_is_ended_by_a_signal() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.make("other.img", "16m");
    b.good("mount disk.img m -o transport=fuse");
    fs::create_dir(b.at().join("in")).unwrap();
    let process = b.stopped();
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    command.args(["mount", "--foreground", "other.img", "m/in"]).current_dir(b.path(""));
    let mut waits = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill_process(Pid::from_child(&waits), Signal::TERM).unwrap();
    let ended = steadfast_suite::ended(&mut waits, std::time::Duration::from_secs(30)).unwrap();
    let stack = fs::read_to_string(format!("/proc/{}/stack", waits.id())).unwrap_or_default();
    kill_process(process, Signal::CONT).unwrap();
    if ended.is_none() {
        waits.kill().unwrap();
        waits.wait().unwrap();
    }
    b.good("umount m");
    assert!(ended.is_some_and(|status| !status.success()), "{ended:?}, it waits in {stack}");
}
