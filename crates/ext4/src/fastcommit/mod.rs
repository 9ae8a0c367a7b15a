//! Fast commits: what a file system did since its last full commit, in words of its own.
//!
//! The journal finds them and checks their checksums; what they mean is here. They name entries
//! of directories that came or went, and hold inodes and ranges of blocks of files as they were
//! when somebody asked for them to be durable (kernel: `fs/ext4/fast_commit.c`). Whatever follows
//! from that, bitmaps, counts, trees, blocks of directories, is worked out again.
//!
//! * [`tags`]: what each tag holds, read and checked.
//! * [`replay`]: the same changes made in one transaction, in memory.
//! * [`space`]: blocks and inode numbers that are given, not searched for.
//! * [`write`]: what the running transaction has recorded ([`Txn::record`](crate::meta::Txn)).

mod replay;
mod space;
mod tags;
mod write;

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::{RangeSet, Result};
use steadfast_journal::{FsBlock, Overlay, Recovery};

use crate::stage::stage_over;

pub(crate) use space::is_inode_number_taken;

pub(crate) use write::fast_commit;

/// The blocks that the log's fast commits change, over what its transactions write home. None if
/// there are none.
///
/// # Errors
/// Corrupt: they cannot be right, or the file system is damaged where they change it. Unsupported:
/// what cannot be replayed, by name. Nothing is written in any case.
pub(crate) fn changes(
    device: &Arc<dyn BlockDevice>,
    recovery: &Recovery,
    journal_blocks: RangeSet,
) -> Result<Overlay> {
    let Some(fast) = &recovery.fast_commits else { return Ok(Overlay::new()) };
    let parts = stage_over(device, &recovery.overlay, journal_blocks)?;
    replay::replay(&parts, &fast.commits)?;
    let images = parts.log.take_images();
    Ok(images.into_iter().map(|(block, image)| (FsBlock(block), image)).collect())
}
