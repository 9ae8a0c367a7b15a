//! An output that nobody reads any more (`| head`): the status is that of what was found. One that
//! takes no more is an error.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Desk, LIMIT, TINY};

impl Desk {
    /// The status of a command whose standard output is a pipe that nobody reads; e2fsck may be
    /// one of this folder.
    fn unread(&self, line: &str) -> Option<i32> {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(line.split_whitespace()).current_dir(self.path()).stdout(writer);
        command.env("PATH", format!("{}:{path}", self.path().display()));
        let mut child = command.spawn().unwrap();
        let ended = steadfast_suite::ended(&mut child, LIMIT).unwrap();
        ended.expect("it is waited for long enough").code()
    }
}

#[test]
fn what_is_found_is_the_status_whoever_reads_it() {
    let d = Desk::new();
    d.good("mkfs disk.img --size 16m");
    for line in ["check disk.img", "check --json disk.img", "replay disk.img", "lab keys"] {
        assert_eq!(d.unread(line), Some(0), "{line}");
    }
    let path = d.path().join("disk.img");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[1024 + 12] ^= 0xff;
    std::fs::write(&path, &bytes).unwrap();
    for line in ["check disk.img", "check --json disk.img"] {
        assert_eq!(d.unread(line), Some(1), "{line}");
    }
}

#[test]
fn a_loss_that_the_lab_finds_is_the_status_whoever_reads_it() {
    let d = Desk::new();
    std::fs::write(d.path().join("tiny.toml"), TINY).unwrap();
    assert_eq!(d.unread("lab run tiny.toml"), Some(0));
    // Of everything that it is asked it says that it is damaged.
    let e2fsck = d.path().join("e2fsck");
    std::fs::write(&e2fsck, "#!/bin/sh\necho damaged\nexit 4\n").unwrap();
    std::fs::set_permissions(&e2fsck, std::fs::Permissions::from_mode(0o755)).unwrap();
    for line in ["lab run tiny.toml", "lab run tiny.toml --json -"] {
        assert_eq!(d.unread(line), Some(1), "{line}");
    }
}

/// They have nothing more to do.
#[test]
fn what_only_prints_ends_with_its_reader() {
    let d = Desk::new();
    d.good("mkfs disk.img --size 16m");
    std::fs::write(d.path().join("large"), vec![b'x'; 4 << 20]).unwrap();
    d.good("put disk.img large /large");
    for line in ["ls -R disk.img /", "cat disk.img /large"] {
        assert_eq!(d.unread(line), Some(0), "{line}");
    }
}

/// Nothing is known to be wrong with what was looked at: it is not the status of a damaged image,
/// which is that of one all the same.
#[test]
fn a_full_standard_output_is_named() {
    let d = Desk::new();
    d.good("mkfs disk.img --size 16m");
    std::fs::write(d.path().join("small"), "text").unwrap();
    d.good("put disk.img small /small");
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let show = format!("lab show {}", results.join("ramdisk-mirror.json").display());
    std::fs::write(d.path().join("tiny.toml"), TINY).unwrap();
    for line in [
        "check disk.img",
        "check --json disk.img",
        "info disk.img",
        "info --json disk.img",
        "ls -R disk.img /",
        "cat disk.img /small",
        "extents disk.img /small",
        "replay disk.img",
        "journal status disk.img",
        "mkfs new.img --size 16m",
        "pmem list",
        "status --json",
        "lab list",
        "lab keys",
        "lab devices",
        "lab check tiny.toml",
        "lab run tiny.toml",
        "mount-options",
        "completions bash",
        "--help",
        "help mkfs",
        "--version",
        &show,
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(line.split_whitespace()).current_dir(d.path());
        let full = File::options().write(true).open("/dev/full").unwrap();
        let out = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let out = out.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{line}\n{said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: standard output: No space left on device"), "{said}");
    }
    // As where nobody reads it.
    d.good("check new.img");
    let path = d.path().join("disk.img");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[1024 + 12] ^= 0xff;
    std::fs::write(&path, &bytes).unwrap();
    for line in ["check disk.img", "check --json disk.img"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(line.split_whitespace()).current_dir(d.path());
        let full = File::options().write(true).open("/dev/full").unwrap();
        let out = command.stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{line}\n{said}");
        assert!(said.contains("standard output: No space left on device"), "{line}\n{said}");
    }
}
