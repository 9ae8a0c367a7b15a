//! `lab run --real`: devices of this machine, which are used where nothing is on them.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::{Desk, rows};

const OWN: &str = r#"
version = 2
name = "own"
title = "A device of this machine"
about = "For a test."
[machine]
memory_mb = 64
[workload]
iozone = "-t 1 -s 1m -r 64k -i 0 -i 1 --settle 0"
quick_size = "1m"
risk_size = "1m"
peers_size = "1m"
cuts = 4
[[workload.dd]]
test = "a file"
operands = "if=/dev/zero of=/file bs=64k count=8"
[device.disk]
path = "disk.img"
[[variant]]
name = "ours"
label = "ours"
disk = "disk"
mount = "data=ordered"
"#;

const KERNELS: &str = r#"
[[variant]]
name = "kernel"
label = "the kernel's"
disk = "disk"
kernel = "ext4"
"#;

/// A desk with a scenario, and with a blank disk for it.
fn desk(scenario: &str) -> Desk {
    let d = Desk::new();
    fs::write(d.path().join("own.toml"), scenario).unwrap();
    File::create(d.path().join("disk.img")).unwrap().set_len(64 << 20).unwrap();
    d
}

fn held(disk: &Path) -> Vec<u8> {
    fs::read(disk).unwrap()
}

fn measured(json: &str) -> serde_json::Value {
    let results: serde_json::Value = serde_json::from_str(json).unwrap();
    results["runs"][0].clone()
}

#[test]
fn a_blank_device_is_measured_and_not_cut() {
    let d = desk(OWN);
    assert!(d.bad("lab run own.toml", 2).contains("--real measures on it"));
    d.good("lab check own.toml");
    let text = d.good("lab run own.toml --real --json own.json");
    // It says of itself which clock it is by.
    assert!(text.contains("wall clock") && !text.contains("virtual clock"), "{text}");
    d.good("lab show own.json --report own.html");
    let page = fs::read_to_string(d.path().join("own.html")).unwrap();
    assert!(page.contains("wall clock") && !page.contains("virtual clock"), "{page}");
    let json = fs::read_to_string(d.path().join("own.json")).unwrap();
    assert!(json.contains("\"clock\": \"wall\""), "{json}");
    let run = measured(&json);
    let speeds: Vec<_> = rows(&run, "speed").iter().map(|row| row["test"].clone()).collect();
    let tests = ["initial write", "rewrite", "read", "reread", "a file"];
    assert!(tests.iter().all(|test| speeds.iter().any(|t| t == test)), "{speeds:?}");
    assert_eq!(rows(&run, "dd")[0]["bytes"], 8 << 16);
    for kind in ["risk", "loss", "took"] {
        assert!(rows(&run, kind).is_empty(), "{kind}");
    }
    for line in ["--real --cuts 2", "--real --peers", "--destroy"] {
        d.bad(&format!("lab run own.toml {line}"), 2);
    }
}

#[test]
fn what_is_on_a_device_is_overwritten_for_those_who_say_so() {
    let d = desk(OWN);
    let disk = d.path().join("disk.img");
    d.good("mkfs disk.img");
    let before = held(&disk);
    let refused = d.bad("lab run own.toml --real", 2);
    let said = ["holds a file system", "--destroy overwrites it"];
    assert!(said.iter().all(|text| refused.contains(text)), "{refused}");
    assert!(held(&disk) == before, "it was changed");
    d.good("lab run own.toml --real --destroy --json -");
    // Data that no signature tells of.
    let mut unknown = vec![0; 64 << 20];
    unknown[..512].fill(7);
    fs::write(&disk, &unknown).unwrap();
    let refused = d.bad("lab run own.toml --real", 2);
    assert!(refused.contains("data of an unknown kind"), "{refused}");
    assert!(held(&disk) == unknown, "it was changed");
    let nothing = OWN.replace("disk.img", "missing.img");
    fs::write(d.path().join("own.toml"), nothing).unwrap();
    assert!(d.bad("lab run own.toml --real", 2).contains("missing.img"));
}

#[test]
fn a_device_in_use_is_refused_whatever_is_said() {
    let d = desk(OWN);
    let disk = File::open(d.path().join("disk.img")).unwrap();
    flock(&disk, FlockOperation::NonBlockingLockExclusive).unwrap();
    for line in ["lab run own.toml --real", "lab run own.toml --real --destroy"] {
        let refused = d.bad(line, 2);
        assert!(refused.contains("in use"), "{refused}");
    }
}

#[test]
fn the_kernels_file_system_is_measured_on_the_same_device() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: mounting needs root");
        return;
    }
    let d = desk(&format!("{OWN}{KERNELS}"));
    let run = measured(&d.good("lab run own.toml --real --json -"));
    let speeds = rows(&run, "speed");
    // dd's copies are of devices, too.
    for (variant, tests) in [("ours", 5), ("kernel", 4)] {
        let of_variant = speeds.iter().filter(|row| row["variant"] == variant);
        assert_eq!(of_variant.count(), tests, "{variant}");
    }
}
