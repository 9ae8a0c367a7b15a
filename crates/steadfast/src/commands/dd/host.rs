//! Files, pipes and devices of this machine as dd's source and sink.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Advice, FileType, Mode, OFlags, SeekFrom, fadvise, fstat, ftruncate, seek};
use steadfast_bench::dd::place::NotOpened;
use steadfast_bench::dd::{Conv, Errno, Flags, Operands, Sink, SkipResult, Source, always_quoted};

use crate::commands::in_use;

enum Descriptor {
    Opened(OwnedFd),
    Standard(BorrowedFd<'static>),
}

/// An open file of this machine.
pub struct HostEnd {
    descriptor: Descriptor,
    /// The cache may forget what lies before.
    forgotten: u64,
}

/// rustix has O_SYNC's value by this name.
const O_DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as u32);

fn open_flags(flags: Flags) -> OFlags {
    let pairs = [
        (Flags::APPEND, OFlags::APPEND),
        (Flags::DIRECT, OFlags::DIRECT),
        (Flags::DIRECTORY, OFlags::DIRECTORY),
        (Flags::DSYNC, O_DSYNC),
        (Flags::SYNC, OFlags::SYNC),
        (Flags::NOATIME, OFlags::NOATIME),
        (Flags::NONBLOCK, OFlags::NONBLOCK),
        (Flags::NOCTTY, OFlags::NOCTTY),
        (Flags::NOFOLLOW, OFlags::NOFOLLOW),
    ];
    pairs
        .into_iter()
        .filter(|(f, _)| flags.contains(*f))
        .fold(OFlags::empty(), |all, (_, o)| all | o)
}

/// Opens the input.
pub fn input(path: Option<&OsStr>, flags: Flags) -> Result<HostEnd, NotOpened> {
    let Some(path) = path else {
        return standard(rustix::stdio::stdin(), "standard input", flags);
    };
    let how = OFlags::RDONLY | open_flags(flags);
    let fd = rustix::fs::open(path, how, Mode::empty()).map_err(|e| not_opened(path, e))?;
    Ok(HostEnd::new(Descriptor::Opened(fd)))
}

/// Opens the output, makes and cuts it as the operands say. A file that could not be cut is
/// reported, but is open.
pub fn output(o: &Operands, says: &dyn Fn(&str)) -> Result<(HostEnd, bool), NotOpened> {
    let Some(path) = o.output.as_deref() else {
        let end = standard(rustix::stdio::stdout(), "standard output", o.oflags)?;
        return Ok((end, true));
    };
    open_output(path, o, says)
}

/// As [`output`], of the file at `path`.
pub fn open_output(
    path: &OsStr,
    o: &Operands,
    says: &dyn Fn(&str),
) -> Result<(HostEnd, bool), NotOpened> {
    if let Some(busy) = in_use::by_whom(Path::new(path)) {
        return Err(NotOpened::Busy { path: path.as_bytes().into(), who: busy.to_string() });
    }
    let mut how = open_flags(o.oflags);
    how.set(OFlags::CREATE, !o.conv.contains(Conv::NOCREAT));
    how.set(OFlags::EXCL, o.conv.contains(Conv::EXCL));
    how.set(OFlags::TRUNC, o.seek_blocks == 0 && o.truncates());
    if o.seek_offset().is_none() && o.truncates() {
        return Err(NotOpened::offset(o));
    }
    let mode = Mode::from_raw_mode(0o666);
    // To be read only where seek= may have to read; what can only be written is good, too.
    let both = if o.seek_blocks > 0 {
        rustix::fs::open(path, how | OFlags::RDWR, mode)
    } else {
        Err(rustix::io::Errno::ACCESS)
    };
    let fd = both.or_else(|_| rustix::fs::open(path, how | OFlags::WRONLY, mode));
    let fd = fd.map_err(|e| not_opened(path, e))?;
    let end = HostEnd::new(Descriptor::Opened(fd));
    let cut = match o.seek_offset().filter(|_| o.seek_blocks > 0 && o.truncates()) {
        Some(size) => end.cut(size, path, says),
        None => true,
    };
    Ok((end, cut))
}

fn not_opened(path: &OsStr, e: rustix::io::Errno) -> NotOpened {
    NotOpened::Open { path: path.as_bytes().to_vec(), errno: e.into() }
}

/// What is open already gets the flags that can still be set.
fn standard(
    fd: BorrowedFd<'static>,
    name: &'static str,
    flags: Flags,
) -> Result<HostEnd, NotOpened> {
    let set = || -> Result<(), rustix::io::Errno> {
        let add = open_flags(flags - (Flags::NOCTTY | Flags::NOFOLLOW));
        if add.is_empty() {
            return Ok(());
        }
        let old = rustix::fs::fcntl_getfl(fd)?;
        if add.contains(OFlags::DIRECTORY) && kind(fd)? != FileType::Directory {
            return Err(rustix::io::Errno::NOTDIR);
        }
        rustix::fs::fcntl_setfl(fd, old | (add - OFlags::DIRECTORY))
    };
    set().map_err(|e| NotOpened::Flags { name, errno: e.into() })?;
    Ok(HostEnd::new(Descriptor::Standard(fd)))
}

fn kind(fd: impl AsFd) -> Result<FileType, rustix::io::Errno> {
    Ok(FileType::from_raw_mode(fstat(fd)?.st_mode))
}

impl HostEnd {
    fn new(descriptor: Descriptor) -> HostEnd {
        HostEnd { descriptor, forgotten: 0 }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.descriptor {
            Descriptor::Opened(fd) => fd.as_fd(),
            Descriptor::Standard(fd) => *fd,
        }
    }

    fn position(&self) -> Result<u64, Errno> {
        Ok(seek(self.fd(), SeekFrom::Current(0))?)
    }

    /// Cuts the file; only of what has a length it is an error that it cannot be done.
    fn cut(&self, size: u64, path: &OsStr, says: &dyn Fn(&str)) -> bool {
        let Err(e) = ftruncate(self.fd(), size) else { return true };
        let name = always_quoted(path.as_bytes());
        match kind(self.fd()) {
            Ok(FileType::RegularFile | FileType::Directory) => {
                let e = Errno::from(e);
                says(&format!("failed to truncate to {size} bytes in output file {name}: {e}"));
                false
            }
            Ok(_) => true,
            Err(e) => {
                says(&format!("cannot fstat {name}: {}", Errno::from(e)));
                false
            }
        }
    }

    fn let_go(&mut self, all: bool) -> Result<(), Errno> {
        let (from, to) = match all {
            true => (0, None),
            false => (self.forgotten, Some(self.position()?)),
        };
        let len = to.and_then(|to| std::num::NonZeroU64::new(to.saturating_sub(from)));
        fadvise(self.fd(), from, len, Advice::DontNeed)?;
        self.forgotten = to.unwrap_or(0);
        Ok(())
    }
}

impl Source for HostEnd {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match rustix::io::read(self.fd(), &mut *buf) {
                Err(rustix::io::Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }

    fn skip(&mut self, bytes: u64) -> Result<SkipResult, Errno> {
        let Ok(before) = self.position() else { return Ok(SkipResult::MustRead) };
        let offset = i64::try_from(bytes).map_err(|_| Errno::OVERFLOW)?;
        seek(self.fd(), SeekFrom::Current(offset))?;
        let stat = fstat(self.fd())?;
        Ok(SkipResult::By(match FileType::from_raw_mode(stat.st_mode) {
            // Beyond the end there is nothing.
            FileType::RegularFile => bytes.min((stat.st_size as u64).saturating_sub(before)),
            _ => bytes,
        }))
    }

    fn forget(&mut self, all: bool) -> Result<(), Errno> {
        self.let_go(all)
    }
}

impl Sink for HostEnd {
    fn write(&mut self, data: &[u8]) -> Result<usize, Errno> {
        loop {
            match rustix::io::write(self.fd(), data) {
                Err(rustix::io::Errno::INTR) => {}
                // Nobody reads: as other programs end then, without a word.
                Err(rustix::io::Errno::PIPE) => {
                    let signal = signal_hook::consts::SIGPIPE;
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                    return Err(rustix::io::Errno::PIPE.into());
                }
                done => return Ok(done?),
            }
        }
    }

    fn seek(&mut self, bytes: u64) -> Result<(), Errno> {
        let offset = i64::try_from(bytes).map_err(|_| Errno::OVERFLOW)?;
        Ok(seek(self.fd(), SeekFrom::Current(offset)).map(drop)?)
    }

    fn extend(&mut self) -> Result<(), (u64, Errno)> {
        let (Ok(to), Ok(stat)) = (self.position(), fstat(self.fd())) else { return Ok(()) };
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if regular && (stat.st_size as u64) < to {
            ftruncate(self.fd(), to).map_err(|e| (to, e.into()))?;
        }
        Ok(())
    }

    fn stop_direct(&mut self) -> Result<(), Errno> {
        let old = rustix::fs::fcntl_getfl(self.fd())?;
        Ok(rustix::fs::fcntl_setfl(self.fd(), old - OFlags::DIRECT)?)
    }

    fn sync(&mut self, data_only: bool) -> Result<(), Errno> {
        Ok(match data_only {
            true => rustix::fs::fdatasync(self.fd()),
            false => rustix::fs::fsync(self.fd()),
        }?)
    }

    fn forget(&mut self, all: bool) -> Result<(), Errno> {
        self.let_go(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dsync_is_less_than_sync() {
        let (dsync, sync) = (open_flags(Flags::DSYNC), open_flags(Flags::SYNC));
        assert_eq!(dsync.bits(), libc::O_DSYNC as u32);
        assert!(sync.contains(dsync) && sync != dsync);
    }
}
