//! Blocks that are larger than a page of the cache.
//!
//! A page that is written back may be all that is dirty of a block. The rest of a block that has
//! just been allocated holds what others wrote there, so it is made zeros on the device before
//! the transaction that maps the block is finished: then nobody can read it or have a write to it
//! in flight. This holds the metadata lock over data I/O, in such file systems only and for at
//! most two blocks a write-back.

use std::ops::Range;

use bytes::Bytes;
use steadfast_block::Completion;
use steadfast_ext4_format::Result;
use steadfast_pagecache::PAGE;

use super::out_of_place::PlacementRange;
use super::pieces::PieceSource;
use crate::meta::Txn;
use crate::mounted::{Ext4, key};
use crate::state::Inode;

/// `[from, to)` bytes are about to be written for the first time, to blocks that the
/// transaction has mapped (`new`) or that are unwritten: makes the rest of the
/// first and the last of them zeros.
pub(crate) fn zero_around(
    fs: &Ext4,
    txn: &Txn<'_>,
    inode: &Inode,
    from: u64,
    to: u64,
    new: &[PlacementRange],
) -> Result<()> {
    let block = fs.volume.block_size();
    let edges = [(from / block * block, from), (to, to.next_multiple_of(block))];
    let mut writes: Vec<Completion> = Vec::new();
    for (a, b) in edges.into_iter().filter(|(a, b)| a < b) {
        let is_new = new.iter().any(|n| (n.start..n.end).contains(&(a / block)));
        for piece in fs.parts.pieces(inode, a, b, Some(txn))? {
            let at = match piece.place {
                PieceSource::Device(at) if is_new => at,
                PieceSource::Unwritten(at) => at,
                _ => continue,
            };
            let data = Bytes::from(vec![0; piece.len as usize]).into();
            writes.push(fs.parts.submit_data(inode, at, data));
        }
    }
    Ok(Completion::wait_all(&writes)?)
}

/// Writes zeros over bytes that share a block with others, through the cache, as far as the
/// file has them; they are on the device on return.
pub(crate) fn zero_part(fs: &Ext4, inode: &Inode, bytes: Range<u64>) -> Result<()> {
    let size = inode.state().size;
    let (from, to) = (bytes.start, bytes.end.min(size));
    if from >= to {
        return Ok(());
    }
    let zeros = Bytes::from(vec![0; (to - from) as usize]);
    fs.pages.write(key(inode.no), from, zeros, size)?;
    Ok(fs.pages.flush_range(key(inode.no), from..to)?)
}

/// Whether a block is more than a page of the cache.
pub(crate) fn has_large_blocks(fs: &Ext4) -> bool {
    fs.volume.block_size() > PAGE as u64
}
