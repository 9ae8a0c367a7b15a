//! Reads blocks: from the overlay where it has them, else from what was read ahead, else from the
//! device.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_ext4_format::Result;
use steadfast_journal::{FsBlock, Overlay};

use crate::ahead::{ReadAhead, ReadRange};

/// The file system's blocks. Callers check numbers against the layout first.
pub(super) struct Source<'a> {
    device: &'a Arc<dyn BlockDevice>,
    overlay: Option<&'a Overlay>,
    block_size: u64,
    ahead: ReadAhead,
}

impl<'a> Source<'a> {
    pub(super) fn new(
        device: &'a Arc<dyn BlockDevice>,
        overlay: Option<&'a Overlay>,
        block_size: u32,
    ) -> Self {
        let block_size = u64::from(block_size);
        Source { device, overlay, block_size, ahead: ReadAhead::new(block_size) }
    }

    /// Says what will be asked for with [`next`](Self::next), in this order.
    pub(super) fn plan(&mut self, wanted: Vec<ReadRange>) {
        if self.device.gains_by_reading_ahead() {
            self.ahead.plan(wanted);
        }
    }

    /// The next blocks that were planned.
    pub(super) fn next(&mut self, first: u64, count: u64) -> Result<Bytes> {
        self.ahead.advance(self.device);
        self.blocks(first, count)
    }

    /// One block.
    pub(super) fn block(&self, number: u64) -> Result<Bytes> {
        if let Some(bytes) = self.overlay.and_then(|o| o.get(&FsBlock(number)))
            && bytes.len() as u64 == self.block_size
        {
            return Ok(bytes.clone());
        }
        self.read(number, 1)
    }

    fn read(&self, first: u64, count: u64) -> Result<Bytes> {
        match self.ahead.get(first, count) {
            Some(bytes) => Ok(bytes),
            None => Ok(self.device.read(first * self.block_size, count * self.block_size)?),
        }
    }

    /// `count` blocks from `first` on, in one piece. Callers keep `count` small.
    pub(super) fn blocks(&self, first: u64, count: u64) -> Result<Bytes> {
        let bytes = self.read(first, count)?;
        let Some(overlay) = self.overlay else { return Ok(bytes) };
        let mut newer = overlay
            .range(FsBlock(first)..FsBlock(first + count))
            .filter(|(_, b)| b.len() as u64 == self.block_size)
            .peekable();
        if newer.peek().is_none() {
            return Ok(bytes);
        }
        let mut patched = bytes.to_vec();
        for (number, block) in newer {
            let at = ((number.0 - first) * self.block_size) as usize;
            patched[at..at + block.len()].copy_from_slice(block);
        }
        Ok(patched.into())
    }
}
