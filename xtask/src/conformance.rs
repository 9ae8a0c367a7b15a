//! `cargo xtask conformance`: the POSIX cases on the kernel's ext4 and on others.

use std::path::{Path, PathBuf};

use anyhow::Context;
use steadfast_suite::conformance::{self, Comparison, KnownDifferences, Transcript, script::Case};
use steadfast_suite::{EmptyTransport, Setup, Target, TargetKind};

use crate::step::{self, step};
use crate::{packages, value};

/// Large enough for every case but those that ask for more than there is.
const IMAGE_BYTES: u64 = 512 << 20;

/// Runs the cases; whether nothing differs that is not listed.
pub fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    let (mut on, mut filter, mut show) = (Vec::new(), "", false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--on" => on.push(value("--on", &mut args)?),
            "--filter" => filter = value("--filter", &mut args)?,
            "--show" => show = true,
            _ => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
        }
    }
    if on.is_empty() {
        on.push("steadfast");
    }
    let kinds: anyhow::Result<Vec<TargetKind>> = on.iter().map(|name| kind(root, name)).collect();
    let kinds = kinds?;
    step("packages", || packages::install(&[]));
    let mut cases = conformance::cases()?;
    cases.retain(|c| c.name.contains(filter));
    anyhow::ensure!(!cases.is_empty(), "no case's name contains '{filter}'");
    let mut measure = Vec::new();
    let mut all_good = step(&format!("{} cases on kernel", cases.len()), || {
        measure = transcripts(TargetKind::Kernel, &cases)?;
        Ok(true)
    });
    if show {
        for transcript in &measure {
            println!("{}", transcript.case);
            for line in &transcript.lines {
                println!("    {line}");
            }
        }
    }
    for kind in kinds {
        let name = kind.name();
        all_good &= step(&format!("{} cases on {name}", cases.len()), || {
            let known = KnownDifferences::of(name)?;
            let others = transcripts(kind, &cases)?;
            let comparison = conformance::compare(&measure, &others, &known);
            print(name, &comparison, show);
            Ok(comparison.is_good() && comparison.stale.is_empty())
        });
    }
    Ok(all_good)
}

/// A kind of target by its name; builds our own program if it is needed.
pub fn kind(root: &Path, name: &str) -> anyhow::Result<TargetKind> {
    Ok(match name {
        "kernel" => TargetKind::Kernel,
        "kernel-zram" => TargetKind::KernelZram,
        "fuse2fs" => TargetKind::Fuse2fs,
        "steadfast" => TargetKind::Steadfast(steadfast_binary(root)?),
        "empty" | "empty:uring" => TargetKind::Empty(empty(root)?, EmptyTransport::Uring),
        "empty:fuse" => TargetKind::Empty(empty(root)?, EmptyTransport::Fuse),
        _ => match name.strip_prefix("steadfast:") {
            Some(binary) => TargetKind::Steadfast(PathBuf::from(binary)),
            None => {
                anyhow::bail!("'{name}' is none of steadfast, fuse2fs, kernel, kernel-zram, empty")
            }
        },
    })
}

/// Builds `steadfast`, optimised, and says where it is.
fn steadfast_binary(root: &Path) -> anyhow::Result<PathBuf> {
    let args = ["build", "--release", "--package", "steadfast", "--message-format", "json"];
    let out = step::cargo(root, &args).stderr(std::process::Stdio::inherit()).output()?;
    executable(&out).context("building steadfast")
}

/// Builds the server that answers at once, optimised, and says where it is.
fn empty(root: &Path) -> anyhow::Result<PathBuf> {
    let args = ["build", "--release", "--package", "steadfast-fuse-lowlevel"];
    let mut command = step::cargo(root, &args);
    command.args(["--example", "empty", "--message-format", "json"]);
    let out = command.stderr(std::process::Stdio::inherit()).output()?;
    executable(&out).context("building the example 'empty'")
}

/// The program that a `cargo build --message-format json` has made.
pub fn executable(built: &std::process::Output) -> anyhow::Result<PathBuf> {
    anyhow::ensure!(built.status.success(), "cargo build failed");
    let messages = String::from_utf8_lossy(&built.stdout).into_owned();
    let executable = messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    executable.context("cargo does not say where it has put the program")
}

fn transcripts(kind: TargetKind, cases: &[Case]) -> anyhow::Result<Vec<Transcript>> {
    let mut target = Target::new(kind, &Setup::new(IMAGE_BYTES))?;
    let transcripts = conformance::run_cases(&target, cases, &mut |_| ())?;
    target.unmount()?;
    match target.check()? {
        None => Ok(transcripts),
        Some(found) => anyhow::bail!("after the cases, {found}"),
    }
}

fn print(name: &str, comparison: &Comparison, show: bool) {
    for difference in &comparison.differences {
        match &difference.reason {
            Some(reason) => println!("    known: {}: {reason}", difference.case),
            None => println!("    DIFFERS: {}", difference.case),
        }
        if difference.reason.is_none() || show {
            for (measure, other) in &difference.lines {
                println!("        kernel     {measure}\n        {name:<9}  {other}");
            }
        }
    }
    for entry in &comparison.stale {
        println!(
            "    STALE: {entry} does not differ any more: take its line out of \
             crates/suite/known-differences.txt"
        );
    }
    let (differ, faults) = (comparison.differences.len(), comparison.faults().count());
    let stale = comparison.stale.len();
    println!(
        "    {} cases, {differ} differ, {faults} of them unexplained, {stale} stale entries",
        comparison.cases
    );
}
