//! Where the journal inside a file system is: the blocks of its inode, or of the superblock's copy
//! of that inode.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_journal::{JournalError, Log, LogBlock, LogExtent, Overlay};
use steadfast_vfs::FileType;

use crate::error::{Ext4Error, Result};
use crate::extents::{NodeRead, Tree};
use crate::groups::read_block;
use crate::indirect::{BlockMap, has_extents};
use crate::ondisk::csum::InodeSeed;
use crate::ondisk::{
    Compat, Extent, GroupDesc, Incompat, InodeFlags, InodeNo, Layout, RawInode, Superblock,
};
use crate::ranges::RangeSet;

/// The log inside a file system, and how it was found.
pub struct InternalJournal {
    /// The log.
    pub log: Log,
    /// Blocks of the file system that it takes.
    pub blocks: RangeSet,
    /// What is wrong with the journal's inode, if the log was found by the superblock's copy of
    /// it.
    pub by_backup: Option<String>,
}

/// Reads the nodes of the journal inode's map before anything is mounted.
struct DeviceNodes<'d> {
    device: &'d dyn BlockDevice,
    layout: &'d Layout,
    /// Of an extent tree, whose nodes have checksums.
    seed: Option<InodeSeed>,
}

/// Where the journal inode's blocks are: an extent tree or, in ext3, a block map.
enum Mapping<'d> {
    Extents(Tree<DeviceNodes<'d>>),
    Blocks(BlockMap<DeviceNodes<'d>>),
}

impl<'d> Mapping<'d> {
    fn open(raw: &RawInode, layout: &Layout, nodes: DeviceNodes<'d>) -> Result<Self> {
        if has_extents(raw) {
            return Ok(Mapping::Extents(Tree::open(raw.block(), nodes)?));
        }
        // A step per run reads the pointers above it anew.
        let size = raw.size().div_ceil(u64::from(layout.block_size));
        let storage = size.min(layout.blocks_count).saturating_mul(4);
        Ok(Mapping::Blocks(BlockMap::open(raw.block(), layout.block_size, storage, nodes)))
    }

    fn next_extent(&self, from: u64) -> Result<Option<Extent>> {
        match self {
            Mapping::Extents(tree) => tree.next_extent(from),
            Mapping::Blocks(map) => map.next_extent(from),
        }
    }
}

impl NodeRead for DeviceNodes<'_> {
    fn read(&self, block: u64) -> Result<Bytes> {
        let bytes = read_block(self.device, self.layout, &Overlay::new(), block)?;
        if let Some(seed) = self.seed
            && !self.layout.checksums.verify_extent_block(seed, &bytes)
        {
            let place = format!("journal inode, extent block {block}");
            return Err(Ext4Error::corrupt("wrong checksum", place));
        }
        Ok(bytes)
    }

    fn valid(&self, start: u64, len: u64) -> bool {
        self.layout.contains(start, len)
    }

    fn place(&self) -> String {
        "journal inode".into()
    }
}

/// Finds the log by the journal's inode; if that leads nowhere, by the superblock's copy of it
/// (`s_jnl_blocks`), as e2fsck does.
pub fn find_internal(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    layout: &Layout,
) -> Result<InternalJournal> {
    let leads_to_a_log = |found: InternalJournal| {
        found.log.read_superblock()?;
        Ok(found)
    };
    let no = InodeNo(superblock.journal_inode.get());
    let by_inode = read_journal_inode(device, superblock, layout)
        .and_then(|raw| map_log(device, layout, no, &raw))
        .and_then(leads_to_a_log);
    let error = match by_inode {
        Ok(found) => return Ok(found),
        Err(
            e @ (Ext4Error::Corrupt { .. }
            | Ext4Error::Journal(JournalError::Corrupt { .. } | JournalError::Refused { .. })),
        ) => e,
        Err(e) => return Err(e),
    };
    let Some(raw) = superblock.journal_backup() else { return Err(error) };
    match map_log(device, layout, no, &raw).and_then(leads_to_a_log) {
        Ok(found) => Ok(InternalJournal { by_backup: Some(error.to_string()), ..found }),
        // What is wrong with the inode is what there is to say.
        Err(e @ Ext4Error::Block(_)) => Err(e),
        Err(_) => Err(error),
    }
}

/// The inode of the internal journal.
pub fn read_journal_inode(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    layout: &Layout,
) -> Result<RawInode> {
    let no = InodeNo(superblock.journal_inode.get());
    let corrupt = |what: &str| Err(Ext4Error::corrupt(what, format!("journal inode {no}")));
    let place = layout.inode_place(no)?;
    let (desc_block, desc_offset) = layout.desc_place(place.group);
    let descs = read_block(&**device, layout, &Overlay::new(), desc_block)?;
    let desc = GroupDesc::parse(&descs[desc_offset..desc_offset + usize::from(layout.desc_size)]);
    let block = desc.inode_table() + u64::from(place.table_block);
    let table = read_block(&**device, layout, &Overlay::new(), block)?;
    let slot = place.offset..place.offset + usize::from(layout.inode_size);
    let raw = RawInode::from_bytes(&table[slot]);
    if !layout.checksums.verify_inode(no, &raw) {
        return corrupt("wrong checksum");
    }
    if raw.links() == 0 {
        return corrupt("it is deleted");
    }
    if raw.file_type() != Some(FileType::Regular) {
        return corrupt("it is no regular file");
    }
    if raw.flags().contains(InodeFlags::ENCRYPTED) {
        return corrupt("it says that it is encrypted");
    }
    Ok(raw)
}

/// The log that the journal's inode maps.
fn map_log(
    device: &Arc<dyn BlockDevice>,
    layout: &Layout,
    no: InodeNo,
    raw: &RawInode,
) -> Result<InternalJournal> {
    let nodes = DeviceNodes {
        device: &**device,
        layout,
        seed: has_extents(raw).then(|| layout.checksums.inode_seed(no, raw.generation())),
    };
    let map = Mapping::open(raw, layout, nodes)?;
    let length = raw.size() / u64::from(layout.block_size);
    let (mut extents, mut blocks, mut at) = (Vec::new(), RangeSet::new(), 0);
    while let Some(e) = map.next_extent(at)?.filter(|e| u64::from(e.logical) < length) {
        let len = (length - u64::from(e.logical)).min(e.len.into()) as u32;
        let log_block = LogBlock(e.logical);
        extents.push(LogExtent { log_block, device_block: e.start, len });
        blocks.insert(e.start, e.start + u64::from(e.len));
        at = e.end();
    }
    // What cannot be met is not a request here, but what the disk says.
    let log =
        Log::internal(Arc::clone(device), layout.block_size, extents).map_err(|e| match e {
            JournalError::Refused { what } => Ext4Error::corrupt(what, "journal inode"),
            e => e.into(),
        })?;
    Ok(InternalJournal { log, blocks, by_backup: None })
}

/// The log inside a file system.
pub fn internal_log(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    layout: &Layout,
) -> Result<Log> {
    Ok(find_internal(device, superblock, layout)?.log)
}

/// Takes the journal's name out of a superblock; its blocks are another matter.
pub fn forget_journal(sb: &mut Superblock) {
    let mut f = sb.features();
    f.compat.remove(Compat::HAS_JOURNAL);
    f.incompat.remove(Incompat::NEEDS_RECOVERY);
    sb.set_features(f);
    sb.journal_inode.set(0);
    sb.journal_device.set(0);
    sb.journal_uuid = [0; 16];
    sb.journal_blocks = [0.into(); 17];
    sb.journal_backup_type = 0;
}
