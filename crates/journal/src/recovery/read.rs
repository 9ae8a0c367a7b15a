//! Reading the log in large pieces.

use bytes::Bytes;

use crate::ondisk::layout::Layout;
use crate::ondisk::superblock::Superblock;
use crate::{Log, LogBlock, Result};

/// Bytes read at once.
const WINDOW_BYTES: u32 = 1 << 20;

/// The log, with the piece last read kept.
pub(super) struct Reader<'a> {
    log: &'a Log,
    pub layout: Layout,
    first: u32,
    end: u32,
    window_at: u32,
    window: Bytes,
}

impl<'a> Reader<'a> {
    pub(super) fn new(log: &'a Log, sb: &Superblock) -> Self {
        Reader {
            log,
            layout: Layout::of(sb),
            first: sb.first().0,
            end: sb.end().0,
            window_at: 0,
            window: Bytes::new(),
        }
    }

    /// Whether a power cut may leave a transaction whose commit block is there and a checksum in
    /// it wrong: with asynchronous commit, or on a medium that tears sectors.
    pub(super) fn may_end_torn(&self) -> bool {
        self.layout.async_commit || self.log.device().info().atomic_write < 512
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
        let held = (self.window.len() / block_size) as u32;
        if at.0 < self.window_at || at.0 >= self.window_at + held {
            let count = (WINDOW_BYTES / self.log.block_size()).max(1).min(self.log.blocks() - at.0);
            self.window = self.log.read(at, count)?;
            self.window_at = at.0;
        }
        let from = (at.0 - self.window_at) as usize * block_size;
        Ok(self.window.slice(from..from + block_size))
    }
}
