//! A disk in memory for unit tests: at once, and without a cache.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Request, check};
use steadfast_runtime::Mutex;

pub(crate) struct Disk {
    info: DeviceInfo,
    bytes: Mutex<Vec<u8>>,
    /// Bytes that no read may touch.
    unreadable: Mutex<Range<u64>>,
    /// Offset and length of every read.
    reads: Mutex<Vec<(u64, u64)>>,
}

impl Disk {
    pub(crate) fn new(name: &str, size: usize) -> Arc<Disk> {
        Disk::of(DeviceInfo::new(name, "test disk", size as u64))
    }

    fn of(info: DeviceInfo) -> Arc<Disk> {
        let bytes = Mutex::new(vec![0; info.size as usize]);
        Arc::new(Disk { info, bytes, unreadable: Mutex::default(), reads: Mutex::default() })
    }

    /// One that says that it has a volatile cache.
    pub(crate) fn cached(name: &str, size: usize) -> Arc<Disk> {
        let mut info = DeviceInfo::new(name, "test disk", size as u64);
        info.volatile_cache = true;
        Disk::of(info)
    }

    pub(crate) fn device(self: &Arc<Self>) -> Arc<dyn BlockDevice> {
        Arc::clone(self) as Arc<dyn BlockDevice>
    }

    /// From now on every read of one of these bytes fails.
    pub(crate) fn make_unreadable(&self, bytes: Range<u64>) {
        *self.unreadable.lock() = bytes;
    }

    /// The reads since this was last asked for: offset and length.
    pub(crate) fn take_reads(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.reads.lock())
    }

    pub(crate) fn poke(&self, at: usize, bytes: &[u8]) {
        self.bytes.lock()[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

impl BlockDevice for Disk {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        if let Err(e) = check(&self.info, &request) {
            return Completion::ready(Err(e));
        }
        let mut bytes = self.bytes.lock();
        let answer = match request {
            Request::Read { offset, len } => {
                self.reads.lock().push((offset, len));
                let bad = self.unreadable.lock().clone();
                if offset < bad.end && bad.start < offset + len {
                    return Completion::ready(Err(BlockError::Io {
                        device: self.info.name.clone(),
                        op: "read",
                        offset,
                        reason: "made unreadable".into(),
                    }));
                }
                Bytes::copy_from_slice(&bytes[offset as usize..(offset + len) as usize])
            }
            Request::Write { offset, data, .. } => {
                let mut at = offset as usize;
                for part in data.parts() {
                    bytes[at..at + part.len()].copy_from_slice(part);
                    at += part.len();
                }
                Bytes::new()
            }
            Request::Flush | Request::Discard { .. } => Bytes::new(),
        };
        Completion::ready(Ok(answer))
    }
}
