//! Bugs planted in the mirror are found by the campaign; without them nothing is found in the same
//! runs (`mirror_campaign`).

// For people who look at what was found.
#![allow(clippy::print_stdout)]

mod campaign;

use campaign::{Tally, run};
use steadfast_volume::planted::{Bug, Planted};

/// Runs in which a bug must be found.
const RUNS: u64 = 150;

fn found(bug: Bug) {
    let mut before = Tally::default();
    for seed in 0..RUNS {
        match run(seed, Planted::with(bug)) {
            Ok(tally) => before.add(&tally),
            Err(what) => {
                println!("FIGURES: {bug:?}: run {seed} of {RUNS}: {what}; before: {before:?}");
                run(seed, Planted::default()).unwrap();
                return;
            }
        }
    }
    panic!("{bug:?} was not found in {RUNS} runs");
}

#[test]
fn mirror_region_states_after_the_data_are_found() {
    found(Bug::StateAfterData);
}

#[test]
fn mirror_volatile_leg_as_a_source_is_found() {
    found(Bug::VolatileSource);
}
