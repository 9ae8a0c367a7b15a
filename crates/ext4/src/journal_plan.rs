//! The blocks and the inode of an internal journal: what taking or freeing them changes.
//!
//! Both are planned in a transaction of their own that is never written: its block images go
//! into a journal, or to their places, as the caller decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_ext4_format::extents::{FILE_END, Node, ROOT_BYTES};
use steadfast_ext4_format::journal::forget_journal;
use steadfast_ext4_format::ondisk::{
    Compat, Extent, GroupNo, Incompat, InodeFlags, InodeNo, Layout, MAX_WRITTEN_LEN, RawInode,
    RoCompat, Superblock,
};
use steadfast_ext4_format::{Result, refused};
use steadfast_journal::{Log, LogBlock, LogExtent};
use steadfast_vfs::FileType;

use crate::alloc::BlockRequest;
use crate::extents::{map_extent, unmap_blocks};
use crate::inode::delete_inode;
use crate::meta::{Parts, Txn};
use crate::stage::stage;
use crate::state::{Inode, InodeEdit, Life};

/// A change that is ready to be made.
pub struct Plan {
    /// New contents of blocks.
    pub images: BTreeMap<u64, Bytes>,
    /// The superblock that is among them, with the journal fields as they will be.
    pub superblock: Superblock,
    /// The log's pieces, of a plan that makes one.
    pub extents: Vec<LogExtent>,
    /// Of the images, what must be in its place before the superblock names the journal: the
    /// blocks of its extent tree first (they were free), then its inode.
    pub first: Vec<u64>,
    /// Blocks that are taken or freed, the tree's included.
    pub blocks: u64,
}

impl Plan {
    /// The new log.
    pub fn log(&self, device: &Arc<dyn BlockDevice>, block_size: u32) -> Result<Log> {
        Ok(Log::internal(Arc::clone(device), block_size, self.extents.clone())?)
    }
}

/// Plans a new internal journal of `len` blocks. The file system on `device` is clean.
pub fn plan_new(device: &Arc<dyn BlockDevice>, len: u32) -> Result<Plan> {
    let parts = stage(device)?;
    let layout = &parts.volume.layout;
    check_length(layout, parts.allocator.counts().free_blocks, len)?;
    let mut txn = parts.look();
    let extents = take_blocks(&mut txn, len)?;
    make_inode(&mut txn, &extents)?;
    let raw = txn.raw_inode(InodeNo::JOURNAL)?;
    let taken = txn.space.taken.len();
    let free = parts.allocator.counts().free_blocks.saturating_sub(taken);
    let ratio = u64::from(layout.blocks_per_cluster);
    let sb = txn.superblock_mut();
    forget_journal(sb);
    let mut f = sb.features();
    f.compat.insert(Compat::HAS_JOURNAL);
    f.incompat.insert(Incompat::NEEDS_RECOVERY);
    sb.set_features(f);
    sb.journal_inode.set(InodeNo::JOURNAL.0);
    sb.set_journal_backup(&raw);
    sb.set_free_blocks(free);
    add_overhead(sb, (taken / ratio).cast_signed());
    let inode_block = inode_block(&txn)?;
    let (images, superblock) = finish(&parts, txn)?;
    let tree = images.keys().filter(|b| !parts.volume.group_metadata.contains(**b));
    let first = tree.copied().chain([inode_block]).collect();
    Ok(Plan { images, superblock, extents, first, blocks: taken })
}

fn check_length(layout: &Layout, free: u64, len: u32) -> Result<()> {
    if len < 1024 {
        return refused(format!(
            "a journal has at least 1024 blocks (here {} KiB), not {len}",
            layout.block_size
        ));
    }
    if u64::from(len) > layout.blocks_count / 2 {
        return refused(format!(
            "a journal of {len} blocks would take more than half of the file system's {}",
            layout.blocks_count
        ));
    }
    if u64::from(len) + 16 > free {
        return refused(format!(
            "no room for a journal of {len} blocks: {free} are free; choose a smaller one"
        ));
    }
    Ok(())
}

/// Takes the blocks: near the middle of the file system, in long runs.
fn take_blocks(txn: &mut Txn<'_>, len: u32) -> Result<Vec<LogExtent>> {
    let layout = &txn.volume.layout;
    let mut goal = layout.group_start(GroupNo(layout.groups / 2));
    let (mut extents, mut at) = (Vec::<LogExtent>::new(), 0);
    while at < len {
        let want = (len - at).min(MAX_WRITTEN_LEN);
        let request = BlockRequest { want, ..BlockRequest::metadata(goal, InodeNo::JOURNAL) };
        let (start, taken) = txn.allocator.allocate(txn, request)?;
        // Of whole clusters the last may be more than the rest of the log.
        let n = taken.min(len - at);
        extents.push(LogExtent { log_block: LogBlock(at), device_block: start, len: n });
        (at, goal) = (at + n, start + u64::from(n));
    }
    Ok(extents)
}

fn make_inode(txn: &mut Txn<'_>, extents: &[LogExtent]) -> Result<()> {
    let no = InodeNo::JOURNAL;
    let layout = &txn.volume.layout;
    let sb = txn.superblock();
    let mut raw = RawInode::new(usize::from(layout.inode_size), sb.extra_of_new_inodes());
    raw.set_mode(FileType::Regular, 0o600);
    raw.set_links(1);
    if layout.features.incompat.contains(Incompat::EXTENT) {
        raw.set_flags(InodeFlags::EXTENTS);
        Node::empty(ROOT_BYTES).encode(raw.block_mut());
    }
    let now = txn.volume.stamps.tick();
    raw.set_atime(now);
    raw.set_mtime(now);
    raw.set_ctime(now);
    raw.set_crtime(now);
    let blocks: u64 = extents.iter().map(|e| u64::from(e.len)).sum();
    raw.set_size(blocks * u64::from(layout.block_size));
    let inode = Arc::new(Inode::new(no, raw, txn.running_tid(), 0));
    txn.inodes.insert(no, InodeEdit::new(inode, Life::GoesOn));
    for e in extents {
        let (logical, len, start) = (e.log_block.0, e.len, e.device_block);
        let (_, end) = layout.whole_clusters(start, start + u64::from(len));
        // OK to cast: little more than the extent.
        let taken = (end - start) as u32;
        map_extent(txn, no, Extent { logical, len, start, unwritten: false }, taken)?;
    }
    Ok(())
}

/// Plans that the internal journal gives its blocks back. `sb_change` says what the superblock
/// names instead. The file system on `device` is clean.
pub fn plan_free(
    device: &Arc<dyn BlockDevice>,
    sb_change: impl FnOnce(&mut Superblock),
) -> Result<Plan> {
    let parts = stage(device)?;
    let mut txn = parts.look();
    let no = InodeNo::JOURNAL;
    unmap_blocks(&mut txn, no, 0, FILE_END, false)?;
    let size = usize::from(parts.volume.layout.inode_size);
    txn.edit_inode(no)?.raw = RawInode::from_bytes(&vec![0; size]);
    let freed = txn.space.freed.len();
    let free = parts.allocator.counts().free_blocks + freed;
    let ratio = u64::from(parts.volume.layout.blocks_per_cluster);
    let sb = txn.superblock_mut();
    sb_change(sb);
    sb.set_free_blocks(free);
    add_overhead(sb, -(freed / ratio).cast_signed());
    let first = vec![inode_block(&txn)?];
    let (images, superblock) = finish(&parts, txn)?;
    Ok(Plan { images, superblock, extents: Vec::new(), first, blocks: freed })
}

/// Plans that the orphan file is given up: without a journal there must be none. The superblock
/// loses the feature; its number of the file stays.
pub fn plan_without_orphan_file(device: &Arc<dyn BlockDevice>) -> Result<Plan> {
    let parts = stage(device)?;
    let mut txn = parts.look();
    let no = InodeNo(txn.superblock().orphan_file_inode.get());
    unmap_blocks(&mut txn, no, 0, FILE_END, false)?;
    delete_inode(&mut txn, no)?;
    let freed = txn.space.freed.len();
    let free = parts.allocator.counts().free_blocks + freed;
    let sb = txn.superblock_mut();
    let mut f = sb.features();
    f.compat.remove(Compat::ORPHAN_FILE);
    f.ro_compat.remove(RoCompat::ORPHAN_PRESENT);
    f.incompat.insert(Incompat::NEEDS_RECOVERY);
    sb.set_features(f);
    sb.set_free_blocks(free);
    let inodes = sb.free_inodes.get().saturating_add(1);
    sb.free_inodes.set(inodes);
    let (images, superblock) = finish(&parts, txn)?;
    Ok(Plan { images, superblock, extents: Vec::new(), first: Vec::new(), blocks: freed })
}

/// The count of clusters that files cannot have, where it is kept, has the journal's among them.
fn add_overhead(sb: &mut Superblock, clusters: i64) {
    let old = sb.overhead_clusters.get();
    if old != 0 {
        let new = i64::from(old).saturating_add(clusters);
        sb.overhead_clusters.set(u32::try_from(new).unwrap_or(0));
    }
}

/// The block of the inode table that holds the journal's inode.
fn inode_block(txn: &Txn<'_>) -> Result<u64> {
    let place = txn.volume.layout.inode_place(InodeNo::JOURNAL)?;
    Ok(txn.group(place.group).inode_table() + u64::from(place.table_block))
}

/// The images that the transaction would have written.
fn finish(parts: &Parts, txn: Txn<'_>) -> Result<(BTreeMap<u64, Bytes>, Superblock)> {
    txn.finish()?;
    let superblock = parts.lock_meta().superblock;
    Ok((parts.log.take_images(), superblock))
}
