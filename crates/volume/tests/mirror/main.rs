//! The traps of a RAM leg (`traps`) and the rules of safety (all the others) one by one, and the
//! campaign against mirrors (`campaign`).

// For people who look at how much was seen.
#![allow(clippy::print_stdout)]

#[path = "../campaign/mod.rs"]
mod campaign;

mod all_fail;
mod arguments;
mod bench;
mod checksums;
mod closing;
mod copies;
mod cut_short;
mod gate;
mod growing;
mod last;
mod leaving;
mod limits;
mod lockless;
mod nested;
mod nested_campaign;
mod order;
mod out_of_sync;
mod partial;
mod queues;
mod races;
mod rules;
mod scrub;
mod spares;
mod traps;

use campaign::{Tally, run, run_checked};
use steadfast_block::planted::BugSwitch;

/// Runs in the ordinary test.
const RUNS: u64 = 15;
/// Runs for each unit of `STEADFAST_SOAK`: 10,000 with the 20 of `cargo xtask soak`.
const SOAK_RUNS: u64 = 500;

fn runs() -> u64 {
    let factor: Option<u64> = std::env::var("STEADFAST_SOAK").ok().and_then(|n| n.parse().ok());
    factor.map_or(RUNS, |factor| factor * SOAK_RUNS)
}

#[test]
fn mirror_campaign_loses_nothing() {
    all_of(runs(), |seed| run(seed, BugSwitch::default()));
}

/// The same with checksums in all runs, and legs that return something else than was written.
#[test]
fn mirror_campaign_with_checksums_returns_nothing_wrong() {
    all_of(runs().div_ceil(2), |seed| run_checked(seed, BugSwitch::default()));
}

/// The same with a mirror as a leg, and disks that are missing. A fifth as many.
#[test]
fn mirror_campaign_of_nested_mirrors_loses_nothing() {
    all_of(runs().div_ceil(5), nested_campaign::run);
}

/// Runs that have found something once.
#[test]
fn mirror_campaign_runs_that_found_something_find_nothing() {
    for seed in [342, 615, 4340, 4799] {
        run_checked(seed, BugSwitch::default()).unwrap();
    }
    for seed in [501, 965, 1945] {
        nested_campaign::run(seed).unwrap();
    }
}

fn all_of(runs: u64, run: impl Fn(u64) -> Result<Tally, String>) {
    let mut all = Tally::default();
    let mut wrong = Vec::new();
    let first: u64 = std::env::var("MIRROR_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let runs = if std::env::var_os("MIRROR_SEED").is_some() { 1 } else { runs };
    for seed in first..first + runs {
        match run(seed) {
            Ok(tally) => all.add(&tally),
            Err(what) => wrong.push(what),
        }
    }
    println!("FIGURES: {runs} runs: {all:?}");
    assert!(wrong.is_empty(), "{} of {runs}: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
}
