//! Replaying a journal without mounting.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_journal::{Overlay, RecoveryReport};

use super::{MountOptions, journal, superblock};
use crate::error::{Ext4Error, Result};
use crate::ondisk::{Incompat, Layout, StateFlags, check_supported_filesystem};

/// Replays the journal if the file system needs recovery, and marks both clean; nothing else is
/// changed. Orphans are left to the next mount; `e2fsck -E journal_only` deletes them at once, and
/// gives the same bytes where there are none. `None` if there is nothing to replay.
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
    let Some(found) = log_to_be_replayed(device, options)? else { return Ok(None) };
    if options.read_only {
        return Ok(Some(found.replay_dry(device)?.0));
    }
    let report = found.replay(device, options)?;
    let mut after = superblock::read(&**device, &Overlay::new())?;
    if report.errno != 0 {
        after.state.set(after.state.get() | StateFlags::ERROR.bits());
    }
    let mut features = after.features();
    features.incompat.remove(Incompat::NEEDS_RECOVERY);
    after.set_features(features);
    superblock::write(&**device, &mut after)?;
    if report.errno != 0 {
        // Only now that the file system itself says so.
        steadfast_journal::clear_errno(found.log())?;
    }
    Ok(Some(report))
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
pub(crate) fn discardable(
    device: &Arc<dyn BlockDevice>,
    options: &MountOptions,
) -> Result<(RecoveryReport, Overlay)> {
    let bootstrap = superblock::find(&**device)?;
    let layout = Layout::new(&bootstrap.superblock, device.info().size)?;
    let Some(found) = journal::find(device, &bootstrap.superblock, &layout, options)? else {
        return Err(Ext4Error::Refused { what: "the file system has no journal".into() });
    };
    found.replay_dry(device)
}

fn log_to_be_replayed(
    device: &Arc<dyn BlockDevice>,
    options: &MountOptions,
) -> Result<Option<journal::Found>> {
    let bootstrap = superblock::find(&**device)?;
    check_supported_filesystem(&bootstrap.superblock)?;
    let layout = Layout::new(&bootstrap.superblock, device.info().size)?;
    let Some(found) = journal::find(device, &bootstrap.superblock, &layout, options)? else {
        return Ok(None);
    };
    let wanted = journal::is_to_be_replayed(device, &bootstrap, &layout, found.log())?;
    Ok(wanted.then_some(found))
}
