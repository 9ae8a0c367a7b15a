//! Random operations on the kernel's ext4: the model and the judge agree with it. As root.

use steadfast_suite::stress::Stress;
use steadfast_suite::{Journal, Setup, Target, TargetKind};

fn run(options: &str, journal: Journal, operations: u64) {
    let soak = std::env::var("STEADFAST_SOAK").ok().and_then(|f| f.parse().ok()).unwrap_or(1);
    let mut setup = Setup::new(512 << 20);
    setup.options = options.to_owned();
    setup.journal = journal;
    let mut target = Target::new(TargetKind::Kernel, &setup).unwrap();
    let report = Stress::new(operations * soak, 7).run(&mut target, &mut |_| ()).unwrap();
    assert!(report.operations >= operations);
    assert_eq!(report.refused.values().sum::<u64>(), 0, "{:?}", report.refused);
}

#[test]
fn the_kernel_with_its_journal_inside() {
    run("", Journal::Internal, 8000);
}

#[test]
fn the_kernel_with_its_journal_outside() {
    run("data=journal", Journal::External, 4000);
}
