//! `cargo xtask bench durable`: small durable calls of our ext4, in one process and through a
//! mount, on memory and on a disk with its journal on memory, beside the kernel's ext4 in the
//! set-ups that suit it best.
//!
//! Every side is made anew for every turn, so that its log is empty, and the sides take turns.
//! `--bounds` prints what our calls in memory spend their time with.

mod bounds;
mod sides;
mod tables;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use steadfast_statistics::load::Load;
use steadfast_suite::TargetKind;
use steadfast_suite::kernel_ext4::KernelExt4;
use steadfast_suite::mounted::TargetMount;

use self::sides::{Part, Side, SideKind};

use super::print_machine;
use crate::{conformance, packages, step, value};

/// Tasks at a time.
const TASKS: [usize; 3] = [1, 2, 8];

/// A row of the example `durable` of the crate `selftest`.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Row {
    call: String,
    tasks: usize,
    calls: u64,
    nanos_each: u64,
    cpu_nanos_each: Option<u64>,
    p50_nanos: u64,
    p99_nanos: Option<u64>,
    most_nanos: u64,
}

/// What one side did in all turns, with so many tasks.
#[derive(Debug, Serialize)]
struct SideTurns {
    part: &'static str,
    side: &'static str,
    ours: bool,
    /// Of each turn; a turn has the same rows as another.
    turns: Vec<Vec<Row>>,
}

pub(super) fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let (mut rounds, mut folder, mut json) = (7u32, root.join("target/bench"), false);
    let (mut only, mut quick, mut wide) = (None, false, false);
    let mut program = "steadfast".to_owned();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => rounds = value("--rounds", &mut args)?.parse()?,
            "--folder" => folder = PathBuf::from(value("--folder", &mut args)?),
            "--steadfast" => {
                program = format!("steadfast:{}", value("--steadfast", &mut args)?);
            }
            "--part" => only = Some(value("--part", &mut args)?.to_owned()),
            "--quick" => quick = true,
            "--wide" => wide = true,
            "--bounds" => return bounds::run(&example(root)?),
            "--json" => json = true,
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    anyhow::ensure!(rounds > 0, "--rounds is at least 1");
    let known = Part::ALL.map(Part::name);
    if let Some(only) = &only {
        anyhow::ensure!(known.contains(&only.as_str()), "--part is one of {}", known.join(", "));
    }
    if !packages::install(&[])? {
        return Ok(false);
    }
    let parts: Vec<Part> =
        Part::ALL.into_iter().filter(|p| only.as_ref().is_none_or(|o| p.is_meant(o))).collect();
    let example = example(root)?;
    let mounts = parts.iter().any(|part| [Part::Mount, Part::MountDisk].contains(part));
    let steadfast = match mounts.then(|| conformance::kind(root, &program)).transpose()? {
        Some(TargetKind::Steadfast(binary)) => binary,
        // Nothing is mounted.
        _ => PathBuf::new(),
    };
    let files = sides::Files::make(&folder, steadfast)?;
    let before = Load::now();
    let mut all = Vec::new();
    for part in parts {
        for tasks in TASKS {
            all.push((part, tasks, measure(&example, &files, part, tasks, rounds, quick)?));
        }
    }
    if json {
        let measured: Vec<_> = all.iter().flat_map(|(_, _, measured)| measured).collect();
        println!("{}", serde_json::to_string_pretty(&measured)?);
        return Ok(true);
    }
    println!("fc: fast_commit. Microseconds a call: median (least..greatest).");
    let mut behind = Vec::new();
    let mut wide_rows = Vec::new();
    for (at, (part, tasks, measured)) in all.iter().enumerate() {
        let rows = tables::TableRows::of(*part, *tasks, measured, before)?;
        behind.extend(rows.behind.iter().cloned());
        if !wide {
            rows.print(*part, *tasks);
            continue;
        }
        wide_rows.extend(rows.wide(*tasks));
        if all.get(at + 1).is_none_or(|(next, _, _)| next != part) {
            tables::print_wide(*part, &std::mem::take(&mut wide_rows));
        }
    }
    print_machine(before);
    if all.iter().all(|(part, ..)| matches!(part, Part::Mount | Part::MountDisk)) {
        println!("\nNo goals are set for calls through a mount.");
        return Ok(true);
    }
    println!("\n{}", super::goals::sentence(&behind));
    behind.iter().for_each(|line| println!("* {line}"));
    Ok(true)
}

/// All sides of a part, by turns; who begins changes with the round.
fn measure(
    example: &Path,
    files: &sides::Files,
    part: Part,
    tasks: usize,
    rounds: u32,
    quick: bool,
) -> anyhow::Result<Vec<SideTurns>> {
    let sides = part.sides(files);
    let mut measured: Vec<SideTurns> = sides
        .iter()
        .map(|side| {
            let (part, side, ours) = (part.name(), side.name, side.is_ours());
            SideTurns { part, side, ours, turns: Vec::new() }
        })
        .collect();
    for round in 0..rounds as usize {
        eprintln!("    {}, tasks: {tasks}, round {} of {rounds}", part.name(), round + 1);
        for i in 0..sides.len() {
            let i = (i + round) % sides.len();
            measured[i].turns.push(turn(example, &sides[i], part, tasks, quick)?);
        }
    }
    Ok(measured)
}

/// One side once.
fn turn(
    example: &Path,
    side: &Side,
    part: Part,
    tasks: usize,
    quick: bool,
) -> anyhow::Result<Vec<Row>> {
    let mut command = Command::new(example);
    let (mut kernel, mut mounted) = (None, None);
    match &side.what {
        SideKind::Ours(words) => {
            command.args(words);
        }
        SideKind::Mounted(how) => {
            let mount = TargetMount::new(how).context(side.name)?;
            command.arg("host").arg(mount.mountpoint());
            if let Some(pid) = mount.pid() {
                command.args(["--daemon", &pid.to_string()]);
            }
            mounted = Some(mount);
        }
        SideKind::Kernel(how) => {
            let mount = KernelExt4::new(how).context(side.name)?;
            command.arg("host").arg(mount.mountpoint());
            kernel = Some(mount);
        }
    }
    let (calls, overwrites) = part.amounts(quick);
    command.args(["--tasks", &tasks.to_string(), "--calls", &calls.to_string()]);
    command.args(["--before", &overwrites.to_string()]);
    if let Some(call) = part.only() {
        command.args(["--only", call]);
    }
    let out = command.stderr(Stdio::inherit()).output()?;
    kernel.map_or(Ok(()), KernelExt4::unmount)?;
    mounted.map_or(Ok(()), TargetMount::unmount)?;
    anyhow::ensure!(out.status.success(), "{}: the example 'durable' failed", side.name);
    serde_json::from_slice(&out.stdout).context("what the example 'durable' printed")
}

/// Builds the program that is timed, before anything is.
fn example(root: &Path) -> anyhow::Result<PathBuf> {
    let args = ["build", "--release", "--package", "steadfast-selftest", "--example", "durable"];
    let mut command = step::cargo(root, &args);
    command.args(["--message-format", "json"]).stderr(Stdio::inherit());
    conformance::executable(&command.output()?).context("building the example 'durable'")
}
