//! Reading a block that is not in a transaction's overlay.

use bytes::Bytes;
use steadfast_ext4_format::{Ext4Error, Result};

use super::lock::MetaState;
use super::log::MetaLog;
use super::volume::Volume;

/// What to do about a block that is not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Miss {
    /// Read it, with the metadata lock held.
    Wait,
    /// Say so, so that it is read without the lock, with some blocks behind it.
    Yield {
        /// How many.
        ahead: u32,
    },
}

impl MetaState {
    /// A block from the cache, the log or the device, in this order. `check` is asked once for a
    /// block that comes from outside.
    ///
    /// # Errors
    /// `NotCached` if `miss` says so.
    pub fn read(
        &self,
        volume: &Volume,
        log: &MetaLog,
        block: u64,
        check: &dyn Fn(&[u8]) -> Result<()>,
        miss: Miss,
    ) -> Result<Bytes> {
        let mut cache = self.cache.borrow_mut();
        if let Some(cached) = cache.get(block) {
            if !cached.verified {
                check(&cached.contents)?;
                cache.mark_verified(block);
            }
            return Ok(cached.contents);
        }
        drop(cache);
        let contents = match log.image(block) {
            Some(image) => image,
            None => match miss {
                Miss::Yield { ahead } => return Err(Ext4Error::NotCached { block, ahead }),
                Miss::Wait => read_device(volume, block)?,
            },
        };
        let outcome = check(&contents);
        self.cache.borrow_mut().insert(block, contents.clone(), outcome.is_ok());
        outcome.map(|()| contents)
    }
}

fn read_device(volume: &Volume, block: u64) -> Result<Bytes> {
    let size = volume.block_size();
    if block >= volume.layout.blocks_count {
        let place = format!("block {block}");
        return Err(Ext4Error::corrupt("a block beyond the end of the file system", place));
    }
    Ok(volume.device.read(block * size, size)?)
}
