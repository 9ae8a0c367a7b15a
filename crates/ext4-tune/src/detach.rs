//! A file system gives its journal up.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4::journal_plan::{Plan, plan_free, plan_without_orphan_file};
use steadfast_ext4::mount::{discardable, replay};
use steadfast_ext4_check::{self as check, Report};
use steadfast_ext4_format::journal::{forget_journal, internal_log};
use steadfast_ext4_format::ondisk::{Compat, Layout, StateFlags, Superblock};
use steadfast_ext4_format::{Ext4Error, Result, refused, superblock};
use steadfast_ext4_mkfs::random_uuid;
use steadfast_journal::{JournalError, Overlay, external};
use uuid::Uuid;

use crate::attach::owner;
use crate::bootstrap::commit_only;
use crate::give_up;
use crate::named::{demand_recovery, put};
use crate::prepare::{JournalDevice, load, mount_options, needs_recovery, settle};

/// Whether a journal that is needed may be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossPolicy {
    /// No: what it holds is replayed first.
    Refuse,
    /// Yes: what it holds is lost, and said.
    Accept,
}

/// What was lost with the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DiscardedLog {
    /// Nothing: it was clean, or has been replayed.
    #[default]
    Nothing,
    /// These changes, which the journal held and nobody replayed.
    Listed {
        /// Transactions.
        transactions: u32,
        /// Blocks of the file system that they would have changed, in order.
        blocks: Vec<u64>,
    },
    /// The journal could not be read: an unknown part of what was done since the last mount.
    Unknown {
        /// Why it could not be read.
        why: String,
        /// When the file system was last mounted, seconds since 1970.
        since: u64,
    },
}

/// What became of the journal.
#[derive(Debug, Default)]
pub struct DetachReport {
    /// Identity of the external journal; `None`: it was internal.
    pub external: Option<Uuid>,
    /// What was lost.
    pub discarded: DiscardedLog,
    /// Transactions that were replayed first.
    pub replayed_transactions: u32,
    /// The journal device no longer names the file system.
    pub released: bool,
    /// Blocks that an internal journal gave back.
    pub freed_blocks: u64,
    /// After a loss: what a check finds. The file system stays marked as having errors, so that
    /// e2fsck looks at it whole.
    pub check: Option<Report>,
}

/// Takes the journal away from a file system. What it holds is replayed first; if it is needed
/// and not there, only with [`LossPolicy::Accept`] it goes all the same.
///
/// # Errors
/// Refused: there is none, it is needed and missing or damaged, or the given device is not it.
pub fn detach(
    device: &Arc<dyn BlockDevice>,
    journal: Option<&JournalDevice>,
    loss: LossPolicy,
) -> Result<DetachReport> {
    let (sb, layout) = load(device)?;
    if !sb.features().compat.contains(Compat::HAS_JOURNAL) {
        return refused("the file system has no journal");
    }
    if needs_recovery(&sb) && loss == LossPolicy::Accept {
        return discard(device, journal, &sb, &layout);
    }
    let mut replayed_transactions = 0;
    if needs_recovery(&sb) {
        let report = replay(device, &mount_options(journal)).map_err(with_way_out)?;
        replayed_transactions = report.map_or(0, |r| r.transactions);
        if !load(device)?.0.has_journal() {
            return given_up_before(device, &layout, replayed_transactions);
        }
    } else if let Some(journal) = journal {
        // Another file system's journal must not be taken for ours.
        is_named(journal, &sb)?;
    }
    let journal_missing = journal.is_none() && sb.has_external_journal();
    let sb = if journal_missing { load(device)?.0 } else { settle(device, journal)? };
    let sb = drop_orphan_file(device, &layout, journal, sb)?;
    let external = sb.has_external_journal().then(|| Uuid::from_bytes(sb.journal_uuid));
    let (mut released, mut freed_blocks) = (false, 0);
    if external.is_some() {
        let mut sb = sb;
        if sb.features().compat.contains(Compat::ORPHAN_FILE) {
            let plan = plan_without_orphan_file(device)?;
            write_without_journal(device, &layout, sb, plan)?;
        } else {
            forget_journal(&mut sb);
            put(device, &layout, &mut sb)?;
        }
        if let Some(journal) = journal {
            external::release(Arc::clone(&journal.device), Uuid::from_bytes(sb.uuid), None)?;
            released = true;
        }
    } else {
        freed_blocks = free_internal(device, &layout, sb)?;
    }
    let lost_nothing = DetachReport::default();
    Ok(DetachReport { external, replayed_transactions, released, freed_blocks, ..lost_nothing })
}

/// What the log held was that the journal is given up: a cut had interrupted that.
fn given_up_before(
    device: &Arc<dyn BlockDevice>,
    layout: &Layout,
    replayed_transactions: u32,
) -> Result<DetachReport> {
    // The copies may name it still.
    put(device, layout, &mut load(device)?.0)?;
    Ok(DetachReport { replayed_transactions, ..DetachReport::default() })
}

/// Refuses a device that is not the journal of this file system.
fn is_named(journal: &JournalDevice, sb: &Superblock) -> Result<()> {
    if !sb.has_external_journal() {
        return refused("the file system has its journal inside: do not give a journal device");
    }
    let found = external::open_device(Arc::clone(&journal.device))?;
    let (theirs, ours) = (found.uuid, Uuid::from_bytes(sb.journal_uuid));
    if theirs != ours {
        return refused(format!(
            "{} is another journal: its UUID is {theirs}, the file system's journal has {ours}; \
             give the right one, or none: nothing in it is needed",
            journal.device.info().name
        ));
    }
    Ok(())
}

/// The orphan file goes while there is a journal to do it with: one transaction.
fn drop_orphan_file(
    device: &Arc<dyn BlockDevice>,
    layout: &Layout,
    journal: Option<&JournalDevice>,
    mut sb: Superblock,
) -> Result<Superblock> {
    if !sb.features().compat.contains(Compat::ORPHAN_FILE) {
        return Ok(sb);
    }
    let log = match journal {
        Some(journal) => external::open_for(Arc::clone(&journal.device), &owner(&sb)?)?.log,
        // Nothing is lost with a journal that is clean: e2fsck frees the file.
        None if sb.has_external_journal() => return Ok(sb),
        None => internal_log(device, &sb, layout)?,
    };
    let plan = plan_without_orphan_file(device)?;
    let mut during = sb;
    demand_recovery(&mut during);
    superblock::write(&**device, &mut during)?;
    commit_only(log, device, layout.features, plan.images)?;
    replay(device, &mount_options(journal))?;
    device.flush()?;
    sb = load(device)?.0;
    sb.orphan_file_inode.set(0);
    superblock::write(&**device, &mut sb)?;
    Ok(sb)
}

fn with_way_out(e: Ext4Error) -> Ext4Error {
    let what = format!(
        "the file system needs what its journal holds, and it cannot be replayed: {e}. If the \
         journal is lost for good, --discard-unreplayed takes it away and says what is lost"
    );
    match e {
        Ext4Error::Block(_)
        | Ext4Error::Unsupported { .. }
        | Ext4Error::Journal(JournalError::Unsupported { .. }) => e,
        _ => Ext4Error::Refused { what },
    }
}

/// Frees the blocks of the internal journal of a clean file system.
fn free_internal(device: &Arc<dyn BlockDevice>, layout: &Layout, sb: Superblock) -> Result<u64> {
    if superblock::tears_sectors(&**device)
        && let Some(freed) = give_up::by_its_log(device, layout, &sb)?
    {
        let mut after = load(device)?.0;
        if !after.features().compat.contains(Compat::ORPHAN_FILE) {
            after.orphan_file_inode.set(0);
        }
        put(device, layout, &mut after)?;
        return Ok(freed);
    }
    let plan = plan_free(device, forget_journal)?;
    let freed = plan.blocks;
    write_without_journal(device, layout, sb, plan)?;
    Ok(freed)
}

/// Names no journal any more, then carries a plan out. Until that is done the superblock says
/// that e2fsck should look; blocks that nobody uses are all it would find.
fn write_without_journal(
    device: &Arc<dyn BlockDevice>,
    layout: &Layout,
    mut sb: Superblock,
    plan: Plan,
) -> Result<()> {
    forget_journal(&mut sb);
    sb.state.set(sb.state.get() & !StateFlags::VALID.bits());
    put(device, layout, &mut sb)?;
    let (superblock_at, _) = layout.superblock_place();
    let size = u64::from(layout.block_size);
    // The inode first: what a cut leaves then are blocks that belong to nobody.
    for block in &plan.first {
        if let Some(image) = plan.images.get(block) {
            device.write(block * size, image.clone().into())?;
        }
    }
    device.flush()?;
    for (block, image) in plan.images.iter().filter(|(b, _)| **b != superblock_at) {
        device.write(block * size, image.clone().into())?;
    }
    let mut sb = plan.superblock;
    forget_journal(&mut sb);
    if !sb.features().compat.contains(Compat::ORPHAN_FILE) {
        sb.orphan_file_inode.set(0);
    }
    put(device, layout, &mut sb)
}

/// The orphan file goes after its journal: e2fsck would empty its inode and leave it marked as in
/// use. It was made with the file system and is where it always was; what is too damaged to be
/// changed is left for e2fsck as a whole.
fn free_orphan_file(device: &Arc<dyn BlockDevice>, layout: &Layout, sb: Superblock) -> Result<()> {
    match plan_without_orphan_file(device) {
        Ok(plan) => write_without_journal(device, layout, sb, plan),
        Err(e @ Ext4Error::Block(_)) => Err(e),
        Err(_) => Ok(()),
    }
}

/// Takes away a journal that is needed.
fn discard(
    device: &Arc<dyn BlockDevice>,
    journal: Option<&JournalDevice>,
    sb: &Superblock,
    layout: &Layout,
) -> Result<DetachReport> {
    let external = sb.has_external_journal().then(|| Uuid::from_bytes(sb.journal_uuid));
    let discarded = match discardable(device, &mount_options(journal)) {
        Ok((report, overlay)) => DiscardedLog::Listed {
            transactions: report.transactions,
            blocks: overlay.keys().map(|b| b.0).collect(),
        },
        Err(e) => {
            let since = u64::from(sb.mount_time.get()) | u64::from(sb.mount_time_hi) << 32;
            DiscardedLog::Unknown { why: e.to_string(), since }
        }
    };
    let mut after = superblock::read(&**device, &Overlay::new())?;
    forget_journal(&mut after);
    let state = StateFlags::from_bits_retain(after.state.get());
    after.state.set(((state | StateFlags::ERROR) - StateFlags::VALID).bits());
    put(device, layout, &mut after)?;
    if after.features().compat.contains(Compat::ORPHAN_FILE) {
        free_orphan_file(device, layout, after)?;
    }
    let mut released = false;
    if let (Some(_), Some(journal)) = (external, journal)
        && external::open_for(Arc::clone(&journal.device), &owner(sb)?).is_ok()
    {
        // A new identity: no file system accepts this journal any more if it comes back.
        let fs_uuid = Uuid::from_bytes(sb.uuid);
        external::release(Arc::clone(&journal.device), fs_uuid, Some(random_uuid()))?;
        released = true;
    }
    let check = Some(check::check(device, None)?);
    Ok(DetachReport {
        external,
        discarded,
        replayed_transactions: 0,
        released,
        freed_blocks: 0,
        check,
    })
}
