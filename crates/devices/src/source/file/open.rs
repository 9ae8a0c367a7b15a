//! Opening: the kind of file, other users of it, and whether direct I/O works.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, Stat, StatxFlags, fcntl_getfl,
    fcntl_setfl, flock, ioctl_blkpbszget, ioctl_blksszget, statx,
};
use rustix::io::Errno;
use smart_default::SmartDefault;
use steadfast_block::DeviceInfo;
use steadfast_runtime::{is_simulated, sleep};

use super::holder::{locked_by, mounted_at, opened_by};
use super::host;
use super::image::{DirectAlign, Image};
use crate::source::made::NewFile;

/// Whether requests bypass the host's page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direct {
    /// If the host can; for image files only in units of 512 bytes, so that the block size of a
    /// device does not depend on where its image lies.
    #[default]
    IfPossible,
    /// They do, or the device is not opened. An image file then has the blocks that the host
    /// demands, 4096 bytes for example.
    Required,
    /// They do not.
    Never,
}

/// How to open an image file or block device.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct FileOptions {
    /// Refuse writes, and share the file with other readers.
    pub read_only: bool,
    /// Whether requests bypass the host's page cache.
    pub direct: Direct,
    /// Refuse what is mounted or in use by others. Without it whatever is read may change at any
    /// moment, and whatever is written may destroy somebody's data.
    #[default(true)]
    pub exclusive: bool,
    /// Most requests that are with the host at the same time.
    #[default(32)]
    pub workers: usize,
    /// Name for messages; the path if there is none.
    pub name: Option<String>,
}

impl FileOptions {
    /// The default, for reading only.
    pub fn reading() -> Self {
        FileOptions { read_only: true, ..FileOptions::default() }
    }
}

/// Why an image file or block device was not opened or created.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused something.
    #[error("{}: cannot {action}: {source}", path.display())]
    System {
        /// The path given.
        path: PathBuf,
        /// What was tried, in words.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// It is neither a regular file nor a block device.
    #[error("{}: is {what}, not an image file or a block device", path.display())]
    NotADisk {
        /// The path given.
        path: PathBuf,
        /// What it is, with its article.
        what: &'static str,
    },
    /// Somebody else uses it.
    #[error("{}: is in use: {reason}", path.display())]
    Busy {
        /// The path given.
        path: PathBuf,
        /// By whom, and what to do, in words.
        reason: String,
        /// The process that has it, if it is known.
        process: Option<u32>,
    },
    /// It has no whole block.
    #[error("{}: is too small for a device: {size} bytes, one block is {block}", path.display())]
    TooSmall {
        /// The path given.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The block in bytes.
        block: u32,
    },
    /// A new image or range of memory cannot have that size.
    #[error("{}: {size} bytes: {reason}", path.display())]
    BadSize {
        /// The path given.
        path: PathBuf,
        /// The size asked for in bytes.
        size: u64,
        /// What it is to be, in words.
        reason: &'static str,
    },
    /// A new image was to be larger than any file where it is.
    #[error(
        "{}: {size} bytes: File too large: at most {most} here (file system or ulimit -f)",
        path.display()
    )]
    TooLarge {
        /// The path given.
        path: PathBuf,
        /// The size asked for in bytes.
        size: u64,
        /// The most that a file there can have, in whole sectors.
        most: u64,
    },
    /// Direct I/O was required and does not work.
    #[error("{}: direct I/O is not possible: {reason}", path.display())]
    NoDirect {
        /// The path given.
        path: PathBuf,
        /// In words.
        reason: String,
    },
}

/// Why requests cannot bypass the host's page cache.
#[derive(Debug, Clone, thiserror::Error)]
enum NoDirect {
    /// Nobody wants them to.
    #[error("")]
    NotAsked,
    #[error("the file system that holds it refuses O_DIRECT")]
    Refused,
    #[error("it is a descriptor of whoever started this program")]
    Inherited,
    #[error("the file system that holds it cannot")]
    Cannot,
    #[error("direct reads are refused")]
    ReadsRefused,
    #[error("a direct read fails: {0}")]
    ReadFails(Errno),
    #[error("the block size is unknown: {0}")]
    BlockUnknown(Errno),
    #[error("it would need blocks of {0} bytes here")]
    Blocks(u64),
    #[error("its size is not a multiple of the {0} bytes needed here")]
    Size(u64),
    #[error("it needs an alignment of {memory} and {length} bytes")]
    Alignment { memory: u32, length: u32 },
}

/// What opening found.
pub(super) struct FileProbe {
    pub info: DeviceInfo,
    pub notes: Vec<String>,
    pub direct: bool,
    /// An image file in a file system that is memory.
    pub in_memory: bool,
    pub image: Image,
    /// The locked file under a loop device.
    pub under: Option<OwnedFd>,
}

/// An open in progress.
struct Opening<'a> {
    path: &'a Path,
    options: &'a FileOptions,
    file: OwnedFd,
    is_device: bool,
    under: Option<OwnedFd>,
    notes: Vec<String>,
}

pub(super) fn open(path: &Path, options: &FileOptions) -> Result<FileProbe, OpenError> {
    let stat = rustix::fs::stat(path).map_err(|e| system(path, "open it", e))?;
    // Before the open: opening a FIFO would wait for its other end.
    let is_device = is_device(path, &stat)?;
    let (file, refused) = open_file(path, options, is_device)?;
    Opening { path, options, file, is_device, under: None, notes: Vec::new() }.go_on(refused)
}

/// Opens a file that was made, by its own descriptor: its name may be another file's by now.
pub(super) fn opened(
    made: &NewFile,
    path: &Path,
    options: &FileOptions,
) -> Result<FileProbe, OpenError> {
    let file = made.file.try_clone().map_err(failed(path, "open it"))?.into();
    // It is one open file with that, whatever was done with it.
    let wanted = |flags: OFlags| match options.direct {
        Direct::Never => flags - OFlags::DIRECT,
        Direct::IfPossible | Direct::Required => flags | OFlags::DIRECT,
    };
    let set = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, wanted(flags)));
    let refused = match set {
        Ok(()) => None,
        Err(Errno::INVAL) => Some(NoDirect::Refused),
        Err(e) => return Err(system(path, "choose direct I/O or not", e)),
    };
    Opening { path, options, file, is_device: false, under: None, notes: Vec::new() }.go_on(refused)
}

/// The folder that a path leads to.
pub(crate) fn folder_of(path: &Path) -> Result<OwnedFd, OpenError> {
    NewFile::folder_of(path).map_err(failed(path, "create it"))
}

/// Creates a sparse file in a folder, durably.
pub(super) fn create(folder: OwnedFd, path: &Path, size: u64) -> Result<NewFile, OpenError> {
    if size == 0 || !size.is_multiple_of(512) || i64::try_from(size).is_err() {
        let reason = "an image is a multiple of 512 bytes, less than 8 EiB";
        return Err(OpenError::BadSize { path: path.into(), size, reason });
    }
    let made = create_sized(folder, path, size)?;
    let durable = made.file.sync_all().map_err(failed(path, "make it durable"));
    let synced = || made.sync_name().map_err(failed(path, "make its folder durable"));
    let durable = durable.and_then(|()| synced());
    Ok(made.kept(durable)?.1)
}

/// Creates a sparse file in a folder.
pub(crate) fn create_sized(folder: OwnedFd, path: &Path, size: u64) -> Result<NewFile, OpenError> {
    let made = NewFile::new_in(folder, path).map_err(failed(path, "create it"))?;
    let file = &made.file;
    let sized = file.set_len(size).map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::FBIG) => {
            OpenError::TooLarge { path: path.into(), size, most: most_bytes(file, size) }
        }
        _ => failed(path, "give it its size")(e),
    });
    Ok(made.kept(sized)?.1)
}

/// The largest size in whole sectors that a new, sparse file takes, below one that it does not.
fn most_bytes(file: &File, refused: u64) -> u64 {
    let (mut taken, mut refused) = (0, refused / 512);
    while refused - taken > 1 {
        let middle = taken + (refused - taken) / 2;
        match file.set_len(middle * 512) {
            Ok(()) => taken = middle,
            Err(_) => refused = middle,
        }
    }
    taken * 512
}

fn failed(path: &Path, action: &'static str) -> impl Fn(io::Error) -> OpenError {
    move |source| OpenError::System { path: path.into(), action, source }
}

pub(crate) fn system(path: &Path, action: &'static str, errno: Errno) -> OpenError {
    failed(path, action)(errno.into())
}

fn is_device(path: &Path, stat: &Stat) -> Result<bool, OpenError> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(false),
        FileType::BlockDevice => return Ok(true),
        FileType::Directory => "a directory",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "of an unknown type",
    };
    Err(OpenError::NotADisk { path: path.into(), what })
}

/// A loop device that detaches itself is looked for so many times more, so far apart.
const DETACH_LOOKS: u32 = 50;
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Tries again for a moment while the answer is "busy": a process that was started a moment ago
/// has copies of its parent's descriptors until its `exec`, also of those closed since.
fn while_busy<T>(attempt: impl Fn() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    for _ in 0..20 {
        match attempt() {
            Err(Errno::BUSY | Errno::WOULDBLOCK) if !is_simulated() => {
                sleep(Duration::from_millis(10));
            }
            answer => return answer,
        }
    }
    attempt()
}

/// What is tried where it may be written to.
const FOR_BOTH: &str = "open it for reading and writing";

/// Opens, with `O_DIRECT` if that is wanted and not refused at once; then the reason is returned.
fn open_file(
    path: &Path,
    options: &FileOptions,
    is_device: bool,
) -> Result<(OwnedFd, Option<NoDirect>), OpenError> {
    let mut flags = OFlags::CLOEXEC;
    flags |= if options.read_only { OFlags::RDONLY } else { OFlags::RDWR };
    if is_device && options.exclusive {
        flags |= OFlags::EXCL;
    }
    let with = |flags| while_busy(|| rustix::fs::open(path, flags, Mode::empty()));
    let direct = if options.direct == Direct::Never { OFlags::empty() } else { OFlags::DIRECT };
    let (file, refused) = match with(flags | direct) {
        Err(Errno::INVAL) if !direct.is_empty() => (with(flags), Some(NoDirect::Refused)),
        other => (other, None),
    };
    // Who started this program had the right to open it.
    let is_refused = matches!(file, Err(Errno::ACCESS | Errno::PERM));
    if is_refused && let Some(file) = descriptor(path, options.read_only) {
        return Ok((file, Some(NoDirect::Inherited)));
    }
    let file = file.map_err(|e| match e {
        Errno::BUSY => busy_device(path),
        Errno::TXTBSY => OpenError::Busy {
            path: path.into(),
            reason: "the kernel uses it, as a swap file for example".into(),
            process: None,
        },
        _ if options.read_only => system(path, "open it for reading", e),
        _ => system(path, FOR_BOTH, e),
    })?;
    // The kernel opens it, and fails each write.
    let is_refused = is_device && !options.read_only && {
        rustix::fs::fstat(&file).is_ok_and(|stat| host::is_read_only(stat.st_rdev))
    };
    if is_refused { Err(system(path, FOR_BOTH, Errno::ROFS)) } else { Ok((file, refused)) }
}

/// The descriptor of this process that a path names (`/dev/fd/3`, `/proc/self/fd/3`), once more, if
/// it is open for reading, and unless `read_only` for writing.
pub fn descriptor(path: &Path, read_only: bool) -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let path = path.to_str()?;
    let number = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"))?;
    let us = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    let file = pidfd_getfd(us, number.parse().ok()?, PidfdGetfdFlags::empty()).ok()?;
    let flags = fcntl_getfl(&file).ok()?;
    let mode = flags & OFlags::RWMODE;
    let is_fit = mode == OFlags::RDWR || read_only && mode == OFlags::RDONLY;
    (is_fit && !flags.contains(OFlags::PATH)).then_some(file)
}

/// A block device that somebody has opened exclusively: a mount does, too.
fn busy_device(path: &Path) -> OpenError {
    let number = rustix::fs::stat(path).map_or(0, |stat| stat.st_rdev);
    let (reason, process) = match (mounted_at(number), opened_by(number)) {
        (Some(at), _) => (format!("it is mounted at {}", at.display()), None),
        (None, Some(holder)) => (format!("{holder} has it open"), Some(holder.process)),
        (None, None) => {
            ("it is mounted elsewhere, or another program has opened it exclusively".into(), None)
        }
    };
    OpenError::Busy { path: path.into(), reason, process }
}

/// A file that is locked by another program.
pub(crate) fn locked(path: &Path, file: &OwnedFd) -> OpenError {
    let holder = locked_by(file);
    let who = holder.as_ref().map_or_else(|| "another program".to_owned(), ToString::to_string);
    let process = holder.map(|holder| holder.process);
    OpenError::Busy { path: path.into(), reason: format!("{who} has locked it"), process }
}

impl Opening<'_> {
    /// What is to be done with an open file; direct I/O may have been refused.
    fn go_on(mut self, refused: Option<NoDirect>) -> Result<FileProbe, OpenError> {
        self.secure()?;
        let size = self.size()?;
        let align = match refused {
            Some(reason) => Err(reason),
            None if self.options.direct == Direct::Never => Err(NoDirect::NotAsked),
            None => self.direct_align(size),
        };
        self.finish(size, align)
    }

    /// Locks an image file, or the file under a loop device.
    fn lock(&mut self) -> Result<(), OpenError> {
        let operation = match self.options.read_only {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        let file = self.under.as_ref().unwrap_or(&self.file);
        match while_busy(|| flock(file, operation)) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                // Locked by whoever handed the descriptor to us: for us, then.
                let given = descriptor(self.path, self.options.read_only);
                let Some(given) = given.filter(|given| flock(given, operation).is_ok()) else {
                    return Err(locked(self.path, file));
                };
                self.under = Some(given);
            }
            Err(e) => self.notes.push(format!("the file cannot be locked: {e}")),
        }
        Ok(())
    }

    /// Makes sure that nobody else changes an image file, or by another way the file under a loop
    /// device. (Who opens a device itself excludes others, but for a loop device over it.)
    fn secure(&mut self) -> Result<(), OpenError> {
        if !self.options.exclusive {
            return Ok(());
        }
        let stat = rustix::fs::fstat(&self.file);
        let stat = stat.map_err(|e| system(self.path, "examine it", e))?;
        if self.is_device {
            self.under = host::open_backing_file(stat.st_rdev);
        }
        if !self.is_device || self.under.is_some() {
            self.lock()?;
        }
        let over = || match self.is_device {
            true => host::loop_device_over_device(stat.st_rdev),
            false => host::loop_device_over(stat.st_dev, stat.st_ino),
        };
        let mut attached = over();
        for _ in 0..DETACH_LOOKS {
            let Some(device) = &attached else { break };
            let going = host::loop_device_is_going(device);
            if going {
                sleep(LOOK_AGAIN_AFTER);
            }
            // Also if it seemed to stay: the kernel forgets that it was going when it is gone.
            attached = over();
            if !going {
                break;
            }
        }
        match attached {
            None => Ok(()),
            Some(loop_device) if self.options.read_only => {
                let note = format!("it is attached to {loop_device}: contents may change");
                self.notes.push(note);
                Ok(())
            }
            Some(loop_device) => Err(OpenError::Busy {
                path: self.path.into(),
                reason: format!(
                    "it is attached to {loop_device}; unmount that and detach it (losetup -d)"
                ),
                process: None,
            }),
        }
    }

    fn size(&self) -> Result<u64, OpenError> {
        let size = rustix::fs::seek(&self.file, SeekFrom::End(0));
        size.map_err(|e| system(self.path, "find out its size", e))
    }

    /// The alignment that direct I/O needs, or why there is none.
    fn direct_align(&self, size: u64) -> Result<DirectAlign, NoDirect> {
        if self.is_device {
            let block = ioctl_blksszget(&self.file).map_err(NoDirect::BlockUnknown)?;
            return Ok(DirectAlign { memory: block as usize, length: block as usize });
        }
        let align = match self.stated_align() {
            Some(stated) => stated?,
            None => self.tried_align()?,
        };
        let unit = align.length as u64;
        if self.options.direct != Direct::Required && unit > 512 {
            return Err(NoDirect::Blocks(unit));
        }
        if !size.is_multiple_of(unit) {
            return Err(NoDirect::Size(unit));
        }
        Ok(align)
    }

    /// What the kernel says, where it does (`STATX_DIOALIGN`, Linux 6.1).
    fn stated_align(&self) -> Option<Result<DirectAlign, NoDirect>> {
        let stated = statx(&self.file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
        if stated.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
            return None;
        }
        let (memory, length) = (stated.stx_dio_mem_align, stated.stx_dio_offset_align);
        if length == 0 || memory == 0 {
            return Some(Err(NoDirect::Cannot));
        }
        if memory > 4096 || !memory.is_power_of_two() || !length.is_power_of_two() {
            return Some(Err(NoDirect::Alignment { memory, length }));
        }
        Some(Ok(DirectAlign { memory: memory as usize, length: (length as usize).max(512) }))
    }

    /// What turns out to work: a read of one unit.
    fn tried_align(&self) -> Result<DirectAlign, NoDirect> {
        for length in [512, 4096] {
            let buffer = vec![0; 2 * 4096];
            let start = buffer.as_ptr().align_offset(4096);
            let mut buffer = buffer;
            match rustix::io::pread(&self.file, &mut buffer[start..start + length], 0) {
                Ok(_) => return Ok(DirectAlign { memory: length, length }),
                Err(Errno::INVAL) => continue,
                Err(e) => return Err(NoDirect::ReadFails(e)),
            }
        }
        Err(NoDirect::ReadsRefused)
    }

    fn finish(
        mut self,
        size: u64,
        align: Result<DirectAlign, NoDirect>,
    ) -> Result<FileProbe, OpenError> {
        let path = self.path;
        if let Err(reason) = &align
            && self.options.direct == Direct::Required
        {
            return Err(OpenError::NoDirect { path: path.into(), reason: reason.to_string() });
        }
        let in_memory = !self.is_device && host::in_memory(&self.file);
        let direct = match align {
            // The page cache is where the file lies: there is nothing to bypass, and buffers that
            // are aligned for nothing would cost a copy each.
            Ok(_) if in_memory && self.options.direct == Direct::IfPossible => None,
            Ok(align) => Some(align),
            Err(reason) => {
                if self.options.direct == Direct::IfPossible {
                    self.notes.push(format!("no direct I/O: {reason}"));
                }
                None
            }
        };
        if direct.is_none() && self.options.direct == Direct::IfPossible {
            let flags = fcntl_getfl(&self.file);
            let cleared = flags.and_then(|f| fcntl_setfl(&self.file, f - OFlags::DIRECT));
            cleared.map_err(|e| system(path, "turn direct I/O off", e))?;
        }
        let info = self.describe(size, direct)?;
        let least = if self.is_device { 0 } else { info.size };
        let image = Image::new(info.name.clone(), self.file, self.options.read_only, direct, least);
        let (notes, under) = (self.notes, self.under);
        Ok(FileProbe { info, notes, direct: direct.is_some(), in_memory, image, under })
    }

    fn describe(
        &mut self,
        size: u64,
        direct: Option<DirectAlign>,
    ) -> Result<DeviceInfo, OpenError> {
        let path = self.path;
        let stat = rustix::fs::fstat(&self.file).map_err(|e| system(path, "examine it", e))?;
        let (block, physical) = if self.is_device {
            let block = ioctl_blksszget(&self.file)
                .map_err(|e| system(path, "find out its block size", e))?;
            (block, ioctl_blkpbszget(&self.file).unwrap_or(block))
        } else {
            let block = direct.map_or(512, |align| align.length as u32);
            (block, u32::try_from(stat.st_blksize).unwrap_or(block))
        };
        let usable = size - size % u64::from(block);
        if usable == 0 {
            return Err(OpenError::TooSmall { path: path.into(), size, block });
        }
        if usable < size {
            let note = format!("the last {} bytes are no whole block and not used", size - usable);
            self.notes.push(note);
        }
        let under = if self.is_device { stat.st_rdev } else { stat.st_dev };
        let name = self.options.name.clone().unwrap_or_else(|| path.display().to_string());
        let model = match self.is_device {
            true => host::model(under).unwrap_or_else(|| "block device".into()),
            false => "image file".into(),
        };
        let mut info = DeviceInfo::new(name, model, usable);
        info.logical_block = block;
        info.atomic_write = block;
        info.physical_block = if physical.is_power_of_two() { physical.max(block) } else { block };
        info.volatile_cache = true;
        info.read_only = self.options.read_only;
        info.rotational = host::rotational(under);
        info.persistence = match self.is_device {
            true => host::device_persistence(under),
            false => host::file_persistence(&self.file),
        };
        Ok(info)
    }
}
