//! `cargo xtask bench sim`: what the simulated experiment of the source costs at the published
//! size: wall time, processor time and the peak of its memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use steadfast_statistics::load::Load;
use steadfast_statistics::median;

use super::{print_machine, table};
use crate::{conformance, step, value};

/// How often the peak of the memory is read, and the end looked for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Clock ticks a second in /proc (`USER_HZ`), the same on every architecture that we know.
const TICKS: f64 = 100.0;

struct Options {
    rounds: usize,
    quick: bool,
    json: bool,
    /// Another build of the program, run by turns with this one.
    against: Option<PathBuf>,
}

/// What one run needed.
#[derive(serde::Serialize, Clone, Copy)]
struct RunCost {
    wall_s: f64,
    user_s: f64,
    system_s: f64,
    peak_mib: f64,
}

/// A program and its runs.
#[derive(serde::Serialize)]
struct ProgramRounds {
    program: String,
    rounds: Vec<RunCost>,
    #[serde(skip)]
    figures: Vec<u8>,
}

pub(super) fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let options = options(args)?;
    let build = ["build", "--release", "--package", "steadfast", "--bin", "steadfast"];
    let mut build = step::cargo(root, &build);
    build.args(["--message-format", "json"]).stderr(Stdio::inherit());
    let mut programs = vec![conformance::executable(&build.output()?)?];
    programs.extend(options.against.clone());
    let before = Load::now();
    let mut all: Vec<ProgramRounds> = Vec::new();
    for round in 0..options.rounds {
        for (i, program) in programs.iter().enumerate() {
            eprintln!("    round {} of {}: {}", round + 1, options.rounds, program.display());
            let (cost, figures) = measure(program, options.quick)?;
            match all.get_mut(i) {
                Some(measured) => {
                    anyhow::ensure!(measured.figures == figures, "two runs differ in a figure");
                    measured.rounds.push(cost);
                }
                None => {
                    let program = program.display().to_string();
                    all.push(ProgramRounds { program, rounds: vec![cost], figures });
                }
            }
        }
    }
    let same = all.iter().all(|m| m.figures == all[0].figures);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(same);
    }
    print(&all, &options);
    print_machine(before);
    if !same {
        println!("The programs differ in their figures.");
    }
    Ok(same)
}

fn options(args: &[String]) -> anyhow::Result<Options> {
    let mut options = Options { rounds: 3, quick: false, json: false, against: None };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => options.json = true,
            "--quick" => options.quick = true,
            "--rounds" => options.rounds = value("--rounds", &mut args)?.parse()?,
            "--against" => options.against = Some(value("--against", &mut args)?.into()),
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    anyhow::ensure!(options.rounds > 0, "--rounds is at least 1");
    Ok(options)
}

/// The words of the command that is measured.
fn words(quick: bool) -> Vec<&'static str> {
    let mut words = vec!["lab", "run", "nvram-journal", "--cuts", "0", "--seed", "1"];
    if !quick {
        words.push("--full");
    }
    words
}

/// One run: what it needed, and its figures.
fn measure(program: &Path, quick: bool) -> anyhow::Result<(RunCost, Vec<u8>)> {
    let figures = std::env::temp_dir().join(format!("bench-sim-{}.json", std::process::id()));
    let mut command = Command::new(program);
    command.args(words(quick)).arg("--json").arg(&figures);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let mut child = command.spawn().with_context(|| program.display().to_string())?;
    let needed = wait(&mut child, begun);
    let ended = child.wait()?;
    let read = fs::read(&figures);
    // OK to ignore: it may not have been made.
    let _ = fs::remove_file(&figures);
    anyhow::ensure!(ended.success(), "{} ended with {ended}", program.display());
    Ok((needed?, read?))
}

/// Waits until the program has ended, without reaping it: who does that finds no process.
fn wait(child: &mut Child, begun: Instant) -> anyhow::Result<RunCost> {
    let pid = Pid::from_child(child);
    let folder = PathBuf::from(format!("/proc/{}", child.id()));
    let mut peak_mib = 0.0f64;
    loop {
        let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
        peak_mib = peak_mib.max(peak_kib(&status).unwrap_or(0.0) / 1024.0);
        let flags = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if waitid(WaitId::Pid(pid), flags)?.is_some() {
            let wall_s = begun.elapsed().as_secs_f64();
            let stat = fs::read_to_string(folder.join("stat"))?;
            let (user_s, system_s) = seconds(&stat).context("/proc/PID/stat")?;
            return Ok(RunCost { wall_s, user_s, system_s, peak_mib });
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// `VmHWM` of /proc/PID/status.
fn peak_kib(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// User and system time of /proc/PID/stat. The name may hold anything, spaces too.
fn seconds(stat: &str) -> Option<(f64, f64)> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut ticks = fields.split(' ').skip(11).map(|field| field.parse::<f64>().ok());
    Some((ticks.next()?? / TICKS, ticks.next()?? / TICKS))
}

fn print(all: &[ProgramRounds], options: &Options) {
    let words = words(options.quick).join(" ");
    println!("steadfast {words}: medians of {} (least to greatest).\n", options.rounds);
    let head = ["program", "wall", "user", "system", "peak memory"].map(str::to_owned);
    let row = |m: &ProgramRounds| {
        let of = |each: fn(&RunCost) -> f64, unit: &str| {
            let mut values: Vec<f64> = m.rounds.iter().map(each).collect();
            values.sort_by(f64::total_cmp);
            let (first, last) = (values[0], values[values.len() - 1]);
            let median = median(&values).unwrap_or(last);
            match values.len() {
                1 => format!("{median:.1} {unit}"),
                _ => format!("{median:.1} {unit} ({first:.1} to {last:.1})"),
            }
        };
        vec![
            m.program.clone(),
            of(|c| c.wall_s, "s"),
            of(|c| c.user_s, "s"),
            of(|c| c.system_s, "s"),
            of(|c| c.peak_mib, "MiB"),
        ]
    };
    table(&head, &all.iter().map(row).collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_prints_is_read() {
        let stat = "77 (a) b) R 1 77 77 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 3 0 100 1000";
        assert_eq!(seconds(stat), Some((2.5, 0.5)));
        assert_eq!(seconds("77 (a"), None);
        let status = "Name:\tsteadfast\nVmPeak:\t  9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(peak_kib(status), Some(2048.0));
    }
}
