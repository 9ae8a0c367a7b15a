//! What every write does first: how far a file may reach, and its times.

use steadfast_ext4_format::Result;
use steadfast_vfs::FsError;

use crate::meta::Txn;
use crate::mounted::Ext4;
use crate::state::Inode;

/// Refuses what would end beyond the largest file; returns the end.
pub(crate) fn check_end(fs: &Ext4, inode: &Inode, offset: u64, len: u64) -> Result<u64> {
    match offset.checked_add(len) {
        Some(end) if end <= fs.volume.max_size(inode) => Ok(end),
        _ => Err(FsError::FileTooLarge.into()),
    }
}

/// Contents are about to change: sets the inode's times, in a transaction of its own, unless
/// they say this tick already (the kernel's `file_update_time`).
pub(crate) fn touch_written(fs: &Ext4, inode: &Inode) -> Result<()> {
    if times_are_old(fs, inode) {
        fs.parts.with_blocks(|| {
            let mut txn = fs.parts.begin_yielding()?;
            txn.touch(inode.no, true)?;
            txn.record();
            txn.finish()
        })?;
    }
    Ok(())
}

/// Whether an inode's times of change do not say this tick of the clock yet, or somebody knows
/// them.
pub(crate) fn times_are_old(fs: &Ext4, inode: &Inode) -> bool {
    let state = inode.state();
    let now = fs.volume.stamps.for_change(state.raw.ctime(), state.times_seen);
    state.raw.mtime() != now || state.raw.ctime() != now
}

/// As `touch_written`, in the transaction that changes the contents.
pub(crate) fn touch_within(fs: &Ext4, txn: &mut Txn<'_>, inode: &Inode) -> Result<()> {
    if times_are_old(fs, inode) { txn.touch(inode.no, true) } else { Ok(()) }
}
