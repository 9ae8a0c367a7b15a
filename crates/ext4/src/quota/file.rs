//! One quota file, in a transaction: finding and adding entries.

use steadfast_ext4_format::ondisk::{
    InodeNo, QUOTA_BLOCK, QUOTA_DEPTH, QUOTA_ENTRIES, QUOTA_ROOT, QuotaBlockHeader, QuotaEntry,
    QuotaInfo, quota_index,
};
use steadfast_ext4_format::{Ext4Error, Result};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::extents::{block_goal, block_of, map_metadata_block};
use crate::meta::Txn;

/// Where an entry is: block of the file, and number in it.
pub(super) type EntryLocation = (u32, usize);

fn corrupt(no: InodeNo, block: u32, what: &str) -> Ext4Error {
    Ext4Error::corrupt(what, format!("quota file inode {no}, block {block}"))
}

fn number_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// Block of the file system, and offset in it, of a block of a quota file.
fn quota_place(txn: &Txn<'_>, block: u32) -> (u32, usize) {
    let byte = u64::from(block) * QUOTA_BLOCK as u64;
    let size = txn.volume.block_size();
    // OK to cast: 2^32 blocks of 1 KiB are no more blocks of the file system.
    ((byte / size) as u32, (byte % size) as usize)
}

fn quota_block(txn: &Txn<'_>, no: InodeNo, block: u32) -> Result<Vec<u8>> {
    let (logical, offset) = quota_place(txn, block);
    let Some(place) = block_of(txn, no, logical)? else {
        return Err(corrupt(no, block, "a hole"));
    };
    Ok(txn.read(place)?[offset..offset + QUOTA_BLOCK].to_vec())
}

/// Writes a block, which is added to the file if it is beyond the end.
fn write_quota_block(txn: &mut Txn<'_>, no: InodeNo, block: u32, contents: &[u8]) -> Result<()> {
    let (logical, offset) = quota_place(txn, block);
    let place = match block_of(txn, no, logical)? {
        Some(place) => place,
        None => {
            let goal = block_goal(txn, no, Some(logical));
            let start = map_metadata_block(txn, no, logical, goal)?;
            // OK to cast: a block is at most 64 KiB.
            txn.create(start, vec![0; txn.volume.block_size() as usize]);
            start
        }
    };
    txn.modify(place, |b| b[offset..offset + QUOTA_BLOCK].copy_from_slice(contents))?;
    let end = (u64::from(block) + 1) * QUOTA_BLOCK as u64;
    if end > txn.raw_inode(no)?.size() {
        txn.modify_inode(no, |raw| raw.set_size(end))?;
    }
    Ok(())
}

/// The file's header.
pub(crate) fn quota_info(txn: &Txn<'_>, no: InodeNo) -> Result<QuotaInfo> {
    let block = quota_block(txn, no, 0)?;
    // OK to unwrap: it is shorter than a block.
    Ok(QuotaInfo::read_from_prefix(&block[..]).unwrap().0)
}

fn write_quota_info(txn: &mut Txn<'_>, no: InodeNo, info: &QuotaInfo) -> Result<()> {
    let mut block = quota_block(txn, no, 0)?;
    block[..size_of::<QuotaInfo>()].copy_from_slice(info.as_bytes());
    write_quota_block(txn, no, 0, &block)
}

/// A number of a block found in the file.
fn quota_link(no: InodeNo, at: u32, to: u32, info: &QuotaInfo) -> Result<u32> {
    if to <= QUOTA_ROOT || to >= info.blocks.get() {
        return Err(corrupt(no, at, "it leads out of the file"));
    }
    Ok(to)
}

/// The entry of an id, and where it is; `None` if there is none.
pub(crate) fn quota_entry(
    txn: &Txn<'_>,
    no: InodeNo,
    id: u32,
) -> Result<Option<(EntryLocation, QuotaEntry)>> {
    let info = quota_info(txn, no)?;
    let mut at = QUOTA_ROOT;
    for level in 0..QUOTA_DEPTH {
        let to = number_at(&quota_block(txn, no, at)?, quota_index(id, level));
        if to == 0 {
            return Ok(None);
        }
        at = quota_link(no, at, to, &info)?;
    }
    let block = quota_block(txn, no, at)?;
    let of_id = |i| QuotaEntry::of_block(&block, i).filter(|e| e.id.get() == id);
    let found = (0..QUOTA_ENTRIES).find_map(|i| Some((i, of_id(i)?)));
    let Some((i, mut entry)) = found else {
        return Err(corrupt(no, at, "the entry that it should hold is missing"));
    };
    let mut marked = QuotaEntry::new_zeroed();
    marked.inodes_time.set(1);
    if entry == marked {
        entry.inodes_time.set(0);
    }
    Ok(Some(((at, i), entry)))
}

/// Replaces an entry.
pub(crate) fn write_quota_entry(
    txn: &mut Txn<'_>,
    no: InodeNo,
    (at, i): EntryLocation,
    entry: QuotaEntry,
) -> Result<()> {
    let mut block = quota_block(txn, no, at)?;
    entry.write_to(&mut block, i);
    write_quota_block(txn, no, at, &block)
}

/// Adds an entry of zeros for an id that has none.
pub(crate) fn add_quota_entry(txn: &mut Txn<'_>, no: InodeNo, id: u32) -> Result<EntryLocation> {
    let mut info = quota_info(txn, no)?;
    let mut at = QUOTA_ROOT;
    let mut place = None;
    for level in 0..QUOTA_DEPTH {
        let mut block = quota_block(txn, no, at)?;
        let index = quota_index(id, level);
        let to = number_at(&block, index);
        if to != 0 {
            at = quota_link(no, at, to, &info)?;
            continue;
        }
        let added = if level == QUOTA_DEPTH - 1 {
            let found = take_quota_slot(txn, no, id, &mut info)?;
            place = Some(found);
            found.0
        } else {
            new_quota_block(txn, no, &mut info)?
        };
        block[index..index + 4].copy_from_slice(&added.to_le_bytes());
        write_quota_block(txn, no, at, &block)?;
        at = added;
    }
    write_quota_info(txn, no, &info)?;
    place.ok_or_else(|| corrupt(no, at, "an entry is missing, but not the way to it"))
}

/// A block of zeros: from the list of free ones, or at the end.
fn new_quota_block(txn: &mut Txn<'_>, no: InodeNo, info: &mut QuotaInfo) -> Result<u32> {
    let block = if info.free_block.get() != 0 {
        let free = quota_link(no, 0, info.free_block.get(), info)?;
        info.free_block.set(number_at(&quota_block(txn, no, free)?, 0));
        free
    } else {
        let end = info.blocks.get();
        info.blocks.set(end.checked_add(1).ok_or_else(|| corrupt(no, 0, "it is full"))?);
        end
    };
    write_quota_block(txn, no, block, &[0; QUOTA_BLOCK])?;
    Ok(block)
}

/// Puts an entry for an id into a block that has room.
fn take_quota_slot(
    txn: &mut Txn<'_>,
    no: InodeNo,
    id: u32,
    info: &mut QuotaInfo,
) -> Result<EntryLocation> {
    let at = if info.free_entry.get() != 0 {
        quota_link(no, 0, info.free_entry.get(), info)?
    } else {
        let new = new_quota_block(txn, no, info)?;
        info.free_entry.set(new);
        new
    };
    let mut block = quota_block(txn, no, at)?;
    check_has_room(no, at, &block)?;
    let slot = (0..QUOTA_ENTRIES).find(|i| QuotaEntry::of_block(&block, *i).is_none());
    let slot = slot.ok_or_else(|| corrupt(no, at, "no room where there should be"))?;
    // OK to unwrap: it is shorter than a block.
    let mut header = QuotaBlockHeader::read_from_prefix(&block[..]).unwrap().0;
    header.entries.set(header.entries.get().saturating_add(1));
    if usize::from(header.entries.get()) >= QUOTA_ENTRIES {
        unlink_quota_block(txn, no, at, &header, info)?;
        header.next.set(0);
        header.previous.set(0);
    }
    block[..size_of::<QuotaBlockHeader>()].copy_from_slice(header.as_bytes());
    let mut entry = QuotaEntry::new_zeroed();
    entry.id.set(id);
    entry.write_to(&mut block, slot);
    write_quota_block(txn, no, at, &block)?;
    Ok((at, slot))
}

/// Refuses the first block of the list of those with room if it is none, but of the tree. One of
/// zeros is new.
fn check_has_room(no: InodeNo, at: u32, block: &[u8]) -> Result<()> {
    // OK to unwrap: it is shorter than a block.
    let header = QuotaBlockHeader::read_from_prefix(block).unwrap().0;
    let used = (0..QUOTA_ENTRIES).filter_map(|i| QuotaEntry::of_block(block, i)).count();
    let entries = usize::from(header.entries.get());
    let is_new = block.iter().all(|byte| *byte == 0);
    match header.previous.get() == 0 && entries == used && (used > 0 || is_new) {
        true => Ok(()),
        false => Err(corrupt(no, at, "it is no block of entries with room")),
    }
}

/// Takes a block that is full now out of the list of those with room.
fn unlink_quota_block(
    txn: &mut Txn<'_>,
    no: InodeNo,
    at: u32,
    header: &QuotaBlockHeader,
    info: &mut QuotaInfo,
) -> Result<()> {
    let (next, previous) = (header.next.get(), header.previous.get());
    if next != 0 {
        let next = quota_link(no, 0, next, info)?;
        let mut block = quota_block(txn, no, next)?;
        if number_at(&block, 4) != at {
            return Err(corrupt(no, next, "the list of blocks with room does not lead back"));
        }
        block[4..8].copy_from_slice(&previous.to_le_bytes());
        write_quota_block(txn, no, next, &block)?;
    }
    if previous == 0 {
        info.free_entry.set(next);
        return Ok(());
    }
    let previous = quota_link(no, 0, previous, info)?;
    let mut block = quota_block(txn, no, previous)?;
    block[..4].copy_from_slice(&next.to_le_bytes());
    write_quota_block(txn, no, previous, &block)
}
