//! Space that reads as zeros: allocated, or made so again.

use std::ops::Range;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::extents::Lookup;

use super::punch::drop_range;
use crate::extents::{find_extent, mark_unwritten};
use crate::file::place::place_run;
use crate::file::reserve::{finish_placed, promised};
use crate::meta::Txn;
use crate::mounted::Ext4;
use crate::state::Inode;

/// Finds places for all blocks that `[offset, end)` bytes touch; new ones are unwritten. What
/// is written in file blocks `zeroed` becomes unwritten too. Without `keep_size` the file
/// reaches to `end` at the least, step by step.
pub(crate) fn allocate_range(
    fs: &Ext4,
    inode: &Inode,
    offset: u64,
    end: u64,
    keep_size: bool,
    zeroed: Option<Range<u64>>,
) -> Result<()> {
    let block = fs.volume.block_size();
    let (mut at, to) = (offset / block, end.div_ceil(block));
    let zeroed = zeroed.unwrap_or(0..0);
    while at < to {
        at = fs.with_space(|| {
            let mut txn = fs.parts.begin_yielding()?;
            let reached = fill(fs, &mut txn, inode, at, to, &zeroed)?;
            let size = end.min(reached * block);
            let grows = !keep_size && size > inode.state().size;
            if !keep_size && size > txn.raw_inode(inode.no)?.size() {
                txn.modify_inode(inode.no, |raw| raw.set_size(size))?;
            }
            txn.touch(inode.no, grows)?;
            txn.record();
            finish_placed(fs, inode, txn, &[(at, reached)])?;
            if grows {
                inode.state().size = size;
            }
            Ok(reached)
        })?;
    }
    Ok(())
}

/// Works on `[at, to)` file blocks as far as one transaction may; returns how far that is.
fn fill(
    fs: &Ext4,
    txn: &mut Txn<'_>,
    inode: &Inode,
    mut at: u64,
    to: u64,
    zeroed: &Range<u64>,
) -> Result<u64> {
    let budget = fs.parts.log.update_blocks_max();
    let first = at;
    while at < to && (at == first || txn.changed_blocks() < budget) {
        // OK to cast: files end below 2^32 blocks.
        at = match find_extent(txn, inode.no, at as u32)? {
            Lookup::Mapped(e) => {
                let until = e.end().min(to);
                let (a, b) = (at.max(zeroed.start), until.min(zeroed.end));
                if !e.unwritten && a < b {
                    mark_unwritten(txn, inode.no, a, b)?;
                }
                until
            }
            Lookup::Hole { until } => {
                let (until, purpose) = promised(fs, inode, at, until.min(to));
                place_run(fs, txn, inode, at, until, purpose, true)?
            }
        };
    }
    Ok(at)
}

/// Makes `[offset, end)` bytes zeros that have places.
pub(crate) fn zero_range(
    fs: &Ext4,
    inode: &Inode,
    offset: u64,
    end: u64,
    keep_size: bool,
) -> Result<()> {
    let whole = drop_range(fs, inode, offset, end)?;
    allocate_range(fs, inode, offset, end, keep_size, Some(whole))
}
