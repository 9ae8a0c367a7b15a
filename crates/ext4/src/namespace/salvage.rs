//! Names of a directory that cannot be gone through in its own order.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_vfs::{DirBlock, Dirent, Ino};

use super::entry::kind_to_list;
use crate::dir::InodeBlocks;
use crate::extents::next_extent;
use crate::meta::Parts;

/// What can be read of the first block of `dir` at or after its byte `from`; `None` behind the
/// last. Blocks that have no place on the device are passed over, however many the size claims.
///
/// # Errors
/// ENOTDIR; a corrupt inode or map of blocks.
pub fn readdir_block(parts: &Parts, dir: InodeNo, from: u64) -> Result<Option<DirBlock>> {
    let txn = parts.look_yielding();
    let size = parts.volume.block_size();
    let directory = InodeBlocks::directory(&txn, dir)?;
    let Some(extent) = next_extent(&txn, dir, from.div_ceil(size))? else { return Ok(None) };
    let number = u64::from(extent.logical).max(from.div_ceil(size));
    let Some(number) = u32::try_from(number).ok().filter(|n| *n < directory.block_count()) else {
        return Ok(None);
    };
    let (names, damage) = directory.read_block(number)?;
    let mut entries = Vec::with_capacity(names.len());
    for e in names {
        let kind = e.kind.map_or_else(|| kind_to_list(&txn, e.ino), Ok)?;
        entries.push(Dirent { ino: Ino(e.ino.0.into()), kind, name: e.name, next: 0 });
    }
    let end = (u64::from(number) + 1) * size;
    Ok(Some(DirBlock { entries, end, damage: damage.map(Into::into) }))
}
