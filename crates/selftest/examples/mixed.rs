//! Reproduces crash states of one run of the mixed workload: the command that a test prints.
//!
//! ```sh
//! cargo run --release -p steadfast-selftest --example mixed -- ordered external seed=3 cut=7
//! ```
//!
//! With `cut=` a description of that cut: the operations before it, how much of what was in doubt
//! survived, what recovery made of it. Without, all cuts in figures. With `shrink` the first cut
//! that is wrong is made small. Exit status 1: something is wrong. The words are those of
//! `mixed::Case`; `bug=` needs the feature `planted-bugs`.

// It is for people.
#![allow(clippy::print_stdout)]

use std::process::ExitCode;

use steadfast_crash::figures::StateFigures;
use steadfast_selftest::mixed::Case;
use steadfast_selftest::shrink::Effort;

const EFFORT: Effort = Effort { runs: 200, recoveries: 200 };

fn main() -> ExitCode {
    let (mut cut, mut small, mut line) = (None, false, String::new());
    for word in std::env::args().skip(1) {
        match (word.as_str(), word.strip_prefix("cut=").map(str::parse)) {
            (_, Some(Ok(number))) => cut = Some(number),
            ("shrink", _) => small = true,
            _ => line += &format!("{word} "),
        }
    }
    let case: Case = match line.parse() {
        Ok(case) => case,
        Err(why) => {
            println!("{why}");
            return ExitCode::from(2);
        }
    };
    let outcome = match (cut, small) {
        (_, true) => shrunk(&case),
        (Some(number), _) => describe(&case, number),
        (None, _) => explored(&case),
    };
    match outcome {
        Ok(wrong) => ExitCode::from(u8::from(wrong)),
        Err(why) => {
            println!("{why}");
            ExitCode::from(2)
        }
    }
}

fn explored(case: &Case) -> Result<bool, String> {
    let figures = case.explore()?;
    let wrong = figures.count(StateFigures::is_wrong);
    println!("{} cuts, {wrong} wrong", figures.cuts.len());
    figures.findings.iter().for_each(|finding| println!("{finding}"));
    if let Some(first) = figures.cuts.iter().find(|cut| cut.is_wrong()) {
        println!("{}", case.command(Some(first.number)));
    }
    Ok(wrong > 0)
}

fn describe(case: &Case, number: u64) -> Result<bool, String> {
    let description = case.describe(number)?.ok_or_else(|| format!("there is no cut {number}"))?;
    println!("begun before the cut at {:?}, tick {}:", description.cut.at, description.cut.tick);
    description.operations.iter().for_each(|operation| println!("  {operation}"));
    for (device, (in_doubt, there)) in description.in_doubt.iter().enumerate() {
        println!("device {device}: {in_doubt} units in doubt, {there} of them there");
    }
    let StateFigures { broken_promises, stale_bytes, findings, damage, e2fsck, .. } =
        &description.cut;
    println!("recovered: {broken_promises} broken promises, {stale_bytes} stale");
    findings.iter().chain(damage).for_each(|words| println!("  {words}"));
    if let Some(said) = e2fsck.as_ref().and_then(|opinion| opinion.damage()) {
        println!("  e2fsck: {said}");
    }
    Ok(description.cut.is_wrong())
}

fn shrunk(case: &Case) -> Result<bool, String> {
    let shrunk = case.shrink(&StateFigures::is_wrong, EFFORT)?;
    match &shrunk {
        Some(shrunk) => println!("{shrunk}"),
        None => println!("no cut is wrong"),
    }
    Ok(shrunk.is_some())
}
