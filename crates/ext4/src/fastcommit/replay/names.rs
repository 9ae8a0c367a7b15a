//! Names that fast commits say have come and gone.

use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo, RawInode};
use steadfast_ext4_format::{Ext4Error, Result, unsupported};
use steadfast_vfs::FileType;

use super::Replay;
use crate::dir::InodeBlocks;
use crate::namespace::{add_subdirectory, remove_subdirectory};

impl Replay<'_> {
    /// The directory, if it is one that names can be added to.
    fn directory(&self, dir: InodeNo) -> Result<Option<RawInode>> {
        let raw = self.present(dir)?.filter(|raw| raw.file_type() == Some(FileType::Directory));
        if raw.as_ref().is_some_and(|raw| raw.flags().contains(InodeFlags::ENCRYPTED)) {
            return unsupported(format!(
                "fast commit of names in the encrypted directory inode {dir}"
            ));
        }
        // A directory that was removed has no blocks.
        Ok(raw.filter(|raw| raw.size() > 0))
    }

    pub(super) fn add_name(
        &mut self,
        dir: InodeNo,
        no: InodeNo,
        name: &[u8],
        first: bool,
    ) -> Result<()> {
        let inode = match self.present(no)? {
            Some(raw) if !first && raw.links() > 0 => Some(raw),
            _ => self.recorded(no)?,
        };
        let (Some(inode), Some(_)) = (inode, self.directory(dir)?) else { return Ok(()) };
        // OK to unwrap: an inode without a type is not loaded.
        let kind = inode.file_type().unwrap();
        let directory = kind == FileType::Directory;
        if directory && (!first || inode.size() > 0) {
            return Ok(());
        }
        let there = InodeBlocks::directory(&self.txn, dir)?.lookup(name)?;
        if let Some(there) = there {
            if there.ino == no {
                return Ok(());
            }
            self.remove_name(dir, there.ino, name)?;
        }
        self.touched.insert(no);
        let txn = &mut self.txn;
        if directory {
            InodeBlocks::directory(&mut *txn, no)?.init(dir)?;
            txn.modify_inode(no, |raw| raw.set_links(2))?;
            add_subdirectory(txn, dir)?;
        } else {
            let links = if first { 1 } else { inode.links().saturating_add(1) };
            if inode.links() == 0 {
                txn.orphans.remove(txn, no)?;
            }
            txn.modify_inode(no, |raw| raw.set_links(links))?;
        }
        InodeBlocks::directory(&mut *txn, dir)?.insert(name, no, kind)?;
        self.touch(dir, &inode)
    }

    pub(super) fn remove_name(&mut self, dir: InodeNo, no: InodeNo, name: &[u8]) -> Result<()> {
        let (Some(inode), Some(_)) = (self.present(no)?, self.directory(dir)?) else {
            return Ok(());
        };
        let found = InodeBlocks::directory(&self.txn, dir)?.lookup(name)?;
        let Some(found) = found.filter(|found| found.ino == no) else { return Ok(()) };
        self.touched.insert(no);
        let txn = &mut self.txn;
        if inode.file_type() == Some(FileType::Directory) {
            if !InodeBlocks::directory(&*txn, no)?.is_empty()? {
                let place = format!("fast commit, directory inode {no}");
                return Err(Ext4Error::corrupt("removed, but not empty", place));
            }
            txn.modify_inode(no, |raw| {
                raw.set_links(0);
                raw.set_size(0);
            })?;
            remove_subdirectory(txn, dir)?;
        } else {
            txn.modify_inode(no, |raw| raw.set_links(raw.links().saturating_sub(1)))?;
        }
        InodeBlocks::directory(&mut *txn, dir)?.remove(&found)?;
        self.touch(dir, &inode)
    }

    /// The directory has changed when the inode did.
    fn touch(&mut self, dir: InodeNo, inode: &RawInode) -> Result<()> {
        let at = inode.ctime();
        self.txn.modify_inode(dir, |raw| {
            if raw.ctime() < at {
                raw.set_ctime(at);
            }
            if raw.mtime() < at {
                raw.set_mtime(at);
            }
        })
    }
}
