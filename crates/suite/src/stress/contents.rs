//! Calls on a file's content that are no operations: reads by every way there is, holes, copies,
//! and the map that a mapped write goes through.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use steadfast_vfs::{FileSystem, FsError, HostFs, OpenFlags, SeekTo, path};

use super::draw::{SIZE_MAX, range};
use super::task::{Fault, Task};
use crate::names::differ;
use crate::operation::fill;
use crate::raw::MappedFile;

const BLOCK: usize = 4096;

/// The value of a call that has to succeed.
pub(super) fn call<T, E: std::fmt::Display>(name: &str, result: Result<T, E>) -> Result<T, Fault> {
    result.map_err(|error| format!("{name}: {error}"))
}

/// Opens a file that has to be there.
pub(super) fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, Fault> {
    call("open", rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()))
}

/// A map of these bytes of a file, and where in it they begin.
pub(super) fn map(
    file: &Path,
    at: usize,
    len: usize,
    write: bool,
) -> Result<(MappedFile, usize), Fault> {
    let (flags, protection) = match write {
        true => (OFlags::RDWR, ProtFlags::READ | ProtFlags::WRITE),
        false => (OFlags::RDONLY, ProtFlags::READ),
    };
    let (file, inside) = (open(file, flags)?, at % BLOCK);
    let (start, len) = ((at - inside) as u64, inside + len);
    let map = MappedFile::new(file.as_fd(), start, len, protection, MapFlags::SHARED);
    Ok((call("mmap", map)?, inside))
}

impl Task {
    /// Has the file open while something is done with it.
    fn with_open<T>(
        &self,
        fs: &HostFs,
        name: &str,
        flags: OpenFlags,
        then: impl FnOnce(steadfast_vfs::Fh) -> steadfast_vfs::Result<T>,
    ) -> Result<T, Fault> {
        let ino = call("lookup", path::resolve(fs, name.as_bytes(), false))?.ino;
        let fh = call("open", fs.open(ino, flags))?;
        let done = then(fh);
        call("close", fs.release(fh))?;
        call(name, done)
    }

    /// A call that changes nothing, or one that copies.
    pub(super) fn use_content(&mut self, fs: &HostFs, name: &str) -> Result<(), Fault> {
        let size = self.tree.names.size(name);
        match self.random.below(25) {
            0..12 => {
                let (at, len) = range(&mut self.random, SIZE_MAX as u64);
                let at = if self.random.one_in(3) { 0 } else { at % (size + 1) };
                self.read(fs, name, at, len, OpenFlags::READ)
            }
            12..18 => {
                self.direct += 1;
                let at = self.random.below(size as usize + 1) / BLOCK * BLOCK;
                let len = (1 + self.random.below(16)) * BLOCK;
                self.read(fs, name, at as u64, len as u64, OpenFlags::READ | OpenFlags::DIRECT)
            }
            18..22 => {
                self.mapped += 1;
                let (at, len) = self.random.range(size as usize);
                if len == 0 {
                    return Ok(());
                }
                self.note(format!("map read {len} at {at}, {name}"));
                let (map, inside) = map(&self.root.join(name), at, len, false)?;
                let mut found = vec![0; len];
                map.read(inside, &mut found);
                self.compare_part(name, at as u64, &found, len as u64)
            }
            22..24 => self.holes(fs, name),
            _ => self.copy(name, size),
        }
    }

    fn read(
        &mut self,
        fs: &HostFs,
        name: &str,
        at: u64,
        len: u64,
        flags: OpenFlags,
    ) -> Result<(), Fault> {
        self.note(format!("read {len} at {at} {flags:?}, {name}"));
        let found = self.with_open(fs, name, flags, |fh| fs.read(fh, at, len as usize))?;
        self.compare_part(name, at, &found, len)
    }

    fn content(&self, name: &str) -> &[u8] {
        self.tree.names.node(name).map_or(&[], |node| self.tree.data(node))
    }

    /// A read must give what the model has there, and all of it up to the end.
    fn compare_part(&self, name: &str, at: u64, found: &[u8], len: u64) -> Result<(), Fault> {
        let content = self.content(name);
        let end = ((at + len) as usize).min(content.len());
        let expected = content.get(at as usize..end).unwrap_or(&[]);
        Ok(differ(&format!("read from {at}"), found, expected)?)
    }

    /// What is said to be a hole must be zeros.
    fn holes(&mut self, fs: &HostFs, name: &str) -> Result<(), Fault> {
        self.note(format!("seek over {name}"));
        let bytes = self.content(name);
        self.with_open(fs, name, OpenFlags::READ, |fh| {
            let mut at = 0;
            while at < bytes.len() {
                let data = match fs.seek(fh, at as u64, SeekTo::Data) {
                    Err(FsError::NoAddress) => bytes.len(),
                    data => data? as usize,
                };
                let is_zeros = |hole: &[u8]| hole.iter().all(|b| *b == 0);
                if !bytes.get(at..data).is_some_and(is_zeros) {
                    let what = format!("a hole from {at} to {data}, but there is data");
                    return Err(FsError::Io { what });
                }
                if data == bytes.len() {
                    break;
                }
                at = fs.seek(fh, data as u64, SeekTo::Hole)? as usize;
                if at <= data || at > bytes.len() {
                    return Err(FsError::Io { what: format!("SEEK_HOLE from {data} gives {at}") });
                }
            }
            Ok(())
        })
    }

    fn copy(&mut self, name: &str, size: u64) -> Result<(), Fault> {
        let Some(to) = self.pick(Some(crate::names::NodeKind::File)) else { return Ok(()) };
        let (at, len) = self.random.range(size as usize);
        let (from_node, to_node) = (self.tree.names.node(name), self.tree.names.node(&to));
        let Some(to_node) = to_node.filter(|_| len > 0 && from_node != to_node) else {
            return Ok(());
        };
        let to_at = self.random.below(self.tree.names.size(&to) as usize + 1);
        if to_at + len > SIZE_MAX {
            return Ok(());
        }
        self.note(format!("copy {len} at {at} to {to_at}, {name} {to}"));
        let from = open(&self.root.join(name), OFlags::RDONLY)?;
        let into = open(&self.root.join(&to), OFlags::WRONLY)?;
        let (mut from_at, mut into_at, mut done) = (at as u64, to_at as u64, 0);
        while done < len {
            let (a, b) = (Some(&mut from_at), Some(&mut into_at));
            let n = call("copy", rustix::fs::copy_file_range(&from, a, &into, b, len - done))?;
            if n == 0 {
                return Err(format!("copy_file_range stopped after {done} bytes of {len}"));
            }
            done += n;
        }
        let bytes = self.content(name)[at..at + len].to_vec();
        self.tree.change(to_node, |data| {
            data.resize(data.len().max(to_at + len), 0);
            data[to_at..to_at + len].copy_from_slice(&bytes);
        });
        Ok(())
    }

    /// Writes through a map, and now and then waits until it is on the disk.
    pub(super) fn write_mapped(
        &mut self,
        name: &str,
        at: usize,
        len: usize,
        by: (usize, usize),
    ) -> Result<(), Fault> {
        let mut bytes = vec![0; len];
        fill(by.0, by.1, at as u64, &mut bytes);
        let (mut map, inside) = map(&self.root.join(name), at, len, true)?;
        map.write(inside, &bytes);
        match self.random.one_in(4) {
            true => call::<(), Errno>("msync", map.sync()),
            false => Ok(()),
        }
    }
}
