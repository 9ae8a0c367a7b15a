//! `cargo xtask bench fs`: mounted file systems side by side, and the same calls in one process.
//! `cargo xtask bench crash` is in [`crash`].

mod crash;
mod goals;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use steadfast_suite::bench::{Amounts, Figure, Table};
use steadfast_suite::{Kind, Setup, Target};

use crate::step;
use crate::{conformance, packages, value};

const IMAGE_BYTES: u64 = 2 << 30;
/// A folder in memory, so that no disk is measured.
const MEMORY: &str = "/dev/shm";
/// Times that each side of the comparison in one process is run.
const TURNS: usize = 3;

/// Measures and prints; whether everything could be measured.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let rest = match args.split_first().map(|(what, rest)| (what.as_str(), rest)) {
        Some(("fs", rest)) => rest,
        Some(("crash", rest)) => return crash::run(root, rest),
        _ => anyhow::bail!("bench needs to know what: fs or crash; see cargo xtask help"),
    };
    let (mut amounts, mut json, mut options) = (Amounts::default(), false, String::new());
    let (mut on, mut mounted_only) = (Vec::new(), false);
    let mut args = rest.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => json = true,
            "--mounted" => mounted_only = true,
            "--quick" => amounts = Amounts { rounds: amounts.rounds, ..Amounts::tiny() },
            "--rounds" => amounts.rounds = value("--rounds", &mut args)?.parse()?,
            "--options" => options = value("--options", &mut args)?.to_owned(),
            "--on" => on.push(value("--on", &mut args)?),
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    if on.is_empty() {
        on = vec!["steadfast", "fuse2fs", "kernel"];
    }
    let kinds: anyhow::Result<Vec<Kind>> =
        on.iter().map(|name| conformance::kind(root, name)).collect();
    let kinds = kinds?;
    if !packages::install(&[])? {
        return Ok(false);
    }
    // Before anything is timed: the compiler would take the processors from what is.
    let example = if mounted_only { None } else { Some(example(root)?) };
    let mut setup = Setup::new(IMAGE_BYTES);
    setup.folder = Some(MEMORY.into());
    setup.options = options;
    let mut progress = |what: &str| eprintln!("    {what}");
    let load_before = load();
    let table = steadfast_suite::bench::run(&kinds, &setup, amounts, &mut progress)?;
    let in_process = match &example {
        None => Vec::new(),
        Some(example) => in_process(example, &setup, &mut progress)?,
    };
    if json {
        let both = serde_json::json!({ "mounted": table, "in_process": in_process });
        println!("{}", serde_json::to_string_pretty(&both)?);
        return Ok(true);
    }
    print(&table);
    if !in_process.is_empty() {
        print_in_process(&in_process);
    }
    println!("\n{}; load {load_before} before, {} after.", machine(), load());
    let behind = goals::behind(&table, &in_process);
    println!("\n{}", goals::sentence(&behind));
    behind.iter().for_each(|line| println!("* {line}"));
    Ok(true)
}

/// A table as Markdown has it, which can be read as it is, too.
fn table(head: &[String], rows: &[Vec<String>]) {
    let width = |i: usize| {
        let below = rows.iter().filter_map(|row| row.get(i)).map(String::len).max();
        below.unwrap_or(0).max(head[i].len())
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let mut out = String::from("|");
        for (i, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            match i {
                0 => out += &format!(" {cell:<width$} |"),
                _ => out += &format!(" {cell:>width$} |"),
            }
        }
        println!("{out}");
    };
    line(head);
    let rule: Vec<String> = (0..head.len())
        .map(|i| if i == 0 { "-".repeat(widths[i]) } else { "-".repeat(widths[i] - 1) + ":" })
        .collect();
    line(&rule);
    rows.iter().for_each(|row| line(row));
}

fn print(measured: &Table) {
    let mut head = vec!["time of one".to_owned(), "of".to_owned()];
    head.extend(measured.targets.iter().map(|t| (*t).to_owned()));
    head.push("daemons' CPU".to_owned());
    head.extend(measured.targets.iter().skip(1).map(|t| format!("x {t}")));
    let cpu = |f: &Figure| f.daemon_cpu_nanos_each.map(time);
    let cells = |row: &steadfast_suite::bench::Row| {
        let mut cells = vec![row.name.to_owned(), row.unit.to_owned()];
        cells.extend(row.figures.iter().map(|f| time(f.nanos_each)));
        cells.push(row.figures.iter().filter_map(cpu).collect::<Vec<_>>().join(" / "));
        let first = row.figures[0].nanos_each;
        cells.extend(row.figures[1..].iter().map(|f| times(f.nanos_each, first)));
        cells
    };
    let rows: Vec<Vec<String>> = measured.rows.iter().map(cells).collect();
    let (rounds, options) = (measured.amounts.rounds, &measured.options);
    println!("Mounted; medians of {rounds} rounds; images on {MEMORY}; mount options '{options}';");
    println!("x: how many times as fast as that the first is.\n");
    table(&head, &rows);
}

fn print_in_process(rows: &[InProcess]) {
    println!("\nIn one process, no FUSE: ext4 on a RAM device. Beside it the same calls on the");
    println!("kernel's mount. CPU: this process and the kernel for it, without its own threads.\n");
    let head = ["time of one", "steadfast", "kernel", "CPU", "kernel's CPU", "x kernel", "by CPU"];
    let cells = |row: &InProcess| {
        vec![
            row.name.clone(),
            time(row.steadfast.nanos),
            time(row.kernel.nanos),
            time(row.steadfast.cpu_nanos),
            time(row.kernel.cpu_nanos),
            times(row.kernel.nanos, row.steadfast.nanos),
            // Less than the host counts.
            match row.steadfast.cpu_nanos {
                0 => "-".to_owned(),
                ours => times(row.kernel.cpu_nanos, ours),
            },
        ]
    };
    table(&head.map(str::to_owned), &rows.iter().map(cells).collect::<Vec<_>>());
}

fn times(theirs: u64, ours: u64) -> String {
    format!("{:.2}", theirs as f64 / ours.max(1) as f64)
}

fn time(nanos: u64) -> String {
    match nanos {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        _ => format!("{:.1} ms", nanos as f64 / 1e6),
    }
}

/// Processors and kernel of this machine.
fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{processors} processors, Linux {}", kernel.trim())
}

/// Tasks that wanted to run, on average over the last minute: more than processors means that the
/// figures say little.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}

/// What one side needed for an operation.
#[derive(serde::Serialize, Default, Clone, Copy)]
struct Cost {
    nanos: u64,
    cpu_nanos: u64,
}

#[derive(serde::Serialize)]
struct InProcess {
    name: String,
    steadfast: Cost,
    kernel: Cost,
}

/// Builds the example of the bench crate and says where it is.
fn example(root: &Path) -> anyhow::Result<PathBuf> {
    let args = ["build", "--release", "--package", "steadfast-bench", "--example", "operations"];
    let mut command = step::cargo(root, &args);
    command.args(["--message-format", "json"]).stderr(std::process::Stdio::inherit());
    conformance::executable(&command.output()?).context("building the example of the bench crate")
}

/// The example, by turns on our ext4 and on a kernel mount.
fn in_process(
    example: &Path,
    setup: &Setup,
    progress: &mut dyn FnMut(&str),
) -> anyhow::Result<Vec<InProcess>> {
    let mut target = Target::new(Kind::Kernel, setup)?;
    let folder = target.mountpoint();
    let mut costs: BTreeMap<String, [Vec<Cost>; 2]> = BTreeMap::new();
    let mut names = Vec::new();
    for turn in 0..TURNS {
        progress(&format!("turn {} of {TURNS}: in one process", turn + 1));
        for (side, folder) in [None, Some(&folder)].into_iter().enumerate() {
            let mut command = Command::new(example);
            let out = command.args(folder).stderr(std::process::Stdio::inherit()).output()?;
            anyhow::ensure!(out.status.success(), "the example of the bench crate failed");
            for (name, cost) in String::from_utf8_lossy(&out.stdout).lines().filter_map(read) {
                if !names.contains(&name) {
                    names.push(name.clone());
                }
                costs.entry(name).or_default()[side].push(cost);
            }
        }
    }
    target.unmount()?;
    let middle = |costs: &[Cost], of: fn(&Cost) -> u64| {
        let mut values: Vec<u64> = costs.iter().map(of).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or(0)
    };
    let median = |costs: &[Cost]| Cost {
        nanos: middle(costs, |c| c.nanos),
        cpu_nanos: middle(costs, |c| c.cpu_nanos),
    };
    let row = |name: String| {
        let [ours, kernels] = costs.get(&name).context("a row that was seen")?;
        Ok(InProcess { steadfast: median(ours), kernel: median(kernels), name })
    };
    names.into_iter().map(row).collect()
}

/// A line of the example: name, time, CPU time, `ns`.
fn read(line: &str) -> Option<(String, Cost)> {
    let rest = line.trim_end().strip_suffix("ns")?.trim_end();
    let (rest, cpu) = rest.rsplit_once(' ')?;
    let (name, nanos) = rest.trim_end().rsplit_once(' ')?;
    let cost = Cost { nanos: nanos.parse().ok()?, cpu_nanos: cpu.parse().ok()? };
    Some((name.trim_end().to_owned(), cost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_example() {
        let line = "append 4 KiB + fsync             41234       900 ns";
        let (name, cost) = read(line).unwrap();
        assert_eq!(
            (name.as_str(), cost.nanos, cost.cpu_nanos),
            ("append 4 KiB + fsync", 41234, 900)
        );
        assert!(read("warning: something").is_none());
    }

    #[test]
    fn times_in_their_unit() {
        assert_eq!((time(999), time(41_200)), ("999 ns".into(), "41.2 us".into()));
        assert_eq!(time(12_000_000), "12.0 ms");
    }
}
