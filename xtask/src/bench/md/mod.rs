//! `cargo xtask bench volume --md`: the kernel's md raid1 in an emulated machine, and our mirrors
//! in the same machine, both beside what they are made of.

mod script;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use steadfast_statistics::load::Load;

use self::script::{MODULES, ROWS, SIDES};

use super::spread::{Differences, Times};
use super::{print_machine, table_text};
use crate::guest::Guest;
use crate::{conformance, packages, step};

const MEMORY_MIB: u32 = 6144;
/// For all rounds together; the default ones take five minutes on two processors.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// Nanoseconds a request: of a row and side, by round.
type MdTimings = BTreeMap<(usize, &'static str), Vec<u64>>;

pub(super) fn run(root: &Path, rounds: u64) -> anyhow::Result<bool> {
    let needed = [("fio", "fio"), ("mdadm", "mdadm")];
    anyhow::ensure!(packages::install_these(&needed)?, "the packages above are needed");
    let build = ["build", "--release", "--package", "steadfast-volume", "--example", "speed"];
    let mut build = step::cargo(root, &build);
    build.args(["--message-format", "json"]).stderr(Stdio::inherit());
    let mut programs = vec![conformance::executable(&build.output()?)?];
    for (name, _) in needed {
        programs.push(packages::find(name).with_context(|| format!("{name} is not there"))?);
    }
    let guest = Guest {
        modules: &MODULES,
        programs: &programs,
        script: &script::script(rounds),
        memory: MEMORY_MIB,
        // Waking another emulated processor takes as long as twenty requests to memory, and md
        // gives each write to its thread if it has a bitmap.
        processors: 1,
        nvdimm: None,
        qemu: &[],
        limit: LIMIT,
    };
    let before = Load::now();
    eprintln!("    booting; {rounds} rounds of each");
    let mut last_row = None;
    let answer = guest.run(root, |line| {
        let row = fio_line(line).map(|measured| measured.row);
        if row.is_some() && row != last_row {
            eprintln!("    md: {}", row.and_then(|row| ROWS.get(row)).map_or("", |r| r.name));
            last_row = row;
        }
    })?;
    let output = answer.lines.join("\n");
    anyhow::ensure!(
        answer.status == 0,
        "what runs in the guest has failed with exit status {}:\n{output}",
        answer.status
    );
    let measured = measured(&output)?;
    print!("{}", report(&answer.kernel, &output, &measured, rounds));
    print_machine(before);
    Ok(true)
}

/// A line of fio's terse output.
struct FioLine {
    row: usize,
    side: &'static str,
    round: u64,
    nanos_each: u64,
}

/// Of fio's terse form, version 3: name, error, and KiB and milliseconds of reads or writes.
fn fio_line(line: &str) -> Option<FioLine> {
    let fields: Vec<&str> = line.split(';').collect();
    let number = |n: usize| fields.get(n)?.parse::<u64>().ok();
    if number(0)? != 3 || number(4)? != 0 {
        return None;
    }
    let mut name = fields.get(2)?.split('+');
    let row: usize = name.next()?.parse().ok()?;
    let side = name.next()?;
    let side = SIDES.into_iter().find(|known| *known == side)?;
    let round = name.next()?.parse().ok()?;
    let (kib, millis) = (number(5)? + number(46)?, number(8)? + number(49)?);
    let requests = (kib << 10) / ROWS.get(row)?.md.as_ref()?.bytes;
    let nanos_each = (millis * 1_000_000).checked_div(requests)?;
    Some(FioLine { row, side, round, nanos_each })
}

/// A line of `speed -`.
#[derive(serde::Deserialize)]
struct SpeedLine {
    what: String,
    /// Microseconds a request, by round.
    mirror: Vec<f64>,
    alone: Vec<f64>,
}

/// Ours under `mirror` and `mirror alone`, md's under its sides. The first round of each warms up.
fn measured(output: &str) -> anyhow::Result<MdTimings> {
    let mut measured = MdTimings::new();
    for line in output.lines() {
        if let Ok(speed) = serde_json::from_str::<SpeedLine>(line) {
            let row = ROWS.iter().position(|row| row.what == speed.what);
            let row = row.with_context(|| format!("no row is called '{}'", speed.what))?;
            // OK to cast: microseconds.
            let nanos = |values: Vec<f64>| values.into_iter().map(|us| (us * 1000.0) as u64);
            measured.entry((row, "mirror")).or_default().extend(nanos(speed.mirror));
            measured.entry((row, "mirror alone")).or_default().extend(nanos(speed.alone));
        } else if let Some(fio) = fio_line(line).filter(|fio| fio.round > 0) {
            measured.entry((fio.row, fio.side)).or_default().push(fio.nanos_each);
        }
    }
    for (number, row) in ROWS.iter().enumerate() {
        let rounds = |side| measured.get(&(number, side)).map_or(0, Vec::len);
        let whole = rounds("mirror") > 0 && (row.md.is_none() || rounds("alone") > 0);
        anyhow::ensure!(whole, "nothing was measured of '{}':\n{output}", row.name);
    }
    Ok(measured)
}

/// What is printed. A row of the table for each mirror, so that it fits a terminal.
fn report(kernel: &str, output: &str, measured: &MdTimings, rounds: u64) -> String {
    // The first line says what it is.
    let mdadm = output.lines().next().unwrap_or_default();
    // "mdadm - v4.2 - 2021-12-30 - Debian 4.2-5"
    let mdadm = mdadm.split(" - ").nth(1).unwrap_or(mdadm);
    let mut text = format!("In one emulated machine, Linux {kernel}, mdadm {mdadm}: a mirror's\n");
    text +=
        &format!("speed over that of what it is made of; medians of {rounds} rounds (least..\n");
    text += "greatest). Ours in one process; md's by fio (psync, direct), whose system calls\n\
             are in both sides of a ratio. Slow legs: ours the modelled SSD, md's null_blk\n\
             with the same time of service. Bitmap: internal, a chunk of 64 KiB, as our\n\
             regions are; md alone has none.\n\n";
    let mirrors = [
        ("steadfast", "mirror", "mirror alone"),
        ("md", "md", "alone"),
        ("md, bitmap", "bitmap", "alone"),
    ];
    let rows = |cell: fn(&[u64], &[u64]) -> Option<String>| -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for (number, row) in ROWS.iter().enumerate() {
            for (name, mirror, alone) in mirrors {
                let [mirror, alone] = [mirror, alone].map(|side| measured.get(&(number, side)));
                let cell = mirror.zip(alone).and_then(|(mirror, alone)| cell(mirror, alone));
                rows.extend(cell.map(|cell| vec![row.name.to_owned(), name.to_owned(), cell]));
            }
        }
        rows
    };
    let head = |first: &str, last: &str| [first, "mirror", last].map(str::to_owned);
    let ratios = rows(|mirror, alone| Some(Times::of(mirror, alone, None)?.with_range()));
    text += &table_text(&head("mirror : compared with", "as fast"), &ratios);
    text += "\nWhat the mirror adds to a request, in microseconds of this emulated processor,\n\
             which say nothing about a real one:\n\n";
    let adds = rows(|mirror, alone| Some(Differences::of(mirror, alone)?.text()));
    text + &table_text(&head("mirror : compared with", "added"), &adds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_fio_and_of_ours() {
        let mut fields = vec!["0"; 130];
        (fields[0], fields[2]) = ("3", "4+bitmap+2");
        (fields[46], fields[49]) = ("4096", "500");
        let fio = fio_line(&fields.join(";")).unwrap();
        assert_eq!((fio.row, fio.side, fio.round), (4, "bitmap", 2));
        assert_eq!(fio.nanos_each, 500_000_000 / 1024);
        fields[4] = "22";
        assert!(fio_line(&fields.join(";")).is_none(), "an error of fio's");
        assert!(fio_line("6.1.0-56-amd64").is_none());
    }

    /// Also with the widest numbers that were ever measured: more than a millisecond is added.
    #[test]
    fn what_is_printed_fits_a_terminal() {
        let mut all = MdTimings::new();
        for (number, row) in ROWS.iter().enumerate() {
            let sides = ["mirror", "mirror alone", "alone", "md", "bitmap"];
            for side in sides.iter().filter(|side| row.md.is_some() || side.starts_with("mirror")) {
                let slow = if side.ends_with("alone") { [100_000; 3] } else { [1_347_300; 3] };
                all.insert((number, side), slow.to_vec());
            }
        }
        let printed = report("6.1.0-56-amd64", "mdadm - v4.2 - 2021-12-30", &all, 15);
        let widest = printed.lines().max_by_key(|line| line.len()).unwrap();
        assert!(widest.len() <= 80, "{}: {widest}", widest.len());
        let row = "| write 4k, two slow legs, unwritten : one |  steadfast | 0.07 (0.07..0.07) |";
        assert!(printed.lines().any(|line| line == row), "{printed}");
        assert_eq!(printed.matches("| md, bitmap |").count(), 14, "{printed}");
    }

    #[test]
    fn what_was_not_measured_is_no_empty_cell() {
        let error = measured("mdadm - v4.2\n").unwrap_err();
        assert!(error.to_string().starts_with("nothing was measured of 'read 4k"));
    }
}
