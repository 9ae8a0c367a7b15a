//! The blocks of a directory's inode, in a transaction.

use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use steadfast_ext4_format::dir::{
    DirBlocks, DirBlocksMut, DirContext, DirFormat, Directory, inline,
};
use steadfast_ext4_format::extents::Lookup;
use steadfast_ext4_format::inline::INLINE_MIN;
use steadfast_ext4_format::ondisk::{Incompat, InodeFlags, InodeNo};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::{FileType, FsError};

use crate::extents::{append_block, find_extent};
use crate::meta::Txn;
use crate::planted::Bug;

/// Most blocks that are read with one that was asked for, if they lie behind it.
const READ_AHEAD: u32 = 15;

/// Blocks of a directory as a transaction `T` (`&Txn` to look, `&mut Txn` to change) sees them.
pub(crate) struct InodeBlocks<T> {
    txn: T,
    no: InodeNo,
    block_size: u32,
    count: u32,
    indexed: bool,
    /// The contents are in the inode; they are shown as one block.
    inline: bool,
    context: DirContext,
}

impl<'v, T: Deref<Target = Txn<'v>>> InodeBlocks<T> {
    /// The directory with inode `no`.
    ///
    /// # Errors
    /// ENOTDIR if it is something else.
    pub fn directory(txn: T, no: InodeNo) -> Result<Directory<Self>> {
        let look = &*txn;
        let (kind, flags, inline, size, generation) = look.look_at(no, |raw| {
            (raw.file_type(), raw.flags(), raw.is_inline(), raw.size(), raw.generation())
        })?;
        if kind != Some(FileType::Directory) {
            return Err(FsError::NotDirectory.into());
        }
        let corrupt = |what: &str| Ext4Error::corrupt(what, format!("directory inode {no}"));
        let incompat = look.volume().layout.features.incompat;
        let casefold = flags.contains(InodeFlags::CASEFOLD);
        if casefold && !incompat.contains(Incompat::CASEFOLD) {
            return Err(corrupt("casefolded, but the file system is not"));
        }
        if inline && !incompat.contains(Incompat::INLINE_DATA) {
            return Err(corrupt("inline, but the inline_data feature is off"));
        }
        let block_size = look.volume().layout.block_size;
        let blocks = if inline { size.min(1) } else { size / u64::from(block_size) };
        let count = u32::try_from(blocks).map_err(|_| corrupt("impossible size"))?;
        let indexed = flags.contains(InodeFlags::INDEX);
        let mut context = DirContext::new(DirFormat::of(look.superblock())?, no, generation);
        context.casefold = casefold;
        context.encrypted = flags.contains(InodeFlags::ENCRYPTED);
        let blocks = InodeBlocks { txn, no, block_size, count, indexed, inline, context };
        Ok(Directory::new(blocks, context))
    }

    /// The block that shows the contents in the inode.
    fn shown(&self) -> Result<Vec<u8>> {
        let contents = self.txn.raw_inode(self.no)?.inline_contents(self.no)?;
        inline::to_block(&self.context, self.block_size as usize, &contents)
    }

    /// Where a block is, and how many of the next ones follow it there.
    fn place(&self, block: u32) -> Result<(u64, u32)> {
        match find_extent(&self.txn, self.no, block)? {
            Lookup::Mapped(e) if !e.unwritten => {
                let behind = e.end().min(self.count.into()) - u64::from(block);
                Ok((e.start + u64::from(block - e.logical), behind.saturating_sub(1) as u32))
            }
            _ => {
                let place = format!("directory inode {}, block {block}", self.no);
                Err(Ext4Error::corrupt("a hole in a directory", place))
            }
        }
    }
}

impl<'v, T: Deref<Target = Txn<'v>>> DirBlocks for InodeBlocks<T> {
    fn block_size(&self) -> usize {
        self.block_size as usize
    }

    fn block_count(&self) -> u32 {
        self.count
    }

    fn read(&self, block: u32, check: &dyn Fn(&[u8]) -> Result<()>) -> Result<Bytes> {
        if self.inline {
            return self.shown().map(Bytes::from);
        }
        let (place, behind) = self.place(block)?;
        self.txn.read_ahead(place, behind.min(READ_AHEAD), check)
    }

    fn is_indexed(&self) -> bool {
        self.indexed
    }

    fn is_hash_ordered(&self) -> bool {
        self.txn.names.is_hash_ordered(self.no)
    }

    fn set_hash_ordered(&self) {
        self.txn.names.set_hash_ordered(self.no);
    }
}

impl<'v, T: DerefMut<Target = Txn<'v>>> InodeBlocks<T> {
    /// Stores a block in the inode, in the bytes that the directory has there or else in all that
    /// there are; false if it does not fit.
    fn store_inline(&mut self, shown: &[u8]) -> Result<bool> {
        let raw = self.txn.raw_inode(self.no)?;
        // A new directory has none. The inode's size may be wrong, and is put right.
        let now = raw.inline_contents(self.no).map_or(INLINE_MIN, |contents| contents.len());
        let Some(room) = raw.inline_room() else { return Ok(false) };
        for len in [now, room] {
            if len > room {
                continue;
            }
            if let Some(contents) = inline::from_block(&self.context, shown, len)? {
                self.txn.modify_inode(self.no, |raw| {
                    raw.set_inline_contents(&contents);
                    raw.set_size(len as u64);
                })?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives the directory a block in place of the inode; the caller writes it.
    fn move_out(&mut self) -> Result<()> {
        let txn = &mut *self.txn;
        let extents = txn.volume().layout.features.incompat.contains(Incompat::EXTENT);
        txn.modify_inode(self.no, |raw| {
            raw.leave_inline(extents);
            raw.set_size(0);
        })?;
        self.inline = false;
        append_block(txn, self.no).map(drop)
    }
}

impl<'v, T: DerefMut<Target = Txn<'v>>> DirBlocksMut for InodeBlocks<T> {
    fn write(&mut self, block: u32, contents: Vec<u8>) -> Result<()> {
        if self.inline && self.store_inline(&contents)? {
            return Ok(());
        }
        if self.inline {
            self.move_out()?;
        }
        let (place, _) = self.place(block)?;
        self.txn.create(place, contents);
        Ok(())
    }

    fn own_way(&mut self) {
        self.txn.mark_ineligible();
    }

    fn append(&mut self) -> Result<u32> {
        if self.inline && self.count == 0 {
            self.count = 1;
            return Ok(0);
        }
        if self.inline {
            let mut first = self.shown()?;
            steadfast_ext4_format::dir::set_checksum(&self.context, &mut first);
            self.move_out()?;
            self.write(0, first)?;
        }
        let (block, place) = append_block(&mut self.txn, self.no)?;
        if self.count == 1 {
            self.txn.leave_out(place, Bug::IndexLeafNotLogged);
        }
        self.count = block + 1;
        Ok(block)
    }

    fn set_indexed(&mut self) -> Result<()> {
        self.indexed = true;
        self.txn.modify_inode(self.no, |raw| {
            raw.set_flags(raw.flags() | InodeFlags::INDEX);
        })
    }
}
