//! nohup(1): the end of the terminal ends no command, whatever it looks after at its end.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};

use super::{Desk, LIMIT};

/// Whether a mask of signals of a process has this one.
fn has(child: &Child, mask: &str, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix(mask)).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal.as_raw() - 1)) != 0
}

/// A pipe that is full: who prints to it waits until somebody reads.
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b' '; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[test]
fn a_hang_up_that_is_ignored_ends_no_command() {
    let d = Desk::new();
    for leg in ["a", "b", "c"] {
        File::create(d.path().join(leg)).unwrap().set_len(24 << 20).unwrap();
    }
    d.good("volume create d10 a b");
    d.good("mkfs volume:a,b");
    std::fs::write(d.path().join("stack.toml"), "[device.c]\npath = \"c\"\n").unwrap();
    let mut lines = vec!["mkfs new.img --size 16m", "replay volume:a,b"];
    let may_mount = File::open("/dev/fuse").is_ok() && rustix::process::geteuid().is_root();
    match may_mount {
        true => lines.extend([
            "crash run --cuts 3 --linger 0 -- touch file",
            "serve -f stack.toml --tree tree",
        ]),
        false => println!("SKIPPED: crash run and serve need root and /dev/fuse"),
    }
    for line in lines {
        let (mut reader, writer) = full_pipe();
        let program = env!("CARGO_BIN_EXE_steadfast");
        let mut child = Command::new("sh")
            .args(["-c", &format!("trap '' HUP; exec {program} {line}")])
            .current_dir(d.path())
            .env("STEADFAST_RUNTIME_DIR", d.path().join("run"))
            .stdout(writer)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !has(&child, "SigCgt:", Signal::TERM) {
            assert!(child.try_wait().unwrap().is_none(), "{line}");
            std::thread::sleep(Duration::from_millis(1));
        }
        let ignores = has(&child, "SigIgn:", Signal::HUP) && !has(&child, "SigCgt:", Signal::HUP);
        let process = Pid::from_child(&child);
        kill_process(process, Signal::HUP).unwrap();
        if line.starts_with("serve") {
            kill_process(process, Signal::TERM).unwrap();
        }
        reader.read_to_end(&mut Vec::new()).unwrap();
        let ended = steadfast_suite::ended(&mut child, LIMIT).unwrap();
        let ended = ended.expect("it is waited for long enough");
        // Before it serves, a stop signal ends it as any other program.
        let stopped = line.starts_with("serve") && ended.signal() == Some(Signal::TERM.as_raw());
        let good = ended.success() || stopped;
        assert!(ignores && good, "{line}: {ended:?}, ignores it: {ignores}");
    }
    assert!(d.path().join("new.img").exists());
}
