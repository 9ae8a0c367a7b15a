//! A volume from what is on a device: for a mount, or staged, to plan changes with.

mod orphans;

use std::cell::RefCell;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{GroupDesc, Layout, Superblock, check_supported_filesystem};
use steadfast_ext4_format::{RangeSet, Result, groups, superblock};
use steadfast_journal::Overlay;
use steadfast_runtime::Mutex;

use crate::meta::{
    BlockCache, MetaLock, MetaLog, MetaState, Parts, Volume, group_metadata, system_blocks,
};
use crate::options::{DataMode, MountOptions};
use crate::state::{
    AllocState, Allocator, Clock, Fresh, Holds, InodeCache, NameCache, NodeCache, OrphanSet,
    Orphans, Quotas, Space, Stamps, XattrBlockCache,
};

pub(crate) use orphans::{load as load_orphans, read as read_orphans};

/// Blocks withheld from data for extent trees: this part of the file system, at most
/// [`CUSHION_MAX`] (the kernel's `s_resv_clusters`).
const CUSHION_FRACTION: u64 = 50;
const CUSHION_MAX: u64 = 4096;

/// What is known once the log has been dealt with.
pub(crate) struct LoadedLayout {
    pub superblock: Superblock,
    pub layout: Layout,
    pub groups: Vec<GroupDesc>,
    pub journal_blocks: RangeSet,
}

/// The metadata of a clean file system, to plan a change with: what transactions change stays in
/// its log until it is taken from there.
pub(crate) fn stage(device: &Arc<dyn BlockDevice>) -> Result<Parts> {
    stage_with(device, &Overlay::new(), RangeSet::new())
}

/// As [`stage`], with the blocks that the journal takes.
pub(crate) fn stage_with(
    device: &Arc<dyn BlockDevice>,
    overlay: &Overlay,
    journal_blocks: RangeSet,
) -> Result<Parts> {
    let loaded = load(device, overlay, journal_blocks)?;
    let log = MetaLog::direct(Arc::clone(device), loaded.layout.block_size);
    Ok(assemble_staged(device, loaded, log))
}

/// The metadata of a file system as it is with the blocks of `overlay` in place, to plan what
/// follows from fast commits: orphans and quotas are loaded, and nothing is ever written.
pub(crate) fn stage_over(
    device: &Arc<dyn BlockDevice>,
    overlay: &Overlay,
    journal_blocks: RangeSet,
) -> Result<Parts> {
    orphans::load(stage_to_read(device, overlay, journal_blocks)?)
}

/// As [`stage_over`], without the orphans: who only reads leaves them alone.
pub(crate) fn stage_to_read(
    device: &Arc<dyn BlockDevice>,
    overlay: &Overlay,
    journal_blocks: RangeSet,
) -> Result<Parts> {
    let loaded = load(device, overlay, journal_blocks)?;
    let log = MetaLog::Staged { base: overlay.clone(), changed: Mutex::default() };
    let mut parts = assemble_staged(device, loaded, log);
    parts.quotas = crate::quota::load(&parts)?;
    Ok(parts)
}

fn load(
    device: &Arc<dyn BlockDevice>,
    overlay: &Overlay,
    journal_blocks: RangeSet,
) -> Result<LoadedLayout> {
    let superblock = superblock::read(&**device, overlay)?;
    check_supported_filesystem(&superblock)?;
    let layout = Layout::new(&superblock, device.info().size)?;
    let groups = groups::read(&**device, &layout, overlay)?;
    Ok(LoadedLayout { superblock, layout, groups, journal_blocks })
}

fn assemble_staged(device: &Arc<dyn BlockDevice>, loaded: LoadedLayout, log: MetaLog) -> Parts {
    let options = MountOptions { use_reserved: true, ..MountOptions::default() };
    let clock = Clock::new(options.simulated_epoch);
    assemble(Arc::clone(device), loaded, log, clock, &options)
}

pub(crate) fn assemble(
    device: Arc<dyn BlockDevice>,
    loaded: LoadedLayout,
    log: MetaLog,
    clock: Clock,
    options: &MountOptions,
) -> Parts {
    let LoadedLayout { superblock, layout, groups, journal_blocks } = loaded;
    let group_metadata = group_metadata(&layout, &groups);
    let system_blocks = system_blocks(&layout, &superblock, &group_metadata, &journal_blocks);
    let (free_blocks, free_inodes) = count_free(&layout, &groups);
    let space = Space {
        free_blocks,
        free_inodes,
        busy_blocks: 0,
        delayed_blocks: 0,
        settled_blocks: 0,
        reserved_blocks: if options.use_reserved { 0 } else { superblock.reserved_blocks() },
        cushion_blocks: (layout.blocks_count / CUSHION_FRACTION)
            .min(CUSHION_MAX * u64::from(layout.blocks_per_cluster)),
    };
    let transacts = options.data == DataMode::Transact && matches!(log, MetaLog::Journal(_));
    let meta = MetaState {
        cache: RefCell::new(BlockCache::new(options.metadata_cache_blocks)),
        superblock,
        groups,
        alloc: AllocState::default(),
        orphans: OrphanSet::default(),
        fetches: Default::default(),
        xattr_blocks: XattrBlockCache::default(),
        extent_nodes: RefCell::new(NodeCache::new(layout.block_size as usize)),
    };
    let volume = Volume {
        device,
        layout,
        group_metadata,
        system_blocks,
        clock,
        stamps: Stamps::new(clock),
        status: Arc::default(),
        planted: options.planted,
    };
    Parts {
        volume: Arc::new(volume),
        log,
        meta: MetaLock::new(meta),
        inodes: InodeCache::new(options.inode_cache),
        holds: Holds::default(),
        names: NameCache::new(options.inode_cache.saturating_mul(2)),
        allocator: Allocator::new(space, transacts.then(Fresh::default)),
        orphans: Orphans::default(),
        quotas: Quotas::default(),
        store_quotas: Quotas::store,
        fast: None,
        outside: Arc::default(),
    }
}

/// Free blocks and inodes of all groups.
pub(crate) fn count_free(layout: &Layout, groups: &[GroupDesc]) -> (u64, u64) {
    let free = |f: fn(&GroupDesc) -> u32| groups.iter().map(|g| u64::from(f(g))).sum::<u64>();
    // The descriptors count clusters.
    let clusters = free(GroupDesc::free_blocks);
    (clusters * u64::from(layout.blocks_per_cluster), free(GroupDesc::free_inodes))
}
