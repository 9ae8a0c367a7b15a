//! Reading the log in large pieces, or block by block where the device gains nothing by more.

use bytes::Bytes;

use crate::ondisk::MAGIC;
use crate::ondisk::layout::Layout;
use crate::ondisk::superblock::JournalSuperblock;
use crate::planted::Bug;
use crate::{Log, LogBlock, Result};

/// Bytes read at once.
const WINDOW_BYTES: u32 = 1 << 20;

/// The log, with the two pieces last read kept: a small log that goes round is read once, however
/// many passes look at it.
pub(super) struct Reader<'a> {
    log: &'a Log,
    pub layout: Layout,
    first: u32,
    end: u32,
    /// Blocks read at once.
    piece: u32,
    /// First block and contents of each, the one last used first.
    windows: [(u32, Bytes); 2],
}

impl<'a> Reader<'a> {
    pub(super) fn new(log: &'a Log, sb: &JournalSuperblock) -> Self {
        let piece = match log.device().gains_by_reading_ahead() {
            true => (WINDOW_BYTES / log.block_size()).max(1),
            false => 1,
        };
        Reader {
            log,
            piece,
            layout: Layout::of(sb),
            first: sb.first().0,
            end: sb.end().0,
            windows: Default::default(),
        }
    }

    /// Whether a power cut may leave a transaction whose commit block is there and a checksum in
    /// it wrong: with asynchronous commit, or on a medium that tears sectors.
    pub(super) fn may_end_torn(&self) -> bool {
        self.layout.async_commit || self.log.device().info().atomic_write < 512
    }

    /// Whether this bug is switched on.
    pub(super) fn has(&self, bug: Bug) -> bool {
        self.log.planted.has(bug)
    }

    /// Blocks that transactions can use.
    pub(super) fn capacity(&self) -> u32 {
        self.end - self.first
    }

    /// The log block `n` after `at`, going round.
    pub(super) fn after(&self, at: LogBlock, n: u32) -> LogBlock {
        let ahead = u64::from(at.0 - self.first) + u64::from(n);
        LogBlock(self.first + (ahead % u64::from(self.capacity())) as u32)
    }

    /// One block; it shares the memory of the piece it was read with.
    pub(super) fn block(&mut self, at: LogBlock) -> Result<Bytes> {
        let block_size = self.layout.block_size;
        let holds = |(first, window): &(u32, Bytes)| {
            at.0 >= *first && ((at.0 - first) as usize) < window.len() / block_size
        };
        if !holds(&self.windows[0]) {
            self.windows.swap(0, 1);
        }
        if !holds(&self.windows[0]) {
            let count = self.piece.min(self.log.blocks() - at.0);
            // An unreadable block that nobody asks for is no reason to refuse the others.
            let window = self.log.read(at, count).or_else(|_| self.log.read(at, 1))?;
            self.windows[0] = (at.0, window);
        }
        let (first, window) = &self.windows[0];
        let from = (at.0 - first) as usize * block_size;
        Ok(window.slice(from..from + block_size))
    }

    /// Whether a block may be one of the journal's own: it begins with the magic number. Most that
    /// are looked at are not.
    pub(super) fn is_own(&mut self, at: LogBlock) -> Result<bool> {
        let magic = MAGIC.to_be_bytes();
        if self.piece > 1 {
            return Ok(self.block(at)?.starts_with(&magic));
        }
        self.log.begins_with(at, &magic)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::Disk;
    use crate::{FormatOptions, format};

    const BLOCK: u64 = 1024;

    /// An external journal of 4 MiB, of which each block holds its number.
    fn numbered() -> (Arc<Disk>, Log, JournalSuperblock) {
        let disk = Disk::new("d", 4 << 20);
        let log = Log::external(disk.device(), BLOCK as u32).unwrap();
        let sb = format(&log, &FormatOptions::new(uuid::Uuid::from_u128(1))).unwrap();
        for number in sb.first().0..sb.end().0 {
            disk.poke(number as usize * BLOCK as usize, &number.to_be_bytes());
        }
        disk.take_reads();
        (disk, log, sb)
    }

    fn number(reader: &mut Reader<'_>, at: u32) -> Result<u32> {
        let block = reader.block(LogBlock(at))?;
        assert_eq!(block.len() as u64, BLOCK);
        Ok(u32::from_be_bytes([block[0], block[1], block[2], block[3]]))
    }

    #[test]
    fn an_unreadable_block_hides_none_of_those_before_it() {
        let (disk, log, sb) = numbered();
        let mut reader = Reader::new(&log, &sb);
        disk.make_unreadable(600 * BLOCK..600 * BLOCK + 512);
        for at in 590..600 {
            assert_eq!(number(&mut reader, at).unwrap(), at);
        }
        assert!(number(&mut reader, 600).unwrap_err().to_string().contains("made unreadable"));
        // Behind it the pieces are whole again.
        disk.take_reads();
        assert_eq!(number(&mut reader, 601).unwrap(), 601);
        assert_eq!(disk.take_reads(), [(601 * BLOCK, 1 << 20)]);
    }

    #[test]
    fn two_pieces_are_kept_and_none_reaches_beyond_the_log() {
        let (disk, log, sb) = numbered();
        let mut reader = Reader::new(&log, &sb);
        let last = sb.end().0 - 1;
        for at in [10, last, 11, last, 1033, 10] {
            assert_eq!(number(&mut reader, at).unwrap(), at);
        }
        let reads = [(10 * BLOCK, 1 << 20), (u64::from(last) * BLOCK, BLOCK)];
        assert_eq!(disk.take_reads(), reads);
        // A third one takes the place of the one not used last.
        assert_eq!(number(&mut reader, 1034).unwrap(), 1034);
        assert_eq!(number(&mut reader, 10).unwrap(), 10);
        assert_eq!(disk.take_reads(), [(1034 * BLOCK, 1 << 20)]);
        assert_eq!(number(&mut reader, last).unwrap(), last);
        assert_eq!(disk.take_reads().len(), 1);
    }

    #[test]
    fn the_log_goes_round() {
        let (_, log, sb) = numbered();
        let reader = Reader::new(&log, &sb);
        let (first, end) = (sb.first(), sb.end());
        assert_eq!(reader.capacity(), end.0 - first.0);
        assert_eq!(reader.after(first, 1).0, first.0 + 1);
        assert_eq!(reader.after(LogBlock(end.0 - 1), 1), first);
        assert_eq!(reader.after(LogBlock(end.0 - 1), 3).0, first.0 + 2);
        assert_eq!(reader.after(first, reader.capacity()), first);
    }

    #[test]
    fn what_begins_with_the_magic_number_is_the_journals() {
        let (disk, log, sb) = numbered();
        disk.poke(50 * BLOCK as usize, &MAGIC.to_be_bytes());
        let mut reader = Reader::new(&log, &sb);
        for piece in [reader.piece, 1] {
            reader.piece = piece;
            assert!(reader.is_own(LogBlock(50)).unwrap() && !reader.is_own(LogBlock(51)).unwrap());
        }
    }
}
