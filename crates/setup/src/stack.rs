//! A setup that is up: its devices, and its file system, which is made when it is first asked for,
//! and mounted again after it was unmounted, so that nothing is kept of what was written.

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4::Ext4;
use steadfast_ext4_mkfs::Contents;
use steadfast_runtime::Mutex;

use crate::description::{Setup, Topology};
use crate::devices::{Blocks, Devices, Overwrite};
use crate::error::SetupError;

/// Devices and volumes that are had by their names: each new, used by nobody else, and the same
/// each time.
pub struct NamedDevices {
    topology: Topology,
    overwrite: Overwrite,
    // Held while one is built.
    open: Mutex<BTreeMap<String, Blocks>>,
}

impl NamedDevices {
    /// Those of a description.
    pub fn new(topology: Topology, overwrite: Overwrite) -> NamedDevices {
        NamedDevices { topology, overwrite, open: Mutex::default() }
    }

    /// The one of this name.
    ///
    /// # Errors
    /// There is none, or it cannot be built.
    pub fn get(&self, name: &str) -> Result<Arc<dyn BlockDevice>, SetupError> {
        let mut open = self.open.lock();
        if let Some(blocks) = open.get(name) {
            return Ok(Arc::clone(&blocks.disk));
        }
        let blocks = self.topology.open(name, self.overwrite)?;
        open.insert(name.to_owned(), blocks.clone());
        Ok(blocks.disk)
    }

    /// Ends the use of the volumes.
    ///
    /// # Errors
    /// As [`Blocks::close`].
    pub fn close(&self) -> Result<(), SetupError> {
        let open = std::mem::take(&mut *self.open.lock());
        open.values().map(Blocks::close).fold(Ok(()), Result::and)
    }
}

/// A stack, on devices that were zeros.
pub struct Stack {
    setup: Setup,
    memory_bytes: u64,
    overwrite: Overwrite,
    // Held while they are built and the file system is made.
    built: Mutex<Option<Blocks>>,
    // Held while it is mounted and unmounted.
    mounted: Mutex<Option<Arc<Ext4>>>,
    others: NamedDevices,
}

impl Stack {
    /// A setup on a machine with so much page cache. Nothing is built yet.
    pub fn new(setup: Setup, memory_bytes: u64, overwrite: Overwrite) -> Stack {
        let others = NamedDevices::new(setup.topology.clone(), overwrite);
        Stack {
            setup,
            memory_bytes,
            overwrite,
            built: Mutex::default(),
            mounted: Mutex::default(),
            others,
        }
    }

    /// What it is.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Bytes of its page cache.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Builds the devices and makes the file system now.
    ///
    /// # Errors
    /// They cannot be built, or the file system cannot be made.
    pub fn make(&self) -> Result<(), SetupError> {
        self.blocks().map(drop)
    }

    /// The devices, with a file system.
    fn blocks(&self) -> Result<Blocks, SetupError> {
        let mut built = self.built.lock();
        if let Some(blocks) = &*built {
            return Ok(blocks.clone());
        }
        let blocks = Devices::open(&self.setup, self.overwrite)?.blocks()?;
        blocks.make(&self.setup, Contents::Zeros, (0, 0))?;
        *built = Some(blocks.clone());
        Ok(blocks)
    }

    /// The file system.
    ///
    /// # Errors
    /// It cannot be made or mounted.
    pub fn mounted(&self) -> Result<Arc<Ext4>, SetupError> {
        let mut mounted = self.mounted.lock();
        if let Some(fs) = &*mounted {
            return Ok(Arc::clone(fs));
        }
        let blocks = self.blocks()?;
        let fs = blocks.mount(self.setup.mount_options(self.memory_bytes)?)?;
        *mounted = Some(Arc::clone(&fs));
        Ok(fs)
    }

    /// Writes everything back and forgets what was kept of it: what is read next is read from the
    /// devices.
    ///
    /// # Errors
    /// What could not be written.
    pub fn unmount(&self) -> Result<(), SetupError> {
        let mounted = self.mounted.lock().take();
        mounted.map_or(Ok(()), |fs| fs.unmount().map_err(SetupError::Unmount))
    }

    /// The device or volume that holds the file system, unmounted: what the file system kept in
    /// memory is on it.
    ///
    /// # Errors
    /// It cannot be built, or what was kept cannot be written.
    pub fn own_disk(&self) -> Result<Arc<dyn BlockDevice>, SetupError> {
        self.unmount()?;
        let blocks = self.blocks()?;
        blocks.arm_faults();
        Ok(blocks.disk)
    }

    /// A device or volume by its name, new and used by nobody else, and the same each time: also
    /// one that the file system's disk or journal is made of.
    ///
    /// # Errors
    /// There is none of that name, or it cannot be built.
    pub fn device(&self, name: &str) -> Result<Arc<dyn BlockDevice>, SetupError> {
        self.others.get(name)
    }

    /// Unmounts, and ends the use of the volumes.
    ///
    /// # Errors
    /// What could not be written or closed.
    pub fn shut_down(&self) -> Result<(), SetupError> {
        self.unmount()?;
        let built = self.built.lock().take().map_or(Ok(()), |blocks| blocks.close());
        built.and(self.others.close())
    }
}
