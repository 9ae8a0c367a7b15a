//! A file's blocks in a transaction: finding, mapping, unmapping.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_ext4_format::extents::{FILE_END, Lookup, Node, NodeRead, NodeStore, Tree};
use steadfast_ext4_format::indirect::has_extents;
use steadfast_ext4_format::ondisk::csum::InodeSeed;
use steadfast_ext4_format::ondisk::{Extent, GroupNo, InodeNo, RawInode};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::FileType;

use super::clusters::Placed;
use crate::alloc::{BlockRequest, Purpose};
use crate::meta::Txn;
use crate::planted::Bug;
use crate::state::MapChange;

/// Flexible groups of at least this many groups keep their first group for directories
/// (`EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME`).
const FLEX_WITH_DIRECTORY_GROUP: u32 = 4;

/// The nodes of an inode's tree, to be read.
pub(super) struct Reader<'t, 'v> {
    txn: &'t Txn<'v>,
    no: InodeNo,
    seed: InodeSeed,
}

/// The nodes of an inode's tree, to be changed.
pub(crate) struct Writer<'t, 'v> {
    txn: &'t mut Txn<'v>,
    no: InodeNo,
    seed: InodeSeed,
}

fn read_node(txn: &Txn<'_>, no: InodeNo, seed: InodeSeed, block: u64) -> Result<Bytes> {
    let checksums = &txn.volume.layout.checksums;
    txn.read_checked(block, &|bytes| {
        if checksums.verify_extent_block(seed, bytes) {
            return Ok(());
        }
        Err(Ext4Error::corrupt("wrong checksum", format!("inode {no}, extent block {block}")))
    })
}

impl NodeRead for Reader<'_, '_> {
    fn read(&self, block: u64) -> Result<Bytes> {
        read_node(self.txn, self.no, self.seed, block)
    }

    fn valid(&self, start: u64, len: u64) -> bool {
        self.txn.volume.valid_file_blocks(start, len)
    }

    fn place(&self) -> String {
        format!("inode {}", self.no)
    }

    fn known(&self, block: u64, contents: &Bytes) -> Option<Arc<Node>> {
        self.txn.meta.extent_nodes.borrow().get(block, contents)
    }

    fn decoded(&self, block: u64, contents: &Bytes, node: &Arc<Node>) {
        let mut nodes = self.txn.meta.extent_nodes.borrow_mut();
        nodes.put(block, contents.clone(), node.clone());
    }
}

impl NodeRead for Writer<'_, '_> {
    fn read(&self, block: u64) -> Result<Bytes> {
        read_node(self.txn, self.no, self.seed, block)
    }

    fn valid(&self, start: u64, len: u64) -> bool {
        self.txn.volume.valid_file_blocks(start, len)
    }

    fn place(&self) -> String {
        format!("inode {}", self.no)
    }

    fn known(&self, block: u64, contents: &Bytes) -> Option<Arc<Node>> {
        self.txn.meta.extent_nodes.borrow().get(block, contents)
    }

    fn decoded(&self, block: u64, contents: &Bytes, node: &Arc<Node>) {
        let mut nodes = self.txn.meta.extent_nodes.borrow_mut();
        nodes.put(block, contents.clone(), node.clone());
    }
}

impl NodeStore for Writer<'_, '_> {
    fn block_size(&self) -> usize {
        self.txn.volume.layout.block_size as usize
    }

    fn write(&mut self, block: u64, node: &Node) -> Result<()> {
        let mut bytes = vec![0; self.block_size()];
        node.encode(&mut bytes);
        self.txn.volume.layout.checksums.set_extent_block(self.seed, &mut bytes);
        let contents = Bytes::from(bytes);
        self.decoded(block, &contents, &Arc::new(node.clone()));
        self.txn.create(block, contents);
        Ok(())
    }

    fn allocate(&mut self) -> Result<u64> {
        let goal = self.txn.block_goal(self.no, None);
        let purpose = Purpose::Metadata;
        let request = BlockRequest { goal, want: 1, owner: self.no, purpose, window: 0 };
        let (block, taken) = self.txn.allocate_blocks(request)?;
        self.txn.leave_out(block, Bug::ExtentBlockNotLogged);
        self.txn.add_blocks(self.no, taken.into())?;
        Ok(block)
    }

    fn free(&mut self, block: u64) -> Result<()> {
        self.txn.forget(block);
        let freed = self.txn.free_blocks(block, 1)?;
        self.txn.add_blocks(self.no, -freed.cast_signed())
    }
}

impl<'v> Txn<'v> {
    fn extent_root(&self, no: InodeNo, raw: &RawInode) -> Result<InodeSeed> {
        if !has_extents(raw) {
            let what = format!("inode {no} is mapped by block lists, as in ext2 and ext3");
            return Err(Ext4Error::Unsupported { what });
        }
        Ok(self.volume.layout.checksums.inode_seed(no, raw.generation()))
    }

    /// What is at a block, by the extent tree or the block map.
    fn lookup(&self, no: InodeNo, raw: &RawInode, logical: u32) -> Result<Lookup> {
        if raw.is_inline() {
            Ok(Lookup::Hole { until: FILE_END })
        } else if has_extents(raw) {
            self.read_tree(no, raw, |tree| tree.lookup(logical))
        } else {
            self.read_map(no, raw, |map| map.lookup(logical))
        }
    }

    pub(super) fn read_tree<R>(
        &self,
        no: InodeNo,
        raw: &RawInode,
        look: impl FnOnce(&Tree<Reader<'_, 'v>>) -> Result<R>,
    ) -> Result<R> {
        let seed = self.extent_root(no, raw)?;
        look(&Tree::open(raw.block(), Reader { txn: self, no, seed })?)
    }

    pub(crate) fn change_tree<R>(
        &mut self,
        no: InodeNo,
        change: impl FnOnce(&mut Tree<Writer<'_, 'v>>) -> Result<R>,
    ) -> Result<R> {
        let raw = self.raw_inode(no)?;
        let seed = self.extent_root(no, &raw)?;
        let mut tree = Tree::open(raw.block(), Writer { txn: self, no, seed })?;
        let result = change(&mut tree)?;
        let root = tree.root();
        let noticed = !self.volume.has(Bug::FdatasyncWithoutExtents);
        let edit = self.edit_inode(no)?;
        edit.raw.block_mut().copy_from_slice(&root);
        edit.data_changed |= noticed;
        Ok(result)
    }

    /// What is at a block of a file. The extent may be cut or joined compared with the disk's.
    pub fn find(&self, no: InodeNo, logical: u32) -> Result<Lookup> {
        if let Some(edit) = self.inodes.get(&no) {
            return self.lookup(no, &edit.raw, logical);
        }
        let inode = self.inode(no)?;
        let raw = {
            let state = inode.state();
            if let Some(known) = state.map.get(logical) {
                return Ok(Lookup::Mapped(known));
            }
            state.raw.clone()
        };
        let found = self.lookup(no, &raw, logical)?;
        match found {
            Lookup::Mapped(extent) => inode.state().map.put(extent),
            Lookup::Hole { until: FILE_END } => inode.state().map.set_hole_from(logical),
            Lookup::Hole { .. } => {}
        }
        Ok(found)
    }

    /// The device block of a block of a file; `None` in a hole.
    pub fn block_of(&self, no: InodeNo, logical: u32) -> Result<Option<u64>> {
        Ok(match self.find(no, logical)? {
            Lookup::Mapped(e) => Some(e.start + u64::from(logical - e.logical)),
            Lookup::Hole { .. } => None,
        })
    }

    /// The extent that holds file block `from`, or else the next one.
    pub fn next_extent(&self, no: InodeNo, from: u64) -> Result<Option<Extent>> {
        let raw = self.raw_inode(no)?;
        if raw.is_inline() {
            return Ok(None);
        }
        if !has_extents(&raw) {
            return self.read_map(no, &raw, |map| map.next_extent(from));
        }
        self.read_tree(no, &raw, |tree| tree.next_extent(from))
    }

    /// Where the last few extents of the file (at most `count`) begin; `None` if nothing is
    /// mapped.
    pub(crate) fn last_extents(&self, no: InodeNo, count: usize) -> Result<Option<u32>> {
        let raw = self.raw_inode(no)?;
        if !has_extents(&raw) {
            return self.read_map(no, &raw, |map| map.last_extents(count));
        }
        self.read_tree(no, &raw, |tree| tree.last_extents(count))
    }

    /// Where a block of the file (or one of its tree's) should go: after what comes before it in
    /// the file, else in the inode's group. A damaged tree gives no goal here and an error later.
    pub(crate) fn block_goal(&self, no: InodeNo, logical: Option<u32>) -> u64 {
        let layout = &self.volume.layout;
        let before = logical.and_then(|logical| {
            let raw = self.raw_inode(no).ok().filter(|raw| !raw.is_inline())?;
            if !has_extents(&raw) {
                return self.read_map(no, &raw, |map| map.goal(logical)).ok()?;
            }
            let e = self.read_tree(no, &raw, |t| t.at_or_before(logical)).ok()??;
            Some(e.start + u64::from(logical - e.logical))
        });
        if let Some(goal) = before {
            return goal;
        }
        let Ok(place) = layout.inode_place(no) else { return layout.first_data_block };
        let mut group = place.group.0;
        if layout.groups_per_flex >= FLEX_WITH_DIRECTORY_GROUP {
            group -= group % layout.groups_per_flex;
            let raw = self.raw_inode(no);
            let regular = raw.is_ok_and(|r| r.file_type() == Some(FileType::Regular));
            if regular && group + 1 < layout.groups {
                group += 1;
            }
        }
        layout.group_start(GroupNo(group))
    }

    /// Counts blocks in or out of the inode's storage.
    pub(crate) fn add_blocks(&mut self, no: InodeNo, blocks: i64) -> Result<()> {
        let block_size = self.volume.layout.block_size;
        self.modify_inode(no, |raw| {
            let delta = blocks * i64::from(block_size / 512);
            let sectors = raw.sectors(block_size).saturating_add_signed(delta);
            raw.set_sectors(sectors, block_size);
        })
    }

    /// Maps a hole of the file to blocks that were allocated for it; the inode counts `taken`
    /// blocks more.
    ///
    /// # Errors
    /// Unsupported: unwritten blocks in a file with a block map, which cannot mark them.
    pub(crate) fn map_extent(&mut self, no: InodeNo, extent: Extent, taken: u32) -> Result<()> {
        if has_extents(&self.raw_inode(no)?) {
            self.change_tree(no, |tree| tree.insert(extent))?;
        } else if extent.unwritten {
            let what = format!("unwritten blocks in inode {no}, which has a block map (ext2/3)");
            return Err(Ext4Error::Unsupported { what });
        } else {
            self.change_map(no, |map| map.insert(extent))?;
        }
        self.add_blocks(no, taken.into())?;
        self.edit_inode(no)?.map_changes.push(MapChange::Mapped(extent));
        Ok(())
    }

    /// Unmaps file blocks `[from, to)` and frees what was there. `revoke`: the blocks may have
    /// images in the log.
    pub(crate) fn unmap(&mut self, no: InodeNo, from: u64, to: u64, revoke: bool) -> Result<()> {
        let removed = if has_extents(&self.raw_inode(no)?) {
            self.change_tree(no, |tree| tree.remove(from, to))?
        } else {
            self.change_map(no, |map| map.remove(from, to))?
        };
        for e in removed.iter().filter(|_| revoke) {
            (e.start..e.start + u64::from(e.len)).for_each(|block| self.forget(block));
        }
        self.free_extents(no, &removed, from, to)?;
        self.edit_inode(no)?.map_changes.push(MapChange::Unmapped { from, to });
        Ok(())
    }

    /// The unwritten extents within `[from, to)` have been written.
    pub(crate) fn mark_written(&mut self, no: InodeNo, from: u64, to: u64) -> Result<()> {
        if !has_extents(&self.raw_inode(no)?) {
            return Ok(());
        }
        let mut at = from;
        while let Some(e) = self.next_extent(no, at)?.filter(|e| u64::from(e.logical) < to) {
            at = e.end();
            if !e.unwritten {
                continue;
            }
            let part = e.clipped(from, to);
            self.change_tree(no, |tree| {
                tree.remove(part.logical.into(), part.end())?;
                tree.insert(Extent { unwritten: false, ..part })
            })?;
            let written = MapChange::Mapped(Extent { unwritten: false, ..part });
            self.edit_inode(no)?.map_changes.push(written);
        }
        Ok(())
    }

    /// Adds a block at the end of a directory (or a long symbolic link); the caller writes it
    /// with [`create`](Self::create). Returns its number in the file and on the device.
    pub fn append_block(&mut self, no: InodeNo) -> Result<(u32, u64)> {
        let size = self.raw_inode(no)?.size();
        let block_size = self.volume.block_size();
        let logical = u32::try_from(size / block_size)
            .map_err(|_| Ext4Error::Fs(steadfast_vfs::FsError::FileTooLarge))?;
        let (goal, _) = self.prepare_map(no, logical)?;
        let purpose = Purpose::Metadata;
        let request = BlockRequest { goal, want: 1, owner: no, purpose, window: 0 };
        let Placed { start, taken, .. } = self.place(request, logical)?;
        self.map_extent(no, Extent { logical, len: 1, start, unwritten: false }, taken)?;
        self.modify_inode(no, |raw| raw.set_size(size + block_size))?;
        Ok((logical, start))
    }
}
