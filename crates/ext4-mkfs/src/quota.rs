//! Quota files of a fresh file system (`-O quota`): what its folders use is charged to their
//! owners, so that the first check and the first mount find them right.

use std::collections::BTreeMap;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{
    InodeFlags, InodeNo, QUOTA_BLOCK, QUOTA_DEPTH, QUOTA_MAGIC, QUOTA_ROOT, QUOTA_VERSION,
    QuotaBlockHeader, QuotaEntry, QuotaInfo, RawInode, RoCompat, quota_index,
};
use steadfast_ext4_format::quota::{KINDS, QuotaKind, counts, owner};
use zerocopy::{FromZeros, IntoBytes};

use crate::plan::Plan;

/// Seconds that a soft limit may be exceeded: a week.
const GRACE: u32 = 7 * 24 * 3600;

impl Plan {
    /// The quota files: of users and groups, and with `project` of projects.
    pub(super) fn add_quota_files(&mut self) -> Result<()> {
        let features = self.sb.features().ro_compat;
        if !features.contains(RoCompat::QUOTA) {
            return Ok(());
        }
        let usage = KINDS.map(|kind| self.usage(kind));
        for (kind, usage) in KINDS.into_iter().zip(usage) {
            let ino = match kind {
                QuotaKind::User => InodeNo::USER_QUOTA,
                QuotaKind::Group => InodeNo::GROUP_QUOTA,
                QuotaKind::Project if features.contains(RoCompat::PROJECT) => self.next_inode(),
                QuotaKind::Project => continue,
            };
            self.add_quota_file(ino, &quota_file(kind, &usage))?;
            let field = match kind {
                QuotaKind::User => &mut self.sb.user_quota_inode,
                QuotaKind::Group => &mut self.sb.group_quota_inode,
                QuotaKind::Project => &mut self.sb.project_quota_inode,
            };
            field.set(ino.0);
        }
        Ok(())
    }

    /// Bytes and inodes in use by id.
    fn usage(&self, kind: QuotaKind) -> BTreeMap<u32, (u64, u64)> {
        let mut usage: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (no, raw) in self.inodes.iter().filter(|(no, raw)| counts(&self.sb, **no, raw)) {
            debug_assert!(self.directories.contains(no), "nothing else is there yet");
            let used = usage.entry(owner(raw, kind)).or_default();
            used.0 += raw.sectors(self.layout.block_size) * 512;
            used.1 += 1;
        }
        usage
    }

    fn add_quota_file(&mut self, ino: InodeNo, file: &[u8]) -> Result<()> {
        let bs = self.layout.block_size as usize;
        let runs = self.take(file.len().div_ceil(bs) as u64)?;
        let blocks = runs.iter().flat_map(|(start, len)| *start..*start + *len);
        for (number, part) in blocks.zip(file.chunks(bs)) {
            let mut block = part.to_vec();
            block.resize(bs, 0);
            self.contents.insert(number, block);
        }
        let mut inode: RawInode = self.hidden_file();
        inode.set_flags(inode.flags() | InodeFlags::IMMUTABLE);
        self.add_file(ino, inode, &runs)?;
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.set_size(file.len() as u64);
        }
        Ok(())
    }
}

/// A quota file with these entries: the tree first, then one block of entries, which is enough for
/// the owners of two folders.
fn quota_file(kind: QuotaKind, usage: &BTreeMap<u32, (u64, u64)>) -> Vec<u8> {
    let mut blocks = vec![[0u8; QUOTA_BLOCK]; 2];
    // Blocks of the tree above the last level; what leads to the entries is set below.
    let mut leaves: Vec<(usize, u32)> = Vec::new();
    for id in usage.keys() {
        let mut at = QUOTA_ROOT as usize;
        for level in 0..QUOTA_DEPTH - 1 {
            let index = quota_index(*id, level);
            let place = &blocks[at][index..index + 4];
            let next = u32::from_le_bytes([place[0], place[1], place[2], place[3]]) as usize;
            at = if next == 0 {
                let added = blocks.len();
                blocks[at][index..index + 4].copy_from_slice(&(added as u32).to_le_bytes());
                blocks.push([0; QUOTA_BLOCK]);
                added
            } else {
                next
            };
        }
        leaves.push((at, *id));
    }
    let entries = blocks.len() as u32;
    let mut block = [0u8; QUOTA_BLOCK];
    let mut header = QuotaBlockHeader::new_zeroed();
    header.entries.set(usage.len() as u16);
    block[..size_of::<QuotaBlockHeader>()].copy_from_slice(header.as_bytes());
    for (slot, (id, (space, inodes))) in usage.iter().enumerate() {
        let mut entry = QuotaEntry::new_zeroed();
        entry.id.set(*id);
        entry.space.set(*space);
        entry.inodes.set(*inodes);
        entry.write_to(&mut block, slot);
    }
    blocks.push(block);
    for (at, id) in leaves {
        let index = quota_index(id, QUOTA_DEPTH - 1);
        blocks[at][index..index + 4].copy_from_slice(&entries.to_le_bytes());
    }
    let info = QuotaInfo {
        magic: QUOTA_MAGIC[kind as usize].into(),
        version: QUOTA_VERSION.into(),
        space_grace: GRACE.into(),
        inode_grace: GRACE.into(),
        flags: 0.into(),
        blocks: (blocks.len() as u32).into(),
        free_block: 0.into(),
        free_entry: entries.into(),
    };
    blocks[0][..size_of::<QuotaInfo>()].copy_from_slice(info.as_bytes());
    blocks.concat()
}
