//! What every change of the journal needs first: a file system that was looked at, and is settled.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_format::ondisk::{
    Incompat, Layout, RoCompat, StateFlags, Superblock, check_supported_filesystem,
};
use steadfast_ext4_format::{Result, refused, superblock};

/// A device that holds nothing but a journal.
#[derive(Clone)]
pub struct JournalDevice {
    /// The device.
    pub device: Arc<dyn BlockDevice>,
    /// Its number as the kernel encodes it in `s_journal_dev`, for a kernel that is to find it;
    /// 0 if it is no block device.
    pub number: u32,
    /// Takes a device that would lose the journal with the power.
    pub accept_volatile: bool,
}

/// Reads the superblock as it stands.
pub(crate) fn load(device: &Arc<dyn BlockDevice>) -> Result<(Superblock, Layout)> {
    let superblock = superblock::read(&**device, &steadfast_journal::Overlay::new())?;
    check_supported_filesystem(&superblock)?;
    let layout = Layout::new(&superblock, device.info().size)?;
    Ok((superblock, layout))
}

pub(crate) fn needs_recovery(sb: &Superblock) -> bool {
    sb.features().incompat.contains(Incompat::NEEDS_RECOVERY)
}

pub(crate) fn mount_options(journal: Option<&JournalDevice>) -> MountOptions {
    let mut options = MountOptions {
        journal_device: journal.map(|j| Arc::clone(&j.device)),
        use_reserved: true,
        ..MountOptions::default()
    };
    options.journal.accept_volatile = journal.is_none_or(|j| j.accept_volatile);
    options
}

/// Recovers the file system if it has to be, deletes its orphans, and gives its superblock, which
/// says that all is well.
pub(crate) fn settle(
    device: &Arc<dyn BlockDevice>,
    journal: Option<&JournalDevice>,
) -> Result<Superblock> {
    let (sb, _) = load(device)?;
    let orphans =
        sb.last_orphan.get() != 0 || sb.features().ro_compat.contains(RoCompat::ORPHAN_PRESENT);
    let journalled =
        sb.features().compat.contains(steadfast_ext4_format::ondisk::Compat::HAS_JOURNAL);
    if journalled && (needs_recovery(&sb) || orphans) {
        Ext4::mount(Arc::clone(device), mount_options(journal))?.unmount()?;
        device.flush()?;
    }
    let (sb, _) = load(device)?;
    let state = StateFlags::from_bits_retain(sb.state.get());
    if !state.contains(StateFlags::VALID) || state.contains(StateFlags::ERROR) {
        return refused(
            "the file system was not unmounted cleanly, or an error is recorded in it: let \
             e2fsck -f repair it first",
        );
    }
    if sb.last_orphan.get() != 0 || sb.features().ro_compat.contains(RoCompat::ORPHAN_PRESENT) {
        return refused("deleted files wait to be freed: mount and unmount it first");
    }
    Ok(sb)
}
