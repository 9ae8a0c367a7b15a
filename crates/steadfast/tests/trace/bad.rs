//! Traces that are none, or that somebody has altered.

use std::fs;

use super::Desk;

/// The first line of a trace.
pub const HEADER: &str = concat!(
    r#"{"format":"steadfast-trace","version":1,"source":"synthetic","program":[],"#,
    r#""direct":false,"names":"kept","not_seen":[]}"#
);

fn good(d: &Desk) -> Vec<u8> {
    let text = "fio version 2 iolog\nf add\nf open\nf write 0 512\nf read 0 512\nf close\n";
    fs::write(d.path().join("log"), text).unwrap();
    d.prints(0, &["trace", "import", "log", "-o", "good.trace"]);
    fs::read(d.path().join("good.trace")).unwrap()
}

/// Each command says the same of it, and ends with 2.
fn refused(d: &Desk, bytes: &[u8]) -> String {
    fs::write(d.path().join("bad.trace"), bytes).unwrap();
    let said = d.prints(2, &["trace", "show", "bad.trace"]);
    d.prints(2, &["trace", "replay", "bad.trace", "."]);
    d.prints(2, &["lab", "compare", "--trace", "bad.trace", "--only", "nvme"]);
    said
}

#[test]
fn what_is_no_trace_is_refused() {
    let d = Desk::new();
    let good = good(&d);
    for bytes in [&b""[..], b"hello", b"\x28\xb5\x2f\xfd", &good[..4]] {
        let said = refused(&d, bytes);
        assert!(said.contains("is no trace"), "{said}");
    }
    // What helps is said of commands that have it.
    let damaged = [&good[..good.len() / 2], b"......", &good[good.len() / 2..]].concat();
    fs::write(d.path().join("bad.trace"), damaged).unwrap();
    let said = d.prints(2, &["lab", "compare", "--trace", "bad.trace", "--only", "nvme"]);
    assert!(!said.contains("--partial") || said.contains("`trace show` and"), "{said}");
    let cut_off = refused(&d, &good[..good.len() - 9]);
    assert!(cut_off.contains("damaged") || cut_off.contains("no trace"), "{cut_off}");
    let folder = d.prints(2, &["trace", "show", "."]);
    assert!(folder.contains("no file"), "{folder}");
    d.prints(2, &["trace", "show", "nowhere"]);
}

#[test]
fn altered_bytes_are_found() {
    let d = Desk::new();
    let good = good(&d);
    // The checksum of the frame: whatever is altered.
    for place in (4..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[place] ^= 0x11;
        fs::write(d.path().join("bad.trace"), &bad).unwrap();
        let out = d.run(&["trace", "show", "bad.trace"]);
        assert_eq!(out.status.code(), Some(2), "byte {place}: {out:?}");
    }
}

#[test]
fn lines_that_cannot_be_are_refused() {
    let d = Desk::new();
    let header = HEADER;
    let thread = r#"{"thread":{"thread":1,"process":1}}"#;
    let end = |calls: u64| format!(r#"{{"end":{{"calls":{calls},"at":9}}}}"#);
    let call =
        |rest: &str| format!(r#"{{"call":{{"op":"write","thread":1,"start":5,"end":9{rest}}}}}"#);
    let of = |lines: &[&str]| {
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        packed(text.as_bytes())
    };
    let cases = [
        (
            of(&[header, thread, &call(r#","after":[1]"#), &end(1)]),
            "waits for the call 1 before it",
        ),
        (
            of(&[header, thread, &call(r#","after":[0]"#), &end(1)]),
            "waits for the call 0 before it",
        ),
        (of(&[header, &call(""), &end(1)]), "thread 1 was not told"),
        (of(&[header, thread, &call(r#","len":99999999999"#), &end(1)]), "`len` is 99999999999"),
        (of(&[header, thread, &call(r#","dir":0,"name":"../x""#), &end(1)]), "is no name"),
        (of(&[header, thread, &call(r#","odd":1"#), &end(1)]), "unknown field `odd`"),
        (of(&[header, thread, &call(r#","file":5"#), &end(1)]), "line 3: file 5 was not told"),
        (of(&[header, thread, &call(""), &end(2)]), "it says 2 calls, there are 1"),
        (of(&[header, thread, &call(""), &end(1), thread]), "follows the last line"),
        (of(&[&header.replace("\"version\":1", "\"version\":7")]), "version 7"),
        (of(&[r#"{"file":{"file":3,"kind":"regular"}}"#]), "is no trace"),
    ];
    for (bytes, part) in cases {
        let said = refused(&d, &bytes);
        assert!(said.contains(part), "{part}: {said}");
    }
    // Of one that was cut off what is there can be shown.
    fs::write(d.path().join("cut.trace"), of(&[header, thread, &call("")])).unwrap();
    let asked = d.prints(2, &["trace", "replay", "cut.trace", "."]);
    assert!(asked.contains("ends after 1 calls, before its last line"), "{asked}");
    let shown = d.prints(0, &["trace", "show", "cut.trace"]);
    assert!(shown.contains("1 call ") && shown.contains("cut off"), "{shown}");
    // A file of absurd size.
    let file = r#"{"file":{"file":3,"kind":"regular","size":17592186044415,"dir":0,"name":"f"}}"#;
    fs::write(d.path().join("large.trace"), of(&[header, thread, file, &call(""), &end(1)]))
        .unwrap();
    let large = d.prints(2, &["trace", "replay", "large.trace", "."]);
    assert!(large.contains("17592186044415 bytes"), "{large}");
}

/// A frame of zstd that holds its bytes as they are.
pub fn packed(text: &[u8]) -> Vec<u8> {
    // Magic number; a single segment of 4 bytes' size, no checksum; one raw block, the last.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend((text.len() as u32).to_le_bytes());
    frame.extend(&(((text.len() as u32) << 3) | 1).to_le_bytes()[..3]);
    frame.extend(text);
    frame
}
