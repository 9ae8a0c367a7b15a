//! Finding a name.

use std::ops::RangeInclusive;

use super::block::{self, DOT, DOT_DOT, is_dot_name};
use super::casefold::{self, CaselessName};
use super::hash::{NameHash, hash_name};
use super::nokey::NokeyName;
use super::{DirBlocks, Directory, NameLocation};
use crate::error::Result;
use crate::ondisk::{DirentRef, HashVersion, file_type_from_code};

/// What is looked for.
pub(super) enum SearchKey<'n> {
    /// A name as it is on disk.
    Name(&'n [u8]),
    /// A name in a directory that ignores case.
    Caseless(&'n CaselessName<'n>),
    /// An encrypted name as it is shown.
    Shown(&'n NokeyName),
}

impl SearchKey<'_> {
    fn is(&self, on_disk: &[u8]) -> bool {
        match self {
            SearchKey::Name(name) => *name == on_disk,
            SearchKey::Caseless(name) => name.is(on_disk),
            SearchKey::Shown(name) => name.is(on_disk),
        }
    }
}

impl NameLocation {
    fn new(block: u32, entry: &DirentRef<'_>) -> Self {
        let kind = file_type_from_code(entry.type_code);
        NameLocation { ino: entry.inode, kind, block, offset: entry.at }
    }
}

impl<D: DirBlocks> Directory<D> {
    /// Finds "." or "..", which are the first two entries of the first block.
    pub(super) fn find_dot(&self, name: &[u8]) -> Result<NameLocation> {
        if self.indexed()? {
            let at = if name == b"." { DOT } else { DOT_DOT };
            return Ok(self.read_root()?.dot(at));
        }
        let contents = self.read_leaf(0)?;
        let dots: Vec<_> =
            block::entries(&self.context, 0, &contents).take(2).collect::<Result<_>>()?;
        let [dot, dot_dot] = dots[..] else {
            return Err(self.context.corrupt(0, "no \".\" and \"..\""));
        };
        let right = dot.name == b"."
            && dot.inode == self.context.ino
            && dot_dot.at == DOT_DOT
            && dot_dot.name == b".."
            && block::in_use(&dot_dot);
        if !right {
            return Err(self.context.corrupt(0, "wrong \".\" or \"..\""));
        }
        Ok(NameLocation::new(0, if name == b"." { &dot } else { &dot_dot }))
    }

    pub(super) fn find_linear(&self, wanted: &SearchKey<'_>) -> Result<Option<NameLocation>> {
        for number in 0..self.blocks.block_count() {
            if let Some(found) = self.find_in_leaf(number, wanted)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Finds a name where names of the hash by `hash` are.
    pub(super) fn find_indexed(
        &self,
        hash: &dyn Fn(HashVersion) -> u32,
        wanted: &SearchKey<'_>,
    ) -> Result<Option<NameLocation>> {
        let root = self.read_root()?;
        let hash = hash(root.function());
        let mut path = self.path_to(root, hash)?;
        loop {
            if let Some(found) = self.find_in_leaf(path.leaf(), wanted)? {
                return Ok(Some(found));
            }
            match self.next_leaf(&mut path)? {
                Some(lowest) if lowest == hash | 1 => {}
                _ => return Ok(None),
            }
        }
    }

    /// Finds a name by looking into every leaf of an indexed directory: one that an older kernel
    /// indexed by another hash ([`casefold::fold_as_6_12`]).
    pub(super) fn find_misfiled(&self, name: &CaselessName<'_>) -> Result<Option<NameLocation>> {
        let root = self.read_root()?;
        let function = root.function();
        let mut path = self.path_to(root, 0)?;
        let mut hash_ordered = true;
        // No more leaves than blocks, or the index leads to one twice.
        for _ in 0..self.blocks.block_count() {
            let (number, lowest) = (path.leaf(), path.lowest());
            let next = self.next_leaf(&mut path)?;
            let range = lowest..=next.map_or(u32::MAX, |next| next - 1);
            let contents = self.read_leaf(number)?;
            for entry in self.used_entries(number, &contents)? {
                if casefold::has_ignored(entry.name) {
                    if name.is(entry.name) {
                        return Ok(Some(NameLocation::new(number, &entry)));
                    }
                    hash_ordered &= range.contains(&self.hash(function, entry.name).major);
                }
            }
            if next.is_none() {
                if hash_ordered {
                    self.blocks.set_hash_ordered();
                }
                return Ok(None);
            }
        }
        Err(self.context.corrupt(0, "the index has more leaves than the directory has blocks"))
    }

    fn find_in_leaf(&self, number: u32, wanted: &SearchKey<'_>) -> Result<Option<NameLocation>> {
        let contents = self.read_leaf(number)?;
        if let SearchKey::Name(name) = wanted {
            let found = block::find(&self.context, number, &contents, name)?;
            return Ok(found.map(|entry| NameLocation::new(number, &entry)));
        }
        // One that makes no sense is not what is looked for.
        for entry in block::entries(&self.context, number, &contents).flatten() {
            if block::in_use(&entry) && !is_dot_name(entry.name) && wanted.is(entry.name) {
                return Ok(Some(NameLocation::new(number, &entry)));
            }
        }
        Ok(None)
    }

    pub(super) fn hash(&self, function: HashVersion, name: &[u8]) -> NameHash {
        let seed = &self.context.format.hash_seed;
        match self.context.casefold.then(|| casefold::fold(name)).flatten() {
            Some(folded) => hash_name(function, seed, &folded),
            None => hash_name(function, seed, name),
        }
    }

    /// The hash by which a name stands in a leaf with these hashes.
    pub(super) fn hash_in_leaf(
        &self,
        range: &RangeInclusive<u32>,
        function: HashVersion,
        name: &[u8],
    ) -> NameHash {
        let hash = self.hash(function, name);
        let may_differ = self.context.casefold && self.context.format.misfiled_names;
        if range.contains(&hash.major) || !may_differ || !casefold::has_ignored(name) {
            return hash;
        }
        let folded = casefold::fold_as_6_12(name);
        hash_name(function, &self.context.format.hash_seed, folded.as_deref().unwrap_or(name))
    }

    /// The entries of a block that are in use.
    pub(super) fn used_entries<'b>(
        &'b self,
        number: u32,
        contents: &'b [u8],
    ) -> Result<Vec<DirentRef<'b>>> {
        self.each_used_entry(number, contents).collect()
    }

    /// The entries of a block that are in use, one after the other; ends after the first error.
    pub(super) fn each_used_entry<'b>(
        &'b self,
        number: u32,
        contents: &'b [u8],
    ) -> impl Iterator<Item = Result<DirentRef<'b>>> {
        block::entries(&self.context, number, contents)
            .filter(|entry| entry.as_ref().map_or(true, block::in_use))
    }
}
