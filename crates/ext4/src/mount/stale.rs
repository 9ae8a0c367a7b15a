//! An external journal of an earlier time.
//!
//! A journal device can be put back as it was some time ago: from a snapshot, a backup, the leg
//! of a mirror that was away. It has the right name, the right user and whole transactions, and
//! replaying them writes old metadata over new. The superblocks of ext4 and JBD2 keep no count of
//! each other, but two times can be held against each other:
//!
//! * The log of a mounted file system was empty when it was mounted, so what it holds has been
//!   committed since. A log whose newest commit is older than the last mount (`s_mtime`) is of an
//!   earlier one.
//! * If the log holds an image of the superblock, its time of mount is that of the mount that
//!   wrote it. This needs no clock that goes right: the same time is proof enough that it is ours.
//!
//! Within one mount the disk itself says how far the log must go: the home mark (see
//! `ondisk/home_mark.rs`). It counts only for the mount and the journal that wrote it, and where it
//! does, it decides alone. A log that was put back as it was before, but after all that it held so
//! far had gone home, is not refused: the file system is whole, what was promised since is missing.

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{Layout, Superblock};
use steadfast_ext4_format::{Result, refused};
use steadfast_journal::{FsBlock, Log, Recovery, Tid};

/// The time of a commit is that of the last tick of a coarse clock.
const SLACK_SECONDS: u64 = 1;

fn mounted_at(sb: &Superblock) -> u64 {
    u64::from(sb.mount_time.get()) | u64::from(sb.mount_time_hi) << 32
}

/// Refuses a log that is older than what is on the file system's device, as far as this is known.
/// Reads only.
pub(super) fn refuse(
    device: &dyn BlockDevice,
    superblock: &Superblock,
    layout: &Layout,
    log: &Log,
) -> Result<()> {
    let Recovery { report, overlay, .. } = Recovery::read(log, device)?;
    if let Some(mark) = superblock.home_mark() {
        return check_mark(log, report.newest_tid(), mark);
    }
    let Some(newest) = report.newest_commit else { return Ok(()) };
    let mounted = mounted_at(superblock);
    let (block, offset) = layout.superblock_place();
    let logged = overlay.get(&FsBlock(block)).and_then(|b| Superblock::parse(&b[offset..]).ok());
    let older = match logged {
        Some(sb) => {
            mounted_at(&sb) < mounted && sb.mount_count.get() != superblock.mount_count.get()
        }
        None => newest.saturating_add(SLACK_SECONDS) < mounted,
    };
    if !older {
        return Ok(());
    }
    let what = format!(
        "{}: this journal is older than the file system: its last transaction was committed at \
         {newest}, the file system was mounted at {mounted} (seconds since 1970). Replaying it \
         would write old metadata over new. Give the journal of the last mount; if that is lost, \
         `steadfast journal detach --discard-unreplayed`; if it is the right one all the same, \
         because the clock was wrong, e2fsck -fy replays it",
        log.device().info().name
    );
    refused(what)
}

/// Refuses a log that ends before a transaction of which blocks are in their places.
fn check_mark(log: &Log, newest: Tid, mark: Tid) -> Result<()> {
    if newest.is_at_least(mark) {
        return Ok(());
    }
    let what = format!(
        "{}: this journal is older than the file system: it ends with transaction {newest}, and \
         blocks of transaction {mark} are on the disk already. It is a copy from before (a \
         snapshot, a backup, a card restored), and replaying it would write old metadata over new. \
         Give the journal as it was last; if that is lost, `steadfast journal detach \
         --discard-unreplayed`, then e2fsck -f",
        log.device().info().name
    );
    refused(what)
}
