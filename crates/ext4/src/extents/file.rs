//! A file's blocks in a transaction: finding, mapping, unmapping.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_ext4_format::extents::{FILE_END, Lookup, Node, NodeRead, NodeStore, Tree};
use steadfast_ext4_format::indirect::has_extents;
use steadfast_ext4_format::ondisk::csum::InodeSeed;
use steadfast_ext4_format::ondisk::{Extent, GroupNo, InodeNo, RawInode};
use steadfast_ext4_format::{Ext4Error, Result, unsupported};
use steadfast_vfs::FileType;

use super::clusters::{ClusterRange, free_extents, place_blocks};
use crate::alloc::{BlockRequest, free_blocks};
use crate::indirect::{change_map, prepare_map, read_map};
use crate::meta::Txn;
use crate::planted::Bug;
use crate::state::MapChange;

/// Flexible groups of at least this many groups keep their first group for directories
/// (`EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME`).
const FLEX_WITH_DIRECTORY_GROUP: u32 = 4;

/// The nodes of an inode's tree, to be read or, by a `&mut Txn`, to be changed.
pub(crate) struct Nodes<T> {
    txn: T,
    no: InodeNo,
    seed: InodeSeed,
}

impl<'v, T: Deref<Target = Txn<'v>>> NodeRead for Nodes<T> {
    fn read(&self, block: u64) -> Result<Bytes> {
        let checksums = &self.txn.volume.layout.checksums;
        self.txn.read_checked(block, &|bytes| {
            if checksums.verify_extent_block(self.seed, bytes) {
                return Ok(());
            }
            let place = format!("inode {}, extent block {block}", self.no);
            Err(Ext4Error::corrupt("wrong checksum", place))
        })
    }

    fn valid(&self, start: u64, len: u64) -> bool {
        self.txn.volume.valid_file_blocks(start, len)
    }

    fn place(&self) -> String {
        format!("inode {}", self.no)
    }

    fn cached(&self, block: u64, contents: &Bytes) -> Option<Arc<Node>> {
        self.txn.meta.extent_nodes.borrow().get(block, contents)
    }

    fn decoded(&self, block: u64, contents: &Bytes, node: &Arc<Node>) {
        let mut nodes = self.txn.meta.extent_nodes.borrow_mut();
        nodes.put(block, contents.clone(), node.clone());
    }
}

impl NodeStore for Nodes<&mut Txn<'_>> {
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
        let goal = block_goal(self.txn, self.no, None);
        let request = BlockRequest::metadata(goal, self.no);
        let (block, taken) = self.txn.allocator.allocate(self.txn, request)?;
        self.txn.leave_out(block, Bug::ExtentBlockNotLogged);
        add_blocks(self.txn, self.no, taken.into())?;
        Ok(block)
    }

    fn free(&mut self, block: u64) -> Result<()> {
        self.txn.forget(block);
        let freed = free_blocks(self.txn, block, 1)?;
        add_blocks(self.txn, self.no, -freed.cast_signed())
    }
}

fn extent_root(txn: &Txn<'_>, no: InodeNo, raw: &RawInode) -> Result<InodeSeed> {
    if !has_extents(raw) {
        return unsupported(format!("inode {no} is mapped by block lists, as in ext2 and ext3"));
    }
    Ok(txn.volume.layout.checksums.inode_seed(no, raw.generation()))
}

/// What is at a block, by the extent tree or the block map.
fn lookup_extent(txn: &Txn<'_>, no: InodeNo, raw: &RawInode, logical: u32) -> Result<Lookup> {
    if raw.is_inline() {
        Ok(Lookup::Hole { until: FILE_END })
    } else if has_extents(raw) {
        read_tree(txn, no, raw, |tree| tree.lookup(logical))
    } else {
        read_map(txn, no, raw, |map| map.lookup(logical))
    }
}

pub(crate) fn read_tree<R>(
    txn: &Txn<'_>,
    no: InodeNo,
    raw: &RawInode,
    look: impl FnOnce(&Tree<Nodes<&Txn<'_>>>) -> Result<R>,
) -> Result<R> {
    let seed = extent_root(txn, no, raw)?;
    look(&Tree::open(raw.block(), Nodes { txn, no, seed })?)
}

pub(crate) fn change_tree<R>(
    txn: &mut Txn<'_>,
    no: InodeNo,
    change: impl FnOnce(&mut Tree<Nodes<&mut Txn<'_>>>) -> Result<R>,
) -> Result<R> {
    let raw = txn.raw_inode(no)?;
    let seed = extent_root(txn, no, &raw)?;
    let mut tree = Tree::open(raw.block(), Nodes { txn: &mut *txn, no, seed })?;
    let result = change(&mut tree)?;
    let root = tree.root();
    let noticed = !txn.volume.has(Bug::FdatasyncWithoutExtents);
    let edit = txn.edit_inode(no)?;
    edit.raw.block_mut().copy_from_slice(&root);
    edit.data_changed |= noticed;
    Ok(result)
}

/// What is at a block of a file. The extent may be cut or joined compared with the disk's.
pub fn find_extent(txn: &Txn<'_>, no: InodeNo, logical: u32) -> Result<Lookup> {
    if let Some(edit) = txn.inodes.get(&no) {
        return lookup_extent(txn, no, &edit.raw, logical);
    }
    let inode = txn.inode(no)?;
    let raw = {
        let state = inode.state();
        if let Some(extent) = state.map.get(logical) {
            return Ok(Lookup::Mapped(extent));
        }
        state.raw.clone()
    };
    let found = lookup_extent(txn, no, &raw, logical)?;
    match found {
        Lookup::Mapped(extent) => inode.state().map.put(extent),
        Lookup::Hole { until: FILE_END } => inode.state().map.set_hole_from(logical),
        Lookup::Hole { .. } => {}
    }
    Ok(found)
}

/// The device block of a block of a file; `None` in a hole.
pub fn block_of(txn: &Txn<'_>, no: InodeNo, logical: u32) -> Result<Option<u64>> {
    Ok(match find_extent(txn, no, logical)? {
        Lookup::Mapped(e) => Some(e.start + u64::from(logical - e.logical)),
        Lookup::Hole { .. } => None,
    })
}

/// The extent that holds file block `from`, or else the next one.
pub fn next_extent(txn: &Txn<'_>, no: InodeNo, from: u64) -> Result<Option<Extent>> {
    let raw = txn.raw_inode(no)?;
    if raw.is_inline() {
        return Ok(None);
    }
    if !has_extents(&raw) {
        return read_map(txn, no, &raw, |map| map.next_extent(from));
    }
    read_tree(txn, no, &raw, |tree| tree.next_extent(from))
}

/// Where the last few extents of the file (at most `count`) begin; `None` if nothing is
/// mapped.
pub(crate) fn last_extents(txn: &Txn<'_>, no: InodeNo, count: usize) -> Result<Option<u32>> {
    let raw = txn.raw_inode(no)?;
    if !has_extents(&raw) {
        return read_map(txn, no, &raw, |map| map.last_extents(count));
    }
    read_tree(txn, no, &raw, |tree| tree.last_extents(count))
}

/// Where a block of the file (or one of its tree's) should go: after what comes before it in
/// the file, else in the inode's group. A damaged tree gives no goal here and an error later.
pub(crate) fn block_goal(txn: &Txn<'_>, no: InodeNo, logical: Option<u32>) -> u64 {
    let layout = &txn.volume.layout;
    let before = logical.and_then(|logical| {
        let raw = txn.raw_inode(no).ok().filter(|raw| !raw.is_inline())?;
        if !has_extents(&raw) {
            return read_map(txn, no, &raw, |map| map.goal(logical)).ok()?;
        }
        let e = read_tree(txn, no, &raw, |t| t.at_or_before(logical)).ok()??;
        Some(e.start + u64::from(logical - e.logical))
    });
    if let Some(goal) = before {
        return goal;
    }
    let Ok(place) = layout.inode_place(no) else { return layout.first_data_block };
    let mut group = place.group.0;
    if layout.groups_per_flex >= FLEX_WITH_DIRECTORY_GROUP {
        group -= group % layout.groups_per_flex;
        let raw = txn.raw_inode(no);
        let regular = raw.is_ok_and(|r| r.file_type() == Some(FileType::Regular));
        if regular && group + 1 < layout.groups {
            group += 1;
        }
    }
    layout.group_start(GroupNo(group))
}

/// Counts blocks in or out of the inode's storage.
pub(crate) fn add_blocks(txn: &mut Txn<'_>, no: InodeNo, blocks: i64) -> Result<()> {
    let block_size = txn.volume.layout.block_size;
    txn.modify_inode(no, |raw| {
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
pub(crate) fn map_extent(txn: &mut Txn<'_>, no: InodeNo, extent: Extent, taken: u32) -> Result<()> {
    if has_extents(&txn.raw_inode(no)?) {
        change_tree(txn, no, |tree| tree.insert(extent))?;
    } else if extent.unwritten {
        return unsupported(format!(
            "unwritten blocks in inode {no}, which has a block map (ext2/3)"
        ));
    } else {
        change_map(txn, no, |map| map.insert(extent))?;
    }
    add_blocks(txn, no, taken.into())?;
    txn.edit_inode(no)?.map_changes.push(MapChange::Mapped(extent));
    Ok(())
}

/// Takes file blocks `[from, to)` out of the tree or the block map; what was there is taken still.
pub(crate) fn remove_from_map(
    txn: &mut Txn<'_>,
    no: InodeNo,
    from: u64,
    to: u64,
) -> Result<Vec<Extent>> {
    match has_extents(&txn.raw_inode(no)?) {
        true => change_tree(txn, no, |tree| tree.remove(from, to)),
        false => change_map(txn, no, |map| map.remove(from, to)),
    }
}

/// Unmaps file blocks `[from, to)` and frees what was there. `revoke`: the blocks may have
/// images in the log.
pub(crate) fn unmap_blocks(
    txn: &mut Txn<'_>,
    no: InodeNo,
    from: u64,
    to: u64,
    revoke: bool,
) -> Result<()> {
    let removed = remove_from_map(txn, no, from, to)?;
    for e in removed.iter().filter(|_| revoke) {
        (e.start..e.start + u64::from(e.len)).for_each(|block| txn.forget(block));
    }
    free_extents(txn, no, &removed, from, to)?;
    txn.edit_inode(no)?.map_changes.push(MapChange::Unmapped { from, to });
    Ok(())
}

/// Maps the blocks of `old`, which are mapped, as `new` says.
pub(super) fn remap(txn: &mut Txn<'_>, no: InodeNo, old: &Extent, new: Extent) -> Result<()> {
    change_tree(txn, no, |tree| {
        tree.remove(old.logical.into(), old.end())?;
        tree.insert(new)
    })?;
    txn.edit_inode(no)?.map_changes.push(MapChange::Mapped(new));
    Ok(())
}

/// The unwritten extents within `[from, to)` have been written.
pub(crate) fn mark_written(txn: &mut Txn<'_>, no: InodeNo, from: u64, to: u64) -> Result<()> {
    if !has_extents(&txn.raw_inode(no)?) {
        return Ok(());
    }
    let mut at = from;
    while let Some(e) = next_extent(txn, no, at)?.filter(|e| u64::from(e.logical) < to) {
        at = e.end();
        if !e.unwritten {
            continue;
        }
        let part = e.clipped(from, to);
        remap(txn, no, &part, Extent { unwritten: false, ..part })?;
    }
    Ok(())
}

/// Maps a hole of one block to a new one for metadata; gives its number on the device.
pub(crate) fn map_metadata_block(
    txn: &mut Txn<'_>,
    no: InodeNo,
    logical: u32,
    goal: u64,
) -> Result<u64> {
    let request = BlockRequest::metadata(goal, no);
    let ClusterRange { start, taken, .. } = place_blocks(txn, request, logical)?;
    map_extent(txn, no, Extent { logical, len: 1, start, unwritten: false }, taken)?;
    Ok(start)
}

/// Adds a block at the end of a directory (or a long symbolic link); the caller writes it
/// with `create`. Returns its number in the file and on the device.
pub fn append_block(txn: &mut Txn<'_>, no: InodeNo) -> Result<(u32, u64)> {
    let size = txn.raw_inode(no)?.size();
    let block_size = txn.volume.block_size();
    let logical = u32::try_from(size / block_size)
        .map_err(|_| Ext4Error::Fs(steadfast_vfs::FsError::FileTooLarge))?;
    let (goal, _) = prepare_map(txn, no, logical)?;
    let start = map_metadata_block(txn, no, logical, goal)?;
    txn.modify_inode(no, |raw| raw.set_size(size + block_size))?;
    Ok((logical, start))
}
