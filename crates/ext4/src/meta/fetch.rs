//! Reading metadata blocks without the metadata lock.
//!
//! An operation that yields does not wait for the device under the lock: when it misses a block it
//! fails with [`Ext4Error::NotCached`], which drops its transaction, and [`Parts::with_blocks`]
//! reads the block into the cache and runs the operation again. A transaction that is dropped has
//! changed nothing, so it may be run as often as it takes.
//!
//! # Invariants
//!
//! 1. What comes from the device is kept only for blocks that nobody has changed since the read
//!    began ([`Fetches::changed`]): the metadata lock orders the two.
//! 2. A block of which the log has an image, or the cache contents, is not taken from the device.

use bytes::Bytes;
use steadfast_block::{Completion, Request};
use steadfast_ext4_format::{Ext4Error, Result};

use super::parts::Parts;
use crate::state::Fetch;

/// An operation that has missed this often reads under the lock: with a small cache two of them
/// could else drive out each other's blocks for ever.
const MISSES_MAX: u32 = 64;

impl Parts {
    /// Runs an operation that yields until it finds its blocks in memory.
    pub(crate) fn with_blocks<T>(&self, mut operation: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 0..MISSES_MAX {
            match operation() {
                Err(Ext4Error::NotCached { block, ahead }) => self.fetch(block, ahead)?,
                outcome => return outcome,
            }
        }
        self.meta.fall_back(operation)
    }

    /// Brings a block, and `ahead` blocks after it, into the cache.
    fn fetch(&self, block: u64, ahead: u32) -> Result<()> {
        let Some((id, completion)) = self.join_fetch(block, ahead)? else { return Ok(()) };
        let answer = completion.wait();
        let mut meta = self.lock_meta();
        let running = &mut meta.fetches.running;
        // Whoever comes first of those who wait for it puts it into the cache.
        let Some(at) = running.iter().position(|f| f.id == id) else {
            return Ok(answer.map(drop)?);
        };
        let fetch = running.swap_remove(at);
        let bytes = answer?;
        let size = self.volume.block_size() as usize;
        let mut cache = meta.cache.borrow_mut();
        for (i, contents) in bytes.chunks_exact(size).enumerate() {
            let block = fetch.first + i as u64;
            if !fetch.changed.contains(&block) {
                // A copy of its own: a slice would pin the whole read.
                cache.insert(block, Bytes::copy_from_slice(contents), false);
            }
        }
        Ok(())
    }

    /// The read that brings the block, begun now if there is none; `None` if it is here.
    fn join_fetch(&self, block: u64, ahead: u32) -> Result<Option<(u64, Completion)>> {
        let mut meta = self.lock_meta();
        let in_memory = |b: u64| meta.cache.borrow().contains(b) || self.log.image(b).is_some();
        if in_memory(block) {
            return Ok(None);
        }
        let covers = |f: &&Fetch| {
            (f.first..f.first + f.count).contains(&block) && !f.changed.contains(&block)
        };
        if let Some(fetch) = meta.fetches.running.iter().find(covers) {
            return Ok(Some((fetch.id, fetch.completion.clone())));
        }
        let end = block.saturating_add(u64::from(ahead) + 1).min(self.volume.layout.blocks_count);
        if block >= end {
            let place = format!("block {block}");
            return Err(Ext4Error::corrupt("a block beyond the end of the file system", place));
        }
        let changed = (block..end).filter(|b| in_memory(*b)).collect();
        let (completer, completion) = Completion::pending();
        let fetches = &mut meta.fetches;
        fetches.last_id += 1;
        let (id, count) = (fetches.last_id, end - block);
        let fetch = Fetch { id, first: block, count, completion: completion.clone(), changed };
        fetches.running.push(fetch);
        drop(meta);
        // Without the lock: a device's queue may be full.
        let size = self.volume.block_size();
        let read = Request::Read { offset: block * size, len: count * size };
        self.volume.device.submit(read).on_done(move |answer| completer.complete(answer.clone()));
        Ok(Some((id, completion)))
    }
}
