//! The corpus of named workloads on the kernel's file systems.

use steadfast_crash::corpus::{KNOWN, Plan, Subject, try_out};
use steadfast_crash::cuts::{Bound, Places};
use steadfast_peers::{InCorpus, KernelFs};

/// Few states: the kernel takes a hundred times as long to recover.
fn plan() -> Plan {
    let bound = Bound { states: 4, combinations: 4, drawn: 1 };
    Plan { places: Places::Flushes, bound, seed: 1 }
}

#[test]
fn no_known_bug_is_in_the_kernels_ext4() {
    let subject = match InCorpus::new(KernelFs::Ext4) {
        Ok(subject) => subject,
        Err(why) => {
            println!("SKIPPED: {why}");
            return;
        }
    };
    let (mut states, mut failed) = (0, Vec::new());
    for known in &KNOWN {
        let begun = std::time::Instant::now();
        let outcome = try_out(&subject, &known.workload(), plan()).unwrap();
        println!("{} {} {:?} {:?}", known.name, outcome.states, outcome.first, begun.elapsed());
        states += outcome.states;
        if let Some((state, wrong)) = outcome.first {
            failed.push(format!("{}: state {state}: {wrong:?}", known.name));
        }
    }
    assert!(failed.is_empty(), "{}: {failed:#?}", subject.name());
    assert!(states > 60, "{states}");
}
