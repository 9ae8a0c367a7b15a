//! What is left out leaves nothing out: compared with runs of everything.

use std::collections::HashSet;

use steadfast_devices::filter::record::{Action, Recording};
use steadfast_ext4::DataMode;

use super::{Prune, ScheduledCase, Schedules, TaskSequences, compare_pruning, each_run};
use crate::small::machine::SmallMachine;

/// One pair in so many.
const EVERY: usize = 331;

fn machine(data: DataMode, external: bool) -> SmallMachine {
    SmallMachine::new(ScheduledCase::setup(data, external)).unwrap()
}

/// Of a sample of the pairs: no schedule that is left out leaves what no other leaves, and a
/// pruning that asks for less does lose some.
fn compared(data: DataMode, external: bool) {
    let pairs: Vec<TaskSequences> = TaskSequences::of_two().into_iter().step_by(EVERY).collect();
    let compared = compare_pruning(&machine(data, external), &pairs, 2).unwrap();
    assert_eq!(compared.lost, 0, "{compared}");
    assert!(compared.run * 5 < compared.all * 4, "{compared}");
    assert!(compared.lost_by_control > 0, "{compared}");
}

#[test]
fn schedules_that_are_left_out_leave_nothing_new_ordered() {
    compared(DataMode::Ordered, false);
}

#[test]
fn schedules_that_are_left_out_leave_nothing_new_transact() {
    compared(DataMode::Transact, true);
}

/// The order of operations, flushes and writes with FUA. Which other writes there are depends on
/// where files lie, and so on which task is which.
fn shape(recording: &Recording, swapped: bool) -> Vec<(u64, u64, u64, u64)> {
    let mut found = Vec::new();
    for event in recording.events() {
        let what = match &event.action {
            Action::Write { fua, .. } if *fua => 1,
            Action::Flush => 2,
            _ => continue,
        };
        found.push((event.submitted.tick, 0, what, 0));
        found.extend(event.completed.map(|c| (c.tick, 0, what, 1)));
    }
    let last_of =
        |of: u64| recording.notes().iter().filter(|n| n.detail[0] == of).map(|n| n.detail[1]).max();
    // Before it, what is there at the start was made.
    let begins = recording.notes().iter().position(|note| note.detail[2] == 2).unwrap();
    for note in &recording.notes()[begins + 1..] {
        let [task, index, end] = note.detail;
        // The closing unmount is noted for one task after the other.
        if Some(index) == last_of(task) {
            continue;
        }
        let task = if swapped { 1 - task } else { task };
        found.push((note.moment.tick, 1 + task, index, end));
    }
    found.sort_unstable();
    let order = |((_, a, b, c), order)| (order, a, b, c);
    found.into_iter().zip(0..).map(order).collect()
}

/// Of (A, B) and (B, A) the same schedules are there if either may begin.
#[test]
fn pairs_are_symmetric() {
    let machine = machine(DataMode::Ordered, false);
    let schedules = Schedules { prune: Prune::Nothing, ..Schedules::all(1) };
    let shapes = |tasks: &TaskSequences, swapped| {
        let mut found = HashSet::new();
        each_run(&machine, tasks, &schedules, &mut |_, run| {
            found.insert(shape(&run.recorded.recording, swapped));
            true
        })
        .unwrap();
        found
    };
    // Of two that do the same only one begins.
    let differ = |tasks: &&TaskSequences| tasks.sequences[0] != tasks.sequences[1];
    for tasks in TaskSequences::of_two().iter().step_by(EVERY).filter(differ) {
        let mut swapped = tasks.clone();
        swapped.sequences.reverse();
        let (one, other) = (shapes(tasks, false), shapes(&swapped, true));
        assert!(one == other, "pair {}: {:?}", tasks.number, tasks.sequences);
    }
}
