//! A file's block map in a transaction.

use std::ops::Deref;

use bytes::Bytes;
use steadfast_ext4_format::extents::{FILE_END, NodeRead};
use steadfast_ext4_format::indirect::{BlockMap, PointerStore, blocks_max, has_extents};
use steadfast_ext4_format::ondisk::{Incompat, InodeNo, RawInode, RoCompat};
use steadfast_ext4_format::{Result, unsupported};

use crate::alloc::{BlockRequest, free_blocks};
use crate::extents::{add_blocks, block_goal};
use crate::meta::{Txn, Volume};
use crate::state::Inode;

/// The pointer blocks of an inode, to be read or, by a `&mut Txn`, to be changed.
pub(crate) struct PointerBlocks<T> {
    txn: T,
    no: InodeNo,
}

impl<'v, T: Deref<Target = Txn<'v>>> NodeRead for PointerBlocks<T> {
    fn read(&self, block: u64) -> Result<Bytes> {
        self.txn.read(block)
    }

    fn valid(&self, start: u64, len: u64) -> bool {
        self.txn.volume.valid_file_blocks(start, len)
    }

    fn place(&self) -> String {
        format!("inode {}", self.no)
    }
}

impl PointerStore for PointerBlocks<&mut Txn<'_>> {
    fn create(&mut self, goal: u64) -> Result<u32> {
        let request = BlockRequest::metadata(goal, self.no);
        let (block, _) = self.txn.allocator.allocate(self.txn, request)?;
        let Ok(pointer) = u32::try_from(block) else {
            return unsupported(
                "only blocks beyond 2^32 are free, which a block map cannot point to",
            );
        };
        self.txn.create(block, vec![0; self.txn.volume.layout.block_size as usize]);
        add_blocks(self.txn, self.no, 1)?;
        Ok(pointer)
    }

    fn set(&mut self, block: u64, index: usize, pointers: &[u32]) -> Result<()> {
        self.txn.modify(block, |bytes| {
            for (place, pointer) in bytes[index * 4..].chunks_exact_mut(4).zip(pointers) {
                place.copy_from_slice(&pointer.to_le_bytes());
            }
        })
    }

    fn free(&mut self, block: u64) -> Result<()> {
        self.txn.forget(block);
        let freed = free_blocks(self.txn, block, 1)?;
        add_blocks(self.txn, self.no, -freed.cast_signed())
    }
}

impl Inode {
    /// Whether the inode has a block map, which cannot hold unwritten blocks.
    pub(crate) fn has_block_map(&self) -> bool {
        let state = self.state();
        !has_extents(&state.raw) && !state.raw.is_inline()
    }
}

impl Volume {
    /// Whether new files get extent trees.
    pub(crate) fn uses_extents(&self) -> bool {
        self.layout.features.incompat.contains(Incompat::EXTENT)
    }

    /// Longest that a file can become, in bytes.
    pub(crate) fn max_size(&self, inode: &Inode) -> u64 {
        let layout = &self.layout;
        if inode.has_block_map() {
            let huge = layout.features.ro_compat.contains(RoCompat::HUGE_FILE);
            return blocks_max(layout.block_size, huge) * self.block_size();
        }
        layout.max_file_size()
    }
}

/// Looks into the block map of an inode without extents.
pub(crate) fn read_map<R>(
    txn: &Txn<'_>,
    no: InodeNo,
    raw: &RawInode,
    look: impl FnOnce(&BlockMap<PointerBlocks<&Txn<'_>>>) -> Result<R>,
) -> Result<R> {
    let size = txn.volume.layout.block_size;
    let storage = raw.sectors(size) / u64::from(size / 512);
    look(&BlockMap::open(raw.block(), size, storage, PointerBlocks { txn, no }))
}

/// Changes the block map of an inode without extents.
pub(crate) fn change_map<R>(
    txn: &mut Txn<'_>,
    no: InodeNo,
    change: impl FnOnce(&mut BlockMap<PointerBlocks<&mut Txn<'_>>>) -> Result<R>,
) -> Result<R> {
    let raw = txn.raw_inode(no)?;
    let size = txn.volume.layout.block_size;
    let storage = raw.sectors(size) / u64::from(size / 512);
    let mut map = BlockMap::open(raw.block(), size, storage, PointerBlocks { txn: &mut *txn, no });
    let result = change(&mut map)?;
    let root = map.root();
    let edit = txn.edit_inode(no)?;
    edit.raw.block_mut().copy_from_slice(&root);
    edit.data_changed = true;
    Ok(result)
}

/// Where a run for file block `logical` is to begin, and how many blocks of it can be mapped
/// at once. In a block map, the pointer blocks above are made first, so that they lie before
/// what they point to.
pub(crate) fn prepare_map(txn: &mut Txn<'_>, no: InodeNo, logical: u32) -> Result<(u64, u64)> {
    let goal = block_goal(txn, no, Some(logical));
    if has_extents(&txn.raw_inode(no)?) {
        return Ok((goal, u64::MAX));
    }
    let room = change_map(txn, no, |map| map.prepare(logical, goal))?;
    Ok((block_goal(txn, no, Some(logical)), room))
}

/// Frees pointer blocks from file block `from` on that hold no pointer: other systems may
/// leave such.
pub(crate) fn drop_empty_pointer_blocks(txn: &mut Txn<'_>, no: InodeNo, from: u64) -> Result<()> {
    let raw = txn.raw_inode(no)?;
    if !has_extents(&raw) && read_map(txn, no, &raw, |map| Ok(map.has_pointer_blocks()))? {
        change_map(txn, no, |map| map.remove(from, FILE_END))?;
    }
    Ok(())
}
