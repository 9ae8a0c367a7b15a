//! Volumes on image files as a person uses them: commands, refusals, exit statuses.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

struct Desk(TempDir);

impl Desk {
    fn new(images: &[&str]) -> Self {
        let desk = Desk(tempfile::tempdir().unwrap());
        images.iter().for_each(|name| desk.image(name, 24 << 20));
        desk
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn image(&self, name: &str, bytes: u64) {
        std::fs::File::create(self.path().join(name)).unwrap().set_len(bytes).unwrap();
    }

    fn run(&self, line: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_steadfast"))
            .args(line.split_whitespace())
            .current_dir(self.path())
            .output()
            .unwrap()
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
    desk.bad("cat volume:b /text", 2, "leg 0 (a) is missing");
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
fn bad_use_is_answered_and_changes_nothing() {
    let desk = Desk::new(&["a", "b", "c", "d"]);
    desk.image("small", 1 << 20);
    desk.image("tiny", 64 << 10);
    desk.bad("volume create d10 a a", 2, "is given twice");
    desk.good("volume create d10 a b");
    desk.bad("volume create d11 b c", 2, "b: is member 1 of volume 'd10'");
    desk.bad("volume add a b --leg small", 2, "small: is too small");
    desk.good("volume create d12 c d");
    desk.bad("volume add a b --leg c", 2, "c: is member 0 of volume 'd12'");
    desk.bad("volume status nothing", 2, "nothing");
    desk.bad("volume set a b c d --pass 1", 2, "several volumes: ");
    desk.bad("volume set a b --pass 11", 2, "a pass is 0 to 9");
    desk.bad("volume create -x a", 2, "");
    desk.bad("volume create d13 tiny", 2, "tiny: is too small");
    desk.good("volume remove a b --leg 1");
    desk.bad("volume remove a --leg 0", 2, "last good durable copy");
    assert!(desk.good("volume status a").contains("leg 0: a: Okay"));

    let mut bytes = std::fs::read(desk.path().join("a")).unwrap();
    let whole = bytes.clone();
    bytes[4096 + 8] = 9;
    std::fs::write(desk.path().join("a"), &bytes).unwrap();
    desk.bad("volume status a", 3, "its volume label has version 9");
    std::fs::write(desk.path().join("a"), &whole[..whole.len() / 2]).unwrap();
    desk.bad("volume status a", 1, "is cut off");
    bytes.clone_from(&whole);
    let end = bytes.len();
    bytes[4096 + 100] ^= 1;
    bytes[end - 4000] ^= 1;
    std::fs::write(desk.path().join("a"), &bytes).unwrap();
    desk.bad("volume status a", 1, "checksum is wrong");
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
