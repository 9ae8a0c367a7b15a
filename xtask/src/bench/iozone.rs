//! `cargo xtask bench iozone`: our IOzone on a folder of this machine, by turns with the program
//! itself where it is there (Debian has it in non-free), and with fio's equivalent jobs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use steadfast_statistics::load::Load;
use steadfast_statistics::median;
use steadfast_statistics::rank::PairedTest;

use super::spread::instead;
use super::{print_machine, table};
use crate::{conformance, packages, step, value};

/// The tests of `-i0 -i1 -i2` in the order of the columns, each with the job of fio that does the
/// same.
const TESTS: [(&str, &str); 6] = [
    ("write", "write"),
    ("rewrite", "write"),
    ("read", "read"),
    ("reread", "read"),
    ("random read", "randread"),
    ("random write", "randwrite"),
];
/// Record sizes in KiB: a page, one in the middle, and one that hides what a call costs.
const RECORDS: [u64; 3] = [4, 64, 1024];
const SIZE_MIB: u64 = 64;

struct Options {
    folder: PathBuf,
    rounds: usize,
    iozone: Option<PathBuf>,
    json: bool,
}

/// One of the programs with its figures.
struct Side {
    name: &'static str,
    program: PathBuf,
    /// KiB a second of each record size, test and round.
    rates: Vec<[Vec<f64>; 6]>,
}

pub(super) fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let options = options(root, args)?;
    if !packages::install(&[])? {
        return Ok(false);
    }
    let build = ["build", "--release", "--package", "steadfast", "--bin", "steadfast"];
    let mut build = step::cargo(root, &build);
    build.args(["--message-format", "json"]).stderr(Stdio::inherit());
    let ours = conformance::executable(&build.output()?)?;
    let mut sides = vec![side("steadfast", ours)];
    if let Some(iozone) = options.iozone.clone().or_else(|| installed("iozone")) {
        sides.push(side("iozone", iozone));
    }
    sides.push(side("fio", PathBuf::from("fio")));
    fs::create_dir_all(&options.folder).with_context(|| options.folder.display().to_string())?;
    let file = options.folder.join(format!("bench-iozone-{}", std::process::id()));
    let before = Load::now();
    let done = rounds(&mut sides, &file, options.rounds);
    // OK to ignore: the programs take it away themselves, unless one has failed.
    let _ = fs::remove_file(&file);
    done?;
    if options.json {
        let load = before.map(|load| load.average);
        let document = serde_json::json!({ "load_before": load, "rows": document(&sides) });
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        print(&sides, &options, before);
        print_machine(before);
    }
    Ok(true)
}

fn options(root: &Path, args: &[String]) -> anyhow::Result<Options> {
    let folder = root.join("target").join("bench");
    let mut options = Options { folder, rounds: 7, iozone: None, json: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => options.json = true,
            "--rounds" => options.rounds = value("--rounds", &mut args)?.parse()?,
            "--folder" => options.folder = value("--folder", &mut args)?.into(),
            "--iozone" => options.iozone = Some(value("--iozone", &mut args)?.into()),
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    anyhow::ensure!(options.rounds > 0, "--rounds is at least 1");
    Ok(options)
}

fn side(name: &'static str, program: PathBuf) -> Side {
    Side { name, program, rates: RECORDS.iter().map(|_| Default::default()).collect() }
}

/// A program of that name in PATH.
fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Who begins changes with the round: what the one before leaves to the disk falls on each of them.
fn rounds(sides: &mut [Side], file: &Path, rounds: usize) -> anyhow::Result<()> {
    let count = sides.len();
    for round in 0..rounds {
        eprintln!("    round {} of {rounds}", round + 1);
        for (record, kib) in RECORDS.iter().enumerate() {
            for turn in 0..count {
                let side = &mut sides[(round + turn) % count];
                let _ = fs::remove_file(file);
                rustix::fs::sync();
                let rates = match side.name {
                    "fio" => fio(&side.program, file, *kib),
                    _ => iozone(side, file, *kib),
                };
                let rates = rates.with_context(|| format!("{} with {kib} KiB", side.name))?;
                for (all, rate) in side.rates[record].iter_mut().zip(rates) {
                    all.push(rate);
                }
            }
        }
    }
    Ok(())
}

/// IOzone's own command line, whoever reads it.
fn iozone(side: &Side, file: &Path, kib: u64) -> anyhow::Result<[f64; 6]> {
    let mut command = Command::new(&side.program);
    if side.name == "steadfast" {
        command.arg("iozone");
    }
    command.args(["-i0", "-i1", "-i2", "-e", "-s"]).arg(format!("{SIZE_MIB}m"));
    command.arg("-r").arg(format!("{kib}k")).arg("-f").arg(file);
    let out = command.output().with_context(|| side.program.display().to_string())?;
    let text = String::from_utf8_lossy(&out.stdout);
    anyhow::ensure!(out.status.success(), "{}: {text}", out.status);
    row(&text, kib).with_context(|| format!("no line of figures in:\n{text}"))
}

/// The line that begins with the size of the file and of the record.
fn row(text: &str, kib: u64) -> Option<[f64; 6]> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace().map(|word| word.parse::<f64>().ok());
        let begins = [words.next()??, words.next()??];
        let right = begins == [(SIZE_MIB * 1024) as f64, kib as f64];
        let mut rates = [0.0; 6];
        for rate in &mut rates {
            *rate = words.next()??;
        }
        right.then_some(rates)
    })
}

/// The same work by fio: one job a test, the file stays between them.
fn fio(program: &Path, file: &Path, kib: u64) -> anyhow::Result<[f64; 6]> {
    let mut rates = [0.0; 6];
    for (rate, (_, job)) in rates.iter_mut().zip(TESTS) {
        let mut command = Command::new(program);
        command.args(["--name=job", "--ioengine=psync", "--thread", "--gtod_reduce=1"]);
        command.args(["--invalidate=0", "--fallocate=none", "--output-format=json"]);
        // What IOzone writes is made once, not for each record.
        command.args(["--zero_buffers", "--scramble_buffers=0"]);
        command.arg(format!("--filename={}", file.display())).arg(format!("--rw={job}"));
        command.arg(format!("--size={SIZE_MIB}m")).arg(format!("--bs={kib}k"));
        let kind = if job.ends_with("write") { "write" } else { "read" };
        if kind == "write" {
            command.arg("--end_fsync=1");
        }
        let out = command.output().context("fio")?;
        let said = String::from_utf8_lossy(&out.stderr);
        anyhow::ensure!(out.status.success(), "{}: {said}", out.status);
        let document: serde_json::Value = serde_json::from_slice(&out.stdout)?;
        let figures = &document["jobs"][0][kind];
        // Bytes by microseconds would be better; fio has milliseconds only.
        let (bytes, millis) = (figures["io_bytes"].as_f64(), figures["runtime"].as_f64());
        let (bytes, millis) = bytes.zip(millis).context("fio's JSON has no io_bytes or runtime")?;
        *rate = bytes / 1024.0 / (millis.max(1.0) / 1000.0);
    }
    fs::remove_file(file).context("the file of fio")?;
    Ok(rates)
}

/// Median, least and greatest in MiB a second.
fn spread(rates: &[f64]) -> [f64; 3] {
    let mut sorted: Vec<f64> = rates.iter().map(|rate| rate / 1024.0).collect();
    sorted.sort_by(f64::total_cmp);
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    [median(&sorted).unwrap_or(most), least, most]
}

fn print(sides: &[Side], options: &Options, before: Option<Load>) {
    let rounds = options.rounds;
    println!(
        "-i0 -i1 -i2 -e -s {SIZE_MIB}m: MiB a second, medians of {rounds} (least to greatest)\n"
    );
    let mut head = vec!["record".to_owned(), "test".to_owned()];
    head.extend(sides.iter().map(|side| side.name.to_owned()));
    head.extend(sides[1..].iter().map(|side| format!("to {}", side.name)));
    let mut rows = Vec::new();
    for (record, kib) in RECORDS.iter().enumerate() {
        for (test, (name, _)) in TESTS.iter().enumerate() {
            let figures: Vec<[f64; 3]> =
                sides.iter().map(|side| spread(&side.rates[record][test])).collect();
            let mut row = vec![format!("{kib} KiB"), (*name).to_owned()];
            row.extend(figures.iter().map(|[m, l, g]| format!("{m:.0} ({l:.0} to {g:.0})")));
            let rates = |side: &Side| side.rates[record][test].clone();
            let ours = rates(&sides[0]);
            row.extend(sides[1..].iter().map(|side| compared(&ours, &rates(side), before)));
            rows.push(row);
        }
    }
    table(&head, &rows);
}

/// How we are to the other, round by round, and whether that says anything.
fn compared(ours: &[f64], theirs: &[f64], before: Option<Load>) -> String {
    let Some(compared) = PairedTest::of(ours, theirs) else { return "-".into() };
    let word = instead(&compared, before).map_or(String::new(), |word| format!(", {word}"));
    format!("{:+.0} %{word}", (compared.ratio - 1.0) * 100.0)
}

fn document(sides: &[Side]) -> serde_json::Value {
    let mut rows = Vec::new();
    for side in sides {
        for (record, kib) in RECORDS.iter().enumerate() {
            for (test, (name, _)) in TESTS.iter().enumerate() {
                rows.push(serde_json::json!({
                    "program": side.name, "record_kib": kib, "test": name,
                    "kib_per_s": side.rates[record][test],
                }));
            }
        }
    }
    serde_json::Value::Array(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_figures_is_found() {
        let text =
            "   kB  reclen    write\n  65536       4   1 2 3 4 5 6\n\niozone test complete.\n";
        assert_eq!(row(text, 4), Some([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!(row(text, 64), None);
        assert_eq!(row("65536 4 1 2 3", 4), None);
    }

    #[test]
    fn rounds_that_agree_on_a_quiet_machine_have_an_order() {
        let at = |average| Some(Load { average, processors: 2 });
        let theirs = [100.0, 90.0, 110.0, 101.0, 99.0, 98.0, 97.0];
        assert_eq!(compared(&theirs, &theirs, at(0.1)), "+0 %, level");
        let less = theirs.map(|rate| rate * 0.8);
        assert_eq!(compared(&less, &theirs, at(0.1)), "-20 %");
        assert_eq!(compared(&less[..5], &theirs[..5], at(0.1)), "-20 %, level");
        assert_eq!(compared(&less, &theirs, at(8.61)), "-20 %, not ranked");
    }
}
