//! Quota files against what inodes use.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{
    InodeNo, QUOTA_BLOCK, QUOTA_DEPTH, QUOTA_ENTRIES, QUOTA_MAGIC, QUOTA_ROOT, QUOTA_VERSION,
    QuotaBlockHeader, QuotaEntry, QuotaInfo, RawInode,
};
use steadfast_ext4_format::quota::{KINDS, QuotaKind, counts, file_of, owner};
use zerocopy::FromBytes;

use crate::FindingKind;
use crate::finding::Findings;
use crate::image::Image;

/// Runs of a file: file block, first block, length.
type FileExtents = Vec<(u32, u64, u32)>;

/// What was counted, and where the files are.
#[derive(Default)]
pub(super) struct QuotaCheck {
    /// Bytes and inodes.
    used: BTreeMap<(QuotaKind, u32), (u64, u64)>,
    runs: BTreeMap<InodeNo, FileExtents>,
}

impl QuotaCheck {
    /// Keeps where a quota file is.
    pub(super) fn keep_runs(&mut self, ino: InodeNo, runs: FileExtents) {
        self.runs.insert(ino, runs);
    }

    /// Counts an inode in use.
    pub(super) fn count(&mut self, image: &Image, ino: InodeNo, inode: &RawInode) {
        if !image.has_quota() || !counts(&image.sb, ino, inode) {
            return;
        }
        let bytes = inode.sectors(image.layout.block_size).saturating_mul(512);
        for kind in KINDS {
            let used = self.used.entry((kind, owner(inode, kind))).or_default();
            *used = (used.0.saturating_add(bytes), used.1 + 1);
        }
    }

    /// Compares the files with what was counted.
    pub(super) fn check(&self, image: &Image, findings: &mut Findings) -> Result<()> {
        if !image.has_quota() {
            return Ok(());
        }
        for kind in KINDS {
            let no = file_of(&image.sb, kind);
            if no == InodeNo::NONE {
                continue;
            }
            let place = format!("{kind:?} quota, inode {no}");
            let Some(said) = self.read_file(image, kind, no)? else {
                let text = "it is damaged";
                findings.add(FindingKind::Quota, format_args!("{place}"), text);
                continue;
            };
            let counted = self.used.iter().filter(|((k, _), _)| *k == kind);
            let counted: BTreeMap<u32, (u64, u64)> = counted.map(|((_, i), u)| (*i, *u)).collect();
            let ids: BTreeSet<u32> = said.keys().chain(counted.keys()).copied().collect();
            for id in ids {
                let (says, uses) = (
                    said.get(&id).copied().unwrap_or_default(),
                    counted.get(&id).copied().unwrap_or_default(),
                );
                if says != uses {
                    let text = format_args!(
                        "id {id}: {} bytes and {} inodes, counted {} and {}",
                        says.0, says.1, uses.0, uses.1
                    );
                    findings.add(FindingKind::Quota, format_args!("{place}"), text);
                }
            }
        }
        Ok(())
    }

    fn block(&self, image: &Image, no: InodeNo, block: u32) -> Result<Option<Vec<u8>>> {
        let size = u64::from(image.layout.block_size);
        let byte = u64::from(block) * QUOTA_BLOCK as u64;
        // OK to cast: 2^32 blocks of 1 KiB are no more blocks of the file system.
        let (logical, offset) = ((byte / size) as u32, (byte % size) as usize);
        let runs = self.runs.get(&no).map_or(&[][..], |runs| runs);
        let run = runs.iter().find(|(at, _, len)| *at <= logical && logical - at < *len);
        let Some((at, start, _)) = run else { return Ok(None) };
        let whole = image.source.block(start + u64::from(logical - at))?;
        Ok(Some(whole[offset..offset + QUOTA_BLOCK].to_vec()))
    }

    /// What a quota file says each id uses; `None` if it makes no sense.
    fn read_file(
        &self,
        image: &Image,
        kind: QuotaKind,
        no: InodeNo,
    ) -> Result<Option<BTreeMap<u32, (u64, u64)>>> {
        let Some(first) = self.block(image, no, 0)? else { return Ok(None) };
        let Ok((info, _)) = QuotaInfo::read_from_prefix(&first[..]) else { return Ok(None) };
        if info.magic.get() != QUOTA_MAGIC[kind as usize] || info.version.get() != QUOTA_VERSION {
            return Ok(None);
        }
        // The blocks of a level of the tree, and the first digits of the ids that they lead to.
        let mut level = BTreeMap::from([(QUOTA_ROOT, 0)]);
        let mut above = BTreeSet::from([QUOTA_ROOT]);
        // Where each id's entry is. Many ids share a block.
        let mut entries_of: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for depth in 1..=QUOTA_DEPTH {
            let mut below = BTreeMap::new();
            for (block, digits) in level {
                let Some(links) = self.block(image, no, block)? else { return Ok(None) };
                for (digit, link) in (0..).zip(links.as_chunks::<4>().0) {
                    let to = u32::from_le_bytes(*link);
                    if to >= info.blocks.get() || above.contains(&to) {
                        return Ok(None);
                    }
                    let id: u32 = (digits << 8) | digit;
                    if to == 0 {
                        continue;
                    } else if depth == QUOTA_DEPTH {
                        entries_of.entry(to).or_default().insert(id);
                    } else if below.insert(to, id).is_some() {
                        return Ok(None);
                    }
                }
            }
            above.extend(below.keys());
            level = below;
        }
        if !self.lists_are_right(image, no, &info, &above, &entries_of)? {
            return Ok(None);
        }
        let mut said = BTreeMap::new();
        for (block, ids) in entries_of {
            let Some(entries) = self.block(image, no, block)? else { return Ok(None) };
            for entry in (0..QUOTA_ENTRIES).filter_map(|i| QuotaEntry::of_block(&entries, i)) {
                // Without a way to it, nobody finds it.
                if ids.contains(&entry.id.get()) {
                    said.insert(entry.id.get(), (entry.space.get(), entry.inodes.get()));
                }
            }
        }
        Ok(Some(said))
    }

    /// Whether the lists of blocks with room and of free ones lead to such blocks only, and back.
    /// Who adds an owner follows them, and would write into a block of the tree otherwise.
    fn lists_are_right(
        &self,
        image: &Image,
        no: InodeNo,
        info: &QuotaInfo,
        tree: &BTreeSet<u32>,
        entries_of: &BTreeMap<u32, BTreeSet<u32>>,
    ) -> Result<bool> {
        let mut seen = BTreeSet::new();
        let (mut before, mut at) = (0, info.free_entry.get());
        while at != 0 {
            if !entries_of.contains_key(&at) || !seen.insert(at) {
                return Ok(false);
            }
            let Some(block) = self.block(image, no, at)? else { return Ok(false) };
            // OK to unwrap: it is shorter than a block.
            let header = QuotaBlockHeader::read_from_prefix(&block[..]).unwrap().0;
            let used = (0..QUOTA_ENTRIES).filter_map(|i| QuotaEntry::of_block(&block, i)).count();
            if header.previous.get() != before
                || usize::from(header.entries.get()) != used
                || used == QUOTA_ENTRIES
            {
                return Ok(false);
            }
            (before, at) = (at, header.next.get());
        }
        at = info.free_block.get();
        while at != 0 {
            if at >= info.blocks.get()
                || tree.contains(&at)
                || entries_of.contains_key(&at)
                || !seen.insert(at)
            {
                return Ok(false);
            }
            let Some(block) = self.block(image, no, at)? else { return Ok(false) };
            // OK to unwrap: as above.
            at = QuotaBlockHeader::read_from_prefix(&block[..]).unwrap().0.next.get();
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use steadfast_block::BlockDevice;
    use steadfast_devices::source::Ram;
    use steadfast_ext4_format::ondisk::RoCompat;
    use steadfast_ext4_mkfs::{JournalChoice, Options, make};

    use super::*;
    use crate::check;

    fn disk() -> Arc<dyn BlockDevice> {
        let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 4 << 20));
        let mut options = Options::random(1_700_000_000);
        options.features.ro_compat |= RoCompat::QUOTA;
        options.features.ro_compat.remove(RoCompat::METADATA_CSUM);
        options.block_size = Some(1024);
        options.journal = JournalChoice::None;
        make(&disk, &options).unwrap();
        assert!(check(&disk, None).unwrap().is_clean());
        disk
    }

    /// Where the file of users' quotas begins. Its blocks lie in a row.
    fn file_of_users(disk: &Arc<dyn BlockDevice>) -> u64 {
        let begins =
            |byte: &u64| disk.read(*byte, 1024).unwrap()[..4] == QUOTA_MAGIC[0].to_le_bytes();
        (0..4 << 20).step_by(1024).find(begins).unwrap()
    }

    fn kinds(disk: &Arc<dyn BlockDevice>) -> Vec<FindingKind> {
        check(disk, None).unwrap().findings.iter().map(|f| f.kind).collect()
    }

    /// The way to an entry is found, but another leads back into the tree: e2fsck reads a block of
    /// the tree as one of entries.
    #[test]
    fn a_way_back_into_the_tree_is_damage() {
        let disk = disk();
        // The third level, of which the only link is that of id 0.
        let third = file_of_users(&disk) + 3 * 1024;
        let mut links = disk.read(third, 1024).unwrap().to_vec();
        assert_eq!(links[..8], [4, 0, 0, 0, 0, 0, 0, 0]);
        links[..8].copy_from_slice(&[2, 0, 0, 0, 4, 0, 0, 0]);
        disk.write(third, links.into()).unwrap();
        assert_eq!(kinds(&disk), [FindingKind::Quota]);
    }

    /// The entry's block is on the list of those with room, and names a block of the tree as the
    /// next; or the list begins there; or a free block is one of the tree. Whoever adds an owner
    /// would write there.
    #[test]
    fn a_list_that_leads_into_the_tree_is_damage() {
        for (block, offset, to) in [(5, 0, 2u32), (5, 4, 2), (0, 28, 3), (0, 24, 3), (0, 28, 5)] {
            let disk = disk();
            let at = file_of_users(&disk) + block * 1024;
            let mut bytes = disk.read(at, 1024).unwrap().to_vec();
            let same = bytes[offset..offset + 4] == to.to_le_bytes();
            bytes[offset..offset + 4].copy_from_slice(&to.to_le_bytes());
            disk.write(at, bytes.into()).unwrap();
            let expected: &[FindingKind] = if same { &[] } else { &[FindingKind::Quota] };
            assert_eq!(kinds(&disk), expected, "block {block}, offset {offset}");
        }
    }

    /// The tree leads to an entry's block by another id alone. Whoever looks for the entry's own id
    /// does not find it, and begins with nothing: its later quota would be wrong.
    #[test]
    fn an_entry_without_a_way_to_it_is_not_there() {
        let disk = disk();
        // The fourth level: id 0 is in block 5.
        let fourth = file_of_users(&disk) + 4 * 1024;
        let mut links = disk.read(fourth, 1024).unwrap().to_vec();
        assert_eq!(links[..8], [5, 0, 0, 0, 0, 0, 0, 0]);
        links[..8].copy_from_slice(&[0, 0, 0, 0, 5, 0, 0, 0]);
        disk.write(fourth, links.into()).unwrap();
        assert_eq!(kinds(&disk), [FindingKind::Quota]);
    }
}
