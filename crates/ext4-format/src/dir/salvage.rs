//! What can still be read of a damaged directory: block by block, without its index.

use std::cell::RefCell;

use super::block::{self, entries, in_use};
use super::hash::NameHash;
use super::{DirBlocks, Directory, DirectoryName, Part};
use crate::error::{Ext4Error, Result};

impl<D: DirBlocks> Directory<D> {
    /// Blocks that the directory's size says it has.
    pub fn block_count(&self) -> u32 {
        self.blocks.block_count()
    }

    /// The names in one block that make sense, up to where nobody knows where the next entry
    /// begins, and what is wrong with the first that does not. A block whose checksum is wrong has
    /// none; a block of the index has none either, and that is no damage.
    ///
    /// # Errors
    /// The block must be read first, which is the caller's to do.
    pub fn read_block(&self, number: u32) -> Result<(Vec<DirectoryName>, Option<Ext4Error>)> {
        // The root of the index has no names but the dots, and a checksum of its own kind.
        let indexed = self.blocks.is_indexed();
        let is_index = |contents: &[u8]| indexed && (number == 0 || is_index(contents));
        // The check sees what comes from the device, also if it fails.
        let seen = RefCell::new((Part::default(), false));
        let read = self.blocks.read(number, &|contents| {
            let index = is_index(contents);
            *seen.borrow_mut() = (Part::default(), index);
            if !index {
                block::verify(&self.context, number, contents)?;
            }
            seen.borrow_mut().0 = self.part_of(number, contents);
            block::check_places(&self.context, number, contents)
        });
        let (mut part, index) = seen.into_inner();
        match read {
            Err(e @ Ext4Error::NotCached { .. }) => return Err(e),
            // It had been checked before.
            Ok(contents) if part.names.is_empty() && !is_index(&contents) => {
                part = self.part_of(number, &contents);
            }
            Err(e) if !index => part.damage = part.damage.or(Some(e)),
            _ => {}
        }
        Ok((part.names, part.damage))
    }

    fn part_of(&self, number: u32, contents: &[u8]) -> Part {
        let mut part = Part::default();
        let none = NameHash { major: 0, minor: 0 };
        for entry in entries(&self.context, number, contents) {
            if let Some(entry) = part.sift(entry).filter(in_use) {
                part.names.push(self.listed(&entry, none, 0));
            }
        }
        part
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
