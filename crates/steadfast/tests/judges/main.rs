//! The mount and its judges: POSIX cases compared with the kernel's ext4, random operations with a
//! model in every data mode, real programs. As root, with loop devices and FUSE.

use std::path::{Path, PathBuf};

use steadfast_suite::conformance::{KnownDifferences, cases, compare, run_cases};
use steadfast_suite::programs::PROGRAMS;
use steadfast_suite::stress::Stress;
use steadfast_suite::traps::{Sides, TRAPS, documented};
use steadfast_suite::{Journal, Setup, Target, TargetKind};

fn steadfast() -> TargetKind {
    TargetKind::Steadfast(PathBuf::from(env!("CARGO_BIN_EXE_steadfast")))
}

fn soak() -> u64 {
    std::env::var("STEADFAST_SOAK").ok().and_then(|f| f.parse().ok()).unwrap_or(1)
}

/// Panics unless e2fsck finds nothing.
fn done(mut target: Target) {
    target.unmount().unwrap();
    assert_eq!(target.check().unwrap(), None);
}

#[test]
fn posix_cases_give_what_the_kernels_ext4_gives() {
    let cases = cases().unwrap();
    let [kernel, ours] = [TargetKind::Kernel, steadfast()].map(|kind| {
        let target = Target::new(kind, &Setup::new(512 << 20)).unwrap();
        let transcripts = run_cases(&target, &cases, &mut |_| ()).unwrap();
        done(target);
        transcripts
    });
    let known = KnownDifferences::of("steadfast").unwrap();
    let found = compare(&kernel, &ours, &known);
    let faults: Vec<_> = found.faults().collect();
    assert!(faults.is_empty(), "{} differ: {faults:#?}", faults.len());
}

fn random_operations(mode: &str) {
    for (journal, operations) in [(Journal::Internal, 10_000), (Journal::External, 4_000)] {
        let mut setup = Setup::new(512 << 20);
        setup.options = format!("data={mode}");
        setup.journal = journal;
        // Temporary files may be in memory, where a journal of its own is refused.
        setup.folder = (journal == Journal::External).then(|| PathBuf::from("/var/tmp"));
        let mut target = Target::new(steadfast(), &setup).unwrap();
        let stress = Stress::new(operations * soak(), 11);
        let report = stress.run(&mut target, &mut |_| ()).unwrap();
        assert_eq!(report.refused_for_no_reason(&steadfast()), [""; 0]);
    }
}

#[test]
fn random_operations_writeback() {
    random_operations("writeback");
}

#[test]
fn random_operations_ordered() {
    random_operations("ordered");
}

#[test]
fn random_operations_journal() {
    random_operations("journal");
}

#[test]
fn random_operations_transact() {
    random_operations("transact");
}

#[test]
fn real_programs() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).unwrap();
    for (i, (name, program)) in PROGRAMS.iter().enumerate() {
        let mut setup = Setup::new(1 << 30);
        // Each program meets another mode than its neighbour; `cargo xtask programs` does all.
        let mode = ["ordered", "journal", "writeback", "transact"][i % 4];
        setup.options = format!("data={mode}");
        let target = Target::new(steadfast(), &setup).unwrap();
        if let Err(error) = program(&target.mountpoint(), workspace) {
            panic!("{name}, data={mode}: {error}");
        }
        done(target);
    }
}

/// What docs/external-journals.md says of the traps of external journals is what happens.
#[test]
fn external_journals_do_not_bite() {
    let document = include_str!("../../../../docs/external-journals.md");
    for trap in TRAPS {
        let row = trap.run(Path::new(env!("CARGO_BIN_EXE_steadfast")), Sides::Ours).unwrap();
        assert!(row.ours.outcome.is_good(), "{row:?}");
        assert_eq!(documented(document, row.trap), Some(row.ours.cell().as_str()), "{}", row.trap);
    }
}
