//! Listing names in an order that stays put.
//!
//! A directory that is indexed, or will be when its first block is full, is read in the order of
//! hashes, because an insertion moves entries between blocks but never changes a hash: the
//! position is the hash, 31 bits of the major and 32 of the minor one, behind the two places of
//! "." and "..". A directory of several linear blocks never moves an entry: the position is the
//! byte offset.
//!
//! Names of equal hash have one position. They come in one answer and the position after them is
//! behind all, so that reading on never repeats one. The position after the last name of all is the
//! end, for ever: who has read to it is not shown what is added later (as in the kernel).

use std::ops::RangeInclusive;

use super::block::is_dot_name;
use super::hash::NameHash;
use super::index::Path;
use super::{DirBlocks, Directory, DirectoryName, Part, nokey};
use crate::error::Result;
use crate::ondisk::{DirentRef, HashVersion, file_type_from_code};

/// Where names are not hashed.
const NO_HASH: NameHash = NameHash { major: 0, minor: 0 };
/// Position of the first hash: "." and ".." stand at 0 and 1.
const FIRST_HASH: u64 = 2;
/// Position of the end, behind every hash (the kernel's EXT4_HTREE_EOF_64BIT).
const END: u64 = i64::MAX as u64;

impl<D: DirBlocks> Directory<D> {
    /// Names at or after the position `from` (0 = the start), "." and ".." too: a block's worth
    /// or more; empty at the end. Entries that make no sense are left out.
    pub fn read(&self, from: u64) -> Result<Part> {
        let mut part = Part::default();
        if self.blocks.block_count() == 0 {
            return Ok(part);
        }
        if self.indexed()? {
            self.read_indexed(&mut part, from)?;
        } else if self.blocks.block_count() == 1 && self.context.format.dir_index {
            self.read_dots(&mut part, from)?;
            let function = self.context.format.hash_version;
            self.read_leaves(&mut part, &[0], 0..=u32::MAX, function, from)?;
            end_behind(&mut part.names);
        } else {
            self.read_linear(&mut part, from)?;
        }
        Ok(part)
    }

    fn read_linear(&self, part: &mut Part, from: u64) -> Result<()> {
        let size = self.blocks.block_size() as u64;
        let first = u32::try_from(from / size).unwrap_or(u32::MAX);
        for number in first..self.blocks.block_count() {
            let contents = self.read_leaf(number)?;
            let start = u64::from(number) * size;
            for entry in self.each_used_entry(number, &contents) {
                let Some(entry) = part.sift(entry) else { continue };
                let position = start + entry.at as u64;
                if position >= from {
                    part.names.push(self.listed(&entry, NO_HASH, position + 1));
                }
            }
            if !part.names.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn read_indexed(&self, part: &mut Part, from: u64) -> Result<()> {
        self.read_dots(part, from)?;
        let root = self.read_root()?;
        let function = root.function();
        let mut path = self.path_to(root, major_at(from))?;
        loop {
            let lowest = path.lowest();
            let (leaves, next) = self.joined_leaves(&mut path)?;
            let range = lowest..=next.map_or(u32::MAX, |next| next - 1);
            self.read_leaves(part, &leaves, range, function, from)?;
            if next.is_none() {
                end_behind(&mut part.names);
            }
            if !part.names.is_empty() || next.is_none() {
                return Ok(());
            }
        }
    }

    /// The leaf at `path` and those that continue its last hash; moves on behind them and says
    /// where the hashes of the next one start.
    fn joined_leaves(&self, path: &mut Path) -> Result<(Vec<u32>, Option<u32>)> {
        let mut leaves = vec![path.leaf()];
        loop {
            match self.next_leaf(path)? {
                Some(lowest) if lowest & 1 != 0 => leaves.push(path.leaf()),
                next => return Ok((leaves, next)),
            }
        }
    }

    fn read_dots(&self, part: &mut Part, from: u64) -> Result<()> {
        for (position, name) in (0_u64..FIRST_HASH).zip([&b"."[..], b".."]) {
            if position >= from {
                let found = self.find_dot(name)?;
                let (ino, kind, name) = (found.ino, found.kind, name.to_vec());
                part.names.push(DirectoryName { ino, kind, name, next: position + 1 });
            }
        }
        Ok(())
    }

    /// Names of some leaves in the order of their hashes, without the dots. A hash out of `range`
    /// means that leaf and index do not belong together.
    fn read_leaves(
        &self,
        part: &mut Part,
        leaves: &[u32],
        range: RangeInclusive<u32>,
        function: HashVersion,
        from: u64,
    ) -> Result<()> {
        let first = part.names.len();
        for number in leaves {
            let contents = self.read_leaf(*number)?;
            for entry in self.each_used_entry(*number, &contents) {
                let Some(entry) = part.sift(entry).filter(|e| !is_dot_name(e.name)) else {
                    continue;
                };
                let hash = self.hash_in_leaf(&range, function, entry.name);
                if !range.contains(&hash.major) {
                    let what = format!("a name outside its leaf's hashes at byte {}", entry.at);
                    return Err(self.context.corrupt(*number, what));
                }
                let position = position(function, hash, entry.name);
                if position >= from {
                    part.names.push(self.listed(&entry, hash, position + 1));
                }
            }
        }
        part.names[first..].sort_unstable_by(|a, b| (a.next, &a.name).cmp(&(b.next, &b.name)));
        Ok(())
    }
}

impl<D: DirBlocks> Directory<D> {
    /// Without the `filetype` feature the type's byte is the name length's high one.
    pub(super) fn listed(&self, entry: &DirentRef<'_>, hash: NameHash, next: u64) -> DirectoryName {
        let typed = self.context.format.file_types;
        let kind = if typed { file_type_from_code(entry.type_code) } else { None };
        let name = if self.context.encrypted && !is_dot_name(entry.name) {
            nokey::show(hash.major, hash.minor, entry.name)
        } else {
            entry.name.to_vec()
        };
        DirectoryName { ino: entry.inode, kind, name, next }
    }
}

/// These are the last names: behind them is the end.
fn end_behind(names: &mut [DirectoryName]) {
    if let Some(last) = names.last_mut() {
        last.next = END;
    }
}

fn position(function: HashVersion, hash: NameHash, name: &[u8]) -> u64 {
    let minor = match function {
        // It has no minor hash, and 31 bits collide in any large directory.
        HashVersion::Legacy => crc32c::crc32c(name),
        HashVersion::HalfMd4 | HashVersion::Tea => hash.minor,
    };
    // At most 0x7fff_fffe in the upper half: no overflow, and nothing beyond i64.
    ((u64::from(hash.major >> 1) << 32) | u64::from(minor)) + FIRST_HASH
}

/// The major hash at a position.
fn major_at(position: u64) -> u32 {
    // Positions of other origin may be anything; beyond the last hash is the end.
    let upper = (position.saturating_sub(FIRST_HASH) >> 32).min(0x7fff_ffff);
    (upper as u32) << 1
}
