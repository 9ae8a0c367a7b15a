//! States that recovery cannot distinguish recover once: bugs are found all the same.

use std::time::Duration;

use steadfast_crash::explore::Plan;
use steadfast_crash::planted::StackBug;
use steadfast_crash::states::StateBound;
use steadfast_ext4::Bug as Ext4Bug;
use steadfast_journal::Bug as JournalBug;
use steadfast_selftest::mixed::Setup;
use steadfast_selftest::small::{Sequence, SmallMachine, explore_twice};

const EXTERNAL: Setup = Setup { external: true, ..Setup::PLAIN };

/// States that recovery cannot distinguish recover once: what shows a bug is not lost by that.
#[test]
fn pruning_hides_no_bug() {
    let bugs = [
        StackBug::Journal(JournalBug::CommitWithoutPreflush),
        StackBug::Journal(JournalBug::OrderedDataNotWaitedFor),
        StackBug::Journal(JournalBug::FsFlushOmitted),
        StackBug::Ext4(Ext4Bug::EntryBeforeInode),
        StackBug::Ext4(Ext4Bug::OrphanNotRecorded),
    ];
    let plan = Plan { bound: StateBound::exhaustive(8, false, 1), ..Plan::EVERYWHERE };
    let mut found = 0;
    for bug in bugs {
        let setup = Setup { block_size: 1024, planted: Some(bug), ..EXTERNAL };
        let machine = SmallMachine::new(setup).unwrap();
        let sequences: Vec<Sequence> = Sequence::all(2).into_iter().step_by(3).collect();
        let no_clock = || Duration::ZERO;
        let twice = explore_twice(&machine, &sequences, (&plan, 0), &no_clock, &|_| ()).unwrap();
        let (pruned, unpruned) = (&twice.pruned, &twice.unpruned);
        println!("FIGURES: {bug:?}, pruned: {pruned}");
        assert_eq!((twice.differing, twice.agreed), (0, pruned.distinct), "{bug:?}: {pruned}");
        assert_eq!(pruned.wrong(), unpruned.wrong(), "{bug:?}: {pruned}; {unpruned}");
        found += u64::from(pruned.wrong() > 0);
    }
    assert!(found >= 2, "{found} bugs show here");
}
