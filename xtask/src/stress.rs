//! `cargo xtask stress`: random operations with a model, for each data mode and place of the
//! journal.

use std::path::Path;
use std::time::Instant;

use steadfast_suite::stress::{Report, Stress};
use steadfast_suite::{Journal, Setup, Target, TargetKind};

use crate::step::step;
use crate::{conformance, packages, value};

const IMAGE_BYTES: u64 = 1 << 30;
/// Operations in a full run, in each mode with each place of the journal.
const OPERATIONS: u64 = 1_000_000;
const MODES: [&str; 4] = ["writeback", "ordered", "journal", "transact"];

/// Runs the operations; whether nothing was wrong in any mode.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let (mut operations, mut seed, mut on) = (OPERATIONS, 1u64, "steadfast");
    let mut mke2fs = Vec::new();
    let (mut modes, mut journals) = (Vec::new(), vec![Journal::Internal, Journal::External]);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--ops" => operations = value("--ops", &mut args)?.parse()?,
            "--seed" => seed = value("--seed", &mut args)?.parse()?,
            "--on" => on = value("--on", &mut args)?,
            "--mke2fs" => {
                let words = value("--mke2fs", &mut args)?;
                mke2fs.extend(words.split_whitespace().map(str::to_owned));
            }
            "--mode" => {
                let mode = value("--mode", &mut args)?;
                let known = MODES.contains(&mode);
                anyhow::ensure!(known, "'{mode}' is none of {}", MODES.join(", "));
                modes.push(mode);
            }
            "--journal" => {
                journals = match value("--journal", &mut args)? {
                    "internal" => vec![Journal::Internal],
                    "external" => vec![Journal::External],
                    other => anyhow::bail!("'{other}' is none of internal, external"),
                }
            }
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    let kind = conformance::kind(root, on)?;
    if modes.is_empty() {
        modes = MODES.to_vec();
    }
    match &kind {
        TargetKind::Steadfast(_) => {}
        // Ours alone has it.
        TargetKind::Kernel | TargetKind::KernelZram => modes.retain(|m| *m != "transact"),
        // Knows neither modes nor external journals.
        TargetKind::Fuse2fs => (modes, journals) = (vec![""], vec![Journal::Internal]),
        TargetKind::Empty(..) => anyhow::bail!("{on} keeps nothing that could be compared"),
    }
    step("packages", || packages::install(&[]));
    anyhow::ensure!(!modes.is_empty(), "no such mode on {on}");
    let mut stress = Stress::new(operations, seed);
    // What is wrong is found soon after it was done.
    stress.remounts = (operations / 20_000).max(1);
    let mut rows = Vec::new();
    for mode in &modes {
        for journal in &journals {
            let name = format!("{operations} operations on {on}, data={mode}, journal {journal:?}");
            let begun = Instant::now();
            let mut report = Report::default();
            let is_good = step(&name, || {
                report = one(&kind, mode, *journal, &mke2fs, &stress)?;
                Ok(report.refused_for_no_reason(&kind).is_empty())
            });
            let seconds = begun.elapsed().as_secs_f64();
            rows.push(Row { mode, journal: *journal, report, seconds, is_good });
        }
    }
    print(&rows);
    Ok(rows.iter().all(|row| row.is_good))
}

/// What came of a mode with a place of the journal.
struct Row<'a> {
    mode: &'a str,
    journal: Journal,
    /// Of nothing, if a fault was found.
    report: Report,
    seconds: f64,
    is_good: bool,
}

fn print(rows: &[Row<'_>]) {
    println!(
        "    {:<10} {:<8} {:>10} {:>9} {:>9} {:>8}  verdict",
        "data=", "journal", "operations", "direct", "mapped", "seconds"
    );
    for row in rows {
        let Report { operations, direct, mapped, .. } = row.report;
        let journal = format!("{:?}", row.journal).to_lowercase();
        let verdict = match row.is_good {
            true => "as the model, e2fsck clean",
            false => "FAILED, see above",
        };
        println!(
            "    {:<10} {journal:<8} {operations:>10} {direct:>9} {mapped:>9} {:>8.0}  {verdict}",
            row.mode, row.seconds
        );
    }
}

fn one(
    kind: &TargetKind,
    mode: &str,
    journal: Journal,
    mke2fs: &[String],
    stress: &Stress,
) -> anyhow::Result<Report> {
    let mut setup = Setup::new(IMAGE_BYTES);
    if !mode.is_empty() {
        setup.options = format!("data={mode}");
    }
    setup.journal = journal;
    setup.mke2fs = mke2fs.to_vec();
    let mut target = Target::new(kind.clone(), &setup)?;
    let begun = Instant::now();
    let report = stress.run(&mut target, &mut |_| ())?;
    let rate = report.operations as f64 / begun.elapsed().as_secs_f64();
    println!("    {} operations, {rate:.0} a second", report.operations);
    for (name, count) in &report.refused {
        println!("    not supported: {name}, {count} times");
    }
    Ok(report)
}
