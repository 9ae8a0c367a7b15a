//! A hook of the file system before a checkpoint writes to home locations.

use bytes::Bytes;

use crate::{FsBlock, Result, Tid};

/// Called before every checkpoint, and before a recovery writes to home locations.
///
/// An external journal may be replaced by an older copy of itself. Blocks that were checkpointed
/// since then do not fit this copy. So the file system records on its own device how far a log must
/// go.
pub trait CheckpointHook: Send + Sync + std::fmt::Debug {
    /// These blocks are about to be written to their home locations. They are of committed
    /// transactions, none newer than `newest`. On return everything that must precede them on the
    /// device is durable. An image may be replaced by one that means the same to a reader of the
    /// whole log.
    ///
    /// # Errors
    /// Nothing is written then, and the journal is aborted.
    fn before_checkpoint(&self, newest: Tid, images: &mut [(FsBlock, Bytes)]) -> Result<()>;
}
