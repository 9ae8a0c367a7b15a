//! A device in the program's own memory.
//!
//! Requests complete before `submit` returns; no time passes. Contents are a [`Store`]: sparse,
//! compressed, and copied in no time. The crash tools read a device through [`Ram::store`], and
//! start one from a crash state with [`Ram::from_store`].

mod params;

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{
    BlockDevice, BlockError, Completion, DeviceInfo, DirectMemory, Persistence, Request, Result,
    check,
};
use steadfast_runtime::Mutex;

use crate::model::parameters::Describe;
use crate::model::{Model, ModelError, exchange};
use crate::store::Store;
pub use params::RamParams;

/// A RAM disk. Clones are the same device.
///
/// ```
/// use steadfast_block::BlockDevice;
/// use steadfast_devices::source::Ram;
///
/// let disk = Ram::new("disk", 1 << 20);
/// disk.write(4096, vec![7; 512].into())?;
/// let copy = Ram::from_store("copy", disk.store());
/// disk.write(4096, vec![8; 512].into())?;
/// assert_eq!(copy.read(4096, 512)?, [7; 512].as_slice());
/// # Ok::<(), steadfast_block::BlockError>(())
/// ```
#[derive(Clone)]
pub struct Ram {
    info: DeviceInfo,
    store: Arc<Mutex<Store>>,
}

/// A RAM disk as it says of itself if nothing else is asked for.
fn ram_info(name: impl Into<String>, size: u64) -> DeviceInfo {
    let reason = "a RAM disk loses its contents when power is lost".into();
    let info = DeviceInfo::new(name, "RAM disk", size - size % 512);
    DeviceInfo { persistence: Persistence::Volatile { reason }, ..info }
}

impl Ram {
    /// An empty RAM disk of `size` bytes in 512-byte blocks; a rest of `size` that is no whole
    /// block is not used. It says of itself that it loses its contents with the power.
    pub fn new(name: impl Into<String>, size: u64) -> Self {
        Ram::from_store(name, Store::new(size))
    }

    /// A RAM disk with these contents.
    pub fn from_store(name: impl Into<String>, store: Store) -> Self {
        Ram { info: ram_info(name, store.size()), store: Arc::new(Mutex::new(store)) }
    }

    /// What parameters describe.
    pub(crate) fn described(
        name: &str,
        params: &RamParams,
    ) -> std::result::Result<Ram, ModelError> {
        params.check()?;
        let info = params.info(name);
        Ok(Ram { store: Arc::new(Mutex::new(Store::new(info.size))), info })
    }

    /// Says that the contents survive: for a stand-in of a persistent device in a test.
    pub fn persistent(mut self) -> Self {
        self.info.persistence = Persistence::Persistent;
        self
    }

    /// Says that completed writes may be lost until a flush: for recording what is flushed.
    pub fn with_volatile_cache(mut self) -> Self {
        self.info.volatile_cache = true;
        self
    }

    /// With logical, physical and atomic blocks of `bytes`; a rest of the size is not used.
    ///
    /// # Panics
    /// If `bytes` is not a power of two of at least 512.
    pub fn with_block(mut self, bytes: u32) -> Self {
        assert!(bytes.is_power_of_two() && bytes >= 512, "{bytes} bytes are no block");
        self.info.logical_block = bytes;
        self.info.physical_block = bytes;
        self.info.atomic_write = bytes;
        self.info.size -= self.info.size % u64::from(bytes);
        self
    }

    /// Says that a power cut keeps no more whole than aligned words of 8 bytes: memory that is
    /// written as a block device.
    pub fn with_atomic_words(mut self) -> Self {
        self.info.atomic_write = 8;
        self
    }

    /// A copy of the contents as they are now; takes no time and no memory.
    pub fn store(&self) -> Store {
        self.store.lock().clone()
    }

    /// Replaces the contents, as a power cut does.
    ///
    /// # Panics
    /// If the size differs from that of the contents so far.
    pub fn replace(&self, contents: Store) {
        let mut store = self.store.lock();
        assert_eq!(store.size(), contents.size(), "a RAM disk keeps its size");
        *store = contents;
    }

    fn perform(&self, request: &Request) -> Result<Bytes> {
        check(&self.info, request)?;
        let mut store = self.store.lock();
        match request {
            Request::Read { offset, len } => {
                if let Some(offset) = store.unreadable(*offset, *len) {
                    let reason = "the sector is unreadable".into();
                    let device = self.info.name.clone();
                    return Err(BlockError::Io { device, op: "read", offset, reason });
                }
                return Ok(store.read(*offset, *len));
            }
            Request::Write { offset, data, .. } => store.write(*offset, data),
            Request::Discard { offset, len } => store.discard(*offset, *len),
            Request::Flush => {}
        }
        Ok(Bytes::new())
    }
}

impl BlockDevice for Ram {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        Completion::ready(self.perform(&request))
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        Some(self)
    }

    // A waiting caller needs no completion: nothing takes time.

    fn execute(&self, request: Request) -> Result<Bytes> {
        self.perform(&request)
    }
}

impl Model for Ram {
    fn contents(&self) -> Store {
        self.store()
    }

    fn set_contents(&self, contents: Store) -> std::result::Result<(), ModelError> {
        exchange(&self.info.name, &mut self.store.lock(), contents)
    }
}

/// What is stored is there at once; nothing has to be written back.
impl DirectMemory for Ram {
    fn load(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.info.inside("load", offset, out.len() as u64)?;
        out.copy_from_slice(&self.store.lock().read(offset, out.len() as u64));
        Ok(())
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.info.inside("store", offset, data.len() as u64)?;
        self.store.lock().write_slice(offset, data);
        Ok(())
    }

    fn persist(&self, offset: u64, len: u64) -> Result<()> {
        self.info.inside("persist", offset, len)
    }

    fn fence(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_block::{conformance, pattern};
    use steadfast_runtime::Sim;

    fn make() -> Arc<dyn BlockDevice> {
        Arc::new(Ram::new("ram0", 8 << 20))
    }

    #[test]
    fn conforms() {
        conformance::run(&make);
        Sim::new(1).run(|| conformance::run(&make)).unwrap();
        conformance::run(&|| Arc::new(Ram::new("ram0", (8 << 20) + 700).with_block(4096)));
    }

    #[test]
    fn a_snapshot_stays_and_starts_another_device() {
        let ram = Ram::new("ram0", 1 << 20);
        ram.write(4096, pattern::bytes(1, 0, 4096).into()).unwrap();
        let kept = ram.store();
        ram.write(4096, pattern::bytes(2, 0, 4096).into()).unwrap();
        let other = Ram::from_store("ram1", kept.clone());
        assert_eq!(other.read(4096, 4096).unwrap(), pattern::bytes(1, 0, 4096));
        assert_eq!(ram.read(4096, 4096).unwrap(), pattern::bytes(2, 0, 4096));
        ram.replace(kept);
        assert_eq!(ram.read(4096, 4096).unwrap(), pattern::bytes(1, 0, 4096));
    }

    #[test]
    fn says_that_it_is_volatile() {
        let why = Ram::new("ram0", 4096).info().unfit_to_persist();
        assert_eq!(why.unwrap(), "ram0: a RAM disk loses its contents when power is lost");
        assert_eq!(Ram::new("ram0", 4096).persistent().info().unfit_to_persist(), None);
    }
}
