//! A range of a device as a device: a partition.

use std::sync::Arc;

use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request, Result, check};

/// The bytes `[start, start + len)` of a device.
pub struct Window {
    next: Arc<dyn BlockDevice>,
    name: String,
    start: u64,
    len: u64,
}

impl Window {
    /// A window named `name`. Start and length must be whole logical blocks of `next` (whole
    /// physical blocks are faster).
    ///
    /// # Errors
    /// [`Misaligned`](steadfast_block::BlockError::Misaligned) or
    /// [`OutOfRange`](steadfast_block::BlockError::OutOfRange) if `next` has no such range.
    pub fn new(
        name: impl Into<String>,
        next: Arc<dyn BlockDevice>,
        start: u64,
        len: u64,
    ) -> Result<Self> {
        check(&next.info(), &Request::Read { offset: start, len })?;
        Ok(Window { next, name: name.into(), start, len })
    }

    /// The request as the device below sees it.
    fn shifted(&self, request: Request) -> Request {
        // Cannot overflow: the request lies within the window, and the window in the device.
        match request {
            Request::Read { offset, len } => Request::Read { offset: self.start + offset, len },
            Request::Write { offset, data, fua } => {
                Request::Write { offset: self.start + offset, data, fua }
            }
            Request::Discard { offset, len } => {
                Request::Discard { offset: self.start + offset, len }
            }
            Request::Flush => Request::Flush,
        }
    }
}

impl BlockDevice for Window {
    fn info(&self) -> DeviceInfo {
        let below = self.next.info();
        DeviceInfo {
            name: self.name.clone(),
            model: format!("part of {}", below.name),
            size: self.len,
            ..below
        }
    }

    fn submit(&self, request: Request) -> Completion {
        match check(&self.info(), &request) {
            Ok(()) => self.next.submit(self.shifted(request)),
            Err(refused) => Completion::ready(Err(refused)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Ram;
    use steadfast_block::{BlockError, conformance, pattern};
    use steadfast_runtime::Sim;

    fn make() -> Arc<dyn BlockDevice> {
        let disk = Arc::new(Ram::new("disk", 4 << 20));
        Arc::new(Window::new("disk1", disk, 512 * 3, 1 << 20).unwrap())
    }

    #[test]
    fn conforms() {
        conformance::run(&make);
        Sim::new(1).run(|| conformance::run(&make)).unwrap();
    }

    #[test]
    fn touches_nothing_outside() {
        let disk = Ram::new("disk", 3 << 20);
        disk.write(0, pattern::bytes(1, 0, 3 << 20).into()).unwrap();
        let window = Window::new("disk1", Arc::new(disk.clone()), 1 << 20, 1 << 20).unwrap();
        window.write(0, pattern::bytes(2, 0, 1 << 20).into()).unwrap();
        window.discard(512, 1024).unwrap();
        assert!(window.write(1 << 20, pattern::bytes(2, 0, 512).into()).is_err());
        let all = disk.read(0, 3 << 20).unwrap();
        let old = pattern::bytes(1, 0, 3 << 20);
        assert_eq!(all[..1 << 20], old[..1 << 20]);
        assert_eq!(all[2 << 20..], old[2 << 20..]);
        assert_eq!(all[1 << 20..][..512], pattern::bytes(2, 0, 512));
    }

    #[test]
    fn must_lie_within_the_device() {
        let disk = Arc::new(Ram::new("disk", 1 << 20));
        let window = |start, len| Window::new("w", disk.clone(), start, len).map(drop);
        assert!(window(0, 1 << 20).is_ok());
        assert!(matches!(window(512, 1 << 20), Err(BlockError::OutOfRange { .. })));
        assert!(matches!(window(100, 512), Err(BlockError::Misaligned { .. })));
        assert!(matches!(window(0, 0), Err(BlockError::Misaligned { .. })));
    }
}
