//! Where a file has data and where it has storage: SEEK_DATA, SEEK_HOLE, and the list of extents.
//!
//! Data that waits in the page cache counts: a reserved block is data although it has no place
//! yet, and an unwritten extent is data where dirty pages lie over it, else a hole. Page and block
//! granularity, as the kernel has it.

use std::ops::Range;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::extents::Lookup;
use steadfast_ext4_format::ondisk::Extent;
use steadfast_pagecache::PAGE;
use steadfast_vfs::{FileExtent, FsError, SeekTo};

use crate::extents::next_extent;
use crate::mounted::{Ext4, key};
use crate::state::Inode;

/// File blocks that are data, or are none.
struct Stretch {
    is_data: bool,
    /// First file block that may be otherwise.
    until: u64,
}

/// The first byte of data, or of a hole, at or after `offset`. The end of the file is a hole.
///
/// # Errors
/// ENXIO: `offset` is not in the file, or there is no data behind it.
pub(crate) fn seek_file(fs: &Ext4, inode: &Inode, offset: u64, to: SeekTo) -> Result<u64> {
    let _shared = inode.data_lock.read();
    let block = fs.volume.block_size();
    let size = inode.state().size;
    let mut at = offset;
    while at < size {
        let stretch = stretch(fs, inode, at / block, size.div_ceil(block))?;
        if stretch.is_data == (to == SeekTo::Data) {
            return Ok(at);
        }
        at = stretch.until * block;
    }
    if offset < size && to == SeekTo::Hole { Ok(size) } else { Err(FsError::NoAddress.into()) }
}

/// What file block `at` is, and how far that goes, at most to `end`.
fn stretch(fs: &Ext4, inode: &Inode, at: u64, end: u64) -> Result<Stretch> {
    if inode.state().raw.is_inline() {
        return Ok(Stretch { is_data: true, until: end });
    }
    // Write-back first maps, then says that nothing waits any more: what has changed from
    // waiting to mapped in between is looked at again.
    loop {
        // OK to cast: files end below 2^32 blocks.
        let found = fs.parts.find_block(inode, at as u32, None)?;
        let (waiting, until) = match found {
            Lookup::Mapped(e) if !e.unwritten => {
                return Ok(Stretch { is_data: true, until: e.end().min(end) });
            }
            Lookup::Mapped(e) => {
                let until = e.end().min(end);
                (dirty_blocks(fs, inode, at..until), until)
            }
            Lookup::Hole { until } => {
                let until = until.min(end);
                let first = inode.state().delayed.within(at, until).next();
                (first.map(|(a, b)| a..b), until)
            }
        };
        match waiting {
            Some(data) if data.start <= at => {
                return Ok(Stretch { is_data: true, until: data.end.min(until) });
            }
            Some(data) => return Ok(Stretch { is_data: false, until: data.start }),
            None if fs.parts.find_block(inode, at as u32, None)? == found => {
                return Ok(Stretch { is_data: false, until });
            }
            None => {}
        }
    }
}

/// The first file blocks of a range that dirty pages cover.
fn dirty_blocks(fs: &Ext4, inode: &Inode, blocks: Range<u64>) -> Option<Range<u64>> {
    let block = fs.volume.block_size();
    let page = PAGE as u64;
    let pages = blocks.start * block / page..(blocks.end * block).div_ceil(page);
    let dirty = fs.pages.next_dirty(key(inode.no), pages)?;
    Some(dirty.start * page / block..(dirty.end * page).div_ceil(block))
}

/// What has storage, or a reservation, of `[offset, offset + len)` bytes: whole extents as they
/// are in the tree, not cut to the range.
pub(crate) fn list_extents(
    fs: &Ext4,
    inode: &Inode,
    offset: u64,
    len: u64,
) -> Result<Vec<FileExtent>> {
    let _shared = inode.data_lock.read();
    let block = fs.volume.block_size();
    let end = offset.saturating_add(len).div_ceil(block).min(1 << 32);
    let delayed: Vec<(u64, u64)> = inode.state().delayed.within(offset / block, end).collect();
    let mut waiting = delayed.into_iter().peekable();
    let mut out = Vec::new();
    let mut at = offset / block;
    while at < end {
        let look = || next_extent(&fs.parts.look_yielding(), inode.no, at);
        let next = fs.parts.with_blocks(look)?;
        let next = next.filter(|e| u64::from(e.logical) < end);
        let before = next.map_or(end, |e| e.logical.into());
        while let Some((a, b)) = waiting.next_if(|(a, _)| *a < before) {
            out.push(FileExtent {
                logical: a * block,
                physical: 0,
                len: (b.min(before) - a) * block,
                unwritten: false,
                delayed: true,
                inline: false,
            });
        }
        let Some(e) = next else { break };
        out.push(mapped(e, block));
        at = e.end();
    }
    Ok(out)
}

fn mapped(e: Extent, block: u64) -> FileExtent {
    FileExtent {
        logical: u64::from(e.logical) * block,
        physical: e.start * block,
        len: u64::from(e.len) * block,
        unwritten: e.unwritten,
        delayed: false,
        inline: false,
    }
}
