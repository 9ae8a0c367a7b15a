//! Directories: a map from names to inode numbers in the blocks of a file.
//!
//! [`Directory`] is the map. It works over [`DirBlocks`], the directory's blocks by their number
//! in the file, so that it knows nothing of extents, transactions or caches: over a transaction
//! it changes a file system, over plain memory it is tested.
//!
//! There are two forms. A *linear* directory is a row of blocks full of entries. An *indexed* one
//! (`dir_index`, "htree") has an index in front of the same kind of blocks, its leaves, that says
//! which range of name hashes is in which leaf. A directory starts linear with one block and
//! becomes indexed when that block is full; there is no way back.
//!
//! # Invariants
//!
//! * Every block is checked as a whole before a byte of it is believed, and its checksum is
//!   renewed whenever it is changed.
//! * An operation works out everything that can fail for lack of room inside an index before it
//!   writes; failures of the blocks below (no space) are undone by whoever owns them.
//! * A position handed out by [`Directory::read`] stays good however names come and go: names
//!   that are there all the time are listed exactly once.

mod block;
pub mod casefold;
mod format;
mod grow;
pub mod hash;
mod index;
pub mod inline;
mod list;
#[cfg(test)]
mod memory;
pub mod nokey;
mod salvage;
mod search;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use steadfast_vfs::{FileType, FsError};

pub use block::{is_dot_name, set_checksum};
pub use format::{DirContext, DirFormat, STRICT_NAMES};
pub use hash::HashSeed;

use crate::error::{Ext4Error, Result};
use crate::ondisk::{DirentRef, InodeNo, NAME_MAX, file_type_code};
use casefold::CaselessName;
use nokey::NokeyName;
use search::SearchKey;

const NO_TEXT: &str = "a name that is no UTF-8 text";

/// The blocks of one directory, numbered from 0 as in the file.
pub trait DirBlocks {
    /// Bytes a block.
    fn block_size(&self) -> usize;

    /// Blocks in the directory: its size over the block size.
    fn block_count(&self) -> u32;

    /// A block's contents, `block_size` bytes; a hole is an error, directories have none. `check`
    /// is asked unless the contents are known to have passed it.
    fn read(&self, block: u32, check: &dyn Fn(&[u8]) -> Result<()>) -> Result<Bytes>;

    /// Whether the directory is indexed: its inode's INDEX flag.
    fn is_indexed(&self) -> bool;

    /// Whether [`set_hash_ordered`](Self::set_hash_ordered) was called since the directory was read
    /// for the first time.
    fn is_hash_ordered(&self) -> bool {
        false
    }

    /// Remembers that every name stands where its hash leads. It stays so: names that are added
    /// here do.
    fn set_hash_ordered(&self) {}
}

/// Blocks that can be changed.
pub trait DirBlocksMut: DirBlocks {
    /// Replaces a block's contents.
    fn write(&mut self, block: u32, contents: Vec<u8>) -> Result<()>;

    /// Adds a block at the end and returns its number. The caller writes it before it reads it.
    fn append(&mut self) -> Result<u32>;

    /// Room for a name was made otherwise than the kernel makes it.
    fn own_way(&mut self) {}

    /// Sets the inode's INDEX flag.
    fn set_indexed(&mut self) -> Result<()>;
}

/// A name's inode, and where the name stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameLocation {
    /// Inode number: within the file system, not yet known to be in use.
    pub ino: InodeNo,
    /// Type, as far as the entry says.
    pub kind: Option<FileType>,
    /// Block in the directory.
    block: u32,
    /// Byte offset of the entry in the block.
    offset: usize,
}

/// A name as [`Directory::read`] lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryName {
    /// Inode number.
    pub ino: InodeNo,
    /// Type, as far as the entry says.
    pub kind: Option<FileType>,
    /// The name; never empty, without '/' and NUL.
    pub name: Vec<u8>,
    /// The position after this entry.
    pub next: u64,
}

/// What [`Directory::read`] finds.
#[derive(Debug, Default)]
pub struct Part {
    /// Names; none at the end.
    pub names: Vec<DirectoryName>,
    /// What is wrong with the first entry that is left out, because it makes no sense.
    pub damage: Option<Ext4Error>,
}

impl Part {
    /// The entry, unless it makes no sense: it is left out then.
    fn sift<'b>(&mut self, entry: Result<DirentRef<'b>>) -> Option<DirentRef<'b>> {
        match entry {
            Ok(entry) => return Some(entry),
            Err(e) => self.damage = self.damage.take().or(Some(e)),
        }
        None
    }
}

/// A directory over its blocks.
#[derive(Debug)]
pub struct Directory<D> {
    blocks: D,
    context: DirContext,
}

impl<D: DirBlocks> Directory<D> {
    /// The directory in `blocks`.
    pub fn new(blocks: D, context: DirContext) -> Self {
        Directory { blocks, context }
    }

    /// Finds a name; "." and ".." too. `None` if it is not there.
    ///
    /// Errors: EINVAL for what is no text, where the directory ignores case and the file system
    /// is strict.
    pub fn lookup(&self, name: &[u8]) -> Result<Option<NameLocation>> {
        if self.blocks.block_count() == 0 {
            return Ok(None);
        }
        if is_dot_name(name) {
            return self.find_dot(name).map(Some);
        }
        if self.context.encrypted {
            // Without the key, names are known by what they are shown as.
            let Some(shown) = NokeyName::parse(name) else { return Ok(None) };
            let is = SearchKey::Shown(&shown);
            return match (self.indexed()?, shown.whole()) {
                (false, _) => self.find_linear(&is),
                (true, Some(name)) => self.find_indexed(&|f| self.hash(f, name).major, &is),
                (true, None) => self.find_indexed(&|_| shown.hash, &is),
            };
        }
        if self.context.casefold {
            return self.find_caseless(&CaselessName::new(name));
        }
        let is = SearchKey::Name(name);
        if self.indexed()? {
            self.find_indexed(&|function| self.hash(function, name).major, &is)
        } else {
            self.find_linear(&is)
        }
    }

    fn find_caseless(&self, name: &CaselessName<'_>) -> Result<Option<NameLocation>> {
        if self.context.format.strict_names && !name.is_folded() {
            return Err(FsError::Invalid { what: NO_TEXT }.into());
        }
        let is = SearchKey::Caseless(name);
        if !self.indexed()? {
            return self.find_linear(&is);
        }
        let found = self.find_indexed(&|function| self.hash(function, name.name()).major, &is)?;
        let others = self.context.format.misfiled_names && !self.blocks.is_hash_ordered();
        if found.is_none() && others {
            return self.find_misfiled(name);
        }
        Ok(found)
    }

    /// Whether there is nothing but "." and "..".
    pub fn is_empty(&self) -> Result<bool> {
        let mut at = 0;
        loop {
            let Part { names, damage } = self.read(at)?;
            if names.iter().any(|e| !is_dot_name(&e.name)) {
                return Ok(false);
            }
            // Whoever removes the directory would remove that, too.
            if let Some(damage) = damage {
                return Err(damage);
            }
            let Some(last) = names.last() else { return Ok(true) };
            at = last.next;
        }
    }

    /// Whether the directory is indexed.
    fn indexed(&self) -> Result<bool> {
        if self.blocks.is_indexed() && !self.context.format.dir_index {
            // Treating it as linear would work for reading and destroy the index when writing.
            return Err(self.context.corrupt(0, "indexed, but the file system lacks dir_index"));
        }
        Ok(self.blocks.is_indexed())
    }

    /// Reads a block of entries and checks its checksum.
    fn read_leaf(&self, number: u32) -> Result<Bytes> {
        self.blocks.read(number, &|contents| {
            block::verify(&self.context, number, contents)?;
            block::check_places(&self.context, number, contents)
        })
    }
}

impl<D: DirBlocksMut> Directory<D> {
    /// Writes the first block of a new directory, which must have none: "." and "..".
    pub fn init(&mut self, parent: InodeNo) -> Result<()> {
        let block = self.blocks.append()?;
        debug_assert_eq!(block, 0, "a new directory has no blocks");
        let contents = block::first_block(&self.context, self.blocks.block_size(), parent);
        self.write_leaf(block, contents)
    }

    /// Adds a name that is not there, neither "." nor "..".
    ///
    /// Errors: EEXIST if it is met on the way (a full check is [`lookup`](Self::lookup)'s);
    /// ENOENT in a removed directory; ENOSPC when the index is full or no block is to be had;
    /// EINVAL for what is no text, where the directory ignores case and the file system is strict.
    pub fn insert(&mut self, name: &[u8], ino: InodeNo, kind: FileType) -> Result<()> {
        debug_assert!(!name.is_empty() && name.len() <= NAME_MAX && !is_dot_name(name));
        if self.blocks.block_count() == 0 {
            return Err(FsError::NotFound.into());
        }
        let strict = self.context.casefold && self.context.format.strict_names;
        if strict && std::str::from_utf8(name).is_err() {
            return Err(FsError::Invalid { what: NO_TEXT }.into());
        }
        let entry = block::NewEntry { name, ino, kind: self.kind_on_disk(kind) };
        if self.indexed()? { self.insert_indexed(&entry) } else { self.insert_linear(&entry) }
    }

    /// Removes a name that [`lookup`](Self::lookup) has just found, neither "." nor "..".
    pub fn remove(&mut self, found: &NameLocation) -> Result<()> {
        let mut contents = self.read_leaf(found.block)?.to_vec();
        block::remove(&self.context, found.block, &mut contents, found.offset)?;
        self.write_leaf(found.block, contents)
    }

    /// Lets a name that [`lookup`](Self::lookup) has just found, ".." too, point to another inode.
    pub fn repoint(&mut self, found: &NameLocation, ino: InodeNo, kind: FileType) -> Result<()> {
        let kind = self.kind_on_disk(kind);
        if found.block == 0 && self.indexed()? {
            // The first block of an indexed directory is its index: only the dots stand in it.
            let mut root = self.read_root()?;
            root.repoint(found.offset, ino, kind);
            return self.write_node(&mut root);
        }
        let mut contents = self.read_leaf(found.block)?.to_vec();
        block::repoint(&mut contents, found.offset, ino, kind);
        self.write_leaf(found.block, contents)
    }

    fn kind_on_disk(&self, kind: FileType) -> u8 {
        if self.context.format.file_types { file_type_code(kind) } else { 0 }
    }

    /// Writes a block of entries with a fresh checksum.
    fn write_leaf(&mut self, number: u32, mut contents: Vec<u8>) -> Result<()> {
        block::set_checksum(&self.context, &mut contents);
        self.blocks.write(number, contents)
    }
}
