//! Bugs that the quick exploration of the smallest workloads finds: each within the part that is
//! named, which is explored as without the bug, in the same order, until something is found.

use std::time::Instant;

use steadfast_crash::planted::StackBug;
use steadfast_ext4::Bug as Ext4Bug;
use steadfast_journal::Bug as JournalBug;
use steadfast_selftest::small::explore;
use steadfast_selftest::small::quick::Part;

/// Looks for the bug in a part; then at the sequence that has shown it without the bug.
fn finds(bug: StackBug, part: &str) {
    let part = Part::named(part).unwrap_or_else(|| panic!("{part}: no such part"));
    let mut planted = part;
    planted.setup.planted = Some(bug);
    let (name, begun) = (bug.name(), Instant::now());
    let (explored, found) =
        planted.first_finding().unwrap_or_else(|e| panic!("{name}: {}: {e}", part.name));
    let took = begun.elapsed().as_secs_f64();
    let found = found.unwrap_or_else(|| panic!("{name}: not found: {}: {explored}", part.name));
    let (states, finding) = (explored.distinct, &found.finding);
    println!("FIGURES: {name}: {}: {states} states, {took:.1} s: {finding}", part.name);
    let machine = part.machine().unwrap();
    let without = explore(&machine, &[found.sequence], &Part::plan(0), &|_| ()).unwrap();
    assert_eq!(without.wrong(), 0, "without {name}: {:#?}", without.findings);
}

fn journal(bug: JournalBug, part: &str) {
    finds(StackBug::Journal(bug), part);
}

fn ext4(bug: Ext4Bug, part: &str) {
    finds(StackBug::Ext4(bug), part);
}

const ORDERED: &str = "ordered, external, durable";
const DATA: &str = "ordered, external, data";
const DATA_STEPS: &str = "journal, internal, data in steps";
const NAME_STEPS: &str = "ordered, external, names in steps";
const FAST: &str = "ordered, external, fast commits, in steps";

// What an earlier exploration was blind to.

#[test]
fn quick_truncated_tail_not_written() {
    ext4(Ext4Bug::TruncatedTailNotWritten, DATA);
}

#[test]
fn quick_fast_commit_without_old_name() {
    ext4(Ext4Bug::FastCommitWithoutOldName, FAST);
}

#[test]
fn quick_second_fast_commit_not_waiting() {
    journal(JournalBug::SecondFastCommitNotWaiting, FAST);
}

#[test]
fn quick_tail_one_too_far() {
    journal(JournalBug::TailOneTooFar, NAME_STEPS);
}

#[test]
fn quick_sync_without_flush() {
    ext4(Ext4Bug::SyncWithoutFlush, ORDERED);
}

// The journal.

#[test]
fn quick_magic_not_restored() {
    journal(JournalBug::MagicNotRestored, DATA_STEPS);
}

#[test]
fn quick_revoke_of_any_age() {
    journal(JournalBug::RevokeOfAnyAge, DATA_STEPS);
}

#[test]
fn quick_revoke_not_cancelled() {
    journal(JournalBug::RevokeNotCancelled, "transact, internal, there and back");
}

#[test]
fn quick_commit_not_durable() {
    journal(JournalBug::CommitNotDurable, ORDERED);
}

#[test]
fn quick_recovery_without_flush() {
    journal(JournalBug::RecoveryWithoutFlush, ORDERED);
}

#[test]
fn quick_uncommitted_image_goes_home() {
    journal(JournalBug::UncommittedImageGoesHome, NAME_STEPS);
}

#[test]
fn quick_log_wraps_late() {
    journal(JournalBug::LogWrapsLate, "journal, internal, going round");
}

#[test]
fn quick_fast_commit_without_fs_flush() {
    journal(JournalBug::FastCommitWithoutFsFlush, FAST);
}

#[test]
fn quick_fast_commits_of_earlier() {
    journal(JournalBug::FastCommitsOfEarlier, FAST);
}

// The file system.

#[test]
fn quick_fdatasync_without_size() {
    ext4(Ext4Bug::FdatasyncWithoutSize, DATA);
}

#[test]
fn quick_fdatasync_without_extents() {
    ext4(Ext4Bug::FdatasyncWithoutExtents, DATA);
}

#[test]
fn quick_rename_forgets_inode() {
    ext4(Ext4Bug::RenameForgetsInode, ORDERED);
}

#[test]
fn quick_written_before_data() {
    ext4(Ext4Bug::WrittenBeforeData, DATA);
}

#[test]
fn quick_inode_bitmap_not_logged() {
    ext4(Ext4Bug::InodeBitmapNotLogged, ORDERED);
}

#[test]
fn quick_extent_block_not_logged() {
    ext4(Ext4Bug::ExtentBlockNotLogged, DATA_STEPS);
}

#[test]
fn quick_index_leaf_not_logged() {
    ext4(Ext4Bug::IndexLeafNotLogged, NAME_STEPS);
}

#[test]
fn quick_xattr_count_not_logged() {
    ext4(Ext4Bug::XattrCountNotLogged, NAME_STEPS);
}

#[test]
fn quick_collapse_without_flush() {
    ext4(Ext4Bug::CollapseWithoutFlush, DATA);
}

#[test]
fn quick_punch_forgets_size() {
    ext4(Ext4Bug::PunchForgetsSize, DATA);
}

#[test]
fn quick_inode_read_anew_counts_as_committed() {
    let bug = Ext4Bug::InodeReadAnewCountsAsCommitted;
    ext4(bug, "ordered, external, small caches, forgotten");
}

#[test]
fn quick_orphan_whole_too_soon() {
    let bug = Ext4Bug::OrphanWholeTooSoon;
    ext4(bug, "journal, internal, lone updates, in several transactions");
}

#[test]
fn quick_inline_contents_not_waited_for() {
    ext4(Ext4Bug::InlineContentsNotWaitedFor, "ordered, external, inline");
}

#[test]
fn quick_fast_ineligible_forgotten() {
    ext4(Ext4Bug::FastIneligibleForgotten, FAST);
}
