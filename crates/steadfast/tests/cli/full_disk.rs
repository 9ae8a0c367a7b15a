//! What is written to a full disk, or given up otherwise: what was there before stays, and nothing
//! half.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Desk;

/// A folder on a disk of its own, of this size.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(desk: &Desk, kib: u32) -> Option<SmallDisk> {
        let folder = desk.path().join("small");
        std::fs::create_dir(&folder).unwrap();
        let size = format!("size={kib}k");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(SmallDisk(folder));
        }
        println!("SKIPPED: a full disk needs root");
        None
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg(&self.0).status().unwrap().success());
    }
}

fn results(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    folder.join(name).display().to_string()
}

#[test]
fn an_older_report_is_kept_until_the_new_one_is_whole() {
    let d = Desk::new();
    let Some(disk) = SmallDisk::new(&d, 16) else { return };
    let report = disk.0.join("report.html");
    std::fs::write(&report, "the report of yesterday").unwrap();
    let line = format!("lab show {} --report small/report.html", results("ramdisk-mirror.json"));
    let said = d.bad(&line, 1);
    assert!(said.contains("small/report.html") && said.contains("No space"), "{said}");
    assert!(said.contains("as it was before"), "{said}");
    assert_eq!(std::fs::read_to_string(&report).unwrap(), "the report of yesterday");
    d.bad(&line.replace("report.html", "other.html"), 1);
    assert_eq!(disk.names(), ["report.html"]);
}

#[test]
fn a_recording_that_does_not_fit_leaves_the_older_one() {
    let d = Desk::new();
    let Some(disk) = SmallDisk::new(&d, 16) else { return };
    std::fs::write(disk.0.join("run.crash"), "of yesterday").unwrap();
    let run = "crash run --record small/run.crash --linger 0 --cuts 2";
    // What was found is told even so.
    for (judge, status, found) in [("true", 2, "Found nothing"), ("false", 1, "Found 1 fault")] {
        let line = format!("{run} --judge {judge} -- cp /bin/sh .");
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(line.split_whitespace()).current_dir(d.path());
        // What was found is recorded there instead.
        command.env("TMPDIR", d.path());
        let said = steadfast_suite::output(super::LIMIT, &mut command).unwrap();
        let errors = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(status), "{said:?}");
        assert!(errors.contains("No space") && errors.contains("small/run.crash"), "{said:?}");
        assert!(String::from_utf8_lossy(&said.stdout).contains(found), "{said:?}");
    }
    assert_eq!(disk.names(), ["run.crash"]);
    assert_eq!(std::fs::read_to_string(disk.0.join("run.crash")).unwrap(), "of yesterday");
}

/// As many bytes as the state has do not fit; the file that is there stays.
#[test]
fn an_image_of_a_state_is_whole_or_not_there() {
    let d = Desk::new();
    if !Path::new("/dev/fuse").exists() {
        println!("SKIPPED: needs FUSE");
        return;
    }
    let Some(disk) = SmallDisk::new(&d, 16) else { return };
    d.good("crash run --linger 0 --record run.crash --cuts flushes -- touch file");
    let old = disk.0.join("old.img");
    std::fs::write(&old, "of yesterday").unwrap();
    for image in ["old.img", "new.img"] {
        let said = d.bad(&format!("crash show run.crash --cut 1 --image small/{image}"), 2);
        assert!(said.contains(image) && said.contains("No space"), "{said}");
    }
    assert_eq!(disk.names(), ["old.img"]);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "of yesterday");
    // Where there is room, it replaces what was there.
    std::fs::write(d.path().join("there.img"), "of yesterday").unwrap();
    d.good("crash show run.crash --cut 1 --image there.img");
    d.e2fsck_can_read("there.img");
}

/// What the run was for is printed and written; then it fails, as the recordings are not whole.
#[test]
fn results_do_not_depend_on_their_recording() {
    let d = Desk::new();
    let Some(disk) = SmallDisk::new(&d, 16) else { return };
    std::fs::write(d.path().join("tiny.toml"), super::TINY).unwrap();
    let expected = d.good("lab run tiny.toml --format json");
    let line = "lab run tiny.toml --format json --record small/r --json r.json --report r.html";
    let ran = d.run(line);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(String::from_utf8_lossy(&ran.stdout) == expected, "{said}");
    assert!(std::fs::read_to_string(d.path().join("r.json")).unwrap() == expected);
    assert!(d.path().join("r.html").exists());
    assert!(said.contains("small/r") && said.contains("No space"), "{said}");
    assert!(said.contains("not all of them could be written"), "{said}");
    assert_eq!(disk.names(), ["r"]);
    // Nor does one file depend on the other.
    let both = "lab run tiny.toml --format json --report small/r.html --chart chart.svg";
    let ran = d.run(both);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(String::from_utf8_lossy(&ran.stdout) == expected, "{said}");
    assert!(said.contains("small/r.html") && d.path().join("chart.svg").exists(), "{said}");
}

#[test]
fn no_page_is_empty() {
    let d = Desk::new();
    let Some(disk) = SmallDisk::new(&d, 64) else { return };
    let said = d.bad("man small", 1);
    assert!(said.contains("No space"), "{said}");
    let names = disk.names();
    assert!(!names.is_empty());
    d.good("man whole");
    for name in names {
        let page = |folder: &Path| std::fs::read_to_string(folder.join(&name)).unwrap();
        assert!(page(&disk.0) == page(&d.path().join("whole")), "{name} is not whole");
    }
}

/// What mkfs has made itself goes when it gives up; what was there stays as it was.
#[test]
fn mkfs_removes_what_it_half_made_and_nothing_else() {
    let d = Desk::new();
    for line in [
        "mkfs disk.img --size 8000000t",
        "mkfs disk.img --size 64m -b 100",
        "mkfs disk.img --size 64m -J device=none.img",
        "mkfs disk.img --size 8k",
        "mkfs -O journal_dev disk.img --size 64k",
        "mkfs disk.img --size 64m -n -b 100",
    ] {
        d.bad(line, 2);
        assert!(!d.path().join("disk.img").exists(), "{line}");
    }
    std::fs::write(d.path().join("disk.img"), vec![7; 8192]).unwrap();
    d.bad("mkfs -F disk.img", 2);
    assert_eq!(std::fs::read(d.path().join("disk.img")).unwrap(), vec![7; 8192]);
    // A link that leads nowhere is somebody's, too.
    std::os::unix::fs::symlink("nowhere", d.path().join("link")).unwrap();
    for line in ["mkfs link --size 16m", "pmem create --emulate 16m link"] {
        let said = d.bad(line, 2);
        assert!(said.contains("a symbolic link that leads nowhere"), "{said}");
    }
    assert!(d.path().join("link").symlink_metadata().is_ok() && !d.path().join("nowhere").exists());
    let Some(disk) = SmallDisk::new(&d, 64) else { return };
    let out = d.run("mkfs small/disk.img --size 64m");
    assert_eq!((out.status.code(), disk.names().len()), (Some(1), 0), "{out:?}");
}
