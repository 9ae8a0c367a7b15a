//! Extended attributes, as the kernel keeps them (fs/ext4/xattr.c).
//!
//! An attribute goes into the inode if there is room behind the inode's fields, else into a block,
//! which inodes with the same attributes share, else, with the `ea_inode` feature, its value goes
//! into an inode of its own. Every change is made in the transaction it is called with, whole or
//! not at all. `acl` and `acls`: access control lists, which are attributes with a meaning.

mod acls;
mod block;
mod large;

use std::sync::Arc;

use steadfast_ext4_format::ondisk::{InodeNo, XattrBlockHeader, XattrEntry};
use steadfast_ext4_format::xattr::entry::{Entry, Value};
use steadfast_ext4_format::xattr::{body, name};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::{FsError, SetXattr};

pub(crate) use acls::AclType;
use block::{Block, Change};

use crate::extents::add_blocks;
use crate::meta::Txn;
use crate::state::Inode;
use block::{fits_xattr_block, leave_xattr_block, store_xattr_block, xattr_block};
use large::{
    create_value_inode, has_value_inodes, leave_value_inode, read_value_inode, share_value_inode,
};

pub(crate) use acls::{acl_follows_mode, inherit_acls, read_acl, set_acl};

/// Inodes of values that nobody uses any more: orphans, to be deleted when the transaction that
/// made them so is finished.
#[must_use = "they are to be deleted"]
#[derive(Default)]
pub(crate) struct UnusedInodes(pub Vec<Arc<Inode>>);

/// A name on disk: code of the prefix, and the rest.
pub(crate) type XattrKey<'a> = (u8, &'a [u8]);

fn body_xattrs(txn: &Txn<'_>, no: InodeNo) -> Result<Vec<Entry>> {
    let corrupt = |what| Ext4Error::corrupt(what, format!("attributes in inode {no}"));
    body::read(&txn.raw_inode(no)?).map_err(corrupt)
}

/// The value of an attribute; `None` if there is none.
///
/// # Errors
/// Corrupt attributes.
pub(crate) fn read_xattr(
    txn: &Txn<'_>,
    no: InodeNo,
    (index, name): XattrKey<'_>,
) -> Result<Option<Vec<u8>>> {
    let in_body = body_xattrs(txn, no)?.into_iter().find(|e| e.is(index, name));
    let found = match in_body {
        Some(found) => Some(found),
        None => xattr_block(txn, no)?
            .and_then(|block| block.entries.into_iter().find(|e| e.is(index, name))),
    };
    let Some(found) = found else { return Ok(None) };
    match found.value {
        Value::Here(bytes) => Ok(Some(bytes)),
        Value::Inode { no: at, size, hash } => {
            read_value_inode(txn, no, name, (at, size, hash)).map(Some)
        }
    }
}

/// The full names of all attributes that programs see.
///
/// # Errors
/// Corrupt attributes.
pub(crate) fn xattr_names(txn: &Txn<'_>, no: InodeNo) -> Result<Vec<Vec<u8>>> {
    let in_block = xattr_block(txn, no)?.map(|block| block.entries).unwrap_or_default();
    let all = body_xattrs(txn, no)?.into_iter().chain(in_block);
    Ok(all.filter_map(|e| name::join(e.index, &e.name)).collect())
}

/// Sets an attribute or, without a value, removes it. Says whether anything has changed.
///
/// # Errors
/// EEXIST, ENODATA as `how` asks; ENODATA: to be removed, but not there. No space: neither
/// the inode nor its block has room. Corrupt attributes.
pub(crate) fn set_xattr(
    txn: &mut Txn<'_>,
    no: InodeNo,
    wanted: XattrKey<'_>,
    value: Option<&[u8]>,
    how: SetXattr,
) -> Result<(bool, UnusedInodes)> {
    let is_it = |e: &Entry| e.is(wanted.0, wanted.1);
    let body = body_xattrs(txn, no)?;
    let block = xattr_block(txn, no)?;
    let in_body = body.iter().find(|e| is_it(e)).cloned();
    let in_block = match (&in_body, &block) {
        (None, Some(block)) => block.entries.iter().find(|e| is_it(e)).cloned(),
        _ => None,
    };
    let old = in_body.as_ref().or(in_block.as_ref());
    match (old, how) {
        (None, SetXattr::Replace) => return Err(FsError::NoData.into()),
        (Some(_), SetXattr::Create) => return Err(FsError::Exists.into()),
        (None, _) if value.is_none() => return Err(FsError::NoData.into()),
        (Some(Entry { value: Value::Here(now), .. }), _) if value == Some(now) => {
            return Ok((false, UnusedInodes::default()));
        }
        _ => {}
    }
    let without = |entries: &[Entry]| -> Vec<Entry> {
        entries.iter().filter(|e| !is_it(e)).cloned().collect()
    };
    let mut body_then = without(&body);
    let mut block_then = block.as_ref().map_or_else(Vec::new, |b| without(&b.entries));
    if let Some(value) = value {
        let (entry, place) = place_xattr(txn, no, wanted, value, &body_then, &block_then)?;
        match place {
            XattrLocation::Body => body_then.push(entry),
            XattrLocation::Block => block_then.push(entry),
        }
    }
    let charged = |entries: &[Entry]| -> i64 {
        entries.iter().map(|e| blocks_charged(txn, e).cast_signed()).sum()
    };
    let charge = charged(&body_then) + charged(&block_then)
        - charged(&body)
        - block.as_ref().map_or(0, |b| charged(&b.entries));
    add_blocks(txn, no, charge)?;
    let mut unused = Vec::new();
    if block_then.len() != block.as_ref().map_or(0, |b| b.entries.len()) || in_block.is_some() {
        let change = store_xattr_block(txn, no, block.as_ref(), &block_then)?;
        count_values(txn, change, block.as_ref(), in_block.as_ref(), &mut unused)?;
    }
    if body_then != body {
        txn.modify_inode(no, |raw| body::write(raw, &body_then))?;
    }
    if let Some(Entry { value: Value::Inode { no, .. }, .. }) = in_body {
        unused.extend(leave_value_inode(txn, no)?);
    }
    Ok((true, UnusedInodes(unused)))
}

/// Finds out where a value fits, and makes its inode if it is to have one.
fn place_xattr(
    txn: &mut Txn<'_>,
    no: InodeNo,
    (index, name): XattrKey<'_>,
    value: &[u8],
    body: &[Entry],
    block: &[Entry],
) -> Result<(Entry, XattrLocation)> {
    let raw = txn.raw_inode(no)?;
    let inodes = has_value_inodes(txn);
    let long = value.len().next_multiple_of(4) > block_value_max(txn);
    for in_inode in [inodes && long, inodes] {
        let stand_in = if in_inode {
            Value::Inode { no: InodeNo::NONE, size: 0, hash: 0 }
        } else {
            Value::Here(value.to_vec())
        };
        let mut entry = Entry { index, name: name.to_vec(), value: stand_in };
        let with = |list: &[Entry]| [list, std::slice::from_ref(&entry)].concat();
        let place = if body::fits(&raw, &with(body)) {
            XattrLocation::Body
        } else if fits_xattr_block(txn, &with(block))
            && (in_inode || value.is_empty() || leaves_room(txn, &with(block)))
        {
            XattrLocation::Block
        } else {
            continue;
        };
        if in_inode {
            entry.value = create_value_inode(txn, no, name, value)?;
        }
        return Ok((entry, place));
    }
    Err(FsError::NoSpace { what: "room for extended attributes of one inode" }.into())
}

/// Values longer than this go into an inode at once (`EXT4_XATTR_MIN_LARGE_EA_SIZE`).
fn block_value_max(txn: &Txn<'_>) -> usize {
    let shortest_entry = size_of::<XattrEntry>() + 4;
    let taken = shortest_entry + size_of::<XattrBlockHeader>() + 4;
    txn.volume.layout.block_size as usize - taken
}

/// Where values may be in inodes, those in a block leave room for entries
/// (`EXT4_XATTR_BLOCK_RESERVE`).
fn leaves_room(txn: &Txn<'_>, block: &[Entry]) -> bool {
    let size = txn.volume.layout.block_size as usize;
    let values: usize = block.iter().map(|e| e.value.padded_len()).sum();
    !has_value_inodes(txn) || values + (size / 8).min(1024) <= size
}

/// Blocks that an attribute's owner is charged for because its value is in an inode; the
/// inode counts them, too.
fn blocks_charged(txn: &Txn<'_>, entry: &Entry) -> u64 {
    match entry.value {
        Value::Here(_) => 0,
        Value::Inode { size, .. } => {
            let layout = &txn.volume.layout;
            let clusters = u64::from(size).div_ceil(layout.cluster_size());
            clusters * u64::from(layout.blocks_per_cluster)
        }
    }
}

/// Counts uses of values' inodes after a block has changed: a copy uses all that it has, too;
/// what was taken out of a block that was not shared is not used any more.
fn count_values(
    txn: &mut Txn<'_>,
    change: Change,
    before: Option<&Block>,
    taken_out: Option<&Entry>,
    unused: &mut Vec<Arc<Inode>>,
) -> Result<()> {
    match change {
        Change::InPlace => {
            if let Some(Entry { value: Value::Inode { no, .. }, .. }) = taken_out {
                unused.extend(leave_value_inode(txn, *no)?);
            }
        }
        Change::Copied => {
            let kept = before.into_iter().flat_map(|b| &b.entries);
            for entry in kept.filter(|e| Some(*e) != taken_out) {
                if let Value::Inode { no, .. } = entry.value {
                    share_value_inode(txn, no)?;
                }
            }
        }
    }
    Ok(())
}

/// Takes everything from an inode that goes away.
///
/// # Errors
/// Corrupt attributes.
pub(crate) fn release_xattrs(txn: &mut Txn<'_>, no: InodeNo) -> Result<UnusedInodes> {
    let mut gone = if has_value_inodes(txn) { body_xattrs(txn, no)? } else { Vec::new() };
    if let Some(block) = xattr_block(txn, no)?
        && leave_xattr_block(txn, no, &block)? == Change::InPlace
    {
        gone.extend(block.entries);
    }
    let mut unused = Vec::new();
    for entry in gone {
        if let Value::Inode { no, .. } = entry.value {
            unused.extend(leave_value_inode(txn, no)?);
        }
    }
    Ok(UnusedInodes(unused))
}

/// Where an attribute goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum XattrLocation {
    Body,
    Block,
}
