//! How much there can be of anything in an image.
//!
//! A block belongs to one file, so what goes beyond the image's blocks is made up: a map of a few
//! blocks can claim the same ones a million times.

use steadfast_vfs::{FileSystem, Result};

use super::Side;

/// What is said of a file that goes beyond.
pub(super) const BEYOND: &str = "claims more blocks than the image has";

/// How much one file or folder can have.
#[derive(Debug, Clone, Copy)]
pub(super) struct SizeLimit {
    /// Bytes.
    pub bytes: u64,
    /// Bytes a block.
    pub block: u64,
}

impl SizeLimit {
    /// For what is as it seems: the kernel sees to it.
    pub const NONE: SizeLimit = SizeLimit { bytes: u64::MAX, block: 1 };

    /// As much as the file system has blocks, if it is an image.
    ///
    /// # Errors
    /// The file system has no such query.
    pub fn of(fs: &dyn FileSystem, side: Side) -> Result<Self> {
        if side == Side::Host {
            return Ok(Self::NONE);
        }
        let stat = fs.statfs()?;
        let block = u64::from(stat.block_size).max(1);
        Ok(SizeLimit { bytes: stat.blocks.saturating_mul(block), block })
    }
}
