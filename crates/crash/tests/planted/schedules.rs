//! Bugs that need two tasks and a certain schedule of them.

use std::time::Instant;

use steadfast_crash::mixed::{Planted, Setup};
use steadfast_crash::small::{self, Bound, Pair, Schedules, SmallMachine, explore_schedules};
use steadfast_ext4::Bug as Ext4Bug;

/// Every schedule of two tasks with one preemption, every cut of each: the sequences and the
/// schedule that show the bug, the shortest first.
fn found_by_schedules(name: &str, bug: Planted) {
    let setup = Setup { block_size: 1024, ..Setup::PLAIN };
    let machine = |planted| SmallMachine::new(Setup { planted, ..setup }).unwrap();
    let bound = Bound { exhaustive: 8, single_units: false, random: 1 };
    let plan = small::Plan {
        bound,
        seed: 1,
        e2fsck_every: 0,
        again_every: 0,
        again_whole_every: 0,
        keep_every: 0,
    };
    let schedules = Schedules { preemptions: 1, locks: false, first: Vec::new() };
    let begun = Instant::now();
    let mut runs = 0;
    for pair in Pair::beside_an_fsync(2) {
        let pair = [pair];
        let explore = |bug| {
            explore_schedules(&machine(bug), &pair, &schedules, &plan, &|_| ())
                .unwrap_or_else(|e| panic!("{name}: {e}"))
        };
        let found = explore(Some(bug));
        runs += found.schedules;
        if found.explored.wrong() == 0 {
            continue;
        }
        let (took, finding) = (begun.elapsed().as_secs_f32(), &found.explored.findings[0]);
        println!("FIGURES: {name}: {took:.1} s, {runs} schedules: {finding}");
        assert!(finding.contains("preempted at points [") && !finding.contains("points []"));
        assert_eq!(explore(None).explored.wrong(), 0, "without {name}");
        return;
    }
    panic!("{name}: not found in {runs} schedules");
}

#[test]
fn a_move_in_two_transactions() {
    let bug = Planted::Ext4(Ext4Bug::MoveInTwoTransactions);
    found_by_schedules("a move in two transactions", bug);
}

#[test]
fn a_link_in_two_transactions() {
    let bug = Planted::Ext4(Ext4Bug::LinkInTwoTransactions);
    found_by_schedules("a link in two transactions", bug);
}
