//! Finding the journal, recovering it, opening it.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_journal::external::{self, Owner};
use steadfast_journal::{
    CheckpointHook, Checksums, Journal, JournalError, Log, LogBlock, LogExtent, Overlay, Recovery,
    RecoveryReport,
};
use steadfast_vfs::FileType;
use uuid::Uuid;

use super::home::HomeMark;
use super::options::{DataMode, MountOptions};
use super::superblock::FoundSuperblock;
use super::{given_up, groups, needs_recovery, stale, superblock};
use crate::alloc::RangeSet;
use crate::error::{Ext4Error, Result};
use crate::extents::{NodeRead, Tree};
use crate::fastcommit;
use crate::indirect::{BlockMap, has_extents};
use crate::inode::Clock;
use crate::meta::MetaLog;
use crate::ondisk::csum::InodeSeed;
use crate::ondisk::{
    Compat, Extent, Features, GroupDesc, Incompat, InodeFlags, InodeNo, Layout, RawInode,
    Superblock,
};

/// A file system's log.
pub(crate) struct Found {
    log: Log,
    /// Blocks of the file system that it takes: none if it is external.
    pub blocks: RangeSet,
    /// What is wrong with the journal's inode, if the log was found by the superblock's copy of
    /// it.
    pub by_backup: Option<String>,
}

impl Found {
    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// The log alone.
    pub fn into_log(self) -> Log {
        self.log
    }

    /// Replays the log, fast commits too, and marks it clean.
    pub(super) fn replay(
        &self,
        device: &Arc<dyn BlockDevice>,
        options: &MountOptions,
    ) -> Result<RecoveryReport> {
        let bootstrap = superblock::settle(&**device)?;
        let log = planted_log(&self.log, options);
        let mut recovery = planted(Recovery::read(&log, &**device)?, options);
        let layout = Layout::new(&bootstrap.superblock, device.info().size)?;
        if bootstrap.whole && !self.log.is_external() {
            let home = &bootstrap.superblock;
            recovery = match given_up::finish(&**device, home, &layout, recovery)? {
                Ok(report) => return Ok(report),
                Err(recovery) => recovery,
            };
        }
        let changes = fastcommit::changes(device, &recovery, self.blocks.clone())?;
        // A superblock that is torn is made whole first, from the log.
        let home = if bootstrap.whole { self.home_mark(device, &layout, true)? } else { None };
        let owner = home.as_ref().map(|home| home as &dyn CheckpointHook);
        Ok(recovery.finish(&log, &**device, &changes, owner)?)
    }

    /// The home mark, if the log is external.
    pub(super) fn home_mark(
        &self,
        device: &Arc<dyn BlockDevice>,
        layout: &Layout,
        data_in_place: bool,
    ) -> Result<Option<HomeMark>> {
        let external = self.log.is_external();
        external.then(|| HomeMark::read(device, layout, data_in_place)).transpose()
    }

    /// What [`replay`](Self::replay) would do, and the blocks that it would write home.
    pub(super) fn replay_dry(
        &self,
        device: &Arc<dyn BlockDevice>,
    ) -> Result<(RecoveryReport, Overlay)> {
        let recovery = Recovery::read(&self.log, &**device)?;
        let changes = fastcommit::changes(device, &recovery, self.blocks.clone())?;
        let mut overlay = recovery.overlay;
        overlay.extend(changes);
        Ok((recovery.report, overlay))
    }
}

/// With the bug that the mount asks for.
#[cfg(feature = "planted-bugs")]
fn planted_log(log: &Log, options: &MountOptions) -> Log {
    log.clone().with_planted(options.journal.planted)
}

/// No bugs are built in.
#[cfg(not(feature = "planted-bugs"))]
fn planted_log(log: &Log, _: &MountOptions) -> Log {
    log.clone()
}

/// With the bug that the mount asks for.
#[cfg(feature = "planted-bugs")]
fn planted(recovery: Recovery, options: &MountOptions) -> Recovery {
    Recovery { planted: options.journal.planted, ..recovery }
}

/// No bugs are built in.
#[cfg(not(feature = "planted-bugs"))]
fn planted(recovery: Recovery, _: &MountOptions) -> Recovery {
    recovery
}

/// What recovery left.
#[derive(Default)]
pub(super) struct Recovered {
    /// Blocks replayed in memory only.
    pub overlay: Overlay,
    /// What was replayed; `None` if nothing was to be.
    pub report: Option<RecoveryReport>,
}

impl Recovered {
    /// Whether the journal had been aborted.
    pub fn had_error(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.errno != 0)
    }
}

fn refused<T>(what: impl Into<String>) -> Result<T> {
    Err(Ext4Error::Refused { what: what.into() })
}

/// Finds the log; `None` if the file system has no journal or it is not to be looked at.
pub(super) fn find(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    layout: &Layout,
    options: &MountOptions,
) -> Result<Option<Found>> {
    if !layout.features.compat.contains(Compat::HAS_JOURNAL) {
        if options.journal_device.is_some() {
            return refused("the file system has no journal: do not give a journal device");
        }
        return Ok(None);
    }
    if options.no_load {
        return Ok(None);
    }
    if superblock.has_external_journal() {
        return find_external(superblock, layout, options).map(Some);
    }
    if options.journal_device.is_some() {
        return refused("the file system has its journal inside: do not give a journal device");
    }
    find_internal(device, superblock, layout).map(Some)
}

fn find_external(
    superblock: &Superblock,
    layout: &Layout,
    options: &MountOptions,
) -> Result<Found> {
    let uuid = Uuid::from_bytes(superblock.journal_uuid);
    if uuid.is_nil() {
        // No journal has such a UUID: which one, nobody can say.
        return Err(Ext4Error::corrupt(
            "it has a journal, and neither its inode nor the UUID of its device is named: e2fsck \
             makes it a file system without one; ro with noload reads what is there",
            "superblock",
        ));
    }
    let Some(device) = &options.journal_device else {
        return refused(format!(
            "the file system keeps its journal on another device (UUID {uuid}): give that device; \
             if it is lost, ro with noload reads what is there without it"
        ));
    };
    if let Some(reason) = device.info().unfit_to_persist()
        && !options.journal.accept_volatile
    {
        return refused(format!(
            "{reason}: a journal that a power failure takes leaves the file system damaged; repair \
             or initialise the device, or accept this with accept-volatile"
        ));
    }
    let owner = Owner {
        fs_uuid: Uuid::from_bytes(superblock.uuid),
        journal_uuid: uuid,
        block_size: layout.block_size,
    };
    let found = external::open_for(Arc::clone(device), &owner)?;
    Ok(Found { log: found.log, blocks: RangeSet::new(), by_backup: None })
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
        let bytes = groups::read_block(self.device, self.layout, &Overlay::new(), block)?;
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
pub(crate) fn find_internal(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    layout: &Layout,
) -> Result<Found> {
    let leads_to_a_log = |found: Found| {
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
        Ok(found) => Ok(Found { by_backup: Some(error.to_string()), ..found }),
        // What is wrong with the inode is what there is to say.
        Err(e @ Ext4Error::Block(_)) => Err(e),
        Err(_) => Err(error),
    }
}

/// The inode of the internal journal.
pub(crate) fn read_journal_inode(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    layout: &Layout,
) -> Result<RawInode> {
    let no = InodeNo(superblock.journal_inode.get());
    let corrupt = |what: &str| Err(Ext4Error::corrupt(what, format!("journal inode {no}")));
    let place = layout.inode_place(no)?;
    let (desc_block, desc_offset) = layout.desc_place(place.group);
    let descs = groups::read_block(&**device, layout, &Overlay::new(), desc_block)?;
    let desc = GroupDesc::parse(&descs[desc_offset..desc_offset + usize::from(layout.desc_size)]);
    let block = desc.inode_table() + u64::from(place.table_block);
    let table = groups::read_block(&**device, layout, &Overlay::new(), block)?;
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
) -> Result<Found> {
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
    Ok(Found { log, blocks, by_backup: None })
}

/// The log inside a file system.
pub(crate) fn internal_log(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    layout: &Layout,
) -> Result<Log> {
    Ok(find_internal(device, superblock, layout)?.into_log())
}

/// Whether the log is to be replayed: the file system says so, or its superblock is torn and the
/// log holds it whole.
pub(super) fn is_to_be_replayed(
    device: &Arc<dyn BlockDevice>,
    bootstrap: &FoundSuperblock,
    layout: &Layout,
    log: &Log,
) -> Result<bool> {
    let superblock = &bootstrap.superblock;
    if bootstrap.whole {
        let needed = needs_recovery(superblock);
        if needed && log.is_external() {
            stale::refuse(&**device, superblock, layout, log)?;
        }
        return Ok(needed);
    }
    let dry = Recovery::read(log, &**device);
    Ok(dry.is_ok_and(|dry| superblock::is_mended(superblock, layout, &dry.overlay)))
}

/// Replays the log if the file system needs it. A log of a file system that does not is never
/// replayed: what it holds is older than the file system.
pub(super) fn recover(
    device: &Arc<dyn BlockDevice>,
    bootstrap: &FoundSuperblock,
    layout: &Layout,
    found: Option<&Found>,
    options: &MountOptions,
) -> Result<Recovered> {
    let Some(found) = found else { return Ok(Recovered::default()) };
    let log = &found.log;
    if !is_to_be_replayed(device, bootstrap, layout, log)? {
        if bootstrap.whole && !options.read_only && log.read_superblock()?.start().is_some() {
            steadfast_journal::discard_contents(log)?;
        }
        return Ok(Recovered::default());
    }
    // An error that the journal remembers stays there until the file system, cleanly unmounted,
    // says the same.
    if options.read_only {
        let (report, overlay) = found.replay_dry(device)?;
        return Ok(Recovered { overlay, report: Some(report) });
    }
    let report = found.replay(device, options)?;
    Ok(Recovered { overlay: Overlay::new(), report: Some(report) })
}

/// Opens the recovered log for use.
pub(super) fn open(
    found: Found,
    home: Option<Arc<HomeMark>>,
    device: &Arc<dyn BlockDevice>,
    features: Features,
    clock: Clock,
    options: &MountOptions,
) -> Result<MetaLog> {
    let checksums = if features.metadata_csum() {
        Some(Checksums::V3)
    } else if options.journal.async_commit {
        Some(Checksums::V1)
    } else {
        None
    };
    let config = steadfast_journal::Config {
        checksums,
        wide: features.incompat.contains(Incompat::BIT64),
        unix_ns_at_zero: clock.unix_ns_at_zero(),
        on_demand: options.data == DataMode::Transact,
        before_checkpoint: home.map(|home| home as Arc<dyn CheckpointHook>),
        ..options.journal.clone()
    };
    Ok(MetaLog::Journal(Journal::open(found.log, Arc::clone(device), config)?))
}
