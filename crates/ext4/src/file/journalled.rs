//! data=journal: data goes into the journal with the metadata, in the write itself.
//!
//! The page cache only holds clean copies of it. The blocks reach their home places by
//! checkpoints; until then reads find their images in the log.

use bytes::{Bytes, BytesMut};
use steadfast_block::pattern;
use steadfast_ext4_format::Result;

use super::pieces::all_in_place;
use super::place::place_run;
use super::reserve::{finish_placed, promised};
use super::times::touch_within;
use crate::extents::mark_written;
use crate::mounted::{Ext4, key};
use crate::state::Inode;

use super::pieces::PieceSource;

/// Writes `data` at `offset`, in updates that the journal can take. The caller has the
/// exclusive lock. A write that runs out of space is short.
pub(crate) fn write_journalled(
    fs: &Ext4,
    inode: &Inode,
    offset: u64,
    data: Bytes,
) -> Result<usize> {
    let block = fs.volume.block_size();
    let blocks = (fs.parts.log.update_blocks_max() / 2).max(1) as u64;
    let mut done = 0;
    while done < data.len() {
        let at = offset + done as u64;
        // Up to a block's end, so that only the first and the last block are partial.
        let until = (at / block + blocks) * block;
        let len = ((until - at) as usize).min(data.len() - done);
        let part = data.slice(done..done + len);
        match write_update(fs, inode, at, &part) {
            Ok(()) => done += len,
            Err(_) if done > 0 => break,
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

fn write_update(fs: &Ext4, inode: &Inode, offset: u64, part: &Bytes) -> Result<()> {
    let block = fs.volume.block_size();
    let end = offset + part.len() as u64;
    let (from, to) = (offset / block * block, end.next_multiple_of(block));
    let whole = with_old_edges(fs, inode, offset, part, from, to)?;
    // An image stays until it is home. A slice would pin the whole write.
    let lasts = pattern::is_interned(&whole);
    let mut txn = fs.parts.begin()?;
    let mut pieces = fs.parts.pieces(inode, from, to, Some(&txn))?;
    let mut placed = Vec::new();
    if !all_in_place(&pieces) {
        for hole in pieces.iter().filter(|piece| piece.place == PieceSource::Hole) {
            let (mut a, b) = (hole.offset / block, (hole.offset + hole.len) / block);
            while a < b {
                let start = a;
                // Data that was lost may have left its reservation.
                let (until, purpose) = promised(fs, inode, start, b);
                a = place_run(fs, &mut txn, inode, start, until, purpose, false)?;
                placed.push((start, a));
            }
        }
        mark_written(&mut txn, inode.no, from / block, to / block)?;
        pieces = fs.parts.pieces(inode, from, to, Some(&txn))?;
    }
    for piece in pieces {
        let PieceSource::Device(at) = piece.place else { continue };
        let skip = (piece.offset - from) as usize;
        txn.create_data(at / block, piece.len / block, |i| {
            let skip = skip + (i * block) as usize;
            let contents = whole.slice(skip..skip + block as usize);
            let is_all = contents.len() == whole.len();
            if is_all || lasts { contents } else { Bytes::copy_from_slice(&contents) }
        });
    }
    let edit = txn.edit_inode(inode.no)?;
    edit.data_changed = true;
    if end > edit.raw.size() {
        edit.raw.set_size(end);
    }
    touch_within(fs, &mut txn, inode)?;
    finish_placed(fs, inode, txn, &placed)?;
    let mut state = inode.state();
    state.size = state.size.max(end);
    drop(state);
    fs.pages.insert_clean(key(inode.no), offset, part.clone());
    Ok(())
}

/// `part` filled up to whole blocks `[from, to)` with what the file holds there.
fn with_old_edges(
    fs: &Ext4,
    inode: &Inode,
    offset: u64,
    part: &Bytes,
    from: u64,
    to: u64,
) -> Result<Bytes> {
    let end = offset + part.len() as u64;
    if (from, to) == (offset, end) {
        return Ok(part.clone());
    }
    let size = inode.state().size;
    let mut whole = BytesMut::zeroed((to - from) as usize);
    for (a, b) in [(from, offset), (end, to)] {
        let old = fs.pages.read(key(inode.no), a, (b - a) as usize, size)?;
        let at = (a - from) as usize;
        whole[at..at + old.len()].copy_from_slice(&old);
    }
    let at = (offset - from) as usize;
    whole[at..at + part.len()].copy_from_slice(part);
    Ok(whole.freeze())
}
