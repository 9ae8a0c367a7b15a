//! The file system of a setup: made, and mounted.

use std::sync::Arc;

use steadfast_ext4::options::default_options;
use steadfast_ext4::{Ext4, Ext4Error, MountOptions};
use steadfast_ext4_mkfs::{self as mkfs, Contents, JournalChoice, JournalDeviceOptions, Options};

use crate::description::Setup;
use crate::devices::Blocks;
use crate::error::SetupError;
use crate::options;

impl Blocks {
    /// Makes the file system of a setup on them, with the root folder for this user and group. In a
    /// simulation the identity follows from its seed. `contents` is what a modelled disk holds.
    ///
    /// # Errors
    /// As [`make_with`](Self::make_with), or the setup's options cannot be taken.
    pub fn make(
        &self,
        setup: &Setup,
        contents: Contents,
        root_owner: (u32, u32),
    ) -> Result<(), SetupError> {
        let contents = if self.is_used { Contents::UnknownZeroTables } else { contents };
        let options = Options { contents, root_owner, ..options::mkfs(&setup.mkfs)? };
        let zeros = !self.is_used;
        let journal = |time| JournalDeviceOptions { zeros, ..JournalDeviceOptions::random(time) };
        Ok(self.make_with(options, journal)?)
    }

    /// Finds out whether [`make`](Self::make) would be refused; writes nothing.
    pub(crate) fn look(&self, setup: &Setup) -> Result<(), SetupError> {
        let mut options = options::mkfs(&setup.mkfs)?;
        if let Some(device) = &self.journal {
            let mut journal = JournalDeviceOptions::random(options.time);
            journal.block_size = *options.block_size.get_or_insert(journal.block_size);
            mkfs::look_journal_device(device, &journal)?;
            options.journal = JournalChoice::None;
        }
        Ok(mkfs::look(&self.disk, &options).map(drop)?)
    }

    /// Makes a file system, and its journal where that is on a device of its own: with the same
    /// blocks. `journal` makes the other options at a time.
    ///
    /// # Errors
    /// A device is too small or fails, or the options do not go together.
    pub fn make_with(
        &self,
        mut options: Options,
        journal: impl FnOnce(u64) -> JournalDeviceOptions,
    ) -> Result<(), Ext4Error> {
        if let Some(device) = &self.journal {
            let mut journal = journal(options.time);
            journal.block_size = *options.block_size.get_or_insert(journal.block_size);
            mkfs::make_journal_device(device, &journal)?;
            let (device, accept_volatile) = (Arc::clone(device), journal.accept_volatile);
            options.journal = JournalChoice::External { device, accept_volatile };
        }
        mkfs::make(&self.disk, &options).map(drop)
    }

    /// How the file system on them asks to be mounted by its superblock (`tune2fs -o`,
    /// `-E mount_opts=`), over `base` and with the journal's device; and what it asks for and does
    /// not get, a line each, for people.
    pub fn default_options(&self, base: MountOptions) -> (MountOptions, Vec<String>) {
        let (mut options, notes) = default_options(&self.disk, base);
        self.put_journal(&mut options);
        (options, notes)
    }

    fn put_journal(&self, options: &mut MountOptions) {
        if let Some(journal) = &self.journal {
            options.journal_device = Some(Arc::clone(journal));
            options.journal_number = self.journal_number;
        }
    }

    /// Recovers and mounts the file system on them; the journal's device is put in.
    ///
    /// # Errors
    /// There is none, or it cannot be mounted with these options.
    pub fn mount(&self, mut options: MountOptions) -> Result<Arc<Ext4>, Ext4Error> {
        self.put_journal(&mut options);
        self.arm_faults();
        Ext4::mount(Arc::clone(&self.disk), options)
    }
}

impl Setup {
    /// Its mount options with so much page cache: its own, then what its machine decides.
    ///
    /// # Errors
    /// Those of the description that cannot be taken.
    pub fn mount_options(&self, memory_bytes: u64) -> Result<MountOptions, SetupError> {
        let mut options = options::mount(&self.mount)?;
        self.machine.apply(memory_bytes, &mut options);
        Ok(options)
    }

    /// Makes the file system on new devices, mounts and unmounts it, in a simulation: what mkfs and
    /// the mount refuse, options that do not go together or a journal that has no room, is known
    /// then.
    ///
    /// # Errors
    /// It cannot be built, with the reason.
    pub fn try_out(self) -> Result<(), SetupError> {
        self.simulation(1).run(move || {
            let blocks = crate::Devices::build(&self)?.blocks()?;
            blocks.make(&self, Contents::Zeros, (0, 0))?;
            blocks.mount(options::mount(&self.mount)?)?.unmount().map_err(SetupError::Unmount)?;
            blocks.close()
        })?
    }
}
