//! Bugs that need two tasks and a certain schedule of them; and what is made small of a schedule.

use std::time::Instant;

use steadfast_crash::explore::Plan;
use steadfast_crash::planted::StackBug;
use steadfast_crash::states::StateBound;
use steadfast_ext4::{Bug as Ext4Bug, DataMode};
use steadfast_selftest::mixed::Setup;
use steadfast_selftest::small::{
    ScheduledCase, Schedules, SmallMachine, TaskSequences, explore_schedules,
};

/// Pairs of two operations each, one in so many.
const PAIRS_EVERY: usize = 20;

/// Every schedule of two tasks with up to two preemptions, every cut of each, of the same pairs as
/// the test `schedules` takes; shrunk, and reproduced from the command that is printed.
fn found_by_schedules(name: &str, bug: StackBug) {
    let plain = ScheduledCase::setup(DataMode::Ordered, false);
    let machine = |planted| SmallMachine::new(Setup { planted, ..plain }).unwrap();
    let bound = StateBound::exhaustive(8, false, 1);
    let plan = Plan { bound, ..Plan::EVERYWHERE };
    let schedules = Schedules::all(2);
    let begun = Instant::now();
    let (mut runs, planted) = (0, machine(Some(bug)));
    for pair in TaskSequences::of_two().into_iter().step_by(PAIRS_EVERY) {
        let pair = [pair];
        let explore = |machine: &SmallMachine| {
            explore_schedules(machine, &pair, &schedules, &plan, &|_| ())
                .unwrap_or_else(|e| panic!("{name}: {e}"))
        };
        let found = explore(&planted);
        runs += found.schedules;
        let Some(case) = found.wrong.first() else { continue };
        let took = begun.elapsed().as_secs_f32();
        println!("FIGURES: {name}: {took:.1} s, {runs} schedules: {}", found.explored.findings[0]);
        assert_eq!(explore(&machine(None)).explored.wrong(), 0, "without {name}");
        let shrunk = case.shrink(&plan).unwrap().unwrap_or_else(|| panic!("{name}: found once"));
        // A state in which all is as at the start is not what was found.
        assert!(shrunk.decisive.in_doubt > 0, "{name}: {shrunk}");
        println!("FIGURES: {name}: {:.1} s, {shrunk}", begun.elapsed().as_secs_f32());
        // A sync waits for a rename or link that has begun: it must have begun before.
        let preemptions = shrunk.case.schedule.points.len();
        assert!(shrunk.case.operations() == 2 && preemptions <= 2, "{name}: {shrunk}");
        let command = shrunk.case.command();
        let line = command.split_once(" -- ").unwrap().1;
        let again: ScheduledCase = line.parse().unwrap();
        assert!(again.explore(&plan).unwrap().wrong() > 0, "{name}: {line}");
        let mut without = again;
        without.setup.planted = None;
        assert_eq!(without.explore(&plan).unwrap().wrong(), 0, "without {name}: {line}");
        return;
    }
    panic!("{name}: not found in {runs} schedules");
}

#[test]
fn a_move_in_two_transactions() {
    let bug = StackBug::Ext4(Ext4Bug::MoveInTwoTransactions);
    found_by_schedules("a move in two transactions", bug);
}

#[test]
fn a_link_in_two_transactions() {
    let bug = StackBug::Ext4(Ext4Bug::LinkInTwoTransactions);
    found_by_schedules("a link in two transactions", bug);
}

/// A promise that is broken leaves what may be left a tick earlier, before it was made: of equal
/// contents both are judged.
#[test]
fn a_broken_promise_is_made_small() {
    // The second write changes no time, so the second sync commits nothing.
    let line = "ordered external bug=sync-without-flush \
                populated:write.a.0.1500.buffered+sync+write.a.0.1500.buffered+sync empty:sync \
                begins=0";
    let case: ScheduledCase = line.parse().unwrap();
    let plan = Plan { bound: StateBound::exhaustive(8, false, 1), ..Plan::EVERYWHERE };
    let explored = case.explore(&plan).unwrap();
    assert!(explored.broken > 0 && explored.damaged == 0, "{explored}");
    let shrunk = case.shrink(&plan).unwrap().expect("found once");
    println!("FIGURES: {shrunk}");
    assert!(shrunk.cut.broken_promises > 0, "{shrunk}");
    assert!(shrunk.decisive.in_doubt > 0, "{shrunk}");
    assert!(shrunk.case.operations() < case.operations(), "{shrunk}");
    // The first cut after the promise, not one that leaves something else too.
    let first = &shrunk.case.explore(&plan).unwrap().findings[0];
    assert!(first.contains(&format!("; cut at tick {},", shrunk.cut.tick)), "{shrunk}: {first}");
}
