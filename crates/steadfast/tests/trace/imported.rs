//! Texts of strace, fio and blkparse.

use std::fs;

use super::Desk;

const STRACE: &str = r#"100 1795833941.000100 openat(AT_FDCWD</w>, "db", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3</w/db> <0.000057>
100 1795833941.000200 write(3</w/db>, ""..., 100) = 100 <0.000025>
100 1795833941.000300 write(3</w/db>, ""..., 28) = 28 <0.000025>
100 1795833941.000400 fdatasync(3</w/db>) = 0 <0.003000>
100 1795833941.004000 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 101 <0.000100>
101 1795833941.005000 openat(AT_FDCWD</w>, "old", O_RDONLY <unfinished ...>
100 1795833941.005010 getpid()        = 100 <0.000008>
101 1795833941.005020 <... openat resumed>) = 4</w/old> <0.000030>
101 1795833941.005100 pread64(4</w/old>, ""..., 4096, 4096) = 4096 <0.000030>
101 1795833941.005200 dup2(3</w/db>, 1) = 1</w/db> <0.000009>
101 1795833941.005300 write(1</w/db>, ""..., 10) = 10 <0.000025>
101 1795833941.005400 openat(AT_FDCWD</w>, "none", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000011>
101 1795833941.005500 mkdirat(AT_FDCWD</w>, "d", 0777) = 0 <0.000050>
101 1795833941.005600 renameat2(AT_FDCWD</w>, "db", AT_FDCWD</w>, "d/db", 0) = 0 <0.000039>
101 1795833941.005700 write(5</elsewhere/log>, ""..., 10) = 10 <0.000025>
101 1795833941.005900 +++ exited with 0 +++
100 1795833941.006000 close(3</w/db>) = 0 <0.000009>
100 1795833941.006100 futex(0x7f, FUTEX_WAIT <unfinished ...>
odd line
"#;

#[test]
fn straces_text() {
    let d = Desk::new();
    fs::write(d.path().join("s.txt"), STRACE).unwrap();
    let words = ["trace", "import", "s.txt", "--folder", "/w", "-o", "s.trace", "--json"];
    let found: serde_json::Value = serde_json::from_str(&d.prints(0, &words)).unwrap();
    assert_eq!((&found["source"], &found["calls"]), (&"strace".into(), &10.into()), "{found}");
    let left_out: u64 =
        found["left_out"].as_object().unwrap().values().filter_map(|n| n.as_u64()).sum();
    assert_eq!(left_out, 7, "{found}");
    let calls = d.prints(0, &["trace", "show", "--calls", "s.trace"]);
    // The position goes on, through a descriptor that the child has from its parent.
    assert!(calls.contains("28 at 100 = 28") && calls.contains("10 at 128 = 10"), "{calls}");
    d.prints(0, &["trace", "replay", "s.trace", "."]);
    let other = d.prints(2, &["trace", "import", "s.txt", "--folder", "/nowhere", "-o", "n.trace"]);
    assert!(other.contains("no line is a call"), "{other}");
}

#[test]
fn fios_logs() {
    let d = Desk::new();
    let two = "fio version 2 iolog\n/t/f add\n/t/f open\n/t/f read 4096 512\n/t/f write 0 512\n/t/f close\n";
    let three = "fio version 3 iolog\n0 /t/f add\n10 /t/f open\n20 /t/f write 0 4096\n90 /t/f sync 0 0\n95 /t/f close\n";
    fs::write(d.path().join("two"), two).unwrap();
    fs::write(d.path().join("three"), three).unwrap();
    let out = d.prints(0, &["trace", "import", "two", "-o", "2.trace"]);
    assert!(out.contains("4 calls from fio-iolog") && out.contains("has no times"), "{out}");
    // A file written at once says nothing of the unit.
    let unknown = d.prints(2, &["trace", "import", "three", "-o", "3.trace"]);
    assert!(unknown.contains("--unit ms, --unit us"), "{unknown}");
    d.prints(0, &["trace", "import", "three", "--unit", "us", "-o", "3.trace"]);
    let calls = d.prints(0, &["trace", "show", "--calls", "3.trace"]);
    assert!(calls.contains("0.000080") && calls.contains("fsync"), "{calls}");
    for trace in ["2.trace", "3.trace"] {
        d.prints(0, &["trace", "replay", trace, "."]);
    }
    let both = d.prints(2, &["trace", "import", "two", "three", "-o", "n.trace"]);
    assert!(both.contains("cannot be brought together"), "{both}");
}

#[test]
fn blkparses_text() {
    let d = Desk::new();
    let text = "  8,0    1        1     0.000000000  4321  Q  WS 2048 + 8 [fio]\n  8,0    0        3     0.000151000     0  C  WS 2048 + 8 [0]\n  8,0    1        4     0.000200000  4321  Q FWS 0 + 0 [fio]\n  8,0    0        5     0.000400000     0  C FWS 0 + 0 [0]\nCPU0 (8,0):\n";
    fs::write(d.path().join("b.txt"), text).unwrap();
    let out = d.prints(0, &["trace", "import", "b.txt", "-o", "b.trace"]);
    assert!(out.contains("3 calls from blkparse") && out.contains("1 x no event"), "{out}");
    let calls = d.prints(0, &["trace", "show", "--calls", "b.trace"]);
    assert!(calls.contains("4096 at 1048576") && calls.contains("fdatasync"), "{calls}");
    d.prints(0, &["trace", "replay", "b.trace", "."]);
}

/// The program that docs/internals/traces.md has, as it stands there.
#[test]
fn a_trace_is_read_by_the_program_of_the_docs() {
    let d = Desk::new();
    let docs = include_str!("../../../../docs/internals/traces.md");
    let program = docs.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(program.lines().count() <= 30);
    fs::write(d.path().join("read.py"), program).unwrap();
    fs::write(d.path().join("s.txt"), STRACE).unwrap();
    d.prints(0, &["trace", "import", "s.txt", "--folder", "/w", "-o", "s.trace"]);
    let mut python = std::process::Command::new("python3");
    python.args(["read.py", "s.trace"]).current_dir(d.path());
    let out = steadfast_suite::output(super::LIMIT, &mut python).unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("write             3 calls,       25.0 us each"), "{out:?}");
}
