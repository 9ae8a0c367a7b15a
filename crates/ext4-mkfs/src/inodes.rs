//! The inodes that a fresh file system has, and the contents of their blocks.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{
    Compat, DIR_TAIL_LEN, Extent, ExtentHeader, ExtentIndex, ExtentLeaf, Incompat, InodeFlags,
    InodeNo, MAX_WRITTEN_LEN, ORPHAN_BLOCK_MAGIC, OrphanBlockTail, RawInode, file_type_code,
    put_dirent,
};
use steadfast_vfs::{FileType, Timestamp};
use zerocopy::IntoBytes;

use crate::options::{Options, refused};
use crate::plan::Plan;

/// lost+found.
const LOST_FOUND: InodeNo = InodeNo(11);
/// Bytes of lost+found: enough for e2fsck to work without allocating.
const LOST_FOUND_BYTES: usize = 16 * 1024;
/// Most blocks of lost+found: those that an inode without extents maps directly.
const LOST_FOUND_MOST: usize = 12;

impl Plan {
    fn now(&self) -> Timestamp {
        Timestamp { secs: self.time as i64, nanos: 0 }
    }

    /// An inode with all times set, without contents.
    fn new_inode(&self, kind: FileType, permissions: u16, links: u16) -> RawInode {
        let extra = self.sb.want_extra_isize.get();
        let mut inode = RawInode::new(usize::from(self.layout.inode_size), extra);
        inode.set_mode(kind, permissions);
        inode.set_links(links);
        inode.set_atime(self.now());
        inode.set_ctime(self.now());
        inode.set_mtime(self.now());
        inode.set_crtime(self.now());
        inode
    }

    /// The reserved inodes: blank, but for the list of bad blocks, which has times.
    pub(super) fn add_reserved(&mut self) {
        for number in 1..self.layout.first_inode.0 {
            let blank = RawInode::new(usize::from(self.layout.inode_size), 0);
            self.inodes.insert(InodeNo(number), blank);
        }
        let now = self.now();
        if let Some(bad_blocks) = self.inodes.get_mut(&InodeNo(1)) {
            bad_blocks.set_atime(now);
            bad_blocks.set_ctime(now);
            bad_blocks.set_mtime(now);
        }
    }

    /// Takes `len` blocks, near the beginning of the file system.
    pub(super) fn take(&mut self, len: u64) -> Result<Vec<(u64, u64)>> {
        self.take_from(self.layout.first_data_block, len)
            .ok_or_else(|| refused("the device is too small: no room for lost+found"))
    }

    /// Takes `len` blocks from `goal` on, and the rest of the last one's cluster.
    pub(super) fn take_from(&mut self, goal: u64, len: u64) -> Option<Vec<(u64, u64)>> {
        let whole = len.next_multiple_of(self.layout.blocks_per_cluster.into());
        let mut runs = self.space.take(goal, self.layout.blocks_count, whole)?;
        if let Some((_, last)) = runs.last_mut() {
            *last -= whole - len;
        }
        Some(runs)
    }

    /// An empty file of the file system's own, without a name.
    pub(super) fn hidden_file(&self) -> RawInode {
        self.new_inode(FileType::Regular, 0o600, 1)
    }

    /// The first number that no inode has.
    pub(super) fn next_inode(&self) -> InodeNo {
        InodeNo(self.inodes.last_key_value().map_or(LOST_FOUND.0, |(last, _)| last.0) + 1)
    }

    /// The root directory and lost+found.
    pub(super) fn add_directories(&mut self, options: &Options) -> Result<()> {
        let bs = self.layout.block_size as usize;
        let root_runs = self.take(1)?;
        let mut block = vec![0; bs];
        let usable = self.dir_bytes();
        let kind = self.dirent_kind();
        put_dirent(&mut block, 0, 12, InodeNo::ROOT, kind, b".");
        put_dirent(&mut block, 12, 12, InodeNo::ROOT, kind, b"..");
        put_dirent(&mut block, 24, usable - 24, LOST_FOUND, kind, b"lost+found");
        let mut root = self.new_inode(FileType::Directory, options.root_mode, 3);
        root.set_uid(options.root_owner.0);
        root.set_gid(options.root_owner.1);
        self.add_directory(InodeNo::ROOT, root, &root_runs, vec![block])?;

        let count = (LOST_FOUND_BYTES / bs).clamp(2, LOST_FOUND_MOST);
        let runs = self.take(count as u64)?;
        let mut first = vec![0; bs];
        put_dirent(&mut first, 0, 12, LOST_FOUND, kind, b".");
        put_dirent(&mut first, 12, usable - 12, InodeNo::ROOT, kind, b"..");
        let mut empty = vec![0; bs];
        put_dirent(&mut empty, 0, usable, InodeNo::NONE, 0, b"");
        let mut blocks = vec![first];
        blocks.resize(count, empty);
        let lost_found = self.new_inode(FileType::Directory, 0o700, 2);
        self.add_directory(LOST_FOUND, lost_found, &runs, blocks)
    }

    /// The type in an entry of a directory: 0 without the `filetype` feature.
    fn dirent_kind(&self) -> u8 {
        let typed = self.layout.features.incompat.contains(Incompat::FILETYPE);
        if typed { file_type_code(FileType::Directory) } else { 0 }
    }

    /// Bytes of a directory block that entries may use.
    fn dir_bytes(&self) -> usize {
        let tail = if self.layout.checksums.metadata() { DIR_TAIL_LEN } else { 0 };
        self.layout.block_size as usize - tail
    }

    fn add_directory(
        &mut self,
        ino: InodeNo,
        inode: RawInode,
        runs: &[(u64, u64)],
        contents: Vec<Vec<u8>>,
    ) -> Result<()> {
        let seed = self.layout.checksums.inode_seed(ino, inode.generation());
        for (number, mut block) in blocks_of(runs).zip(contents) {
            self.layout.checksums.set_dir_block(seed, &mut block);
            self.contents.insert(number, block);
        }
        self.directories.push(ino);
        self.add_file(ino, inode, runs)
    }

    /// Maps `runs` into the inode and adds it to the table.
    pub(super) fn add_file(
        &mut self,
        ino: InodeNo,
        mut inode: RawInode,
        runs: &[(u64, u64)],
    ) -> Result<()> {
        let mut extents = Vec::new();
        let mut logical = 0u32;
        for (start, len) in runs {
            let (mut start, mut left) = (*start, *len);
            while left > 0 {
                let n = left.min(u64::from(MAX_WRITTEN_LEN)) as u32;
                extents.push(Extent { logical, len: n, start, unwritten: false });
                (logical, start, left) = (logical + n, start + u64::from(n), left - u64::from(n));
            }
        }
        let tree_blocks = if self.layout.features.incompat.contains(Incompat::EXTENT) {
            inode.set_flags(inode.flags() | InodeFlags::EXTENTS);
            self.map(ino, &mut inode, &extents)?
        } else {
            self.map_by_pointers(&mut inode, &extents)?
        };
        let bs = self.layout.block_size;
        inode.set_size(u64::from(logical) * u64::from(bs));
        let ratio = u64::from(self.layout.blocks_per_cluster);
        let blocks = u64::from(logical).next_multiple_of(ratio) + tree_blocks * ratio;
        inode.set_sectors(blocks * u64::from(bs / 512), bs);
        self.inodes.insert(ino, inode);
        Ok(())
    }

    /// Writes the extent tree: up to four extents in the inode, else up to four blocks of them.
    /// Gives the number of blocks that the tree takes.
    fn map(&mut self, ino: InodeNo, inode: &mut RawInode, extents: &[Extent]) -> Result<u64> {
        let root = inode.block_mut();
        let fits = usize::from(ExtentHeader::capacity(root.len()));
        if extents.len() <= fits {
            put_leaf(root, extents);
            return Ok(0);
        }
        let bs = self.layout.block_size as usize;
        let per_block = usize::from(ExtentHeader::capacity(bs));
        let leaves: Vec<&[Extent]> = extents.chunks(per_block).collect();
        if leaves.len() > fits {
            return Err(refused("no room for a journal in so few pieces: choose a smaller one"));
        }
        let mut header = ExtentHeader::empty(root.len(), 1);
        header.entries.set(leaves.len() as u16);
        root[..12].copy_from_slice(header.as_bytes());
        let seed = self.layout.checksums.inode_seed(ino, inode.generation());
        for (i, leaf) in leaves.iter().enumerate() {
            let number = self.take(1)?[0].0;
            let index = ExtentIndex::new(leaf[0].logical, number);
            inode.block_mut()[12 + 12 * i..][..12].copy_from_slice(index.as_bytes());
            let mut block = vec![0; bs];
            put_leaf(&mut block, leaf);
            self.layout.checksums.set_extent_block(seed, &mut block);
            self.contents.insert(number, block);
        }
        Ok(leaves.len() as u64)
    }

    /// The inode that holds the blocks reserved for group descriptors. Its double-indirect block
    /// points to each reserved block of the primary, which lists its copies in the backups.
    pub(super) fn add_resize_inode(&mut self) -> Result<()> {
        let layout = &self.layout;
        // As mke2fs: also where a file system is so small that nothing is reserved.
        if !layout.features.compat.contains(Compat::RESIZE_INODE) {
            return Ok(());
        }
        let bs = layout.block_size as usize;
        let per_block = bs / 4;
        let first = layout.superblock_place().0 as u32 + 1 + layout.desc_blocks;
        let backups: Vec<u32> = layout.backup_groups().map(|g| g.0).collect();
        let (reserved, desc_blocks) = (layout.reserved_gdt_blocks, layout.desc_blocks as usize);
        let bpg = layout.blocks_per_group;
        let ratio = u64::from(layout.blocks_per_cluster);
        let double = self.take(1)?[0].0;
        let mut pointers = vec![0u8; bs];
        for i in 0..reserved {
            let primary = first + i;
            let slot = (desc_blocks + i as usize) % per_block * 4;
            pointers[slot..slot + 4].copy_from_slice(&primary.to_le_bytes());
            let mut list = vec![0u8; bs];
            for (group, place) in backups.iter().zip(list.chunks_exact_mut(4)) {
                place.copy_from_slice(&(primary + group * bpg).to_le_bytes());
            }
            self.contents.insert(u64::from(primary), list);
        }
        self.contents.insert(double, pointers);
        let mut inode = self.new_inode(FileType::Regular, 0o600, 1);
        const DOUBLE_INDIRECT: usize = 13;
        inode.block_mut()[DOUBLE_INDIRECT * 4..][..4]
            .copy_from_slice(&(double as u32).to_le_bytes());
        let n = per_block as u64;
        inode.set_size((n * n + n + 12) * bs as u64);
        let blocks = 1 + u64::from(reserved) * (1 + backups.len() as u64);
        // Each counts as a whole cluster.
        inode.set_sectors(blocks * ratio * (bs as u64 / 512), bs as u32);
        self.inodes.insert(InodeNo::RESIZE, inode);
        Ok(())
    }

    /// The orphan file: empty blocks with a magic number and a checksum each.
    pub(super) fn add_orphan_file(&mut self) -> Result<()> {
        if !self.sb.features().compat.contains(Compat::ORPHAN_FILE) {
            return Ok(());
        }
        let ino = self.next_inode();
        let bs = self.layout.block_size as usize;
        // Between 32 and 512 blocks, 1/4096 of the file system.
        let count = (self.layout.blocks_count / 4096).clamp(32, 512);
        let runs = self.take(count)?;
        let seed = self.layout.checksums.inode_seed(ino, 0);
        for number in blocks_of(&runs) {
            let mut block = vec![0; bs];
            let tail = OrphanBlockTail { magic: ORPHAN_BLOCK_MAGIC.into(), checksum: 0.into() };
            block[bs - size_of::<OrphanBlockTail>()..].copy_from_slice(tail.as_bytes());
            self.layout.checksums.set_orphan_block(seed, number, &mut block);
            self.contents.insert(number, block);
        }
        let inode = self.new_inode(FileType::Regular, 0o600, 1);
        self.add_file(ino, inode, &runs)?;
        self.sb.orphan_file_inode.set(ino.0);
        Ok(())
    }

    /// The internal journal's inode, and its copy in the superblock.
    pub(super) fn add_journal_inode(&mut self, runs: &[(u64, u64)]) -> Result<()> {
        let inode = self.new_inode(FileType::Regular, 0o600, 1);
        self.add_file(InodeNo::JOURNAL, inode, runs)?;
        let inode = &self.inodes[&InodeNo::JOURNAL];
        self.sb.set_journal_backup(inode);
        self.sb.journal_inode.set(InodeNo::JOURNAL.0);
        Ok(())
    }
}

/// Makes `node` a leaf of an extent tree.
fn put_leaf(node: &mut [u8], extents: &[Extent]) {
    let mut header = ExtentHeader::empty(node.len(), 0);
    header.entries.set(extents.len() as u16);
    node[..12].copy_from_slice(header.as_bytes());
    for (place, extent) in node[12..].chunks_exact_mut(12).zip(extents) {
        place.copy_from_slice(ExtentLeaf::from(*extent).as_bytes());
    }
}

/// Every block of some runs.
fn blocks_of(runs: &[(u64, u64)]) -> impl Iterator<Item = u64> + '_ {
    runs.iter().flat_map(|(start, len)| *start..*start + *len)
}
