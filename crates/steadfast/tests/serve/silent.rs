//! A device that does not answer.

use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Desk, pattern};

/// The process that the device is in is stopped, and goes on when this is dropped.
struct Stopped(u32);

impl Stopped {
    fn new(process: u32) -> Stopped {
        assert!(signal("-STOP", process));
        Stopped(process)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("-CONT", self.0);
    }
}

fn signal(which: &str, process: u32) -> bool {
    Command::new("kill").args([which, &process.to_string()]).status().unwrap().success()
}

/// Who asks for the state gets it at once, and sees in it which device is silent.
#[test]
fn a_device_that_does_not_answer_holds_no_status_up() {
    let (far, mut desk) = Desk::with_a_leg_of_another(&["a"]);
    let data = pattern(3, 1 << 20);
    let file = desk.file("dsk/d10");
    file.write_all_at(&data, 0).unwrap();
    file.sync_all().unwrap();
    let stopped = Stopped::new(far.host.as_ref().unwrap().id());
    for command in ["host status", "volume status d10", "svm metastat", "iostat -xn", "top --once"]
    {
        let begun = Instant::now();
        let out = desk.run(command);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(begun.elapsed() < Duration::from_secs(8), "{command}: {:?}", begun.elapsed());
        assert!(!text.is_empty(), "{command}: {out:?}");
        if command == "host status" {
            assert!(text.contains("has not answered for"), "{text}");
            assert_eq!(out.status.code(), Some(1), "{text}");
        }
    }
    drop(stopped);
    assert!(desk.read("dsk/d10", 0, data.len()) == data);
    let until = Instant::now() + Duration::from_secs(20);
    while desk.run("host status").status.code() != Some(0) {
        assert!(Instant::now() < until, "{}", desk.good("host status"));
    }
    drop(file);
    desk.stop();
}
