//! The connection over /dev/fuse: a read gives a request, a write takes an answer.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use crate::protocol::{Arguments, IN_HEADER, InHeader, OUT_HEADER, OutHeader};
use crate::reply::{Answer, LateAnswer};

/// FUSE_DEV_IOC_CLONE, `_IOR(229, 0, uint32_t)`.
const CLONE: libc::Ioctl = 0x8004_e500_u32 as libc::Ioctl;
/// Least buffer that the kernel reads into (FUSE_MIN_READ_BUFFER).
const BUFFER_MIN: usize = 8192;

/// An open /dev/fuse that belongs to a connection.
#[derive(Debug)]
pub(crate) struct Device {
    file: OwnedFd,
}

impl Device {
    pub fn new(file: OwnedFd) -> Arc<Device> {
        Arc::new(Device { file })
    }

    /// A further descriptor of the same connection. Requests that were read by one are answered by
    /// the same one, and the kernel keeps a list of them for each.
    ///
    /// # Errors
    /// /dev/fuse cannot be opened; it is no connection of the kernel's.
    #[expect(unsafe_code, reason = "an ioctl that rustix does not have")]
    pub fn cloned(&self) -> io::Result<Arc<Device>> {
        let file = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let of = self.file.as_raw_fd();
        // SAFETY: the kernel reads 4 bytes at the address, a descriptor's number.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), CLONE, &raw const of) };
        if done == 0 { Ok(Device::new(file)) } else { Err(io::Error::last_os_error()) }
    }

    /// A descriptor that is no other connection's: for who asks about this one.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.file.try_clone()
    }

    /// Reads one request.
    ///
    /// # Errors
    /// ENODEV: it is unmounted.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
        loop {
            match rustix::io::read(&self.file, &mut *buffer) {
                // ENOENT: the request was taken back, as by a signal to its caller.
                Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => {}
                Ok(len) => return Ok(&buffer[..len]),
                Err(e) => return Err(e),
            }
        }
    }

    /// Writes an answer or a notification.
    ///
    /// # Errors
    /// ENOENT: nobody waits for it any more, or the kernel does not know what it is about.
    pub fn write(&self, header: &OutHeader, parts: &[&[u8]]) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); 4];
        slices[0] = IoSlice::new(header.as_bytes());
        for (slice, part) in slices[1..].iter_mut().zip(parts) {
            *slice = IoSlice::new(part);
        }
        rustix::io::writev(&self.file, &slices[..=parts.len()])?;
        Ok(())
    }

    /// Memory for a request of at most so many bytes of data.
    pub fn buffer(max_write: u32) -> Vec<u8> {
        // Behind the header come the arguments of a write; names of others are shorter.
        vec![0; (max_write as usize + 4096).max(BUFFER_MIN)]
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A request that was read, its header and its arguments.
///
/// # Errors
/// It is shorter than a header, or than its header says.
pub(crate) fn receive(message: &[u8]) -> io::Result<(InHeader, Arguments<'_>)> {
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "what was read is no request");
    let (header, _) = InHeader::read_from_prefix(message).map_err(|_| bad())?;
    let arguments = message.get(IN_HEADER..header.len as usize).ok_or_else(bad)?;
    Ok((header, Arguments::contiguous(arguments)))
}

/// Where the answer to a request goes that was read here.
pub(crate) struct DeviceAnswer {
    pub device: Arc<Device>,
    pub unique: u64,
}

impl DeviceAnswer {
    fn write(&self, error: i32, parts: &[&[u8]]) {
        let len = OUT_HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
        // OK to cast: answers are of the size that was asked for, which has 32 bits.
        let header = OutHeader { len: len as u32, error, unique: self.unique };
        match self.device.write(&header, parts) {
            // Whoever asked is gone, or the mount.
            Err(e) if Errno::from_io_error(&e) == Some(Errno::NOENT) => {}
            Err(e) => tracing::debug!("an answer was not taken: {e}"),
            Ok(()) => {}
        }
    }
}

impl Answer for DeviceAnswer {
    fn send(&mut self, error: i32, parts: &[&[u8]]) {
        self.write(error, parts);
    }

    fn has_room_for_later(&self) -> bool {
        true
    }

    fn later(&mut self) -> Box<dyn LateAnswer> {
        Box::new(DeviceAnswer { device: Arc::clone(&self.device), unique: self.unique })
    }
}

impl LateAnswer for DeviceAnswer {
    fn send(self: Box<Self>, error: i32, parts: &[&[u8]]) {
        self.write(error, parts);
    }
}
