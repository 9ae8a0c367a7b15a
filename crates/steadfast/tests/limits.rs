//! Limits of the process and of its output: the largest file that it may write, a signal while it
//! makes one, a reader that has gone.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_steadfast");

/// Runs a line of the shell, in which `$S` is the program.
fn shell(folder: &Path, line: &str) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", line]).env("S", PROGRAM).current_dir(folder);
    steadfast_suite::output(std::time::Duration::from_secs(300), &mut command).unwrap()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// A write beyond RLIMIT_FSIZE is an error, and what was made goes.
#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    for line in ["mkfs disk.img --size 64m", "pmem create --emulate 64m range"] {
        let out = shell(folder.path(), &format!("ulimit -f 1000; exec $S {line}"));
        let text = said(&out);
        assert!(out.status.code().is_some_and(|status| status != 0), "{line}: {out:?}");
        assert!(text.contains("File too large"), "{line}: {text}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line}");
    }
}

/// A mount whose image may not grow answers errors, and lives.
#[test]
fn a_mount_outlives_the_limit_on_the_size_of_files() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        println!("SKIPPED: a mount needs root and /dev/fuse");
        return;
    }
    let folder = TempDir::new().unwrap();
    let script = "
        mkdir m && $S mkfs disk.img --size 64m > /dev/null || exit 10
        (ulimit -f 20000; exec $S mount disk.img m) || exit 11
        dd if=/dev/zero of=m/a bs=1M count=40 conv=fsync 2> dd.txt && exit 12
        $S status m --json > status.json || exit 13
        $S umount m 2> umount.txt; [ $? = 1 ] || exit 14";
    let out = shell(folder.path(), script);
    // OK to ignore: it is unmounted, but where the test has failed.
    let _ = Command::new("umount").args(["-l", "m"]).current_dir(folder.path()).output();
    assert_eq!(out.status.code(), Some(0), "{}", said(&out));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (dd, status, unmounted) = (read("dd.txt"), read("status.json"), read("umount.txt"));
    assert!(dd.contains("Input/output error"), "{dd}");
    assert!(status.contains("\"failing\"") || status.contains("read-only"), "{status}");
    assert!(unmounted.contains("lost: /a"), "{unmounted}");
}

/// A signal at any moment leaves no half-made image.
#[test]
fn a_signal_while_an_image_is_made_leaves_none() {
    let folder = TempDir::new().unwrap();
    let image = folder.path().join("disk.img");
    let mut interrupted = 0;
    for micros in (0..30_000).step_by(500) {
        let mut child = Command::new(PROGRAM)
            .args(["mkfs", "disk.img", "--size", "400g"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(micros));
        // OK to ignore: it may have ended.
        let _ = kill_process(Pid::from_child(&child), Signal::INT);
        let status = child.wait().unwrap();
        if status.code() == Some(130) {
            interrupted += 1;
            // Complete and kept a moment before, or gone.
            let empty = std::fs::metadata(&image).is_ok_and(|meta| {
                use std::os::unix::fs::MetadataExt;
                meta.blocks() == 0
            });
            assert!(!empty, "an image without contents is left after {micros} us");
        }
        let _ = std::fs::remove_file(&image);
    }
    println!("{interrupted} were interrupted while the image was made");
}

/// Whoever reads the output may stop, and whoever reads the errors too.
#[test]
fn a_reader_that_has_gone_is_no_panic() {
    let folder = TempDir::new().unwrap();
    for line in [
        "$S completions bash > /dev/full",
        "$S completions bash | head -1",
        "$S man pages > /dev/full",
        "$S lab check none.toml 2> /dev/full",
        "$S mkfs 2> /dev/full",
    ] {
        let out = shell(folder.path(), &format!("set -o pipefail; {line}"));
        let text = said(&out);
        assert!(out.status.code() != Some(101) && !text.contains("panicked"), "{line}: {out:?}");
    }
    let checked = shell(folder.path(), "$S lab check none.toml 2> /dev/full");
    assert_eq!(checked.status.code(), Some(2));
}

/// Counts of which a list would be made are bounded.
#[test]
fn more_cuts_than_anybody_needs_are_refused() {
    let folder = TempDir::new().unwrap();
    for count in ["18446744073709551615", "1000001"] {
        for option in ["--cuts", "--states"] {
            let line = format!("$S crash run --linger 0 {option} {count} -- touch a");
            let out = shell(folder.path(), &line);
            assert_eq!(out.status.code(), Some(2), "{line}: {out:?}");
            assert!(said(&out).contains("at most 1000000"), "{}", said(&out));
        }
    }
    // Known before the program is run.
    let out = shell(folder.path(), "$S crash run --record none/x -- touch /proc/self/never");
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    assert!(said(&out).contains("cannot write none/x: No such file"), "{}", said(&out));
}
