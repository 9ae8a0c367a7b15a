//! Judging once what recovery cannot distinguish shows the same as judging each state: word by
//! word, on the smallest workloads in all kinds of set-ups.
//!
//! Always: of one operation, with a small bound. With `STEADFAST_SOAK`: of up to two, cuts
//! exhausted up to 256 states each (of memory, whose words tear, up to 64). That a pruning which
//! forgets something is found, the tests beside it say (`src/small/prune/tests.rs`). Figures are
//! printed with `--nocapture`.

// The figures are for people who run a soak.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use steadfast_crash::explore::Plan;
use steadfast_crash::states::StateBound;
use steadfast_ext4::DataMode;
use steadfast_selftest::mixed::Setup;
use steadfast_selftest::small::{Sequence, SmallMachine, explore_twice};
use steadfast_vfs::{TransactMask, TransactPolicy};

const SMALL: Setup = Setup { block_size: 1024, ..Setup::PLAIN };
const EXTERNAL: Setup = Setup { external: true, ..SMALL };
const MEMORY: Setup = Setup { memory_journal: true, ..EXTERNAL };
const IN_PLACE: Setup = Setup { dax: true, block_size: 4096, ..Setup::PLAIN };

fn agree(name: &str, setup: Setup) {
    let soak = std::env::var_os("STEADFAST_SOAK").is_some();
    // Of memory words are in doubt, of which a write has hundreds: each alone would take hours.
    let has_words = setup.memory_journal || setup.dax;
    let (longest, bound) = match (soak, has_words) {
        (true, false) => (2, StateBound::exhaustive(256, true, 16)),
        (true, true) => (2, StateBound::exhaustive(64, false, 64)),
        (false, _) => (1, StateBound::exhaustive(8, false, 1)),
    };
    let plan = Plan { bound, ..Plan::EVERYWHERE };
    let machine = SmallMachine::new(setup).unwrap_or_else(|e| panic!("{name}: {e}"));
    let no_clock = || Duration::ZERO;
    let twice = explore_twice(&machine, &Sequence::all(longest), (&plan, 0), &no_clock, &|_| ())
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    let a_minute = |used: Duration| twice.pruned.distinct as f64 / used.as_secs_f64() * 60.0;
    println!(
        "FIGURES: {name}: {} states agree, {} differ; {} pruned; {:.0} a minute, {:.0} unpruned",
        twice.agreed,
        twice.differing,
        twice.pruned.pruned,
        a_minute(twice.pruned_time.wall),
        a_minute(twice.unpruned_time.wall)
    );
    assert_eq!(twice.differing, 0, "{name}: {:#?}", twice.pruned.findings);
    assert_eq!(twice.agreed, twice.unpruned.distinct, "{name}");
    assert_eq!(twice.pruned.wrong() + twice.unpruned.wrong(), 0, "{name}: {}", twice.pruned);
    // It would agree with itself if nothing were pruned. Of words drawn by chance less is pruned
    // than of sectors.
    assert!(twice.pruned.pruned * 10 > twice.pruned.distinct, "{name}: {}", twice.pruned);
}

fn transact(on: Setup) -> Setup {
    let points: TransactMask = TransactPolicy::default().mask;
    Setup { data: DataMode::Transact, points: Some(points), ..on }
}

#[test]
fn pruned_ordered() {
    agree("ordered, internal", SMALL);
    agree("ordered, external", EXTERNAL);
}

#[test]
fn pruned_writeback() {
    agree("writeback, external", Setup { data: DataMode::Writeback, ..EXTERNAL });
}

#[test]
fn pruned_journal() {
    agree("journal, internal", Setup { data: DataMode::Journal, ..SMALL });
    agree("journal, external", Setup { data: DataMode::Journal, ..EXTERNAL });
}

#[test]
fn pruned_transact() {
    agree("transact, internal", transact(SMALL));
    agree("transact, external", transact(EXTERNAL));
}

#[test]
fn pruned_fast_commits() {
    agree("ordered, fast commits", Setup { fast_commits: true, ..SMALL });
    agree("ordered, memory, fast commits", Setup { fast_commits: true, ..MEMORY });
}

#[test]
fn pruned_on_memory() {
    agree("ordered, journal on memory", MEMORY);
    agree("in place", IN_PLACE);
    agree(
        "in place, external on memory",
        Setup { external: true, memory_journal: true, ..IN_PLACE },
    );
}

/// Findings must be pruned right too, not only their absence.
#[test]
fn pruned_with_findings() {
    let machine = SmallMachine::new(Setup { lying: true, ..SMALL }).unwrap();
    let bound = StateBound::exhaustive(8, false, 1);
    let plan = Plan { bound, ..Plan::EVERYWHERE };
    let with_promise = |s: &&Sequence| s.to_string().contains("fsync");
    let sequences: Vec<Sequence> =
        Sequence::all(2).iter().filter(with_promise).step_by(4).cloned().collect();
    let no_clock = || Duration::ZERO;
    let twice = explore_twice(&machine, &sequences, (&plan, 0), &no_clock, &|_| ()).unwrap();
    let (pruned, unpruned) = (&twice.pruned, &twice.unpruned);
    assert_eq!((twice.differing, twice.agreed), (0, pruned.distinct), "{pruned}");
    assert!(pruned.broken > 0 && pruned.damaged > 0 && pruned.pruned > 0, "{pruned}");
    assert_eq!((pruned.broken, pruned.damaged), (unpruned.broken, unpruned.damaged));
}
