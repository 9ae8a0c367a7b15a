//! Another journal for an existing file system: attach, detach, move, and what there is.
//!
//! # How a cut is survived
//!
//! A file system names its journal in the first sector of its superblock, and that sector is
//! written once (see `ondisk::atomic_write`; on memory in steps, `ondisk::redo`): before, the old
//! journal counts, after, the new one. What else must change with it (the blocks that an internal
//! journal takes or gives back) is put into the *new* journal beforehand, as a transaction that has
//! committed, and the superblock that names the journal says that it is to be replayed. So the
//! first recovery does the rest, ours or the kernel's, and there is no moment at which half of it
//! counts.
//!
//! Two moments are left in which e2fsck has something to tidy, without asking anybody:
//!
//! * A new internal journal's inode must be there before the superblock names it. Until then it
//!   is an inode that is not used but not empty; nobody looks at it.
//! * A file system that gives up an internal journal for none has no other to do it with. It
//!   says that it was not unmounted cleanly until the blocks have been given back. On memory,
//!   where that would tear descriptors, it is the last transaction of that journal (`give_up`).
//!
//! A journal that is given up without having been replayed gets a new identity, if it is at hand:
//! whoever brings it back later can replay it over nothing.
//!
//! ```
//! use std::sync::Arc;
//! use steadfast_block::BlockDevice;
//! use steadfast_devices::source::Ram;
//! use steadfast_ext4_mkfs::{Options, make};
//! use steadfast_ext4_tune::{JournalPlace, Loss, detach, status};
//!
//! let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 16 << 20));
//! make(&disk, &Options::random(1_700_000_000))?;
//! detach(&disk, None, Loss::Refuse)?;
//! assert_eq!(status(&disk, None)?.place, JournalPlace::None);
//! # Ok::<(), steadfast_ext4_format::Ext4Error>(())
//! ```

mod attach;
mod bootstrap;
mod detach;
mod give_up;
mod named;
mod status;

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4::Ext4;
use steadfast_ext4::MountOptions;
use steadfast_ext4_format::ondisk::{
    Incompat, Layout, RoCompat, StateFlags, Superblock, check_supported_filesystem,
};
use steadfast_ext4_format::{Ext4Error, Result, superblock};

pub use attach::{Attached, attach, move_to};
pub use detach::{Detached, Discarded, Loss, detach};
pub use status::{JournalPlace, JournalStatus, Pending, status};

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

fn refused<T>(what: impl Into<String>) -> Result<T> {
    Err(Ext4Error::Refused { what: what.into() })
}

/// Reads the superblock as it stands.
fn load(device: &Arc<dyn BlockDevice>) -> Result<(Superblock, Layout)> {
    let superblock = superblock::read(&**device, &steadfast_journal::Overlay::new())?;
    check_supported_filesystem(&superblock)?;
    let layout = Layout::new(&superblock, device.info().size)?;
    Ok((superblock, layout))
}

fn needs_recovery(sb: &Superblock) -> bool {
    sb.features().incompat.contains(Incompat::NEEDS_RECOVERY)
}

fn mount_options(journal: Option<&JournalDevice>) -> MountOptions {
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
fn settle(device: &Arc<dyn BlockDevice>, journal: Option<&JournalDevice>) -> Result<Superblock> {
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
