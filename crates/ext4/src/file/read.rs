//! Reading.

use std::ops::Range;

use bytes::Bytes;
use steadfast_block::Completion;
use steadfast_ext4_format::Result;
use steadfast_pagecache::PAGE;
use steadfast_vfs::{FsError, OpenFlags};

use super::dax::read_dax;
use super::gather::{Source, gather};
use super::in_place::is_dax;
use super::inline::inline_contents;
use super::pieces::{Piece, PieceSource, read_piece, with_images};
use crate::meta::MetaLog;
use crate::mounted::{Ext4, key};
use crate::state::{Inode, OpenFile};

/// Shorter reads, in bytes, stay in the page cache also if the reader keeps the data: in a cache of
/// pages of 4 KiB their neighbours will be read.
const LONG: usize = 128 << 10;

/// Reads up to `len` bytes at `offset`; `direct`: past the page cache, if the data allows it.
pub(crate) fn read_file(
    fs: &Ext4,
    file: &OpenFile,
    direct: bool,
    offset: u64,
    len: usize,
) -> Result<Bytes> {
    let inode = &*file.inode;
    let direct = direct && !fs.journals_data(inode);
    let _shared = inode.data_lock.read();
    let size = inode.state().size;
    if offset >= size || len == 0 {
        return Ok(Bytes::new());
    }
    let end = offset.saturating_add(len as u64).min(size);
    // It changes under the exclusive lock only (chattr).
    if is_dax(fs, inode) {
        return read_dax(fs, inode, offset..end);
    }
    if !direct {
        if file.flags.contains(OpenFlags::CALLER_CACHES)
            && len >= LONG
            && let Some(read) = read_past_cache(fs, inode, offset..end)?
        {
            return Ok(read);
        }
        return Ok(fs.pages.read(key(inode.no), offset, len, size)?);
    }
    let sector = u64::from(fs.volume.device.info().logical_block);
    if !offset.is_multiple_of(sector) || !(len as u64).is_multiple_of(sector) {
        return Err(FsError::Invalid { what: "O_DIRECT needs whole sectors" }.into());
    }
    fs.pages.flush_range(key(inode.no), offset..end)?;
    Ok(start_read(fs, inode, offset..end, end)?.wait()?)
}

/// As [`read_file`], into the caller's memory; how many bytes have come. What is read past the page
/// cache, and lies in one piece, is not copied.
pub(crate) fn read_file_into(
    fs: &Ext4,
    file: &OpenFile,
    direct: bool,
    offset: u64,
    out: &mut [u8],
) -> Result<usize> {
    if !direct && file.flags.contains(OpenFlags::CALLER_CACHES) && out.len() >= LONG {
        let inode = &*file.inode;
        let _shared = inode.data_lock.read();
        if let Some(from) = one_piece(fs, inode, offset, out.len())? {
            fs.volume.device.read_into(from, out)?;
            return Ok(out.len());
        }
    }
    let read = read_file(fs, file, direct, offset, out.len())?;
    out[..read.len()].copy_from_slice(&read);
    Ok(read.len())
}

/// Where on the device the bytes are, if all of them are there, one behind the other, and may be
/// read past the page cache. The caller has the inode's data lock.
fn one_piece(fs: &Ext4, inode: &Inode, offset: u64, len: usize) -> Result<Option<u64>> {
    let Some(end) = offset.checked_add(len as u64) else { return Ok(None) };
    let sector = u64::from(fs.volume.device.info().logical_block);
    let size = inode.state().size;
    if end > size || !(len as u64).is_multiple_of(sector) || is_dax(fs, inode) {
        return Ok(None);
    }
    if !goes_past_cache(fs, inode, &(offset..end))
        || may_be_in_log(fs, inode)
        || inline_contents(inode)?.is_some()
    {
        return Ok(None);
    }
    let pieces = fs.parts.pieces(inode, offset, end, None)?;
    Ok(match pieces.as_slice() {
        [Piece { place: PieceSource::Device(from), .. }] => Some(*from),
        _ => None,
    })
}

/// Whether bytes may be read without the page cache: it does not have them, nor needs to be asked.
fn goes_past_cache(fs: &Ext4, inode: &Inode, bytes: &Range<u64>) -> bool {
    let page = PAGE as u64;
    let pages = bytes.start / page..bytes.end.div_ceil(page);
    bytes.start.is_multiple_of(page)
        && !fs.journals_data(inode)
        && !fs.pages.should_answer(key(inode.no), pages)
}

/// Reads without leaving anything in the page cache; `None` if the cache has it, or must be
/// asked. The caller has the inode's data lock: data that is in its place stays there.
fn read_past_cache(fs: &Ext4, inode: &Inode, bytes: Range<u64>) -> Result<Option<Bytes>> {
    if !goes_past_cache(fs, inode, &bytes) {
        return Ok(None);
    }
    let end = bytes.end;
    start_read(fs, inode, bytes, end)?.wait().map(Some).map_err(Into::into)
}

/// Starts reading bytes, past the page cache; what lies at `size` and beyond is zeros. The first
/// one is at a multiple of the device's sector.
fn start_read(
    fs: &Ext4,
    inode: &Inode,
    Range { start: from, end: to }: Range<u64>,
    size: u64,
) -> Result<Completion> {
    let end = to.min(size.max(from));
    if let Some(contents) = inline_contents(inode)? {
        let have = (contents.len() as u64).clamp(from, end);
        // OK to cast: what is read at once fits into memory.
        let bytes = contents.slice(contents.len().min(from as usize)..);
        let (len, keep) = ((to - from) as usize, (have - from) as usize);
        return Ok(gather(vec![Source::Bytes { bytes, len, keep }]));
    }
    let mut pieces = fs.parts.pieces(inode, from, end, None)?;
    if may_be_in_log(fs, inode) {
        pieces = with_images(&fs.parts.log, fs.volume.block_size(), pieces);
    }
    let mut sources: Vec<_> =
        pieces.iter().map(|p| read_piece(&*fs.volume.device, p, p.len)).collect();
    if to > end {
        sources.push(Source::Zeros((to - end) as usize));
    }
    Ok(gather(sources))
}

/// The pages of a file for the page cache.
pub(crate) fn start_read_pages(
    fs: &Ext4,
    inode: &Inode,
    first: u64,
    count: u32,
) -> Result<Completion> {
    let from = first * PAGE as u64;
    let to = from + u64::from(count) * PAGE as u64;
    let size = inode.state().size_written();
    start_read(fs, inode, from..to, size)
}

/// Whether data of the inode may be in the log rather than in its place.
fn may_be_in_log(fs: &Ext4, inode: &Inode) -> bool {
    match &fs.parts.log {
        log @ MetaLog::ReadOnly(_) => log.may_hold_images(),
        _ => fs.journals_data(inode),
    }
}
