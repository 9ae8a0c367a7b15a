//! Recovery: the log is replayed, and marked clean.
//!
//! Three passes, as in the kernel's `fs/jbd2/recovery.c`: *scan* finds the complete transactions,
//! *revoke* collects the blocks that must not be replayed, *replay* collects the newest image of
//! each block. All three only read. Then the images are written home, the file system's device is
//! flushed, and only then the log is marked clean: after a power cut anywhere in between, the log
//! recovers to the same state.
//!
//! The kernel writes as much as it can and reports an error at the end. We check every image first
//! and write nothing if the log is damaged: the file system stays unchanged.

mod fast;
mod log_fast_commits;
mod read;
mod replay;
mod report;
mod revoke;
mod scan;

use steadfast_block::BlockDevice;
use steadfast_block::planted::BugSwitch;

use crate::ondisk::superblock::JournalSuperblock;
use crate::planted::Bug;
use crate::writer::Writer;
use crate::{CheckpointHook, JournalError, Log, Result, Tid};

pub use fast::{FastCommits, FastTag};
pub use report::{Overlay, RecoveryFinding, RecoveryReport};

/// What a log holds, read and checked; nothing is written yet.
#[derive(Debug, Clone)]
pub struct Recovery {
    /// What recovery would do.
    pub report: RecoveryReport,
    /// The blocks that whole transactions would write home.
    pub overlay: Overlay,
    /// The fast commits after the last complete transaction. Only the file system can interpret
    /// them: it computes the changed blocks, over `overlay`, and passes them to
    /// [`finish`](Self::finish).
    pub fast_commits: Option<FastCommits>,
    /// The log's.
    planted: BugSwitch<Bug>,
}

impl Recovery {
    /// Reads the log. `fs` is the file system's device: of an internal log the log's own.
    ///
    /// # Errors
    /// [`JournalError::Corrupt`] if a committed transaction is damaged; [`JournalError::Block`] if
    /// a device failed.
    pub fn read(log: &Log, fs: &dyn BlockDevice) -> Result<Recovery> {
        let sb = log.read_superblock()?;
        let mut report = RecoveryReport {
            was_clean: true,
            next_tid: sb.sequence().plus(1),
            errno: sb.errno(),
            ..RecoveryReport::default()
        };
        if !sb.checksum_matches() {
            report.findings.push(RecoveryFinding::TornSuperblock);
        }
        let Some(start) = sb.start() else {
            let (overlay, planted) = (Overlay::new(), log.planted);
            return Ok(Recovery { report, overlay, fast_commits: None, planted });
        };
        let mut reader = read::Reader::new(log, &sb);
        let mut scanned = scan::scan(&mut reader, start, sb.sequence())?;
        if reader.layout.async_commit {
            replay::drop_unwritten_end(&mut reader, &mut scanned)?;
        }
        let by_age = !log.planted.has(Bug::RevokeOfAnyAge);
        let revoked = revoke::table(&scanned.transactions, by_age);
        let blocks = fs.info().size / u64::from(log.block_size());
        let overlay = replay::images(&mut reader, &scanned, &revoked, blocks, &mut report)?;
        report.was_clean = false;
        report.newest_commit = (!scanned.transactions.is_empty()).then_some(scanned.newest_seconds);
        report.transactions = scanned.transactions.len() as u32;
        if let (Some(first), Some(last)) =
            (scanned.transactions.first(), scanned.transactions.last())
        {
            report.range = Some((first.tid, last.tid));
        }
        // One is skipped, as the kernel does: a transaction that was being written has `end`, and
        // its blocks are still in the log.
        report.next_tid = scanned.end.plus(1);
        report.findings.append(&mut scanned.findings);
        report.blocks_replayed = overlay.len() as u64;
        let fast_commits = fast::find(&mut reader, &sb, scanned.end)?;
        report.fast_commits = fast_commits.as_ref().map_or(0, |f| f.commits.len() as u32);
        Ok(Recovery { report, overlay, fast_commits, planted: log.planted })
    }

    /// Writes everything home and marks the log clean; `changes` is the result of the fast commits
    /// beyond `overlay`. After a power cut in between every recovery reaches the same state:
    /// `changes` are logged as one transaction first. `owner` is called before anything is written
    /// home. Does nothing to a clean log.
    ///
    /// # Errors
    /// [`JournalError::Refused`] if the changes do not fit the log; nothing has been written then.
    /// [`JournalError::Block`] if a device failed: recovery can be tried again.
    pub fn finish(
        self,
        log: &Log,
        fs: &dyn BlockDevice,
        changes: &Overlay,
        owner: Option<&dyn CheckpointHook>,
    ) -> Result<RecoveryReport> {
        let clean_first = self.planted.has(Bug::RecoveryNotIdempotent);
        let mut report = self.report;
        if report.was_clean {
            return Ok(report);
        }
        log_fast_commits::check_fits(&log.read_superblock()?, changes)?;
        if clean_first {
            mark_clean(log, report.next_tid)?;
        }
        let newest = report.newest_tid();
        write_home(log, fs, self.overlay, newest, owner)?;
        if let Some(fast) = &self.fast_commits
            && !changes.is_empty()
        {
            let unix_ns = report.newest_commit.unwrap_or(0).saturating_mul(1_000_000_000);
            log_fast_commits::log_transaction(log, fast.tid, changes, unix_ns)?;
            write_home(log, fs, changes.clone(), fast.tid, owner)?;
            report.next_tid = fast.tid.plus(2);
        }
        mark_clean(log, report.next_tid)?;
        Ok(report)
    }

    fn without_fast_commits(self) -> Result<Recovery> {
        if self.fast_commits.is_some() {
            let what = "fast_commit: only the file system knows what the journal's fast commits \
                        mean; mount it, or let e2fsck replay it";
            return Err(JournalError::Unsupported { what: what.into() });
        }
        Ok(self)
    }
}

/// Recovers the log and marks it clean. `fs` is the file system's device: of an internal log the
/// log's own. Does nothing to a clean log.
///
/// # Errors
/// [`JournalError::Corrupt`] if a committed transaction is damaged, [`JournalError::Unsupported`]
/// if the log holds fast commits (see [`Recovery`]); then nothing has been written.
/// [`JournalError::Block`] if a device failed; then the log is as it was and recovery can be tried
/// again.
pub fn recover(log: &Log, fs: &dyn BlockDevice) -> Result<RecoveryReport> {
    Recovery::read(log, fs)?.without_fast_commits()?.finish(log, fs, &Overlay::new(), None)
}

/// What [`recover`] would do, without writing anything: the report, and the contents of the
/// blocks that it would write. For mounting read-only and for checking.
///
/// # Errors
/// As [`recover`].
pub fn recover_dry(log: &Log, fs: &dyn BlockDevice) -> Result<(RecoveryReport, Overlay)> {
    let found = Recovery::read(log, fs)?.without_fast_commits()?;
    Ok((found.report, found.overlay))
}

/// Clears the error that an aborted journal left in the superblock.
pub fn clear_errno(log: &Log) -> Result<()> {
    rewrite(log, |sb| sb.set_errno(0))
}

/// Marks the log clean, and discards its transactions. For a caller that discards a journal
/// knowingly.
pub fn discard_contents(log: &Log) -> Result<()> {
    let sb = log.read_superblock()?;
    if sb.start().is_none() {
        return Ok(());
    }
    // Larger than any number in the log, so that no old block is taken for new.
    mark_clean(log, sb.sequence().plus(log.blocks()))
}

fn write_home(
    log: &Log,
    fs: &dyn BlockDevice,
    overlay: Overlay,
    newest: Tid,
    owner: Option<&dyn CheckpointHook>,
) -> Result<()> {
    let block_size = u64::from(log.block_size());
    let mut images: Vec<_> = overlay.into_iter().collect();
    if let Some(owner) = owner.filter(|_| !images.is_empty()) {
        owner.before_checkpoint(newest, &mut images)?;
    }
    let mut writer = Writer::new(fs, 1 << 20, 32);
    for (block, image) in images {
        writer.push(block.0 * block_size, image);
    }
    writer.finish()?;
    if fs.info().volatile_cache && !log.planted.has(Bug::RecoveryWithoutFlush) {
        fs.flush()?;
    }
    Ok(())
}

/// The last step: until it is on the medium, recovery starts over.
fn mark_clean(log: &Log, next_tid: Tid) -> Result<()> {
    // The number of a clean log is one before that of its next transaction.
    rewrite(log, |sb| sb.set_tail(None, next_tid.plus(u32::MAX)))
}

fn rewrite(log: &Log, change: impl FnOnce(&mut JournalSuperblock)) -> Result<()> {
    let (mut sb, block) = log.read_superblock_block()?;
    change(&mut sb);
    let mut block = block.to_vec();
    block[..JournalSuperblock::BYTES].copy_from_slice(&sb.encode());
    log.write_block(log.superblock_at(), block.into(), true)
}
