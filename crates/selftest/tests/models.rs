//! The models of file systems allow everything that the file systems leave.

#![allow(clippy::print_stdout, reason = "a skipped test says why; figures are for people")]

use std::time::Duration;

use steadfast_crash::explore::Plan;
use steadfast_crash::persistence::Model;
use steadfast_crash::states::{CrashPoints, StateBound};
use steadfast_devices::filter::record::Media;
use steadfast_ext4::{DataMode, MountOptions};
use steadfast_peers::KernelFs;
use steadfast_selftest::corpus::{
    ForbiddenStates, InCorpus, KNOWN, Own, OwnKind, Subject, Workload, ace, by_models, try_out_by,
};

/// Every so many of the sequences of one and of two operations; the soak takes more.
const EVERY: (usize, usize) = (4, 4000);
const EVERY_SOAKED: (usize, usize) = (1, 100);
/// It has thousands of names.
const LARGE: &str = "generic/041";
/// The longest wait for what is written without a sync.
const LINGER: Duration = Duration::from_secs(40);

fn plan(states: u64) -> Plan {
    let bound = StateBound { states, combinations: states, drawn: 1, ..StateBound::default() };
    Plan { places: CrashPoints::Boundaries(8), bound, ..Plan::EVERYWHERE }
}

/// `STEADFAST_SOAK`: above 1 more workloads.
fn soaks() -> bool {
    std::env::var("STEADFAST_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(1u32) > 1
}

/// Known bugs, and sequences of one and two operations.
fn workloads() -> Vec<Workload> {
    let (one, two) = if soaks() { EVERY_SOAKED } else { EVERY };
    let known = KNOWN.iter().filter(|known| known.name != LARGE).map(|known| known.workload());
    known.chain(ace::seq1().step_by(one)).chain(ace::seq2(0, two)).collect()
}

/// What is there and the models do not allow.
fn forbidden(
    subject: &dyn Subject,
    models: &'static [Model],
    plan: &Plan,
    workloads: &[Workload],
) -> Vec<String> {
    let (mut states, found) = (0, ForbiddenStates::default());
    for workload in workloads {
        let player = by_models(models, &found);
        states += try_out_by(subject, workload, plan, &player).unwrap().states;
    }
    println!("{}: {states} states of {} workloads", subject.name(), workloads.len());
    assert!(states > workloads.len() as u64);
    found.lock().clone()
}

fn holds(subject: &dyn Subject, models: &'static [Model], plan: &Plan, workloads: &[Workload]) {
    let found = forbidden(subject, models, plan, workloads);
    assert!(
        found.is_empty(),
        "{}: {}: {:#?}",
        subject.name(),
        found.len(),
        &found[..found.len().min(9)]
    );
}

fn own(name: &str, kind: OwnKind, options: MountOptions, models: &'static [Model]) {
    // Models know pages, no sectors.
    let subject = Own::new(name, kind, options, LINGER).unwrap().on(Media::Whole);
    holds(&subject, models, &plan(6), &workloads());
}

#[test]
fn ext4_as_it_is_mounted_by_default() {
    own("ext4", OwnKind::Ext4, MountOptions::default(), &[Model::Posix, Model::Ext4]);
}

#[test]
fn ext4_without_its_heuristic() {
    let options = MountOptions { auto_da_alloc: false, ..MountOptions::default() };
    own("noauto", OwnKind::Ext4, options, &[Model::Posix, Model::Ext4NoautoDaAlloc]);
}

#[test]
fn ext4_with_data_writeback() {
    let options = MountOptions { data: DataMode::Writeback, ..MountOptions::default() };
    own("writeback", OwnKind::Ext4, options, &[Model::Posix, Model::Ext4Writeback]);
}

#[test]
fn ext4_with_data_journal() {
    let options = MountOptions { data: DataMode::Journal, ..MountOptions::default() };
    own("journal", OwnKind::Ext4, options, &[Model::Posix, Model::Ext4Journal]);
}

/// The test of the test: it sees what a model does not allow.
#[test]
fn a_model_of_another_file_system_is_found_out() {
    let options = MountOptions { auto_da_alloc: false, ..MountOptions::default() };
    let subject = Own::new("noauto", OwnKind::Ext4, options, LINGER).unwrap().on(Media::Whole);
    let found = forbidden(&subject, &[Model::Ext4Journal], &plan(6), &workloads());
    assert!(!found.is_empty());
}

#[test]
fn ext2() {
    own("ext2", OwnKind::Ext2, MountOptions::default(), &[Model::Ext2]);
}

/// Few: the kernel takes a hundred times as long to recover.
fn kernel(fs: KernelFs, models: &'static [Model]) {
    match InCorpus::new(fs) {
        Ok(subject) => {
            let subject = subject.on(Media::Whole);
            let some: Vec<Workload> =
                workloads().into_iter().step_by(if soaks() { 1 } else { 9 }).collect();
            holds(&subject, models, &plan(3), &some);
        }
        Err(why) => println!("SKIPPED: {why}"),
    }
}

#[test]
fn the_kernels_ext4() {
    kernel(KernelFs::Ext4, &[Model::Posix, Model::Ext4]);
}

#[test]
fn the_kernels_xfs() {
    kernel(KernelFs::Xfs, &[Model::Posix, Model::Xfs]);
}

#[test]
fn the_kernels_btrfs() {
    kernel(KernelFs::Btrfs, &[Model::Posix, Model::Btrfs]);
}
