//! Texts of strace, fio and blkparse.

use std::fs;

use super::Desk;

const STRACE: &str = include_str!("strace.txt");

#[test]
fn straces_text() {
    let d = Desk::new();
    fs::write(d.path().join("s.txt"), STRACE).unwrap();
    let words = ["trace", "import", "s.txt", "--folder", "/w", "-o", "s.trace", "--json"];
    let found: serde_json::Value = serde_json::from_str(&d.prints(0, &words)).unwrap();
    // With a lookup of what is not there, and what closes when its process ends.
    assert_eq!((&found["source"], &found["calls"]), (&"strace".into(), &13.into()), "{found}");
    let left_out: u64 =
        found["left_out"].as_object().unwrap().values().filter_map(|n| n.as_u64()).sum();
    assert_eq!(left_out, 6, "{found}");
    let calls = d.prints(0, &["trace", "show", "--calls", "s.trace"]);
    // The position goes on, through a descriptor that the child has from its parent.
    assert!(calls.contains("28 at 100 = 28") && calls.contains("10 at 128 = 10"), "{calls}");
    assert!(
        calls.contains("/db") && calls.contains("/e = 0"),
        "a path from where it works: {calls}"
    );
    d.prints(0, &["trace", "replay", "s.trace", "."]);
    let other = d.prints(2, &["trace", "import", "s.txt", "--folder", "/nowhere", "-o", "n.trace"]);
    assert!(other.contains("no line is a call"), "{other}");
}

#[test]
fn fios_logs() {
    let d = Desk::new();
    let two = "fio version 2 iolog\n/t/f add\n/t/f open\n/t/f read 4096 512\n\
               /t/f write 0 512\n/t/f close\n";
    let three = "fio version 3 iolog\n0 /t/f add\n10 /t/f open\n20 /t/f write 0 4096\n\
                 90 /t/f sync 0 0\n95 /t/f close\n";
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
    assert!(out.contains("/t/f is _t_f"), "{out}");
    fs::write(d.path().join("passwd"), "fio version 2 iolog\n/etc/passwd read 0 512\n").unwrap();
    let refused = d.prints(2, &["trace", "import", "passwd", "-o", "n.trace"]);
    assert!(refused.contains("passwd: line 2: '/etc/passwd' was not added before"), "{refused}");
    let both = d.prints(2, &["trace", "import", "two", "three", "-o", "n.trace"]);
    assert!(both.contains("cannot be brought together"), "{both}");
}

#[test]
fn blkparses_text() {
    let d = Desk::new();
    let text = "\
  8,0    1        1     0.000000000  4321  Q  WS 2048 + 8 [fio]
  8,0    0        3     0.000151000     0  C  WS 2048 + 8 [0]
  8,0    1        4     0.000200000  4321  Q FWS 0 + 0 [fio]
  8,0    0        5     0.000400000     0  C FWS 0 + 0 [0]
CPU0 (8,0):
";
    fs::write(d.path().join("b.txt"), text).unwrap();
    let out = d.prints(0, &["trace", "import", "b.txt", "-o", "b.trace"]);
    assert!(
        out.contains("3 calls from blkparse") && out.contains("1 x, b.txt:5: no event"),
        "{out}"
    );
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
