//! Makes a file system, or a journal device.
//!
//! What comes out is what mke2fs 1.47 makes of the same size and options, number for number where
//! e2fsck or the kernel could see the difference, and in the same places within a flexible group.
//!
//! # How
//!
//! 1. `choices`, `counts` and `geometry` settle sizes and counts in a superblock; a [`Layout`]
//!    follows from it.
//! 2. `plan` places everything, without touching the device: tables, the few files
//!    that a fresh file system has, the journal. What cannot be is refused here.
//! 3. `write` puts it on the device. The old primary superblock is wiped first and the new one
//!    is written last, after a flush, so that a power cut leaves no file system, never half a one.
//!
//! Nothing is random and nothing is asked of a clock: UUID, hash seed and time are options. The
//! same options on a device of the same size give the same bytes.
//!
//! ```
//! use std::sync::Arc;
//! use steadfast_block::BlockDevice;
//! use steadfast_devices::source::Ram;
//! use steadfast_ext4_mkfs::{Options, make};
//!
//! let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 16 << 20));
//! let made = make(&disk, &Options::random(1_700_000_000))?;
//! assert!(made.journal_blocks.is_some());
//! # Ok::<(), steadfast_ext4_format::Ext4Error>(())
//! ```

mod choices;
mod counts;
mod geometry;
mod inodes;
mod journal;
mod journal_device;
mod made;
pub mod option_table;
mod options;
mod plan;
mod pointers;
mod quota;
mod space;
mod tables;
mod write;

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::Layout;

use options::refused;

pub use choices::default_block_size;
pub use journal::default_blocks as default_journal_blocks;
pub use journal_device::{
    JournalDeviceOptions, MadeJournalDevice, look_journal_device, make_journal_device,
};
pub use made::MkfsReport;
pub use options::{Contents, JournalChoice, Options, hash_seed_of, random_uuid};

/// Makes a file system on `device`. Whatever was there is lost.
///
/// # Errors
/// [`Refused`](steadfast_ext4_format::Ext4Error::Refused) if the options or the devices do not fit,
/// before anything is written; errors of the devices.
pub fn make(device: &Arc<dyn BlockDevice>, options: &Options) -> Result<MkfsReport> {
    let info = device.info();
    if info.read_only {
        return Err(refused(format!("{}: the device is read-only", info.name)));
    }
    let (mut plan, external) = planned(device, options)?;
    let written = write::write(device, &mut plan, options)?;
    journal::format(device, &plan, options, external.as_ref())?;
    write::commit(device, &plan)?;
    Ok(MkfsReport::of(&plan, &info.name, written))
}

/// What [`make`] would make. Nothing is written.
///
/// # Errors
/// As [`make`]: what cannot be made is refused here too.
pub fn look(device: &Arc<dyn BlockDevice>, options: &Options) -> Result<MkfsReport> {
    let (plan, _) = planned(device, options)?;
    Ok(MkfsReport::of(&plan, &device.info().name, 0))
}

fn planned(
    device: &Arc<dyn BlockDevice>,
    options: &Options,
) -> Result<(plan::Plan, Option<journal::ExternalJournal>)> {
    let info = device.info();
    let sb = geometry::superblock(&info, options)?;
    let layout = Layout::new(&sb, info.size)?;
    let external = journal::check_external(device, &layout, options)?;
    let mut plan = plan::Plan::new(sb, layout, options)?;
    if let Some(external) = &external {
        plan.attach(external);
    }
    Ok((plan, external))
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
