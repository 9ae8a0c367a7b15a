//! Durable calls of the kernel: nothing but system calls on descriptors that are open.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, AtFlags, Mode, OFlags};
use steadfast_vfs::{FsError, Result};

use super::{DurableClient, TO_AND_FRO, WRITE, folder, name, whole};

/// A task on a folder of this machine.
pub struct OnHost {
    root: OwnedFd,
    task: usize,
    opened: Option<HostFiles>,
    page: Vec<u8>,
}

/// What [`prepare`](Client::prepare) opens.
struct HostFiles {
    dir: OwnedFd,
    overwritten: OwnedFd,
    appended: OwnedFd,
    end: u64,
    renames: u64,
}

impl OnHost {
    /// The task of that number, in `folder`.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub fn new(folder: &Path, task: usize) -> Result<OnHost> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = fs::open(folder, flags, Mode::empty())?;
        Ok(OnHost { root, task, opened: None, page: vec![0x5a; WRITE] })
    }

    fn opened(&mut self) -> Result<(&mut HostFiles, &[u8])> {
        Ok((self.opened.as_mut().ok_or(FsError::BadHandle)?, &self.page))
    }
}

fn make(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(fs::openat(dir, name, flags, Mode::from_raw_mode(0o644))?)
}

fn write(file: &OwnedFd, at: u64, page: &[u8]) -> Result<()> {
    whole(rustix::io::pwrite(file, page, at)?)
}

impl DurableClient for OnHost {
    fn overwrite(&mut self, block: u64) -> Result<()> {
        let (opened, page) = self.opened()?;
        write(&opened.overwritten, block * WRITE as u64, page)
    }

    fn append(&mut self) -> Result<()> {
        let (opened, page) = self.opened()?;
        write(&opened.appended, opened.end, page)?;
        opened.end += WRITE as u64;
        Ok(fs::fsync(&opened.appended)?)
    }

    fn create(&mut self, number: u64, written: bool) -> Result<()> {
        let (opened, page) = self.opened()?;
        let file = make(&opened.dir, &name(number))?;
        if written {
            write(&file, 0, page)?;
        }
        Ok(fs::fsync(&file)?)
    }

    fn rename(&mut self) -> Result<()> {
        let (opened, _) = self.opened()?;
        let [from, to] = match opened.renames % 2 {
            0 => TO_AND_FRO,
            _ => [TO_AND_FRO[1], TO_AND_FRO[0]],
        };
        fs::renameat(&opened.dir, from, &opened.dir, to)?;
        opened.renames += 1;
        Ok(fs::fsync(&opened.dir)?)
    }

    fn prepare(&mut self, blocks: u64) -> Result<()> {
        let name = folder(self.task);
        fs::mkdirat(&self.root, name.as_slice(), Mode::from_raw_mode(0o755))?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = fs::openat(&self.root, name.as_slice(), flags, Mode::empty())?;
        let file = make(&dir, b"overwritten")?;
        for block in 0..blocks {
            write(&file, block * WRITE as u64, &self.page)?;
        }
        // rustix's DSYNC is O_SYNC on Linux; a program that opens with O_DSYNC has the bit alone.
        let dsync = OFlags::from_bits_retain(libc::O_DSYNC as u32);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | dsync;
        let overwritten = fs::openat(&dir, "overwritten", flags, Mode::empty())?;
        let appended = make(&dir, b"appended")?;
        make(&dir, TO_AND_FRO[0])?;
        fs::syncfs(&dir)?;
        self.opened = Some(HostFiles { dir, overwritten, appended, end: 0, renames: 0 });
        Ok(())
    }

    fn remove(&mut self, numbers: Range<u64>) -> Result<()> {
        let (opened, _) = self.opened()?;
        for number in numbers {
            fs::unlinkat(&opened.dir, name(number).as_slice(), AtFlags::empty())?;
        }
        Ok(fs::syncfs(&opened.dir)?)
    }
}
