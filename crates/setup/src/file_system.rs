//! The file system of a setup: made, and mounted.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_mkfs::{self as mkfs, Contents, JournalChoice, JournalDeviceOptions, Options};

use crate::description::Setup;
use crate::devices::Blocks;
use crate::error::SetupError;
use crate::options;

/// Makes a file system, and its journal where that is on a device of its own; `zeros`: that holds
/// nothing.
///
/// # Errors
/// A device is too small or fails, or the options do not go together.
pub fn make(
    disk: &Arc<dyn BlockDevice>,
    (journal, zeros): (Option<&Arc<dyn BlockDevice>>, bool),
    mut options: Options,
) -> Result<(), SetupError> {
    if let Some(device) = journal {
        let block_size = options.block_size.unwrap_or(4096);
        options.block_size = Some(block_size);
        let of_journal = JournalDeviceOptions {
            block_size,
            zeros,
            ..JournalDeviceOptions::random(options.time)
        };
        mkfs::make_journal_device(device, &of_journal)?;
        let device = Arc::clone(device);
        options.journal = JournalChoice::External { device, accept_volatile: false };
    }
    mkfs::make(disk, &options)?;
    Ok(())
}

impl Blocks {
    /// Makes the file system of a setup on them, with the root folder for this user and group. In a
    /// simulation the identity follows from its seed. `contents` is what a modelled disk holds.
    ///
    /// # Errors
    /// As [`make`].
    pub fn make(
        &self,
        setup: &Setup,
        contents: Contents,
        root_owner: (u32, u32),
    ) -> Result<(), SetupError> {
        let contents = if self.is_used { Contents::UnknownZeroTables } else { contents };
        let options = Options { contents, root_owner, ..options::mkfs(&setup.mkfs)? };
        make(&self.disk, (self.journal.as_ref(), !self.is_used), options)
    }

    /// The mount options of a setup with so much page cache: its own, then what its machine
    /// decides.
    ///
    /// # Errors
    /// Those of the description that cannot be taken.
    pub fn mount_options(
        &self,
        setup: &Setup,
        memory_bytes: u64,
    ) -> Result<MountOptions, SetupError> {
        let mut options = options::mount(&setup.mount)?;
        options.journal_device = self.journal.clone();
        setup.machine.apply(memory_bytes, &mut options);
        Ok(options)
    }

    /// Mounts the file system on them.
    ///
    /// # Errors
    /// There is none, or it cannot be mounted with these options.
    pub fn mount(&self, options: MountOptions) -> Result<Arc<Ext4>, SetupError> {
        self.arm_faults();
        Ok(Ext4::mount(Arc::clone(&self.disk), options)?)
    }
}

impl Setup {
    /// Makes the file system on new devices, mounts and unmounts it: what mkfs and the mount
    /// refuse, options that do not go together or a journal that has no room, is known then.
    ///
    /// # Errors
    /// It cannot be built, with the reason.
    pub fn try_out(&self) -> Result<(), SetupError> {
        let blocks = crate::Devices::build(self)?.blocks()?;
        blocks.make(self, Contents::Zeros, (0, 0))?;
        let mut options = options::mount(&self.mount)?;
        options.journal_device = blocks.journal.clone();
        blocks.mount(options)?.unmount().map_err(SetupError::Unmount)?;
        blocks.close()
    }
}
