//! The corpus of named workloads on the kernel's file systems.

#![allow(clippy::print_stdout, reason = "a skipped test says why; figures are for people")]

use steadfast_crash::explore::Plan;
use steadfast_crash::states::{CrashPoints, StateBound};
use steadfast_peers::KernelFs;
use steadfast_selftest::corpus::{InCorpus, KNOWN, Subject, try_out};

/// Few states: the kernel takes a hundred times as long to recover.
fn plan() -> Plan {
    let bound = StateBound { states: 4, combinations: 4, drawn: 1, ..StateBound::default() };
    Plan { places: CrashPoints::Flushes, bound, use_it: true, ..Plan::EVERYWHERE }
}

/// `STEADFAST_SOAK`: above 1 all known bugs.
fn soaks() -> bool {
    std::env::var("STEADFAST_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(1u32) > 1
}

/// One in five of the known bugs on the kernel's ext4; the soak runs all, on XFS too.
/// (btrfs fails generic/321: README.md.)
#[test]
fn no_known_bug_is_in_the_kernel() {
    let (kinds, every): (&[KernelFs], usize) = match soaks() {
        true => (&[KernelFs::Ext4, KernelFs::Xfs], 1),
        false => (&[KernelFs::Ext4], 5),
    };
    for kind in kinds {
        let subject = match InCorpus::new(*kind) {
            Ok(subject) => subject,
            Err(why) => {
                println!("SKIPPED: {why}");
                continue;
            }
        };
        let (mut states, mut failed) = (0, Vec::new());
        for known in KNOWN.iter().step_by(every) {
            let outcome = try_out(&subject, &known.workload(), &plan()).unwrap();
            states += outcome.states;
            if let Some((state, wrong)) = outcome.first {
                failed.push(format!("{}: state {state}: {wrong:?}", known.name));
            }
        }
        println!("{}: {states} states", subject.name());
        assert!(failed.is_empty(), "{}: {failed:#?}", subject.name());
        assert!(states > 20, "{states}");
    }
}
