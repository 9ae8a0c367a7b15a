//! The interface itself.

use std::sync::Arc;

use bytes::Bytes;

use crate::{BlockError, Completion, DeviceInfo, DirectMemory, Payload, Request, Result};

/// A block device: a source of blocks or a filter over another.
///
/// See the crate's text for what every device promises.
///
/// ```
/// use bytes::Bytes;
/// use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request, check};
///
/// /// A megabyte of zeros, whatever is written.
/// struct Zeros;
///
/// impl BlockDevice for Zeros {
///     fn info(&self) -> DeviceInfo {
///         DeviceInfo::new("zeros", "a megabyte of zeros", 1 << 20)
///     }
///
///     fn submit(&self, request: Request) -> Completion {
///         Completion::ready(check(&self.info(), &request).map(|()| match request {
///             Request::Read { len, .. } => Bytes::from(vec![0; len as usize]),
///             _ => Bytes::new(),
///         }))
///     }
/// }
///
/// assert_eq!(Zeros.read(0, 512)?, [0; 512].as_slice());
/// assert!(Zeros.read(1, 512).is_err());
/// # Ok::<(), steadfast_block::BlockError>(())
/// ```
pub trait BlockDevice: Send + Sync {
    /// What the device is and promises. Health (persistence, initialised) is as of this call.
    fn info(&self) -> DeviceInfo;

    /// Starts a request. May wait for a place in the device's queue, never for the answer.
    /// Bad requests are answered with an error, not a panic: call [`check`] first.
    fn submit(&self, request: Request) -> Completion;

    /// The device's memory, if it is memory.
    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        None
    }

    /// Does a request and waits for its answer. A device that answers a waiting caller faster than
    /// by a hand-over does so here; the functions below all come here.
    fn execute(&self, request: Request) -> Result<Bytes> {
        self.submit(request).wait()
    }

    /// Reads `len` bytes at `offset` and waits.
    fn read(&self, offset: u64, len: u64) -> Result<Bytes> {
        self.execute(Request::Read { offset, len })
    }

    /// Reads at `offset` into the caller's memory and waits. A device that can put the bytes there
    /// by itself does so, which saves a copy.
    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let read = self.read(offset, out.len() as u64)?;
        if read.len() != out.len() {
            let reason = format!("{} bytes came of {}", read.len(), out.len());
            return Err(BlockError::Io { device: self.info().name, op: "read", offset, reason });
        }
        out.copy_from_slice(&read);
        Ok(())
    }

    /// Writes at `offset` and waits.
    fn write(&self, offset: u64, data: Payload) -> Result<()> {
        self.execute(Request::Write { offset, data, fua: false }).map(drop)
    }

    /// Writes at `offset`, durable on return.
    fn write_fua(&self, offset: u64, data: Payload) -> Result<()> {
        self.execute(Request::Write { offset, data, fua: true }).map(drop)
    }

    /// Makes all completed writes durable.
    fn flush(&self) -> Result<()> {
        self.execute(Request::Flush).map(drop)
    }

    /// Informs the device that a range is no longer needed.
    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.execute(Request::Discard { offset, len }).map(drop)
    }

    /// Whether the `len` bytes at `offset` begin with `with`: for a reader that wants to know no
    /// more. A device that can find out without returning the bytes may do so.
    fn begins_with(&self, offset: u64, len: u64, with: &[u8]) -> Result<bool> {
        Ok(self.read(offset, len)?.starts_with(with))
    }

    /// The first byte that was found not to be zero; `None`: the device is taken for blank. One
    /// that knows where it has holes looks at all else. Any other is read whole up to 1 GiB; of a
    /// larger one 64 MiB at each end, and a thousand pieces of 1 MiB between.
    fn first_data(&self) -> Result<Option<u64>> {
        crate::blank::first_data(self)
    }

    /// Whether one large read is better than several small ones, and than what a reader would not
    /// have needed. Not where reads take no time, or where it is to be seen what is needed.
    fn gains_by_reading_ahead(&self) -> bool {
        true
    }
}

impl<D: BlockDevice + ?Sized> BlockDevice for Arc<D> {
    fn info(&self) -> DeviceInfo {
        (**self).info()
    }

    fn submit(&self, request: Request) -> Completion {
        (**self).submit(request)
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        (**self).direct_memory()
    }

    fn execute(&self, request: Request) -> Result<Bytes> {
        (**self).execute(request)
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        (**self).read_into(offset, out)
    }

    fn begins_with(&self, offset: u64, len: u64, with: &[u8]) -> Result<bool> {
        (**self).begins_with(offset, len, with)
    }

    fn first_data(&self) -> Result<Option<u64>> {
        (**self).first_data()
    }

    fn gains_by_reading_ahead(&self) -> bool {
        (**self).gains_by_reading_ahead()
    }
}

/// Refuses a request that the device described by `info` must not be given: outside the device,
/// not whole blocks, empty, or a write to a read-only device.
pub fn check(info: &DeviceInfo, request: &Request) -> Result<()> {
    let Some((offset, len)) = request.range() else { return Ok(()) };
    let block = u64::from(info.logical_block);
    let writes = !matches!(request, Request::Read { .. });
    let aligned = len != 0
        && match block.is_power_of_two() {
            // A division would take longer than the rest of this.
            true => (offset | len) & (block - 1) == 0,
            false => offset % block == 0 && len % block == 0,
        };
    if aligned && !(info.read_only && writes) {
        return info.inside(request.op(), offset, len);
    }
    // Of every request only this far: the name is copied for messages alone.
    let (device, op) = (info.name.clone(), request.op());
    Err(if info.read_only && writes {
        BlockError::ReadOnly { device }
    } else {
        BlockError::Misaligned { device, op, offset, len, block: info.logical_block }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers reads in a way of its own, and submitted requests never.
    struct Quick;

    impl BlockDevice for Quick {
        fn info(&self) -> DeviceInfo {
            DeviceInfo::new("quick", "test", 4096)
        }

        fn submit(&self, _: Request) -> Completion {
            let (device, reason) = ("quick".into(), "the long way was taken".into());
            Completion::ready(Err(BlockError::Gone { device, reason }))
        }

        fn execute(&self, request: Request) -> Result<Bytes> {
            let (_, len) = request.range().unwrap_or_default();
            Ok(vec![1; len as usize].into())
        }

        fn begins_with(&self, _: u64, _: u64, with: &[u8]) -> Result<bool> {
            Ok(with == [7])
        }

        fn first_data(&self) -> Result<Option<u64>> {
            Ok(Some(7))
        }

        fn gains_by_reading_ahead(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_shared_device_keeps_its_short_ways() {
        let shared: Arc<dyn BlockDevice> = Arc::new(Quick);
        assert!(shared.begins_with(0, 512, &[7]).unwrap() && !shared.gains_by_reading_ahead());
        assert_eq!(shared.first_data().unwrap(), Some(7));
        assert_eq!(shared.read(0, 2).unwrap(), [1, 1][..]);
        shared.write(0, Payload::new()).unwrap();
        shared.write_fua(0, Payload::new()).unwrap();
        shared.flush().unwrap();
        shared.discard(0, 512).unwrap();
    }

    #[test]
    fn bad_requests_are_refused() {
        let mut info = DeviceInfo::new("d", "test", 4096);
        let read = |offset, len| Request::Read { offset, len };
        assert!(check(&info, &read(0, 4096)).is_ok());
        assert!(matches!(check(&info, &read(1, 512)), Err(BlockError::Misaligned { .. })));
        assert!(matches!(check(&info, &read(0, 0)), Err(BlockError::Misaligned { .. })));
        assert!(matches!(check(&info, &read(4096, 512)), Err(BlockError::OutOfRange { .. })));
        let last = u64::MAX - 511;
        assert!(matches!(check(&info, &read(last, 512)), Err(BlockError::OutOfRange { .. })));
        info.read_only = true;
        let write = Request::Write { offset: 0, data: vec![0; 512].into(), fua: false };
        assert!(matches!(check(&info, &write), Err(BlockError::ReadOnly { .. })));
    }
}
