//! A disk behind a cache in memory that is written back: what such programs do that take RAM for
//! it.
//!
//! A write, and a flush, is acknowledged when memory has it; dirty blocks go to the disk some time
//! later. (With a cache device that keeps its contents that is right: dm-writecache makes its own
//! metadata durable at a flush and leaves the data there. On a RAM disk it promises what memory
//! holds.)

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, Payload, Request, Result, check};
use steadfast_devices::filter::Window;
use steadfast_runtime::{Mutex, Nanos, now, sleep, spawn};

use super::{DATA_AT, Leg, PeerMirror, Setup};

type Device = Arc<dyn BlockDevice>;

/// What is cached together.
const BLOCK: u64 = 4096;

struct Core {
    memory: Device,
    disk: Device,
    /// Blocks that the disk does not have, and since when.
    dirty: Mutex<BTreeMap<u64, Nanos>>,
    /// Held by one write: two that fill the same block would undo each other.
    writing: Mutex<()>,
    info: DeviceInfo,
}

/// The disk behind its cache.
pub(super) struct MemoryCache(Arc<Core>);

impl MemoryCache {
    /// Of the first leg in memory and the first that is not; nothing is dirty.
    pub fn up(legs: &[Leg], setup: Setup) -> PeerMirror {
        let window = |in_memory: bool| -> Option<Device> {
            let leg = legs.iter().find(|leg| leg.in_memory == in_memory && leg.device.is_some())?;
            let device = leg.device.clone()?;
            let window = Window::new(device.info().name, device, DATA_AT, setup.size).ok()?;
            Some(Arc::new(window))
        };
        let (memory, disk) = (window(true), window(false));
        let held = vec![disk.clone()];
        let (Some(memory), Some(disk)) = (memory, disk) else {
            return PeerMirror { volume: gone(setup), legs: held, by_hand: true };
        };
        let mut info = DeviceInfo::new("cache", "model of a disk behind memory", setup.size);
        info.volatile_cache = true;
        let (dirty, writing) = (Mutex::default(), Mutex::default());
        let core = Arc::new(Core { memory, disk, dirty, writing, info });
        let (weak, every) = (Arc::downgrade(&core), setup.upkeep);
        spawn("cache upkeep", move || {
            loop {
                sleep(every);
                let Some(core) = weak.upgrade() else { return };
                // OK to ignore: what could not be written stays dirty.
                drop(core.write_back(now(), every));
            }
        });
        PeerMirror { volume: Arc::new(MemoryCache(core)), legs: held, by_hand: false }
    }
}

/// A volume of which nothing is there.
fn gone(setup: Setup) -> Device {
    let ram = steadfast_devices::source::Ram::new("cache", setup.size);
    let fault = steadfast_devices::filter::Fault::new(Arc::new(ram));
    fault.faults().take_away("the disk is not there");
    Arc::new(fault)
}

impl Core {
    /// Writes what has been dirty for so long to the disk.
    fn write_back(&self, at: Nanos, age: std::time::Duration) -> Result<()> {
        let old: Vec<u64> = {
            let dirty = self.dirty.lock();
            dirty.iter().filter(|(_, since)| at.since(**since) >= age).map(|(b, _)| *b).collect()
        };
        for block in old {
            let offset = block * BLOCK;
            let data = self.memory.read(offset, BLOCK)?;
            self.disk.write(offset, data.into())?;
            let mut dirty = self.dirty.lock();
            // Who wrote it again meanwhile made it younger.
            if dirty.get(&block).is_some_and(|since| *since <= at) {
                dirty.remove(&block);
            }
        }
        self.disk.flush()
    }

    fn read(&self, offset: u64, len: u64) -> Result<Bytes> {
        let mut data = Vec::with_capacity(len as usize);
        let mut at = offset;
        while at < offset + len {
            let piece = (at / BLOCK + 1) * BLOCK - at;
            let piece = piece.min(offset + len - at);
            let dirty = self.dirty.lock().contains_key(&(at / BLOCK));
            let from = if dirty { &self.memory } else { &self.disk };
            data.extend_from_slice(&from.read(at, piece)?);
            at += piece;
        }
        Ok(data.into())
    }

    fn write(&self, offset: u64, data: Payload) -> Result<()> {
        let len = data.len() as u64;
        let _one = self.writing.lock();
        // A block is in memory whole, or not at all.
        for block in [offset / BLOCK, (offset + len - 1) / BLOCK] {
            if !self.dirty.lock().contains_key(&block) {
                let old = self.disk.read(block * BLOCK, BLOCK)?;
                self.memory.write(block * BLOCK, old.into())?;
            }
        }
        self.memory.write(offset, data)?;
        let mut dirty = self.dirty.lock();
        (offset / BLOCK..(offset + len).div_ceil(BLOCK)).for_each(|b| {
            dirty.insert(b, now());
        });
        Ok(())
    }
}

impl BlockDevice for MemoryCache {
    fn info(&self) -> DeviceInfo {
        self.0.info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        if let Err(refused) = check(&self.0.info, &request) {
            return Completion::ready(Err(refused));
        }
        let core = Arc::clone(&self.0);
        Completion::on_task("cache request", move || match request {
            Request::Read { offset, len } => core.read(offset, len),
            Request::Write { offset, data, .. } => core.write(offset, data).map(|()| Bytes::new()),
            // Memory has it.
            Request::Flush => core.memory.flush().map(|()| Bytes::new()),
            Request::Discard { .. } => Ok(Bytes::new()),
        })
    }
}
