//! Mutated images, and the program's own commands on each of them: an image may come from anybody.
//!
//! Sixteen kinds of file systems, made by mke2fs with a tree in them. A case changes one to four
//! places of one of them and runs check, info, ls, get, replay, rm, put and a mount. Whatever the
//! image holds: no panic, no signal, no command over [`run::CPU_SECONDS_MAX`] seconds of processor
//! time, none over [`run::PEAK_KIB_MAX`], nothing written outside of the folder that was asked
//! for, and what `check` and e2fsck find clean is clean after it was changed.
//!
//! `STEADFAST_SOAK` multiplies the number of cases. A finding is printed when it happens, with the
//! image that led to it.

mod features;
mod mutation;
mod outside;
mod run;
mod steps;

use std::io::Write;

use features::{KINDS, Kind};
use steadfast_block::rng::Rng;

/// Cases of each kind: 16 times this many in all.
const CASES: u64 = 19;

fn cases() -> u64 {
    let soak = std::env::var("STEADFAST_SOAK").ok().and_then(|s| s.parse().ok());
    CASES * soak.unwrap_or(1)
}

/// What became of the cases.
#[derive(Debug, Default)]
struct Tally {
    cases: u64,
    /// Found damaged, or not supported, by `check`.
    not_clean: u64,
    /// Clean to both `check` and e2fsck, so that the work on them is judged too.
    judged: u64,
    /// Clean to `check`, not to e2fsck.
    unseen: u64,
    mounted: u64,
}

/// All cases of some kinds; panics at the end if there were findings.
#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
fn run_kinds(numbers: std::ops::Range<usize>) {
    if !run::is_possible() {
        println!("SKIPPED: needs root, /dev/fuse and time(1)");
        return;
    }
    let (mut tally, mut findings) = (Tally::default(), 0);
    for number in numbers {
        let kind = &KINDS[number];
        findings += run_kind(number, kind, &mut tally);
    }
    say(&format!("{tally:?}"));
    assert_eq!(findings, 0, "see the lines above");
    // The mutations matter, and not all of them so much that nothing else is tried.
    assert!(tally.not_clean * 10 > tally.cases, "{tally:?}");
    assert!(tally.mounted * 10 > tally.cases, "{tally:?}");
}

fn run_kind(number: usize, kind: &Kind, tally: &mut Tally) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let whole = features::make(kind, folder.path());
    let mut findings = 0;
    for case in 0..cases() {
        let mut rng = Rng::new((number as u64) << 32 | case);
        let mut image = whole.clone();
        let changes = mutation::mutate(&mut image, &mut rng);
        let bench = outside::Bench::new(&image);
        let seen = steps::all(&bench, tally);
        tally.cases += 1;
        for finding in &seen {
            findings += 1;
            let kept = std::env::temp_dir().join(format!("steadfast-{number}-{case}.img"));
            let _ = std::fs::write(&kept, &image);
            let kept = kept.display();
            say(&format!("{}, case {case} ({changes}): {finding}\n    {kept}", kind.name));
        }
    }
    findings
}

/// Past the capture of the test's output.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[test]
fn block_maps_and_old_revisions() {
    run_kinds(0..4);
}

#[test]
fn extents_and_clusters() {
    run_kinds(4..8);
}

#[test]
fn checksums_and_quotas() {
    run_kinds(8..12);
}

#[test]
fn layouts_and_logs() {
    run_kinds(12..16);
}
