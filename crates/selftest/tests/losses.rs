//! What becomes of a file system whose journal device is gone, of another time, or was without its
//! battery when the power returned: the mount is refused by name and nothing is written, or what
//! comes up is whole. And a journal on memory, where a cut keeps words and not sectors.

// For people who look at the figures.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_crash::explore::{
    BootedMachine, CrashPoints, CutSource, Plan, RebootTarget, SecondCuts, explore,
};
use steadfast_crash::figures::StateFigures;
use steadfast_devices::filter::record::{DeviceId, RecordLog, Recording};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::DataMode;
use steadfast_runtime::Sim;
use steadfast_selftest::losses::{Loss, lose};
use steadfast_selftest::mixed::{MixedMachine, Setup};
use steadfast_vfs::{NewNode, TransactPolicy};

const DISK: u64 = 24 << 20;
const TASKS: usize = 3;
const OPERATIONS: usize = 60;
/// Index of the journal's device.
const CARD: usize = 1;

const EXTERNAL: Setup = Setup { external: true, ..Setup::PLAIN };

fn modes() -> [(&'static str, Setup); 4] {
    let points = Some(TransactPolicy::default().mask);
    [
        ("writeback", Setup { data: DataMode::Writeback, ..EXTERNAL }),
        ("ordered", EXTERNAL),
        ("journal", Setup { data: DataMode::Journal, ..EXTERNAL }),
        ("transact", Setup { data: DataMode::Transact, points, ..EXTERNAL }),
    ]
}

fn cuts() -> u64 {
    let factor = std::env::var("STEADFAST_SOAK").ok().and_then(|f| f.parse().ok());
    4 * factor.unwrap_or(1u64)
}

fn recorded(setup: Setup, seed: u64) -> (MixedMachine, CutSource) {
    let machine = MixedMachine { setup, disk_bytes: DISK };
    let recorded = machine.record(seed, TASKS, OPERATIONS).unwrap();
    (machine, recorded)
}

/// Cuts the run at some ticks, and at each does to the card what `losses` says of the tick: one
/// after the other, so that what is wrong is seen when it happens; with whether it is damaged
/// without a word.
fn survey(
    setup: Setup,
    losses: impl Fn(u64, &mut Rng) -> Vec<Loss>,
) -> impl Iterator<Item = (StateFigures, bool)> {
    let (machine, recorded) = recorded(setup, 1);
    let without = MixedMachine { setup: Setup { external: false, ..setup }, ..machine };
    let machine: Arc<dyn RebootTarget> = Arc::new(machine);
    let without: Arc<dyn RebootTarget> = Arc::new(without);
    let (first, last) =
        (recorded.recording.first_crash_point(), recorded.recording.last_crash_point());
    let mut rng = Rng::new(7);
    let drawn = (0..cuts()).flat_map(move |number| {
        let tick = first + rng.below(last - first);
        losses(tick, &mut rng).into_iter().map(move |loss| (number, tick, loss))
    });
    drawn.map(move |(number, tick, loss)| {
        lose((&machine, &without), &recorded, tick, (CARD, loss), number)
    })
}

#[test]
fn an_absent_journal_is_refused_and_nothing_is_written() {
    for (name, setup) in modes() {
        for (outcome, is_silent) in survey(setup, |_, _| vec![Loss::Absent]) {
            let why = outcome.refused.as_ref().unwrap_or_else(|| panic!("{name}: {outcome:?}"));
            assert!(why.contains("its journal on another device"), "{name}: {outcome:?}");
            assert!(!is_silent, "{name}: {outcome:?}");
        }
    }
}

#[test]
fn a_journal_whose_battery_was_empty_is_refused_and_nothing_is_written() {
    for (name, setup) in modes() {
        for (outcome, is_silent) in survey(setup, |tick, _| vec![Loss::Zeros, Loss::Noise(tick)]) {
            let why = outcome.refused.as_ref().unwrap_or_else(|| panic!("{name}: {outcome:?}"));
            assert!(why.contains("card") && why.contains("not a journal"), "{name}: {outcome:?}");
            assert!(!is_silent, "{name}: {outcome:?}");
        }
    }
}

/// What is on the devices after a cut; nothing in doubt is there.
fn left(recording: &Recording, bases: &[Store], tick: u64) -> Vec<Store> {
    let of = |(base, device): (&Store, u32)| {
        recording.at(DeviceId(device), tick).contents_where(base, 0, |_, _| false)
    };
    bases.iter().zip(0..).map(of).collect()
}

/// Recovers, makes and keeps a folder, and loses power again, or is switched off properly.
fn used_again(machine: &MixedMachine, contents: Vec<Store>, properly: bool) -> Vec<Store> {
    let machine = *machine;
    let ran = Sim::new(1).run(move || {
        let log = RecordLog::new();
        let BootedMachine { fs, shut_down, .. } =
            machine.power_on(contents.clone(), Some(&log)).unwrap();
        fs.mkdir(fs.root(), b"later", NewNode { mode: 0o755, ..NewNode::default() }).unwrap();
        fs.sync().unwrap();
        if machine.setup.points.is_some() {
            fs.transact().unwrap();
        }
        let recording = log.take();
        drop(fs);
        let after = shut_down().unwrap();
        if properly { after } else { left(&recording, &contents, recording.last_crash_point()) }
    });
    ran.unwrap()
}

/// The card of an earlier mount is put back, full of transactions.
#[test]
fn a_journal_of_an_earlier_mount_never_reaches_the_disk() {
    for (name, setup) in modes() {
        let (machine, recorded) = recorded(setup, 1);
        let tick = recorded.recording.last_crash_point();
        let old = left(&recorded.recording, &recorded.bases, tick);
        for properly in [false, true] {
            let mut contents = used_again(&machine, old.clone(), properly);
            contents[CARD] = old[CARD].clone();
            let came_up = Sim::new(1).run(move || {
                let log = RecordLog::new();
                let booted = machine
                    .power_on(contents, Some(&log))
                    .map_err(|e| (e.to_string(), log.len()))?;
                let later = booted.fs.lookup(booted.fs.root(), b"later").map(drop);
                drop(booted.fs);
                Ok::<_, (String, usize)>((later, (booted.shut_down)().unwrap()))
            });
            match came_up.unwrap() {
                // The disk needs what its journal holds, and this one does not hold it.
                Err((why, changes)) => {
                    assert!(!properly && changes == 0, "{name}: {changes} changes: {why}");
                    assert!(why.contains("older than the file system"), "{name}: {why}");
                }
                // The disk holds everything: what the card has is thrown away.
                Ok((later, contents)) => {
                    assert!(properly && later.is_ok(), "{name}: {later:?}");
                    let disk: Arc<dyn BlockDevice> =
                        Arc::new(Ram::from_store("disk", contents[0].clone()));
                    let report = steadfast_ext4_check::check(&disk, None).unwrap();
                    assert!(report.findings.is_empty(), "{name}: {:?}", report.findings);
                }
            }
        }
    }
}

/// The card as it was earlier in the same mount, while checkpoints come all the time. What the disk
/// is ahead of is refused by name; what is mounted is whole, and lacks what was promised since.
#[test]
fn a_journal_put_back_within_its_mount_damages_nothing() {
    let mut refused = 0;
    for (name, setup) in modes() {
        for churn in [false, true] {
            let setup = Setup { checkpoint_percent: 2, churn, ..setup };
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            let put_back = |tick: u64, rng: &mut Rng| {
                // Long ago, and lately.
                let late = tick - rng.below(tick.clamp(1, 400));
                vec![Loss::Stale(rng.below(tick.max(1))), Loss::Stale(late)]
            };
            for (outcome, is_silent) in survey(setup, put_back) {
                assert!(!is_silent, "{name}: {outcome:?}");
                let what = match &outcome.refused {
                    Some(why) => {
                        assert!(why.contains("older than the file system"), "{name}: {outcome:?}");
                        "refused"
                    }
                    None if outcome.broken_promises > 0 => "whole, promises broken",
                    None => "whole, nothing lost",
                };
                *counts.entry(what).or_default() += 1;
            }
            println!("FIGURES: journal put back, data={name}, churn {churn}: {counts:?}");
            refused += counts.get("refused").copied().unwrap_or(0);
        }
    }
    assert!(refused > 8, "{refused}");
}

/// Cuts a run around its boundaries: none may be wrong.
fn all_is_well(name: &str, setup: Setup, plan: &Plan) {
    let (machine, recorded) = recorded(setup, plan.seed);
    let machine: Arc<dyn RebootTarget> = Arc::new(machine);
    let figures = explore(&machine, recorded, plan, &|_| ());
    let wrong = figures
        .count(|cut| cut.broken_promises > 0 || cut.stale_bytes > 0 || !cut.damage.is_empty());
    assert_eq!(wrong, 0, "{name}: {:#?}", figures.findings);
}

/// The power fails while the mark is written, and while a recovery that writes it is under way.
#[test]
fn a_cut_beside_the_mark_loses_nothing() {
    for (name, setup) in modes() {
        let setup = Setup { checkpoint_percent: 2, churn: true, ..setup };
        let second = SecondCuts { percent: 50, ..SecondCuts::NONE };
        let trials = Plan::trials(CrashPoints::Boundaries(10 * cuts()), 5);
        let plan = Plan { e2fsck_every: 10, second, ..trials };
        all_is_well(name, setup, &plan);
    }
}

/// The control: without a loss the same cuts are all well.
#[test]
fn a_journal_that_is_there_recovers() {
    for (name, setup) in modes() {
        for (outcome, is_silent) in survey(setup, |_, _| vec![Loss::None]) {
            let StateFigures { broken_promises, refused, .. } = &outcome;
            assert_eq!((refused, *broken_promises), (&None, 0), "{name}: {outcome:?}");
            assert!(!is_silent, "{name}: {outcome:?}");
        }
    }
}

#[test]
fn a_journal_on_memory_tears_words_and_keeps_its_promises() {
    for (name, setup) in modes() {
        let setup = Setup { memory_journal: true, ..setup };
        let second = SecondCuts { percent: 25, ..SecondCuts::NONE };
        let plan = Plan { second, ..Plan::trials(CrashPoints::Boundaries(8 * cuts()), 3) };
        all_is_well(name, setup, &plan);
    }
}
