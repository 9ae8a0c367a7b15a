//! Fsdax namespaces: a range of memory whose data begins after an info block, and after Linux' page
//! structures, if these are stored there.
//!
//! Linux needs them for DAX: its `/dev/pmemN` of such a namespace is the data. The info block is at
//! 4096 bytes (kernel: drivers/nvdimm/pfn_devs.c, version 1.4). The page structures are created at
//! each boot, so nothing is written for them here.
//!
//! # Invariants
//!
//! 1. The device is the data: neither requests nor stores reach what is before or after it.
//! 2. Its memory is that of the device below, at an offset, with the same persistence.
//! 3. The info block is valid when its checksum matches, and it is written in one piece while the
//!    rest of the range is unchanged: a power cut leaves a namespace or none.

mod info;

use std::sync::Arc;

use smart_default::SmartDefault;
use steadfast_block::{
    self as block, BlockDevice, BlockError, Completion, DeviceInfo, DirectMemory, Request,
};
use uuid::Uuid;

use super::Window;
use super::namespace::{Fault, NamespaceError, Result, memory_to_write, random_uuid, read};
use info::{ALIGNS, BLOCK};
pub use info::{FsdaxInfo, Map};

/// How an fsdax namespace is made; the default is what `ndctl create-namespace` makes: 2 MiB,
/// structures in the range; of no label.
#[derive(Debug, Clone, Copy, SmartDefault)]
pub struct Options {
    /// Its UUID; random if there is none.
    pub uuid: Option<Uuid>,
    /// That of its label; nil if it has none. The kernel believes the info block only if it is the
    /// label's.
    pub parent_uuid: Uuid,
    /// Bytes of the pages it is to be mapped with: 4 KiB, 2 MiB or 1 GiB.
    #[default(2 << 20)]
    pub align: u64,
    /// Where Linux is to have its structures of the pages.
    #[default(Map::Device)]
    pub map: Map,
    /// Bytes behind the device that a kernel which gets the range as memory sees as part of it: the
    /// label of an emulated range. No data is there.
    pub behind: u64,
}

/// Makes an fsdax namespace of all of a device; only the info block is written.
///
/// # Errors
/// [`NotMemory`](NamespaceError::NotMemory), [`Refused`](NamespaceError::Refused) if the device is
/// too small or cannot be written, [`Io`](NamespaceError::Io).
pub fn format(device: &Arc<dyn BlockDevice>, options: Options) -> Result<FsdaxInfo> {
    let below = device.info();
    let refused = |what: String| Err(NamespaceError::refused(&below.name, what));
    let memory = memory_to_write(&**device, "an fsdax namespace needs")?;
    let Options { uuid, parent_uuid, align, map, behind } = options;
    if !ALIGNS.contains(&align) {
        return refused(format!(
            "pages of {align} bytes: there are some of 4096, 2097152 and 1073741824"
        ));
    }
    let uuid = uuid.unwrap_or_else(random_uuid);
    let Some(info) = FsdaxInfo::of(below.size, uuid, parent_uuid, align, map) else {
        return refused(format!(
            "has {} bytes; with pages of {align} nothing would be left for data",
            below.size
        ));
    };
    memory.store_through(BLOCK, &info.block(below.size + behind))?;
    memory.fence()?;
    Ok(info)
}

/// Looks for an fsdax namespace and says what it is; `None` if there is none. Nothing is written,
/// and the device need not be memory.
///
/// # Errors
/// [`Io`](NamespaceError::Io); [`Corrupt`](NamespaceError::Corrupt) if there is one that cannot be
/// trusted; [`Unsupported`](NamespaceError::Unsupported).
pub fn probe(device: &dyn BlockDevice) -> Result<Option<FsdaxInfo>> {
    probe_as(device, 0)
}

/// As [`probe`], where so many bytes [behind](Options::behind) the device count as part of it.
///
/// # Errors
/// Those of [`probe`].
pub fn probe_as(device: &dyn BlockDevice, behind: u64) -> Result<Option<FsdaxInfo>> {
    let below = device.info();
    if below.size < 2 * BLOCK {
        return Ok(None);
    }
    let mut bytes = vec![0; BLOCK as usize];
    read(device, BLOCK, &mut bytes)?;
    let name = &below.name;
    let corrupt = |what: String| NamespaceError::Corrupt {
        device: name.clone(),
        at: BLOCK,
        what: format!("info block of an fsdax namespace: {what}"),
        advice: "what it said cannot be found without it (the data begins at a whole 2 MiB mostly)",
    };
    match FsdaxInfo::parse(&bytes, below.size.saturating_add(behind), behind) {
        Ok(info) => Ok(Some(info)),
        Err(Fault::Absent) => Ok(None),
        Err(Fault::Damaged) => Err(corrupt("the checksum is wrong".into())),
        Err(Fault::Impossible(what)) => Err(corrupt(what)),
        Err(Fault::Unsupported(what)) => Err(NamespaceError::unsupported(name, what)),
    }
}

/// Opens the fsdax namespace of a device, where so many bytes [behind](Options::behind) it count as
/// part of it: its data, as a device.
///
/// # Errors
/// Those of [`probe`]; [`None`](NamespaceError::None).
pub fn open(device: &Arc<dyn BlockDevice>, behind: u64) -> Result<Fsdax> {
    let Some(info) = probe_as(&**device, behind)? else {
        let (device, kind) = (device.info().name, "fsdax namespace");
        return Err(NamespaceError::None { device, kind });
    };
    let name = device.info().name;
    let window = Window::new(name, device.clone(), info.start, info.bytes)?;
    Ok(Fsdax { window, below: device.clone(), info })
}

/// The data of an fsdax namespace.
pub struct Fsdax {
    window: Window,
    below: Arc<dyn BlockDevice>,
    info: FsdaxInfo,
}

impl Fsdax {
    /// What it is.
    pub fn namespace(&self) -> FsdaxInfo {
        self.info
    }

    /// The memory below, and a place of ours in it.
    fn at(
        &self,
        op: &'static str,
        offset: u64,
        len: u64,
    ) -> block::Result<(&dyn DirectMemory, u64)> {
        let device = || self.below.info().name;
        if offset.checked_add(len).is_none_or(|end| end > self.info.bytes) {
            let size = self.info.bytes;
            return Err(BlockError::OutOfRange { device: device(), op, offset, len, size });
        }
        match self.below.direct_memory() {
            Some(memory) => Ok((memory, self.info.start + offset)),
            None => {
                let reason = "is no longer memory".into();
                Err(BlockError::Gone { device: device(), reason })
            }
        }
    }
}

impl BlockDevice for Fsdax {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { size: self.info.bytes, ..self.below.info() }
    }

    fn submit(&self, request: Request) -> Completion {
        self.window.submit(request)
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        self.below.direct_memory().is_some().then_some(self as &dyn DirectMemory)
    }
}

impl DirectMemory for Fsdax {
    fn load(&self, offset: u64, out: &mut [u8]) -> block::Result<()> {
        let (memory, at) = self.at("load", offset, out.len() as u64)?;
        memory.load(at, out)
    }

    fn store(&self, offset: u64, data: &[u8]) -> block::Result<()> {
        let (memory, at) = self.at("store", offset, data.len() as u64)?;
        memory.store(at, data)
    }

    fn persist(&self, offset: u64, len: u64) -> block::Result<()> {
        let (memory, at) = self.at("persist", offset, len)?;
        memory.persist(at, len)
    }

    fn store_through(&self, offset: u64, data: &[u8]) -> block::Result<()> {
        let (memory, at) = self.at("store", offset, data.len() as u64)?;
        memory.store_through(at, data)
    }

    fn fence(&self) -> block::Result<()> {
        let (memory, _) = self.at("fence", 0, 0)?;
        memory.fence()
    }
}

#[cfg(test)]
mod tests;
