//! The corpus of named workloads on our own file systems.

use std::time::Duration;

use steadfast_crash::corpus::{KNOWN, Own, OwnKind, Plan, Subject, ace, try_out};
use steadfast_crash::cuts::{Bound, Places};
use steadfast_ext4::{DataMode, MountOptions};

fn plan() -> Plan {
    let bound = Bound { states: 24, combinations: 16, drawn: 4 };
    Plan { places: Places::Flushes, bound, seed: 1 }
}

fn own(name: &str, options: MountOptions) -> Own {
    Own::new(name, OwnKind::Ext4, options, Duration::ZERO).unwrap()
}

/// What failed: workload and what was wrong first.
fn known_on(subject: &dyn Subject) -> (u64, Vec<String>) {
    let (mut states, mut failed) = (0, Vec::new());
    for known in &KNOWN {
        let outcome = try_out(subject, &known.workload(), plan()).unwrap();
        assert_eq!(outcome.refused, 0, "{}", known.name);
        states += outcome.states;
        if let Some((state, wrong)) = outcome.first {
            failed.push(format!("{}: state {state}: {wrong:?}", known.name));
        }
    }
    (states, failed)
}

#[test]
fn no_known_bug_is_ours() {
    for data in [DataMode::Ordered, DataMode::Journal] {
        let options = MountOptions { data, ..MountOptions::default() };
        let (states, failed) = known_on(&own("ext4", options));
        assert!(failed.is_empty(), "{data:?}: {failed:#?}");
        println!("{data:?}: {states} states");
        assert!(states > 200, "{states}");
    }
}

#[test]
fn a_drive_that_ignores_flushes_fails_nearly_all() {
    let lying = own("ext4", MountOptions::default()).on_a_lying_disk();
    let (_, failed) = known_on(&lying);
    println!("{failed:#?}");
    assert!(failed.len() >= 24, "{failed:#?}");
}

#[test]
fn one_operation_on_ours() {
    let subject = own("ext4", MountOptions::default());
    let (mut states, mut refused) = (0, 0);
    for workload in ace::seq1() {
        let outcome = try_out(&subject, &workload, plan()).unwrap();
        assert_eq!(outcome.first, None, "{workload}");
        states += outcome.states;
        refused += outcome.refused;
    }
    println!("{states} states, {refused} refused");
}
