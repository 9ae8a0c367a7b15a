//! The program as a person uses it: commands, exit statuses, messages, and e2fsck's verdict.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

#[path = "cli/calibrate.rs"]
mod calibrate;
#[path = "cli/closed.rs"]
mod closed;
#[path = "cli/full_disk.rs"]
mod full_disk;
#[path = "cli/given.rs"]
mod given;
#[path = "cli/hang_up.rs"]
mod hang_up;
#[path = "cli/paths.rs"]
mod paths;
#[path = "cli/recorded.rs"]
mod recorded;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use steadfast_host::Folder;

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(900);

struct Desk(Folder);

impl Desk {
    fn new() -> Self {
        Desk(Folder::new("steadfast-test-").unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(line.split_whitespace()).current_dir(self.path());
        steadfast_suite::output(LIMIT, &mut command).unwrap()
    }

    /// Runs a command that must succeed; its standard output.
    fn good(&self, line: &str) -> String {
        let out = self.run(line);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{line}: {:?}\n{errors}", out.status);
        String::from_utf8(out.stdout).unwrap()
    }

    /// Runs a command that must fail with `status`; what it says on the standard error.
    fn bad(&self, line: &str, status: i32) -> String {
        let out = self.run(line);
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(status), "{line}\n{text}");
        assert!(!text.contains("panicked"), "{line}\n{text}");
        text
    }

    fn e2fsck_can_read(&self, image: &str) {
        let mut command = Command::new("e2fsck");
        command.args(["-fy", image]).current_dir(self.path());
        let out = steadfast_suite::output(Duration::from_secs(60), &mut command).unwrap();
        assert!(matches!(out.status.code(), Some(0 | 1)), "{out:?}");
    }

    fn e2fsck_is_clean(&self, image: &str) {
        let out = Command::new("timeout")
            .args(["-s", "KILL", "60", "e2fsck", "-fn", image])
            .current_dir(self.path())
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    }
}

#[test]
fn a_tree_goes_into_an_image_and_comes_back() {
    let d = Desk::new();
    let src = d.path().join("src");
    std::fs::create_dir_all(src.join("deep/er")).unwrap();
    std::fs::write(src.join("a.txt"), "hello\n").unwrap();
    std::fs::write(src.join("deep/er/big"), vec![7u8; 3_000_001]).unwrap();
    std::os::unix::fs::symlink("a.txt", src.join("link")).unwrap();
    d.good("mkfs disk.img --size 32m -L test");
    d.good("put -r disk.img src /");
    d.good("mkdir disk.img /new");
    assert_eq!(d.good("cat disk.img /src/a.txt"), "hello\n");
    let listing = d.good("ls disk.img /src");
    assert!(listing.contains("link -> a.txt") && listing.contains("deep"), "{listing}");
    d.good("get -r disk.img /src back");
    assert_eq!(std::fs::read(d.path().join("back/deep/er/big")).unwrap(), vec![7u8; 3_000_001]);
    assert_eq!(std::fs::read_link(d.path().join("back/link")).unwrap(), Path::new("a.txt"));
    d.e2fsck_is_clean("disk.img");
    assert!(d.good("check disk.img").contains("clean"));
    d.good("rm -r disk.img /src");
    assert!(!d.good("ls disk.img /").contains("src"));
    d.e2fsck_is_clean("disk.img");
    assert!(d.good("info disk.img").contains("test"));
    assert!(d.good("replay disk.img").contains("nothing to replay"));
}

#[test]
fn attributes_times_and_fifos_go_with_a_tree() {
    use rustix::fs::{CWD, FileType, Mode, XattrFlags};
    let d = Desk::new();
    let src = d.path().join("src");
    std::fs::create_dir_all(&src).unwrap();
    let file = src.join("a.txt");
    std::fs::write(&file, "hello\n").unwrap();
    // Longer than fits into an inode, shorter than a block.
    let value = [7u8; 700];
    if rustix::fs::lsetxattr(&file, "user.note", &value, XattrFlags::CREATE).is_err() {
        println!("SKIPPED: no extended attributes on {}", d.path().display());
        return;
    }
    rustix::fs::mknodat(CWD, src.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    std::fs::File::open(&file).unwrap().set_modified(long_ago).unwrap();
    d.good("mkfs disk.img --size 32m");
    d.good("put -r disk.img src /");
    d.e2fsck_is_clean("disk.img");
    d.good("get -r disk.img /src back");
    let back = d.path().join("back");
    let mut kept = Vec::with_capacity(1000);
    let spare = rustix::buffer::spare_capacity(&mut kept);
    rustix::fs::lgetxattr(back.join("a.txt"), "user.note", spare).unwrap();
    assert_eq!(kept, value);
    assert_eq!(back.join("a.txt").metadata().unwrap().modified().unwrap(), long_ago);
    let kind = FileType::from_raw_mode(rustix::fs::lstat(back.join("fifo")).unwrap().st_mode);
    assert_eq!(kind, FileType::Fifo);
}

#[test]
fn an_external_journal_is_made_used_and_asked_for() {
    let d = Desk::new();
    d.good("mkfs -b 4096 -O journal_dev journal.img --size 8m");
    d.good("mkfs -b 4096 -J device=journal.img disk.img --size 32m");
    d.good("mkdir disk.img --journal journal.img /made");
    assert!(d.good("ls disk.img --journal journal.img /").contains("made"));
    let text = d.bad("mkdir disk.img /more", 2);
    assert!(text.contains("journal on another device"), "{text}");
    // A second file system on the same journal is refused.
    let text = d.bad("mkfs -b 4096 -J device=journal.img other.img --size 32m", 2);
    assert!(text.contains("journal"), "{text}");
    let text = d.bad("mkfs -b 1024 -J device=journal.img third.img --size 32m", 2);
    assert!(text.contains("block"), "{text}");
    d.good("mkfs -b 4096 -O journal_dev another.img --size 8m");
    let text = d.bad("ls disk.img --journal another.img /", 2);
    assert!(text.contains("UUID"), "{text}");
    assert!(d.good("check disk.img --journal journal.img").contains("clean"));
    // A folder is looked through; a copy is not chosen by chance.
    assert!(d.good("ls disk.img --journal . /").contains("made"));
    std::fs::copy(d.path().join("journal.img"), d.path().join("copy.img")).unwrap();
    let text = d.bad("ls disk.img --journal . /", 2);
    assert!(text.contains("more than once") && text.contains("copy.img"), "{text}");
    d.good("mkdir disk.img --journal journal.img /more");
    // A journal in use is overwritten only with force, and the way out is said.
    let text = d.bad("mkfs -b 4096 -O journal_dev journal.img", 2);
    assert!(text.contains("journal detach IMAGE --journal journal.img"), "{text}");
    assert!(d.bad("mkfs -b 4096 journal.img", 2).contains("it is the journal of"));
    d.good("mkfs -b 4096 -O journal_dev --force journal.img");
    assert!(d.bad("mkdir disk.img --journal journal.img /lost", 2).contains("UUID"));
}

#[test]
fn misuse_and_damage_have_their_own_statuses() {
    let d = Desk::new();
    assert!(d.bad("ls nowhere.img /", 2).contains("nowhere.img"));
    assert!(d.bad("mkfs disk.img", 2).contains("--size"));
    d.bad("mkfs disk.img --size many", 2);
    assert!(d.bad("mkfs /dev/full --size 16m", 2).contains("is a character device"));
    d.good("mkfs disk.img --size 16m");
    assert!(d.bad("mkfs disk.img", 2).contains("-F"));
    assert!(d.bad("mkfs -F -O magic disk.img", 2).contains("magic"));
    assert!(d.bad("mkfs -F -C 65536 disk.img", 2).contains("bigalloc"));
    d.good("mkfs -F -b 4096 -O bigalloc -C 65536 disk.img");
    assert!(d.good("info disk.img").contains("Cluster size"));
    assert!(d.bad("cat disk.img /none", 1).contains("no such file"));
    assert!(d.bad("cat disk.img /lost+found", 1).contains("is a directory"));
    assert!(d.bad("put disk.img missing.txt /x", 2).contains("missing.txt"));
    d.bad("frobnicate", 2);
    assert!(d.bad("lab run no-such-scenario", 2).contains("nvram-journal"));
    assert!(d.bad("iozone -a -t 2", 2).contains("-a"));
    // Damage: exit 1, a line a finding, and the image unchanged.
    let path = d.path().join("disk.img");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[1024 + 12] ^= 0xff;
    std::fs::write(&path, &bytes).unwrap();
    let out = d.run("check disk.img");
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stdout).contains("superblock"));
    d.bad("mkdir disk.img /x", 1);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    // A full disk says so and loses nothing.
    d.good("mkfs -F disk.img");
    std::fs::write(d.path().join("huge"), vec![1u8; 20 << 20]).unwrap();
    assert!(d.bad("put disk.img huge /huge", 1).contains("no space"));
    d.e2fsck_is_clean("disk.img");
}

const TINY: &str = r#"
version = 1
name = "tiny"
title = "A tiny scenario"
about = "For a test."
[workload]
iozone = "-o -c -e -t2 -T -I -s 4g -r 64k -i0 -i2 -i9"
quick_size = "1m"
risk_size = "512k"
cuts = 6
[device.disk]
kind = "hdd"
[device.card]
kind = "nvram"
[device.dead-card]
kind = "nvram"
batteries = ["failed", "failed"]
[[variant]]
name = "internal"
label = "internal"
disk = "disk"
mount = "data=ordered"
[[variant]]
name = "external"
label = "external"
disk = "disk"
journal = "card"
mount = "data=journal"
"#;

/// The measurements of a kind.
fn rows<'d>(run: &'d serde_json::Value, kind: &str) -> Vec<&'d serde_json::Value> {
    let all = run["measurements"].as_array().unwrap();
    all.iter().filter(|row| row["kind"] == kind).collect()
}

#[test]
fn the_lab_repeats_itself_byte_for_byte() {
    let d = Desk::new();
    std::fs::write(d.path().join("tiny.toml"), TINY).unwrap();
    let first = d.good("lab run tiny.toml --seed 5 --json -");
    d.good("lab run tiny.toml --seed 5 --json out.json --report out.html --chart out.svg");
    assert_eq!(first, std::fs::read_to_string(d.path().join("out.json")).unwrap());
    let document: serde_json::Value = serde_json::from_str(&first).unwrap();
    let other = d.good("lab run tiny.toml --seed 6 --json -");
    let other: serde_json::Value = serde_json::from_str(&other).unwrap();
    // The seed reaches the drive: with the journal on it, which takes seeks, speeds are others.
    // The documents as a whole differ in any case, by the seed that they name.
    let speeds = |document: &serde_json::Value| -> Vec<String> {
        let rows = rows(&document["runs"][0], "speed").into_iter();
        let internal = rows.filter(|row| row["variant"] == "internal");
        internal.map(|row| row["kb_per_s"].to_string()).collect()
    };
    let (speeds, others) = (speeds(&document), speeds(&other));
    assert!(speeds.len() >= 2 && speeds.len() == others.len());
    let moved = speeds.iter().zip(&others).filter(|(a, b)| a != b).count();
    assert!(moved * 2 > speeds.len(), "{speeds:?} {others:?}");
    assert_eq!(document["scenario"], "tiny");
    assert_eq!(rows(&document["runs"][0], "risk")[0]["broken_promises"], 0);
    assert_eq!(rows(&document["summary"], "risk")[1]["damage"]["events"], 0);
    let ratio = &rows(&document["summary"], "ratio")[0]["ratio"];
    assert!(ratio["median"].as_f64().unwrap() > 1.0, "{ratio}");
    let html = std::fs::read_to_string(d.path().join("out.html")).unwrap();
    // One policy, which forbids whatever is not in the page.
    assert!(html.contains("<svg") && html.contains("default-src 'none'"));
    assert!(html.matches("http-equiv").count() == 1 && !html.contains("src=\""));
}

#[test]
fn tables_fit_whoever_reads_them() {
    let d = Desk::new();
    std::fs::write(d.path().join("tiny.toml"), TINY).unwrap();
    let text = d.good("lab run tiny.toml --seeds 2 --wide");
    assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(text.contains("REDUCED SIZE") && text.contains("Seeds 1 to 2"), "{text}");
    // Six cuts of each of two runs are too few for a percentile; at most they bound a rate to a
    // quarter, and to less than that where some of them find the same place.
    assert!(text.contains("max of 6") && !text.contains("p99"), "{text}");
    assert!(text.contains("distinct") && text.contains("<="), "{text}");
    let bounds = text.split("<=").skip(1).filter_map(|rest| rest.split(' ').next());
    assert!(bounds.map(|n| n.parse::<f64>().unwrap()).all(|percent| percent >= 25.0), "{text}");
    let csv = d.good("lab run tiny.toml --seeds 2 --format csv");
    assert!(csv.starts_with("table,row,column,median,min,max,runs,unit,text\r\n"), "{csv}");
    assert!(d.good("lab run tiny.toml --format markdown").contains("\n|---|--:|"));
    assert_eq!(d.good("lab run tiny.toml --format json"), d.good("lab run tiny.toml --json -"));
    // Nothing was written that was not asked for.
    assert_eq!(std::fs::read_dir(d.path()).unwrap().count(), 1);
}

#[test]
fn paths_are_tried_before_the_run() {
    let d = Desk::new();
    for option in ["json", "report", "chart", "record"] {
        let message = d.bad(&format!("lab run nvram-journal --full --{option} no/such/place"), 2);
        assert!(option == "record" || message.contains("no/such/place"), "{message}");
        if option == "json" {
            // The folder is made by --record only; a file stands in its way now.
            std::fs::write(d.path().join("no"), "").unwrap();
        }
    }
    std::fs::create_dir(d.path().join("full")).unwrap();
    for option in ["json", "report", "chart"] {
        let message = d.bad(&format!("lab run nvram-journal --full --{option} full"), 2);
        assert!(message.contains(&format!("--{option}: cannot write full")), "{message}");
    }
    std::fs::write(d.path().join("full/of"), "things").unwrap();
    assert!(d.bad("lab run nvram-journal --full --record full", 2).contains("not empty"));
    std::fs::write(d.path().join("tiny.toml"), TINY).unwrap();
    let own = d.bad("lab run tiny.toml --json ./tiny.toml", 2);
    assert!(own.contains("that file is read"), "{own}");
    d.bad("lab sensitivity tiny.toml --svg tiny.toml", 2);
    let same = d.bad("lab run tiny.toml --json same --report same", 2);
    assert!(same.contains("--json and --report name the same file"), "{same}");
    // A link to what is not there yet: both would write it.
    std::os::unix::fs::symlink("same", d.path().join("link")).unwrap();
    std::os::unix::fs::symlink("link", d.path().join("chain")).unwrap();
    std::os::unix::fs::symlink("loop", d.path().join("loop")).unwrap();
    for [a, b] in [["same", "link"], ["link", "same"], ["chain", "link"]] {
        let same = d.bad(&format!("lab run tiny.toml --json {a} --chart ./{b}"), 2);
        assert!(same.contains("--json and --chart name the same file"), "{same}");
    }
    assert!(d.bad("lab run tiny.toml --json loop", 2).contains("loop"));
    // What was only tried is not there afterwards.
    d.bad("lab run tiny.toml --json chain --report no/such/place", 2);
    assert!(!d.path().join("same").exists());
    let out = d.bad("lab run tiny.toml --report -", 2);
    assert!(out.contains("--report -") && out.contains("a file"), "{out}");
    d.bad("lab sensitivity tiny.toml --size 256k --svg no/x", 2);
    assert_eq!(std::fs::read_to_string(d.path().join("tiny.toml")).unwrap(), TINY);
    let cuts = d.bad("lab run tiny.toml --cuts 1000001", 2);
    assert!(cuts.contains("--cuts") && cuts.contains("1000000"), "{cuts}");
    assert!(d.bad("lab run nvram-journal --seeds 0", 2).contains("--seeds 0"));
}

#[test]
fn sizes_that_a_run_refuses_are_reported_by_check() {
    let d = Desk::new();
    let with = |from: &str, to: &str, full: &str| {
        assert!(TINY.contains(from));
        std::fs::write(d.path().join("tiny.toml"), TINY.replace(from, to)).unwrap();
        let check = d.bad("lab check tiny.toml", 2);
        // Whatever check reports, run reports too.
        assert_eq!(d.bad(&format!("lab run tiny.toml --cuts 0{full}"), 2), check);
        check
    };
    // Less than a record.
    let message = with("risk_size = \"512k\"", "risk_size = \"32k\"", "");
    assert!(message.contains("risk_size") && message.contains("32k"), "{message}");
    let small = "[device.disk]\nkind = \"ram\"\nsize = \"64m\"\n[device.old-disk]";
    let message = with("[device.disk]", small, " --full");
    assert!(message.contains("do not fit on device 'disk'"), "{message}");
    let message = with("cuts = 6", "cuts = 6\nloss_cuts = 1000001", "");
    assert!(message.contains("loss_cuts"), "{message}");
}

#[test]
fn the_list_of_scenarios_fits_eighty_columns() {
    let list = Desk::new().good("lab list");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    assert!(list.contains("external-async") && list.contains("data-at-risk"), "{list}");
}

/// What is printed is a file that can be run, and so is one with a preset.
#[test]
fn a_scenario_that_is_printed_is_a_start() {
    let d = Desk::new();
    std::fs::write(d.path().join("mine.toml"), d.good("lab scenario nvdimm-dax")).unwrap();
    assert!(d.good("lab check mine.toml").contains("good: "));
    let presets = d.good("lab scenario --presets");
    for preset in ["disk-7200", "nvme", "sata-ssd", "emmc", "sd-card"] {
        assert!(presets.contains(&format!("\n[device.{preset}]\n")), "{preset}");
        let setup = format!(
            "[device.d]\npreset = \"{preset}\"\nsectors = 2097152\n\
             [stack]\ndisk = \"d\"\nmount = \"data=ordered\"\n"
        );
        std::fs::write(d.path().join("setup.toml"), setup).unwrap();
        assert!(d.good("lab check setup.toml").contains("good: a setup"));
    }
    let said = d.bad("lab scenario nvram-jornal", 2);
    assert!(said.contains("did you mean `nvram-journal`?"), "{said}");
    let wrong = "[device.d]\npreset = \"nvm\"\n[stack]\ndisk = \"d\"\n";
    std::fs::write(d.path().join("setup.toml"), wrong).unwrap();
    let said = d.bad("lab check setup.toml", 2);
    assert!(said.contains("no preset `nvm`") && said.contains("mean `nvme`?"), "{said}");
}

#[test]
fn without_root_the_kernel_is_no_peer() {
    let d = Desk::new();
    let run = "lab run nvram-journal --peers --cuts 0";
    let message = if rustix::process::geteuid().is_root() {
        // Whoever runs it must reach the program and the folder.
        let program = d.path().join("steadfast");
        std::fs::copy(env!("CARGO_BIN_EXE_steadfast"), &program).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(d.path(), open).unwrap();
        let out = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&program)
            .args(run.split_whitespace())
            .current_dir(d.path())
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2));
        String::from_utf8(out.stderr).unwrap()
    } else {
        d.bad(run, 2)
    };
    assert!(message.contains("--peers") && message.contains("root"), "{message}");
    let none = d.bad("lab run data-at-risk --peers", 2);
    assert!(none.contains("--peers"), "{none}");
}

/// Whether a process has a handler for SIGINT yet.
fn hears_sigint(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|m| m & 2 != 0)
}

#[test]
fn an_interrupted_run_prints_what_there_is() {
    let d = Desk::new();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .args(["lab", "run", "nvram-journal", "--full", "--format", "json"])
        .current_dir(d.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while !hears_sigint(child.id()) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = steadfast_suite::output_of(LIMIT, child).unwrap();
    assert_eq!(output.status.code(), Some(130));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["partial"], true);
    assert!(document["notes"][0]["text"].as_str().unwrap().starts_with("PARTIAL"));
    assert_eq!(document["source"]["author"], "Jeffrey Langerak");
}

#[test]
fn the_sensitivity_is_printed_and_wrong_use_is_reported() {
    let d = Desk::new();
    std::fs::write(d.path().join("tiny.toml"), TINY.replace("-i0 -i2 -i9", "-i0")).unwrap();
    let asked = "lab sensitivity tiny.toml --size 256k";
    let text = d.good(&format!("{asked} --figure rewrite/external --json s.json --svg s.svg"));
    assert!(text.contains("rewrite of 'external'") && text.contains("card.device"), "{text}");
    assert!(text.contains("What holds over all of it"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let json = std::fs::read_to_string(d.path().join("s.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["format"], "steadfast-sensitivity");
    assert!(document["effects"].as_array().unwrap().len() > 40);
    d.bad(&format!("{asked} --only disk.colour"), 2);
    let crad = d.bad(&format!("{asked} --only crad"), 2);
    assert!(crad.contains("did you mean `card`?"), "{crad}");
    let zero = d.bad("lab sensitivity tiny.toml --size 0", 2);
    assert!(zero.contains("--size") && !zero.contains("workload.iozone"), "{zero}");
    assert!(std::fs::read_to_string(d.path().join("s.svg")).unwrap().starts_with("<svg"));
    d.bad(&format!("{asked} --figure rewrite/nobody"), 2);
    d.bad(&format!("{asked} --figure rewrite"), 2);
    let unknown = d.bad(&format!("{asked} --figure rewrit/external"), 2);
    assert!(unknown.contains("test 'rewrit' is unknown"), "{unknown}");
    let not_run = d.bad(&format!("{asked} --figure pwritev/external"), 2);
    assert!(not_run.contains("that test is not run"), "{not_run}");
    d.bad("lab sensitivity tiny.toml --size huge", 2);
    d.bad("lab sensitivity data-at-risk", 2);
    assert!(d.good("lab drives").contains("ST9146853SS"));
}

#[test]
fn a_card_without_a_battery_is_refused_as_a_journal() {
    let d = Desk::new();
    let text = TINY.replace("journal = \"card\"", "journal = \"dead-card\"");
    std::fs::write(d.path().join("dead.toml"), text).unwrap();
    let text = d.bad("lab run dead.toml", 1);
    assert!(text.contains("dead-card") && text.contains("batter"), "{text}");
}

#[test]
fn iozone_runs_the_published_line() {
    let d = Desk::new();
    let line =
        "iozone -M -o -c -e -t3 -T -I -s 1m -r 256k -i0 -i2 -i6 -i8 -i9 -i11 --json out.json";
    let text = d.good(line);
    for label in
        ["3 initial writers", "3 rewriters", "3 random readers", "3 mixed workload", "3 fwriters"]
    {
        assert!(text.contains(label), "{label}\n{text}");
    }
    assert!(text.contains("iozone test complete."));
    assert!(d.path().join("out.json").is_file());
    assert!(!d.path().join("iozone.DUMMY.0").exists());
}

#[test]
fn pages_and_completions_are_generated() {
    let d = Desk::new();
    assert!(d.good("completions bash").contains("steadfast"));
    d.good("man pages");
    assert!(d.path().join("pages/steadfast.1").is_file());
    assert!(d.good("lab list").contains("nvram-journal"));
    assert!(d.good("--help").contains("Examples"));
}

/// Every command's help, as a pipe gets it.
#[test]
fn help_fits_80_columns() {
    let d = Desk::new();
    let mut asked = vec![String::new()];
    let mut wide = Vec::new();
    while let Some(command) = asked.pop() {
        // IOzone has its own options.
        let option = if command == "iozone" { "-h" } else { "--help" };
        let text = d.good(&format!("{command} {option}"));
        let too_wide = text.lines().filter(|line| line.chars().count() > 80);
        wide.extend(too_wide.map(|line| format!("{command}: {line}")));
        let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1);
        let names = listed.take_while(|line| !line.is_empty());
        let names = names
            .filter(|line| !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next().filter(|name| *name != "help"));
        asked.extend(names.map(|name| format!("{command} {name}").trim().to_owned()));
    }
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn extents_say_where_a_file_lies() {
    let d = Desk::new();
    std::fs::write(d.path().join("big"), vec![7u8; 3_000_001]).unwrap();
    d.good("mkfs disk.img --size 32m");
    d.good("put disk.img big /big");
    let table = d.good("extents disk.img /big");
    assert!(table.contains("written") && table.contains("/big: 3000001 bytes in"), "{table}");
    let document: serde_json::Value =
        serde_json::from_str(&d.good("extents --json disk.img /big")).unwrap();
    let extents = document["extents"].as_array().unwrap();
    let bytes: u64 = extents.iter().map(|e| e["len"].as_u64().unwrap()).sum();
    assert!((3_000_001..3_004_097).contains(&bytes), "{bytes}");
    d.bad("extents disk.img /none", 1);
}

/// A refused size is reported with the sizes that can be chosen.
#[test]
fn sizes_that_are_refused_come_with_units_and_limits() {
    let d = Desk::new();
    for (line, says) in [
        ("mkfs x --size 99999999999999g", "at most 16777215t"),
        ("mkfs x --size 12q", "k, m, g or t"),
        ("mkfs x --size 1", "at least 4096 bytes"),
        ("mkfs x --size 8k", "about 60 are needed"),
        ("mkfs x --size 64m -b 100", "from 1024 to 65536"),
        ("mkfs x --size 64m -I 100", "from 128 bytes to a block (1024 bytes)"),
        ("mkfs x --size 64m -m 60", "choose 0 to 50"),
        ("mkfs x --size 64m -i 1", "1024 bytes to 4 MiB"),
        ("mkfs x --size 64m -N 99999999999", "at most 4294967295"),
        ("mkfs x --size 64m -J size=0", "at least 1024 (here 1024 KiB)"),
        ("mkfs x --size 64m -J size=1m", "a whole number of megabytes"),
        ("mkfs x --size 64m -J size=99999999999", "at most 4194303 megabytes"),
        ("mkfs -O journal_dev x --size 64k", "at least 1024 (here 4096 KiB)"),
        ("crash run --size 1 -- true", "from 1m to 64g"),
        ("crash run --size 65g -- true", "--size 65g: choose from 1m to 64g"),
    ] {
        let said = d.bad(line, 2);
        assert!(said.contains(says), "{line}: {said}");
    }
}

#[test]
fn a_misspelt_command_is_named() {
    let d = Desk::new();
    let text = d.bad("chek a.img", 2);
    assert!(text.contains("unrecognized subcommand") && text.contains("'check'"), "{text}");
}

#[test]
fn a_journal_has_the_size_asked_for() {
    let d = Desk::new();
    let said = d.good("mkfs j --size 64m -J size=8");
    assert!(said.contains("blocks of 1024 bytes") && said.contains("8192 blocks"), "{said}");
    let out = Command::new("dumpe2fs").args(["-h", "j"]).current_dir(d.path()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(
        said.lines().any(|l| l.starts_with("Total journal size:") && l.ends_with(" 8M")),
        "{said}"
    );
}
