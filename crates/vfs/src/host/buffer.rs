//! Reads and writes, with the aligned memory that O_DIRECT asks for.
//!
//! Linux wants memory, offset and length of direct I/O aligned to the device's logical block
//! (open(2)). Memory is aligned to a page here, which suits every device: a vector is made a page
//! longer than needed and used from its first page boundary on. A write whose data already lie on
//! a page boundary is passed on without a copy.

use std::cell::RefCell;
use std::os::fd::AsFd;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use super::attr;
use super::handles::Handle;
use crate::{FsError, OpenFlags, Result};

/// Alignment of memory for direct I/O: a page.
const ALIGN: usize = 4096;

/// Longer reads are first cut to the file's length, so that a caller's wish cannot make us
/// allocate more than there is to read.
const UNCHECKED_READ: usize = 1 << 20;

/// Bytes to skip so that `memory` is aligned.
fn skip(memory: &[u8]) -> usize {
    memory.as_ptr().align_offset(ALIGN).min(ALIGN)
}

/// Reads up to `len` bytes at `offset`.
pub(super) fn read(handle: &Handle, offset: u64, len: usize) -> Result<Bytes> {
    let len = bounded(handle, offset, len)?;
    if len == 0 {
        return Ok(Bytes::new());
    }
    if handle.flags.contains(OpenFlags::DIRECT) {
        return read_direct(handle, offset, len);
    }
    let mut memory = ReadMemory::of(len);
    let data = &mut memory.0;
    data.clear();
    while data.len() < len {
        let at = offset + data.len() as u64;
        match rustix::io::pread(&handle.fd, spare_capacity(data), at) {
            Ok(0) => break,
            Ok(_) => {}
            Err(Errno::INTR) => {}
            Err(_) if !data.is_empty() => break,
            Err(e) => return Err(e.into()),
        }
    }
    data.truncate(len);
    Ok(memory.into_bytes())
}

/// Reads of at least so many bytes use memory again. The system gives fresh memory page by page,
/// and that takes longer than to fill it; and to make zeros of memory that a device has just
/// written costs a tenth of a fast direct read.
const KEPT_FROM: usize = 4 << 10;
/// The longest that is kept.
const KEPT_UP_TO: usize = 4 << 20;
/// Pieces that a thread keeps.
const KEPT: usize = 2;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// The memory of a read. When all bytes of it are dropped it is kept for another.
struct ReadMemory(Vec<u8>);

impl ReadMemory {
    /// With room for so many bytes; what is in it is of no meaning.
    fn of(len: usize) -> ReadMemory {
        let spare = (KEPT_FROM..=KEPT_UP_TO).contains(&len).then(|| {
            SPARE.with_borrow_mut(|spare| {
                let fits = |memory: &Vec<u8>| memory.capacity() == len;
                let at = spare.iter().position(fits)?;
                Some(spare.swap_remove(at))
            })
        });
        let spare = spare.flatten();
        ReadMemory(spare.unwrap_or_else(|| Vec::with_capacity(len)))
    }

    fn into_bytes(mut self) -> Bytes {
        match (KEPT_FROM..=KEPT_UP_TO).contains(&self.0.capacity()) {
            true => Bytes::from_owner(self),
            false => Bytes::from(std::mem::take(&mut self.0)),
        }
    }
}

impl AsRef<[u8]> for ReadMemory {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for ReadMemory {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.0);
        if !(KEPT_FROM..=KEPT_UP_TO).contains(&memory.capacity()) {
            return;
        }
        // OK to ignore: the thread is ending, and the memory goes with it.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() == KEPT {
                spare.remove(0);
            }
            spare.push(memory);
        });
    }
}

fn bounded(handle: &Handle, offset: u64, len: usize) -> Result<usize> {
    if len <= UNCHECKED_READ {
        return Ok(len);
    }
    let size = attr::of_fd(&handle.fd)?.stx_size;
    let rest = size.saturating_sub(offset).next_multiple_of(ALIGN as u64);
    Ok(usize::try_from(rest).map_or(len, |rest| rest.min(len)))
}

fn read_direct(handle: &Handle, offset: u64, len: usize) -> Result<Bytes> {
    let mut memory = ReadMemory::of(len + ALIGN);
    // What a read before has left there is read over, or cut off.
    memory.0.resize(len + ALIGN, 0);
    let start = skip(&memory.0);
    let mut done = 0;
    while done < len {
        let part = &mut memory.0[start + done..start + len];
        match rustix::io::pread(&handle.fd, part, offset + done as u64) {
            Ok(0) => break,
            // A read that ends off a block boundary has met the end of the file.
            Ok(n) if n % 512 != 0 => {
                done += n;
                break;
            }
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(_) if done > 0 => break,
            Err(e) => return Err(misaligned(e)),
        }
    }
    Ok(memory.into_bytes().slice(start..start + done))
}

/// Writes `data` at `offset`; returns how many bytes were written.
pub(super) fn write(handle: &Handle, offset: u64, data: &Bytes) -> Result<usize> {
    let direct = handle.flags.contains(OpenFlags::DIRECT);
    if !direct || skip(data) == 0 {
        return write_slice(handle, offset, data);
    }
    let mut memory = vec![0; data.len() + ALIGN];
    let start = skip(&memory);
    memory[start..start + data.len()].copy_from_slice(data);
    write_slice(handle, offset, &memory[start..start + data.len()])
}

fn write_slice(handle: &Handle, offset: u64, data: &[u8]) -> Result<usize> {
    let direct = handle.flags.contains(OpenFlags::DIRECT);
    let mut done = 0;
    while done < data.len() {
        // With O_APPEND Linux ignores the offset.
        match rustix::io::pwrite(&handle.fd, &data[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(_) if done > 0 => break,
            Err(e) if direct => return Err(misaligned(e)),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(done)
}

fn misaligned(e: Errno) -> FsError {
    match e {
        Errno::INVAL => FsError::Invalid {
            what: "direct I/O needs offset and length in whole blocks of the device",
        },
        e => e.into(),
    }
}

/// The error for a file system that knows no O_DIRECT.
pub(super) fn no_direct_io(place: impl AsFd) -> FsError {
    let kind = kind_of(place).unwrap_or_else(|_| "this file system".into());
    FsError::Unsupported {
        what: format!(
            "direct I/O (O_DIRECT) on {kind}: choose a folder on another file system, \
             or do without direct I/O"
        ),
    }
}

/// The name of the file system that a place is on (statfs(2) lists the magic numbers).
pub(super) fn kind_of(place: impl AsFd) -> Result<String> {
    let magic = rustix::fs::fstatfs(place)?.f_type as u64 & 0xffff_ffff;
    let name = match magic {
        0xef53 => "ext4",
        0x0102_1994 => "tmpfs",
        0x8584_58f6 => "ramfs",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x794c_7630 => "overlayfs",
        0x6969 => "nfs",
        0x6573_5546 => "fuse",
        0x0102_1997 => "9p",
        0x2fc1_2fc1 => "zfs",
        0xf2f5_2010 => "f2fs",
        0x4d44 => "vfat",
        0x2011_bab0 => "exfat",
        magic => return Ok(format!("file system type {magic:#x}")),
    };
    Ok(name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_read_is_used_when_nobody_has_it() {
        let whole = |byte: u8| {
            let mut memory = ReadMemory::of(KEPT_FROM);
            memory.0.clear();
            memory.0.resize(KEPT_FROM, byte);
            memory.into_bytes()
        };
        let first = whole(1);
        let (at, part) = (first.as_ptr(), first.slice(10..20));
        drop(first);
        let second = whole(2);
        assert_ne!(second.as_ptr(), at, "a part of it is still there");
        drop(part);
        assert_eq!(whole(3).as_ptr(), at);
        assert!(second.iter().all(|byte| *byte == 2));
        assert!(ReadMemory::of(2 * KEPT_UP_TO).0.capacity() >= 2 * KEPT_UP_TO);
    }

    #[test]
    fn skipping_reaches_a_page_boundary() {
        for len in [1, 5000, 300_000] {
            let memory = vec![0_u8; len + ALIGN];
            let at = memory[skip(&memory)..].as_ptr();
            assert_eq!(at.align_offset(ALIGN), 0);
        }
    }
}
