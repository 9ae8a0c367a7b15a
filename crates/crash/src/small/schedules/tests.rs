//! What is left out leaves nothing out: compared with runs of everything.

use std::collections::HashSet;

use steadfast_devices::filter::record::{Action, Recording};
use steadfast_ext4::DataMode;

use super::known::{Known, Seen};
use super::{Counts, Prune, ScheduledCase, Schedules, Tasks, each_run};
use crate::small::machine::SmallMachine;

/// One pair in so many.
const EVERY: usize = 331;

fn machine(data: DataMode, external: bool) -> SmallMachine {
    SmallMachine::new(ScheduledCase::setup(data, external)).unwrap()
}

/// The recordings of all schedules with up to two preemptions.
fn recordings(machine: &SmallMachine, tasks: &Tasks, prune: Prune) -> (Vec<Seen>, Counts) {
    let schedules = Schedules { prune, ..Schedules::all(2) };
    let joint = machine.setup.points.is_some();
    let mut seen = Vec::new();
    let counts = each_run(machine, tasks, &schedules, &mut |_, run| {
        seen.push(Seen::of(&run.recorded.recording, joint));
        true
    });
    (seen, counts.unwrap())
}

/// Of a sample of the pairs: whether some schedule that was left out leaves what no other leaves.
fn compared(data: DataMode, external: bool) {
    let machine = machine(data, external);
    let (mut run_all, mut run_pruned, mut lost_by_control) = (0, 0, 0);
    for tasks in Tasks::of_two().iter().step_by(EVERY) {
        let (all, counts) = recordings(&machine, tasks, Prune::Nothing);
        run_all += counts.run;
        assert_eq!(counts.pruned, 0);
        let mut lost_by = |prune| {
            let (seen, counts) = recordings(&machine, tasks, prune);
            let mut known = Known::default();
            for seen in seen {
                known.insert(seen);
            }
            (all.iter().filter(|seen| !known.covers(seen)).count(), counts.run)
        };
        let (lost, run) = lost_by(Prune::Equal);
        assert_eq!(lost, 0, "{data:?}, pair {}: {:?}", tasks.number, tasks.sequences);
        run_pruned += run;
        lost_by_control += lost_by(Prune::TooMuch).0;
    }
    assert!(run_pruned * 2 < run_all, "{run_pruned} of {run_all} schedules were run");
    assert!(lost_by_control > 0, "the comparison sees nothing");
}

#[test]
fn schedules_that_are_left_out_leave_nothing_new_ordered() {
    compared(DataMode::Ordered, false);
}

#[test]
fn schedules_that_are_left_out_leave_nothing_new_transact() {
    compared(DataMode::Transact, true);
}

/// What a recording is but for names of tasks and places on the disk.
fn shape(recording: &Recording, swapped: bool) -> Vec<(u64, u64, u64, u64)> {
    let mut found = Vec::new();
    for event in recording.events() {
        let (what, len) = match &event.action {
            Action::Write { data, fua, .. } => (u64::from(*fua), data.unpack().len() as u64),
            Action::Discard { len, .. } => (2, *len),
            Action::Flush => (3, 0),
            other => panic!("{other:?}"),
        };
        found.push((event.submitted.tick, 0, what, len));
        found.extend(event.completed.map(|c| (c.tick, 1, what, len)));
    }
    for note in recording.notes() {
        let [task, index, end] = note.detail;
        let task = if swapped { 1 - task } else { task };
        found.push((note.moment.tick, 2 + task, index, end));
    }
    found.sort_unstable();
    found.into_iter().zip(0..).map(|((_, a, b, c), order)| (order, a, b, c)).collect()
}

/// Of (A, B) and (B, A) the same schedules are there if either may begin.
#[test]
fn pairs_are_symmetric() {
    let machine = machine(DataMode::Ordered, false);
    let schedules = Schedules { prune: Prune::Nothing, ..Schedules::all(1) };
    let shapes = |tasks: &Tasks, swapped| {
        let mut found = HashSet::new();
        each_run(&machine, tasks, &schedules, &mut |_, run| {
            found.insert(shape(&run.recorded.recording, swapped));
            true
        })
        .unwrap();
        found
    };
    for tasks in Tasks::of_two().iter().step_by(EVERY) {
        let mut swapped = tasks.clone();
        swapped.sequences.reverse();
        let (one, other) = (shapes(tasks, false), shapes(&swapped, true));
        assert!(one == other, "pair {}: {:?}", tasks.number, tasks.sequences);
    }
}
