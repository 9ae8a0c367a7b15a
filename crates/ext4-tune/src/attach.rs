//! A file system gets a journal, or another one.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4::journal_plan::{Plan, plan_free, plan_new};
use steadfast_ext4::mount::replay;
use steadfast_ext4_format::ondisk::{Compat, Incompat, Layout, Superblock};
use steadfast_ext4_format::{Result, refused};
use steadfast_ext4_mkfs::{default_journal_blocks, random_uuid};
use steadfast_journal::external::{self, Owner};
use steadfast_journal::{self as jbd2, FormatOptions};
use uuid::Uuid;

use crate::bootstrap::commit_only;
use crate::named::{demand_recovery, name_external, put};
use crate::prepare::{JournalDevice, load, mount_options, settle};

/// The journal that a file system is to have.
#[derive(Clone)]
pub enum NewJournal {
    /// Inside the file system, of so many blocks; `None`: what mke2fs would choose.
    Internal {
        /// Blocks.
        blocks: Option<u32>,
    },
    /// On a device made with `mkfs -O journal_dev`.
    External(JournalDevice),
}

/// What was attached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttachReport {
    /// Identity of the external journal; `None`: it is internal.
    pub external: Option<Uuid>,
    /// Blocks of the journal.
    pub blocks: u32,
    /// Transactions of an earlier use that the journal device still held. They are of a time
    /// before this file system went on without them, and are thrown away.
    pub discarded_transactions: u32,
    /// Blocks of the file system that the old journal gave back.
    pub freed_blocks: u64,
}

/// Gives a file system without a journal one.
///
/// # Errors
/// Refused: it has one (see [`move_to`]), is not clean, or the new journal does not fit or is
/// somebody else's.
pub fn attach(device: &Arc<dyn BlockDevice>, new: &NewJournal) -> Result<AttachReport> {
    let (sb, _) = load(device)?;
    if sb.features().compat.contains(Compat::HAS_JOURNAL) {
        return refused("the file system has a journal: move it, or detach it first");
    }
    settle(device, None)?;
    match new {
        NewJournal::Internal { blocks } => to_internal(device, *blocks),
        NewJournal::External(journal) => to_external(device, journal, false),
    }
}

/// Gives a file system another journal in place of its own: from inside to a device and back, or
/// to another device. What the old one holds is replayed first.
///
/// # Errors
/// As for [`attach`]; refused if the old journal is needed and not there.
pub fn move_to(
    device: &Arc<dyn BlockDevice>,
    old: Option<&JournalDevice>,
    new: &NewJournal,
) -> Result<AttachReport> {
    let (sb, _) = load(device)?;
    if !sb.features().compat.contains(Compat::HAS_JOURNAL) {
        return refused("the file system has no journal: attach one");
    }
    let external = sb.has_external_journal();
    if external && let Some(old) = old {
        // Better said before anything is done.
        external::open_for(Arc::clone(&old.device), &owner(&sb)?)?;
    }
    let sb = settle(device, old)?;
    let old_uuid = Uuid::from_bytes(sb.journal_uuid);
    let attached = match new {
        NewJournal::Internal { .. } if !external => {
            return refused(
                "the journal is inside already: detach it and attach one of another size",
            );
        }
        NewJournal::Internal { blocks } => to_internal(device, *blocks)?,
        NewJournal::External(journal) => {
            let found = external::open_device(Arc::clone(&journal.device))?;
            if external && found.uuid == old_uuid {
                return refused("that is the journal that the file system has");
            }
            to_external(device, journal, !external)?
        }
    };
    if external && let Some(old) = old {
        external::release(Arc::clone(&old.device), Uuid::from_bytes(sb.uuid), None)?;
    }
    Ok(attached)
}

pub(super) fn owner(sb: &Superblock) -> Result<Owner> {
    Ok(Owner {
        fs_uuid: Uuid::from_bytes(sb.uuid),
        journal_uuid: Uuid::from_bytes(sb.journal_uuid),
        block_size: sb.block_size().unwrap_or(0),
    })
}

/// The journal inside begins with the transaction that takes its blocks.
fn to_internal(device: &Arc<dyn BlockDevice>, blocks: Option<u32>) -> Result<AttachReport> {
    let (_, layout) = load(device)?;
    let Some(len) = blocks.or_else(|| default_journal_blocks(layout.blocks_count)) else {
        return refused("too small for a journal: give a size, at least 1024 blocks");
    };
    let plan = plan_new(device, len)?;
    let log = plan.log(device, layout.block_size)?;
    let blocks = log.blocks();
    let mut how = FormatOptions::new(random_uuid());
    let v3 = layout.features.metadata_csum();
    how.checksums = if v3 { jbd2::Checksums::V3 } else { jbd2::Checksums::None };
    how.wide = layout.features.incompat.contains(Incompat::BIT64);
    // All of this is in blocks that are still free.
    jbd2::format(&log, &how)?;
    commit_only(log, device, layout.features, plan.images.clone())?;
    put_first(device, &layout, &plan)?;
    let mut sb = plan.superblock;
    put(device, &layout, &mut sb)?;
    replay(device, &mount_options(None))?;
    device.flush()?;
    Ok(AttachReport { blocks, ..AttachReport::default() })
}

/// Writes what must be in its place before the superblock names the journal.
fn put_first(device: &Arc<dyn BlockDevice>, layout: &Layout, plan: &Plan) -> Result<()> {
    for block in &plan.first {
        if let Some(image) = plan.images.get(block) {
            device.write(block * u64::from(layout.block_size), image.clone().into())?;
            device.flush()?;
        }
    }
    Ok(())
}

fn to_external(
    device: &Arc<dyn BlockDevice>,
    journal: &JournalDevice,
    free_internal: bool,
) -> Result<AttachReport> {
    let (mut sb, layout) = load(device)?;
    let info = journal.device.info();
    if !journal.accept_volatile
        && let Some(reason) = info.unfit_to_persist()
    {
        return refused(format!(
            "unfit to be a journal: {reason}; the journal would be lost with the power \
             (--accept-volatile takes it all the same)"
        ));
    }
    let fs_uuid = Uuid::from_bytes(sb.uuid);
    let discarded = external::reattach(Arc::clone(&journal.device), fs_uuid, layout.block_size)?;
    let found = external::open_device(Arc::clone(&journal.device))?;
    let mut freed_blocks = 0;
    if free_internal {
        let plan = plan_free(device, |sb| {
            name_external(sb, found.uuid, journal.number);
            demand_recovery(sb);
        })?;
        freed_blocks = plan.blocks;
        commit_only(found.log.clone(), device, layout.features, plan.images)?;
        sb = plan.superblock;
    } else {
        name_external(&mut sb, found.uuid, journal.number);
    }
    put(device, &layout, &mut sb)?;
    if free_internal {
        replay(device, &mount_options(Some(journal)))?;
        device.flush()?;
    }
    Ok(AttachReport {
        external: Some(found.uuid),
        blocks: found.log.blocks(),
        discarded_transactions: discarded,
        freed_blocks,
    })
}
