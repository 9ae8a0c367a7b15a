//! Opening and creating ranges.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use steadfast_block::DeviceInfo;

use super::super::file::{
    Direct, FileDevice, FileOptions, OpenError, create_sized, folder_of, locked, system,
};
use super::super::made::NewFile;
use super::label::{LABEL_BYTES, RangeLabel};
use super::mapping::Mapping;
use super::{Pmem, Promise, dax, promise};

/// A power cut leaves words of so many bytes whole.
const WORD: u32 = 8;
/// Ranges are whole pages.
const PAGE: u64 = 4096;

/// How to open a range.
#[derive(Debug, Clone, Default)]
pub struct PmemOptions {
    /// Refuse stores and writes, and share the range with other readers.
    pub read_only: bool,
    /// Name for messages; the path if there is none.
    pub name: Option<String>,
    /// Map all of a file, whatever label is at its end.
    pub whole: bool,
}

impl Pmem {
    /// Maps the file, block device or DAX device at `path`. An image file is locked.
    ///
    /// # Errors
    /// If it cannot be opened or mapped, is in use, or has no whole page.
    pub fn open(path: impl AsRef<Path>, options: &PmemOptions) -> Result<Pmem, OpenError> {
        let path = path.as_ref();
        let stat = rustix::fs::stat(path).map_err(|e| system(path, "open it", e))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice {
            return Pmem::open_dax_device(path, options);
        }
        Pmem::over(FileDevice::open(path, &through(options))?, path, options)
    }

    /// What is open, mapped.
    fn over(file: FileDevice, path: &Path, options: &PmemOptions) -> Result<Pmem, OpenError> {
        let stat = rustix::fs::fstat(file.as_file()).map_err(|e| system(path, "examine it", e))?;
        let whole = steadfast_block::BlockDevice::info(&file).size;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let label =
            if is_file && !options.whole { RangeLabel::read(file.as_file(), whole) } else { None };
        let size = label.as_ref().map_or(whole, |label| label.bytes);
        let promise = |synchronous| promise::of(&stat, synchronous);
        let mut pmem = Pmem::map(path, file.as_file(), size, options, promise)?;
        (pmem.file, pmem.label) = (Some(file), label);
        Ok(pmem)
    }

    /// The label of the emulated range at `path`, if it is one, which is then opened as
    /// memory. What cannot be read has none.
    pub fn label_of(path: impl AsRef<Path>) -> Option<RangeLabel> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(path.as_ref(), flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_file.then(|| RangeLabel::read(&file, stat.st_size as u64)).flatten()
    }

    /// A `/dev/daxN.M`.
    fn open_dax_device(path: &Path, options: &PmemOptions) -> Result<Pmem, OpenError> {
        let how = if options.read_only { OFlags::RDONLY } else { OFlags::RDWR };
        let file = rustix::fs::open(path, how | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| system(path, "open it", e))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| system(path, "examine it", e))?;
        let Some(device) = dax::of_device(stat.st_rdev) else {
            let what = "a character device without a size, so no DAX device";
            return Err(OpenError::NotADisk { path: path.into(), what });
        };
        let lock = match options.read_only {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        if flock(&file, lock) == Err(Errno::WOULDBLOCK) {
            return Err(locked(path, &file));
        }
        let promise = |synchronous| promise::of_dax_device(&device.folder, synchronous);
        let mut pmem = Pmem::map(path, &file, device.mappable(), options, promise)?;
        pmem.dax_device = Some(file);
        Ok(pmem)
    }

    fn map(
        path: &Path,
        file: &OwnedFd,
        size: u64,
        options: &PmemOptions,
        promise: impl FnOnce(bool) -> Promise,
    ) -> Result<Pmem, OpenError> {
        let size = size / PAGE * PAGE;
        let len = usize::try_from(size).ok().filter(|len| *len > 0);
        let Some(len) = len else {
            let (path, block) = (path.into(), PAGE as u32);
            return Err(OpenError::TooSmall { path, size, block });
        };
        let mapped = |synchronous| Mapping::new(file, len, !options.read_only, synchronous);
        let (mapping, synchronous) = match mapped(true) {
            Ok(mapping) => (mapping, true),
            // Not offered there, or by a kernel that does not know of it.
            Err(Errno::OPNOTSUPP | Errno::INVAL) => {
                (mapped(false).map_err(|e| system(path, "map it", e))?, false)
            }
            Err(e) => return Err(system(path, "map it", e)),
        };
        let promise = promise(synchronous);
        let name = options.name.clone().unwrap_or_else(|| path.display().to_string());
        let model = match promise {
            Promise::Not { .. } => "memory, not persistent",
            _ => "persistent memory",
        };
        let mut info = DeviceInfo::new(name, model, mapping.len() as u64);
        info.physical_block = 4096;
        info.atomic_write = WORD;
        info.volatile_cache = true;
        info.read_only = options.read_only;
        info.persistence = promise.persistence();
        let (unsynced, failed) = Default::default();
        let (file, dax_device, label) = (None, None, None);
        Ok(Pmem { info, mapping, promise, label, file, dax_device, unsynced, failed })
    }

    /// Makes an emulated range: a file of `size` bytes, sparse, which should be in a file system
    /// that is memory (tmpfs). It outlives the process, not the machine.
    ///
    /// # Errors
    /// If there is something at `path`, the size is not whole pages or does not fit into memory.
    pub fn create_emulated(path: impl AsRef<Path>, size: u64) -> Result<(), OpenError> {
        let path = path.as_ref();
        Pmem::make(folder_of(path)?, path, size).map(drop)
    }

    fn make(folder: OwnedFd, path: &Path, size: u64) -> Result<NewFile, OpenError> {
        if size == 0 || !size.is_multiple_of(PAGE) || i64::try_from(size).is_err() {
            let reason = "a range is whole pages of 4096 bytes, less than 8 EiB";
            return Err(OpenError::BadSize { path: path.into(), size, reason });
        }
        create_sized(folder, path, size)
    }

    /// The same with a label in its last [`LABEL_BYTES`], so that it is known for what it is; the
    /// label's `bytes` are set here. It is made in a folder that the caller has found: of `path`
    /// only the last name counts, and it is what messages say. Whoever exchanges folders, links or
    /// files meanwhile changes nothing of what is made and mapped. Returns the range, mapped, and
    /// the new file, so that a caller that fails later can remove it.
    ///
    /// # Errors
    /// As for [`create_emulated`](Self::create_emulated); also if only the label would fit.
    pub fn create_labelled(
        folder: OwnedFd,
        path: impl AsRef<Path>,
        size: u64,
        label: RangeLabel,
    ) -> Result<(Pmem, NewFile), OpenError> {
        let path = path.as_ref();
        if size <= LABEL_BYTES {
            let reason = "its label takes 128 KiB of a range: make it larger";
            return Err(OpenError::BadSize { path: path.into(), size, reason });
        }
        let made = Pmem::make(folder, path, size)?;
        let label = RangeLabel { bytes: size - LABEL_BYTES, ..label };
        let options = PmemOptions::default();
        let written = label.write(&made.file, size).map_err(|e| system(path, "write its label", e));
        let file = written.and_then(|()| FileDevice::over(&made, path, &through(&options)));
        made.kept(file.and_then(|file| Pmem::over(file, path, &options)))
    }
}

/// How the file is opened: by way of the page cache where it is one, so that both ways are the same
/// bytes.
fn through(options: &PmemOptions) -> FileOptions {
    FileOptions {
        read_only: options.read_only,
        direct: Direct::Never,
        name: options.name.clone(),
        ..FileOptions::default()
    }
}
