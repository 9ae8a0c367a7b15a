//! Bugs planted in sector namespaces are found by cutting the power; without them nothing is found
//! in the same runs.

// For people who look at what was found.
#![allow(clippy::print_stdout)]

mod btt_cuts;

use btt_cuts::every::{Run, Tally, explore};
use btt_cuts::some;
use btt_cuts::{Op, write};
use steadfast_block::planted::BugSwitch;
use steadfast_devices::filter::btt::planted::Bug;

/// Three writes to one sector, and what was written before them.
const OPS: [Op; 3] = [write(0, 11), write(0, 12), write(0, 13)];
const BEFORE: [Op; 3] = [write(0, 1), write(1, 2), write(0, 3)];

/// Seeds within which a bug of several tasks must be found.
const SEEDS: u64 = 200;

fn found(bug: Bug) {
    let mut tally = Tally::default();
    let mut explored = |nfree, planted| {
        explore(&Run { sector: 512, nfree, before: &BEFORE, ops: &OPS }, planted, &mut tally)
    };
    let what = (1..=2).find_map(|nfree| explored(nfree, BugSwitch::with(bug)).err());
    let what = what.unwrap_or_else(|| panic!("{bug:?} was not found"));
    println!("FIGURES: {bug:?}: {what}; until then {tally:?}");
}

#[test]
fn without_a_bug_nothing_is_found() {
    let mut tally = Tally::default();
    for nfree in 1..=2 {
        let run = Run { sector: 512, nfree, before: &BEFORE, ops: &OPS };
        explore(&run, BugSwitch::default(), &mut tally).unwrap();
    }
    println!("FIGURES: none: {tally:?}");
}

#[test]
fn a_reader_that_is_not_waited_for() {
    let bug = Bug::ReaderNotWaitedFor;
    let found = (0..SEEDS).find_map(|seed| some::run(seed, BugSwitch::with(bug)).err());
    let what = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
    println!("FIGURES: {bug:?}: {what}");
}

#[test]
fn data_that_is_not_persisted() {
    found(Bug::DataNotPersisted);
}

#[test]
fn a_fence_left_out_after_the_data() {
    found(Bug::NoFenceAfterData);
}

#[test]
fn a_fence_left_out_after_the_flog() {
    found(Bug::NoFenceAfterFlog);
}

#[test]
fn a_map_that_is_not_persisted() {
    found(Bug::MapNotPersisted);
}

#[test]
fn a_map_before_the_data() {
    found(Bug::MapBeforeData);
}

#[test]
fn a_sequence_number_that_stays() {
    found(Bug::SequenceNotAdvanced);
}

#[test]
fn the_halves_of_a_flog_entry_in_the_wrong_order() {
    found(Bug::HalvesSwapped);
}

#[test]
fn a_map_that_is_not_recovered() {
    found(Bug::MapNotRecovered);
}
