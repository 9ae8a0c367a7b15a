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

pub(crate) use acls::Which;
use block::{Block, Change};

use crate::meta::Txn;
use crate::state::Inode;

/// Inodes of values that nobody uses any more: orphans, to be deleted when the transaction that
/// made them so is finished.
#[must_use = "they are to be deleted"]
#[derive(Default)]
pub(crate) struct Unused(pub Vec<Arc<Inode>>);

/// A name on disk: code of the prefix, and the rest.
pub(crate) type Name<'a> = (u8, &'a [u8]);

impl Txn<'_> {
    fn body_xattrs(&self, no: InodeNo) -> Result<Vec<Entry>> {
        let corrupt = |what| Ext4Error::corrupt(what, format!("attributes in inode {no}"));
        body::read(&self.raw_inode(no)?).map_err(corrupt)
    }

    /// The value of an attribute; `None` if there is none.
    ///
    /// # Errors
    /// Corrupt attributes.
    pub(crate) fn xattr(&self, no: InodeNo, (index, name): Name<'_>) -> Result<Option<Vec<u8>>> {
        let in_body = self.body_xattrs(no)?.into_iter().find(|e| e.is(index, name));
        let found = match in_body {
            Some(found) => Some(found),
            None => self
                .xattr_block(no)?
                .and_then(|block| block.entries.into_iter().find(|e| e.is(index, name))),
        };
        let Some(found) = found else { return Ok(None) };
        match found.value {
            Value::Here(bytes) => Ok(Some(bytes)),
            Value::Inode { no: at, size, hash } => {
                self.read_value_inode(no, name, (at, size, hash)).map(Some)
            }
        }
    }

    /// The full names of all attributes that programs see.
    ///
    /// # Errors
    /// Corrupt attributes.
    pub(crate) fn xattr_names(&self, no: InodeNo) -> Result<Vec<Vec<u8>>> {
        let in_block = self.xattr_block(no)?.map(|block| block.entries).unwrap_or_default();
        let all = self.body_xattrs(no)?.into_iter().chain(in_block);
        Ok(all.filter_map(|e| name::join(e.index, &e.name)).collect())
    }

    /// Sets an attribute or, without a value, removes it. Says whether anything has changed.
    ///
    /// # Errors
    /// EEXIST, ENODATA as `how` asks; ENODATA: to be removed, but not there. No space: neither
    /// the inode nor its block has room. Corrupt attributes.
    pub(crate) fn set_xattr(
        &mut self,
        no: InodeNo,
        wanted: Name<'_>,
        value: Option<&[u8]>,
        how: SetXattr,
    ) -> Result<(bool, Unused)> {
        let is_it = |e: &Entry| e.is(wanted.0, wanted.1);
        let body = self.body_xattrs(no)?;
        let block = self.xattr_block(no)?;
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
                return Ok((false, Unused::default()));
            }
            _ => {}
        }
        let without = |entries: &[Entry]| -> Vec<Entry> {
            entries.iter().filter(|e| !is_it(e)).cloned().collect()
        };
        let mut body_then = without(&body);
        let mut block_then = block.as_ref().map_or_else(Vec::new, |b| without(&b.entries));
        if let Some(value) = value {
            let (entry, place) = self.place_xattr(no, wanted, value, &body_then, &block_then)?;
            match place {
                Place::Body => body_then.push(entry),
                Place::Block => block_then.push(entry),
            }
        }
        let charged = |entries: &[Entry]| -> i64 {
            entries.iter().map(|e| self.blocks_charged(e).cast_signed()).sum()
        };
        let charge = charged(&body_then) + charged(&block_then)
            - charged(&body)
            - block.as_ref().map_or(0, |b| charged(&b.entries));
        self.add_blocks(no, charge)?;
        let mut unused = Vec::new();
        if block_then.len() != block.as_ref().map_or(0, |b| b.entries.len()) || in_block.is_some() {
            let change = self.store_xattr_block(no, block.as_ref(), &block_then)?;
            self.count_values(change, block.as_ref(), in_block.as_ref(), &mut unused)?;
        }
        if body_then != body {
            self.modify_inode(no, |raw| body::write(raw, &body_then))?;
        }
        if let Some(Entry { value: Value::Inode { no, .. }, .. }) = in_body {
            unused.extend(self.leave_value_inode(no)?);
        }
        Ok((true, Unused(unused)))
    }

    /// Finds out where a value fits, and makes its inode if it is to have one.
    fn place_xattr(
        &mut self,
        no: InodeNo,
        (index, name): Name<'_>,
        value: &[u8],
        body: &[Entry],
        block: &[Entry],
    ) -> Result<(Entry, Place)> {
        let raw = self.raw_inode(no)?;
        let inodes = self.has_value_inodes();
        let long = value.len().next_multiple_of(4) > self.block_value_max();
        for in_inode in [inodes && long, inodes] {
            let stand_in = if in_inode {
                Value::Inode { no: InodeNo::NONE, size: 0, hash: 0 }
            } else {
                Value::Here(value.to_vec())
            };
            let mut entry = Entry { index, name: name.to_vec(), value: stand_in };
            let with = |list: &[Entry]| [list, std::slice::from_ref(&entry)].concat();
            let place = if body::fits(&raw, &with(body)) {
                Place::Body
            } else if self.fits_xattr_block(&with(block))
                && (in_inode || value.is_empty() || self.leaves_room(&with(block)))
            {
                Place::Block
            } else {
                continue;
            };
            if in_inode {
                entry.value = self.create_value_inode(no, name, value)?;
            }
            return Ok((entry, place));
        }
        Err(FsError::NoSpace { what: "room for extended attributes of one inode" }.into())
    }

    /// Values longer than this go into an inode at once (`EXT4_XATTR_MIN_LARGE_EA_SIZE`).
    fn block_value_max(&self) -> usize {
        let shortest_entry = size_of::<XattrEntry>() + 4;
        let taken = shortest_entry + size_of::<XattrBlockHeader>() + 4;
        self.volume.layout.block_size as usize - taken
    }

    /// Where values may be in inodes, those in a block leave room for entries
    /// (`EXT4_XATTR_BLOCK_RESERVE`).
    fn leaves_room(&self, block: &[Entry]) -> bool {
        let size = self.volume.layout.block_size as usize;
        let values: usize = block.iter().map(|e| e.value.padded_len()).sum();
        !self.has_value_inodes() || values + (size / 8).min(1024) <= size
    }

    /// Blocks that an attribute's owner is charged for because its value is in an inode; the
    /// inode counts them, too.
    fn blocks_charged(&self, entry: &Entry) -> u64 {
        match entry.value {
            Value::Here(_) => 0,
            Value::Inode { size, .. } => {
                let layout = &self.volume.layout;
                let clusters = u64::from(size).div_ceil(layout.cluster_size());
                clusters * u64::from(layout.blocks_per_cluster)
            }
        }
    }

    /// Counts uses of values' inodes after a block has changed: a copy uses all that it has, too;
    /// what was taken out of a block that was not shared is not used any more.
    fn count_values(
        &mut self,
        change: Change,
        before: Option<&Block>,
        taken_out: Option<&Entry>,
        unused: &mut Vec<Arc<Inode>>,
    ) -> Result<()> {
        match change {
            Change::InPlace => {
                if let Some(Entry { value: Value::Inode { no, .. }, .. }) = taken_out {
                    unused.extend(self.leave_value_inode(*no)?);
                }
            }
            Change::Copied => {
                let kept = before.into_iter().flat_map(|b| &b.entries);
                for entry in kept.filter(|e| Some(*e) != taken_out) {
                    if let Value::Inode { no, .. } = entry.value {
                        self.share_value_inode(no)?;
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
    pub(crate) fn release_xattrs(&mut self, no: InodeNo) -> Result<Unused> {
        let mut gone = if self.has_value_inodes() { self.body_xattrs(no)? } else { Vec::new() };
        if let Some(block) = self.xattr_block(no)?
            && self.leave_xattr_block(no, &block)? == Change::InPlace
        {
            gone.extend(block.entries);
        }
        let mut unused = Vec::new();
        for entry in gone {
            if let Value::Inode { no, .. } = entry.value {
                unused.extend(self.leave_value_inode(no)?);
            }
        }
        Ok(Unused(unused))
    }
}

/// Where an attribute goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Body,
    Block,
}
