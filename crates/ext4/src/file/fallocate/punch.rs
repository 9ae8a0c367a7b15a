//! Holes.

use std::ops::Range;

use bytes::Bytes;
use steadfast_ext4_format::Result;
use steadfast_pagecache::PAGE;

use crate::extents::{next_extent, unmap_blocks};
use crate::file::dax::store_zeros;
use crate::file::in_place::is_dax;
use crate::file::journalled::write_journalled;
use crate::file::large_blocks::{has_large_blocks, zero_part};
use crate::file::out_of_place::{release_clean_page, reserve_page};
use crate::file::pieces::PieceSource;
use crate::file::reserve::{place_beside, unreserve};
use crate::file::truncate::revokes_max;
use crate::meta::Txn;
use crate::mounted::{Ext4, key};
use crate::planted::Bug;
use crate::state::Inode;

/// Bytes that are zeroed through the journal at once.
const ZEROS_AT_ONCE: u64 = 64 << 10;

/// Gives the storage of `[offset, end)` bytes back; it reads as zeros.
pub(crate) fn punch_hole(fs: &Ext4, inode: &Inode, offset: u64, end: u64) -> Result<()> {
    let size = inode.state().size;
    if offset >= size {
        return Ok(());
    }
    // A hole that reaches to the end takes the last page whole, and nothing behind it.
    let last = size.next_multiple_of(fs.volume.block_size().max(PAGE as u64));
    let end = if end > size { last } else { end };
    let whole = drop_range(fs, inode, offset, end)?;
    unmap_range(fs, inode, whole.start, whole.end)
}

/// Makes `[offset, end)` bytes zeros as far as they are in the page cache or in blocks that
/// they share with other bytes. Returns the file blocks that lie in the range whole: nothing
/// of them is in the cache, on its way to the device, or reserved.
pub(crate) fn drop_range(fs: &Ext4, inode: &Inode, offset: u64, end: u64) -> Result<Range<u64>> {
    let block = fs.volume.block_size();
    let (from, to) = (offset.div_ceil(block), end / block);
    if is_dax(fs, inode) {
        let head_end = (from * block).min(end);
        store_zeros(fs, inode, offset..head_end)?;
        store_zeros(fs, inode, (to * block).max(head_end)..end)?;
        return Ok(from..to.max(from));
    }
    if fs.journals_data(inode) {
        let head_end = (from * block).min(end);
        zero_journalled(fs, inode, offset, head_end)?;
        zero_journalled(fs, inode, (to * block).max(head_end), end)?;
        fs.pages.invalidate(key(inode.no), offset..end);
    } else {
        if !fs.volume.has(Bug::PunchForgetsSize) {
            // Should taking the blocks fail, what is on disk shows again: it is not to be older
            // than what was read.
            fs.pages.flush_range(key(inode.no), offset..end)?;
            settle_size(fs, inode, end)?;
        }
        reserve_page(fs, inode, offset)?;
        reserve_page(fs, inode, end)?;
        let mut dropped = offset..end;
        if has_large_blocks(fs) {
            // Whole pages that share a block with what stays: their zeros must be written.
            let head_end = (from * block).min(end);
            let tail = (to * block).max(head_end);
            zero_part(fs, inode, offset..head_end)?;
            zero_part(fs, inode, tail..end)?;
            dropped = head_end..tail;
        }
        let zeroed = fs.pages.zero_range(key(inode.no), dropped);
        [offset, end].into_iter().for_each(|at| release_clean_page(fs, inode, at));
        zeroed?;
    }
    if from >= to {
        return Ok(from..from);
    }
    unreserve(fs, inode, from, to);
    if block < PAGE as u64 {
        // A page at an end may be on its way to blocks that are about to go.
        for edge in [offset, end] {
            let page = edge / PAGE as u64 * PAGE as u64;
            fs.pages.flush_range(key(inode.no), page..page + PAGE as u64)?;
        }
    }
    place_beside(fs, inode, [from, to])?;
    Ok(from..to)
}

/// A range up to byte `end` goes from the page cache. If the size on disk still waits for what is
/// there, data that was lost, nobody else would write it.
fn settle_size(fs: &Ext4, inode: &Inode, end: u64) -> Result<()> {
    let (size, on_disk) = {
        let state = inode.state();
        (state.size, state.raw.size())
    };
    if on_disk >= size || end < size {
        return Ok(());
    }
    let mut txn = fs.parts.begin()?;
    txn.modify_inode(inode.no, |raw| raw.set_size(size))?;
    txn.finish()?;
    Ok(())
}

/// Writes zeros to `[from, to)` bytes, where they have places, through the journal.
pub(crate) fn zero_journalled(fs: &Ext4, inode: &Inode, from: u64, to: u64) -> Result<()> {
    let to = to.min(inode.state().size);
    if from >= to {
        return Ok(());
    }
    for piece in fs.parts.pieces(inode, from, to, None)? {
        if !matches!(piece.place, PieceSource::Device(_)) {
            continue;
        }
        let mut at = piece.offset;
        while at < piece.offset + piece.len {
            let len = (piece.offset + piece.len - at).min(ZEROS_AT_ONCE);
            write_journalled(fs, inode, at, Bytes::from(vec![0; len as usize]))?;
            at += len;
        }
    }
    Ok(())
}

/// Unmaps `[from, to)` file blocks, in as many transactions as it takes.
pub(super) fn unmap_range(fs: &Ext4, inode: &Inode, mut from: u64, to: u64) -> Result<()> {
    while from < to {
        from = fs.with_space(|| {
            let mut txn = fs.parts.begin_yielding()?;
            let reached = unmap_some(fs, &mut txn, inode, from, to)?;
            txn.touch(inode.no, true)?;
            txn.finish()?;
            Ok(reached)
        })?;
    }
    Ok(())
}

/// Unmaps from file block `from` on, at most to `to`, what one transaction may; returns how
/// far that is.
pub(crate) fn unmap_some(
    fs: &Ext4,
    txn: &mut Txn<'_>,
    inode: &Inode,
    mut from: u64,
    to: u64,
) -> Result<u64> {
    let revoke = fs.journals_data(inode);
    let budget = fs.parts.log.update_blocks_max();
    let revokes = revokes_max(fs);
    loop {
        let Some(e) = next_extent(txn, inode.no, from)?.filter(|e| u64::from(e.logical) < to)
        else {
            return Ok(to);
        };
        let start = from.max(e.logical.into());
        let mut end = e.end().min(to);
        if revoke {
            end = end.min(start + revokes as u64);
        }
        unmap_blocks(txn, inode.no, start, end, revoke)?;
        from = end;
        if txn.changed_blocks() >= budget || txn.revoked_blocks() >= revokes {
            return Ok(from);
        }
    }
}
