//! Replaying a journal without mounting.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{
    Compat, Incompat, Layout, RoCompat, StateFlags, Superblock, check_supported_filesystem,
};
use steadfast_ext4_format::{Ext4Error, Result, refused, superblock};
use steadfast_journal::{Overlay, RecoveryReport};

use super::journal;
use super::relied_upon::check_sectors;
use crate::meta::Parts;
use crate::mounted::Ext4;
use crate::options::MountOptions;
use crate::stage::{load_orphans, stage_with};
use crate::state::{Clock, Protection};

/// Replays the journal if the file system needs recovery, and marks both clean. What no
/// transaction logs is brought up to date as a mount would: the superblock's free blocks and
/// inodes, and whether the orphan file holds anybody. Nothing else is changed; orphans are left to
/// [`delete_orphans`] or the next mount. `None` if there is nothing to replay; a change of the
/// superblock that a cut has interrupted (`ondisk/redo.rs`) is finished all the same.
///
/// A cut in between leaves a file system that still needs recovery, and the same comes of it.
///
/// Of `options` the journal device and whether a volatile one is accepted matter; with
/// [`read_only`](MountOptions::read_only) nothing is written and only the report is made.
///
/// # Errors
/// As for a mount.
pub fn replay(
    device: &Arc<dyn BlockDevice>,
    options: &MountOptions,
) -> Result<Option<RecoveryReport>> {
    let Some(found) = log_to_be_replayed(device, options)? else {
        if !options.read_only {
            // The last write of a replay may have been cut: others do not know how to read it.
            superblock::settle(&**device)?;
        }
        return Ok(None);
    };
    if options.read_only {
        return Ok(Some(found.replay_dry(device)?.0));
    }
    if device.info().read_only {
        let name = &device.info().name;
        return refused(format!(
            "{name} is write-protected: mount it with -o ro, which replays in memory"
        ));
    }
    let protection = protect(device, options)?;
    let report = found.replay(device, options, |_| Ok(())).and_then(|report| {
        let mut after = superblock::read(&**device, &Overlay::new())?;
        if report.errno != 0 {
            after.state.set(after.state.get() | StateFlags::ERROR.bits());
        }
        let mut features = after.features();
        features.incompat.remove(Incompat::NEEDS_RECOVERY);
        after.set_features(features);
        after.clear_home_mark();
        if let Some(parts) = stage(device, &found)? {
            bring_up_to_date(&mut after, &parts);
        }
        superblock::write(&**device, &mut after)?;
        Ok(report)
    });
    let released = protection.map_or(Ok(()), |protection| protection.release());
    let report = report?;
    released?;
    if report.errno != 0 {
        // Only now that the file system itself says so.
        steadfast_journal::clear_errno(found.log())?;
    }
    Ok(Some(report))
}

/// Takes a file system with multiple-mount protection while it is worked on.
fn protect(device: &Arc<dyn BlockDevice>, options: &MountOptions) -> Result<Option<Protection>> {
    let sb = superblock::find(&**device)?.superblock;
    if !sb.features().incompat.contains(Incompat::MMP) {
        return Ok(None);
    }
    let layout = Layout::new(&sb, device.info().size)?;
    let clock = Clock::new(options.simulated_epoch);
    Protection::take(device, &sb, &layout, clock).map(Some)
}

/// The metadata and the orphans after a replay; `None` if they are damaged, which is for a check
/// to say.
fn stage(device: &Arc<dyn BlockDevice>, found: &journal::OpenLog) -> Result<Option<Parts>> {
    let staged = stage_with(device, &Overlay::new(), found.blocks.clone());
    match staged.and_then(load_orphans) {
        Ok(parts) => Ok(Some(parts)),
        Err(e @ Ext4Error::Block(_)) => Err(e),
        Err(_) => Ok(None),
    }
}

/// Puts into the superblock what the groups and the orphan file say.
fn bring_up_to_date(sb: &mut Superblock, parts: &Parts) {
    let space = *parts.allocator.counts();
    sb.set_free_blocks(space.free_blocks);
    // OK to cast: the sum over the groups of a file system with 2^32 inodes at most.
    sb.free_inodes.set(space.free_inodes as u32);
    if sb.features().compat.contains(Compat::ORPHAN_FILE) && !parts.lock_meta().orphans.uses_file()
    {
        let mut features = sb.features();
        features.ro_compat.remove(RoCompat::ORPHAN_PRESENT);
        sb.set_features(features);
    }
}

/// Deletes the orphans that a crash has left, or cuts them to their size, and gives how many there
/// were. They are found by a mount, which is ended at once. The journal holds nothing. `None`:
/// where the journal is found by the superblock's copy of its inode only, a mount leaves them.
///
/// # Errors
/// As for a mount; also where nobody is an orphan, but a mount would not find that out: where the
/// orphan file is damaged.
pub fn delete_orphans(
    device: &Arc<dyn BlockDevice>,
    options: &MountOptions,
) -> Result<Option<usize>> {
    let sb = superblock::read(&**device, &Overlay::new())?;
    let features = sb.features();
    if sb.last_orphan.get() == 0 && !features.compat.contains(Compat::ORPHAN_FILE) {
        return Ok(Some(0));
    }
    let layout = Layout::new(&sb, device.info().size)?;
    let found = journal::find(device, &sb, &layout, options)?;
    if found.is_some_and(|found| found.by_backup.is_some()) {
        return Ok(None);
    }
    let parts = load_orphans(crate::stage::stage(device)?)?;
    let count = parts.lock_meta().orphans.len();
    if count == 0 && !features.ro_compat.contains(RoCompat::ORPHAN_PRESENT) {
        return Ok(Some(0));
    }
    Ext4::mount(Arc::clone(device), options.clone())?.unmount()?;
    Ok(Some(count))
}

/// What the journal would write home: the blocks over which a check sees the file system as it
/// will be after recovery. Empty if nothing is to be replayed.
///
/// # Errors
/// As for a mount.
pub fn replayed_blocks(device: &Arc<dyn BlockDevice>, options: &MountOptions) -> Result<Overlay> {
    let Some(found) = log_to_be_replayed(device, options)? else { return Ok(Overlay::new()) };
    Ok(found.replay_dry(device)?.1)
}

/// What the journal holds and nobody has replayed, for an owner that will do without.
pub fn discardable(
    device: &Arc<dyn BlockDevice>,
    options: &MountOptions,
) -> Result<(RecoveryReport, Overlay)> {
    let bootstrap = superblock::find(&**device)?;
    let layout = Layout::new(&bootstrap.superblock, device.info().size)?;
    let Some(found) = journal::find(device, &bootstrap.superblock, &layout, options)? else {
        return refused("the file system has no journal");
    };
    found.replay_dry(device)
}

fn log_to_be_replayed(
    device: &Arc<dyn BlockDevice>,
    options: &MountOptions,
) -> Result<Option<journal::OpenLog>> {
    let bootstrap = superblock::find(&**device)?;
    check_supported_filesystem(&bootstrap.superblock)?;
    let layout = Layout::new(&bootstrap.superblock, device.info().size)?;
    check_sectors(&**device, &layout)?;
    let Some(found) = journal::find(device, &bootstrap.superblock, &layout, options)? else {
        return Ok(None);
    };
    let wanted = journal::is_to_be_replayed(device, &bootstrap, &layout, found.log())?;
    Ok(wanted.then_some(found))
}
