//! Mixed metadata and data under power cuts, in every data mode, on internal and external
//! journals: no promise broken, no damage by our check and by e2fsck.
//!
//! A quick part runs always. `STEADFAST_SOAK=N` cuts N times as often (`cargo xtask soak`), and a
//! table is printed with `--nocapture`.

// The table is for people who run a soak.
#![allow(clippy::print_stdout)]

use std::io::Write;
use std::sync::Arc;

use steadfast_crash::e2fsck::E2fsck;
use steadfast_crash::explore::{CrashPoints, Plan, RebootTarget, SecondCuts, explore};
use steadfast_crash::figures::Figures;
use steadfast_crash::kernel::Kernel;
use steadfast_crash::opinion::Opinion;
use steadfast_ext4::DataMode;
use steadfast_selftest::mixed::{Case, Memory, MirrorDisk, MixedMachine, Setup};
use steadfast_vfs::{TransactMask, TransactPolicy};

/// Cuts of one recorded run.
const CUTS: u64 = 12;
/// States of each set-up that the kernel recovers too.
const KERNEL_MOUNTS: u64 = 40;
const DISK: u64 = 24 << 20;
const TASKS: usize = 3;
const OPERATIONS: usize = 70;
/// A run in data=ordered that once showed damage: a direct write within delayed data.
const FOUND: Option<u64> = Some(13 * 7919 + 1);

fn soak() -> u64 {
    std::env::var("STEADFAST_SOAK").ok().and_then(|v| v.parse().ok()).unwrap_or(1).max(1)
}

/// Says at once what was found: a soak goes on for hours. (The test harness holds back what is
/// printed by macros only.)
fn print_finding(name: &str, finding: &str) {
    let _ = writeln!(std::io::stderr(), "FOUND: {name}: {finding}");
}

/// Records runs of the set-up and cuts them.
fn explored(name: &str, setup: Setup) -> Figures {
    assert!(E2fsck::find().is_some(), "e2fsck is needed: apt-get install e2fsprogs");
    let machine = MixedMachine { setup, disk_bytes: DISK };
    let shared: Arc<dyn RebootTarget> = Arc::new(machine);
    let mut all = Figures::default();
    // Two mounts a run, until there are enough of them.
    let asked = |all: &Figures| all.count(|c| c.kernel.is_some());
    let rounds = (0..2 * soak()).map(|round| round * 7919 + 1);
    // The long run comes by it.
    let found = FOUND.filter(|_| setup.data == DataMode::Ordered && soak() == 1);
    for seed in rounds.chain(found) {
        let recorded = machine.record(seed, TASKS, OPERATIONS).unwrap_or_else(|e| panic!("{e}"));
        // The kernel cannot recover what a cut leaves of an asynchronous commit (not its own
        // either): a commit block whose blocks are missing is an error to it.
        // What a cut leaves of a mirror's disks is no file system.
        let mountable = !setup.async_commit && setup.mirror.is_none();
        let ask = asked(&all) < KERNEL_MOUNTS && mountable;
        let kernel_every = if ask { CUTS / 2 } else { 0 };
        let second = SecondCuts { percent: 25, ..SecondCuts::NONE };
        let trials = Plan::trials(CrashPoints::Spread(CUTS), seed);
        let plan = Plan { e2fsck_every: 1, second, kernel_every, ..trials };
        let figures = explore(&shared, recorded, &plan, &|_| ());
        let case = Case { setup, seed, tasks: TASKS, operations: OPERATIONS, plan };
        for finding in &figures.findings {
            let text = format!("{finding}: {}", case.command(None));
            if !setup.lying {
                print_finding(name, &text);
            }
            all.findings.push(text);
        }
        all.cuts.extend(figures.cuts);
    }
    let broken = all.sum(|c| c.broken_promises);
    let stale = all.sum(|c| c.stale_bytes);
    let damage = all.count(|c| !c.damage.is_empty());
    let judged = all.count(|c| c.e2fsck.as_ref().is_some_and(Opinion::is_given));
    let e2fsck = all.count(|c| matches!(c.e2fsck, Some(Opinion::Damaged(_))));
    let kernel = all.count(|c| matches!(c.kernel, Some(Opinion::Damaged(_))));
    println!(
        "{name:<34} {:>6} cuts  {broken} broken promises  {stale} stale  {damage} damaged  \
         {e2fsck} of {judged} by e2fsck  {kernel} of {} by the kernel's recovery",
        all.cuts.len(),
        asked(&all)
    );
    all
}

/// Cuts a set-up and expects that nothing is wrong.
fn cut(name: &str, setup: Setup) {
    if let Err(why) = Kernel::find() {
        println!("SKIPPED: {name}: recovery by the kernel: {why}");
    }
    let all = explored(name, setup);
    let wrong = all.count(|c| {
        // Here both must have answered: a test that could not be made has not passed.
        let refuted = c.e2fsck.iter().chain(&c.kernel).any(|opinion| *opinion != Opinion::Clean);
        c.broken_promises > 0 || c.stale_bytes > 0 || !c.damage.is_empty() || refuted
    });
    assert_eq!(wrong, 0, "{name}: {:#?} {:?}", all.findings, all.opinions_missing());
}

/// The test of the tests: they can fail.
#[test]
fn a_lying_cache_breaks_promises() {
    let all = explored("lying cache", Setup { lying: true, ..Setup::PLAIN });
    assert!(all.sum(|c| c.broken_promises) + all.count(|c| !c.damage.is_empty()) > 0);
}

#[test]
fn ordered_internal() {
    cut("ordered, internal", Setup::PLAIN);
}

#[test]
fn ordered_external() {
    cut("ordered, external", Setup { external: true, ..Setup::PLAIN });
}

#[test]
fn ordered_small_blocks_without_delayed_allocation() {
    let setup = Setup { block_size: 1024, delayed_allocation: false, ..Setup::PLAIN };
    cut("ordered, internal, 1 KiB, nodelalloc", setup);
}

#[test]
fn ordered_with_fast_commits() {
    cut("ordered, internal, fast commits", Setup { fast_commits: true, ..Setup::PLAIN });
}

#[test]
fn ordered_external_with_fast_commits() {
    let setup = Setup { external: true, delayed_allocation: false, ..Setup::PLAIN };
    let setup = Setup { block_size: 1024, fast_commits: true, ..setup };
    cut("ordered, external, 1 KiB, nodelalloc, fast", setup);
}

/// What leaves the memory at once and is read anew: inodes, names, blocks of metadata, pages.
#[test]
fn small_caches() {
    let small = Setup { small_caches: true, ..Setup::PLAIN };
    let fast = Setup { external: true, fast_commits: true, block_size: 1024, ..small };
    cut("ordered, external, 1 KiB, fast, small caches", fast);
    let lone = Setup { data: DataMode::Journal, lone_updates: true, block_size: 1024, ..small };
    cut("journal, internal, 1 KiB, lone updates, small caches", lone);
    let mask = TransactPolicy::default().mask;
    cut("transact, internal, small caches", Setup { small_caches: true, ..transact(mask) });
}

#[test]
fn writeback_internal() {
    cut("writeback, internal", Setup { data: DataMode::Writeback, ..Setup::PLAIN });
}

#[test]
fn writeback_external_async() {
    let setup = Setup { data: DataMode::Writeback, external: true, ..Setup::PLAIN };
    cut("writeback, external, async commit", Setup { async_commit: true, ..setup });
}

#[test]
fn journal_internal() {
    cut("journal, internal", Setup { data: DataMode::Journal, ..Setup::PLAIN });
}

#[test]
fn journal_external() {
    cut("journal, external", Setup { data: DataMode::Journal, external: true, ..Setup::PLAIN });
}

fn transact(points: TransactMask) -> Setup {
    Setup { data: DataMode::Transact, points: Some(points), ..Setup::PLAIN }
}

#[test]
fn transact_asked_for() {
    cut("transact, internal, by hand", transact(TransactMask::empty()));
}

#[test]
fn transact_external_by_fsync_and_rename() {
    let mask = TransactMask::FSYNC | TransactMask::RENAME | TransactMask::SYNC;
    cut("transact, external, fsync rename sync", Setup { external: true, ..transact(mask) });
}

#[test]
fn transact_small_blocks_by_default() {
    let mask = TransactPolicy::default().mask;
    cut("transact, internal, 1 KiB, default", Setup { block_size: 1024, ..transact(mask) });
}

fn mirrored(data: DataMode, memory: Memory, lost: Option<usize>) -> Setup {
    Setup { data, mirror: Some(MirrorDisk { memory, lost }), ..Setup::PLAIN }
}

/// Power cuts of a machine whose disk is a mirror; the legs hold the same after each.
#[test]
fn a_mirror_of_two_disks() {
    cut("ordered, mirror", mirrored(DataMode::Ordered, Memory::None, None));
}

/// One of the disks is lost with the power: what was flushed is on the other one, whichever it is.
#[test]
fn a_mirror_that_loses_a_disk_with_the_power() {
    for lost in [0, 1] {
        let name = format!("journal, mirror, disk {lost} lost");
        cut(&name, mirrored(DataMode::Journal, Memory::None, Some(lost)));
    }
}

/// Reads come from memory, which is blank after each cut, and which nobody waits for.
#[test]
fn a_mirror_with_memory_that_loses_a_disk_with_the_power() {
    for (memory, lost) in [(Memory::Whole, Some(0)), (Memory::Partial, Some(1))] {
        let name = format!("ordered, mirror with memory ({memory:?})");
        cut(&name, mirrored(DataMode::Ordered, memory, lost));
    }
    let setup = mirrored(DataMode::Transact, Memory::Partial, None);
    let points = Some(TransactPolicy::default().mask);
    cut("transact, mirror with memory (Partial)", Setup { points, ..setup });
}

/// The test of these tests: where the disk that stays ignores flushes, promises are broken.
#[test]
fn a_mirror_of_disks_that_ignore_flushes_breaks_promises() {
    let setup = mirrored(DataMode::Ordered, Memory::None, Some(0));
    let all = explored("mirror of lying disks", Setup { lying: true, ..setup });
    assert!(all.sum(|c| c.broken_promises) + all.count(|c| !c.damage.is_empty()) > 0);
}
