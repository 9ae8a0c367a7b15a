//! `steadfast fio` in a folder of this machine, in an image and on a stack.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(300);

fn run(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    command.args(line.split_whitespace()).current_dir(folder);
    steadfast_suite::output(LIMIT, &mut command).unwrap()
}

fn good(folder: &Path, line: &str) -> String {
    let out = run(folder, line);
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// What a bad line says on the standard error.
fn bad(folder: &Path, line: &str, status: i32) -> String {
    let out = run(folder, line);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(status), "{line}: {said}");
    said
}

fn folder(job: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("a.fio"), job).unwrap();
    folder
}

const JOB: &str = "[global]\nsize=256k\nioengine=psync\n[w]\nrw=randwrite\nfsync=8\n[r]\n\
                   stonewall\nrw=randread\n";

#[test]
fn a_job_runs_here_in_an_image_and_on_a_stack() {
    let d = folder(JOB);
    let text = good(d.path(), "fio a.fio");
    assert!(text.contains("\nw: (groupid=0, jobs=1): err= 0: "), "{text}");
    assert_eq!(d.path().join("w.0.0").metadata().unwrap().len(), 256 << 10);
    good(d.path(), "mkfs disk.img --size 16m");
    good(d.path(), "fio a.fio --image disk.img");
    let listed = good(d.path(), "ls disk.img /");
    assert!(listed.contains("w.0.0") && listed.contains("r.0.0"), "{listed}");
    good(d.path(), "check disk.img");
    let on_stack = "fio a.fio --stack nvram-journal --variant internal --output-format json";
    let first = good(d.path(), on_stack);
    assert_eq!(first, good(d.path(), on_stack), "virtual time is the same each time");
    let document: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(document["jobs"][1]["read"]["total_ios"], 64);
    good(d.path(), "fio a.fio --folder . --section r --output-format terse --output out");
    let out = std::fs::read_to_string(d.path().join("out")).unwrap();
    assert!(out.starts_with("3;fio-3.33") && out.lines().count() == 1, "{out}");
}

/// The keys of our JSON and the fields of our terse line are those that the fio of this machine
/// writes of the same job.
#[test]
fn readers_of_fios_output_read_ours() {
    let d = folder(JOB);
    let fio = |form: &str| {
        let mut command = Command::new("fio");
        let form = format!("--output-format={form}");
        command.args([form.as_str(), "a.fio"]).current_dir(d.path());
        String::from_utf8(steadfast_suite::output(LIMIT, &mut command).unwrap().stdout).unwrap()
    };
    let keys = |text: &str| {
        let script = "import json, sys\n\
            def tree(v, at=''):\n\
            \x20   if isinstance(v, dict):\n\
            \x20       for k in v: tree(v[k], at + '/' + k)\n\
            \x20   elif isinstance(v, list):\n\
            \x20       for w in v: tree(w, at + '/[]')\n\
            \x20   elif 'disk_util' not in at and 'options' not in at: print(at)\n\
            tree(json.load(open(sys.argv[1])))";
        std::fs::write(d.path().join("out.json"), text).unwrap();
        let mut command = Command::new("python3");
        command.args(["-c", script, "out.json"]).current_dir(d.path());
        let out = steadfast_suite::output(LIMIT, &mut command).unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    let theirs = keys(&fio("json"));
    let ours = keys(&good(d.path(), "fio a.fio --output-format json"));
    let missing: Vec<_> = theirs.difference(&ours).collect();
    assert_eq!(missing, Vec::<&String>::new());
    // Fields of disks stand at the end, where fio knows the disk: nine each.
    let fields = |text: &str| text.lines().map(|line| line.split(';').count() % 9).max();
    let ours = good(d.path(), "fio a.fio --output-format terse");
    assert_eq!(fields(&ours), fields(&fio("terse")));
    assert!(ours.lines().all(|line| line.split(';').count() == 121));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let d = TempDir::new().unwrap();
    let said = |job: &str, more: &str, status: i32| {
        std::fs::write(d.path().join("a.fio"), job).unwrap();
        bad(d.path(), &format!("fio a.fio {more}"), status)
    };
    let both = said("[a]\nsize=1m\nfoo=1\nquux=2\n", "", 3);
    assert!(both.contains("a.fio:3: option 'foo' of fio is not supported\n"), "{both}");
    assert!(both.contains("a.fio:4: option 'quux' of fio is not supported\n"), "{both}");
    for (job, more, status, what) in [
        ("[a]\nsize=1m\nrww=read\n", "", 2, "a.fio:3: option 'rww' is unknown: did you mean rw?"),
        ("[a]\nsize=1m\nbs=0\n", "", 2, "a.fio:3: option 'bs': a request of 0 bytes"),
        ("[a]\nsize=1m\nfilename=/dev/sda\n", "", 2, "is outside of the folder"),
        ("[a]\nsize=1m\nfilename=../x\n", "--folder .", 2, "may lead out of the folder"),
        ("[a]\nsize=900t\nrw=write\n", "", 2, "are free"),
        ("[a]\nsize=1m\n", "--section b", 2, "there is no section 'b'"),
        ("[a]\nsize=1m\n", "--folder none", 2, "--folder none: no such file"),
        ("size=1m\n", "", 2, "a.fio:1: it stands before the first section"),
        ("", "", 2, "there is no job"),
        ("[a]\nsize=1m\nfilename=d\n", "", 1, "it is no regular file"),
    ] {
        std::fs::create_dir_all(d.path().join("d")).unwrap();
        let text = said(job, more, status);
        assert!(text.contains(what), "{job}: {text}");
    }
    assert!(bad(d.path(), "fio none.fio", 2).contains("none.fio"));
    assert!(bad(d.path(), "fio --cmdhelp flow", 2).contains("not supported"));
    assert!(!d.path().join("a.0.0").exists(), "nothing was made");
    let bytes = [b"[a]\nsize=1m\n".as_slice(), &[0xff, 0xfe]].concat();
    std::fs::write(d.path().join("a.fio"), bytes).unwrap();
    assert!(bad(d.path(), "fio a.fio", 2).contains("no text in UTF-8"));
}

#[test]
fn wrong_data_ends_with_status_1() {
    let job = "[v]\nfilename=f\nsize=64k\nverify=crc32c\nrw=";
    let d = folder(&format!("{job}write\n"));
    good(d.path(), "fio a.fio");
    let mut bytes = std::fs::read(d.path().join("f")).unwrap();
    bytes[20_000] ^= 1;
    std::fs::write(d.path().join("f"), bytes).unwrap();
    std::fs::write(d.path().join("a.fio"), format!("{job}read\n")).unwrap();
    let said = bad(d.path(), "fio a.fio", 1);
    assert!(said.contains("verify: wrong data in f at 19968: "), "{said}");
}

/// What the fio of this machine writes of a job file of the folder.
fn of_fio(folder: &Path, job: &str) -> Value {
    let mut command = Command::new("fio");
    command.args(["--output-format=json", job]).current_dir(folder);
    let out = steadfast_suite::output(LIMIT, &mut command).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Requests and bytes of the reads and writes of a run's only job, and how long it ran in ms.
fn counts(document: &Value) -> ([u64; 4], u64) {
    let job = &document["jobs"][0];
    assert_eq!((document["jobs"].as_array().unwrap().len(), &job["error"]), (1, &Value::from(0)));
    let of = |kind: &str, what: &str| job[kind][what].as_u64().unwrap();
    let counts = [
        ("read", "total_ios"),
        ("read", "io_bytes"),
        ("write", "total_ios"),
        ("write", "io_bytes"),
    ];
    (counts.map(|(kind, what)| of(kind, what)), of("write", "runtime"))
}

/// A log of this machine's fio is replayed by us and by fio: the same requests, in a time that the
/// log sets.
#[test]
fn a_log_of_fio_is_replayed_as_fio_does() {
    let writer = "[w]\nrw=randrw\nsize=256k\nbsrange=1k-16k\nnrfiles=3\nfsync=5\nfdatasync=7\n\
                  thinktime=10ms\nthinktime_blocks=2\nwrite_iolog=w.log\n";
    let d = folder(writer);
    let (written, _) = counts(&of_fio(d.path(), "a.fio"));
    let log = std::fs::read_to_string(d.path().join("w.log")).unwrap();
    assert!(log.starts_with("fio version 3 iolog\n"), "{log}");
    // Version 2 is the same without times.
    let without = log.lines().skip(1).map(|line| line.split_once(' ').unwrap().1);
    let two = ["fio version 2 iolog"].into_iter().chain(without).collect::<Vec<_>>().join("\n");
    std::fs::write(d.path().join("2.log"), two + "\n").unwrap();
    let replay = |log: &str, more: &str| {
        std::fs::write(d.path().join("r.fio"), format!("[r]\nread_iolog={log}\n{more}")).unwrap();
        let ours = good(d.path(), "fio r.fio --output-format json");
        [of_fio(d.path(), "r.fio"), serde_json::from_str(&ours).unwrap()].map(|d| counts(&d))
    };
    let [(theirs, their_ms), (ours, our_ms)] = replay("w.log", "");
    assert_eq!((theirs, ours), (written, written));
    let times = log.lines().skip(1).map(|line| line.split(' ').next().unwrap());
    let times: Vec<u64> = times.map(|us| us.parse().unwrap()).collect();
    let log_ms = (times.last().unwrap() - times[0]) / 1000;
    assert!(log_ms > 50 && our_ms >= log_ms - 1, "{our_ms} ms, fio {their_ms}, the log {log_ms}");
    for (log, more) in [("w.log", "replay_no_stall=1\n"), ("2.log", "")] {
        let [(theirs, _), (ours, _)] = replay(log, more);
        assert_eq!((theirs, ours), (written, written), "{log} {more}");
    }
    // Where there are no files, they are made: on a stack, and in an empty folder.
    let on_stack = "fio r.fio --stack nvram-journal --variant internal --output-format json";
    let document = serde_json::from_str(&good(d.path(), on_stack)).unwrap();
    assert_eq!(counts(&document).0, written);
    good(d.path(), "fio r.fio --folder . --output-format terse");
    std::fs::create_dir(d.path().join("empty")).unwrap();
    good(d.path(), "fio r.fio --folder empty");
    assert!(d.path().join("empty/w.0.2").metadata().unwrap().len() > 0);
}

#[test]
fn a_log_that_cannot_be_is_refused_with_its_line() {
    let d = folder("[r]\nread_iolog=l.log\n");
    assert!(bad(d.path(), "fio a.fio", 2).contains("a.fio:2: read_iolog l.log: No such file"));
    for (log, status, what) in [
        ("fio version 4 iolog\n", 2, "l.log:1: a log of version 4"),
        ("fio version 2 iolog\nf add\nf open\nf wri", 2, "l.log:4: `wri`, which is not known"),
        ("fio version 2 iolog\nf add\nf write 0 5\n", 2, "l.log:3: 'f' is not open"),
        ("fio version 2 iolog\nf add\nf open\nf trim 0 5\n", 3, "l.log:4: trims are of block"),
        ("fio version 2 iolog\n/f add\n/f open\n/f write 0 5\n", 2, "l.log:2: '/f' is outside"),
        ("fio version 2 iolog\nf add\nf open\nf write 0 9999999999\n", 2, "l.log:4: a request"),
    ] {
        std::fs::write(d.path().join("l.log"), log).unwrap();
        let said = bad(d.path(), "fio a.fio", status);
        assert!(said.contains(what), "{log}: {said}");
    }
    std::fs::write(d.path().join("l.log"), [0x07, 0x74, 0x61, 0x65, 0, 0xff]).unwrap();
    assert!(bad(d.path(), "fio a.fio", 3).contains("l.log:1: a binary log of blktrace"));
    assert!(!d.path().join("f").exists(), "nothing was made");
}

#[test]
fn options_are_listed() {
    let d = TempDir::new().unwrap();
    let all = good(d.path(), "fio --cmdhelp all");
    assert!(all.contains("\nrwmixread           : ") && all.contains("without effect:\nthread"));
    assert!(good(d.path(), "fio --cmdhelp blocksize").contains("bs: bytes of a request"));
}
