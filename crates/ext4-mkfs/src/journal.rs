//! The journal of a new file system: inside it, or on a device of its own.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{Compat, GroupNo, Incompat, Layout};
use steadfast_journal::{self as jbd2, FormatOptions, Log, LogBlock, LogExtent, external};
use uuid::Uuid;

use crate::options::{Contents, JournalChoice, Options, refused};
use crate::plan::Plan;

/// A journal device that has been found fit and unused.
pub(super) struct ExternalJournal {
    pub(super) uuid: Uuid,
    device: Arc<dyn BlockDevice>,
}

/// Blocks of an internal journal by the file system's size in blocks
/// (`ext2fs_default_journal_size`); `None`: it is too small for one.
pub fn default_blocks(blocks: u64) -> Option<u32> {
    const K: u64 = 1024;
    Some(match blocks {
        n if n < 2 * K => return None,
        n if n < 32 * K => 1024,
        n if n < 256 * K => 4096,
        n if n < 512 * K => 8192,
        n if n < 4 * K * K => 16384,
        n if n < 8 * K * K => 32768,
        n if n < 16 * K * K => 65536,
        n if n < 32 * K * K => 131_072,
        _ => 262_144,
    })
}

/// Blocks of an internal journal for transactions.
fn log_blocks(plan: &Plan, options: &Options) -> Result<u32> {
    match options.journal {
        JournalChoice::InternalOf(n) => Ok(n),
        _ => default_blocks(plan.layout.blocks_count).ok_or_else(|| {
            refused("too small for a journal: choose a larger device or no journal")
        }),
    }
}

/// Blocks at the end of an internal journal that are for fast commits, beside so many for
/// transactions: the kernel's default of 256, less in small journals.
fn fast_blocks(options: &Options, log_blocks: u32) -> u32 {
    let wanted = options.features.compat.contains(Compat::FAST_COMMIT);
    if wanted { (log_blocks / 16).clamp(16, 256) } else { 0 }
}

/// Takes the blocks of an internal journal: in the middle of the file system, in as few pieces
/// as there are.
pub(super) fn place_internal(plan: &mut Plan, options: &Options) -> Result<Vec<(u64, u64)>> {
    let blocks = plan.layout.blocks_count;
    let len = log_blocks(plan, options)?;
    let len = len.saturating_add(fast_blocks(options, len));
    if u64::from(len) > blocks / 2 {
        return Err(refused(format!(
            "a journal of {len} blocks would take more than half of the file system's {blocks}"
        )));
    }
    let goal = plan.layout.group_start(middle(plan));
    let len = u64::from(len);
    let first = plan.layout.first_data_block;
    let clusters = len.next_multiple_of(plan.layout.blocks_per_cluster.into());
    let whole = plan
        .space
        .find(goal, blocks, clusters)
        // In one piece near the goal, if that does not lead far away.
        .filter(|at| at - goal <= u64::from(plan.layout.blocks_per_group));
    let runs = match whole {
        Some(at) => {
            plan.space.mark(at, clusters);
            Some(vec![(at, len)])
        }
        None => plan.take_from(goal, len).or_else(|| plan.take_from(first, len)),
    };
    runs.ok_or_else(|| refused(format!("no room for a journal of {len} blocks")))
}

/// The group in which the journal is to begin: the emptiest of those around the middle, or the
/// first of the flexible group there.
fn middle(plan: &Plan) -> GroupNo {
    let layout = &plan.layout;
    let half = (layout.blocks_count - layout.first_data_block) / 2;
    let middle = layout.group_of_block(half).map_or(0, |(g, _)| g.0);
    let flex = layout.groups_per_flex;
    let free =
        |g: u32| layout.blocks_in_group(GroupNo(g)).saturating_sub(plan.used_blocks(GroupNo(g)));
    let (start, near) = if flex > 1 && middle > flex {
        let start = (middle & !(flex - 1)..layout.groups).find(|g| free(*g) > 0).unwrap_or(0);
        (start, start)
    } else {
        (middle.saturating_sub(1), middle)
    };
    let end = (near + 1).min(layout.groups - 1);
    // The first of the emptiest.
    let best = (start..=end).rev().max_by_key(|g| free(*g)).unwrap_or(start);
    GroupNo(best)
}

/// Checks that the chosen external journal fits and that nobody uses it. Changes nothing.
pub(super) fn check_external(
    device: &Arc<dyn BlockDevice>,
    layout: &Layout,
    options: &Options,
) -> Result<Option<ExternalJournal>> {
    let JournalChoice::External { device: journal, accept_volatile } = &options.journal else {
        return Ok(None);
    };
    let info = journal.info();
    let bad = |what: String| refused(format!("journal {}: {what}", info.name));
    if Arc::ptr_eq(device, journal) {
        return Err(bad("it is the file system's own device".into()));
    }
    if !accept_volatile && let Some(reason) = info.unfit_to_persist() {
        return Err(refused(format!(
            "unfit to be a journal: {reason}; the journal would be lost with the power \
             (--accept-volatile takes it all the same)"
        )));
    }
    if info.read_only {
        return Err(bad("the device is read-only".into()));
    }
    let found = external::open_device(Arc::clone(journal))?;
    let theirs = found.log.block_size();
    if theirs != layout.block_size {
        return Err(bad(format!(
            "it has blocks of {theirs} bytes, the file system of {}; they must be equal",
            layout.block_size
        )));
    }
    if found.superblock.nr_users() > 0 {
        let users: Vec<String> = found.superblock.users().iter().map(Uuid::to_string).collect();
        return Err(bad(format!(
            "it is already the journal of file system {}; a journal serves one: make another, or \
             make this one anew with mkfs -O journal_dev if that file system is gone",
            users.join(", ")
        )));
    }
    if found.superblock.start().is_some() {
        return Err(bad("it holds transactions that were never replayed; make it anew".into()));
    }
    Ok(Some(ExternalJournal { uuid: found.uuid, device: Arc::clone(journal) }))
}

/// Makes the internal journal empty, or enters the file system as the external one's user.
pub(super) fn format(
    device: &Arc<dyn BlockDevice>,
    plan: &Plan,
    options: &Options,
    external_journal: Option<&ExternalJournal>,
) -> Result<()> {
    if let Some(external) = external_journal {
        let block_size = plan.layout.block_size;
        external::attach(Arc::clone(&external.device), options.uuid, block_size)?;
    } else if !plan.journal.is_empty() {
        let features = plan.layout.features;
        let mut how = FormatOptions::new(options.uuid);
        let v3 = features.metadata_csum();
        how.checksums = if v3 { jbd2::Checksums::V3 } else { jbd2::Checksums::None };
        how.wide = features.incompat.contains(Incompat::BIT64);
        how.fast_blocks = fast_blocks(options, log_blocks(plan, options)?);
        how.erase = options.contents != Contents::Zeros;
        let mut extents = Vec::new();
        let mut at = 0u32;
        for (start, len) in &plan.journal {
            let len = *len as u32;
            extents.push(LogExtent { log_block: LogBlock(at), device_block: *start, len });
            at += len;
        }
        let log = Log::internal(Arc::clone(device), plan.layout.block_size, extents)?;
        jbd2::format(&log, &how)?;
    }
    Ok(())
}
