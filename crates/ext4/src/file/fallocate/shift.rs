//! Ranges that come out of a file (collapse) or into it (insert): what lies behind moves.
//!
//! Only the mapping moves. A collapse unmaps the range, moves the extents behind it down from the
//! first on, and cuts the size; an insert sets the new size and moves extents up from the last on.
//! So no extent ever meets another, and after each transaction the tree is a valid one.

use steadfast_ext4_format::Result;
use steadfast_pagecache::PAGE;
use steadfast_vfs::FsError;

use super::flush_and_drop;
use super::punch::unmap_some;
use crate::extents::{extent_at_or_before, move_extent, next_extent};
use crate::file::times::check_end;
use crate::file::truncate::revokes_max;
use crate::meta::Txn;
use crate::mounted::Ext4;
use crate::state::Inode;

/// First file block that no file can have.
const BLOCKS_END: u64 = u32::MAX as u64;

fn invalid<T>(what: &'static str) -> Result<T> {
    Err(FsError::Invalid { what }.into())
}

/// How far a step of a shift has come.
enum Progress {
    /// The transaction is large enough; goes on at this file block.
    At(u64),
    Done,
}

/// How far a collapse has come.
#[derive(Clone, Copy)]
struct Collapse {
    /// The file blocks that are taken out.
    from: u64,
    to: u64,
    /// Unmapped up to here.
    hole_at: u64,
    /// Moved up to here.
    move_at: u64,
}

fn check_aligned(fs: &Ext4, offset: u64, len: u64) -> Result<()> {
    let unit = fs.volume.layout.cluster_size();
    if !offset.is_multiple_of(unit) || !len.is_multiple_of(unit) {
        return invalid("a range that is shifted must consist of whole blocks (or clusters)");
    }
    Ok(())
}

/// Takes `[offset, end)` bytes out of the file.
pub(crate) fn collapse_range(fs: &Ext4, inode: &Inode, offset: u64, end: u64) -> Result<()> {
    check_aligned(fs, offset, end - offset)?;
    let size = inode.state().size;
    if end >= size {
        return invalid("a collapsed range must end before the file does: truncate it instead");
    }
    let block = fs.volume.block_size();
    flush_and_drop(fs, inode, offset / PAGE as u64 * PAGE as u64)?;
    let (from, to) = (offset / block, end / block);
    let mut step = Collapse { from, to, hole_at: from, move_at: to };
    loop {
        let next = fs.with_space(|| {
            let mut txn = fs.parts.begin_yielding()?;
            let next = collapse_step(fs, &mut txn, inode, step)?;
            if next.is_none() {
                txn.modify_inode(inode.no, |raw| raw.set_size(size - (end - offset)))?;
            }
            txn.touch(inode.no, true)?;
            txn.finish()?;
            Ok(next)
        })?;
        match next {
            Some(next) => step = next,
            None => break,
        }
    }
    inode.state().size = size - (end - offset);
    Ok(())
}

/// What one transaction may do of a collapse; `None` when all is done.
fn collapse_step(
    fs: &Ext4,
    txn: &mut Txn<'_>,
    inode: &Inode,
    step: Collapse,
) -> Result<Option<Collapse>> {
    let Collapse { from, to, mut hole_at, .. } = step;
    if hole_at < to {
        hole_at = unmap_some(fs, txn, inode, hole_at, to)?;
    }
    if hole_at < to || txn.revoked_blocks() >= revokes_max(fs) {
        return Ok(Some(Collapse { hole_at, ..step }));
    }
    Ok(match move_down(fs, txn, inode, step.move_at, to - from)? {
        Progress::At(move_at) => Some(Collapse { hole_at, move_at, ..step }),
        Progress::Done => None,
    })
}

/// Moves the extents from file block `at` on down by `by` blocks.
fn move_down(
    fs: &Ext4,
    txn: &mut Txn<'_>,
    inode: &Inode,
    mut at: u64,
    by: u64,
) -> Result<Progress> {
    let budget = fs.parts.log.update_blocks_max();
    let layout = &fs.volume.layout;
    while let Some(e) = next_extent(txn, inode.no, at)? {
        // What is mapped of a cluster moves in one transaction: it has one place in a file.
        let (_, clusters_end) = layout.whole_clusters(at, at);
        let between = at.max(e.logical.into()) >= clusters_end;
        let full = txn.changed_blocks() >= budget || txn.revoked_blocks() >= revokes_max(fs);
        if full && between {
            return Ok(Progress::At(at));
        }
        let part = e.clipped(at, e.end());
        // OK to cast: lower than where it is.
        move_extent(txn, inode.no, part, (u64::from(part.logical) - by) as u32)?;
        at = part.end();
    }
    Ok(Progress::Done)
}

/// Puts `len` bytes of hole into the file at `offset`.
pub(crate) fn insert_range(fs: &Ext4, inode: &Inode, offset: u64, len: u64) -> Result<()> {
    check_aligned(fs, offset, len)?;
    let size = inode.state().size;
    if offset >= size {
        return invalid("a range is inserted before the end of the file: extend it instead");
    }
    let new_size = check_end(fs, inode, size, len)?;
    let block = fs.volume.block_size();
    flush_and_drop(fs, inode, offset / PAGE as u64 * PAGE as u64)?;
    let (from, by) = (offset / block, len / block);
    let mut below = BLOCKS_END;
    let mut grown = false;
    loop {
        let progress = fs.with_space(|| {
            let mut txn = fs.parts.begin_yielding()?;
            if !grown {
                let last = extent_at_or_before(&txn, inode.no, u32::MAX)?;
                if last.is_some_and(|e| e.end() > BLOCKS_END - by) {
                    return invalid("blocks allocated behind the end would move too far");
                }
                txn.modify_inode(inode.no, |raw| raw.set_size(new_size))?;
            }
            let progress = move_up(fs, &mut txn, inode, from, below, by)?;
            txn.touch(inode.no, true)?;
            txn.finish()?;
            Ok(progress)
        })?;
        if !std::mem::replace(&mut grown, true) {
            inode.state().size = new_size;
        }
        match progress {
            Progress::At(next) => below = next,
            Progress::Done => return Ok(()),
        }
    }
}

/// Moves what lies within `[from, below)` file blocks up by `by` blocks, the last first.
fn move_up(
    fs: &Ext4,
    txn: &mut Txn<'_>,
    inode: &Inode,
    from: u64,
    mut below: u64,
    by: u64,
) -> Result<Progress> {
    let budget = fs.parts.log.update_blocks_max();
    let layout = &fs.volume.layout;
    while below > from {
        // OK to cast: below the largest block number.
        let Some(e) = extent_at_or_before(txn, inode.no, (below - 1) as u32)? else { break };
        if e.end() <= from {
            break;
        }
        let (cluster, _) = layout.whole_clusters(below, below);
        let between = below == cluster || e.end() <= cluster;
        let full = txn.changed_blocks() >= budget || txn.revoked_blocks() >= revokes_max(fs);
        if full && between {
            return Ok(Progress::At(below));
        }
        let part = e.clipped(from.max(e.logical.into()), e.end().min(below));
        // OK to cast: the last extent has room above it.
        move_extent(txn, inode.no, part, (u64::from(part.logical) + by) as u32)?;
        below = part.logical.into();
    }
    Ok(Progress::Done)
}
