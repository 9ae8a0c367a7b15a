//! Reading the log in large pieces, or block by block where the device gains nothing by more.

use bytes::Bytes;

use crate::ondisk::MAGIC;
use crate::ondisk::layout::Layout;
use crate::ondisk::superblock::Superblock;
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
    pub(super) fn new(log: &'a Log, sb: &Superblock) -> Self {
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
        self.log.has(bug)
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
