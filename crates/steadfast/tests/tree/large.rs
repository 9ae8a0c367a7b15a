//! Many files, and a large hole, in bounded memory.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::desk::Desk;

/// Files: as many as a test can wait for; `STEADFAST_SOAK` has 1e5.
fn files() -> usize {
    if std::env::var_os("STEADFAST_SOAK").is_some() { 100_000 } else { 5_000 }
}

/// Runs the program; the most memory that it was seen with, in KiB. What the kernel notes only
/// grows, so it is enough to look now and then.
fn memory(d: &Desk, line: &str) -> u64 {
    let mut program = Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .args(line.split_whitespace())
        .current_dir(d.path(""))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let path = format!("/proc/{}/status", program.id());
    let mut most = 0;
    loop {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok());
        most = most.max(peak.unwrap_or(0));
        if let Some(ended) = program.try_wait().unwrap() {
            assert!(ended.success(), "{line}");
            return most;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn many_files_in_bounded_memory() {
    let d = Desk::new();
    for i in 0..files() {
        let folder = d.path(&format!("src/{}", i / 500));
        if i % 500 == 0 {
            std::fs::create_dir_all(&folder).unwrap();
        }
        std::fs::write(folder.join(format!("a-file-{i}")), vec![b'x'; 6000]).unwrap();
    }
    d.good("mkfs a.img --size 2g -N 200000");
    for line in ["put -r a.img src /", "get -r a.img /src back", "rm -r a.img /src"] {
        let kib = memory(&d, line);
        assert!(kib < 256 << 10, "{line}: {kib} KiB");
    }
    d.e2fsck_is_clean("a.img");
    let count = |top: &str| walk(&d.path(top));
    assert_eq!(count("src"), count("back"));
}

fn walk(folder: &std::path::Path) -> usize {
    std::fs::read_dir(folder).unwrap().fold(0, |sum, e| {
        let path = e.unwrap().path();
        sum + if path.is_dir() { walk(&path) } else { 1 }
    })
}

#[test]
fn a_hole_takes_no_memory() {
    let d = Desk::new();
    std::fs::File::create(d.path("hole")).unwrap().set_len(1 << 30).unwrap();
    d.good("mkfs a.img --size 16m");
    for line in ["put a.img hole /hole", "cat a.img /hole", "get a.img /hole back"] {
        let kib = memory(&d, line);
        assert!(kib < 64 << 10, "{line}: {kib} KiB");
    }
}
