//! data=transact under power cuts: whatever the instant and whatever the devices' caches lose,
//! what is left is exactly the last transaction point, also where the kernel replays the journal,
//! and e2fsck finds nothing wrong with it.

// A skipped test says why.
#![allow(clippy::print_stdout)]

mod cut;
mod machine;
mod workload;

use machine::Setup;

const PLAIN: Setup = Setup { external: false, block_size: 4096, block_maps: false, lying: false };

/// Ten times as many where there is time.
fn cuts(quick: u64) -> u64 {
    if std::env::var_os("STEADFAST_SOAK").is_some() { quick * 10 } else { quick }
}

#[test]
fn one_task() {
    cut::explore_points(PLAIN, 1, cuts(150));
}

#[test]
fn one_task_on_small_blocks() {
    cut::explore_points(Setup { block_size: 1024, ..PLAIN }, 2, cuts(100));
}

#[test]
fn one_task_on_an_external_journal() {
    cut::explore_points(Setup { external: true, ..PLAIN }, 3, cuts(150));
}

#[test]
fn one_task_on_block_maps() {
    cut::explore_points(Setup { block_maps: true, block_size: 1024, ..PLAIN }, 8, cuts(60));
}

#[test]
fn several_tasks() {
    cut::explore_tasks(PLAIN, 4, cuts(100));
}

#[test]
fn several_tasks_on_an_external_journal() {
    cut::explore_tasks(Setup { external: true, block_size: 1024, ..PLAIN }, 5, cuts(100));
}

/// The test of the tests: they can fail.
#[test]
#[should_panic]
fn a_lying_cache_breaks_the_promise() {
    cut::explore_points(Setup { lying: true, ..PLAIN }, 6, 60);
}
