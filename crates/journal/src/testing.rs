//! A disk in memory for unit tests: at once, and without a cache.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request, check};
use steadfast_runtime::Mutex;

pub(crate) struct Disk {
    info: DeviceInfo,
    bytes: Mutex<Vec<u8>>,
}

impl Disk {
    pub(crate) fn new(name: &str, size: usize) -> Arc<Disk> {
        let info = DeviceInfo::new(name, "test disk", size as u64);
        Arc::new(Disk { info, bytes: Mutex::new(vec![0; size]) })
    }

    /// One that says that it has a volatile cache.
    pub(crate) fn cached(name: &str, size: usize) -> Arc<Disk> {
        let mut info = DeviceInfo::new(name, "test disk", size as u64);
        info.volatile_cache = true;
        Arc::new(Disk { info, bytes: Mutex::new(vec![0; size]) })
    }

    pub(crate) fn device(self: &Arc<Self>) -> Arc<dyn BlockDevice> {
        Arc::clone(self) as Arc<dyn BlockDevice>
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
