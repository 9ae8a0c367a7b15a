//! Flipped bits and bytes in all structures of a populated image. Whatever they do, there is a
//! clear error or correct data: no panic, no endless loop, no memory without bound. With checksums
//! on metadata more is asked: what is read without an error is what was written, also after work
//! on the damaged file system.
//!
//! Images are made by us in a simulation, and each case runs in one: the same seed, the same case.
//! `STEADFAST_SOAK` multiplies the number of cases.

mod damage;
mod exercise;
mod image;
mod limits;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use steadfast_block::rng::Rng;

use image::{Form, Population};

/// Cases of each of the images.
const CASES: u64 = 1000;

fn cases() -> u64 {
    let soak = std::env::var("STEADFAST_SOAK").ok().and_then(|s| s.parse().ok());
    CASES * soak.unwrap_or(1)
}

/// What became of the cases: that some of each kind exist shows that the flips matter.
#[derive(Default)]
struct Tally {
    refused: u64,
    with_errors: u64,
    without: u64,
}

fn run(form: Form, dirty: bool) {
    run_some(form, dirty, cases());
}

fn run_some(form: Form, dirty: bool, cases: u64) {
    let population = Population::make(form, dirty);
    let mut tally = Tally::default();
    for case in 0..cases {
        let mut rng = Rng::new(case << 3 | (form as u64) << 1 | u64::from(dirty));
        let (store, damage) = damage::inflict(&population, &mut rng);
        let what = format!("{form:?}, dirty: {dirty}, case {case}: {damage}");
        let watched = limits::Case::begin(&what);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            exercise::run(&population, store, damage.in_the_log, case)
        }));
        let peak_bytes = watched.end();
        let outcome = outcome.unwrap_or_else(|panic| {
            limits::say(&what);
            resume_unwind(panic)
        });
        assert!(peak_bytes < limits::MEMORY_BYTES_MAX, "{what}: took {peak_bytes} bytes");
        assert!(outcome.wrong.is_empty(), "{what}: {}", outcome.wrong.join("; "));
        match (outcome.mounted, outcome.errors) {
            (false, _) => tally.refused += 1,
            (true, 0) => tally.without += 1,
            (true, _) => tally.with_errors += 1,
        }
    }
    let Tally { refused, with_errors, without } = tally;
    let seen = [refused, with_errors, without].iter().all(|n| n * 50 > cases);
    assert!(seen, "refused {refused}, with errors {with_errors}, without {without}");
}

#[test]
fn with_checksums() {
    run(Form::Checksums, false);
}

#[test]
fn with_checksums_and_a_log_to_replay() {
    run(Form::Checksums, true);
}

#[test]
fn without_checksums() {
    run(Form::Plain, false);
}

#[test]
fn without_checksums_and_a_log_to_replay() {
    run(Form::Plain, true);
}

#[test]
fn block_maps_and_a_log_to_replay() {
    run(Form::BlockMaps, true);
}

#[test]
fn clusters() {
    run_some(Form::Clusters, false, cases() / 4);
}
