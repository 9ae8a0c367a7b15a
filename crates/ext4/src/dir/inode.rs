//! The blocks of a directory's inode, in a transaction.

use std::borrow::{Borrow, BorrowMut};
use std::marker::PhantomData;

use bytes::Bytes;
use steadfast_vfs::{FileType, FsError};

use super::{DirBlocks, DirBlocksMut, DirContext, DirFormat, Directory};
use crate::error::{Ext4Error, Result};
use crate::extents::Lookup;
use crate::meta::Txn;
use crate::ondisk::{InodeFlags, InodeNo};

/// Forms of a directory that belong to features which are refused at mount.
const STRANGE_FORMS: InodeFlags =
    InodeFlags::INLINE_DATA.union(InodeFlags::ENCRYPTED).union(InodeFlags::CASEFOLD);

/// Blocks of a directory as a transaction `T` (`&Txn` to look, `&mut Txn` to change) sees them.
pub(crate) struct InodeBlocks<'v, T> {
    txn: T,
    no: InodeNo,
    block_size: u32,
    count: u32,
    indexed: bool,
    volume: PhantomData<&'v ()>,
}

impl<'v, T: Borrow<Txn<'v>>> InodeBlocks<'v, T> {
    /// The directory with inode `no`.
    ///
    /// # Errors
    /// ENOTDIR if it is something else.
    pub fn directory(txn: T, no: InodeNo) -> Result<Directory<Self>> {
        let look = txn.borrow();
        let raw = look.raw_inode(no)?;
        if raw.file_type() != Some(FileType::Directory) {
            return Err(FsError::NotDirectory.into());
        }
        let corrupt = |what: &str| Ext4Error::corrupt(what, format!("directory inode {no}"));
        if raw.flags().intersects(STRANGE_FORMS) {
            return Err(corrupt("inline, encrypted or casefolded, but the file system is not"));
        }
        let block_size = look.volume().layout.block_size;
        let count = u32::try_from(raw.size() / u64::from(block_size))
            .map_err(|_| corrupt("impossible size"))?;
        let indexed = raw.flags().contains(InodeFlags::INDEX);
        let context = DirContext::new(DirFormat::of(look.superblock())?, no, raw.generation());
        let blocks = InodeBlocks { txn, no, block_size, count, indexed, volume: PhantomData };
        Ok(Directory::new(blocks, context))
    }

    fn place(&self, block: u32) -> Result<u64> {
        match self.txn.borrow().find(self.no, block)? {
            Lookup::Mapped(e) if !e.unwritten => Ok(e.start + u64::from(block - e.logical)),
            _ => {
                let place = format!("directory inode {}, block {block}", self.no);
                Err(Ext4Error::corrupt("a hole in a directory", place))
            }
        }
    }
}

impl<'v, T: Borrow<Txn<'v>>> DirBlocks for InodeBlocks<'v, T> {
    fn block_size(&self) -> usize {
        self.block_size as usize
    }

    fn block_count(&self) -> u32 {
        self.count
    }

    fn read(&self, block: u32, check: &dyn Fn(&[u8]) -> Result<()>) -> Result<Bytes> {
        self.txn.borrow().read_checked(self.place(block)?, check)
    }

    fn is_indexed(&self) -> bool {
        self.indexed
    }
}

impl<'v, T: BorrowMut<Txn<'v>>> DirBlocksMut for InodeBlocks<'v, T> {
    fn write(&mut self, block: u32, contents: Vec<u8>) -> Result<()> {
        let place = self.place(block)?;
        self.txn.borrow_mut().create(place, contents);
        Ok(())
    }

    fn append(&mut self) -> Result<u32> {
        let (block, _) = self.txn.borrow_mut().append_block(self.no)?;
        self.count = block + 1;
        Ok(block)
    }

    fn set_indexed(&mut self) -> Result<()> {
        self.indexed = true;
        self.txn.borrow_mut().modify_inode(self.no, |raw| {
            raw.set_flags(raw.flags() | InodeFlags::INDEX);
        })
    }
}
