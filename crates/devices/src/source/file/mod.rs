//! An image file or a block device of the host.
//!
//! # Invariants
//!
//! 1. No other process changes the bytes: a block device is opened exclusively (the kernel refuses
//!    a mounted one), an image file is locked, and one that is attached to a loop device is
//!    refused. See [`FileDevice::open`].
//! 2. A flush is an `fdatasync`. Linux reports a failed write-back once and then drops the pages,
//!    so the first failure is permanent: every later flush and FUA write fails too.
//! 3. A completed request holds no reference to the file: after all completions, dropping the
//!    device frees the file or device at once.
//!
//! In real time a pool of threads serves requests, so that several are in flight. `submit` serves
//! them itself inside a simulation, where waiting for the host is useless, and for small requests
//! to a file in memory (tmpfs): copying takes less time than the hand-over.

mod holder;
mod host;
mod image;
mod open;
mod pool;
#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{
    BlockDevice, BlockError, Completion, DeviceInfo, Request, check, first_data, first_data_in,
};
use steadfast_runtime::is_simulated;

pub use holder::{Holder, locked_by};
pub(super) use host::device_persistence;
use image::Image;
pub use open::{Direct, FileOptions, OpenError, descriptor};
pub(crate) use open::{create_sized, folder_of, locked, system};
use pool::ThreadPool;

use crate::source::NewFile;

/// Longest read or write of a file in memory that is not handed over, in bytes.
const AT_ONCE_MAX: u64 = 128 << 10;

/// An open image file or block device.
pub struct FileDevice {
    info: DeviceInfo,
    notes: Vec<String>,
    direct: bool,
    /// An image file in a file system that is memory: no request waits for a device.
    in_memory: bool,
    image: Arc<Image>,
    pool: ThreadPool,
    /// The file under a loop device: locked until it is closed.
    _under: Option<OwnedFd>,
}

impl FileDevice {
    /// Opens the image file or block device at `path`.
    ///
    /// # Errors
    /// If it cannot be opened, is neither of the two, has no whole block, or is in use: mounted,
    /// attached to a loop device, or open in another program that locks it.
    pub fn open(path: impl AsRef<Path>, options: &FileOptions) -> Result<Self, OpenError> {
        let opened = open::open(path.as_ref(), options)?;
        Ok(FileDevice::from_opened(opened, options))
    }

    /// Creates a sparse image file of `size` bytes, which must be whole 512-byte blocks, and
    /// opens it for reading and writing. The new file itself is durable on return.
    ///
    /// # Errors
    /// If there is something at `path` already; or as for [`open`](Self::open).
    pub fn create(
        path: impl AsRef<Path>,
        size: u64,
        options: &FileOptions,
    ) -> Result<Self, OpenError> {
        FileDevice::create_removable(path, size, options).map(|(device, _)| device)
    }

    /// The same; also gives the new file, so that a caller that fails later can remove it.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_removable(
        path: impl AsRef<Path>,
        size: u64,
        options: &FileOptions,
    ) -> Result<(Self, NewFile), OpenError> {
        let path = path.as_ref();
        FileDevice::create_in(open::folder_of(path)?, path, size, options)
    }

    /// The same in a folder that the caller has found: of `path` only the last name counts, and it
    /// is what messages say. Whoever exchanges folders, links or files meanwhile changes nothing
    /// of what is made and opened.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_in(
        folder: OwnedFd,
        path: impl AsRef<Path>,
        size: u64,
        options: &FileOptions,
    ) -> Result<(Self, NewFile), OpenError> {
        let path = path.as_ref();
        let made = open::create(folder, path, size)?;
        let device = FileDevice::over(&made, path, options);
        made.kept(device)
    }

    /// A file that was made, by its own descriptor.
    pub(super) fn over(
        made: &NewFile,
        path: &Path,
        options: &FileOptions,
    ) -> Result<Self, OpenError> {
        let options = FileOptions { read_only: false, ..options.clone() };
        Ok(FileDevice::from_opened(open::opened(made, path, &options)?, &options))
    }

    fn from_opened(opened: open::FileProbe, options: &FileOptions) -> Self {
        let open::FileProbe { info, notes, direct, in_memory, image, under } = opened;
        let pool = ThreadPool::new(format!("io {}", info.name), options.workers);
        FileDevice { info, notes, direct, in_memory, image: Arc::new(image), pool, _under: under }
    }

    /// The open file itself, for mapping.
    pub(crate) fn as_file(&self) -> &OwnedFd {
        self.image.file()
    }

    /// Whether requests bypass the host's page cache (`O_DIRECT`).
    pub fn direct(&self) -> bool {
        self.direct
    }

    /// What is not as one might expect, in sentences: why there is no direct I/O, that the size
    /// is not whole blocks, that the file cannot be locked.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether it is no block device.
    pub(super) fn is_file(&self) -> bool {
        self.image.is_file()
    }

    /// [`first_data`](BlockDevice::first_data) of so many bytes of a file.
    pub(super) fn first_data_of_file(&self, size: u64) -> Result<Option<u64>, BlockError> {
        let block = u64::from(self.info.logical_block);
        let mut at = 0;
        while let Some(data) = self.image.data_from(at).filter(|data| data.start < size) {
            let end = data.end.min(size).next_multiple_of(block).min(self.info.size);
            let found = first_data_in(self, data.start / block * block..end)?;
            if found.is_some() {
                return Ok(found.filter(|found| *found < size));
            }
            at = end;
        }
        Ok(None)
    }

    /// Whether `submit` does the request itself.
    fn at_once(&self, request: &Request) -> bool {
        let small = request.range().is_none_or(|(_, len)| len <= AT_ONCE_MAX);
        is_simulated() || self.in_memory && small
    }

    fn perform(&self, request: Request) -> Result<Bytes, BlockError> {
        check(&self.info, &request)?;
        self.image.perform(request)
    }
}

impl BlockDevice for FileDevice {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        if self.at_once(&request) {
            return Completion::ready(self.perform(request));
        }
        if let Err(refused) = check(&self.info, &request) {
            return Completion::ready(Err(refused));
        }
        let (completer, completion) = Completion::pending();
        let image = Arc::clone(&self.image);
        self.pool.run(move || {
            let answer = image.perform(request);
            // Before the answer: invariant 3.
            drop(image);
            completer.complete(answer);
        });
        completion
    }

    fn first_data(&self) -> Result<Option<u64>, BlockError> {
        match self.is_file() {
            true => self.first_data_of_file(self.info.size),
            false => first_data(self),
        }
    }

    // A waiting caller does the work on its own thread: no hand-over, twice the speed.

    fn execute(&self, request: Request) -> Result<Bytes, BlockError> {
        self.perform(request)
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), BlockError> {
        check(&self.info, &Request::Read { offset, len: out.len() as u64 })?;
        self.image.read_into(offset, out)
    }
}

steadfast_runtime::debug_fields!(FileDevice: info, direct);
