//! A sector namespace keeps its promises whatever a power cut leaves of the memory below.

// For people who look at what was tried.
#![allow(clippy::print_stdout)]

mod btt_cuts;

use btt_cuts::every::{Run, Tally, explore};
use btt_cuts::{Op, write};
use steadfast_devices::filter::btt::planted::Planted;

/// How many times as many cases as usual.
fn soak() -> u64 {
    std::env::var("STEADFAST_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

fn explored(run: &Run, tally: &mut Tally) {
    explore(run, Planted::default(), tally).unwrap();
}

/// All orders in which two sectors can be written `len` times.
fn orders(len: usize) -> impl Iterator<Item = Vec<Op>> {
    (0..1 << len)
        .map(move |bits: u64| (0..len).map(|n| write(bits >> n & 1, n as u8 + 11)).collect())
}

/// Every cut of every order of two or three writes to two sectors, and all that it may leave: each
/// sector is old or new, never torn, and new if the write was answered.
#[test]
fn all_that_a_cut_may_leave_is_old_or_new() {
    let befores: [&[Op]; 3] =
        [&[], &[write(0, 1)], &[write(0, 1), write(1, 2), write(0, 3), write(0, 4), write(1, 5)]];
    let mut tally = Tally::default();
    for before in befores {
        for nfree in [1, 2] {
            // Three writes for each are a minute: some in every run, all of them in a soak.
            let len = if soak() > 1 || (before.len(), nfree) == (5, 2) { 3 } else { 2 };
            for ops in (1..=len).flat_map(orders) {
                explored(&Run { sector: 512, nfree, before, ops: &ops }, &mut tally);
            }
        }
    }
    println!("FIGURES: {tally:?}");
    assert!(tally.recovered > 100 && tally.again > 100, "{tally:?}");
}

#[test]
fn sectors_of_4096_bytes_and_several_at_once() {
    let two = |version| Op { sector: 0, count: 2, version };
    let runs: [&[Op]; 3] = [&[write(0, 1), write(0, 2)], &[two(1), write(1, 2)], &[two(1), two(2)]];
    for ops in runs {
        let before = [two(9)];
        explored(&Run { sector: 4096, nfree: 2, before: &before, ops }, &mut Tally::default());
    }
}

#[test]
fn discards_leave_what_was_there_or_zeros() {
    let discard = |sector, count| Op { sector, count, version: 0 };
    let runs: [&[Op]; 4] = [
        &[discard(0, 2)],
        &[write(0, 2), discard(0, 1)],
        &[discard(0, 2), write(0, 2)],
        &[write(1, 2), discard(0, 2), write(1, 3)],
    ];
    for nfree in [1, 2] {
        for ops in runs {
            let before = [write(0, 7), write(1, 8)];
            explored(&Run { sector: 4096, nfree, before: &before, ops }, &mut Tally::default());
        }
    }
}

#[test]
fn several_tasks_that_write_and_read() {
    for seed in 0..60 * soak() {
        btt_cuts::some::run(seed, Planted::default()).unwrap();
    }
}
