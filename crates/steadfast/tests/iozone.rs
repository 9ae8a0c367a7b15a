//! `steadfast iozone` in a folder of this machine, in an image and on a stack.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(600);

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

/// Command lines of every kind, small: each ends well and leaves no file behind.
const LINES: [&str; 22] = [
    "-Raze -+w 1 -q 64k -g 128k",
    "-Raz -+w 1 -q 64k -g 128k",
    "-A -n 64k -g 128k",
    "-s 64k -s 128k -r 4k -r 16k -i 0 -i 1",
    "-a -y 8k -q 32k -n 64k -g 64k -i 0",
    "-a -+x 4 -n 64k -g 1m -i 0",
    "-E -N -s 128k -r 32k",
    "-O -s 128k -r 32k -i 0 -i 2 -i 5",
    "-B -s 256k -r 64k",
    "-D -s 256k -r 64k -i 0 -i 1",
    "-B -G -Z -s 256k -r 64k",
    "-H 8 -s 512k -r 64k",
    "-k 8 -s 512k -r 64k -i 0 -i 1",
    "-V 85 -s 128k -r 64k -i 0 -i 1",
    "-+d -W -K -s 128k -r 64k",
    "-J 1 -s 128k -r 64k -i 0 -i 1",
    "-+u -R -s 128k -r 64k -i 0 -i 1",
    "-o -e -c -j 3 -s 128k -r 64k -i 0 -i 5 -i 11 -i 12",
    "-P 0 -s 128k -i 0",
    "--drop-caches --repeat 2 -s 128k -r 64k -i 0 -i 1",
    "-+u -R -t 2 -s 128k -r 64k -i 0 --settle 0",
    "-V 7 -t 2 -s 128k -r 64k -i 0 -i 1 --settle 0",
];

#[test]
fn twenty_lines_run_on_this_machine() {
    let folder = TempDir::new().unwrap();
    for line in LINES {
        let text = good(folder.path(), &format!("iozone {line}"));
        assert!(text.contains("\niozone test complete.\n"), "{line}: {text}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line}");
    }
}

/// Two runs in virtual time, whose figures are the same every time: one file at a time, and three
/// children.
const SCREENS: [(&str, &str); 2] = [
    ("matrix", "-a -n 64k -g 256k -i 0 -i 1 -i 2 -o"),
    ("runs", "-t 1 -t 3 -s 256k -r 64k -i 0 -i 1 -i 2 -o -I --settle 0"),
];

/// A terminal gets the answer in its 24 lines of 80 columns; a pipe, and --wide, IOzone's layout.
#[test]
fn a_terminal_gets_the_answer() {
    let folder = TempDir::new().unwrap();
    let on_terminal = |line: &str| {
        // `script` is the terminal.
        let program = env!("CARGO_BIN_EXE_steadfast");
        let mut command = Command::new("script");
        let line = format!("{program} {line} 2> /dev/null");
        command.args(["-qec", &line, "/dev/null"]).current_dir(folder.path());
        let out = steadfast_suite::output(LIMIT, &mut command).unwrap();
        assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stdout));
        String::from_utf8(out.stdout).unwrap().replace('\r', "")
    };
    for (name, options) in SCREENS {
        let line = format!("iozone --stack nvram-journal --variant external {options}");
        let screen = on_terminal(&line);
        let fits = |line: &str| line.chars().count() <= 80;
        assert!(screen.lines().count() <= 24 && screen.lines().all(fits), "{screen}");
        let kept = Path::new("tests/iozone").join(format!("{name}.txt"));
        snapbox::assert_data_eq!(screen, snapbox::Data::read_from(&kept, None).raw());
        for other in [on_terminal(&format!("{line} --wide")), good(folder.path(), &line)] {
            assert!(other.contains("\niozone test complete.\n"), "{other}");
        }
    }
}

/// By another reader of such files than ours: xlrd, which has read them for twenty years.
#[test]
fn a_spreadsheet_is_read_by_others() {
    let folder = TempDir::new().unwrap();
    let text = good(folder.path(), "iozone -a -b out.xls -n 64k -g 128k -i 0 -i 1");
    assert!(text.contains("\n\"Re-Reader report\"\n"), "{text}");
    let script = "import json, sys, xlrd
sheet = xlrd.open_workbook(sys.argv[1], logfile=sys.stderr).sheet_by_index(0)
print(json.dumps([sheet.row_values(row) for row in range(sheet.nrows)]))";
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", script, "out.xls"]).current_dir(folder.path());
    let read = steadfast_suite::output(LIMIT, &mut python);
    let Some(read) = read.ok().filter(|read| read.status.success()) else {
        println!("SKIPPED: no xlrd");
        return;
    };
    let rows: Vec<Vec<serde_json::Value>> = serde_json::from_slice(&read.stdout).unwrap();
    let at = rows.iter().position(|row| row[0] == "Writer report").unwrap();
    let sizes: Vec<f64> = rows[at + 1][1..7].iter().map(|size| size.as_f64().unwrap()).collect();
    assert_eq!(sizes, [4.0, 8.0, 16.0, 32.0, 64.0, 128.0], "{rows:?}");
    for (row, file) in rows[at + 2..at + 4].iter().zip([64.0, 128.0]) {
        assert_eq!(row[0], file, "{rows:?}");
        assert!(row[1].as_f64().unwrap() > 0.0, "{rows:?}");
    }
    // As many as are printed.
    let printed = text.lines().filter(|line| line.starts_with("\"128\"")).count();
    assert_eq!(rows.iter().filter(|row| row[0] == 128.0).count(), printed, "{text}\n{rows:?}");
}

#[test]
fn a_run_that_was_broken_off_goes_on() {
    let folder = TempDir::new().unwrap();
    let line = "iozone -a -g 64k -i 0 --resume cells --json out.json";
    let first = good(folder.path(), line);
    let kept = folder.path().join("cells");
    let text = std::fs::read_to_string(&kept).unwrap();
    assert_eq!(text.lines().count(), 6);
    // As if the power had gone in the middle of the third cell's line.
    let third = text.match_indices('\n').nth(2).unwrap().0 + 20;
    std::fs::write(&kept, &text[..third]).unwrap();
    let second = good(folder.path(), line);
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|l| l.starts_with("              64"));
        rows.map(str::to_owned).collect()
    };
    assert_eq!(rows(&first)[..2], rows(&second)[..2]);
    assert_eq!(
        (rows(&second).len(), std::fs::read_to_string(&kept).unwrap().lines().count()),
        (5, 6)
    );
    let json = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
    assert!(json.contains("\"p99_ns\"") && json.contains("\"only_the_cache\": true"));
    let other = run(folder.path(), "iozone -a -g 64k -i 1 --resume cells");
    assert_eq!(other.status.code(), Some(2));
}

/// Minutes are not lost to a misspelt path.
#[test]
fn outputs_are_tried_before_the_run() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("wol.dat")).unwrap();
    good(folder.path(), "mkfs -q disk.img --size 16m");
    let image = std::fs::read(folder.path().join("disk.img")).unwrap();
    for (words, what) in [
        ("-a -b wol.dat", "-b: cannot write wol.dat"),
        ("-t 2 --json no/such/place", "--json: cannot write no/such/place"),
        ("-Q -s 64k", "-Q: cannot write wol.dat"),
        ("-a -b same --json same", "name the same file"),
        ("-a --resume wol.dat", "--resume wol.dat: Is a directory"),
        ("-a --resume /dev/null", "--resume /dev/null: is not a regular file"),
        ("-a -f wol.dat", "wol.dat: is a folder; name a file in it"),
        ("--image disk.img -a --json disk.img", "that file is read"),
    ] {
        let refused = run(folder.path(), &format!("iozone {words}"));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(what), "{words}: {said}");
        assert_eq!(String::from_utf8_lossy(&refused.stdout), "", "{words}");
    }
    assert!(std::fs::read(folder.path().join("disk.img")).unwrap() == image);
    // One that cannot be written in the end takes nothing from the others.
    let failed = run(folder.path(), "iozone -a -g 64k -i 0 -b sheet --json /dev/full");
    assert_eq!(failed.status.code(), Some(1));
    assert!(std::fs::metadata(folder.path().join("sheet")).unwrap().len() > 0);
}

#[test]
fn latency_files_and_telemetry() {
    let folder = TempDir::new().unwrap();
    good(folder.path(), "iozone -Q -s 256k -r 64k -i 0 -i 1");
    let text = std::fs::read_to_string(folder.path().join("rol.dat")).unwrap();
    assert_eq!(text.lines().count(), 5);
    assert!(text.lines().nth(2).unwrap().trim_start().starts_with("64 "), "{text}");
    std::fs::write(folder.path().join("w"), "0 65536 0\n131072 4096 2\n").unwrap();
    let json = good(folder.path(), "iozone -X w -s 256k -r 64k -i 0 -+n --json -");
    assert!(json.contains("\"bytes\": 69632"), "{json}");
    std::fs::write(folder.path().join("w"), "0 65536\n").unwrap();
    let wrong = run(folder.path(), "iozone -X w -s 256k -r 64k -i 0");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("line 1"));
}

#[test]
fn images_and_stacks_have_it_too() {
    let folder = TempDir::new().unwrap();
    good(folder.path(), "mkfs -q disk.img --size 16m");
    let text = good(folder.path(), "iozone --image disk.img -Re -s 1m -r 64k");
    assert!(text.contains("\n            1024      64"), "{text}");
    let stack = "iozone --stack nvram-journal --variant external -e -s 1m -r 64k --json -";
    let figures = |text: &str| text.split("\"cells\"").nth(1).map(str::to_owned);
    let (a, b) = (good(folder.path(), stack), good(folder.path(), stack));
    assert!(figures(&a).is_some() && figures(&a) == figures(&b));
    for (line, what) in [
        ("iozone --image disk.img -B -s 64k -r 4k -i 0", "no mappings"),
        ("iozone --stack nvram-journal --variant external -+u -R -s 64k", "-+u"),
        ("iozone --image disk.img --drop-caches -s 64k -r 4k -i 0 -i 1", "--drop-caches"),
    ] {
        let refused = run(folder.path(), line);
        assert!(!refused.status.success(), "{line}");
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(text.contains(what), "{line}: {text}");
    }
}
