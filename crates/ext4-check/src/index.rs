//! The index of a hashed directory: which range of hashes is in which leaf.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_ext4_format::Result;
use steadfast_ext4_format::dir::{DirFormat, HashSeed};
use steadfast_ext4_format::ondisk::csum::InodeSeed;
use steadfast_ext4_format::ondisk::{
    DxCountLimit, DxEntry, DxRootInfo, HashVersion, InodeNo, dx_entries_offset,
};
use zerocopy::FromBytes;

use crate::FindingKind;
use crate::directory::DirectoryCheck;
use crate::found::ScannedDirectory;

/// Bits of an index entry that hold the block.
const BLOCK_MASK: u32 = 0x0fff_ffff;

/// Hashes of the names in a leaf: from `low`, up to `high`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    low: u32,
    high: u32,
    /// Names of hash `high` may be here too: they go on in the next leaf.
    with_high: bool,
}

impl Range {
    /// Whether a name of this hash may be here.
    pub(super) fn holds(&self, hash: u32) -> bool {
        hash >= self.low && (hash < self.high || (self.with_high && hash == self.high))
    }
}

/// An index that makes sense.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) version: HashVersion,
    pub(super) seed: HashSeed,
    pub(super) leaves: BTreeMap<u32, Range>,
    /// Inner nodes, without the root.
    pub(super) nodes: BTreeSet<u32>,
}

impl DirectoryCheck<'_, '_> {
    fn bad_index(&mut self, ino: InodeNo, kind: FindingKind, block: u32, text: &str) {
        let place = format_args!("directory inode {ino}, index block {block}");
        self.findings.add(kind, place, text);
    }

    /// Walks through the index of a directory. `None` if it makes no sense, which is among the
    /// findings then.
    pub(super) fn load_index(
        &mut self,
        directory: &ScannedDirectory,
        seed: InodeSeed,
    ) -> Result<Option<Index>> {
        let ino = directory.ino;
        let Some(place) = directory.place(0) else { return Ok(None) };
        let root = self.image.source.block(place)?;
        let Some(info) = DxRootInfo::of_root(&root) else { return Ok(None) };
        let Some(version) = HashVersion::from_code(info.hash_version)
            .filter(|_| info.hash_version <= HashVersion::Tea.code())
        else {
            self.bad_index(ino, FindingKind::IndexRoot, 0, "its hash is not known");
            return Ok(None);
        };
        let Ok(format) = DirFormat::of(&self.image.sb) else { return Ok(None) };
        if info.reserved.get() != 0
            || info.info_length != 8
            || info.flags & 1 != 0
            || info.indirect_levels > format.index_levels_max
            || dx_entries_offset(&root)
                != Some(steadfast_ext4_format::ondisk::DX_ROOT_ENTRIES_OFFSET)
        {
            self.bad_index(ino, FindingKind::IndexRoot, 0, "the root of the index makes no sense");
            return Ok(None);
        }
        let mut index = Index {
            version,
            seed: format.hash_seed,
            leaves: BTreeMap::new(),
            nodes: BTreeSet::new(),
        };
        let all = Range { low: 0, high: u32::MAX, with_high: true };
        self.walk_index(directory, seed, &mut index, 0, info.indirect_levels, all)?;
        Ok(Some(index))
    }

    fn walk_index(
        &mut self,
        directory: &ScannedDirectory,
        seed: InodeSeed,
        index: &mut Index,
        number: u32,
        levels: u8,
        range: Range,
    ) -> Result<()> {
        let ino = directory.ino;
        let Some(place) = directory.place(number) else {
            self.bad_index(ino, FindingKind::IndexNode, number, "there is no such block");
            return Ok(());
        };
        let block = self.image.source.block(place)?;
        if !self.image.layout.checksums.verify_dx_block(seed, &block) {
            self.bad_index(ino, FindingKind::IndexChecksum, number, "wrong checksum");
        }
        let Some(entries) = self.index_entries(&block, number) else {
            self.bad_index(ino, FindingKind::IndexNode, number, "it makes no sense");
            return Ok(());
        };
        let mut low = range.low;
        for (i, entry) in entries.iter().enumerate() {
            let hash = if i == 0 { range.low } else { entry.hash.get() & !1 };
            let next = entries.get(i + 1).map(|e| e.hash.get());
            let (high, with_high) = match next {
                Some(next) => (next & !1, next & 1 != 0),
                None => (range.high, range.with_high),
            };
            if hash < low || hash > high || high > range.high {
                self.bad_index(ino, FindingKind::IndexOrder, number, "hashes out of order");
            }
            low = hash;
            let child = entry.block.get() & BLOCK_MASK;
            let known = index.leaves.contains_key(&child) || index.nodes.contains(&child);
            if child == 0 || child >= directory.blocks || known {
                let text = "it leads to a block that is not there or has been led to before";
                self.bad_index(ino, FindingKind::IndexNode, number, text);
                continue;
            }
            let range = Range { low: hash, high, with_high };
            if levels == 0 {
                index.leaves.insert(child, range);
            } else {
                index.nodes.insert(child);
                self.walk_index(directory, seed, index, child, levels - 1, range)?;
            }
        }
        Ok(())
    }

    /// The pairs of hash and block of an index block, if count and limit make sense.
    fn index_entries(&self, block: &[u8], number: u32) -> Option<Vec<DxEntry>> {
        let offset = dx_entries_offset(block)?;
        let expected = if number == 0 {
            steadfast_ext4_format::ondisk::DX_ROOT_ENTRIES_OFFSET
        } else {
            steadfast_ext4_format::ondisk::DX_NODE_ENTRIES_OFFSET
        };
        let pairs = DxCountLimit::read(block, offset)?;
        let (count, limit) = (pairs.count.get(), pairs.limit.get());
        let room =
            DxCountLimit::capacity(block.len(), offset, self.image.layout.checksums.metadata());
        if offset != expected || limit != room || count == 0 || count > limit {
            return None;
        }
        let bytes = block.get(offset..offset + usize::from(count) * 8)?;
        Some(bytes.chunks_exact(8).flat_map(DxEntry::read_from_bytes).collect())
    }
}
