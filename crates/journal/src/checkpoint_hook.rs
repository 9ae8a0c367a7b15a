//! What the owner of a journal does before a checkpoint writes home.

use bytes::Bytes;

use crate::{FsBlock, Result, Tid};

/// Asked before every checkpoint, and before a recovery writes home.
///
/// An external journal may be put back as it was some time ago. What has been written home since
/// then does not fit it, so the owner notes on the file system's device how far a log must go.
pub trait CheckpointHook: Send + Sync + std::fmt::Debug {
    /// These blocks are about to go home. They are of committed transactions, none newer than
    /// `newest`. On return whatever shall be on the device before them is durable. An image may be
    /// replaced by one that says the same to whoever has the whole log.
    ///
    /// # Errors
    /// Nothing is written home then, and the journal is aborted.
    fn before_checkpoint(&self, newest: Tid, images: &mut [(FsBlock, Bytes)]) -> Result<()>;
}
