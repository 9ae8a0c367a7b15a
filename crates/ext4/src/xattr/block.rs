//! The block of attributes of an inode. Inodes with the same attributes may share one, and count
//! themselves in it; who changes a shared one gets a block of its own.

use steadfast_ext4_format::ondisk::{
    Compat, InodeNo, XATTR_MAGIC, XattrBlockHeader, xattr_block_hash,
};
use steadfast_ext4_format::xattr::entry::{Entry, Value, XattrArea};
use steadfast_ext4_format::{Ext4Error, Result};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::alloc::{BlockRequest, free_blocks};
use crate::extents::{add_blocks, block_goal};
use crate::meta::Txn;
use crate::planted::Bug;

/// Most inodes that share a block (`EXT4_XATTR_REFCOUNT_MAX`).
const USERS_MAX: u32 = 1024;

/// A block of attributes as it stands.
pub(super) struct Block {
    pub number: u64,
    /// Inodes that share it.
    pub users: u32,
    pub entries: Vec<Entry>,
}

/// What a change of an inode's block has done to those that it was shared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The block was the inode's alone: what was taken out of it is gone.
    InPlace,
    /// Others go on using the block as it was.
    Copied,
}

/// The inode's block of attributes, if it has one.
///
/// # Errors
/// Corrupt: in a wrong place, wrong checksum, wrong magic number, or entries without sense.
pub(crate) fn xattr_block(txn: &Txn<'_>, no: InodeNo) -> Result<Option<Block>> {
    let number = txn.raw_inode(no)?.file_acl();
    if number == 0 {
        return Ok(None);
    }
    read_xattr_block(txn, number).map(Some)
}

fn read_xattr_block(txn: &Txn<'_>, number: u64) -> Result<Block> {
    let corrupt = |what: &str| Ext4Error::corrupt(what, format!("attribute block {number}"));
    if !txn.volume.valid_file_blocks(number, 1) {
        return Err(corrupt("it cannot be where it is said to be"));
    }
    let checksums = txn.volume.layout.checksums;
    let contents = txn.read_checked(number, &|bytes| {
        if checksums.verify_xattr_block(number, bytes) {
            return Ok(());
        }
        Err(corrupt("wrong checksum"))
    })?;
    let Ok((header, _)) = XattrBlockHeader::read_from_prefix(&contents) else {
        return Err(corrupt("too short"));
    };
    if header.magic.get() != XATTR_MAGIC || header.blocks.get() != 1 {
        return Err(corrupt("wrong magic number or length"));
    }
    let entries = XattrArea::BLOCK.parse(&contents).map_err(corrupt)?;
    Ok(Block { number, users: header.refcount.get(), entries })
}

/// Whether these attributes fit into a block.
pub(crate) fn fits_xattr_block(txn: &Txn<'_>, entries: &[Entry]) -> bool {
    XattrArea::BLOCK.fits(entries, txn.volume.layout.block_size as usize)
}

/// Puts attributes, which must fit, into the inode's block in place of those that it has.
///
/// # Errors
/// No space.
pub(crate) fn store_xattr_block(
    txn: &mut Txn<'_>,
    no: InodeNo,
    old: Option<&Block>,
    entries: &[Entry],
) -> Result<Change> {
    let change = match old {
        Some(block) if block.users > 1 => Change::Copied,
        _ => Change::InPlace,
    };
    if entries.is_empty() {
        if let Some(block) = old {
            leave_xattr_block(txn, no, block)?;
        }
        return Ok(change);
    }
    if let Some(block) = old
        && change == Change::InPlace
    {
        create_xattr_block(txn, block.number, 1, entries);
        return Ok(change);
    }
    // The new one first: without space for it nothing may change.
    let number = match twin(txn, entries)? {
        Some(twin) => {
            count_xattr_users(txn, twin.number, twin.users + 1)?;
            twin.number
        }
        None => {
            let request = BlockRequest::metadata(block_goal(txn, no, None), no);
            let (number, _) = txn.allocator.allocate(txn, request)?;
            create_xattr_block(txn, number, 1, entries);
            number
        }
    };
    if let Some(block) = old {
        leave_xattr_block(txn, no, block)?;
    }
    txn.modify_inode(no, |raw| raw.set_file_acl(number))?;
    add_blocks(txn, no, txn.volume.layout.blocks_per_cluster.into())?;
    let mut features = txn.superblock().features();
    if !features.compat.contains(Compat::EXT_ATTR) {
        features.compat.insert(Compat::EXT_ATTR);
        txn.superblock_mut().set_features(features);
    }
    Ok(change)
}

/// A block with just these attributes that one more inode may share. What has values in
/// inodes is not shared.
fn twin(txn: &Txn<'_>, entries: &[Entry]) -> Result<Option<Block>> {
    if entries.iter().any(|e| !matches!(e.value, Value::Here(_))) {
        return Ok(None);
    }
    let hash = hash_of(entries);
    let Some(number) = cached_xattr_block(txn, hash) else { return Ok(None) };
    let block = read_xattr_block(txn, number)?;
    let mut wanted = entries.to_vec();
    XattrArea::BLOCK.sort(&mut wanted);
    Ok(Some(block).filter(|b| b.entries == wanted && (1..USERS_MAX).contains(&b.users)))
}

fn create_xattr_block(txn: &mut Txn<'_>, number: u64, users: u32, entries: &[Entry]) {
    let mut header = XattrBlockHeader::new_zeroed();
    header.magic.set(XATTR_MAGIC);
    header.refcount.set(users);
    header.blocks.set(1);
    let hash = hash_of(entries);
    header.hash.set(hash);
    let mut contents = vec![0; txn.volume.layout.block_size as usize];
    XattrArea::BLOCK.write(entries, &mut contents);
    contents[..size_of::<XattrBlockHeader>()].copy_from_slice(header.as_bytes());
    txn.volume.layout.checksums.set_xattr_block(number, &mut contents);
    txn.create(number, contents);
    note_xattr_block(txn, number, Some(hash));
}

fn count_xattr_users(txn: &mut Txn<'_>, number: u64, users: u32) -> Result<()> {
    let checksums = txn.volume.layout.checksums;
    txn.modify(number, |bytes| {
        if let Ok((header, _)) = XattrBlockHeader::mut_from_prefix(bytes) {
            header.refcount.set(users);
        }
        checksums.set_xattr_block(number, bytes);
    })
}

/// Counts the inode out of its block; frees it with the last.
pub(crate) fn leave_xattr_block(txn: &mut Txn<'_>, no: InodeNo, block: &Block) -> Result<Change> {
    let change = if block.users <= 1 {
        txn.forget(block.number);
        free_blocks(txn, block.number, 1)?;
        note_xattr_block(txn, block.number, None);
        Change::InPlace
    } else {
        count_xattr_users(txn, block.number, block.users - 1)?;
        txn.leave_out(block.number, Bug::XattrCountNotLogged);
        Change::Copied
    };
    txn.modify_inode(no, |raw| raw.set_file_acl(0))?;
    add_blocks(txn, no, -i64::from(txn.volume.layout.blocks_per_cluster))?;
    Ok(change)
}

/// The hash of a block with these attributes.
fn hash_of(entries: &[Entry]) -> u32 {
    let mut sorted = entries.to_vec();
    XattrArea::BLOCK.sort(&mut sorted);
    xattr_block_hash(sorted.iter().map(Entry::hash))
}

/// A block that had this hash after the last transaction, and that this one has not touched.
pub(super) fn cached_xattr_block(txn: &Txn<'_>, hash: u32) -> Option<u64> {
    let block = *txn.meta.xattr_blocks.by_hash.get(&hash)?;
    (hash != 0 && !txn.xattr_notes.contains_key(&block)).then_some(block)
}

pub(super) fn note_xattr_block(txn: &mut Txn<'_>, block: u64, hash: Option<u32>) {
    txn.xattr_notes.insert(block, hash);
}
