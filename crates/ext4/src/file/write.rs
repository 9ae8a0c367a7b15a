//! Writing through the page cache.

use bytes::Bytes;
use steadfast_ext4_format::ondisk::InodeFlags;
use steadfast_ext4_format::{RangeSet, Result};
use steadfast_pagecache::PAGE;
use steadfast_vfs::{FsError, OpenFlags};

use super::dax::write_dax;
use super::direct::write_direct;
use super::in_place::is_dax;
use super::inline::write_inline;
use super::journalled::write_journalled;
use super::reserve::{reserve, unreserve};
use super::sync::sync_file;
use super::times::{check_end, touch_written};
use super::writeback::allocate_reserved;
use crate::mounted::{Ext4, key};
use crate::state::{Inode, OpenFile};

/// Writes `data` at `offset`, or at the end; returns how many bytes. `how` holds in place of
/// the flags that the file was opened with.
pub(crate) fn write_file(
    fs: &Ext4,
    file: &OpenFile,
    how: OpenFlags,
    offset: u64,
    data: Bytes,
) -> Result<usize> {
    fs.parts.check_writable()?;
    if data.is_empty() {
        return Ok(0);
    }
    let flags = file.inode.state().raw.flags();
    // Also pages of a mapping: who makes it so writes out before what has changed until then.
    if flags.contains(InodeFlags::IMMUTABLE) {
        return Err(FsError::NotPermitted { what: "the file is immutable" }.into());
    }
    let only_appends = flags.contains(InodeFlags::APPEND)
        && how.contains(OpenFlags::WRITTEN_BACK)
        && !fs.handles.any_overwrites(&file.inode);
    let kept = match only_appends {
        true => bytes_kept(file.inode.state().size, offset, data.len())?,
        false => 0,
    };
    fs.drop_capability(&file.inode)?;
    let (written, end) = loop {
        // Which way it is can change until the lock of the data is held: chattr.
        let (kept_at, rest) = (offset + kept as u64, data.slice(kept..));
        if is_dax(fs, &file.inode) {
            match write_dax(fs, file, how, kept_at, &rest)? {
                Some(done) => break done,
                None => continue,
            }
        }
        if goes_direct(fs, file, how, offset, data.len() as u64)
            && let Some(done) = write_direct(fs, file, offset, &data)?
        {
            break done;
        }
        if let Some(done) = write_cached(fs, file, how, kept_at, rest)? {
            break done;
        }
    };
    // With data=transact this is the transaction mask's business, after the operation.
    let always = flags.contains(InodeFlags::SYNC);
    let asked = how.intersects(OpenFlags::SYNC | OpenFlags::DSYNC);
    if (always || asked) && !fs.parts.transacts() {
        let range = end - written as u64..end;
        let data_only = !always && !how.contains(OpenFlags::SYNC);
        sync_file(fs, file, Some(range), data_only)?;
    }
    Ok(kept + written)
}

/// Whether a write goes past the page cache: it was asked for, covers whole blocks, and the
/// data does not go through the journal nor to new places (data=transact). What does not is
/// written to the cache and, with O_DIRECT, to the device before the call returns.
fn goes_direct(fs: &Ext4, file: &OpenFile, how: OpenFlags, offset: u64, len: u64) -> bool {
    let size = fs.volume.block_size();
    how.contains(OpenFlags::DIRECT)
        && !how.contains(OpenFlags::APPEND)
        && offset.is_multiple_of(size)
        && len.is_multiple_of(size)
        && !fs.journals_data(&file.inode)
        && !fs.parts.transacts()
}

/// Returns how many bytes were written, and where they end; `None`: the file is used in place
/// by now.
fn write_cached(
    fs: &Ext4,
    file: &OpenFile,
    how: OpenFlags,
    offset: u64,
    data: Bytes,
) -> Result<Option<(usize, u64)>> {
    let inode = &*file.inode;
    let direct = how.contains(OpenFlags::DIRECT);
    let append = how.contains(OpenFlags::APPEND);
    if direct {
        let sector = u64::from(fs.volume.device.info().logical_block);
        let whole = append || offset.is_multiple_of(sector);
        if !(whole && (data.len() as u64).is_multiple_of(sector)) {
            return Err(FsError::Invalid { what: "O_DIRECT needs whole sectors" }.into());
        }
    }
    let exclusive = inode.data_lock.write();
    if is_dax(fs, inode) {
        return Ok(None);
    }
    let size = inode.state().size;
    let offset = if append { size } else { offset };
    let end = check_end(fs, inode, offset, data.len() as u64)?;
    if write_inline(fs, inode, offset, &data)? {
        return Ok(Some((data.len(), end)));
    }
    if fs.journals_data(inode) {
        let written = write_journalled(fs, inode, offset, data)?;
        return Ok(Some((written, offset + written as u64)));
    }
    touch_written(fs, inode)?;
    let (end, new) = reserve(fs, inode, offset, end)?;
    let written = (end - offset) as usize;
    // A block map cannot say that a block has not been written yet: its places are found
    // when the data is written back, in the transaction that waits for it.
    if !fs.options.delayed_allocation && !inode.has_block_map() {
        allocate_reserved(fs, inode, &new)?;
    }
    inode.state().write_end = end;
    let outcome = fs.pages.write(key(inode.no), offset, data.slice(..written), size);
    let mut state = inode.state();
    state.write_end = 0;
    if outcome.is_ok() {
        state.size = state.size.max(end);
    }
    drop(state);
    if let Err(e) = outcome {
        // A page could not be read; others may have been written to before it.
        let _ = fs.pages.set_size(key(inode.no), size);
        unreserve_clean(fs, inode, &new);
        return Err(e.into());
    }
    drop(exclusive);
    if direct {
        fs.pages.flush_range(key(inode.no), offset..end)?;
    }
    Ok(Some((written, end)))
}

/// Gives back what was reserved for pages that nobody has written to.
fn unreserve_clean(fs: &Ext4, inode: &Inode, reserved: &RangeSet) {
    let block = fs.volume.block_size();
    let page = PAGE as u64;
    for at in reserved.iter().flat_map(|(from, to)| from..to) {
        let pages = at * block / page..((at + 1) * block).div_ceil(page);
        if fs.pages.next_dirty(key(inode.no), pages).is_none() {
            unreserve(fs, inode, at, at + 1);
        }
    }
}

/// How many bytes of a page that was changed through a mapping lie where an append-only file has
/// contents already, which stay. The kernel above does not know of the flag and lets such a file
/// be mapped. (Who had it open before it became so may overwrite it, with the kernel's ext4, too.)
fn bytes_kept(size: u64, offset: u64, len: usize) -> Result<usize> {
    let kept = size.saturating_sub(offset);
    if kept >= len as u64 {
        let what = "the file is append-only: what it holds cannot be changed through a mapping";
        return Err(FsError::NotPermitted { what }.into());
    }
    // OK to cast: below `len`.
    Ok(kept as usize)
}
