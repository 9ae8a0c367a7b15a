//! A sector namespace as a block device.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{
    self as block, BlockDevice, BlockError, Completion, DeviceInfo, DirectMemory, Request, check,
};

use super::arena::Arena;
use super::error::{NEEDS_MEMORY, none};
use super::find::{BttInfo, find, summary};
use super::info::Version;
use super::planted::Bug;
use super::recover;
use crate::filter::namespace::{Result, memory};
use steadfast_block::planted::BugSwitch;

/// Only where each request is one sector does Linux read a discarded one right; see `discard`.
const DISCARD_SECTOR: u32 = 4096;

/// A sector namespace, in use.
///
/// Requests are done, and answered, before `submit` returns. Each sector of a write is old or new
/// after a power cut, and durable when the write is answered: there is nothing to flush. After a
/// store to its tables has failed, an arena is read only until it is opened again.
pub struct Btt {
    device: Arc<dyn BlockDevice>,
    info: BttInfo,
    device_info: DeviceInfo,
    arenas: Vec<Arena>,
    planted: BugSwitch<Bug>,
}

/// Opens a sector namespace: reads its flog, and finishes the writes that a power cut interrupted.
/// Takes some hundred bytes of memory for each lane, whatever the size; the map stays where it is.
///
/// # Errors
/// [`NotMemory`](crate::filter::NamespaceError::NotMemory),
/// [`None`](crate::filter::NamespaceError::None), and all of [`probe`](super::probe).
/// [`Refused`](crate::filter::NamespaceError::Refused) if something has to be finished and the
/// device is read only.
pub fn open(device: &Arc<dyn BlockDevice>) -> Result<Btt> {
    Btt::open(device, None, BugSwitch::default())
}

/// As [`open`], of a namespace whose label says of which version it is.
///
/// # Errors
/// Those of [`open`].
pub fn open_as(device: &Arc<dyn BlockDevice>, version: Option<Version>) -> Result<Btt> {
    Btt::open(device, version, BugSwitch::default())
}

impl Btt {
    /// As [`open`], with a bug.
    ///
    /// # Errors
    /// Those of [`open`].
    pub fn open_planted(device: &Arc<dyn BlockDevice>, planted: BugSwitch<Bug>) -> Result<Btt> {
        Btt::open(device, None, planted)
    }

    fn open(
        device: &Arc<dyn BlockDevice>,
        version: Option<Version>,
        planted: BugSwitch<Bug>,
    ) -> Result<Btt> {
        let below = device.info();
        let memory = memory(&**device, NEEDS_MEMORY)?;
        let Some(found) = find(&**device, version)? else {
            return Err(none(below.name));
        };
        let info = summary(&found);
        let name = format!("{} (sectors)", below.name);
        let arenas: Result<Vec<Arena>> = found
            .iter()
            .map(|found| recover::open(&**device, memory, (&below.name, &name), found, planted))
            .collect();
        let device_info = DeviceInfo {
            name,
            model: format!("sector namespace on {}", below.name),
            size: info.bytes(),
            logical_block: info.sector,
            physical_block: info.sector,
            atomic_write: info.sector,
            volatile_cache: false,
            rotational: false,
            ..below
        };
        Ok(Btt { device: Arc::clone(device), info, device_info, arenas: arenas?, planted })
    }

    /// What it is, as it was when it was opened.
    pub fn namespace(&self) -> &BttInfo {
        &self.info
    }

    fn memory(&self) -> block::Result<&dyn DirectMemory> {
        self.device.direct_memory().ok_or_else(|| BlockError::Gone {
            device: self.device_info.name.clone(),
            reason: "the device below is no longer memory".into(),
        })
    }

    /// The arena and the sector in it, of a sector of the namespace.
    fn place(&self, mut sector: u64) -> Option<(&Arena, u32)> {
        for arena in &self.arenas {
            match u32::try_from(sector) {
                Ok(inside) if inside < arena.layout.sectors => return Some((arena, inside)),
                _ => sector -= u64::from(arena.layout.sectors),
            }
        }
        None
    }

    /// Does something with each sector of a range.
    fn each(
        &self,
        offset: u64,
        len: u64,
        mut work: impl FnMut(&Arena, u32) -> block::Result<()>,
    ) -> block::Result<()> {
        let size = u64::from(self.info.sector);
        for sector in offset / size..(offset + len) / size {
            // The range was checked: it lies in the arenas.
            if let Some((arena, inside)) = self.place(sector) {
                work(arena, inside)?;
            }
        }
        Ok(())
    }

    fn perform(&self, request: Request) -> block::Result<Bytes> {
        check(&self.device_info, &request)?;
        let memory = self.memory()?;
        let size = self.info.sector as usize;
        match request {
            Request::Read { offset, len } => {
                let mut out = vec![0; len as usize];
                let mut sectors = out.chunks_exact_mut(size);
                self.each(offset, len, |arena, sector| match sectors.next() {
                    Some(out) => arena.read(memory, sector, out),
                    None => Ok(()),
                })?;
                return Ok(out.into());
            }
            Request::Write { offset, data, .. } => {
                let len = data.len() as u64;
                let mut sectors = data.units(size);
                self.each(offset, len, |arena, sector| match sectors.next() {
                    Some(data) => arena.write((&*self.device, memory), sector, &data, self.planted),
                    None => Ok(()),
                })?;
            }
            Request::Discard { offset, len } => self.discard(memory, offset, len)?,
            // What was answered is durable.
            Request::Flush => {}
        }
        Ok(Bytes::new())
    }

    /// Marks sectors of 4096 bytes as zeros. Smaller ones are left as they are: the kernel's driver
    /// (up to 6.1 at least) ends a read at the first sector that is marked, and leaves the rest of
    /// the page unread, without an error.
    fn discard(&self, memory: &dyn DirectMemory, offset: u64, len: u64) -> block::Result<()> {
        if self.info.sector != DISCARD_SECTOR {
            return Ok(());
        }
        self.each(offset, len, |arena, sector| arena.discard(memory, sector))?;
        memory.fence()
    }
}

impl BlockDevice for Btt {
    fn info(&self) -> DeviceInfo {
        // How well the memory is may have changed.
        let below = self.device.info();
        DeviceInfo {
            persistence: below.persistence,
            initialised: below.initialised,
            read_only: below.read_only || self.arenas.iter().all(|arena| arena.read_only),
            ..self.device_info.clone()
        }
    }

    fn submit(&self, request: Request) -> Completion {
        Completion::ready(self.perform(request))
    }
}
