//! `cargo xtask bench fs`: mounted file systems side by side, and the same calls in one process.

use std::collections::BTreeMap;
use std::path::Path;

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
    let Some(("fs", rest)) = args.split_first().map(|(f, r)| (f.as_str(), r)) else {
        anyhow::bail!("bench needs to know what: fs; see cargo xtask help");
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
    let mut setup = Setup::new(IMAGE_BYTES);
    setup.folder = Some(MEMORY.into());
    setup.options = options;
    let mut progress = |what: &str| eprintln!("    {what}");
    let table = steadfast_suite::bench::run(&kinds, &setup, amounts, &mut progress)?;
    let in_process = if mounted_only { Vec::new() } else { in_process(root, &setup)? };
    if json {
        let both = serde_json::json!({ "mounted": table, "in_process": in_process });
        println!("{}", serde_json::to_string_pretty(&both)?);
        return Ok(true);
    }
    print(&table);
    if in_process.is_empty() {
        return Ok(true);
    }
    println!();
    println!("In one process, no FUSE: ext4 on a RAM device; beside it the kernel's, mounted.");
    println!("{:<28} {:>12} {:>12} {:>9}", "operation", "steadfast", "kernel", "speed");
    for row in &in_process {
        let speed = row.kernel_nanos as f64 / row.steadfast_nanos.max(1) as f64;
        let (ours, kernel) = (time(row.steadfast_nanos), time(row.kernel_nanos));
        println!("{:<28} {ours:>12} {kernel:>12} {speed:>8.2}x", row.name);
    }
    Ok(true)
}

fn print(table: &Table) {
    let widest = table.rows.iter().map(|r| r.name.len()).max().unwrap_or(0);
    print!("{:<widest$} {:>6}", "time of one", "");
    for target in &table.targets {
        print!(" {target:>12}");
    }
    println!("   daemon's CPU    speed of the first against the others");
    for row in &table.rows {
        print!("{:<widest$} {:>6}", row.name, row.unit);
        for figure in &row.figures {
            print!(" {:>12}", time(figure.nanos_each));
        }
        let cpu = |f: &Figure| f.daemon_cpu_nanos_each.map_or("-".to_owned(), time);
        let cpus: Vec<String> = row.figures.iter().map(cpu).collect();
        let first = row.figures[0].nanos_each.max(1) as f64;
        let speeds: Vec<String> = row.figures[1..]
            .iter()
            .map(|f| format!("{:.2}x", f.nanos_each as f64 / first))
            .collect();
        println!("   {}   {}", cpus.join(" / "), speeds.join(" "));
    }
    let (rounds, options) = (table.amounts.rounds, &table.options);
    println!("medians of {rounds} rounds; images on {MEMORY}; mount options '{options}'");
}

fn time(nanos: u64) -> String {
    match nanos {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        _ => format!("{:.1} ms", nanos as f64 / 1e6),
    }
}

#[derive(serde::Serialize)]
struct InProcess {
    name: String,
    steadfast_nanos: u64,
    kernel_nanos: u64,
}

/// The example of the bench crate, by turns on our ext4 and on a kernel mount.
fn in_process(root: &Path, setup: &Setup) -> anyhow::Result<Vec<InProcess>> {
    let mut target = Target::new(Kind::Kernel, setup)?;
    let folder = target.mountpoint();
    let folder = folder.to_str().context("a mount point with an odd name")?;
    let example =
        ["run", "--release", "--quiet", "--package", "steadfast-bench", "--example", "operations"];
    let mut times: BTreeMap<String, [Vec<u64>; 2]> = BTreeMap::new();
    let mut names = Vec::new();
    for _ in 0..TURNS {
        for (side, rest) in [vec![], vec!["--", folder]].into_iter().enumerate() {
            let mut command = step::cargo(root, &example);
            let out = command.args(rest).stderr(std::process::Stdio::inherit()).output()?;
            anyhow::ensure!(out.status.success(), "the example of the bench crate failed");
            for (name, nanos) in String::from_utf8_lossy(&out.stdout).lines().filter_map(read) {
                if !names.contains(&name) {
                    names.push(name.clone());
                }
                times.entry(name).or_default()[side].push(nanos);
            }
        }
    }
    target.unmount()?;
    let median = |values: &mut Vec<u64>| {
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or(0)
    };
    let row = |name: String| {
        let [ours, kernels] = times.get_mut(&name).context("a row that was seen")?;
        Ok(InProcess { steadfast_nanos: median(ours), kernel_nanos: median(kernels), name })
    };
    names.into_iter().map(row).collect()
}

/// A line of the example: name, number, `ns`.
fn read(line: &str) -> Option<(String, u64)> {
    let rest = line.trim_end().strip_suffix("ns")?.trim_end();
    let (name, number) = rest.rsplit_once(' ')?;
    Some((name.trim_end().to_owned(), number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_example() {
        let line = "append 4 KiB + fsync             41234 ns";
        assert_eq!(read(line), Some(("append 4 KiB + fsync".to_owned(), 41234)));
        assert_eq!(read("warning: something"), None);
    }

    #[test]
    fn times_in_their_unit() {
        assert_eq!((time(999), time(41_200)), ("999 ns".into(), "41.2 us".into()));
        assert_eq!(time(12_000_000), "12.0 ms");
    }
}
