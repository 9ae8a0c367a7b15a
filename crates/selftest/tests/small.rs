//! The smallest workloads, exhaustively, in every data mode, on internal and external journals:
//! no promise broken, no damage.
//!
//! Always: the parts of `small::quick`, with a small bound, and the set-ups of memory. With
//! `STEADFAST_SOAK` (`cargo xtask soak`): sequences of up to three operations in all set-ups, cuts
//! exhausted up to 256 states each. Figures are printed with `--nocapture`.

// The figures are for people who run a soak.
#![allow(clippy::print_stdout)]

use std::cell::Cell;
use std::io::Write;
use std::time::Instant;

use steadfast_crash::explore::{Plan, SecondCuts};
use steadfast_crash::states::StateBound;
use steadfast_ext4::DataMode;
use steadfast_selftest::mixed::Setup;
use steadfast_selftest::small::quick::{BOUND, EXTERNAL, Family, Part, SECOND_WHOLE_EVERY, SMALL};
use steadfast_selftest::small::{Sequence, SequenceReport, SmallMachine, explore};
use steadfast_vfs::{TransactMask, TransactPolicy};

/// The test of the tests: they can fail.
#[test]
fn small_a_lying_cache_is_found() {
    let machine = SmallMachine::new(Setup { lying: true, ..SMALL }).unwrap();
    let plan = Plan {
        bound: BOUND,
        second: SecondCuts { whole_every: SECOND_WHOLE_EVERY, ..SecondCuts::NONE },
        ..Plan::EVERYWHERE
    };
    let sequences = Sequence::all(2);
    let is_sync = |op: &str| op.trim() == "sync";
    let with_promise = |s: &&Sequence| s.to_string().split([':', ';']).any(is_sync);
    let with_promise = sequences.iter().filter(with_promise).cloned();
    let explored = explore(&machine, &with_promise.collect::<Vec<_>>(), &plan, &|_| ()).unwrap();
    assert!(explored.broken > 0 && explored.damaged > 0, "{explored}");
    assert!(!explored.findings.is_empty());
}

/// Says at once what was found: a soak goes on for hours. (The test harness holds back what is
/// printed by macros only.)
fn print_new(name: &str) -> impl Fn(&SequenceReport) {
    let printed = Cell::new(0);
    move |explored| {
        for finding in explored.findings.iter().skip(printed.get()) {
            let _ = writeln!(std::io::stderr(), "FOUND: {name}: {finding}");
        }
        printed.set(explored.findings.len());
    }
}

/// Explores a part; in a soak with the bound of one, and where the part is a set-up with the
/// shortest sequences, with those of up to three operations.
fn explored(name: &str) {
    let part = Part::named(name).unwrap_or_else(|| panic!("{name}: no such part"));
    let soak = std::env::var_os("STEADFAST_SOAK").is_some();
    let (plan, sequences) = match soak {
        true => (Part::soak_plan(), part.soak_sequences()),
        false => (Part::plan(1000), part.family.sequences()),
    };
    let begun = Instant::now();
    let machine = part.machine().unwrap_or_else(|e| panic!("{name}: {e}"));
    let explored = explore(&machine, &sequences, &plan, &print_new(name))
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    println!("FIGURES: {name}: {explored}, {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(explored.wrong(), 0, "{name}: {:#?}", explored.findings);
}

/// A test for each part.
macro_rules! parts {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                explored($name);
            }
        )*

        /// No part is left out.
        #[test]
        fn small_every_part_has_a_test() {
            let tested = [$($name),*];
            for part in Part::all() {
                assert!(tested.contains(&part.name), "{}", part.name);
            }
        }
    };
}

parts! {
    small_ordered_external_durable: "ordered, external, durable",
    small_ordered_external_fast_commits_durable: "ordered, external, fast commits, durable",
    small_ordered_internal_fast_commits_durable: "ordered, internal, fast commits, durable",
    small_journal_internal_durable: "journal, internal, durable",
    small_writeback_internal_durable: "writeback, internal, durable",
    small_writeback_external_durable: "writeback, external, durable",
    small_transact_internal_default_points_durable: "transact, internal, default points, durable",
    small_transact_external_default_points_durable: "transact, external, default points, durable",
    small_transact_internal_points_when_asked_durable:
        "transact, internal, points when asked, durable",
    small_transact_external_points_when_asked_durable:
        "transact, external, points when asked, durable",
    small_ordered_internal_there_and_back: "ordered, internal, there and back",
    small_transact_internal_there_and_back: "transact, internal, there and back",
    small_journal_internal_going_round: "journal, internal, going round",
    small_ordered_external_data: "ordered, external, data",
    small_journal_internal_data_in_steps: "journal, internal, data in steps",
    small_ordered_external_names_in_steps: "ordered, external, names in steps",
    small_ordered_external_fast_commits_in_steps: "ordered, external, fast commits, in steps",
    small_ordered_external_forgotten: "ordered, external, small caches, forgotten",
    small_ordered_internal_fast_commits_forgotten:
        "ordered, internal, fast commits, small caches, forgotten",
    small_journal_internal_in_several_transactions:
        "journal, internal, lone updates, in several transactions",
    small_ordered_external_inline: "ordered, external, inline",
    small_journal_internal_inline: "journal, internal, inline",
    small_journal_external_inline: "journal, external, inline",
    small_ordered_internal_inline: "ordered, internal, inline",
    small_writeback_internal_inline: "writeback, internal, inline",
    small_writeback_external_inline: "writeback, external, inline",
    small_transact_internal_inline: "transact, internal, inline",
    small_transact_external_inline: "transact, external, inline",
    small_ordered_internal_two_operations: "ordered, internal, two operations",
    small_journal_external_two_operations: "journal, external, two operations",
}

/// What is explored without a soak where a cut keeps words and so leaves more states: an operation,
/// and an operation and what makes it durable. Where fast commits are, only what one can be made
/// of; where files are used in place, only data and what makes it durable.
fn on_memory_quick(setup: &Setup) -> Vec<Sequence> {
    let is_needed = |s: &Sequence| {
        let text = s.to_string();
        match (setup.fast_commits, setup.dax) {
            (true, _) => text.contains("fsync "),
            (false, true) => s.len() == 1 || text.contains(": write "),
            (false, false) => true,
        }
    };
    Family::Durable.sequences().into_iter().filter(is_needed).collect()
}

/// The journal is on memory, where a cut keeps any words: whole writes and, of words, some drawn.
fn on_memory(name: &str, setup: Setup) {
    let setup = Setup { memory_journal: setup.external, ..setup };
    let soak = std::env::var_os("STEADFAST_SOAK").is_some();
    let (sequences, random) =
        if soak { (Sequence::all(2), 64) } else { (on_memory_quick(&setup), 4) };
    let exhaustive = if soak { 64 } else { 16 };
    let bound = StateBound::exhaustive(exhaustive, false, random);
    let plan = Plan {
        bound,
        e2fsck_every: 1000,
        second: SecondCuts { every: 50, whole_every: SECOND_WHOLE_EVERY, ..SecondCuts::NONE },
        ..Plan::EVERYWHERE
    };
    let begun = Instant::now();
    let machine = SmallMachine::new(setup).unwrap_or_else(|e| panic!("{name}: {e}"));
    let explored = explore(&machine, &sequences, &plan, &print_new(name))
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    println!("FIGURES: {name}: {explored}, {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(explored.wrong(), 0, "{name}: {:#?}", explored.findings);
}

#[test]
fn small_ordered_on_memory() {
    on_memory("ordered, journal on memory", EXTERNAL);
}

#[test]
fn small_ordered_on_memory_fast_commits() {
    let setup = Setup { fast_commits: true, ..EXTERNAL };
    on_memory("ordered, journal on memory, fast commits", setup);
}

#[test]
fn small_writeback_on_memory() {
    on_memory("writeback, journal on memory", Setup { data: DataMode::Writeback, ..EXTERNAL });
}

#[test]
fn small_writeback_on_memory_fast_commits() {
    let setup = Setup { data: DataMode::Writeback, fast_commits: true, ..EXTERNAL };
    on_memory("writeback, journal on memory, fast commits", setup);
}

#[test]
fn small_journal_on_memory() {
    on_memory("journal, journal on memory", Setup { data: DataMode::Journal, ..EXTERNAL });
}

#[test]
fn small_transact_on_memory() {
    let setup = transact(EXTERNAL, TransactPolicy::default().mask);
    on_memory("transact, journal on memory, default points", setup);
}

#[test]
fn small_transact_on_memory_when_asked() {
    let setup = transact(EXTERNAL, TransactMask::FSYNC | TransactMask::SYNC);
    on_memory("transact, journal on memory, points by fsync and sync", setup);
}

/// The disk is memory and files are used in place.
const IN_PLACE: Setup = Setup { dax: true, block_size: 4096, ..Setup::PLAIN };

/// No data that is used in place waits for a transaction, so data=writeback leaves the same states:
/// it is explored in a soak only.
fn in_place(name: &str, setup: Setup) {
    on_memory(name, setup);
    if std::env::var_os("STEADFAST_SOAK").is_some() {
        let setup = Setup { data: DataMode::Writeback, ..setup };
        on_memory(&format!("{name}, writeback"), setup);
    }
}

#[test]
fn small_in_place_internal() {
    in_place("in place, internal", IN_PLACE);
}

#[test]
fn small_in_place_external() {
    let setup = Setup { external: true, ..IN_PLACE };
    in_place("in place, external on memory", setup);
}

#[test]
fn small_in_place_fast_commits() {
    in_place("in place, fast commits", Setup { fast_commits: true, ..IN_PLACE });
}

#[test]
fn small_in_place_external_fast_commits() {
    let setup = Setup { external: true, fast_commits: true, ..IN_PLACE };
    in_place("in place, external on memory, fast commits", setup);
}

/// The disk is memory, and files go through the page cache: their data is in the log.
const LOGGED: Setup = Setup { data: DataMode::Journal, ..IN_PLACE };

#[test]
fn small_memory_journal_internal() {
    on_memory("disk of memory, journal, internal", LOGGED);
}

#[test]
fn small_memory_journal_external() {
    on_memory("disk of memory, journal, external on memory", Setup { external: true, ..LOGGED });
}

#[test]
fn small_memory_transact_internal() {
    let setup = transact(IN_PLACE, TransactPolicy::default().mask);
    on_memory("disk of memory, transact, internal, default points", setup);
}

#[test]
fn small_memory_transact_external() {
    let setup = transact(IN_PLACE, TransactPolicy::default().mask);
    let setup = Setup { external: true, ..setup };
    on_memory("disk of memory, transact, external on memory, default points", setup);
}

#[test]
fn small_memory_transact_internal_when_asked() {
    let setup = transact(IN_PLACE, TransactMask::FSYNC | TransactMask::SYNC);
    on_memory("disk of memory, transact, internal, points by fsync and sync", setup);
}

fn transact(on: Setup, points: TransactMask) -> Setup {
    Setup { data: DataMode::Transact, points: Some(points), ..on }
}
