//! A block of the log that cannot be read takes nothing that was promised, and behind the log's end
//! it is no reason to refuse the log.

use std::ops::Range;

use steadfast_journal::{Checksums, RecoveryReport, Result, recover};

use crate::disk::Disk;
use crate::fuzz::{Dirty, LOG_BLOCKS, dirty, log_on};
use crate::load::BLOCK;

/// Recovers the log with these blocks unreadable. What was promised is there, or nothing was
/// written.
fn recover_without(dirty: &Dirty, blocks: Range<u64>) -> Result<RecoveryReport> {
    let (fs, disk) = (Disk::plain("fs", dirty.fs.clone()), Disk::plain("log", dirty.log.clone()));
    let block = BLOCK as u64;
    disk.fail_reads_at(blocks.start * block..blocks.end * block);
    let recovered = recover(&log_on(&disk), &*fs);
    match &recovered {
        Ok(report) => {
            assert_eq!(report.transactions, dirty.transactions, "{blocks:?} unreadable");
            dirty.load.judge(&fs.bytes(), 0, true).unwrap();
        }
        Err(_) => assert!(fs.bytes() == dirty.fs, "an error, yet something was written"),
    }
    recovered
}

/// The first block that no transaction uses: all behind the last commit block is zeros.
fn end_of(dirty: &Dirty) -> u64 {
    let used = dirty.log.chunks(BLOCK).rposition(|block| block.iter().any(|byte| *byte != 0));
    used.expect("a log with transactions") as u64 + 1
}

#[test]
fn each_unreadable_block_is_an_error_or_takes_nothing() {
    for checksums in [Checksums::V3, Checksums::V2, Checksums::V1, Checksums::None] {
        let dirty = dirty(checksums);
        let end = end_of(&dirty);
        let by_checksum = matches!(checksums, Checksums::V3 | Checksums::V2);
        let mut refused = 0;
        for at in 2..LOG_BLOCKS as u64 {
            let recovered = recover_without(&dirty, at..at + 1);
            // Without checksums of blocks nothing says that the log ends where it cannot be read.
            let due = at > end || (at == end && by_checksum);
            assert!(recovered.is_ok() || !due, "{checksums:?}, block {at}: {recovered:?}");
            refused += usize::from(recovered.is_err());
        }
        // An image that a later transaction logs again, or revokes, is not needed.
        assert!(refused > 25, "{checksums:?}: {refused} refused");
    }
}

#[test]
fn where_the_log_ends_one_block_need_not_be_readable() {
    for checksums in [Checksums::V3, Checksums::V2] {
        let dirty = dirty(checksums);
        let end = end_of(&dirty);
        let report = recover_without(&dirty, end..end + 1).unwrap();
        let said: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        let next = report.range.unwrap().1.plus(1);
        let due = format!("block {end} cannot be read: the log ends before transaction {next}");
        assert_eq!(said, [due]);
        // Several may be a whole transaction. Behind a block that is none they are not.
        for length in [2, 30, LOG_BLOCKS as u64 - end] {
            recover_without(&dirty, end..end + length).unwrap_err();
            recover_without(&dirty, end + 1..end + length).unwrap();
        }
    }
}

/// All of the last transaction in one bad sector: it was promised, and is not dropped.
#[test]
fn a_whole_transaction_that_cannot_be_read_is_an_error() {
    for checksums in [Checksums::V3, Checksums::V2] {
        let dirty = dirty(checksums);
        recover_without(&dirty, last_descriptor(&dirty)..end_of(&dirty)).unwrap_err();
    }
}

/// A descriptor that cannot be read, of a transaction whose commit block is there: the log is not
/// taken to end before it.
#[test]
fn a_commit_block_behind_it_says_that_the_transaction_was_promised() {
    let dirty = dirty(Checksums::V3);
    let last = last_descriptor(&dirty);
    let error = recover_without(&dirty, last..last + 1).unwrap_err().to_string();
    assert!(error.contains("goes on"), "{error}");
}

/// Where the last transaction begins.
fn last_descriptor(dirty: &Dirty) -> u64 {
    let word = |block: &[u8], at: usize| u32::from_be_bytes(block[at..at + 4].try_into().unwrap());
    let blocks = dirty.log.chunks(BLOCK).enumerate().skip(3);
    let headers = blocks.filter(|(_, block)| word(block, 0) == 0xc03b_3998);
    let all: Vec<_> = headers.map(|(at, block)| (word(block, 8), at as u64)).collect();
    let newest = all.iter().map(|(tid, _)| *tid).max().unwrap();
    all.iter().find(|(tid, _)| *tid == newest).unwrap().1
}
