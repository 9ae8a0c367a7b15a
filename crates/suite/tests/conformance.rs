//! The cases are well-formed, many, and give the same on two runs of the kernel's ext4: a case that
//! depends on chance would be a false alarm later. As root, with loop devices.

use steadfast_suite::conformance::{KnownDifferences, cases, compare, run_cases};
use steadfast_suite::{Setup, Target, TargetKind};

#[test]
fn the_kernel_agrees_with_itself() {
    let cases = cases().unwrap();
    assert!(cases.len() >= 300, "{} cases", cases.len());
    let mut transcripts = Vec::new();
    for size in [512, 512] {
        let mut target = Target::new(TargetKind::Kernel, &Setup::new(size << 20)).unwrap();
        transcripts.push(run_cases(&target, &cases, &mut |_| ()).unwrap());
        target.unmount().unwrap();
        assert_eq!(target.check().unwrap(), None);
    }
    let known = KnownDifferences::of("kernel").unwrap();
    let found = compare(&transcripts[0], &transcripts[1], &known);
    let faults: Vec<_> = found.faults().collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
