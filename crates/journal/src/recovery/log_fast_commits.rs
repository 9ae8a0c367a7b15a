//! Recovery logs the result of fast commits as an ordinary transaction.
//!
//! The kernel replays them in place. A power cut in the middle leaves the file system half changed,
//! and a second replay must complete it. Here the result is computed in memory, as block images,
//! and logged as the transaction that was running when the fast commits were written. Until its
//! commit block is durable, every recovery finds the old log; afterwards it finds a complete
//! transaction, and the fast commits are void because they belong to it.
//!
//! # Order
//!
//! 1. What the log holds is home and flushed (the caller). The log is not needed any more.
//! 2. The superblock says that the log begins, with that number, at a block that holds nothing of
//!    a transaction of this number: an empty log that is not clean. Durable before anything is
//!    written over.
//! 3. The place of the new transaction is filled with zeros, flushed: no remains of an interrupted
//!    transaction with the same number are taken for a part of it.
//! 4. Descriptors and images; flush; the commit block; the void fast commits go (see `fast`).
//! 5. The images go home, and the log is marked clean (the caller).

use bytes::Bytes;

use super::Overlay;
use crate::checksum::{ImageSums, crc32_be};
use crate::commit::tag_of;
use crate::ondisk::layout::Layout;
use crate::ondisk::superblock::JournalSuperblock;
use crate::ondisk::{Header, commit_block, descriptor};
use crate::writer::Writer;
use crate::{JournalError, Log, LogBlock, Result, Tid};

/// Refuses changes that do not fit the log at once.
pub(super) fn check_fits(sb: &JournalSuperblock, changes: &Overlay) -> Result<()> {
    let wanted = Layout::of(sb).log_blocks(changes.len(), 0);
    if wanted > sb.capacity() as usize {
        return Err(JournalError::refused(format!(
            "replaying the fast commits takes {wanted} log blocks, and the log has {}: let e2fsck \
             replay the journal",
            sb.capacity()
        )));
    }
    Ok(())
}

/// Logs `changes` as transaction `tid`, committed at `unix_ns`. The log holds nothing else that
/// is needed, but fast commits.
pub(super) fn log_transaction(log: &Log, tid: Tid, changes: &Overlay, unix_ns: u64) -> Result<()> {
    let sb = log.read_superblock()?;
    check_fits(&sb, changes)?;
    let layout = Layout::of(&sb);
    let start = free_block(log, &sb, tid)?;
    let cached = log.device().info().volatile_cache;
    let flush = || -> Result<()> { if cached { Ok(log.device().flush()?) } else { Ok(()) } };
    super::rewrite(log, |sb| sb.set_tail(Some(start), tid))?;
    let writer = Writer::new(&**log.device(), 1 << 20, 32);
    let round = (sb.first().0, sb.end().0);
    let mut out = LogAppender { log, layout, writer, at: start.0, round, v1_sum: !0 };
    let zeros = Bytes::from(vec![0; layout.block_size]);
    for _ in 0..layout.log_blocks(changes.len(), 0) {
        out.push(zeros.clone());
    }
    out.writer.finish()?;
    flush()?;
    out.at = start.0;
    let images: Vec<_> = changes.iter().collect();
    let sums = ImageSums::new(layout, tid);
    for group in images.chunks(layout.tags_per_descriptor()) {
        let (tags, images): (Vec<_>, Vec<_>) =
            group.iter().map(|(block, image)| tag_of(&sums, **block, image)).unzip();
        out.push_summed(descriptor::encode(&layout, tid, sb.uuid().as_bytes(), &tags).into());
        images.into_iter().for_each(|image| out.push_summed(image));
    }
    out.writer.finish()?;
    flush()?;
    let commit = commit_block::encode(&layout, tid, unix_ns, out.v1_sum);
    log.write_block(LogBlock(out.at), commit.into(), true)?;
    crate::fast::clear(log, &sb, true)
}

/// A block of the log that does not belong to transaction `tid`.
fn free_block(log: &Log, sb: &JournalSuperblock, tid: Tid) -> Result<LogBlock> {
    for at in (sb.first().0..sb.end().0).map(LogBlock) {
        // OK to ignore: another block is readable, or the log has failed.
        let Ok(block) = log.read(at, 1) else { continue };
        let header = Header::of(&block);
        if header.is_none_or(|header| header.tid() != tid) {
            return Ok(at);
        }
    }
    Err(JournalError::corrupt("one transaction takes the whole log", format!("transaction {tid}")))
}

/// Where the next block goes.
struct LogAppender<'a> {
    log: &'a Log,
    layout: Layout,
    writer: Writer<'a>,
    at: u32,
    /// First and end of the blocks that go round.
    round: (u32, u32),
    v1_sum: u32,
}

impl LogAppender<'_> {
    fn push(&mut self, block: Bytes) {
        let (offset, _) = self.log.place(LogBlock(self.at), 1);
        self.writer.push(offset, block);
        self.at += 1;
        if self.at == self.round.1 {
            self.at = self.round.0;
        }
    }

    fn push_summed(&mut self, block: Bytes) {
        if self.layout.checksums == crate::Checksums::V1 {
            self.v1_sum = crc32_be(self.v1_sum, &block);
        }
        self.push(block);
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;
    use crate::ondisk::BlockType;
    use crate::testing::Disk;
    use crate::{FormatOptions, format};

    const BLOCK: usize = 1024;

    /// The superblock will say that the log begins there, with this number: nothing may seem to be
    /// a part of the transaction, also where a block cannot be read.
    #[test]
    fn the_new_transaction_does_not_begin_at_a_block_of_its_number() {
        let disk = Disk::new("d", 4 << 20);
        let log = Log::external(disk.device(), BLOCK as u32).unwrap();
        let sb = format(&log, &FormatOptions::new(uuid::Uuid::from_u128(1))).unwrap();
        let (tid, first) = (Tid(7), sb.first().0);
        let at = |n: u32| (first + n) as usize * BLOCK;
        let header = Header::new(BlockType::Descriptor, tid);
        let descriptor = header.as_bytes();
        assert_eq!(free_block(&log, &sb, tid).unwrap(), sb.first());
        disk.poke(at(0), descriptor);
        disk.poke(at(1), descriptor);
        assert_eq!(free_block(&log, &sb, tid).unwrap(), LogBlock(first + 2));
        disk.make_unreadable(at(2) as u64..at(3) as u64);
        assert_eq!(free_block(&log, &sb, tid).unwrap(), LogBlock(first + 3));
        // An earlier transaction is in nobody's way.
        assert_eq!(free_block(&log, &sb, Tid(8)).unwrap(), sb.first());
        for n in 0..sb.capacity() {
            disk.poke(at(n), descriptor);
        }
        assert!(matches!(free_block(&log, &sb, tid), Err(JournalError::Corrupt { .. })));
    }
}
