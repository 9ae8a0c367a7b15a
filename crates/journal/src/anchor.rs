//! The journal superblock while the journal is in use: one writer at a time.
//!
//! The superblock says where recovery begins. It is written when the first transaction goes into
//! a clean log, when a checkpoint has moved the tail, when the log is clean again, and when the
//! journal is aborted. Its block is written whole, and only the first sector changes.

use bytes::Bytes;
use steadfast_runtime::Mutex;

use crate::ondisk::superblock::Superblock;
use crate::{Log, LogBlock, Result, Tid};

struct Inner {
    sb: Superblock,
    /// The whole block; what lies beyond the superblock is kept.
    block: Vec<u8>,
}

/// The superblock; the lock is held while it is written.
pub(crate) struct Anchor {
    log: Log,
    inner: Mutex<Inner>,
}

impl Anchor {
    pub(crate) fn new(log: Log, sb: Superblock, block: &[u8]) -> Self {
        Anchor { log, inner: Mutex::new(Inner { sb, block: block.to_vec() }) }
    }

    pub(crate) fn get(&self) -> Superblock {
        self.inner.lock().sb
    }

    /// Writes what `change` makes of the superblock; durable on return if `durable`. `change`
    /// runs under the lock, so it sees what the last writer left; without an answer from it
    /// nothing is written.
    pub(crate) fn update(
        &self,
        durable: bool,
        change: impl FnOnce(&mut Superblock) -> Option<()>,
    ) -> Result<()> {
        let mut inner = self.inner.lock();
        let mut sb = inner.sb;
        if change(&mut sb).is_none() {
            return Ok(());
        }
        inner.sb = sb;
        inner.block[..Superblock::BYTES].copy_from_slice(&sb.encode());
        let block = Bytes::copy_from_slice(&inner.block);
        self.log.write_block(self.log.superblock_at(), block, durable)
    }

    pub(crate) fn set_tail(&self, start: LogBlock, tid: Tid, durable: bool) -> Result<()> {
        self.update(durable, |sb| {
            sb.set_tail(Some(start), tid);
            Some(())
        })
    }
}
