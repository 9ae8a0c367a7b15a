//! File systems mounted inside the host.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use steadfast_suite::OtherNamespace;

use super::{Desk, pattern};

const CONFIG: &str = "\
[volume.d10]
components = [\"a\", \"b\"]
[mount.data]
volume = \"d10\"
at = \"data\"
options = \"commit=1\"
[mount.wrong]
volume = \"nothing\"
at = \"wrong\"
";

/// With a file system on `d10`, which the configuration mounts.
fn desk() -> Desk {
    let mut desk = Desk::new(&["a", "b", "c"], CONFIG);
    fs::create_dir(desk.path().join("data")).unwrap();
    desk.start();
    desk.good("mkfs tree/dsk/d10");
    desk.good("host mount data");
    desk
}

fn mount(desk: &Desk, name: &str) -> Value {
    let status = desk.status();
    let mounts = status["mounts"].as_array().unwrap();
    mounts.iter().find(|m| m["name"] == name).cloned().unwrap_or_default()
}

fn at(desk: &Desk) -> PathBuf {
    desk.path().join("data")
}

#[test]
fn a_mount_is_there_again_after_a_kill_and_after_a_stop() {
    let mut desk = desk();
    let _away = Unmounts(at(&desk));
    // One of them could not be mounted.
    let status = desk.run("host status --json");
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    assert_eq!(status.status.code(), Some(1), "{text}");
    assert!(text.contains("\"mounted\": true"), "{text}");
    let wrong = mount(&desk, "wrong");
    assert_eq!(
        wrong["problem"], "nothing: there is no such device",
        "reported, and the rest goes on"
    );
    let data = pattern(1, 1 << 20);
    fs::write(at(&desk).join("kept"), &data).unwrap();
    fs::File::open(at(&desk).join("kept")).unwrap().sync_all().unwrap();
    desk.kill();
    assert!(fs::read_dir(at(&desk)).is_err(), "nobody serves it");
    desk.start();
    let log = desk.log();
    assert!(log.contains("data: was mounted by a host that was killed"), "{log}");
    assert!(fs::read(at(&desk).join("kept")).unwrap() == data, "recovered");
    fs::write(at(&desk).join("more"), b"more").unwrap();
    // Nothing is fsynced: the host writes it when it ends.
    desk.stop();
    assert!(fs::read_dir(at(&desk)).unwrap().next().is_none(), "unmounted");
    desk.start();
    let more = fs::read(at(&desk).join("more"));
    assert!(more.as_ref().is_ok_and(|held| held == b"more"), "{more:?} {}", desk.log());
    desk.good("host umount data");
    assert_eq!(mount(&desk, "data")["mounted"], false);
    assert!(desk.good("check tree/dsk/d10").contains("clean"));
    desk.stop();
}

#[test]
fn what_is_mounted_is_written_to_by_its_file_system_alone() {
    let mut desk = desk();
    let _away = Unmounts(at(&desk));
    let hint = "mounted at";
    desk.bad("volume destroy --host d10", 2, hint);
    desk.bad("volume attach-kernel d10", 2, hint);
    let refused = fs::OpenOptions::new().write(true).open(desk.tree().join("dsk/d10"));
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::ResourceBusy);
    fs::create_dir(desk.path().join("other")).unwrap();
    desk.bad("host mount d10 other", 2, hint);
    // By `steadfast mount`: the host's name, the host's file, and the members.
    desk.bad("mount d10 other", 2, "steadfast host mount d10 other");
    let out = desk.run("mount tree/dsk/d10 other");
    assert!(!out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let out = desk.run("mount volume:a,b other");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && text.contains("in use"), "{text}");
    // Who uses files of it keeps the host from stopping, and from unmounting.
    let file = fs::File::create(at(&desk).join("open")).unwrap();
    desk.bad("host umount data", 2, "in use");
    desk.bad("host stop", 2, "in use");
    assert_eq!(mount(&desk, "data")["mounted"], true);
    drop(file);
    // The mount's own commands know it.
    let status = desk.good("status --json");
    assert!(status.contains("stack.toml:d10"), "{status}");
    desk.good("umount data");
    assert_eq!(mount(&desk, "data")["mounted"], false);
    desk.good("host mount d10 other -o ro");
    assert!(fs::write(desk.path().join("other/x"), b"x").is_err());
    desk.bad("host mount data", 2, hint);
    desk.good("host umount other");
    desk.stop();
}

/// One of two mounts is in use: neither is taken away, not for a moment.
#[test]
fn a_stop_that_is_refused_has_unmounted_nothing() {
    let mut desk = Desk::new(&["a", "b"], "");
    let _away = Unmounts(at(&desk));
    desk.start();
    for (name, folder) in [("a", "data"), ("b", "other")] {
        fs::create_dir(desk.path().join(folder)).unwrap();
        desk.good(&format!("mkfs tree/dsk/{name}"));
        desk.good(&format!("host mount {name} {folder}"));
    }
    let device = |folder: &str| {
        use std::os::unix::fs::MetadataExt;
        desk.path().join(folder).metadata().unwrap().dev()
    };
    let before = [device("data"), device("other")];
    let file = fs::File::create(desk.path().join("other/open")).unwrap();
    // Also if it is asked twice.
    desk.bad("host stop", 2, "in use");
    desk.bad("host stop", 2, "in use");
    for name in ["a", "b"] {
        assert_eq!(mount(&desk, name)["mounted"], true, "{}", desk.log());
    }
    assert_eq!([device("data"), device("other")], before, "the very mounts");
    drop(file);
    desk.stop();
}

/// What comes into use when others are away already: here in another namespace, which the host does
/// not know before. Those that were away are mounted again.
#[test]
fn a_stop_that_is_refused_late_mounts_again() {
    let mut desk = Desk::new(&["a", "b"], "");
    let _away = Unmounts(at(&desk));
    let shared = |flag: &str| {
        let at = desk.path().to_str().unwrap().to_owned();
        Command::new("mount").args([flag, &at]).args((flag == "--bind").then_some(&at)).status()
    };
    assert!(shared("--bind").unwrap().success() && shared("--make-shared").unwrap().success());
    let _bound = Bound(desk.path().to_owned());
    desk.start();
    for (name, folder) in [("a", "data"), ("b", "other")] {
        fs::create_dir(desk.path().join(folder)).unwrap();
        desk.good(&format!("mkfs tree/dsk/{name}"));
        desk.good(&format!("host mount {name} {folder} -o noatime,commit=7"));
    }
    fs::write(at(&desk).join("kept"), b"kept").unwrap();
    let mut sleeper = Command::new("unshare")
        .args(["--mount", "--propagation", "unchanged", "sh", "-c"])
        .arg(format!("cd {}/other && echo there && read line", desk.path().display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut there = [0; 6];
    std::io::Read::read_exact(sleeper.stdout.as_mut().unwrap(), &mut there).unwrap();
    let out = desk.run("host stop");
    let (text, log) = (String::from_utf8_lossy(&out.stderr).into_owned(), desk.log());
    let mounts = ["a", "b"].map(|name| mount(&desk, name)["mounted"] == true);
    drop(sleeper.stdin.take());
    sleeper.wait().unwrap();
    assert!(out.status.code() == Some(2) && text.contains("in use"), "{text}");
    assert_eq!(mounts, [true, true], "{log}");
    assert!(log.matches("mounted at").count() > 2, "the first was away: {log}");
    assert_eq!(fs::read(at(&desk).join("kept")).unwrap(), b"kept");
    let status = desk.good("status --json");
    assert_eq!(status.matches("\"commit=7\"").count(), 2, "{status}");
    desk.stop();
}

/// Neither other changes of the host nor its end wait for a copy in another mount namespace.
#[test]
fn a_copy_in_another_mount_namespace_does_not_hang_the_host() {
    let mut desk = desk();
    let _away = Unmounts(at(&desk));
    fs::write(at(&desk).join("written"), pattern(3, 100_000)).unwrap();
    let other = OtherNamespace::new().unwrap();
    let out = desk.run("host umount data");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let holder = format!("process {} (sleep) has a copy", other.process());
    assert!(out.status.code() == Some(2) && text.contains(&holder), "{text}");
    desk.good("volume offline d10 --leg b");
    let pid = desk.host.as_ref().unwrap().id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    let status = steadfast_suite::ended(desk.host.as_mut().unwrap(), Duration::from_secs(60));
    assert!(status.unwrap().is_some_and(|status| status.success()), "{}", desk.log());
    drop((desk.host.take(), other));
    desk.start();
    assert!(fs::read(at(&desk).join("written")).unwrap() == pattern(3, 100_000), "{}", desk.log());
    desk.stop();
}

/// A folder that is bound to itself, until the end of the test.
struct Bound(PathBuf);

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_leg_fails_under_a_mount_and_the_end_by_a_signal_loses_nothing() {
    let mut desk = desk();
    let _away = Unmounts(at(&desk));
    fs::write(at(&desk).join("written"), pattern(3, 100_000)).unwrap();
    desk.good("volume offline d10 --leg b");
    let open = fs::File::open(at(&desk).join("written")).unwrap();
    let pid = desk.host.as_ref().unwrap().id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    let status = desk.host.take().unwrap().wait().unwrap();
    drop(open);
    assert!(status.success(), "{status:?}: {}", desk.log());
    desk.start();
    assert!(fs::read(at(&desk).join("written")).unwrap() == pattern(3, 100_000), "{}", desk.log());
    desk.stop();
}

/// Somebody else's dead mount stays where it is.
#[test]
fn a_dead_mount_of_another_host_is_not_taken_away() {
    let mut far = Desk::new(&["x"], "");
    far.start();
    far.good("mkfs tree/dsk/x");
    let mut desk = Desk::new(&["a", "b", "c"], CONFIG);
    fs::create_dir(at(&desk)).unwrap();
    let _away = Unmounts(at(&desk));
    far.good(&format!("host mount x {}", at(&desk).display()));
    far.kill();
    desk.start();
    let problem = mount(&desk, "data")["problem"].clone();
    let problem = problem.as_str().unwrap_or_default();
    assert!(problem.contains("a dead mount of") && problem.contains(":x is there"), "{problem}");
    desk.stop();
}

#[test]
fn a_journal_is_another_volume() {
    let config = "[volume.d10]\ncomponents = [\"a\"]\n[volume.j10]\ncomponents = [\"b\"]\n";
    let mut desk = Desk::new(&["a", "b"], config);
    fs::create_dir(at(&desk)).unwrap();
    let _away = Unmounts(at(&desk));
    desk.start();
    desk.good("mkfs -O journal_dev tree/dsk/j10");
    desk.good("mkfs -J device=tree/dsk/j10 tree/dsk/d10");
    let out = desk.run("host mount d10 data");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && text.contains("journal"), "{text}");
    desk.good("host mount d10 data --journal j10");
    desk.bad("volume destroy --host j10", 2, "is mounted at");
    fs::write(at(&desk).join("x"), b"with a journal").unwrap();
    fs::File::open(at(&desk).join("x")).unwrap().sync_all().unwrap();
    desk.kill();
    // It is no mount of the configuration: it is away, and its place is cleaned by a person.
    desk.start();
    desk.bad("host mount d10 data --journal d10", 2, "journal");
    desk.good("host mount d10 data --journal j10");
    assert_eq!(fs::read(at(&desk).join("x")).unwrap(), b"with a journal");
    desk.stop();
}

/// Also when the test fails.
struct Unmounts(PathBuf);

impl Drop for Unmounts {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).status();
        let other = self.0.with_file_name("other");
        let _ = Command::new("umount").arg("-l").arg(other).stderr(Stdio::null()).status();
    }
}
