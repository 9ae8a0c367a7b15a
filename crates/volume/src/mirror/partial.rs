//! A leg that is smaller than the volume: it holds some of the regions.
//!
//! To the mirror it is like any other leg: every region has an address in a virtual address space.
//! A table maps regions to frames of the device; a region without a frame cannot be read. In the
//! map such a leg is stale everywhere, so the table need not be durable. Its regions are recorded
//! in memory only (`Regions::set_copied`), and after a start it is empty.
//!
//! # Invariants
//!
//! 1. A region gets and loses its frame while its range is locked (`ranges`): no write is in flight
//!    then.
//! 2. A frame is reused only when no read of it is in flight: a read finds and pins its frame under
//!    the same lock under which the mirror chooses the leg.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Request, Result};
use steadfast_runtime::Mutex;

use crate::joined::{Part, submit_parts};
use crate::ondisk::second_label_at;

type Device = Arc<dyn BlockDevice>;

/// Bytes of the address space that the mirror sees: more than any volume has.
const SPACE: u64 = 1 << 62;
/// Frames that are looked at for the coldest one.
const LOOKED_AT: usize = 32;

/// The frames of a device.
pub(crate) struct PartialFrames {
    device: Device,
    data_start: u64,
    region_bytes: u64,
    /// Regions that there is room for.
    count: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    of: HashMap<u32, usize>,
    /// Those that were ever used: a device may be larger than any volume.
    frames: Vec<PartialFrame>,
    free: Vec<usize>,
    /// Where the search for a cold frame goes on.
    hand: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct PartialFrame {
    region: Option<u32>,
    /// Reads in flight.
    pins: u32,
}

/// A part of a request: where on the device, and which bytes of the request.
struct FramePart {
    frame: Option<usize>,
    at: u64,
    bytes: Range<u64>,
}

impl PartialFrames {
    /// Of a device with labels, and data from `data_start` on.
    pub fn new(device: Device, data_start: u64, region_bytes: u64) -> Arc<PartialFrames> {
        let end = second_label_at(device.info().size);
        let count = (end.saturating_sub(data_start) / region_bytes) as usize;
        let table = Mutex::new(Table::default());
        Arc::new(PartialFrames { device, data_start, region_bytes, count, table })
    }

    /// Bytes of the device.
    pub fn device_bytes(&self) -> u64 {
        self.device.info().size
    }

    /// The device itself.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Regions that there is room for.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes that there is room for.
    pub fn room(&self) -> u64 {
        self.count() as u64 * self.region_bytes
    }

    /// Whether a region can get a frame without another one losing its own.
    pub fn has_room(&self) -> bool {
        let table = self.table.lock();
        !table.free.is_empty() || table.frames.len() < self.count
    }

    /// Gives the region a frame, if it has none; false: there is none. Its range is held.
    pub fn place(&self, region: u32) -> bool {
        let mut table = self.table.lock();
        if table.of.contains_key(&region) {
            return true;
        }
        if table.free.is_empty() && table.frames.len() < self.count {
            let new = table.frames.len();
            table.frames.push(PartialFrame::default());
            table.free.push(new);
        }
        let Some(frame) = table.free.pop() else { return false };
        table.frames[frame].region = Some(region);
        table.of.insert(region, frame);
        true
    }

    /// Takes the region's frame away. Its range is held, and no read is sent here any more.
    pub fn vacate(&self, region: u32) {
        let mut table = self.table.lock();
        let Some(frame) = table.of.remove(&region) else { return };
        table.frames[frame].region = None;
        if table.frames[frame].pins == 0 {
            table.free.push(frame);
        }
    }

    /// Of some of the regions here the coldest.
    pub fn coldest(&self, heat: impl Fn(u32) -> u8) -> Option<u32> {
        let mut table = self.table.lock();
        let (count, hand) = (table.frames.len(), table.hand);
        let looked_at = (0..count.min(LOOKED_AT)).map(|n| (hand + n) % count);
        let regions = looked_at.filter_map(|frame| table.frames[frame].region);
        let coldest = regions.min_by_key(|region| heat(*region));
        table.hand = (hand + LOOKED_AT) % count.max(1);
        coldest
    }

    /// The device for one read of regions that have frames: they keep them until it is dropped and
    /// what it was asked is answered.
    pub fn pinned(self: &Arc<PartialFrames>, offset: u64, len: u64) -> Device {
        let pins = self.pin(offset, len);
        Arc::new(FramePin { frames: Arc::clone(self), pins: Arc::new(pins) })
    }

    /// Where a request goes.
    fn parts(&self, offset: u64, len: u64) -> Vec<FramePart> {
        self.parts_in(&self.table.lock(), offset, len)
    }

    fn parts_in(&self, table: &Table, offset: u64, len: u64) -> Vec<FramePart> {
        let label = second_label_at(SPACE);
        if offset >= label {
            let at = offset - label + second_label_at(self.device.info().size);
            return vec![FramePart { frame: None, at, bytes: 0..len }];
        }
        if offset < self.data_start {
            return vec![FramePart { frame: None, at: offset, bytes: 0..len }];
        }
        let (mut parts, mut done) = (Vec::new(), 0);
        while done < len {
            let from = offset - self.data_start + done;
            let within = from % self.region_bytes;
            let bytes = (self.region_bytes - within).min(len - done);
            let frame = u32::try_from(from / self.region_bytes).ok();
            let frame = frame.and_then(|region| table.of.get(&region)).copied();
            let start = frame.map_or(u64::MAX, |f| self.data_start + f as u64 * self.region_bytes);
            parts.push(FramePart {
                frame,
                at: start.saturating_add(within),
                bytes: done..done + bytes,
            });
            done += bytes;
        }
        parts
    }

    fn pin(self: &Arc<PartialFrames>, offset: u64, len: u64) -> Pins {
        let mut table = self.table.lock();
        let parts = self.parts_in(&table, offset, len);
        for frame in parts.iter().filter_map(|part| part.frame) {
            table.frames[frame].pins += 1;
        }
        drop(table);
        Pins { frames: Arc::clone(self), offset, parts }
    }

    /// Nothing can be read or written without a frame.
    fn send(&self, parts: &[FramePart], request: &Request) -> Completion {
        let there = parts.iter().filter(|part| part.at != u64::MAX);
        let part = |p: &FramePart| Part { device: &self.device, at: p.at, bytes: p.bytes.clone() };
        let there: Vec<Part<'_>> = there.map(part).collect();
        if there.len() == parts.len() || matches!(request, Request::Discard { .. }) {
            return submit_parts(&there, request);
        }
        Completion::ready(Err(BlockError::Io {
            device: self.device.info().name,
            op: request.op(),
            offset: request.range().map_or(0, |(offset, _)| offset),
            reason: "the region is not held by this leg".into(),
        }))
    }
}

impl BlockDevice for PartialFrames {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { size: SPACE, ..self.device.info() }
    }

    // A waiting caller hands nothing over.

    fn execute(&self, request: Request) -> Result<Bytes> {
        let parts = request.range().map(|(offset, len)| self.parts(offset, len));
        match (parts.as_deref(), request) {
            (Some([part]), Request::Read { len, .. }) if part.at != u64::MAX => {
                self.device.read(part.at, len)
            }
            (Some(parts), Request::Read { offset, len }) => {
                self.send(parts, &Request::Read { offset, len }).wait()
            }
            (Some([part]), Request::Write { data, fua: false, .. }) if part.at != u64::MAX => {
                self.device.write(part.at, data).map(|()| Bytes::new())
            }
            (_, request) => self.submit(request).wait(),
        }
    }

    fn submit(&self, request: Request) -> Completion {
        match request.range() {
            Some((offset, len)) => self.send(&self.parts(offset, len), &request),
            None => self.device.submit(request),
        }
    }
}

/// Frames that nobody else gets.
struct Pins {
    frames: Arc<PartialFrames>,
    offset: u64,
    parts: Vec<FramePart>,
}

impl Drop for Pins {
    fn drop(&mut self) {
        let mut table = self.frames.table.lock();
        for frame in self.parts.iter().filter_map(|part| part.frame) {
            let left = &mut table.frames[frame];
            left.pins -= 1;
            if left.pins == 0 && left.region.is_none() {
                table.free.push(frame);
            }
        }
    }
}

/// See [`PartialFrames::pinned`].
struct FramePin {
    frames: Arc<PartialFrames>,
    pins: Arc<Pins>,
}

impl BlockDevice for FramePin {
    fn info(&self) -> DeviceInfo {
        self.frames.info()
    }

    fn execute(&self, request: Request) -> Result<Bytes> {
        match (self.pins.parts.as_slice(), &request) {
            ([part], Request::Read { offset, len })
                if (*offset, *len) == (self.pins.offset, part.bytes.end)
                    && part.frame.is_some() =>
            {
                self.frames.device.read(part.at, *len)
            }
            _ => self.submit(request).wait(),
        }
    }

    fn submit(&self, request: Request) -> Completion {
        let Request::Read { offset, len } = request else {
            return self.frames.submit(request);
        };
        let pins = Arc::clone(&self.pins);
        let end: u64 = pins.parts.iter().map(|p| p.bytes.end).max().unwrap_or(0);
        if (offset, len) != (pins.offset, end) {
            // Not what was pinned.
            return self.frames.submit(request);
        }
        let below = self.frames.send(&pins.parts, &request);
        below.map(move |answer| {
            drop(pins);
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use steadfast_devices::source::Ram;

    use super::*;

    const REGION: u64 = 64 << 10;
    const START: u64 = 64 << 10;

    /// Room for three regions.
    fn frames() -> Arc<PartialFrames> {
        let ram = Ram::new("ram", START + 3 * REGION + 4096);
        PartialFrames::new(Arc::new(ram), START, REGION)
    }

    fn at(region: u32) -> u64 {
        START + u64::from(region) * REGION
    }

    #[test]
    fn regions_lie_where_there_is_room() {
        let frames = frames();
        assert_eq!(frames.count(), 3);
        for region in [1000, 7, 8] {
            assert!(frames.place(region) && frames.place(region));
            frames.write(at(region), vec![region as u8; REGION as usize].into()).unwrap();
        }
        assert!(!frames.place(1) && !frames.has_room());
        // Over the border of two regions that are not neighbours on the device.
        let read = frames.read(at(8) - 512, 1024).unwrap();
        assert!(read[..512].iter().all(|b| *b == 7) && read[512..].iter().all(|b| *b == 8));
        assert!(frames.read(at(1000) - 512, 1024).is_err(), "999 is not here");
        frames.vacate(7);
        assert!(
            frames.read(at(7), 512).is_err() && frames.write(at(7), vec![0; 512].into()).is_err()
        );
        assert!(frames.place(1) && !frames.has_room());
    }

    #[test]
    fn a_frame_that_is_read_is_nobody_elses() {
        let frames = frames();
        [1, 2, 3].iter().for_each(|region| assert!(frames.place(*region)));
        frames.write(at(2), vec![2; REGION as usize].into()).unwrap();
        let reader = frames.pinned(at(2), 4096);
        frames.vacate(2);
        assert!(!frames.place(4));
        assert_eq!(reader.read(at(2), 4096).unwrap()[0], 2);
        drop(reader);
        assert!(frames.place(4));
    }

    #[test]
    fn labels_are_on_the_device_itself() {
        let frames = frames();
        frames.write_fua(4096, vec![1; 4096].into()).unwrap();
        frames.write_fua(second_label_at(frames.info().size), vec![2; 4096].into()).unwrap();
        let end = second_label_at(frames.device().info().size);
        assert_eq!(frames.device().read(4096, 4096).unwrap()[0], 1);
        assert_eq!(frames.device().read(end, 4096).unwrap()[0], 2);
    }

    #[test]
    fn the_coldest_of_some_goes() {
        let frames = frames();
        [4, 5, 6].iter().for_each(|region| assert!(frames.place(*region)));
        let heat = |region| if region == 5 { 1 } else { 9 };
        assert_eq!(frames.coldest(heat), Some(5));
    }
}
