//! Transactions that end only where their owner says.

use std::time::Duration;

use bytes::Bytes;
use steadfast_journal::{
    Config, FormatOptions, FsBlock, Journal, JournalError, Log, Update, format, recover,
};
use steadfast_runtime::{Sim, sleep};
use uuid::Uuid;

use crate::disk::Disk;
use crate::load::BLOCK;

const FS_BLOCKS: usize = 2000;

fn blocks(range: std::ops::Range<u64>, n: u8) -> Update {
    let image = Bytes::from(vec![n; BLOCK]);
    Update { writes: range.map(|b| (FsBlock(b), image.clone())).collect(), ..Update::default() }
}

fn submit(journal: &Journal, range: std::ops::Range<u64>, n: u8) -> Result<(), JournalError> {
    for at in range.clone().step_by(100) {
        journal.submit(blocks(at..range.end.min(at + 100), n))?;
    }
    Ok(())
}

fn with_journal(work: impl FnOnce(&Disk, &Log, &Journal) + Send + 'static) {
    Sim::new(1)
        .run(move || {
            let fs = Disk::plain("fs", vec![0; FS_BLOCKS * BLOCK]);
            let log = Disk::plain("log", vec![0; 1027 * BLOCK]);
            let log = Log::external(log.device(), BLOCK as u32).unwrap();
            format(&log, &FormatOptions::new(Uuid::from_u128(1))).unwrap();
            let config = Config { on_demand: true, ..Config::default() };
            let journal = Journal::open(log.clone(), fs.device(), config).unwrap();
            work(&fs, &log, &journal);
        })
        .unwrap();
}

/// The file system's blocks after a recovery, as the number that each is filled with.
fn recovered(fs: &Disk, log: &Log, journal: &Journal) -> Vec<u8> {
    journal.abandon();
    recover(log, fs).unwrap();
    fs.bytes().chunks(BLOCK).map(|b| b[0]).collect()
}

#[test]
fn nothing_is_committed_unasked() {
    with_journal(|fs, log, journal| {
        submit(journal, 0..300, 1).unwrap();
        assert!(journal.close_running().unwrap().is_some());
        // Far more than a quarter of the log, and far longer than the commit interval.
        submit(journal, 0..800, 2).unwrap();
        sleep(Duration::from_secs(60));
        assert_eq!(journal.stats().commits, 1);
        let found = recovered(fs, log, journal);
        assert!(found[..300].iter().all(|n| *n == 1), "the first transaction is there");
        assert!(found[300..].iter().all(|n| *n == 0), "nothing of the second is");
    });
}

#[test]
fn a_transaction_takes_the_whole_log_and_no_more() {
    with_journal(|fs, log, journal| {
        for round in 1..4 {
            submit(journal, 0..900, round).unwrap();
            let tid = journal.close_running().unwrap().unwrap();
            journal.commit(tid).unwrap();
        }
        let (taken, whole) = journal.running_blocks();
        assert_eq!(taken, 0);
        let refused = submit(journal, 0..1100, 4).unwrap_err();
        assert!(matches!(refused, JournalError::Full { .. }), "{refused}");
        let (taken, _) = journal.running_blocks();
        assert!(taken > 900 && taken <= whole);
        // What had joined before can still be committed.
        journal.commit(journal.running_tid()).unwrap();
        let found = recovered(fs, log, journal);
        assert!(found[..1000].iter().all(|n| *n == 4));
        assert!(found[1000..].iter().all(|n| *n == 0));
    });
}

#[test]
fn what_is_discarded_was_never_there() {
    with_journal(|fs, log, journal| {
        submit(journal, 0..10, 1).unwrap();
        journal.close_running().unwrap();
        submit(journal, 5..20, 2).unwrap();
        journal.discard_running().unwrap();
        assert_eq!(journal.image(FsBlock(5)).unwrap()[0], 1);
        assert_eq!(journal.image(FsBlock(15)), None);
        assert_eq!(journal.close_running().unwrap(), None);
        // The number is used again, and is not committed before it is asked for.
        submit(journal, 8..9, 3).unwrap();
        sleep(Duration::from_secs(60));
        assert_eq!(journal.stats().commits, 1);
        journal.commit(journal.running_tid()).unwrap();
        let found = recovered(fs, log, journal);
        assert_eq!(found[..10], [1, 1, 1, 1, 1, 1, 1, 1, 3, 1]);
        assert!(found[10..].iter().all(|n| *n == 0));
    });
}
