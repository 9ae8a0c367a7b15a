//! What a mount relies upon, looked at before it writes anything: a file system that is refused is
//! left as it is, its journal too. The kernel's `ext4_fill_super` asks the same, after its replay.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{InodeNo, Layout};
use steadfast_ext4_format::{Ext4Error, Result, superblock};
use steadfast_journal::Overlay;
use steadfast_vfs::FileType;

use super::journal::{self, Found};
use super::{check_transactable, protection_wait};
use crate::file::check_dax;
use crate::meta::Parts;
use crate::options::{DataMode, MountOptions};
use crate::stage::{stage_over, stage_to_read};

/// Refuses what could not be mounted once the blocks of `replayed` are in their places.
pub(super) fn check_over(
    device: &Arc<dyn BlockDevice>,
    replayed: &Overlay,
    found: Option<&Found>,
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
    check_root(&parts)
}

/// Refuses what could not be mounted although its journal holds nothing. Nothing is written.
///
/// # Errors
/// As for a mount.
pub fn check_mountable(device: &Arc<dyn BlockDevice>, options: &MountOptions) -> Result<()> {
    let superblock = superblock::read(&**device, &Overlay::new())?;
    let layout = Layout::new(&superblock, device.info().size)?;
    // The block that protects it must make sense; how long it is watched does not matter here.
    protection_wait(&**device)?;
    let found = journal::find(device, &superblock, &layout, options)?;
    check_over(device, &Overlay::new(), found.as_ref(), options)
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
