//! A block device as source or sink: as the kernel shows one through its cache, except that
//! nothing is kept.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Payload};

use super::ends::{Sink, SkipResult, Source};
use super::errno::Errno;
use super::words::Flags;

/// A device that is read or written from its beginning on.
pub struct DeviceEnd {
    device: Arc<dyn BlockDevice>,
    position: u64,
    flags: Flags,
}

impl DeviceEnd {
    /// At the device's beginning.
    pub fn new(device: Arc<dyn BlockDevice>, flags: Flags) -> DeviceEnd {
        DeviceEnd { device, position: 0, flags }
    }

    /// The whole blocks around a range.
    fn around(&self, len: u64) -> Result<(u64, u64), Errno> {
        let block = u64::from(self.device.info().logical_block);
        let end = self.position + len;
        let whole = self.position.is_multiple_of(block) && end.is_multiple_of(block);
        if self.flags.contains(Flags::DIRECT) && !whole {
            return Err(Errno::INVAL);
        }
        let from = self.position - self.position % block;
        Ok((from, end.next_multiple_of(block)))
    }

    fn left(&self, len: usize) -> u64 {
        self.device.info().size.saturating_sub(self.position).min(len as u64)
    }
}

impl Source for DeviceEnd {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, Errno> {
        let len = self.left(buf.len());
        if len == 0 {
            return Ok(0);
        }
        let (from, to) = self.around(len)?;
        let data = self.device.read(from, to - from)?;
        let skip = (self.position - from) as usize;
        buf[..len as usize].copy_from_slice(&data[skip..skip + len as usize]);
        self.position += len;
        Ok(len as usize)
    }

    fn skip(&mut self, bytes: u64) -> Result<SkipResult, Errno> {
        let skipped = bytes.min(self.device.info().size.saturating_sub(self.position));
        self.position += skipped;
        if skipped < bytes { Err(Errno::INVAL) } else { Ok(SkipResult::By(skipped)) }
    }
}

impl Sink for DeviceEnd {
    fn write(&mut self, data: &[u8]) -> Result<usize, Errno> {
        if self.device.info().read_only {
            return Err(Errno::ROFS);
        }
        let len = self.left(data.len());
        if len == 0 {
            return Err(Errno::NOSPC);
        }
        let (from, to) = self.around(len)?;
        let skip = (self.position - from) as usize;
        let data = &data[..len as usize];
        let whole = if skip == 0 && to - from == len {
            Bytes::copy_from_slice(data)
        } else {
            // What is around it in its blocks stays.
            let mut old = self.device.read(from, to - from)?.to_vec();
            old[skip..skip + len as usize].copy_from_slice(data);
            Bytes::from(old)
        };
        let payload = Payload::from(whole);
        if self.flags.intersects(Flags::SYNC | Flags::DSYNC) {
            self.device.write_fua(from, payload)?;
        } else {
            self.device.write(from, payload)?;
        }
        self.position += len;
        Ok(len as usize)
    }

    fn seek(&mut self, bytes: u64) -> Result<(), Errno> {
        let to = self.position.checked_add(bytes).ok_or(Errno::OVERFLOW)?;
        if to > self.device.info().size {
            return Err(Errno::INVAL);
        }
        self.position = to;
        Ok(())
    }

    fn stop_direct(&mut self) -> Result<(), Errno> {
        self.flags -= Flags::DIRECT;
        Ok(())
    }

    fn sync(&mut self, _data_only: bool) -> Result<(), Errno> {
        Ok(self.device.flush()?)
    }
}
