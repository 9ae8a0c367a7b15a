//! One block of directory entries.
//!
//! Entries stand one behind the other and cover the block up to its end, or with checksums up to
//! the 12-byte tail, which looks like an unused entry of type 0xde. Each has the inode number
//! (0: unused), its length to the next entry (a multiple of 4), name length, type and name. What
//! an entry does not need of its length is free. Source: the kernel's fs/ext4/dir.c and namei.c.

use steadfast_vfs::{FileType, FsError};

use super::DirContext;
use crate::error::Result;
use crate::ondisk::{
    DIR_TAIL_LEN, DIRENT_HEADER_LEN, DirEntries, DirentHeader, DirentRef, DirentTail, InodeNo,
    file_type_code, put_dirent, rec_len_from_disk, rec_len_needed, rec_len_to_disk,
};

/// Offset of "." in the first block.
pub(super) const DOT: usize = 0;
/// Offset of ".." in the first block; "." takes 12 bytes.
pub(super) const DOT_DOT: usize = 12;

/// Whether the name is "." or "..".
pub fn is_dot_name(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

/// Bytes of a block that hold entries.
pub(super) fn usable(context: &DirContext, block_size: usize) -> usize {
    if context.format.checksums.metadata() { block_size - DIR_TAIL_LEN } else { block_size }
}

/// An entry to be added.
pub(super) struct NewEntry<'n> {
    pub name: &'n [u8],
    pub ino: InodeNo,
    /// On-disk type.
    pub kind: u8,
}

/// Whether an entry holds a name.
pub(super) fn in_use(entry: &DirentRef<'_>) -> bool {
    entry.inode != InodeNo::NONE
}

/// Walks over the entries of a block, unused ones too, without the tail. Checks each before it is
/// handed out, not the checksum. Behind an entry that makes no sense it goes on; behind one that
/// does not say where the next one begins it ends.
pub(super) fn entries<'b>(
    context: &'b DirContext,
    number: u32,
    block: &'b [u8],
) -> impl Iterator<Item = Result<DirentRef<'b>>> {
    placed(context, number, block).map(move |entry| {
        let entry = entry?;
        let nonsense =
            |what| context.corrupt(number, format!("{what} in the entry at byte {}", entry.at));
        check(context, number, &entry).map_err(nonsense).map(|()| entry)
    })
}

/// As [`entries`], and looks only at where each entry begins and ends.
fn placed<'b>(
    context: &'b DirContext,
    number: u32,
    block: &'b [u8],
) -> impl Iterator<Item = Result<DirentRef<'b>>> {
    let end = usable(context, block.len());
    let mut broken = false;
    DirEntries::new(block).map_while(move |entry| {
        let what = match entry {
            _ if broken => return None,
            Ok(entry) if entry.at >= end => return None,
            Ok(entry) => {
                let next = entry.at + entry.rec_len;
                if next == end || next + rec_len_needed(1) <= end {
                    return Some(Ok(entry));
                }
                format!("an end too close to the block's in the entry at byte {}", entry.at)
            }
            Err(what) => what.to_string(),
        };
        broken = true;
        Some(Err(context.corrupt(number, what)))
    })
}

/// What it takes to get from one entry to the next.
struct Step {
    at: usize,
    rec_len: usize,
    used: bool,
    name_len: usize,
}

impl Step {
    /// The entry's name; empty if it does not fit into the block.
    fn name<'b>(&self, block: &'b [u8]) -> &'b [u8] {
        let at = self.at + DIRENT_HEADER_LEN;
        block.get(at..at + self.name_len).unwrap_or_default()
    }

    /// Bytes that the entry needs of its length.
    fn needed(&self) -> usize {
        if self.used { rec_len_needed(self.name_len) } else { 0 }
    }
}

/// Walks over the entries of a block as [`entries`] does, but looks at no more of each than it
/// takes to get to the next one: what comes from the device has been checked whole before. Never
/// leaves the block, never stands still.
fn steps<'b>(
    context: &'b DirContext,
    number: u32,
    block: &'b [u8],
) -> impl Iterator<Item = Result<Step>> {
    let end = usable(context, block.len());
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let corrupt = |at: usize, what: String| {
            Some(Err(context.corrupt(number, format!("entry at byte {at} {what}"))))
        };
        let here = std::mem::replace(&mut at, end);
        let Some(header) = block.get(here..here + DIRENT_HEADER_LEN) else {
            return corrupt(here, "is cut short".into());
        };
        let rec_len = rec_len_from_disk(u16::from_le_bytes([header[4], header[5]]), block.len());
        let (used, name_len) = (header[..4] != [0; 4], usize::from(header[6]));
        let step = Step { at: here, rec_len, used, name_len };
        if rec_len < step.needed().max(rec_len_needed(1)) || rec_len > end - here {
            return corrupt(here, format!("has a length of {rec_len}"));
        }
        at = here + rec_len;
        Some(Ok(step))
    })
}

/// Finds a name. The entry that is found is checked whole.
pub(super) fn find<'b>(
    context: &DirContext,
    number: u32,
    block: &'b [u8],
    name: &[u8],
) -> Result<Option<DirentRef<'b>>> {
    for step in steps(context, number, block) {
        let step = step?;
        if !step.used || step.name_len != name.len() || step.name(block) != name {
            continue;
        }
        let at = step.at;
        let corrupt = |what: String| context.corrupt(number, what);
        let entry = DirEntries::at(block, at).next().transpose();
        let entry = entry.map_err(|what| corrupt(what.to_string()))?;
        let Some(entry) = entry else { return Ok(None) };
        check(context, number, &entry)
            .map_err(|what| corrupt(format!("{what} in the entry at byte {at}")))?;
        return Ok(Some(entry));
    }
    Ok(None)
}

/// Checks where all entries begin and end: asked once of what comes from the device. One that makes
/// no sense otherwise is in nobody's way but its own.
pub(super) fn check_places(context: &DirContext, number: u32, block: &[u8]) -> Result<()> {
    placed(context, number, block).try_for_each(|entry| entry.map(drop))
}

fn check(
    context: &DirContext,
    number: u32,
    entry: &DirentRef<'_>,
) -> std::result::Result<(), &'static str> {
    if !in_use(entry) {
        return Ok(());
    }
    if entry.inode.0 > context.format.inodes_count {
        return Err("an inode number beyond the file system");
    }
    if entry.name.is_empty() {
        return Err("an empty name");
    }
    // Such a name would lead whoever copies the tree out of it. Encrypted ones are any bytes.
    if !context.encrypted && entry.name.iter().any(|b| matches!(b, b'/' | 0)) {
        return Err("'/' or NUL in the name");
    }
    let dot = number == 0 && (entry.at == DOT || entry.at == DOT_DOT);
    if is_dot_name(entry.name) && !dot {
        return Err("a second \".\" or \"..\"");
    }
    Ok(())
}

/// Checks the checksum and its tail.
pub(super) fn verify(context: &DirContext, number: u32, block: &[u8]) -> Result<()> {
    if context.format.checksums.verify_dir_block(context.seed, block) {
        return Ok(());
    }
    let missing = DirentTail::find(block).is_none();
    Err(context.corrupt(number, if missing { "no checksum" } else { "wrong checksum" }))
}

/// Writes the tail with the checksum of what is before it.
pub fn set_checksum(context: &DirContext, block: &mut [u8]) {
    context.format.checksums.set_dir_block(context.seed, block);
}

/// A first block with "." and "..".
pub(super) fn first_block(context: &DirContext, block_size: usize, parent: InodeNo) -> Vec<u8> {
    let mut block = vec![0; block_size];
    let kind = if context.format.file_types { file_type_code(FileType::Directory) } else { 0 };
    let dot = NewEntry { name: b".", ino: context.ino, kind };
    put(&mut block, DOT, DOT_DOT - DOT, &dot);
    let dot_dot = NewEntry { name: b"..", ino: parent, kind };
    let length = usable(context, block_size) - DOT_DOT;
    put(&mut block, DOT_DOT, length, &dot_dot);
    set_checksum(context, &mut block);
    block
}

/// An empty block of entries.
pub(super) fn empty_block(context: &DirContext, block_size: usize) -> Vec<u8> {
    let mut block = vec![0; block_size];
    set_length(&mut block, 0, usable(context, block_size));
    set_checksum(context, &mut block);
    block
}

/// Adds an entry where there is room; false if there is none. `Exists` if the name is met on the
/// way there.
pub(super) fn insert(
    context: &DirContext,
    number: u32,
    block: &mut [u8],
    new: &NewEntry<'_>,
) -> Result<bool> {
    let want = rec_len_needed(new.name.len());
    let mut place = None;
    for step in steps(context, number, block) {
        let step = step?;
        if step.used && step.name_len == new.name.len() && step.name(block) == new.name {
            return Err(FsError::Exists.into());
        }
        let behind_dot = number == 0 && step.at == DOT;
        if !behind_dot && step.rec_len - step.needed() >= want {
            place = Some((step.at, step.needed(), step.rec_len));
            break;
        }
    }
    let Some((at, keep, length)) = place else { return Ok(false) };
    if keep != 0 {
        set_length(block, at, keep);
    }
    put(block, at + keep, length - keep, new);
    Ok(true)
}

/// Removes the entry at `at`: joins it to the one before, or marks it unused if it is first.
pub(super) fn remove(context: &DirContext, number: u32, block: &mut [u8], at: usize) -> Result<()> {
    let mut before = None;
    let mut here = None;
    for step in steps(context, number, block) {
        let step = step?;
        if step.at == at && step.used {
            here = Some(step.rec_len);
            break;
        }
        before = Some((step.at, step.rec_len));
    }
    let length = here.ok_or_else(|| context.corrupt(number, "an entry vanished"))?;
    // The old name does not stay behind on the disk.
    block[at..at + length].fill(0);
    match before {
        Some((at, len)) => set_length(block, at, len + length),
        None => set_length(block, at, length),
    }
    Ok(())
}

/// Sets inode and type of the entry at `at`.
pub(super) fn repoint(block: &mut [u8], at: usize, ino: InodeNo, kind: u8) {
    block[at..at + 4].copy_from_slice(&ino.0.to_le_bytes());
    block[at + std::mem::offset_of!(DirentHeader, file_type)] = kind;
}

/// A block with just these entries, one behind the other, its
/// checksum not yet right.
///
/// # Panics
/// If they do not fit.
pub(super) fn pack<'e>(
    context: &DirContext,
    block_size: usize,
    all: impl Iterator<Item = &'e DirentRef<'e>>,
) -> Vec<u8> {
    let mut block = empty_block(context, block_size);
    let end = usable(context, block_size);
    let (mut at, mut last) = (0, 0);
    for entry in all {
        let length = rec_len_needed(entry.name.len());
        assert!(at + length <= end, "the entries fit into a block");
        let new = NewEntry { name: entry.name, ino: entry.inode, kind: entry.type_code };
        put(&mut block, at, length, &new);
        last = at;
        at += length;
    }
    set_length(&mut block, last, end - last);
    block
}

pub(super) fn set_length(block: &mut [u8], at: usize, length: usize) {
    let stored = rec_len_to_disk(length, block.len());
    let at = at + std::mem::offset_of!(DirentHeader, rec_len);
    block[at..at + 2].copy_from_slice(&stored.to_le_bytes());
}

fn put(block: &mut [u8], at: usize, length: usize, new: &NewEntry<'_>) {
    put_dirent(block, at, length, new.ino, new.kind, new.name);
}
