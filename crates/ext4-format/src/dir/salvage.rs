//! What can still be read of a damaged directory: block by block, without its index.

use std::cell::RefCell;

use super::block::{self, entries, in_use};
use super::hash::NameHash;
use super::{DirBlocks, Directory, Listed};
use crate::error::{Ext4Error, Result};

impl<D: DirBlocks> Directory<D> {
    /// Blocks that the directory's size says it has.
    pub fn block_count(&self) -> u32 {
        self.blocks.block_count()
    }

    /// The names in one block up to the first that makes no sense, and what is wrong. A block
    /// whose checksum is wrong has none; a block of the index has none either, and that is no
    /// damage.
    ///
    /// # Errors
    /// The block must be read first, which is the caller's to do.
    pub fn read_block(&self, number: u32) -> Result<(Vec<Listed>, Option<Ext4Error>)> {
        // The check sees what comes from the device, also if it fails.
        let seen = RefCell::new((Vec::new(), false));
        let read = self.blocks.read(number, &|contents| {
            // The root of the index has no names but the dots, and a checksum of its own kind.
            let root = self.blocks.is_indexed() && number == 0;
            let index = root || (self.blocks.is_indexed() && is_index(contents));
            *seen.borrow_mut() = (Vec::new(), index);
            if !index {
                block::verify(&self.context, number, contents)?;
            }
            seen.borrow_mut().0 = self.names_of(number, contents);
            block::check_all(&self.context, number, contents)
        });
        let (names, index) = seen.into_inner();
        Ok(match read {
            Err(e @ Ext4Error::NotCached { .. }) => return Err(e),
            // It had been checked before.
            Ok(contents) if names.is_empty() && !index => (self.names_of(number, &contents), None),
            Ok(_) => (names, None),
            Err(_) if index => (names, None),
            Err(e) => (names, Some(e)),
        })
    }

    fn names_of(&self, number: u32, contents: &[u8]) -> Vec<Listed> {
        let good = entries(&self.context, number, contents).map_while(Result::ok);
        let none = NameHash { major: 0, minor: 0 };
        good.filter(in_use).map(|e| self.listed(&e, none, 0)).collect()
    }
}

/// Whether a block of an indexed directory is a node of the index: to who does not know of
/// indexes it is one free entry.
fn is_index(contents: &[u8]) -> bool {
    contents.len() > 8
        && contents[..4] == [0; 4]
        && crate::ondisk::rec_len_from_disk(
            u16::from_le_bytes([contents[4], contents[5]]),
            contents.len(),
        ) == contents.len()
}
