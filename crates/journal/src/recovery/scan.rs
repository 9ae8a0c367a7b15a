//! First pass: which transactions are complete.
//!
//! The scan walks from the superblock's tail, block by block, as long as each carries the magic
//! number and the number of the transaction that is due. A transaction counts when its commit
//! block is found. What does not match is judged:
//!
//! * other bytes, another number or no commit block: the log ends before this transaction;
//! * a checksum fails, the commit time is before the last transaction's and nothing valid
//!   follows: left over from an earlier journal in the same place, the log ends before it;
//! * a checksum fails, commits are asynchronous and nothing valid follows: it was being written
//!   when the power failed, the log ends before it;
//! * a checksum fails otherwise: corruption.
//!
//! That a bad checksum without asynchronous commit is corruption follows from the commit order:
//! the commit block is written when the rest is durable, and the part of it that means something
//! is within one sector. Where the medium keeps only smaller units than a sector, the commit
//! block itself may be torn; then the third rule holds for it too.
//!
//! The scan always ends: it never reads more blocks than the log has.
//!
//! # Where the log ends too early
//!
//! A damaged header also looks like the end of the log, and everything after it would be lost
//! silently (as with the kernel and e2fsck). So with checksums v2 and v3 the scan looks a little
//! further, for a block that can exist only if the transaction had committed: a valid block of a
//! later transaction, since that begins only when the one before is durable; or, without
//! asynchronous commit, the transaction's own valid commit block. Older laps of the log have lower
//! numbers, earlier journals another checksum seed.
//!
//! # Where the log cannot be read
//!
//! Some disks answer a sector that was being written when the power went with an error. Behind
//! the end of the log that says nothing, so a block that cannot be read is no proof of anything
//! there. Where a transaction is due to begin, it may be the beginning of one that had not been
//! committed: the log ends there if nothing behind it says otherwise, and if the transaction's
//! commit block would say so, which takes block checksums, no asynchronous commit, and a next block
//! that can be read: one bad sector of 4096 bytes may be all of a small transaction. In the
//! middle of a transaction it may be the commit block itself, and the error is returned.

use crate::checksum::crc32_be;
use crate::ondisk::commit_block::{self, Verdict};
use crate::ondisk::tag::Tag;
use crate::ondisk::{BlockType, Header, descriptor, revoke};
use crate::{Checksums, FsBlock, JournalError, LogBlock, Result, Tid};

use super::RecoveryFinding;
use super::read::Reader;

/// A whole transaction.
pub(super) struct Transaction {
    pub tid: Tid,
    /// Its logged blocks: where each lies in the log, and its tag.
    pub images: Vec<(LogBlock, Tag)>,
    pub revokes: Vec<FsBlock>,
}

/// What the scan found.
pub(super) struct LogScan {
    /// Consecutive, oldest first.
    pub transactions: Vec<Transaction>,
    /// The first missing number.
    pub end: Tid,
    pub findings: Vec<RecoveryFinding>,
    /// The latest time of a commit.
    pub newest_seconds: u64,
}

struct Scan<'r, 'a> {
    reader: &'r mut Reader<'a>,
    at: LogBlock,
    /// Blocks taken so far.
    walked: u32,
    last_seconds: u64,
    /// Blocks that are looked at behind the end.
    look_ahead: u32,
    out: LogScan,
}

/// What one transaction looks like while it is read.
struct Candidate {
    tid: Tid,
    images: Vec<(LogBlock, Tag)>,
    revokes: Vec<FsBlock>,
    v1_sum: u32,
    /// The first checksum that fails.
    bad: Option<String>,
}

enum Step {
    /// A transaction ended here.
    Committed(Candidate, u64),
    /// The log ends before this transaction: no block of it was found at this place.
    End(LogBlock),
}

/// How far to look for signs that the log should go on.
const LOOK_AHEAD_BYTES: usize = 8 << 20;

/// Finds the whole transactions from `start` on, where number `first` is due.
pub(super) fn scan(reader: &mut Reader<'_>, start: LogBlock, first: Tid) -> Result<LogScan> {
    let out =
        LogScan { transactions: Vec::new(), end: first, findings: Vec::new(), newest_seconds: 0 };
    let most = (LOOK_AHEAD_BYTES / reader.layout.block_size) as u32;
    let look_ahead = most.min(reader.capacity());
    let mut scan = Scan { reader, at: start, walked: 0, last_seconds: 0, look_ahead, out };
    loop {
        let (t, seconds) = match scan.transaction()? {
            Step::Committed(t, seconds) => (t, seconds),
            Step::End(at) => {
                scan.check_end(at)?;
                return Ok(scan.out);
            }
        };
        if let Some(what) = t.bad {
            scan.judge(t.tid, seconds, what)?;
            return Ok(scan.out);
        }
        scan.last_seconds = seconds;
        scan.out.newest_seconds = scan.out.newest_seconds.max(seconds);
        scan.out.end = t.tid.plus(1);
        let Candidate { tid, images, revokes, .. } = t;
        scan.out.transactions.push(Transaction { tid, images, revokes });
    }
}

impl Scan<'_, '_> {
    /// Takes the next block of the log; `None` when the log has been walked once round.
    fn take(&mut self) -> Option<LogBlock> {
        if self.walked >= self.reader.capacity() {
            return None;
        }
        let at = self.at;
        self.walked += 1;
        self.at = self.reader.after(at, 1);
        Some(at)
    }

    /// Reads blocks up to the commit block of the transaction that is due.
    fn transaction(&mut self) -> Result<Step> {
        let tid = self.out.end;
        let begin = self.at;
        let mut t =
            Candidate { tid, images: Vec::new(), revokes: Vec::new(), v1_sum: !0, bad: None };
        loop {
            let Some(at) = self.take() else { return Ok(Step::End(self.at)) };
            match self.reader.is_own(at) {
                Ok(true) => {}
                Ok(false) => return Ok(Step::End(at)),
                Err(unreadable) => return self.unreadable(at, at == begin, unreadable),
            }
            let block = self.reader.block(at)?;
            let Some(header) = Header::of(&block).filter(|h| h.tid() == tid) else {
                return Ok(Step::End(at));
            };
            match header.kind() {
                BlockType::Descriptor => {
                    if !self.descriptor(at, &block, &mut t)? {
                        return Ok(Step::End(at));
                    }
                }
                BlockType::Revoke => self.revoke(at, &block, &mut t),
                BlockType::Commit => {
                    let seconds = self.commit(at, &block, &mut t);
                    return Ok(Step::Committed(t, seconds));
                }
                _ => return Ok(Step::End(at)),
            }
        }
    }

    /// A block cannot be read where a transaction `begins` or goes on: see the module's text.
    fn unreadable(&mut self, at: LogBlock, begins: bool, error: JournalError) -> Result<Step> {
        let layout = self.reader.layout;
        let commit_would_show = layout.has_block_checksums() && !layout.async_commit;
        if !begins || !commit_would_show {
            return Err(error);
        }
        // One bad sector of the medium may be several blocks, and a whole small transaction with
        // its commit block: then nothing would show.
        let next = self.reader.after(at, 1);
        self.reader.is_own(next)?;
        // The transaction's commit block is as far away as the transaction is long.
        self.look_ahead = self.reader.capacity();
        self.out.findings.push(RecoveryFinding::Unreadable { tid: self.out.end, at });
        Ok(Step::End(at))
    }

    /// False if its blocks would not fit the log.
    fn descriptor(&mut self, at: LogBlock, block: &[u8], t: &mut Candidate) -> Result<bool> {
        let layout = self.reader.layout;
        if !layout.tail_matches(block) {
            t.bad.get_or_insert(format!("the checksum of its descriptor block at {at}"));
        }
        let v1 = layout.checksums == Checksums::V1;
        if v1 {
            t.v1_sum = crc32_be(t.v1_sum, block);
        }
        for tag in descriptor::tags(&layout, block) {
            let Some(at) = self.take() else { return Ok(false) };
            if v1 {
                t.v1_sum = crc32_be(t.v1_sum, &self.reader.block(at)?);
            }
            t.images.push((at, tag));
        }
        Ok(true)
    }

    fn revoke(&mut self, at: LogBlock, block: &[u8], t: &mut Candidate) {
        let layout = self.reader.layout;
        if !layout.tail_matches(block) {
            t.bad.get_or_insert(format!("the checksum of its revoke block at {at}"));
        }
        match revoke::entries(&layout, block) {
            Ok(blocks) => t.revokes.extend(blocks),
            Err(e) => {
                t.bad.get_or_insert(e.to_string());
            }
        }
    }

    fn commit(&mut self, at: LogBlock, block: &[u8], t: &mut Candidate) -> u64 {
        let read = commit_block::decode(&self.reader.layout, block, t.v1_sum);
        match read.verdict {
            Verdict::Good => {}
            Verdict::Torn => self.out.findings.push(RecoveryFinding::TornCommit { tid: t.tid }),
            Verdict::Bad => {
                t.bad.get_or_insert(format!("the checksum of its commit block at {at}"));
            }
        }
        read.seconds
    }

    /// A transaction is complete but a checksum in it fails: see the module's table.
    fn judge(&mut self, tid: Tid, seconds: u64, what: String) -> Result<()> {
        let what = format!("{what} does not match");
        if self.goes_on(self.at)?.is_none() {
            if seconds < self.last_seconds {
                self.out.findings.push(RecoveryFinding::Stale { tid });
                return Ok(());
            }
            if self.reader.may_end_torn() && !self.begins(tid.plus(1))? {
                self.out.findings.push(RecoveryFinding::Interrupted { tid, what });
                return Ok(());
            }
        }
        Err(JournalError::corrupt(what, format!("transaction {tid}")))
    }

    /// Whether the next block is one of transaction `tid`, by its header alone: all that there
    /// is to go by with checksum v1.
    fn begins(&mut self, tid: Tid) -> Result<bool> {
        let block = self.reader.block(self.at)?;
        Ok(Header::of(&block).is_some_and(|h| h.tid() == tid))
    }

    /// No transaction was found at `from`; refuses a log that should not have ended there.
    fn check_end(&mut self, from: LogBlock) -> Result<()> {
        let Some(at) = self.goes_on(from)? else { return Ok(()) };
        let what = format!("the log is damaged at block {from}, but goes on at {at}");
        Err(JournalError::corrupt(what, format!("transaction {}", self.out.end)))
    }

    /// The first block from `from` on that says that transaction `end` had committed.
    fn goes_on(&mut self, from: LogBlock) -> Result<Option<LogBlock>> {
        let layout = self.reader.layout;
        if !layout.has_block_checksums() {
            return Ok(None);
        }
        for n in 0..self.look_ahead {
            let at = self.reader.after(from, n);
            // OK to ignore: what cannot be read proves nothing (see the module's text).
            if !self.reader.is_own(at).unwrap_or(false) {
                continue;
            }
            let Ok(block) = self.reader.block(at) else { continue };
            if self.proves_commit(&block) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Whether a block can only be there if transaction `end` has committed.
    fn proves_commit(&self, block: &[u8]) -> bool {
        let layout = self.reader.layout;
        let end = self.out.end;
        let Some(header) = Header::of(block) else { return false };
        let ahead = header.tid().distance_from(end);
        match header.kind() {
            BlockType::Descriptor | BlockType::Revoke => {
                (1..=self.reader.capacity()).contains(&ahead) && layout.tail_matches(block)
            }
            BlockType::Commit => {
                let least = u32::from(layout.async_commit);
                let read = commit_block::decode(&layout, block, 0);
                (least..=self.reader.capacity()).contains(&ahead)
                    && read.verdict == Verdict::Good
                    && read.seconds >= self.last_seconds
            }
            _ => false,
        }
    }
}
