//! What fallocate does to a mapping beside adding and removing: making extents unwritten again,
//! and moving them within the file.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{Extent, InodeNo, MAX_UNWRITTEN_LEN};

use super::file::{next_extent, read_tree, remap};
use crate::meta::Txn;
use crate::state::MapChange;

/// The last extent that begins at or before file block `logical`.
pub(crate) fn extent_at_or_before(
    txn: &Txn<'_>,
    no: InodeNo,
    logical: u32,
) -> Result<Option<Extent>> {
    let raw = txn.raw_inode(no)?;
    read_tree(txn, no, &raw, |tree| tree.at_or_before(logical))
}

/// What is written within `[from, to)` reads as zeros again; its places stay.
pub(crate) fn mark_unwritten(txn: &mut Txn<'_>, no: InodeNo, from: u64, to: u64) -> Result<()> {
    let mut at = from;
    while let Some(e) = next_extent(txn, no, at)?.filter(|e| u64::from(e.logical) < to) {
        if e.unwritten {
            at = e.end();
            continue;
        }
        let start = at.max(e.logical.into());
        let end = e.end().min(to).min(start + u64::from(MAX_UNWRITTEN_LEN));
        let part = e.clipped(start, end);
        remap(txn, no, &part, Extent { unwritten: true, ..part })?;
        at = end;
    }
    Ok(())
}

/// Moves an extent, which is in the tree as a whole or in part, to file block `logical`: a hole
/// of its length, or one that what it leaves makes long enough.
pub(crate) fn move_extent(
    txn: &mut Txn<'_>,
    no: InodeNo,
    extent: Extent,
    logical: u32,
) -> Result<()> {
    let (from, to) = (u64::from(extent.logical), extent.end());
    txn.edit_inode(no)?.map_changes.push(MapChange::Unmapped { from, to });
    remap(txn, no, &extent, Extent { logical, ..extent })
}
