//! A directory in memory, for tests.

use std::cell::Cell;

use bytes::Bytes;
use steadfast_vfs::FsError;

use super::{DirBlocks, DirBlocksMut, DirContext, DirFormat, Directory};
use crate::error::Result;
use crate::ondisk::{Compat, Features, HashVersion, Incompat, InodeNo, RoCompat, Superblock};

/// Blocks in memory.
#[derive(Debug, Clone)]
pub(super) struct MemoryBlocks {
    pub size: usize,
    pub blocks: Vec<Bytes>,
    pub indexed: bool,
    /// Appending beyond is out of space.
    pub blocks_max: usize,
    pub hash_ordered: Cell<bool>,
}

impl DirBlocks for MemoryBlocks {
    fn block_size(&self) -> usize {
        self.size
    }

    fn block_count(&self) -> u32 {
        self.blocks.len() as u32
    }

    fn read(&self, block: u32, check: &dyn Fn(&[u8]) -> Result<()>) -> Result<Bytes> {
        let contents = self.blocks[block as usize].clone();
        check(&contents)?;
        Ok(contents)
    }

    fn is_indexed(&self) -> bool {
        self.indexed
    }

    fn is_hash_ordered(&self) -> bool {
        self.hash_ordered.get()
    }

    fn set_hash_ordered(&self) {
        self.hash_ordered.set(true);
    }
}

impl DirBlocksMut for MemoryBlocks {
    fn write(&mut self, block: u32, contents: Vec<u8>) -> Result<()> {
        assert_eq!(contents.len(), self.size);
        self.blocks[block as usize] = contents.into();
        Ok(())
    }

    fn append(&mut self) -> Result<u32> {
        if self.blocks.len() == self.blocks_max {
            return Err(FsError::NoSpace { what: "blocks" }.into());
        }
        self.blocks.push(vec![0xee; self.size].into());
        Ok(self.blocks.len() as u32 - 1)
    }

    fn set_indexed(&mut self) -> Result<()> {
        self.indexed = true;
        Ok(())
    }
}

/// The superblock of the usual file system: checksums, types, index, half MD4.
pub(super) fn superblock(checksums: bool) -> Superblock {
    let mut sb = Superblock::zeroed();
    sb.inodes_count.set(1_000_000);
    sb.default_hash_version = HashVersion::HalfMd4.code();
    sb.hash_seed = [1, 2, 3, 4].map(Into::into);
    sb.set_features(Features {
        compat: Compat::DIR_INDEX,
        incompat: Incompat::FILETYPE,
        ro_compat: if checksums { RoCompat::METADATA_CSUM } else { RoCompat::empty() },
    });
    sb
}

/// A directory of it: inode 12.
pub(super) fn context(checksums: bool) -> DirContext {
    DirContext::new(DirFormat::of(&superblock(checksums)).unwrap(), InodeNo(12), 99)
}

/// A new directory with "." and "..".
pub(super) fn directory(block_size: usize, context: DirContext) -> Directory<MemoryBlocks> {
    let blocks = MemoryBlocks {
        size: block_size,
        blocks: Vec::new(),
        indexed: false,
        blocks_max: 1 << 20,
        hash_ordered: Cell::default(),
    };
    let mut dir = Directory::new(blocks, context);
    dir.init(InodeNo(2)).unwrap();
    dir
}
