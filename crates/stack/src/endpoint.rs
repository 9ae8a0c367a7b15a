//! A named device, RAM disk or volume, as one block device with counters, which may be open as a
//! file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, Persistence, Request, Result};
use steadfast_devices::filter::{Stat, StatCounters};
use steadfast_runtime::RwLock;
use steadfast_volume::rows::AbsentDevice;

pub(crate) type Device = Arc<dyn BlockDevice>;

/// The device below, which may be opened again after a failure.
struct EndpointDevice(RwLock<Arc<dyn BlockDevice>>);

impl EndpointDevice {
    fn device(&self) -> Arc<dyn BlockDevice> {
        Arc::clone(&self.0.read())
    }
}

impl BlockDevice for EndpointDevice {
    fn info(&self) -> DeviceInfo {
        self.device().info()
    }

    fn submit(&self, request: Request) -> Completion {
        self.device().submit(request)
    }

    fn execute(&self, request: Request) -> Result<Bytes> {
        self.device().execute(request)
    }

    fn first_data(&self) -> Result<Option<u64>> {
        self.device().first_data()
    }
}

/// A block device under its name of the stack.
pub struct Endpoint {
    name: String,
    /// It does not count as keeping its contents, whatever it says of itself.
    volatile: bool,
    opened: Arc<EndpointDevice>,
    stat: Stat,
    /// Distinguishes it from every other one that there was since the host was started.
    number: u64,
    /// How many have its file open.
    open: AtomicU32,
    /// Its file was opened for writing.
    written: AtomicBool,
    /// Held shared by writes of whole blocks, and exclusively by those that read what is around
    /// them: so two of these in one block do not lose each other's bytes.
    pub(crate) edges: RwLock<()>,
}

impl Endpoint {
    pub(crate) fn new(
        name: &str,
        number: u64,
        next: Arc<dyn BlockDevice>,
        volatile: bool,
    ) -> Arc<Endpoint> {
        let opened = Arc::new(EndpointDevice(RwLock::new(next)));
        Arc::new(Endpoint {
            name: name.to_owned(),
            volatile,
            stat: Stat::new(Arc::clone(&opened) as Arc<dyn BlockDevice>),
            opened,
            number,
            open: AtomicU32::new(0),
            written: AtomicBool::new(false),
            edges: RwLock::new(()),
        })
    }

    /// Lets the device go, and has it opened again: a file or device that failed is not the same
    /// when it is back. What fails says so at every request until the next time.
    pub(crate) fn reopen<E>(
        &self,
        open: impl FnOnce() -> std::result::Result<Arc<dyn BlockDevice>, E>,
    ) -> std::result::Result<(), E> {
        let (info, reason) = (self.opened.device().info(), "it could not be opened again");
        *self.opened.0.write() = Arc::new(AbsentDevice { info, reason });
        let device = open()?;
        *self.opened.0.write() = device;
        Ok(())
    }

    /// The device below the counters: the host's own reads are not counted.
    pub(crate) fn inner_device(&self) -> Arc<dyn BlockDevice> {
        Arc::clone(&self.opened) as Arc<dyn BlockDevice>
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What went through it.
    pub fn counters(&self) -> StatCounters {
        self.stat.counters()
    }

    /// How many have its file open.
    pub(crate) fn open_count(&self) -> u32 {
        self.open.load(Ordering::Acquire)
    }

    pub(crate) fn opened(&self, for_writing: bool) {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.written.fetch_or(for_writing, Ordering::AcqRel);
    }

    /// Whether it may hold what was written through its file, and not through a volume.
    pub(crate) fn was_written_as_a_file(&self) -> bool {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn closed(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether it does not count as keeping its contents without power.
    pub fn is_volatile(&self) -> bool {
        self.info().unfit_to_persist().is_some()
    }
}

impl BlockDevice for Endpoint {
    fn info(&self) -> DeviceInfo {
        let mut info = self.stat.info();
        info.name.clone_from(&self.name);
        if self.volatile && info.persistence == Persistence::Persistent {
            let reason = "it was configured as volatile".to_owned();
            info.persistence = Persistence::Volatile { reason };
        }
        info
    }

    fn submit(&self, request: Request) -> Completion {
        self.stat.submit(request)
    }

    fn execute(&self, request: Request) -> Result<Bytes> {
        self.stat.execute(request)
    }
}
