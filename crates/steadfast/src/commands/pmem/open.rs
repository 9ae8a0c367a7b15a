//! Ranges of memory in place of an image.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use steadfast_block::BlockDevice;
use steadfast_devices::filter::btt;
use steadfast_devices::source::pmem::Mode;
use steadfast_devices::source::{Pmem, PmemError, PmemOptions, Promise};

use crate::{Usage, terminal};

/// What stands before a path that is to be mapped whatever it is.
const PREFIX: &str = "pmem:";

/// The path without the prefix.
pub fn file(path: &Path) -> &Path {
    let without = path.to_str().and_then(|path| path.strip_prefix(PREFIX));
    without.map_or(path, Path::new)
}

/// Whether a path is to be mapped: it is said to (`pmem:PATH`), it is an emulated range by its
/// label, or it is a DAX device.
pub fn is_memory(path: &Path) -> bool {
    file(path) != path
        || path.metadata().is_ok_and(|meta| meta.file_type().is_char_device())
        || Pmem::label_of(path).is_some()
}

/// Maps a range, and says what it does not promise.
pub fn open(path: &Path, read_only: bool) -> Result<Arc<dyn BlockDevice>> {
    let path = file(path);
    let pmem = map(path, read_only)?;
    if !read_only {
        tell_promise(&pmem);
    }
    let is_sectors = match pmem.label() {
        Some(label) => label.mode == Mode::Sector,
        // Of a range without a label only the table itself says so; to write past it destroys it.
        None => btt::probe(&pmem)?.is_some(),
    };
    if !is_sectors {
        return Ok(Arc::new(pmem));
    }
    let below: Arc<dyn BlockDevice> = Arc::new(pmem);
    Ok(Arc::new(btt::open(&below)?))
}

/// Maps a range. What is no range, or in use, is the caller's error.
pub fn map(path: &Path, read_only: bool) -> Result<Pmem> {
    let mapped = Pmem::open(path, &PmemOptions { read_only, name: None });
    mapped.map_err(|e| match e {
        PmemError::Open(e) => e.into(),
        e => Usage(e.to_string()).into(),
    })
}

/// Says that what is stored is lost with the power, or takes an msync.
pub fn tell_promise(pmem: &Pmem) {
    let name = pmem.info().name;
    match pmem.promise() {
        Promise::Not { reason } => {
            terminal::note(&format!("note: {name}: not persistent: {reason}"));
        }
        Promise::AfterSync => terminal::note(&format!(
            "note: {name}: its page cache is mapped, not the memory itself, which the kernel does \
             not allow for block devices: a fence is an msync"
        )),
        Promise::Persistent | Promise::AfterWriteBack => {}
    }
}

/// Whether the kernel has files in place on a block device (`/dev/pmemN` that is no sector
/// namespace).
pub fn offers_dax(path: &Path) -> bool {
    let Ok(meta) = path.metadata() else { return false };
    let (major, minor) = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
    let says = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/queue/dax"));
    meta.file_type().is_block_device() && says.is_ok_and(|text| text.trim() == "1")
}

/// Whether a file is in a file system that is memory (tmpfs, ramfs; linux/magic.h).
pub fn is_in_memory(path: &Path) -> bool {
    const KINDS: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    let found = rustix::fs::statfs(path);
    // The kernel's type differs between machines; the numbers are of 32 bits.
    found.is_ok_and(|found| KINDS.contains(&(found.f_type as u64 & 0xffff_ffff)))
}
