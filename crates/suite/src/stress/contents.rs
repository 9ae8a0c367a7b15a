//! Calls on a file's content, by every way there is: buffered, direct, mapped.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FallocateFlags, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::model::FileId;
use super::task::{Fault, Task, call, open};
use crate::raw::MappedFile;

/// No file grows beyond this.
const SIZE_MAX: usize = 600_000;
const BLOCK: usize = 4096;

/// One random call on a file and on its model.
pub(super) fn operate(task: &mut Task, path: &str, id: FileId) -> Result<(), Fault> {
    let size = task.file(id).bytes.len();
    let call = task.random.below(64);
    match call {
        30..42 => task.direct += 1,
        42..51 => task.mapped += 1,
        _ => {}
    }
    match call {
        0..12 => write(task, path, id, size),
        12..18 => append(task, path, id),
        18..30 => read(task, path, id),
        30..36 => direct_write(task, path, id, size),
        36..42 => direct_read(task, path, id),
        42..47 => map_write(task, path, id, size),
        47..51 => map_read(task, path, id, size),
        51..54 => truncate(task, path, id, size),
        54..60 => fallocate(task, path, id, size),
        60..62 => holes(task, path, id),
        62 => copy(task, path, id, size),
        _ => fsync(task, path),
    }
}

/// Says where two contents part.
pub(super) fn differ(what: &str, found: &[u8], expected: &[u8]) -> Result<(), Fault> {
    if found == expected {
        return Ok(());
    }
    if found.len() != expected.len() {
        return Err(format!("{what}: {} bytes, expected {}", found.len(), expected.len()));
    }
    let pairs = || found.iter().zip(expected);
    let first = pairs().position(|(f, e)| f != e).unwrap_or(0);
    let count = pairs().filter(|(f, e)| f != e).count();
    let (f, e) = (found[first], expected[first]);
    Err(format!("{what}: byte {first} is {f:#x}, expected {e:#x}; {count} bytes differ"))
}

fn write(task: &mut Task, path: &str, id: FileId, size: usize) -> Result<(), Fault> {
    // Now and then beyond the end.
    let room = if task.random.one_in(4) { SIZE_MAX } else { size.max(1) };
    let at = task.random.below(room);
    let len = 1 + task.random.range(70_000).1;
    let bytes = task.random.bytes(len);
    let sync = match task.random.below(20) {
        0 => OFlags::SYNC,
        1 => crate::raw::DSYNC,
        _ => OFlags::empty(),
    };
    task.note(format!("write {len} at {at} of {size} {sync:?}, {path}"));
    let file = open(&task.path(path), OFlags::WRONLY | sync)?;
    write_all(&file, at, &bytes)?;
    put(&mut task.file(id).bytes, at, &bytes);
    Ok(())
}

fn append(task: &mut Task, path: &str, id: FileId) -> Result<(), Fault> {
    let len = 1 + task.random.range(20_000).1;
    let size = task.file(id).bytes.len();
    if size + len > SIZE_MAX {
        return truncate(task, path, id, size);
    }
    let bytes = task.random.bytes(len);
    task.note(format!("append {len} to {size}, {path}"));
    let file = open(&task.path(path), OFlags::WRONLY | OFlags::APPEND)?;
    let n = call("append", rustix::io::write(&file, &bytes))?;
    if n != len {
        return Err(format!("append wrote {n} bytes of {len}"));
    }
    if task.random.one_in(8) {
        call("fdatasync", rustix::fs::fdatasync(&file))?;
    }
    put(&mut task.file(id).bytes, size, &bytes);
    Ok(())
}

fn read(task: &mut Task, path: &str, id: FileId) -> Result<(), Fault> {
    let (at, len) = task.random.range(SIZE_MAX);
    let at = if task.random.one_in(3) { 0 } else { at % (task.file(id).bytes.len() + 1) };
    task.note(format!("read {len} at {at}, {path}"));
    let file = open(&task.path(path), OFlags::RDONLY)?;
    compare_part(task, id, "read", at, &read_all(&file, at, len)?, len)
}

/// Direct requests begin and end at blocks; the file need not.
fn direct_write(task: &mut Task, path: &str, id: FileId, size: usize) -> Result<(), Fault> {
    let room = if task.random.one_in(4) { SIZE_MAX } else { size.max(BLOCK) };
    let at = task.random.below(room) / BLOCK * BLOCK;
    let len = (1 + task.random.below(8)) * BLOCK;
    let bytes = task.random.bytes(len);
    task.note(format!("direct write {len} at {at} of {size}, {path}"));
    let file = open(&task.path(path), OFlags::WRONLY | OFlags::DIRECT)?;
    let mut buffer = AlignedBuffer::new(len);
    buffer.bytes().copy_from_slice(&bytes);
    write_all(&file, at, buffer.bytes())?;
    put(&mut task.file(id).bytes, at, &bytes);
    Ok(())
}

fn direct_read(task: &mut Task, path: &str, id: FileId) -> Result<(), Fault> {
    let size = task.file(id).bytes.len();
    let at = task.random.below(size + 1) / BLOCK * BLOCK;
    let len = (1 + task.random.below(16)) * BLOCK;
    task.note(format!("direct read {len} at {at} of {size}, {path}"));
    let file = open(&task.path(path), OFlags::RDONLY | OFlags::DIRECT)?;
    let mut buffer = AlignedBuffer::new(len);
    let n = call("direct read", rustix::io::pread(&file, buffer.bytes(), at as u64))?;
    let found = buffer.bytes()[..n].to_vec();
    compare_part(task, id, "direct read", at, &found, len)
}

fn map(task: &Task, path: &str, at: usize, len: usize, write: bool) -> Result<MappedFile, Fault> {
    let (flags, protection) = match write {
        true => (OFlags::RDWR, ProtFlags::READ | ProtFlags::WRITE),
        false => (OFlags::RDONLY, ProtFlags::READ),
    };
    let file = open(&task.path(path), flags)?;
    let start = at / BLOCK * BLOCK;
    let len = at - start + len;
    call("mmap", MappedFile::new(file.as_fd(), start as u64, len, protection, MapFlags::SHARED))
}

fn map_write(task: &mut Task, path: &str, id: FileId, size: usize) -> Result<(), Fault> {
    let (at, len) = task.random.range(size);
    if len == 0 {
        return append(task, path, id);
    }
    let bytes = task.random.bytes(len);
    let sync = task.random.one_in(4);
    task.note(format!("map write {len} at {at} of {size}, sync {sync}, {path}"));
    let mut map = map(task, path, at, len, true)?;
    map.write(at % BLOCK, &bytes);
    if sync {
        call("msync", map.sync())?;
    }
    put(&mut task.file(id).bytes, at, &bytes);
    Ok(())
}

fn map_read(task: &mut Task, path: &str, id: FileId, size: usize) -> Result<(), Fault> {
    let (at, len) = task.random.range(size);
    if len == 0 {
        return Ok(());
    }
    task.note(format!("map read {len} at {at} of {size}, {path}"));
    let map = map(task, path, at, len, false)?;
    let mut found = vec![0; len];
    map.read(at % BLOCK, &mut found);
    compare_part(task, id, "map read", at, &found, len)
}

fn truncate(task: &mut Task, path: &str, id: FileId, size: usize) -> Result<(), Fault> {
    let to = match task.random.below(4) {
        0 => 0,
        1 => task.random.below(SIZE_MAX),
        _ => task.random.below(size + 1),
    };
    task.note(format!("truncate {size} to {to}, {path}"));
    call("truncate", crate::raw::truncate(&task.path(path), to as u64))?;
    task.file(id).bytes.resize(to, 0);
    Ok(())
}

fn fallocate(task: &mut Task, path: &str, id: FileId, size: usize) -> Result<(), Fault> {
    let (at, len) = task.random.range(size.max(10_000));
    let (first, count) = (at / BLOCK * BLOCK, (1 + task.random.below(4)) * BLOCK);
    let file = open(&task.path(path), OFlags::RDWR)?;
    let kind = task.random.below(6);
    let (name, flags, at, len) = match kind {
        0 => ("allocate", FallocateFlags::empty(), at, len),
        1 => ("allocate, keep size", FallocateFlags::KEEP_SIZE, at, len),
        2 => ("punch", FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, len),
        3 => ("zero", FallocateFlags::ZERO_RANGE, at, len),
        4 => ("collapse", FallocateFlags::COLLAPSE_RANGE, first, count),
        _ => ("insert", FallocateFlags::INSERT_RANGE, first, count),
    };
    // What the kernel refuses as well.
    let is_possible = match kind {
        4 => first + count < size,
        5 => first < size && size + count <= SIZE_MAX,
        _ => true,
    };
    if !is_possible {
        return Ok(());
    }
    task.note(format!("fallocate {name} {len} at {at} of {size}, {path}"));
    let result = rustix::fs::fallocate(&file, flags, at as u64, len as u64);
    if !task.unless_refused(name, result)? {
        return Ok(());
    }
    let bytes = &mut task.file(id).bytes;
    match kind {
        0 => bytes.resize(size.max(at + len), 0),
        1 => {}
        2 => bytes[at.min(size)..(at + len).min(size)].fill(0),
        3 => put(bytes, at, &vec![0; len]),
        4 => drop(bytes.drain(at..at + len)),
        _ => drop(bytes.splice(at..at, vec![0; len])),
    }
    Ok(())
}

/// What is said to be a hole must be zeros.
fn holes(task: &mut Task, path: &str, id: FileId) -> Result<(), Fault> {
    task.note(format!("seek over {path}"));
    let file = open(&task.path(path), OFlags::RDONLY)?;
    let bytes = &task.model.files[&id].bytes;
    let mut at = 0;
    while at < bytes.len() {
        let data = match rustix::fs::seek(&file, SeekFrom::Data(at as u64)) {
            Ok(data) => data as usize,
            Err(Errno::NXIO) => bytes.len(),
            Err(errno) => return Err(format!("SEEK_DATA from {at}: {errno}")),
        };
        if data < at || data > bytes.len() {
            return Err(format!("SEEK_DATA from {at} gives {data}"));
        }
        if let Some(i) = bytes[at..data].iter().position(|b| *b != 0) {
            return Err(format!("a hole from {at} to {data}, but there is data at {}", at + i));
        }
        if data == bytes.len() {
            break;
        }
        at = call("SEEK_HOLE", rustix::fs::seek(&file, SeekFrom::Hole(data as u64)))? as usize;
        if at <= data || at > bytes.len() {
            return Err(format!("SEEK_HOLE from {data} gives {at}"));
        }
    }
    Ok(())
}

fn copy(task: &mut Task, path: &str, id: FileId, size: usize) -> Result<(), Fault> {
    let Some((to_path, to)) = task.model.pick_file(&mut task.random) else { return Ok(()) };
    let (at, len) = task.random.range(size);
    if to == id || len == 0 {
        return Ok(());
    }
    let to_at = task.random.below(task.model.files[&to].bytes.len() + 1);
    if to_at + len > SIZE_MAX {
        return Ok(());
    }
    task.note(format!("copy {len} from {at} of {path} to {to_at} of {to_path}"));
    let from = open(&task.path(path), OFlags::RDONLY)?;
    let into = open(&task.path(&to_path), OFlags::WRONLY)?;
    let (mut from_at, mut into_at, mut done) = (at as u64, to_at as u64, 0);
    while done < len {
        let (a, b) = (Some(&mut from_at), Some(&mut into_at));
        let n = call("copy", rustix::fs::copy_file_range(&from, a, &into, b, len - done))?;
        if n == 0 {
            return Err(format!("copy_file_range stopped after {done} bytes of {len}"));
        }
        done += n;
    }
    let bytes = task.model.files[&id].bytes[at..at + len].to_vec();
    put(&mut task.file(to).bytes, to_at, &bytes);
    Ok(())
}

fn fsync(task: &mut Task, path: &str) -> Result<(), Fault> {
    task.note(format!("fsync {path}"));
    let file = open(&task.path(path), OFlags::RDONLY)?;
    call("fsync", rustix::fs::fsync(&file))
}

/// A read must give what the model has there, and all of it up to the end.
fn compare_part(
    task: &Task,
    id: FileId,
    what: &str,
    at: usize,
    found: &[u8],
    len: usize,
) -> Result<(), Fault> {
    let bytes = &task.model.files[&id].bytes;
    let end = (at + len).min(bytes.len());
    let expected = bytes.get(at..end).unwrap_or(&[]);
    differ(&format!("{what} from {at}"), found, expected)
}

/// Puts bytes into a content, with zeros in between if it ends before.
pub(super) fn put(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

pub(super) fn write_all(file: &OwnedFd, at: usize, bytes: &[u8]) -> Result<(), Fault> {
    let n = call("write", rustix::io::pwrite(file, bytes, at as u64))?;
    if n == bytes.len() { Ok(()) } else { Err(format!("wrote {n} bytes of {}", bytes.len())) }
}

pub(super) fn read_all(file: &OwnedFd, at: usize, len: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = vec![0; len];
    let n = call("read", rustix::io::pread(file, &mut bytes[..], at as u64))?;
    bytes.truncate(n);
    Ok(bytes)
}

/// A buffer that begins at a multiple of the block.
pub(super) struct AlignedBuffer {
    buffer: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    pub(super) fn new(len: usize) -> AlignedBuffer {
        let buffer = vec![0; len + BLOCK];
        let start = buffer.as_ptr().align_offset(BLOCK);
        AlignedBuffer { buffer, start, len }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.start + self.len]
    }
}
