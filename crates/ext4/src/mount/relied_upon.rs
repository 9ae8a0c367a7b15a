//! What a mount relies upon, looked at before it writes anything: a file system that is refused is
//! left as it is, its journal too. The kernel's `ext4_fill_super` asks the same, after its replay.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{Incompat, InodeNo, Layout};
use steadfast_ext4_format::{Ext4Error, RangeSet, Result, refused, superblock};
use steadfast_journal::Overlay;
use steadfast_vfs::FileType;

use super::check_transactable;
use super::journal::{self, OpenLog};
use crate::file::check_dax;
use crate::meta::Parts;
use crate::options::{DataMode, MountOptions};
use crate::stage::{stage_over, stage_to_read};
use crate::state::Protection;

/// Refuses what could not be mounted once the blocks of `replayed` are in their places.
pub(super) fn check_over(
    device: &Arc<dyn BlockDevice>,
    replayed: &Overlay,
    found: Option<&OpenLog>,
    options: &MountOptions,
) -> Result<()> {
    // Superblock, descriptors, orphans and quota files are looked at on the way. Where the
    // journal's inode is damaged it is read only, and the orphans are left alone.
    let by_backup = found.is_some_and(|found| found.by_backup.is_some());
    let stage = if by_backup { stage_to_read } else { stage_over };
    let blocks = found.map(|found| found.blocks.clone()).unwrap_or_default();
    let parts = stage(device, replayed, blocks)?;
    if options.data == DataMode::Transact {
        check_transactable(&parts.volume.layout)?;
    }
    check_dax(&parts.volume, options)?;
    check_orphans(&parts)?;
    check_root(&parts)
}

/// Looks whether a file system whose journal holds nothing could be mounted; nothing is written.
/// The error that a mount for writing would give, where one with
/// [`read_only`](MountOptions::read_only) would be good.
///
/// # Errors
/// As for a read-only mount.
pub fn check_mountable(
    device: &Arc<dyn BlockDevice>,
    options: &MountOptions,
) -> Result<Option<Ext4Error>> {
    let superblock = superblock::read(&**device, &Overlay::new())?;
    let layout = Layout::new(&superblock, device.info().size)?;
    let found = journal::find(device, &superblock, &layout, options)?;
    let for_writing = || {
        if layout.features.incompat.contains(Incompat::MMP) {
            Protection::check(&**device, &superblock)?;
        }
        check_over(device, &Overlay::new(), found.as_ref(), options)
    };
    let Err(e) = for_writing() else { return Ok(None) };
    check_root(&stage_to_read(device, &Overlay::new(), RangeSet::new())?)?;
    Ok(Some(e))
}

/// Refuses a file system whose blocks are smaller than the device's.
pub(super) fn check_sectors(device: &dyn BlockDevice, layout: &Layout) -> Result<()> {
    let sector = device.info().logical_block;
    if layout.block_size >= sector {
        return Ok(());
    }
    let what = format!(
        "{} has sectors of {sector} bytes, the file system blocks of {}: it cannot be used there; \
         make it with blocks of {sector} bytes",
        device.info().name,
        layout.block_size
    );
    refused(what)
}

/// Refuses orphans that are not in use, which could be neither deleted nor cut.
pub(super) fn check_orphans(parts: &Parts) -> Result<()> {
    let all = parts.lock_meta().orphans.all();
    for no in all {
        parts.look().raw_inode(no).map_err(|e| match e {
            Ext4Error::Fs(_) => {
                let what = "an orphan that is not in use: let e2fsck repair this";
                Ext4Error::corrupt(what, format!("inode {no}"))
            }
            other => other,
        })?;
    }
    Ok(())
}

/// Refuses a file system whose root directory is none.
pub(super) fn check_root(parts: &Parts) -> Result<()> {
    let txn = parts.look();
    let raw = txn.own_inode(InodeNo::ROOT, "root directory")?;
    let wrong = if raw.file_type() != Some(FileType::Directory) {
        "is no directory"
    } else if raw.links() == 0 {
        "has no links"
    } else if raw.size() == 0
        || (raw.sectors(parts.volume.layout.block_size) == 0 && !raw.is_inline())
    {
        "has no contents"
    } else {
        return Ok(());
    };
    let what = format!(
        "the root directory {wrong}, and nothing can be reached without it: let e2fsck -f repair \
         this"
    );
    Err(Ext4Error::corrupt(what, "inode 2"))
}
