//! The block of extended attributes of an inode that goes away. Inodes with the same attributes
//! share one and count themselves in it.

use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Ext4Error, Result};
use crate::meta::Txn;
use crate::ondisk::csum::crc32c;
use crate::ondisk::{InodeNo, XATTR_MAGIC, XattrBlockHeader};

impl Txn<'_> {
    /// Counts the inode out of its block of attributes; frees it with the last one.
    pub(crate) fn release_xattr_block(&mut self, no: InodeNo) -> Result<()> {
        let block = self.raw_inode(no)?.file_acl();
        if block == 0 {
            return Ok(());
        }
        let corrupt = |what: &str| Ext4Error::corrupt(what, format!("attribute block {block}"));
        if !self.volume.valid_file_blocks(block, 1) {
            return Err(corrupt("it cannot be where it is said to be"));
        }
        let checksums = self.volume.layout.checksums;
        let contents = self.read_checked(block, &|bytes| {
            if checksums.verify_xattr_block(block, bytes) {
                return Ok(());
            }
            Err(corrupt("wrong checksum"))
        })?;
        let header = XattrBlockHeader::read_from_prefix(&contents);
        let Ok((mut header, rest)) = header else { return Err(corrupt("too short")) };
        if header.magic.get() != XATTR_MAGIC {
            return Err(corrupt("wrong magic number"));
        }
        let users = header.refcount.get();
        if users <= 1 {
            self.forget(block);
            self.free_blocks(block, 1)?;
        } else {
            header.refcount.set(users - 1);
            header.checksum.set(0);
            if let Some(seed) = checksums.seed() {
                let crc = crc32c(crc32c(seed, &block.to_le_bytes()), header.as_bytes());
                header.checksum.set(crc32c(crc, rest));
            }
            self.modify(block, |bytes| {
                bytes[..size_of::<XattrBlockHeader>()].copy_from_slice(header.as_bytes());
            })?;
        }
        self.modify_inode(no, |raw| raw.set_file_acl(0))
    }
}
