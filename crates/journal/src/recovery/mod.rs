//! Recovery: what a power cut left in the log is replayed, and the log is clean again.
//!
//! Three passes, as the kernel's `fs/jbd2/recovery.c`: *scan* finds the transactions that are
//! whole, *revoke* collects the blocks that must not be replayed, *replay* brings the images
//! together, the newest of each block. All three only read. Then the images are written home,
//! the file system's device is flushed, and only then the log is marked clean: a cut anywhere in
//! between leaves a log that recovers to the same state again.
//!
//! Where the kernel writes what it can and reports an error at the end, we check every image
//! first and, if the log is damaged, write nothing: the file system stays as it was found.

mod read;
mod replay;
mod revoke;
mod scan;

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use steadfast_block::BlockDevice;

use crate::ondisk::superblock::Superblock;
use crate::writer::Writer;
use crate::{Features, FsBlock, JournalError, Log, LogBlock, Result, Tid};

/// The newest contents of blocks that the log holds: home block to contents.
pub type Overlay = BTreeMap<FsBlock, Bytes>;

/// What recovery did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The log was clean: nothing to do.
    pub was_clean: bool,
    /// Whole transactions found.
    pub transactions: u32,
    /// The first and the last of them.
    pub range: Option<(Tid, Tid)>,
    /// Block images in them.
    pub images: u64,
    /// Blocks written home: of several images of a block only the newest is.
    pub blocks_replayed: u64,
    /// Images not replayed because the block was revoked later.
    pub revoked: u64,
    /// Number of the next transaction.
    pub next_tid: Tid,
    /// Time of the newest commit, in seconds since 1970, as its commit block has it.
    pub newest_commit: Option<u64>,
    /// `s_errno` of the superblock: not 0 if an earlier journal was aborted. Its owner marks the
    /// file system as having errors, then calls [`clear_errno`].
    pub errno: i32,
    /// What was found that a person may want to know, in order.
    pub findings: Vec<Finding>,
}

/// Something that recovery found and dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A transaction whose checksums do not match and that is not the log's last: bytes of an
    /// earlier journal, older than the last transaction. The log ends before it.
    Stale {
        /// Its number.
        tid: Tid,
    },
    /// The last transaction, written with asynchronous commit, had not reached the medium whole
    /// when the power failed. The log ends before it.
    Interrupted {
        /// Its number.
        tid: Tid,
        /// What was missing.
        what: String,
    },
    /// The write of a commit block was torn, beyond the part that means something.
    TornCommit {
        /// Its transaction.
        tid: Tid,
    },
    /// The superblock's checksum is that of another update of it; see the media assumptions.
    TornSuperblock,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Stale { tid } => {
                write!(f, "transaction {tid} is left over from an earlier journal: ignored")
            }
            Finding::Interrupted { tid, what } => {
                write!(f, "transaction {tid} was interrupted: {what}")
            }
            Finding::TornCommit { tid } => {
                write!(f, "the commit block of transaction {tid} was torn behind its contents")
            }
            Finding::TornSuperblock => {
                write!(f, "the journal superblock and its checksum are of different updates")
            }
        }
    }
}

/// Recovers the log and marks it clean. `fs` is the file system's device: of an internal log the
/// log's own. Does nothing to a clean log.
///
/// # Errors
/// [`JournalError::Corrupt`] if a committed transaction is damaged, [`JournalError::Unsupported`]
/// if the log holds fast commits; then nothing has been written. [`JournalError::Block`] if a
/// device failed; then the log is as it was and recovery can be tried again.
pub fn recover(log: &Log, fs: &dyn BlockDevice) -> Result<RecoveryReport> {
    let found = examine(log, fs)?;
    if found.report.was_clean {
        return Ok(found.report);
    }
    write_home(log, fs, &found.overlay)?;
    mark_clean(log, found.report.next_tid)?;
    Ok(found.report)
}

/// What [`recover`] would do, without writing anything: the report, and the contents of the
/// blocks that it would write. For mounting read-only and for checking.
pub fn recover_dry(log: &Log, fs: &dyn BlockDevice) -> Result<(RecoveryReport, Overlay)> {
    let found = examine(log, fs)?;
    Ok((found.report, found.overlay))
}

/// Takes back the error that an aborted journal left in the superblock.
pub fn clear_errno(log: &Log) -> Result<()> {
    rewrite(log, |sb| sb.set_errno(0))
}

/// Marks the log clean, losing what it holds. For an owner that throws a journal away knowingly.
pub fn discard_contents(log: &Log) -> Result<()> {
    let sb = log.read_superblock()?;
    if sb.start().is_none() {
        return Ok(());
    }
    // Beyond any number that may be in the log, so that none of it is ever taken for new.
    mark_clean(log, sb.sequence().plus(log.blocks()))
}

struct Found {
    report: RecoveryReport,
    overlay: Overlay,
}

fn examine(log: &Log, fs: &dyn BlockDevice) -> Result<Found> {
    let sb = log.read_superblock()?;
    let mut report = RecoveryReport {
        was_clean: true,
        transactions: 0,
        range: None,
        images: 0,
        blocks_replayed: 0,
        revoked: 0,
        next_tid: sb.sequence().plus(1),
        newest_commit: None,
        errno: sb.errno(),
        findings: Vec::new(),
    };
    if !sb.checksum_matches() {
        report.findings.push(Finding::TornSuperblock);
    }
    let Some(start) = sb.start() else {
        return Ok(Found { report, overlay: Overlay::new() });
    };
    let mut reader = read::Reader::new(log, &sb);
    let mut scanned = scan::scan(&mut reader, start, sb.sequence())?;
    refuse_fast_commits(&mut reader, &sb, scanned.end)?;
    if reader.layout.async_commit {
        replay::drop_unwritten_end(&mut reader, &mut scanned)?;
    }
    let revoked = revoke::table(&scanned.transactions);
    let blocks = fs.info().size / u64::from(log.block_size());
    let overlay = replay::images(&mut reader, &scanned, &revoked, blocks, &mut report)?;
    report.was_clean = false;
    report.newest_commit = (!scanned.transactions.is_empty()).then_some(scanned.newest_seconds);
    report.transactions = scanned.transactions.len() as u32;
    if let (Some(first), Some(last)) = (scanned.transactions.first(), scanned.transactions.last()) {
        report.range = Some((first.tid, last.tid));
    }
    // One is skipped, as the kernel does: a transaction that was being written has `end`, and
    // its blocks are still in the log.
    report.next_tid = scanned.end.plus(1);
    report.findings.append(&mut scanned.findings);
    report.blocks_replayed = overlay.len() as u64;
    Ok(Found { report, overlay })
}

fn write_home(log: &Log, fs: &dyn BlockDevice, overlay: &Overlay) -> Result<()> {
    let block_size = u64::from(log.block_size());
    let mut writer = Writer::new(fs, 1 << 20, 32);
    for (block, image) in overlay {
        writer.push(block.0 * block_size, image.clone());
    }
    writer.finish()?;
    if fs.info().volatile_cache {
        fs.flush()?;
    }
    Ok(())
}

/// The last step: until it is on the medium, recovery starts over.
fn mark_clean(log: &Log, next_tid: Tid) -> Result<()> {
    // The number of a clean log is one before that of its next transaction.
    rewrite(log, |sb| sb.set_tail(None, next_tid.plus(u32::MAX)))
}

fn rewrite(log: &Log, change: impl FnOnce(&mut Superblock)) -> Result<()> {
    let (mut sb, block) = log.read_superblock_block()?;
    change(&mut sb);
    let mut block = block.to_vec();
    block[..Superblock::BYTES].copy_from_slice(&sb.encode());
    log.write_block(log.superblock_at(), block.into(), true)
}

/// Fast commits (kernel: `fs/ext4/fast_commit.c`) hold changes that only ext4 can replay. They
/// count if the area's first block names the transaction that would come next.
fn refuse_fast_commits(reader: &mut read::Reader<'_>, sb: &Superblock, end: Tid) -> Result<()> {
    /// `EXT4_FC_TAG_HEAD`
    const HEAD: u16 = 9;
    if !sb.features().has_incompat(Features::FAST_COMMIT) {
        return Ok(());
    }
    // The kernel leaves out the area's first block.
    for at in [sb.end().0, sb.end().0 + 1].into_iter().filter(|at| *at < sb.max_len()) {
        let block = reader.block(LogBlock(at))?;
        let tag = u16::from_le_bytes([block[0], block[1]]);
        let tid = u32::from_le_bytes([block[8], block[9], block[10], block[11]]);
        if tag == HEAD && Tid(tid) == end {
            let what = "fast_commit: the journal holds fast commits; let e2fsck replay it first";
            return Err(JournalError::Unsupported { what: what.into() });
        }
    }
    Ok(())
}
