//! Directories in their inodes (`inline_data`).
//!
//! The contents begin with the parent's number; there is no ".", and ".." is nothing else. Then
//! come two rows of entries, one up to byte 60 and one from there to the end, each of which is
//! covered by its entries as a block is, without a checksum of its own. Source: the kernel's
//! Documentation/filesystems/ext4/inlinedata.rst, fs/ext4/inline.c.
//!
//! Here such a directory is shown as one ordinary block, and stored back from one. Both keep the
//! order of the entries, so that a place in the block stays good as long as none comes or goes.

use super::DirContext;
use super::block::{self, DOT_DOT, NewEntry};
use crate::error::Result;
use crate::ondisk::{DirEntries, InodeNo, put_dirent, rec_len_needed};

/// Bytes of the parent's number.
const PARENT: usize = 4;
/// Where the second row begins.
const SECOND_ROW: usize = 60;

/// The rows of `contents`: the second is there if an entry can stand in it.
pub fn rows(contents: &[u8]) -> [&[u8]; 2] {
    let (first, second) = contents.split_at(contents.len().min(SECOND_ROW));
    let second = if second.len() < rec_len_needed(1) { &[] } else { second };
    [first.get(PARENT..).unwrap_or(&[]), second]
}

/// The block of entries that shows a directory with these contents. Its checksum is not set.
pub fn to_block(context: &DirContext, block_size: usize, contents: &[u8]) -> Result<Vec<u8>> {
    let corrupt = |what: String| context.corrupt(0, format!("in its inode: {what}"));
    let parent = contents.first_chunk::<PARENT>().map_or(0, |b| u32::from_le_bytes(*b));
    if !(1..=context.format.inodes_count).contains(&parent) {
        return Err(corrupt(format!("its parent is inode {parent}")));
    }
    let end = block::usable(context, block_size);
    let mut shown = block::first_block(context, block_size, InodeNo(parent));
    let (mut at, mut last) = (DOT_DOT + rec_len_needed(2), DOT_DOT);
    for row in rows(contents) {
        for entry in DirEntries::new(row) {
            let entry = entry.map_err(|what| corrupt(what.to_string()))?;
            if !block::in_use(&entry) {
                continue;
            }
            let length = rec_len_needed(entry.name.len());
            if at + length > end {
                return Err(corrupt("more entries than a block holds".into()));
            }
            put_dirent(&mut shown, at, length, entry.inode, entry.type_code, entry.name);
            block::set_length(&mut shown, last, at - last);
            last = at;
            at += length;
        }
    }
    block::set_length(&mut shown, last, end - last);
    // What the block shows is checked again when it is walked through.
    Ok(shown)
}

/// The contents of `len` bytes that hold the entries of a first block; `None` if they do not fit.
pub fn from_block(context: &DirContext, shown: &[u8], len: usize) -> Result<Option<Vec<u8>>> {
    let entries: Vec<_> = block::entries(context, 0, shown).collect::<Result<_>>()?;
    let parent = entries.iter().find(|e| e.at == DOT_DOT).map_or(InodeNo::NONE, |e| e.inode);
    let mut contents = vec![0; len];
    contents[..PARENT].copy_from_slice(&parent.0.to_le_bytes());
    let mut rest = entries.iter().filter(|e| block::in_use(e) && e.at > DOT_DOT).peekable();
    let second =
        if len - SECOND_ROW < rec_len_needed(1) { SECOND_ROW..SECOND_ROW } else { SECOND_ROW..len };
    for row in [PARENT..SECOND_ROW, second] {
        if row.is_empty() {
            continue;
        }
        let row = &mut contents[row];
        let (mut at, mut last) = (0, 0);
        while let Some(entry) = rest.next_if(|e| at + rec_len_needed(e.name.len()) <= row.len()) {
            let length = rec_len_needed(entry.name.len());
            let new = NewEntry { name: entry.name, ino: entry.inode, kind: entry.type_code };
            put_dirent(row, at, length, new.ino, new.kind, new.name);
            last = at;
            at += length;
        }
        block::set_length(row, last, row.len() - last);
    }
    Ok(rest.peek().is_none().then_some(contents))
}
