//! `steadfast dd` beside the installed dd, `steadfast hdparm` beside the installed hdparm, and
//! both on images and stacks.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tempfile::TempDir;

/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(600);

const STEADFAST: &str = env!("CARGO_BIN_EXE_steadfast");

/// Command lines of dd, right and wrong, a line each.
const LINES: &str = include_str!("dd/lines.txt");

fn files(folder: &Path) {
    let pattern: Vec<u8> = (0..70_000_u32).map(|i| (i * 7 + i / 256) as u8).collect();
    let write = |name: &str, data: &[u8]| std::fs::write(folder.join(name), data).unwrap();
    write("in", &pattern);
    write("text", b"Hello World\nsecond line which is long\n\nThird\n");
    write("old", &[b'x'; 5000]);
    write("zeros", &[0; 200_000]);
    std::fs::create_dir(folder.join("dir")).unwrap();
    std::os::unix::fs::symlink("in", folder.join("link")).unwrap();
}

fn run(program: &[&str], line: &str, folder: &Path) -> Output {
    let mut child = Command::new(program[0])
        .args(&program[1..])
        .args(line.split(' '))
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Who does not read its standard input may be gone.
    let _ = stdin.write_all(b"0123456789abcdefghijklmnopqrstuvwxyz\n");
    drop(stdin);
    steadfast_suite::output_of(LIMIT, child).unwrap()
}

/// Runs a program without input; a panic if it does not end.
fn output(command: &mut Command) -> Output {
    steadfast_suite::output(LIMIT, command).unwrap()
}

/// Without the time and the rate, and without the program's own name.
fn masked(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).replace("steadfast dd --help", "dd --help");
    let line = |line: &str| match line.split_once(" copied, ") {
        Some((bytes, time)) => {
            assert!(time.contains(" s, ") && time.ends_with("B/s"), "{line}");
            format!("{bytes} copied")
        }
        None => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Bytes and mode of each file, and whether it takes any room.
type Files = BTreeMap<String, (Vec<u8>, u32, bool)>;

fn left(folder: &Path) -> Files {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let regular = entries.filter(|e| e.metadata().unwrap().is_file());
    let of = |e: std::fs::DirEntry| {
        let meta = e.metadata().unwrap();
        let data = std::fs::read(e.path()).unwrap();
        let name = e.file_name().to_string_lossy().into_owned();
        (name, (data, meta.permissions().mode(), meta.blocks() > 0))
    };
    regular.map(of).collect()
}

fn in_fresh_folder(program: &[&str], line: &str) -> (Output, Files) {
    let folder = TempDir::new().unwrap();
    files(folder.path());
    let out = run(program, line, folder.path());
    let left = left(folder.path());
    (out, left)
}

/// Texts and exit statuses are those of coreutils 9.1.
fn dd_is_9_1() -> bool {
    let version = steadfast_suite::output(LIMIT, Command::new("dd").arg("--version"));
    version.is_ok_and(|v| v.stdout.starts_with(b"dd (coreutils) 9.1\n"))
}

#[test]
fn every_line_does_what_the_installed_dd_does() {
    if !dd_is_9_1() {
        println!("SKIPPED: the installed dd is not coreutils 9.1");
        return;
    }
    assert!(LINES.lines().count() > 140);
    let differs = |line: &str| {
        let (theirs, their_files) = in_fresh_folder(&["dd"], line);
        let (ours, our_files) = in_fresh_folder(&[STEADFAST, "dd"], line);
        let same = theirs.status.code() == ours.status.code()
            && theirs.stdout == ours.stdout
            && masked(&theirs.stderr) == masked(&ours.stderr)
            && their_files == our_files;
        let text = |o: &Output| format!("{:?} {}", o.status.code(), masked(&o.stderr));
        (!same).then(|| format!("{line}\ndd: {}\nours: {}", text(&theirs), text(&ours)))
    };
    let wrong: Vec<String> = LINES.lines().filter_map(differs).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn messages_are_as_the_locale_has_them() {
    if !dd_is_9_1() {
        println!("SKIPPED: the installed dd is not coreutils 9.1");
        return;
    }
    let words: [&[u8]; 7] = [
        b"x=1",
        "conv=\u{e9}'\u{2019}".as_bytes(),
        b"count=1\xff",
        b"count=1\r",
        b"bs=0x1",
        b"if=/none\xff",
        b"if=/none\n",
    ];
    for locale in ["C", "C.UTF-8"] {
        for word in words.map(OsStr::from_bytes) {
            let said = |program: &mut Command| {
                masked(&output(program.arg(word).env("LC_ALL", locale)).stderr)
            };
            let ours = said(Command::new(STEADFAST).arg("dd"));
            assert_eq!(ours, said(&mut Command::new("dd")), "{locale}: {word:?}");
        }
    }
    for word in ["--version", "--vers", "--v"] {
        let version = output(Command::new(STEADFAST).args(["dd", word]));
        assert!(version.status.success() && version.stdout.starts_with(b"steadfast-dd "), "{word}");
    }
}

/// Runs a line that must succeed; its standard error, without times.
fn good(folder: &Path, line: &[&str]) -> String {
    let out = output(Command::new(STEADFAST).args(line).current_dir(folder));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{line:?}: {text}");
    text
}

/// Published lines with their counts, and what dd says of these at the end. Without
/// `STEADFAST_SOAK` the counts are divided by this: 6 GiB are much for a test.
const PUBLISHED: [(&str, u64, u64, &str); 2] = [
    (
        "if=/dev/zero of=test.dat oflag=direct bs=4k count=",
        1_048_576,
        4096,
        "4294967296 bytes (4.3 GB, 4.0 GiB)",
    ),
    (
        "if=/dev/zero of=largefile bs=16384 count=",
        131_072,
        1024,
        "2147483648 bytes (2.1 GB, 2.0 GiB)",
    ),
];

#[test]
fn the_published_lines_end_as_published() {
    let folder = TempDir::new().unwrap();
    for (line, count, part, amount) in PUBLISHED {
        let (count, bytes) = match std::env::var_os("STEADFAST_SOAK") {
            Some(_) => (count, amount),
            None => (count / part, ""),
        };
        let line = format!("{line}{count}");
        let words: Vec<&str> = std::iter::once("dd").chain(line.split(' ')).collect();
        let text = good(folder.path(), &words);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(&*format!("{count}+0 records in")));
        assert_eq!(lines.next(), Some(&*format!("{count}+0 records out")));
        let last = lines.next().unwrap();
        assert!(last.starts_with(bytes) && last.contains(" copied, "), "{text}");
        // As dd itself says it, of as much.
        let theirs = run(&["dd"], &line.replace("of=", "of=dd-"), folder.path());
        let theirs = String::from_utf8_lossy(&theirs.stderr).into_owned();
        assert_eq!(masked(text.as_bytes()), masked(theirs.as_bytes()));
        for name in ["test.dat", "largefile", "dd-test.dat", "dd-largefile"] {
            let _ = std::fs::remove_file(folder.path().join(name));
        }
    }
    // bs=512 until the volume is full.
    good(folder.path(), &["mkfs", "-q", "disk.img", "--size", "4m"]);
    let line = ["dd", "--image", "disk.img", "if=/dev/zero", "of=/testfile", "bs=512"];
    let out = output(Command::new(STEADFAST).args(line).current_dir(folder.path()));
    assert_eq!(out.status.code(), Some(1));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "dd: error writing '/testfile': No space left on device");
    let records: u64 = lines[2].split('+').next().unwrap().parse().unwrap();
    assert_eq!(lines[1], format!("{}+0 records in", records + 1));
    assert_eq!(lines[2], format!("{records}+0 records out"));
    assert!(lines[3].starts_with(&format!("{} bytes (", records * 512)), "{text}");
    let mut fsck = Command::new("e2fsck");
    let fsck = output(fsck.args(["-fn", "disk.img"]).current_dir(folder.path()));
    assert!(fsck.status.success());
}

#[test]
fn files_of_images_are_read_and_written() {
    let folder = TempDir::new().unwrap();
    files(folder.path());
    good(folder.path(), &["mkfs", "-q", "disk.img", "--size", "16m"]);
    let dd = |line: &str| {
        let words = ["dd", "--image", "disk.img"].into_iter().chain(line.split(' '));
        good(folder.path(), &words.collect::<Vec<_>>())
    };
    dd("if=host:in of=/a bs=4k oflag=direct conv=fsync");
    dd("if=/a of=/b bs=1000 skip=2 seek=3 iflag=fullblock");
    dd("if=/b of=host:back bs=1M iflag=noatime");
    dd("if=host:zeros of=/sparse bs=4k conv=sparse");
    let original = std::fs::read(folder.path().join("in")).unwrap();
    let mut expected = vec![0; 3000];
    expected.extend_from_slice(&original[2000..]);
    assert!(std::fs::read(folder.path().join("back")).unwrap() == expected);
    let mut extents = Command::new(STEADFAST);
    extents.args(["extents", "--json", "disk.img", "/sparse"]).current_dir(folder.path());
    let extents = output(&mut extents);
    assert!(String::from_utf8_lossy(&extents.stdout).contains("\"extents\": []"));
}

/// Feeds a program blocks of 64 KiB: `at_once` of them as fast as it takes them, then a few more
/// now and then until it is gone, or none, and the pipe stays open. How many it has taken so far.
fn fed(mut stdin: std::process::ChildStdin, at_once: u64, goes_on: bool) -> Arc<AtomicU64> {
    let taken = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&taken);
    std::thread::spawn(move || {
        let block = [7; 1 << 16];
        loop {
            let n = counter.load(Ordering::Relaxed);
            if n >= at_once {
                std::thread::sleep(Duration::from_millis(2));
            }
            // Never so many that the image is full before the signal comes, however late it is.
            if n < at_once || goes_on && n < at_once + 800 {
                if stdin.write_all(&block).is_err() {
                    return;
                }
                counter.store(n + 1, Ordering::Relaxed);
            }
        }
    });
    taken
}

/// What an interrupted copy says that it has copied is in the image, whether it was copying, had
/// much to write, or waited for its input.
#[test]
fn an_interrupted_copy_leaves_what_it_reports() {
    for (signal, number, blocks, goes_on) in
        [("INT", 2, 40, true), ("INT", 2, 2000, true), ("TERM", 15, 40, true), ("INT", 2, 9, false)]
    {
        let folder = tempfile::tempdir().unwrap();
        good(folder.path(), &["mkfs", "a.img", "--size", "256m", "-q"]);
        // Who ignores a signal hands that on, and a shell has what it starts with & ignore INT.
        let mut child = Command::new("env")
            .args(["--default-signal=INT,TERM", STEADFAST])
            .args("dd --image a.img of=/file bs=64k iflag=fullblock".split(' '))
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let taken = fed(child.stdin.take().unwrap(), blocks, goes_on);
        // The pipe holds one block.
        while taken.load(Ordering::Relaxed) < blocks {
            assert!(child.try_wait().unwrap().is_none(), "it has ended by itself");
            std::thread::sleep(Duration::from_millis(2));
        }
        let id = child.id().to_string();
        assert!(output(Command::new("kill").args(["-s", signal, &id])).status.success());
        let out = steadfast_suite::output_of(LIMIT, child).unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.signal(), Some(number), "{said}");
        let lines: Vec<&str> = said.lines().filter(|l| l.contains(" copied")).collect();
        let [line] = lines[..] else { panic!("it is printed once: {said}") };
        let bytes: u64 = line.split(' ').next().unwrap().parse().unwrap();
        assert!(bytes >= (blocks - 2) << 16, "{said}");
        let run = |words: &[&str]| output(Command::new(STEADFAST).args(words).current_dir(&folder));
        // A block that was on its way when the counts were printed may be there too.
        let left = run(&["cat", "a.img", "/file"]).stdout.len() as u64;
        assert!(left >= bytes && left - bytes <= 1 << 16, "{left}: {said}");
        assert!(run(&["check", "a.img"]).status.success());
    }
}

#[test]
fn the_image_in_use_is_no_file_to_copy_to() {
    let folder = tempfile::tempdir().unwrap();
    good(folder.path(), &["mkfs", "a.img", "--size", "16m", "-q"]);
    std::os::unix::fs::symlink("a.img", folder.path().join("link")).unwrap();
    let before = std::fs::read(folder.path().join("a.img")).unwrap();
    for line in ["if=/lost+found of=host:link conv=notrunc", "if=host:a.img of=/copy"] {
        let line = format!("dd --image a.img {line}");
        let out = run(&[STEADFAST], &line, folder.path());
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(2) && said.contains("is the image"), "{said}");
    }
    assert!(before == std::fs::read(folder.path().join("a.img")).unwrap());
}

#[test]
fn a_stack_gives_the_same_seconds_for_the_same_seed() {
    let folder = TempDir::new().unwrap();
    let run = |line: &str| {
        let words = ["dd", "--stack", "nvram-journal", "--variant", "external"];
        good(folder.path(), &words.into_iter().chain(line.split(' ')).collect::<Vec<_>>())
    };
    let line = "if=/dev/zero of=/file bs=64k count=64 conv=fsync";
    let text = run(line);
    assert!(text.contains("4194304 bytes (4.2 MB, 4.0 MiB) copied, "), "{text}");
    assert_eq!(text, run(line));
    // A disk of 146 GB gives 20 MiB in 50 ms to 5 s, in far less time of ours.
    let text = run("if=device:disk of=/dev/null bs=2M count=10");
    let seconds = text.split(" copied, ").nth(1).unwrap().split(' ').next().unwrap();
    let seconds: f64 = seconds.parse().unwrap();
    assert!((0.05..5.0).contains(&seconds), "{text}");
}

/// Digits as 9, runs of blanks and digits as one: what is left is the form.
fn form(text: &str) -> String {
    let mut form = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '9' } else { c };
        if !(c == '9' && form.ends_with('9')) {
            form.push(c);
        }
    }
    form.replace(": 9", ":9").replace(":  9", ":9").replace(":   9", ":9").replace("in  9", "in 9")
}

#[test]
fn hdparm_prints_the_published_form() {
    let folder = TempDir::new().unwrap();
    let run = |line: &str| {
        let mut hdparm = Command::new(STEADFAST);
        hdparm.arg("hdparm").args(line.split(' ')).current_dir(folder.path());
        let out = output(&mut hdparm);
        assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let text = run("-Tt --stack nvram-journal card");
    assert_eq!(text, run("-Tt --stack nvram-journal card"));
    // As printed on a real loop device by hdparm 9.65.
    let theirs = "\n/dev/loop0:\n \
                  Timing cached reads:   17574 MB in  2.00 seconds = 8805.52 MB/sec\n \
                  Timing buffered disk reads: 1010 MB in  3.00 seconds = 336.37 MB/sec\n";
    assert_eq!(form(&text).replace("card", "/dev/loop9"), form(theirs), "{text}");
    assert!(text.contains(" 256 MB in "), "{text}");
    let text = run("-Tt --direct --stack nvram-journal card");
    assert!(text.contains(" Timing O_DIRECT cached reads:   "), "{text}");
    std::fs::write(folder.path().join("file"), vec![7; 5 << 20]).unwrap();
    let text = run("-t file");
    assert!(text.starts_with("\nfile:\n Timing buffered disk reads:   4 MB in  "), "{text}");
    let refused = output(Command::new(STEADFAST).args(["hdparm", "-W", "file"]));
    assert_eq!(refused.status.code(), Some(2));
}

/// A copy and a benchmark take as long by themselves as in a run of the scenario: the machine of
/// the variant, and what each record costs it, are the same; also as a setup, without a scenario.
#[test]
fn a_stack_is_the_same_by_itself_and_in_a_run_of_its_scenario() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("s.toml"), include_str!("dd/one_stack.toml")).unwrap();
    std::fs::write(folder.path().join("setup.toml"), include_str!("dd/setup.toml")).unwrap();
    let run = |line: &str| {
        let mut command = Command::new(STEADFAST);
        let out = output(command.args(line.split(' ')).current_dir(folder.path()));
        assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
        [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let json = |text: &str| -> serde_json::Value { serde_json::from_str(text).unwrap() };
    let results = json(&run("lab run s.toml --cuts 0 --json -")[0]);
    let list = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let measured = list(&results["runs"][0]["measurements"]);
    let of_kind = |kind: &'static str| measured.iter().filter(move |row| row["kind"] == kind);
    let copies: Vec<_> = of_kind("dd").collect();
    assert_eq!(copies.len(), 2);
    for copy in copies {
        let operands = match copy["test"].as_str().unwrap() {
            "the disk" => "if=device:@disk of=/dev/null bs=512 count=2000",
            _ => "if=/dev/zero of=/file bs=512 count=2000",
        };
        for file in ["s.toml", "setup.toml"] {
            let [_, said] = run(&format!("dd --stack {file} {operands}"));
            let seconds = said.split(" copied, ").nth(1).unwrap().split(' ').next().unwrap();
            let (seconds, of_run): (f64, f64) =
                (seconds.parse().unwrap(), copy["seconds"].as_f64().unwrap());
            // It prints six digits.
            assert!((seconds / of_run - 1.0).abs() < 1e-5, "{operands}: {seconds} s, {of_run} s");
        }
    }
    let rows = of_kind("speed").filter(|row| row["latency_us"].is_object());
    let rows: Vec<f64> = rows.map(|row| row["children_kb_per_s"].as_f64().unwrap()).collect();
    assert_eq!(rows.len(), 4);
    for file in ["s.toml", "setup.toml"] {
        let line = format!("iozone --stack {file} -t 3 -s 2m -r 64k -i 0 -i 1 --settle 0 --json -");
        let own = list(&json(&run(&line)[0])["runs"][0]["tests"]);
        let own: Vec<f64> = own.iter().map(|t| t["children_see"].as_f64().unwrap()).collect();
        assert_eq!(own, rows);
    }
}

/// A setup is timed and checked, has nothing to run and no variants, and its mistakes are shown.
#[test]
fn a_setup_is_a_stack_and_no_scenario() {
    let folder = TempDir::new().unwrap();
    let setup = include_str!("dd/setup.toml");
    std::fs::write(folder.path().join("setup.toml"), setup).unwrap();
    let wrong = setup.replace("\"disk\"\nmount", "\"dsk\"\nmount").replace("data=", "date=");
    std::fs::write(folder.path().join("wrong.toml"), wrong).unwrap();
    let run = |line: &str, status: i32| {
        let mut command = Command::new(STEADFAST);
        let out = output(command.args(line.split(' ')).current_dir(folder.path()));
        let said = [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        assert_eq!(out.status.code(), Some(status), "{line}: {said}");
        said
    };
    assert!(run("hdparm -t --stack setup.toml disk", 0).contains("buffered disk reads"));
    assert_eq!(run("lab check setup.toml", 0), "setup.toml: good: a setup, 1 devices\n");
    assert!(run("lab check --json setup.toml", 0).contains("\"setup\": \"setup.toml\""));
    let said = run("lab run setup.toml", 2);
    assert!(said.contains("setup.toml is a setup, without a [workload] to run"), "{said}");
    let said = run("dd --stack setup.toml --variant small if=/dev/zero of=/f count=1", 2);
    assert!(said.contains("setup.toml is a setup: it has no variants"), "{said}");
    for line in ["lab check wrong.toml", "dd --stack wrong.toml if=/dev/zero of=/f count=1"] {
        let said = run(line, 2);
        let mistakes = [
            "2 mistakes",
            "there is no [device.dsk]",
            "wrong.toml:14:8",
            "did you mean `disk`?",
            "date=ordered",
            "wrong.toml:15:10",
        ];
        assert!(mistakes.iter().all(|mistake| said.contains(mistake)), "{line}: {said}");
    }
}
