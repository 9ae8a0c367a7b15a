//! A file of a file system as source or sink.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_runtime::cpu;
use steadfast_vfs::{Attr, Fh, FileSystem, FileType, FsError, NewNode, OpenFlags, path};

use super::ends::{Sink, SkipResult, Source};
use super::errno::Errno;
use super::operands::Operands;
use super::words::{Conv, Flags};

/// Processor time of a system call apart from what the file system does; declared in the
/// simulation, as IOzone's engine does. Real calls take their own.
const SYSCALL: Duration = Duration::from_micros(1);

/// An open file with a position. Closed when it is dropped.
struct Open {
    fs: Arc<dyn FileSystem>,
    fh: Fh,
    attr: Attr,
    position: u64,
    flags: Flags,
}

impl Drop for Open {
    fn drop(&mut self) {
        // What matters was reported by writes and fsync.
        let _ = self.fs.release(self.fh);
    }
}

fn open_flags(flags: Flags) -> OpenFlags {
    let mut open = OpenFlags::empty();
    open.set(OpenFlags::SYNC, flags.contains(Flags::SYNC));
    open.set(OpenFlags::DSYNC, flags.contains(Flags::DSYNC));
    open.set(OpenFlags::DIRECT, flags.contains(Flags::DIRECT));
    open.set(OpenFlags::APPEND, flags.contains(Flags::APPEND));
    open
}

/// Finds what a path names; `Ok(None)` if nothing.
fn find(fs: &dyn FileSystem, name: &[u8], flags: Flags) -> Result<Option<Attr>, Errno> {
    let follow = !flags.contains(Flags::NOFOLLOW);
    let attr = match path::resolve(fs, name, follow) {
        Ok(attr) => attr,
        Err(FsError::NotFound) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    match attr.kind {
        FileType::Symlink => Err(Errno::LOOP),
        FileType::Directory => Ok(Some(attr)),
        _ if flags.contains(Flags::DIRECTORY) => Err(Errno::NOTDIR),
        FileType::Regular => Ok(Some(attr)),
        // Its driver is the kernel's: there is none here.
        _ => Err(Errno(6)),
    }
}

/// A file that is read.
pub(crate) struct FileSource(Result<Open, Errno>);

impl FileSource {
    /// Opens the file at `name`, a path from the root.
    ///
    /// # Errors
    /// As open(2). A folder can be opened, but not read.
    pub fn open(fs: Arc<dyn FileSystem>, name: &[u8], flags: Flags) -> Result<Self, Errno> {
        let attr = find(&*fs, name, flags)?.ok_or_else(|| Errno::from(FsError::NotFound))?;
        if attr.kind == FileType::Directory {
            return Ok(FileSource(Err(Errno::ISDIR)));
        }
        let fh = fs.open(attr.ino, OpenFlags::READ | open_flags(flags))?;
        Ok(FileSource(Ok(Open { fs, fh, attr, position: 0, flags })))
    }
}

impl Source for FileSource {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, Errno> {
        let open = self.0.as_mut().map_err(|e| *e)?;
        cpu(SYSCALL);
        let data = open.fs.read(open.fh, open.position, buf.len())?;
        buf[..data.len()].copy_from_slice(&data);
        open.position += data.len() as u64;
        Ok(data.len())
    }

    fn skip(&mut self, bytes: u64) -> Result<SkipResult, Errno> {
        let Ok(open) = self.0.as_mut() else { return Ok(SkipResult::By(bytes)) };
        let size = open.fs.getattr(open.attr.ino)?.size;
        let skipped = bytes.min(size.saturating_sub(open.position));
        open.position += skipped;
        Ok(SkipResult::By(skipped))
    }
}

/// A file that is written.
pub struct FileSink(Open);

impl FileSink {
    /// Opens, makes, cuts the file at `name`, a path from the root, as the operands say.
    ///
    /// # Errors
    /// As open(2).
    pub fn open(
        fs: Arc<dyn FileSystem>,
        name: &[u8],
        operands: &Operands,
        new: NewNode,
    ) -> Result<FileSink, Errno> {
        let (conv, flags) = (operands.conv, operands.oflags);
        let open = OpenFlags::WRITE | open_flags(flags);
        let (attr, fh) = match find(&*fs, name, flags)? {
            Some(_) if conv.contains(Conv::EXCL) => return Err(Errno::EXIST),
            Some(attr) if attr.kind == FileType::Directory => return Err(Errno::ISDIR),
            Some(attr) => {
                let mut open = open;
                let cut = operands.truncates() && !operands.seeks();
                open.set(OpenFlags::TRUNCATE, cut);
                (attr, fs.open(attr.ino, open)?)
            }
            None if conv.contains(Conv::NOCREAT) => return Err(FsError::NotFound.into()),
            // With O_CREAT the flag means that a folder is wanted where none can be made.
            None if flags.contains(Flags::DIRECTORY) => return Err(Errno::INVAL),
            None => {
                let (dir, name) = path::parent_and_name(&*fs, name)?;
                fs.create(dir, name, new, open)?
            }
        };
        Ok(FileSink(Open { fs, fh, attr, position: 0, flags }))
    }

    /// Cuts or lengthens the file to where writing begins.
    ///
    /// # Errors
    /// As ftruncate(2).
    pub fn truncate(&mut self, size: u64) -> Result<(), Errno> {
        let set = steadfast_vfs::SetAttr { size: Some(size), ..Default::default() };
        self.0.fs.setattr(self.0.attr.ino, set)?;
        Ok(())
    }
}

impl Sink for FileSink {
    fn write(&mut self, data: &[u8]) -> Result<usize, Errno> {
        let open = &mut self.0;
        cpu(SYSCALL);
        let data = Bytes::copy_from_slice(data);
        let how = open_flags(open.flags) & OpenFlags::BY_CALL;
        let written = open.fs.write_as(open.fh, open.position, data, how)?;
        open.position += written as u64;
        Ok(written)
    }

    fn seek(&mut self, bytes: u64) -> Result<(), Errno> {
        let to = self.0.position.checked_add(bytes).filter(|to| i64::try_from(*to).is_ok());
        self.0.position = to.ok_or(Errno::INVAL)?;
        Ok(())
    }

    fn extend(&mut self) -> Result<(), (u64, Errno)> {
        let to = self.0.position;
        let size = self.0.fs.getattr(self.0.attr.ino).map(|a| a.size);
        match size {
            Ok(size) if size >= to => Ok(()),
            Ok(_) => self.truncate(to).map_err(|e| (to, e)),
            Err(e) => Err((to, e.into())),
        }
    }

    fn stop_direct(&mut self) -> Result<(), Errno> {
        self.0.flags -= Flags::DIRECT;
        Ok(())
    }

    fn sync(&mut self, data_only: bool) -> Result<(), Errno> {
        cpu(SYSCALL);
        Ok(self.0.fs.fsync(self.0.fh, data_only)?)
    }
}

#[cfg(test)]
mod tests {
    use steadfast_devices::filter::stat::Stat;
    use steadfast_devices::source::ram::Ram;
    use steadfast_ext4::Ext4;
    use steadfast_ext4::MountOptions;
    use steadfast_ext4_mkfs as mkfs;
    use steadfast_runtime::Sim;

    use super::*;
    use crate::dd::DeviceEnd;

    /// Flushes and durable writes that four blocks of 4 KiB cost.
    fn promises(oflag: &'static str) -> [u64; 2] {
        let run = move || {
            let words = ["of=/f", &format!("oflag={oflag}")[..]].map(Into::into);
            let operands =
                crate::dd::parse(&words[..1 + usize::from(!oflag.is_empty())], Default::default())
                    .unwrap();
            let ram = Arc::new(Ram::new("ram", 32 << 20).with_volatile_cache());
            let stat = Arc::new(Stat::new(ram));
            let device: Arc<dyn steadfast_block::BlockDevice> = Arc::clone(&stat) as _;
            mkfs::make(&device, &mkfs::Options::random(1)).unwrap();
            let fs = Ext4::mount(device, MountOptions::default()).unwrap();
            let new = NewNode { mode: 0o600, uid: 0, gid: 0, umask: 0 };
            let shared: Arc<dyn FileSystem> = Arc::clone(&fs) as _;
            let mut sink = FileSink::open(shared, b"/f", &operands, new).unwrap();
            let kept = || stat.counters().flush.done + stat.counters().fua_writes;
            let before = kept();
            (0..4).for_each(|_| assert_eq!(sink.write(&[7; 4096]), Ok(4096)));
            let file = kept() - before;
            drop(sink);
            fs.unmount().unwrap();
            let mut end = DeviceEnd::new(Arc::clone(&stat) as _, operands.oflags);
            let before = stat.counters().fua_writes;
            (0..4).for_each(|_| assert_eq!(end.write(&[7; 4096]), Ok(4096)));
            [file, stat.counters().fua_writes - before]
        };
        Sim::new(1).run(run).unwrap()
    }

    #[test]
    fn dsync_and_sync_make_each_block_durable_before_the_next() {
        assert_eq!(promises(""), [0, 0]);
        for oflag in ["dsync", "sync"] {
            let [file, device] = promises(oflag);
            assert!(file >= 4 && device == 4, "{oflag}: {file} and {device}");
        }
    }
}
