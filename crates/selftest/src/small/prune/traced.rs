//! Devices that note what is looked at.
//!
//! A [`Look`] is a sector whose contents somebody asked for, or asked whether it begins with the
//! journal's magic number. What was written since power on follows from what was looked at before,
//! so it is not noted: a write that covers a sector only in part looks at it first.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, DirectMemory, Request, Result};
use steadfast_devices::source::Ram;

/// Bytes of a sector: what is looked at is noted in these.
pub(super) const SECTOR: u64 = 512;
/// The first word of the journal's own blocks, as it is on the device. Whoever asks for other
/// beginnings looks at the whole sector.
pub(super) const MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];

/// What was looked at: a sector, counted over all devices, and whether only its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Look(u32);

impl Look {
    const BEGINNING: u32 = 1 << 31;

    pub(super) fn contents(sector: u32) -> Look {
        Look(sector)
    }

    fn beginning(sector: u32) -> Look {
        Look(sector | Look::BEGINNING)
    }

    pub(super) fn sector(self) -> usize {
        (self.0 & !Look::BEGINNING) as usize
    }

    pub(super) fn is_beginning(self) -> bool {
        self.0 & Look::BEGINNING != 0
    }
}

/// What of a sector is known, or follows from what is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SectorKnowledge {
    Nothing,
    Beginning,
    All,
}

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Mount,
    Judge,
    Unmount,
    Check,
}

/// What is not noted: for tests, which must notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TraceOmission {
    Nothing,
    /// Reads of this device.
    #[cfg(test)]
    Device(usize),
    /// What this one looks at.
    #[cfg(test)]
    Part(Part),
    /// Whether blocks begin with the magic number.
    #[cfg(test)]
    Beginnings,
}

impl TraceOmission {
    #[cfg(test)]
    fn has(self, part: Part, device: usize, beginning: bool) -> bool {
        match self {
            TraceOmission::Nothing => false,
            TraceOmission::Device(forgotten) => device == forgotten,
            TraceOmission::Part(forgotten) => part == forgotten,
            TraceOmission::Beginnings => beginning,
        }
    }

    #[cfg(not(test))]
    fn has(self, _: Part, _: usize, _: bool) -> bool {
        self != TraceOmission::Nothing
    }
}

struct TraceEntry {
    part: Part,
    looks: Vec<Look>,
    known: Vec<SectorKnowledge>,
}

/// What is looked at on the devices of one machine, in order.
#[derive(Clone)]
pub(super) struct Trace {
    noted: Arc<Mutex<TraceEntry>>,
    /// The first sector of each device.
    first: Arc<[u32]>,
    forgotten: TraceOmission,
}

impl Trace {
    /// Of devices whose first sectors these are; the last number is one beyond all sectors.
    pub(super) fn new(first: &[u32], forgotten: TraceOmission) -> Trace {
        let sectors = first.last().map_or(0, |end| *end as usize);
        let known = vec![SectorKnowledge::Nothing; sectors];
        let noted = TraceEntry { part: Part::Mount, looks: Vec::new(), known };
        Trace { noted: Arc::new(Mutex::new(noted)), first: first.into(), forgotten }
    }

    /// A device that is noted.
    pub(super) fn device(&self, number: usize, ram: Ram) -> Arc<dyn BlockDevice> {
        let info = ram.info();
        Arc::new(TracedDisk { ram, info, number, trace: self.clone() })
    }

    /// Says who looks from now on.
    pub(super) fn begin(&self, part: Part) {
        self.lock().part = part;
    }

    /// What was looked at so far.
    pub(super) fn take(&self) -> Vec<Look> {
        std::mem::take(&mut self.lock().looks)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TraceEntry> {
        // Nothing panics while it is held.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sector(&self, device: usize, offset: u64) -> u32 {
        self.first[device] + (offset / SECTOR) as u32
    }

    fn looked(&self, device: usize, offset: u64, len: u64) {
        let mut noted = self.lock();
        for at in offset / SECTOR..(offset + len).div_ceil(SECTOR) {
            if !self.forgotten.has(noted.part, device, false) {
                noted.look(self.sector(device, at * SECTOR));
            }
        }
    }

    fn looked_at_beginning(&self, device: usize, offset: u64) {
        let sector = self.sector(device, offset);
        let mut noted = self.lock();
        let forgotten = self.forgotten.has(noted.part, device, true);
        let known = &mut noted.known[sector as usize];
        if *known == SectorKnowledge::Nothing && !forgotten {
            *known = SectorKnowledge::Beginning;
            noted.looks.push(Look::beginning(sector));
        }
    }

    fn written(&self, device: usize, offset: u64, len: u64) {
        let mut noted = self.lock();
        let end = offset + len;
        for at in offset / SECTOR..end.div_ceil(SECTOR) {
            let sector = self.sector(device, at * SECTOR);
            if at * SECTOR < offset || (at + 1) * SECTOR > end {
                noted.look(sector);
            }
            noted.known[sector as usize] = SectorKnowledge::All;
        }
    }
}

impl TraceEntry {
    fn look(&mut self, sector: u32) {
        let known = &mut self.known[sector as usize];
        if *known != SectorKnowledge::All {
            *known = SectorKnowledge::All;
            self.looks.push(Look::contents(sector));
        }
    }
}

/// A RAM disk that notes what is looked at.
struct TracedDisk {
    ram: Ram,
    info: DeviceInfo,
    number: usize,
    trace: Trace,
}

impl TracedDisk {
    fn note(&self, request: &Request) {
        // What is refused does nothing.
        if steadfast_block::check(&self.info, request).is_err() {
            return;
        }
        match request {
            Request::Read { offset, len } => self.trace.looked(self.number, *offset, *len),
            Request::Write { offset, data, .. } => {
                self.trace.written(self.number, *offset, data.len() as u64);
            }
            Request::Discard { offset, len } => self.trace.written(self.number, *offset, *len),
            Request::Flush => {}
        }
    }
}

impl BlockDevice for TracedDisk {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        self.note(&request);
        self.ram.submit(request)
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        Some(self)
    }

    fn execute(&self, request: Request) -> Result<Bytes> {
        self.note(&request);
        self.ram.execute(request)
    }

    fn begins_with(&self, offset: u64, len: u64, with: &[u8]) -> Result<bool> {
        let aligned = offset.is_multiple_of(SECTOR) && len >= SECTOR;
        if with != MAGIC || !aligned || offset + len > self.info.size {
            return Ok(self.read(offset, len)?.starts_with(with));
        }
        self.trace.looked_at_beginning(self.number, offset);
        Ok(self.ram.read(offset, SECTOR)?.starts_with(with))
    }

    fn gains_by_reading_ahead(&self) -> bool {
        false
    }
}

impl DirectMemory for TracedDisk {
    fn load(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if offset.checked_add(out.len() as u64).is_some_and(|end| end <= self.info.size) {
            self.trace.looked(self.number, offset, out.len() as u64);
        }
        self.ram.load(offset, out)
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<()> {
        if offset.checked_add(data.len() as u64).is_some_and(|end| end <= self.info.size) {
            self.trace.written(self.number, offset, data.len() as u64);
        }
        DirectMemory::store(&self.ram, offset, data)
    }

    fn persist(&self, offset: u64, len: u64) -> Result<()> {
        self.ram.persist(offset, len)
    }

    fn fence(&self) -> Result<()> {
        self.ram.fence()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_is_not_looked_at() {
        let trace = Trace::new(&[0, 8, 16], TraceOmission::Nothing);
        let ram = || Ram::new("ram", 4096);
        let (disk, log) = (trace.device(0, ram()), trace.device(1, ram()));
        disk.write(512, vec![1; 1024].into()).unwrap();
        disk.read(0, 2048).unwrap();
        assert!(!log.begins_with(1024, 1024, &MAGIC).unwrap());
        assert!(!log.begins_with(1024, 1024, &MAGIC).unwrap());
        log.read(1024, 512).unwrap();
        assert!(!log.begins_with(1024, 1024, &MAGIC).unwrap());
        assert!(log.begins_with(2048, 512, &[0]).unwrap());
        assert!(disk.read(4096, 512).is_err() && disk.read(1, 512).is_err());
        let contents = [0, 3, 10, 12].map(Look::contents);
        let mut looks = vec![contents[0], contents[1], Look::beginning(10)];
        looks.extend([contents[2], contents[3]]);
        assert_eq!(trace.take(), looks);
    }

    #[test]
    fn what_is_stored_in_part_is_looked_at_first() {
        let trace = Trace::new(&[0, 8], TraceOmission::Nothing);
        let disk = trace.device(0, Ram::new("ram", 4096));
        let memory = disk.direct_memory().unwrap();
        memory.store(500, &[1; 600]).unwrap();
        assert_eq!(trace.take(), [0, 2].map(Look::contents));
        memory.load(0, &mut [0; 1536]).unwrap();
        disk.read(0, 1536).unwrap();
        disk.discard(2048, 512).unwrap();
        disk.read(2048, 512).unwrap();
        assert_eq!(trace.take(), []);
        memory.load(3000, &mut [0; 8]).unwrap();
        assert_eq!(trace.take(), [Look::contents(5)]);
        assert!(!disk.gains_by_reading_ahead());
    }
}
