//! `cargo xtask bench fs`: mounted file systems side by side, and the same calls in one process.
//! `cargo xtask bench crash` is in [`crash`], `sim` in [`sim`], `iozone` in [`iozone`],
//! `volume` in [`volume`], `durable` in [`durable`].

mod crash;
mod durable;
mod goals;
mod iozone;
mod md;
mod print;
mod sim;
mod spread;
mod volume;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use steadfast_statistics::load::Load;
use steadfast_statistics::median_of_whole;
use steadfast_suite::bench::{Amounts, Figure, Row, Table};
use steadfast_suite::{Setup, Target, TargetKind};

use crate::step;
use crate::{conformance, packages, value};

use print::{print_machine, table, table_text};

const IMAGE_BYTES: u64 = 2 << 30;
/// A folder in memory, so that no disk is measured.
const MEMORY: &str = "/dev/shm";
/// Times that each side of the comparison in one process is run.
const TURNS: usize = 7;

/// Measures and prints; whether everything could be measured.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let rest = match args.split_first().map(|(what, rest)| (what.as_str(), rest)) {
        Some(("fs", rest)) => rest,
        Some(("crash", rest)) => return crash::run(root, rest),
        Some(("sim", rest)) => return sim::run(root, rest),
        Some(("iozone", rest)) => return iozone::run(root, rest),
        Some(("volume", rest)) => return volume::run(root, rest),
        Some(("durable", rest)) => return durable::run(root, rest),
        _ => anyhow::bail!(
            "bench needs to know what: fs, durable, crash, sim, iozone or volume; see cargo \
             xtask help"
        ),
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
        on = vec!["steadfast", "fuse2fs", "kernel", "kernel-zram"];
    }
    let kinds: anyhow::Result<Vec<TargetKind>> =
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
    let before = Load::now();
    let table = steadfast_suite::bench::run(&kinds, &setup, amounts, &mut progress)?;
    let in_process = match &example {
        None => Vec::new(),
        Some(example) => in_process(example, &setup, &mut progress)?,
    };
    if json {
        let load = before.map(|load| load.average);
        let both =
            serde_json::json!({ "mounted": table, "in_process": in_process, "load_before": load });
        println!("{}", serde_json::to_string_pretty(&both)?);
        return Ok(true);
    }
    print(&table, before);
    if !in_process.is_empty() {
        print_in_process(&in_process, before);
    }
    print_machine(before);
    let behind = goals::behind(&table, &in_process);
    println!("\n{}", goals::sentence(&behind));
    behind.iter().for_each(|line| println!("* {line}"));
    Ok(true)
}

/// The targets that are one peer: of the kernel's set-ups the best counts, row by row.
fn peers(measured: &Table) -> Vec<(&'static str, Vec<usize>)> {
    let mut peers: Vec<(&'static str, Vec<usize>)> = Vec::new();
    for (i, target) in measured.targets.iter().enumerate().skip(1) {
        let name = if target.starts_with("kernel") { "kernel" } else { target };
        match peers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(i),
            None => peers.push((name, vec![i])),
        }
    }
    peers
}

/// The best set-up of a peer in a row.
fn best_of(row: &Row, members: &[usize]) -> usize {
    let medians: Vec<u64> = members.iter().map(|i| row.figures[*i].nanos_each).collect();
    // OK to index: a peer has a set-up, and ours is there in any case.
    spread::best(&medians).map_or(0, |best| members[best])
}

fn print(measured: &Table, before: Option<Load>) {
    let peers = peers(measured);
    let mut head = vec!["time of one".to_owned(), "of".to_owned()];
    head.extend(measured.targets.first().map(|t| (*t).to_owned()));
    head.extend(peers.iter().map(|(name, _)| (*name).to_owned()));
    head.push("kernel's set-up".to_owned());
    head.push("daemons' CPU".to_owned());
    head.extend(peers.iter().map(|(name, _)| format!("x {name}")));
    let cells = |row: &Row| {
        let ours = &row.figures[0];
        let chosen: Vec<usize> = peers.iter().map(|(_, members)| best_of(row, members)).collect();
        let kernel = chosen.iter().map(|i| measured.targets[*i]).find(|t| t.starts_with("kernel"));
        let setup = kernel.map_or("-", |t| if t == "kernel" { "loop" } else { "zram" });
        let mut cells = vec![row.name.to_owned(), row.unit.to_owned(), range(ours)];
        cells.extend(chosen.iter().map(|i| range(&row.figures[*i])));
        cells.push(setup.to_owned());
        let cpu = |f: &Figure| f.daemon_cpu_nanos_each.map(|cpu| counted(cpu, row.count));
        cells.push(row.figures.iter().filter_map(cpu).collect::<Vec<_>>().join(" / "));
        let times = |i: &usize| {
            let theirs = &row.figures[*i].rounds_nanos_each;
            let times = spread::Times::of(&ours.rounds_nanos_each, theirs, before);
            times.map_or("-".to_owned(), spread::Times::text)
        };
        cells.extend(chosen.iter().map(times));
        cells
    };
    let rows: Vec<Vec<String>> = measured.rows.iter().map(cells).collect();
    let (rounds, options) = (measured.amounts.rounds, &measured.options);
    println!("Mounted; medians of {rounds} rounds (least to greatest); images on {MEMORY},");
    println!("the kernel's on a loop device over it and on zram with fast_commit: the");
    println!("better of the two counts, row by row. Mount options '{options}'. x: how many");
    println!("times as fast as that the first is, round by round; level: a signed-rank test of");
    println!("the rounds finds no difference at 5 %, or the medians differ by less than 5 %.\n");
    table(&head, &rows);
}

/// Median and range of the rounds.
fn range(figure: &Figure) -> String {
    told_range(figure.nanos_each, &figure.rounds_nanos_each)
}

fn told_range(median: u64, rounds: &[u64]) -> String {
    let (least, most) = (rounds.iter().min(), rounds.iter().max());
    match (least, most) {
        (Some(least), Some(most)) if rounds.len() > 1 => {
            format!("{} ({} to {})", time(median), time(*least), time(*most))
        }
        _ => time(median),
    }
}

fn print_in_process(rows: &[InProcessRow], before: Option<Load>) {
    println!("\nIn one process, no FUSE: ext4 on a RAM device. Beside it the same calls on");
    println!("the kernel's mounts, on a loop device and on zram with fast_commit: the better");
    println!("of the two counts, row by row. {TURNS} turns. CPU: this process and the kernel");
    println!("for it, without its own threads.\n");
    let head = [
        "time of one",
        "steadfast",
        "kernel",
        "its set-up",
        "CPU",
        "kernel's CPU",
        "x kernel",
        "by CPU",
    ];
    let cells = |row: &InProcessRow| {
        let nanos = |costs: &[Cost]| costs.iter().map(|c| c.nanos).collect::<Vec<_>>();
        let (ours, kernels) = (nanos(&row.steadfast_turns), nanos(&row.kernel_turns));
        let times = spread::Times::of(&ours, &kernels, before);
        vec![
            row.name.clone(),
            told_range(row.steadfast.nanos, &ours),
            told_range(row.kernel.nanos, &kernels),
            row.kernel_setup.to_owned(),
            row.steadfast.cpu_nanos.map_or("-".to_owned(), time),
            row.kernel.cpu_nanos.map_or("-".to_owned(), time),
            times.map_or("-".to_owned(), spread::Times::text),
            by_cpu(&row.kernel, &row.steadfast),
        ]
    };
    table(&head.map(str::to_owned), &rows.iter().map(cells).collect::<Vec<_>>());
}

/// How many times the processor time of the other is, where both were enough to be counted.
fn by_cpu(theirs: &Cost, ours: &Cost) -> String {
    let both = theirs.cpu_nanos.zip(ours.cpu_nanos.filter(|ours| *ours > 0));
    both.map_or("-".to_owned(), |(theirs, ours)| times(theirs, ours))
}

fn times(theirs: u64, ours: u64) -> String {
    format!("{:.2}", theirs as f64 / ours.max(1) as f64)
}

/// A daemon's processor time of one of so many, which the kernel counts in ticks.
fn counted(nanos: u64, count: u64) -> String {
    match nanos {
        0 => format!("<{}", time(TICK_NANOS / count.max(1))),
        _ => time(nanos),
    }
}

/// The kernel's tick in /proc (`USER_HZ`).
const TICK_NANOS: u64 = 10_000_000;

fn time(nanos: u64) -> String {
    match nanos {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        _ => format!("{:.1} ms", nanos as f64 / 1e6),
    }
}

/// What one side needed for an operation.
#[derive(serde::Serialize, Default, Clone, Copy)]
struct Cost {
    nanos: u64,
    /// `None`: less than the host's clock counts.
    cpu_nanos: Option<u64>,
}

impl Cost {
    /// The medians; of processor time only if it was counted in every turn.
    fn median(turns: &[Cost]) -> Cost {
        let nanos: Vec<u64> = turns.iter().map(|turn| turn.nanos).collect();
        let cpu: Option<Vec<u64>> = turns.iter().map(|turn| turn.cpu_nanos).collect();
        Cost {
            nanos: median_of_whole(&nanos).unwrap_or(0),
            cpu_nanos: cpu.as_deref().and_then(median_of_whole),
        }
    }
}

#[derive(serde::Serialize)]
struct InProcessRow {
    name: String,
    /// Medians.
    steadfast: Cost,
    /// Of the better set-up.
    kernel: Cost,
    /// Which that is.
    kernel_setup: &'static str,
    steadfast_turns: Vec<Cost>,
    kernel_turns: Vec<Cost>,
}

/// Builds the example `operations` and says where it is.
fn example(root: &Path) -> anyhow::Result<PathBuf> {
    let args = ["build", "--release", "--package", "steadfast-selftest", "--example", "operations"];
    let mut command = step::cargo(root, &args);
    command.args(["--message-format", "json"]).stderr(std::process::Stdio::inherit());
    conformance::executable(&command.output()?).context("building the example 'operations'")
}

/// The kernel's set-ups in one process.
const KERNELS: [(&str, TargetKind); 2] =
    [("loop", TargetKind::Kernel), ("zram", TargetKind::KernelZram)];

/// The example, by turns on our ext4 and on the kernel's mounts.
fn in_process(
    example: &Path,
    setup: &Setup,
    progress: &mut dyn FnMut(&str),
) -> anyhow::Result<Vec<InProcessRow>> {
    let kernels: Vec<Target> =
        KERNELS.into_iter().map(|(_, kind)| Target::new(kind, setup)).collect::<Result<_, _>>()?;
    let folders: Vec<PathBuf> = kernels.iter().map(Target::mountpoint).collect();
    let mut costs: BTreeMap<String, [Vec<Cost>; 3]> = BTreeMap::new();
    let mut names = Vec::new();
    for turn in 0..TURNS {
        progress(&format!("turn {} of {TURNS}: in one process", turn + 1));
        let sides = std::iter::once(None).chain(folders.iter().map(Some));
        for (side, folder) in sides.enumerate() {
            let mut command = Command::new(example);
            let out = command.args(folder).stderr(std::process::Stdio::inherit()).output()?;
            anyhow::ensure!(out.status.success(), "the example 'operations' failed");
            for (name, cost) in String::from_utf8_lossy(&out.stdout).lines().filter_map(read) {
                if !names.contains(&name) {
                    names.push(name.clone());
                }
                costs.entry(name).or_default()[side].push(cost);
            }
        }
    }
    for mut target in kernels {
        target.unmount()?;
    }
    let row = |name: String| {
        let [ours, kernels @ ..] = costs.get(&name).context("a row that was seen")?;
        let medians = kernels.each_ref().map(|costs| Cost::median(costs));
        let best = spread::best(&medians.map(|cost| cost.nanos)).unwrap_or(0);
        Ok(InProcessRow {
            steadfast: Cost::median(ours),
            kernel: medians[best],
            kernel_setup: KERNELS[best].0,
            steadfast_turns: ours.clone(),
            kernel_turns: kernels[best].clone(),
            name,
        })
    };
    names.into_iter().map(row).collect()
}

/// A line of the example: name, time, CPU time or `-`, `ns`.
fn read(line: &str) -> Option<(String, Cost)> {
    let rest = line.trim_end().strip_suffix("ns")?.trim_end();
    let (rest, cpu) = rest.rsplit_once(' ')?;
    let (name, nanos) = rest.trim_end().rsplit_once(' ')?;
    let cpu_nanos = if cpu == "-" { None } else { Some(cpu.parse().ok()?) };
    let cost = Cost { nanos: nanos.parse().ok()?, cpu_nanos };
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
            ("append 4 KiB + fsync", 41234, Some(900))
        );
        let (_, cost) = read("stat                    247         - ns").unwrap();
        assert_eq!((cost.nanos, cost.cpu_nanos), (247, None));
        assert!(read("warning: something").is_none());
    }

    #[test]
    fn processor_time_that_was_not_counted_is_no_figure() {
        let cost = |nanos, cpu_nanos| Cost { nanos, cpu_nanos };
        let all = Cost::median(&[cost(10, Some(4)), cost(20, Some(8))]);
        assert_eq!((all.nanos, all.cpu_nanos), (15, Some(6)));
        let some = Cost::median(&[cost(10, None), cost(20, Some(8)), cost(30, Some(9))]);
        assert_eq!((some.nanos, some.cpu_nanos), (20, None));
        assert_eq!((by_cpu(&some, &all), by_cpu(&all, &some)), ("-".into(), "-".into()));
        assert_eq!(by_cpu(&cost(1, Some(9)), &all), "1.50");
        // A tick for five thousand files is two microseconds of each.
        assert_eq!((counted(0, 5000), counted(3000, 5000)), ("<2000 ns".into(), "3000 ns".into()));
    }

    #[test]
    fn times_in_their_unit() {
        assert_eq!((time(999), time(41_200)), ("999 ns".into(), "41.2 us".into()));
        assert_eq!(time(12_000_000), "12.0 ms");
    }
}
