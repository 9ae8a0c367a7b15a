//! Devices and files of this machine.

use std::io;
use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use rustix::fs::{Advice, Mode, OFlags, SeekFrom, fadvise, fsync, seek};
use steadfast_bench::dd::Errno;
use steadfast_bench::hdparm::{BUFFER, Readable};

/// Memory for direct I/O begins on a page.
const ALIGN: usize = 4096;

/// An open device or file.
pub struct HostReader {
    fd: OwnedFd,
    size: u64,
    memory: Vec<u8>,
    start: usize,
}

impl HostReader {
    /// Opens it for reading.
    pub fn open(path: &str, direct: bool) -> Result<HostReader> {
        let mut flags = OFlags::RDONLY | OFlags::CLOEXEC;
        flags.set(OFlags::DIRECT, direct);
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?;
        // The size of a block device is where its end is.
        let size = seek(&fd, SeekFrom::End(0)).map_err(io::Error::from).context("its size")?;
        let memory = vec![0; BUFFER as usize + ALIGN];
        let start = memory.as_ptr().align_offset(ALIGN).min(ALIGN);
        Ok(HostReader { fd, size, memory, start })
    }
}

impl Readable for HostReader {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&mut self, offset: u64) -> Result<u64, Errno> {
        let buffer = &mut self.memory[self.start..self.start + BUFFER as usize];
        let mut done = 0;
        while done < buffer.len() {
            match rustix::io::pread(&self.fd, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(done as u64)
    }

    fn forget(&mut self) -> Result<(), Errno> {
        // What is dirty cannot be forgotten, so it is written first. A device that cannot be
        // synced has nothing to write.
        let _ = fsync(&self.fd);
        Ok(fadvise(&self.fd, 0, None, Advice::DontNeed)?)
    }
}
