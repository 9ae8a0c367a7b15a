//! Values in inodes of their own (`ea_inode`). Such an inode counts in its ctime and version how
//! many attributes use it, and keeps the checksum of its contents in its atime
//! (`ext4_xattr_inode_*` in fs/ext4/xattr.c). Its data is metadata: it goes through the log.

use std::sync::Arc;

use steadfast_ext4_format::ondisk::csum::crc32c;
use steadfast_ext4_format::ondisk::{Incompat, InodeFlags, InodeNo, RawInode, xattr_entry_hash};
use steadfast_ext4_format::xattr::entry::Value;
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::{FileType, FsError, NewNode};

use crate::extents::{append_block, block_of};
use crate::inode::create_inode;
use crate::meta::Txn;
use crate::state::Inode;

/// Longest value that is believed (`EXT4_XATTR_SIZE_MAX`).
const VALUE_MAX: u64 = 1 << 24;

/// Whether values may have inodes of their own.
pub(crate) fn has_value_inodes(txn: &Txn<'_>) -> bool {
    txn.superblock().features().incompat.contains(Incompat::EA_INODE)
}

fn value_checksum(txn: &Txn<'_>, value: &[u8]) -> u32 {
    let sb = txn.superblock();
    let stored = sb.features().incompat.contains(Incompat::CSUM_SEED);
    let seed = if stored { sb.checksum_seed.get() } else { crc32c(!0, &sb.uuid) };
    crc32c(seed, value)
}

/// Makes an inode for the value of an attribute of `owner`, used once.
///
/// # Errors
/// No space: blocks or inodes.
pub(crate) fn create_value_inode(
    txn: &mut Txn<'_>,
    owner: InodeNo,
    name: &[u8],
    value: &[u8],
) -> Result<Value> {
    let raw = txn.raw_inode(owner)?;
    let node = NewNode { mode: 0o600, uid: raw.uid(), gid: raw.gid(), umask: 0 };
    let no = create_inode(txn, owner, (FileType::Regular, b""), node)?;
    let sum = value_checksum(txn, value);
    txn.modify_inode(no, |new| {
        new.set_gid(raw.gid());
        new.set_flags(new.flags() & InodeFlags::EXTENTS | InodeFlags::EA_INODE);
        new.set_links(1);
        new.core_mut().atime.set(sum);
        if let Some(extra) = new.extra_mut() {
            extra.atime_extra.set(0);
            extra.ctime_extra.set(0);
        }
        set_uses(new, 1);
    })?;
    for piece in value.chunks(txn.volume.layout.block_size as usize) {
        let (_, block) = append_block(txn, no)?;
        let mut contents = piece.to_vec();
        contents.resize(txn.volume.layout.block_size as usize, 0);
        txn.create(block, contents);
    }
    txn.modify_inode(no, |new| new.set_size(value.len() as u64))?;
    let hash = xattr_entry_hash(name, &sum.to_le_bytes(), false);
    // OK to cast: a value has at most 64 KiB.
    Ok(Value::Inode { no, size: value.len() as u32, hash })
}

fn value_inode(txn: &Txn<'_>, no: InodeNo) -> Result<RawInode> {
    let corrupt = |what: &str| Ext4Error::corrupt(what, format!("value inode {no}"));
    let layout = &txn.volume.layout;
    if no == InodeNo::ROOT || layout.is_reserved(no) || no.0 > layout.inodes_count {
        return Err(corrupt("an attribute's value cannot be in this inode"));
    }
    let raw = txn.raw_inode(no).map_err(|e| match e {
        Ext4Error::Fs(FsError::NotFound) => corrupt("the inode is not in use"),
        other => other,
    })?;
    if !raw.flags().contains(InodeFlags::EA_INODE) || raw.file_type() != Some(FileType::Regular) {
        return Err(corrupt("the inode holds no value"));
    }
    Ok(raw)
}

/// The value of an attribute of `owner` in an inode of its own.
///
/// # Errors
/// Corrupt: no such inode, or its contents are not what was put there.
pub(crate) fn read_value_inode(
    txn: &Txn<'_>,
    owner: InodeNo,
    name: &[u8],
    (no, size, hash): (InodeNo, u32, u32),
) -> Result<Vec<u8>> {
    let corrupt = |what: &str| Ext4Error::corrupt(what, format!("value inode {no}"));
    let raw = value_inode(txn, no)?;
    if raw.size() != u64::from(size) || raw.size() > VALUE_MAX {
        return Err(corrupt("a wrong size"));
    }
    let block_size = txn.volume.layout.block_size as usize;
    let mut value = Vec::new();
    for logical in 0..(size as usize).div_ceil(block_size) {
        // OK to cast: at most 2^24 bytes.
        let block = block_of(txn, no, logical as u32)?;
        let contents = txn.read(block.ok_or_else(|| corrupt("a hole in a value"))?)?;
        value.extend_from_slice(&contents);
    }
    value.truncate(size as usize);
    let sum = value_checksum(txn, &value);
    let hash_is_right =
        [false, true].iter().any(|s| xattr_entry_hash(name, &sum.to_le_bytes(), *s) == hash);
    if raw.core().atime.get() == sum && hash_is_right {
        return Ok(value);
    }
    // Lustre's form has no checksum, but says whose it is.
    let above = txn.raw_inode(owner)?;
    if raw.core().mtime.get() == owner.0 && raw.generation() == above.generation() {
        return Ok(value);
    }
    Err(corrupt("an attribute's value has a wrong checksum"))
}

/// One more attribute uses the inode.
pub(crate) fn share_value_inode(txn: &mut Txn<'_>, no: InodeNo) -> Result<()> {
    let uses = uses(&value_inode(txn, no)?);
    txn.modify_inode(no, |raw| set_uses(raw, uses + 1))
}

/// One attribute less uses the inode. With the last it is an orphan, handed back to be
/// deleted when the transaction is finished.
pub(crate) fn leave_value_inode(txn: &mut Txn<'_>, no: InodeNo) -> Result<Option<Arc<Inode>>> {
    let left = uses(&value_inode(txn, no)?).saturating_sub(1);
    txn.modify_inode(no, |raw| {
        set_uses(raw, left);
        if left == 0 {
            raw.set_links(0);
        }
    })?;
    if left > 0 {
        return Ok(None);
    }
    txn.orphans.add(txn, no)?;
    txn.inode(no).map(Some)
}

/// How many attributes use a value's inode: high half in the ctime, low half in the version.
fn uses(raw: &RawInode) -> u64 {
    u64::from(raw.core().ctime.get()) << 32 | u64::from(raw.core().version_lo.get())
}

fn set_uses(raw: &mut RawInode, uses: u64) {
    raw.core_mut().ctime.set((uses >> 32) as u32);
    raw.core_mut().version_lo.set(uses as u32);
}
