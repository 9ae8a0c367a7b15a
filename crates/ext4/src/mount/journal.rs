//! Finding the journal, recovering it, opening it.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::journal::{InternalJournal, find_internal};
use steadfast_ext4_format::ondisk::{Compat, Features, Incompat, Layout, Superblock};
use steadfast_ext4_format::superblock::FoundSuperblock;
use steadfast_ext4_format::{Ext4Error, RangeSet, Result, refused, superblock};
use steadfast_journal::external::{self, Owner};
use steadfast_journal::{
    CheckpointHook, Checksums, Journal, Log, Overlay, Recovery, RecoveryReport,
};
use uuid::Uuid;

use super::{given_up, needs_recovery, relied_upon, stale};
use crate::fastcommit;
use crate::meta::MetaLog;
use crate::options::{DataMode, MountOptions};
use crate::state::{Clock, HomeMark};

/// A file system's log.
pub(crate) struct OpenLog {
    log: Log,
    /// Blocks of the file system that it takes: none if it is external.
    pub blocks: RangeSet,
    /// What is wrong with the journal's inode, if the log was found by the superblock's copy of
    /// it.
    pub by_backup: Option<String>,
}

impl OpenLog {
    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// Replays the log, fast commits too, and marks it clean. Nothing is written if `check` refuses
    /// what would be in the places of these blocks.
    pub(super) fn replay(
        &self,
        device: &Arc<dyn BlockDevice>,
        options: &MountOptions,
        check: impl FnOnce(&Overlay) -> Result<()>,
    ) -> Result<RecoveryReport> {
        let log = self.log.clone().with_planted(options.journal.planted);
        let mut recovery = Recovery::read(&log, &**device)?;
        let changes = fastcommit::changes(device, &recovery, self.blocks.clone())?;
        let mut replayed = recovery.overlay.clone();
        replayed.extend(changes.clone());
        check(&replayed)?;
        let bootstrap = superblock::settle(&**device)?;
        let layout = Layout::new(&bootstrap.superblock, device.info().size)?;
        if bootstrap.whole && !self.log.is_external() {
            let home = &bootstrap.superblock;
            recovery = match given_up::finish(&**device, home, &layout, recovery)? {
                Ok(report) => return Ok(report),
                Err(recovery) => recovery,
            };
        }
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

/// What recovery left.
#[derive(Default)]
pub(super) struct RecoveredLog {
    /// Blocks replayed in memory only.
    pub overlay: Overlay,
    /// What was replayed; `None` if nothing was to be.
    pub report: Option<RecoveryReport>,
}

impl RecoveredLog {
    /// Whether the journal had been aborted.
    pub fn had_error(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.errno != 0)
    }
}

/// Finds the log; `None` if the file system has no journal or it is not to be looked at.
pub(super) fn find(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    layout: &Layout,
    options: &MountOptions,
) -> Result<Option<OpenLog>> {
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
    let InternalJournal { log, blocks, by_backup } = find_internal(device, superblock, layout)?;
    if options.without_journal {
        if needs_recovery(superblock) || log.read_superblock()?.start().is_some() {
            return refused("its journal is not empty: it cannot be done without");
        }
        return Ok(None);
    }
    Ok(Some(OpenLog { log, blocks, by_backup }))
}

fn find_external(
    superblock: &Superblock,
    layout: &Layout,
    options: &MountOptions,
) -> Result<OpenLog> {
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
    Ok(OpenLog { log: found.log, blocks: RangeSet::new(), by_backup: None })
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
    found: Option<&OpenLog>,
    options: &MountOptions,
) -> Result<RecoveredLog> {
    let Some(found) = found else { return Ok(RecoveredLog::default()) };
    let log = &found.log;
    let check =
        |replayed: &Overlay| relied_upon::check_over(device, replayed, Some(found), options);
    if !is_to_be_replayed(device, bootstrap, layout, log)? {
        if bootstrap.whole && !options.read_only && log.read_superblock()?.start().is_some() {
            check(&Overlay::new())?;
            steadfast_journal::discard_contents(log)?;
        }
        return Ok(RecoveredLog::default());
    }
    // An error that the journal remembers stays there until the file system, cleanly unmounted,
    // says the same.
    if options.read_only {
        let (report, overlay) = found.replay_dry(device)?;
        return Ok(RecoveredLog { overlay, report: Some(report) });
    }
    let report = found.replay(device, options, check)?;
    Ok(RecoveredLog { overlay: Overlay::new(), report: Some(report) })
}

/// Opens the recovered log for use.
pub(super) fn open(
    found: OpenLog,
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
        simulated_epoch_ns: clock.simulated_epoch_ns(),
        on_demand: options.data == DataMode::Transact,
        before_checkpoint: home.map(|home| home as Arc<dyn CheckpointHook>),
        ..options.journal.clone()
    };
    Ok(MetaLog::Journal(Journal::open(found.log, Arc::clone(device), config)?))
}
