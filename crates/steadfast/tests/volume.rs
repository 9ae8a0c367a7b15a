//! Volumes on image files as a person uses them: commands, refusals, exit statuses.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

#[path = "volume/checksums.rs"]
mod checksums;
#[path = "volume/refused.rs"]
mod refused;
#[path = "volume/repair.rs"]
mod repair;

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(300);

struct Desk(TempDir);

impl Desk {
    fn new(images: &[&str]) -> Self {
        Desk::of(images, 24 << 20)
    }

    fn of(images: &[&str], bytes: u64) -> Self {
        let desk = Desk(tempfile::tempdir().unwrap());
        images.iter().for_each(|name| desk.image(name, bytes));
        desk
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn image(&self, name: &str, bytes: u64) {
        std::fs::File::create(self.path().join(name)).unwrap().set_len(bytes).unwrap();
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(line.split_whitespace()).current_dir(self.path());
        steadfast_suite::output(LIMIT, &mut command).unwrap()
    }

    fn good(&self, line: &str) -> String {
        let out = self.run(line);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{line}: {:?}\n{errors}", out.status);
        String::from_utf8(out.stdout).unwrap()
    }

    fn bad(&self, line: &str, status: i32, says: &str) {
        let out = self.run(line);
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(status), "{line}\n{text}");
        assert!(text.contains(says), "{line}\n{text}");
    }
}

#[test]
fn a_file_system_on_a_mirror_that_loses_a_leg() {
    let desk = Desk::new(&["a", "b", "c"]);
    desk.good("volume create d10 a b --region 64k");
    desk.good("mkfs volume:a,b");
    std::fs::write(desk.path().join("text"), "what must stay\n").unwrap();
    desk.good("put volume:b,a text /text");
    assert!(desk.good("check volume:a,b").contains("clean"));
    std::fs::remove_file(desk.path().join("a")).unwrap();
    desk.bad("cat volume:b /text", 1, "leg 0 (a) is missing");
    let out = desk.good("volume replace b --degraded --leg 0 --with c");
    assert!(out.contains("leg 0: c: Okay"), "{out}");
    assert_eq!(desk.good("cat volume:c,b /text"), "what must stay\n");
    // The new leg by itself has all of it.
    desk.good("volume resync --degraded c");
    assert_eq!(desk.good("cat volume:c /text"), "what must stay\n");
}

#[test]
fn legs_come_and_go() {
    let desk = Desk::new(&["a", "b", "c", "ram"]);
    desk.good("volume create d10 a b --volatile ram --read-policy preferred:2");
    let out = desk.good("volume status ram b a");
    assert!(out.contains("leg 2: ram: Okay, volatile") || out.contains("volatile"), "{out}");
    assert!(out.contains("reads preferred:2, writes parallel, pass 1"), "{out}");
    desk.good("volume offline a b ram --leg 1");
    let out = desk.run("volume status a b ram");
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stdout).contains("leg 1: b: Offline"));
    desk.good("volume online a b ram --leg 1");
    desk.good("volume add a b ram --leg c");
    desk.good("volume remove a b c ram --leg 0");
    desk.good("volume set b c ram --write-policy serial --pass 9");
    let json = desk.good("volume status --json b c ram");
    assert!(json.contains("\"write\": \"serial\"") && json.contains("\"whole\": true"), "{json}");
    let bytes = std::fs::metadata(desk.path().join("b")).unwrap().len();
    for name in ["b", "c", "ram"] {
        let file = std::fs::OpenOptions::new().write(true).open(desk.path().join(name)).unwrap();
        file.set_len(2 * bytes).unwrap();
    }
    desk.good("volume grow b c ram");
    desk.good("volume destroy b c ram");
    desk.bad("volume set b c --pass 1", 2, "has no label");
}

#[test]
fn a_spare_is_added_and_removed() {
    let desk = Desk::new(&["a", "b", "c", "d"]);
    desk.good("volume create d10 a b");
    desk.good("volume add a b --leg c --spare");
    let out = desk.good("volume status a b c");
    assert!(out.contains("spare: c"), "{out}");
    desk.bad("volume remove a b c --leg nothing", 2, "a spare by its name");
    let out = desk.good("volume remove a b c --leg c");
    assert!(!out.contains("spare"), "{out}");
    // It is blank again, and one that is not there is removed, too.
    desk.good("volume add a b --leg c --spare");
    let out = desk.run("volume remove a b --leg c");
    let noted = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{noted}");
    assert!(noted.contains("was not reached, and still has the spare's label"), "{noted}");
    desk.good("volume status a b c");
    desk.bad("volume create d11 c d", 2, "c: ");
    desk.good("volume create d11 c d --force");
}

#[test]
fn stripes_and_a_mirror_of_them() {
    let desk = Desk::new(&["a", "b", "c", "d"]);
    desk.good("volume create s1 a b --kind stripe --interlace 16k");
    desk.good("volume create s2 c d --kind concat");
    desk.good("volume create m volume:a,b volume:c,d");
    let out = desk.good("volume status d c b a");
    assert!(out.contains("s1: stripe") && out.contains("m: mirror"), "{out}");
    desk.good("mkfs volume:a,b,c,d");
    assert!(desk.good("check volume:d,b,a,c").contains("clean"));
    let out = desk.run("volume status a b c");
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stdout).contains("is missing"));
}

/// A mirror of which leg `a` lacks most of a file: its resync was ended by a signal.
fn interrupted() -> Desk {
    let desk = Desk::new(&["a", "b"]);
    desk.good("volume create d10 a b --region 64k");
    desk.good("mkfs -q volume:a,b");
    desk.good("volume resync b --degraded");
    std::fs::write(desk.path().join("big"), vec![7; 4 << 20]).unwrap();
    desk.good("put volume:b big /big");
    assert!(desk.is_closed("b"));
    desk.end_resync(rustix::process::Signal::TERM, 143);
    desk
}

impl Desk {
    /// Bit 0 of this byte of the label: nobody has it open.
    fn is_closed(&self, leg: &str) -> bool {
        std::fs::read(self.path().join(leg)).unwrap()[4096 + 142] & 1 == 1
    }

    /// Begins a resync that would take hours, and ends it.
    fn end_resync(&self, signal: rustix::process::Signal, status: i32) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_steadfast"))
            .args(["volume", "resync", "a", "b", "--rate", "1"])
            .current_dir(self.path())
            .spawn()
            .unwrap();
        while self.is_closed("a") || self.is_closed("b") {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        let ended = steadfast_suite::ended(&mut child, LIMIT).unwrap();
        assert_eq!(ended.expect("it goes on after the signal").code(), Some(status));
    }
}

/// A signal ends a command, and the volume is closed all the same.
#[test]
fn a_signal_closes_the_volume() {
    let desk = interrupted();
    assert!(desk.is_closed("a") && desk.is_closed("b"));
    desk.end_resync(rustix::process::Signal::INT, 130);
    assert!(desk.is_closed("a") && desk.is_closed("b"));
    let out = desk.good("volume resync a b");
    assert!(out.contains("bytes copied"), "{out}");
    desk.good("volume resync a --degraded");
    desk.good("get volume:a /big got");
    assert_eq!(std::fs::read(desk.path().join("got")).unwrap(), vec![7; 4 << 20]);
}

/// What is missing and alone holds something is given up when that is said, and how much it was.
#[test]
fn data_is_given_up_only_where_that_is_said() {
    let desk = interrupted();
    let before = std::fs::read(desk.path().join("a")).unwrap();
    let line = "volume remove a --degraded --leg 1";
    desk.bad(line, 2, "last good durable copy of ");
    assert!(std::fs::read(desk.path().join("a")).unwrap() == before);
    let out = desk.good(&format!("{line} --lose-data"));
    assert!(out.contains("bytes were given up, and read as zeros"), "{out}");
    assert!(desk.good("volume status a").contains("leg 0: a: Okay"));
}

/// Taking a volume apart leaves devices, and says what it could not reach.
#[test]
fn a_volume_is_taken_apart() {
    let desk = Desk::new(&["a", "b", "c", "d"]);
    desk.good("volume create d10 a b");
    let out = desk.good("volume destroy a --degraded");
    assert!(out.contains("its component b was not there"), "{out}");
    desk.good("mkfs -q a");
    desk.good("volume create s1 c d --kind concat");
    desk.good("volume destroy d c");
    desk.good("volume create m c d");
    desk.good("volume create top volume:c,d a --force");
    desk.bad("volume destroy volume:c,d a", 2, "takes the devices themselves");
    desk.bad("volume destroy c d a --volume m", 2, "'m' is a component of 'top'");
    assert!(desk.good("volume destroy c d a").contains("top: is no volume any more"));
    desk.bad("volume status a", 1, "");
    assert!(!desk.good("volume status c d").contains("top"));
    assert!(desk.good("volume destroy c d").contains("m: is no volume any more"));
}

/// A stripe of mirrors goes, then each mirror; the devices are blank, as far as labels go.
#[test]
fn volumes_of_volumes_are_taken_apart_from_the_outside_in() {
    let desk = Desk::new(&["a", "b", "c", "d"]);
    let make = || {
        desk.good("volume create m1 a b");
        desk.good("volume create m2 c d");
        desk.good("volume create st --kind stripe volume:a,b volume:c,d");
    };
    make();
    let images = || ["a", "b", "c", "d"].map(|name| std::fs::read(desk.path().join(name)).unwrap());
    let before = images();
    desk.bad("volume destroy a b c d --volume m2", 2, "'m2' is a component of 'st'");
    desk.bad("volume destroy a b c d --volume x", 2, "none of this name among m1, m2, st");
    desk.bad("volume destroy a b", 1, "'st': component 1, last seen as m2, is missing");
    assert!(images() == before, "a refused command has written");
    let out = desk.good("volume destroy a b c d");
    assert_eq!(out, "st: is no volume any more\n");
    desk.bad("volume destroy a b c d", 2, "several volumes: m1, m2; say which by --volume NAME");
    desk.good("volume destroy a b c d --volume m1");
    desk.good("volume destroy c d");
    // Nothing of the old ones is in the way.
    make();
    desk.good("mkfs -q volume:a,b,c,d");
}

/// Cut between two labels, or with a component that is lost: the rest is wiped by `--degraded`.
#[test]
fn what_is_left_of_a_volume_is_taken_apart() {
    let desk = Desk::new(&["a", "b", "c", "d"]);
    desk.good("volume create m1 a b");
    desk.good("volume create m2 c d");
    desk.good("volume create st --kind stripe volume:a,b volume:c,d");
    desk.bad("volume destroy c d", 1, "'st': component 0");
    // As far as a cut after the first label gets.
    let out = desk.good("volume destroy a b --degraded");
    assert!(
        out.contains("st: is no volume") && out.contains("component m2 was not there"),
        "{out}"
    );
    assert!(desk.good("volume status a b").starts_with("m1: mirror"));
    desk.bad("volume destroy a b c d --volume st", 1, "'st': component 0");
    let out = desk.good("volume destroy a b c d --volume st --degraded");
    assert!(out.contains("st: is no volume any more"), "{out}");
    desk.good("volume destroy a b");
    desk.good("volume destroy c d");
}

/// A leg that has gone bad is found, reported, and repaired where that is asked for.
/// Programs get one document and nothing beside it, whatever there is to say.
#[test]
fn a_scrub_and_a_status_as_json() {
    let desk = Desk::new(&["a", "b", "c", "plain"]);
    desk.good("volume create d10 a b");
    let json = |line: &str| -> (Option<i32>, serde_json::Value) {
        let out = desk.run(line);
        let errors = String::from_utf8_lossy(&out.stderr);
        let document = serde_json::from_slice(&out.stdout);
        (out.status.code(), document.unwrap_or_else(|e| panic!("{line}: {e}: {errors}")))
    };
    let (_, status) = json("volume status --json a b plain");
    assert_eq!(status["without_label"], serde_json::json!(["plain"]));
    let (_, status) = json("volume status --json a b");
    assert_eq!(status["without_label"], serde_json::json!([]));
    desk.good("mkfs -q volume:a,b");
    let (code, found) = json("volume scrub --json a b");
    assert_eq!((code, &found["format"]), (Some(0), &"steadfast-scrub".into()));
    assert_eq!((&found["name"], &found["clean"]), (&"d10".into(), &true.into()));
    assert!(found["bytes"].as_u64().unwrap() > 0, "{found}");
    // A block that differs; the superblock is at byte 1024 of the data.
    let image = desk.path().join("b");
    let mut bytes = std::fs::read(&image).unwrap();
    let at = bytes.windows(2).skip(1 << 16).position(|magic| magic == [0x53, 0xef]).unwrap();
    bytes[(1 << 16) + at + 64] ^= 1;
    std::fs::write(&image, bytes).unwrap();
    let (code, found) = json("volume scrub --json a b");
    assert_eq!((code, &found["differing"], &found["clean"]), (Some(1), &1.into(), &false.into()));
    let (code, found) = json("volume scrub --json --repair a b");
    assert_eq!((code, &found["repaired"], &found["clean"]), (Some(0), &1.into(), &true.into()));
    desk.bad("volume scrub --json a", 1, "leg 1 (b) is missing");
}

#[test]
fn a_scrub_finds_and_repairs() {
    let desk = Desk::new(&["a", "b", "c"]);
    desk.good("volume create d10 a b c --region 64k");
    desk.good("mkfs -q volume:a,b,c");
    assert!(desk.good("volume scrub a b c").contains("bytes compared"));
    let mut rotten = std::fs::read(desk.path().join("a")).unwrap();
    rotten[(64 << 10) + 4096 * 3 + 7] ^= 0x10;
    std::fs::write(desk.path().join("a"), &rotten).unwrap();
    let out = desk.run("volume scrub a b c");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(text.contains("1 block of 4096 bytes differs"), "{text}");
    // Whoever reads it.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut unread = std::process::Command::new(env!("CARGO_BIN_EXE_steadfast"));
    unread.args(["volume", "scrub", "a", "b", "c"]).current_dir(desk.path()).stdout(writer);
    assert_eq!(unread.status().unwrap().code(), Some(1));
    let text = desk.good("volume scrub a b c --repair");
    assert!(text.contains("1 of these were written again"), "{text}");
    assert!(!desk.good("volume scrub b a c").contains("differ"));
    desk.good("volume resync a --degraded");
    assert!(desk.good("check volume:a").contains("clean"));
    desk.bad("volume scrub b c --rate 0", 1, "leg 0 (a) is missing");
}
