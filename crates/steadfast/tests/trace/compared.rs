//! A comparison, to the byte, and what it says of a program that forgets an fsync.

use std::fs;

use snapbox::{Data, assert_data_eq};

use super::Desk;
use super::bad::{HEADER, packed};

/// A log of appended lines, some of them synced; a file that replaces another one.
fn program(syncs: bool) -> String {
    let made = "openat(AT_FDCWD</w>, \"log\", O_WRONLY|O_CREAT|O_APPEND, 0644) = 3</w/log>";
    let mut text = format!("7 1795833941.000100 {made} <0.000050>\n");
    for n in 0..40 {
        let at = 1_795_833_941_001_000u64 + n * 30_000;
        let time = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        text += &format!("7 {} write(3</w/log>, \"\"..., 77) = 77 <0.000020>\n", time(at));
        if syncs {
            text += &format!("7 {} fsync(3</w/log>) = 0 <0.000200>\n", time(at + 100));
        }
    }
    text
}

fn compared(syncs: bool, more: &[&str]) -> String {
    let d = Desk::new();
    fs::write(d.path().join("s.txt"), program(syncs)).unwrap();
    d.prints(0, &["trace", "import", "s.txt", "--folder", "/w", "-o", "s.trace"]);
    let stacks = "disk-7200,disk-7200-nvram-data,disk-7200-lying,nvme,nvdimm-dax";
    let words = ["lab", "compare", "--trace", "s.trace", "--only", stacks, "--cuts", "8"];
    d.prints(0, &[&words[..], more].concat())
}

#[test]
fn a_comparison_is_the_same_to_the_byte() {
    for (more, kept) in [(&[][..], "compared.txt"), (&["--wide"], "compared-wide.txt")] {
        let text = compared(true, more);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!more.is_empty() || text.lines().count() <= 24, "{text}");
        let kept = std::path::Path::new("tests/trace").join(kept);
        assert_data_eq!(text, Data::read_from(&kept, None).raw());
    }
}

/// The catalogue that is printed is the one that is used, and what is left of it is said.
#[test]
fn a_catalogue_is_copied_and_edited() {
    let d = Desk::new();
    fs::write(d.path().join("s.txt"), program(true)).unwrap();
    d.prints(0, &["trace", "import", "s.txt", "--folder", "/w", "-o", "s.trace"]);
    let priced = d
        .prints(0, &["lab", "compare", "--catalogue"])
        .replace("name = \"nvme\"", "name = \"nvme\"\nprice = 300.0");
    fs::write(d.path().join("mine.toml"), &priced).unwrap();
    let mut words = vec!["lab", "compare", "--trace", "s.trace", "--stacks", "mine.toml"];
    words.extend(["--budget", "400", "--cuts", "0", "--seeds", "1", "--flat-out"]);
    let short = d.prints(0, &words);
    assert!(short.contains("(19 stacks without a price)") && short.contains("(--flat-out)"));
    words.push("--wide");
    let text = d.prints(0, &words);
    let words_of = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["left out (19 stacks): disk-7200,", "is beside nvme", "(--flat-out)"] {
        assert!(words_of.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    fs::write(d.path().join("mine.toml"), priced + "[workload]\ncuts = 1\n").unwrap();
    let refused = d.prints(2, &words);
    assert!(refused.contains("has no [workload]"), "{refused}");
}

/// A cut of a trace is described as that of any other workload.
#[test]
fn a_cut_can_be_shown() {
    let d = Desk::new();
    fs::write(d.path().join("s.txt"), program(true)).unwrap();
    d.prints(0, &["trace", "import", "s.txt", "--folder", "/w", "-o", "s.trace"]);
    let stack = "version = 2\nname = \"s\"\ntitle = \"t\"\n[workload]\ncuts = 4\n\
                 [workload.trace]\nfile = \"s.trace\"\n[device.d]\nkind = \"ssd\"\n\
                 [[variant]]\nname = \"v\"\nlabel = \"l\"\ndisk = \"d\"\n\
                 mount = \"data=ordered\"\n";
    fs::write(d.path().join("s.toml"), stack).unwrap();
    let shown = d.prints(0, &["crash", "show", "s.toml", "--variant", "v", "--cut", "2"]);
    assert!(shown.contains("fsync log") && shown.contains("write log: 77 bytes"), "{shown}");
}

/// The control: without its syncs it loses more, and nothing that was promised.
#[test]
fn without_syncs_more_is_lost() {
    let lost = |syncs: bool| {
        let found: serde_json::Value =
            serde_json::from_str(&compared(syncs, &["--json", "-"])).unwrap();
        let stacks = found["stacks"].as_array().unwrap().clone();
        let of = |name: &str| stacks.iter().find(|row| row["stack"] == name).unwrap().clone();
        let figure = |name: &str, key: &str| of(name)[key].as_f64().unwrap();
        (figure("nvme", "lost_calls"), figure("disk-7200-lying", "broken_promises"))
    };
    let (synced, unsynced) = (lost(true), lost(false));
    assert!(synced.0 <= 1.0 && unsynced.0 > 10.0, "{synced:?} {unsynced:?}");
    assert!(synced.1 > 0.0 && unsynced.1 == 0.0, "{synced:?} {unsynced:?}");
}

/// A trace of calls `(op and what belongs to it, ms before it)`, and of ms after the last one.
fn made(calls: &[(&str, u64)], tail: u64) -> Vec<u8> {
    let mut text = format!("{HEADER}\n{{\"thread\":{{\"thread\":1,\"process\":1}}}}\n");
    let mut at = 0;
    for (n, (call, before)) in calls.iter().enumerate() {
        at += before * 1_000_000 + 1000;
        let after = if n > 0 { ",\"after\":[1]" } else { "" };
        text += &format!(
            "{{\"call\":{{\"thread\":1,\"start\":{at},\"end\":{},\"think\":{}{after},{call}}}}}\n",
            at + 1000,
            before * 1_000_000
        );
        at += 1000;
    }
    at += tail * 1_000_000;
    packed((text + &format!("{{\"end\":{{\"calls\":{},\"at\":{at}}}}}\n", calls.len())).as_bytes())
}

const CREATE: &str = r#""op":"create","file":1,"handle":1,"dir":0,"name":"g1","flags":["write"]"#;
const WRITE: &str = r#""op":"write","file":1,"handle":1,"len":2,"result":2"#;
const CLOSE: &str = r#""op":"close","file":1,"handle":1"#;

fn compared_on(stacks: &str, trace: &[u8], cuts: &str) -> serde_json::Value {
    let d = Desk::new();
    fs::write(d.path().join("t.trace"), trace).unwrap();
    let words = ["lab", "compare", "--trace", "t.trace", "--seeds", "1", "--json", "-"];
    let text = d.prints(0, &[&words[..], &["--only", stacks, "--cuts", cuts]].concat());
    serde_json::from_str(&text).unwrap()
}

/// What waits for the file system's timer is found, also while the program makes no call.
#[test]
fn pauses_are_cut_too() {
    let lost = |trace: &[u8]| {
        let found = compared_on("disk-7200", trace, "40");
        let figure = |key: &str| found["stacks"][0][key].as_f64().unwrap();
        (figure("lost_bytes"), figure("lost_ms"))
    };
    let (bytes, ms) = lost(&made(&[(CREATE, 0), (WRITE, 0), (CLOSE, 0)], 6000));
    assert!(bytes == 2.0 && ms > 4000.0 && ms < 6100.0, "{bytes} B, {ms} ms");
    // The first is still at risk when the second is written.
    let other = |call: &str| call.replace(":1", ":2").replace("g1", "g2");
    let second = [CREATE, WRITE, CLOSE].map(other);
    let calls = [(CREATE, 0), (WRITE, 0), (CLOSE, 0)];
    let more = [(&*second[0], 4000), (&*second[1], 0), (&*second[2], 0)];
    let (bytes, _) = lost(&made(&[calls, more].concat(), 16000));
    assert!(bytes == 4.0, "{bytes} B");
}

/// The cut at the end is after the sync: the warning shows that the others' zeros mean something.
#[test]
fn a_program_that_syncs_and_ends_is_judged() {
    let fsync = r#""op":"fsync","file":1,"handle":1"#;
    let folder = r#""op":"fsyncdir","file":0"#;
    let calls = [(CREATE, 0), (WRITE, 0), (fsync, 0), (folder, 0), (CLOSE, 0)];
    let found = compared_on("disk-7200,disk-7200-lying", &made(&calls, 0), "10");
    let broken = |n: usize| found["stacks"][n]["broken_promises"].as_u64();
    assert_eq!(found["stacks"][1]["stack"], "disk-7200-lying");
    assert!(broken(0) == Some(0) && broken(1) > Some(0), "{found}");
    // Without a cut nothing is known of any.
    let uncut = compared_on("disk-7200,disk-7200-lying", &made(&calls, 0), "0");
    for key in ["broken_promises", "lost_bytes", "lost_ms", "recovery_ms", "sync_p50_ms"] {
        assert!(uncut["stacks"][0][key].is_null(), "{key}: {uncut}");
    }
}
