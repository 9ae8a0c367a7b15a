//! A comparison, to the byte, and what it says of a program that forgets an fsync.

use std::fs;

use snapbox::{Data, assert_data_eq};

use super::Desk;

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

fn compared(syncs: bool, json: bool) -> String {
    let d = Desk::new();
    fs::write(d.path().join("s.txt"), program(syncs)).unwrap();
    d.prints(0, &["trace", "import", "s.txt", "--folder", "/w", "-o", "s.trace"]);
    let stacks = "disk-7200,disk-7200-nvram-data,disk-7200-lying,nvme,nvdimm-dax";
    let words = ["lab", "compare", "--trace", "s.trace", "--only", stacks, "--cuts", "8"];
    let more: &[&str] = if json { &["--json", "-"] } else { &[] };
    d.prints(0, &[&words[..], more].concat())
}

#[test]
fn a_comparison_is_the_same_to_the_byte() {
    let text = compared(true, false);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_data_eq!(text, Data::read_from("tests/trace/compared.txt".as_ref(), None));
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
        let found: serde_json::Value = serde_json::from_str(&compared(syncs, true)).unwrap();
        let stacks = found["stacks"].as_array().unwrap().clone();
        let of = |name: &str| stacks.iter().find(|row| row["stack"] == name).unwrap().clone();
        let figure = |name: &str, key: &str| of(name)[key].as_f64().unwrap();
        (figure("nvme", "lost_calls"), figure("disk-7200-lying", "broken_promises"))
    };
    let (synced, unsynced) = (lost(true), lost(false));
    assert!(synced.0 <= 1.0 && unsynced.0 > 10.0, "{synced:?} {unsynced:?}");
    assert!(synced.1 > 0.0 && unsynced.1 == 0.0, "{synced:?} {unsynced:?}");
}
