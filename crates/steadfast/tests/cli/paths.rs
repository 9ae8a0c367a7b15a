//! `lab run --real`: devices of this machine, which are used where nothing is on them.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use steadfast_crash::program::file;

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
variants = ["ours"]
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
    d.good("lab show own.json --report own.html --chart own.svg");
    let written = ["own.html", "own.svg"].map(|name| fs::read_to_string(d.path().join(name)));
    let shown = ["csv", "markdown"].map(|as_| d.good(&format!("lab show own.json --format {as_}")));
    for text in written.map(Result::unwrap).into_iter().chain(shown) {
        assert!(text.contains("wall clock") && !text.contains("virtual clock"), "{text}");
    }
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
    let again = d.good("lab run own.toml --real --destroy --json -");
    assert!(again.contains("lab run own.toml --real --destroy --seed 1"), "{again}");
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
fn data_anywhere_on_a_device_is_somebodys() {
    let d = desk(OWN);
    let disk = d.path().join("disk.img");
    File::options().write(true).open(&disk).unwrap().write_all_at(b"x", 32 << 20).unwrap();
    let before = held(&disk);
    let refused = d.bad("lab run own.toml --real", 2);
    assert!(refused.contains("data of an unknown kind (at byte 33554432)"), "{refused}");
    assert!(held(&disk) == before, "it was changed");
}

const MIRRORED: &str = r#"
[stack]
disk = "both"
mkfs = "-b 4096"
[machine]
memory_mb = 64
[device.a]
path = "a.img"
[device.b]
path = "b.img"
[volume.both]
kind = "mirror"
members = ["a", "b"]
"#;

const EXTERNAL: &str = r#"
[stack]
disk = "a"
journal = "b"
[machine]
memory_mb = 64
[device.a]
path = "a.img"
[device.b]
path = "b.img"
"#;

/// dd on a setup, in real time.
const COPY: &str = "dd --real-time --destroy --stack sub/setup.toml if=/dev/zero of=/f bs=64k";

/// A desk with a setup in a folder, whose first device holds an XFS file system by its signature.
fn setup_desk(setup: &str) -> Desk {
    let d = Desk::new();
    fs::create_dir(d.path().join("sub")).unwrap();
    fs::write(d.path().join("sub/setup.toml"), setup).unwrap();
    let a = File::create(d.path().join("sub/a.img")).unwrap();
    a.set_len(32 << 20).unwrap();
    a.write_all_at(b"XFSB", 0).unwrap();
    d
}

#[test]
fn nothing_is_written_before_all_devices_are_looked_at() {
    for setup in [MIRRORED, EXTERNAL] {
        let d = setup_desk(setup);
        let (a, b) = (d.path().join("sub/a.img"), d.path().join("sub/b.img"));
        let before = held(&a);
        let refused = |why: &str| {
            let line = format!("{COPY} count=4");
            let said = d.bad(&line, 2);
            assert!(said.contains(why), "{said}");
            assert!(held(&a) == before, "{why}: it was changed");
        };
        // From the folder of the setup, not from this one.
        refused("sub/b.img: cannot open it");
        fs::hard_link(&a, &b).unwrap();
        refused("sub/b.img: is given twice");
        fs::remove_file(&b).unwrap();
        File::create(&b).unwrap().set_len(32 << 10).unwrap();
        refused(if setup == MIRRORED { "b.img: is too small" } else { "a journal has at least" });
        File::create(&b).unwrap().set_len(32 << 20).unwrap();
        let lock = File::open(&b).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        refused("in use");
        drop(lock);
        let said = d.bad(&format!("{COPY} count=4").replace("--destroy", ""), 2);
        assert!(said.contains("holds an XFS file system"), "{said}");
        assert!(held(&a) == before, "it was changed");
        d.good(&format!("{COPY} count=4"));
        // What a run has left is as any other.
        let said = d.bad(&format!("{COPY} count=4").replace("--destroy", ""), 2);
        let what =
            if setup == MIRRORED { "a member of the volume 'both'" } else { "a file system" };
        assert!(said.contains(what) && said.contains("--destroy overwrites it"), "{said}");
        d.good(&format!("{COPY} count=4"));
    }
}

#[test]
fn a_recording_opens_no_path() {
    let d = setup_desk(EXTERNAL);
    let before = held(&d.path().join("sub/a.img"));
    let model = "[stack]\ndisk = 'disk'\n[device.disk]\nkind = 'ssd'\nsectors = 65536\n";
    fs::write(d.path().join("model.toml"), model).unwrap();
    d.good("crash run --stack model.toml --record r.crash -- touch f");
    d.good("crash show r.crash --cut 1");
    let record = d.path().join("r.crash");
    let mut run = file::load(&record).unwrap();
    let setup = EXTERNAL.replace("\"b\"\n", "\"a\"\n").replace("journal = \"a\"", "");
    let origin = d.path().join("sub/setup.toml").display().to_string();
    run.about.extend([("stack".into(), setup), ("stack_origin".into(), origin)]);
    file::save(&run, &record).unwrap();
    for line in
        ["crash show r.crash", "crash show r.crash --cut 1", "crash show r.crash --cut 1 --image i"]
    {
        let said = d.bad(line, 2);
        assert!(said.contains("is a path of this machine"), "{said}");
    }
    assert!(held(&d.path().join("sub/a.img")) == before, "it was changed");
    let said = d.bad("crash run --stack sub/setup.toml -- touch f", 2);
    assert!(said.contains("is a path of this machine, whose power cannot be cut"), "{said}");
}

/// A filter that fails is planned; here it stands for a device that fails.
#[test]
fn a_leg_that_fails_in_a_run_is_reported() {
    let fault = "path = \"b.img\"\nfault = { effect = \"fail\", on = \"write\" }";
    let variants = OWN.split_once("[[variant]]").unwrap().1;
    let head = OWN.split_once("[device.disk]").unwrap().0;
    let volumes = MIRRORED.split_once("[device.a]").unwrap().1;
    let volumes = volumes.replace("path = \"b.img\"", fault);
    let variants = variants.replace("disk = \"disk\"", "disk = \"both\"");
    let text = format!("{head}[device.a]{volumes}[[variant]]{variants}");
    let d = setup_desk(MIRRORED);
    fs::write(d.path().join("sub/own.toml"), text).unwrap();
    File::create(d.path().join("sub/b.img")).unwrap().set_len(32 << 20).unwrap();
    let said = d.bad("lab run sub/own.toml --real --destroy", 1);
    assert!(said.contains("volume 'both': leg ") && said.contains("failed"), "{said}");
    fs::write(d.path().join("sub/setup.toml"), MIRRORED.replace("path = \"b.img\"", fault))
        .unwrap();
    let said = d.bad(&format!("{COPY} count=4"), 1);
    assert!(said.contains("volume 'both': leg ") && said.contains("failed"), "{said}");
}

#[test]
fn volumes_of_volumes_have_a_bound() {
    let d = Desk::new();
    let volumes = |from: usize, to: usize| -> String {
        let volume =
            |n: usize| format!("[volume.v{n}]\nkind = 'concat'\nmembers = ['v{}']\n", n + 1);
        (from..to).map(volume).collect()
    };
    let setup = |count: usize| {
        let last = format!("[volume.v{count}]\nkind = 'concat'\nmembers = ['d']\n");
        let device = "[device.d]\nkind = 'ssd'\n";
        fs::write(
            d.path().join("deep.toml"),
            format!("[stack]\ndisk = 'v1'\n{device}{}{last}", volumes(1, count)),
        )
        .unwrap();
    };
    setup(16);
    d.good("lab check deep.toml");
    for count in [17, 5000] {
        setup(count);
        let said = d.bad("lab check deep.toml", 2);
        assert!(
            said.contains("[volume.v1] is volumes of volumes in more than 16 levels"),
            "{said}"
        );
        assert!(said.contains("1 mistake"), "{said}");
    }
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
    let d = desk(&format!("{OWN}{KERNELS}mount = \"unheard-of\"\n"));
    let failed = d.bad("lab run own.toml --real", 1);
    assert_eq!(failed.matches("variant 'kernel'").count(), 1, "{failed}");
    let d = desk(&format!("{OWN}{KERNELS}"));
    let run = measured(&d.good("lab run own.toml --real --json -"));
    let speeds = rows(&run, "speed");
    // dd's copies are of devices, too.
    for (variant, tests) in [("ours", 5), ("kernel", 4)] {
        let of_variant = speeds.iter().filter(|row| row["variant"] == variant);
        assert_eq!(of_variant.count(), tests, "{variant}");
    }
}
