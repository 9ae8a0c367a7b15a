//! Ranges of memory in place of an image.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, StatxFlags};
use steadfast_block::BlockDevice;
use steadfast_devices::filter::btt::{self, Version};
use steadfast_devices::filter::{NamespaceError, fsdax};
use steadfast_devices::source::pmem::{Mode, RangeLabel};
use steadfast_devices::source::{FileDevice, FileOptions, Pmem, PmemOptions, Promise};
use steadfast_volume::member::read_label;

use super::OpenPath;
use crate::error::SetupError;

type Result<T> = std::result::Result<T, SetupError>;

/// What stands before a path that is to be mapped, whatever it is: a label in it counts.
const MEMORY: &str = "pmem:";
/// What stands before a path that is to be used as it is: no label and no table counts.
const RAW: &str = "raw:";

fn without<'p>(path: &'p Path, prefix: &str) -> Option<&'p Path> {
    path.to_str()?.strip_prefix(prefix).map(Path::new)
}

/// The path without what stands before it.
pub fn file(path: &Path) -> &Path {
    without(path, MEMORY).or_else(|| without(path, RAW)).unwrap_or(path)
}

/// The same with another file.
pub(super) fn with_file(path: &Path, change: impl FnOnce(&Path) -> PathBuf) -> PathBuf {
    let prefix = [MEMORY, RAW].into_iter().find(|prefix| without(path, prefix).is_some());
    let changed = change(file(path));
    prefix.map_or_else(|| changed.clone(), |prefix| format!("{prefix}{}", changed.display()).into())
}

/// Whether a path is to be mapped: it is said to (`pmem:PATH`), it is a DAX device, or it is an
/// emulated range by its label.
///
/// # Errors
/// A label at the end of a block device that is no memory: an image on it may end with anything.
pub fn is_memory(path: &Path) -> Result<bool> {
    if without(path, MEMORY).is_some() {
        return Ok(true);
    }
    if without(path, RAW).is_some() {
        return Ok(false);
    }
    if path.metadata().is_ok_and(|meta| meta.file_type().is_char_device()) {
        return Ok(true);
    }
    if label_of(path, true)?.is_none() {
        return Ok(false);
    }
    // A file that ends with a label and holds nothing that reaches over it is what it says.
    let is_file = path.metadata().is_ok_and(|meta| meta.is_file());
    if is_file || is_in_memory(path) || is_in_place(path) {
        return Ok(true);
    }
    let shown = path.display();
    Err(SetupError::Refused(format!(
        "{shown}: is a block device, and its last 128 KiB are the label of a range of memory, \
         which an image may hold: say {MEMORY}{shown} if it is to be used as one, {RAW}{shown} if \
         all of it is to be used"
    )))
}

/// The label at the end of a file, if it counts: nothing in the file reaches over it. Without
/// `exclusive` also of a file that is in use, to be shown.
///
/// # Errors
/// The file cannot be read.
pub fn label_of(path: &Path, exclusive: bool) -> Result<Option<RangeLabel>> {
    let Some(label) = Pmem::label_of(path) else { return Ok(None) };
    Ok((!is_contents(path, &label, exclusive)?).then_some(label))
}

/// Whether a label is in a file system, or in a member of a volume, that is in all of the file: a
/// user of it may have written one. A label that counts ends what is before it.
fn is_contents(path: &Path, label: &RangeLabel, exclusive: bool) -> Result<bool> {
    let options = FileOptions { exclusive, ..FileOptions::reading() };
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(path, &options)?);
    let reaches_in = steadfast_ext4_check::info(&device)
        .is_ok_and(|info| info.blocks.saturating_mul(info.block_size.into()) > label.bytes);
    // A namespace that is there is not the file system's, which begins before it and reaches over
    // it; whose superblock is a remainder is for `open` to say.
    let is_namespace = || match label.mode {
        Mode::Raw => false,
        Mode::Sector(version) => btt::probe_as(&*device, Some(version)).is_ok_and(|b| b.is_some()),
        Mode::Fsdax => fsdax::probe_as(&*device, label.behind()).is_ok_and(|found| found.is_some()),
    };
    let is_member = || matches!(read_label(&device), Ok(Some(_)));
    Ok(reaches_in && !is_namespace() || is_member())
}

/// Maps a range.
///
/// # Errors
/// It is none, is in use, or holds two things at once.
pub fn open(path: &Path, read_only: bool) -> Result<OpenPath> {
    let as_it_is = without(path, RAW).is_some();
    // Of a file that is no range a label is but contents.
    let whole = !is_memory(path)?;
    let path = file(path);
    let pmem = map_as(path, PmemOptions { read_only, name: None, whole })?;
    let notes = promise_note(&pmem).into_iter().filter(|_| !read_only).collect();
    let made = if as_it_is { RangeFormat::Raw } else { made(&pmem)? };
    let below: Arc<dyn BlockDevice> = Arc::new(pmem);
    let device: Arc<dyn BlockDevice> = match made {
        RangeFormat::Raw => below,
        RangeFormat::Sector(version) => {
            refuse_both(&below, path, "a sector namespace (BTT)")?;
            Arc::new(btt::open_as(&below, version)?)
        }
        RangeFormat::Fsdax { behind } => {
            refuse_both(&below, path, "an fsdax namespace")?;
            Arc::new(fsdax::open(&below, behind)?)
        }
    };
    Ok(OpenPath { device, assembled: Vec::new(), notes })
}

/// What is made of a range.
pub enum RangeFormat {
    /// It is used as it is.
    Raw,
    /// A block translation table, of which version if the label says so.
    Sector(Option<Version>),
    /// Data after an info block; so many bytes behind the device count as part of the range.
    Fsdax {
        /// Those bytes.
        behind: u64,
    },
}

/// What is made of a range: what its label says. Of one without a label only the info blocks say
/// so, and to write past them destroys what they stand for; the order is the kernel's.
pub fn made(pmem: &Pmem) -> Result<RangeFormat> {
    Ok(match pmem.label().map(|label| (label.mode, label.behind())) {
        Some((Mode::Raw, _)) => RangeFormat::Raw,
        Some((Mode::Sector(version), _)) => RangeFormat::Sector(Some(version)),
        Some((Mode::Fsdax, behind)) => RangeFormat::Fsdax { behind },
        None if btt::probe(pmem)?.is_some() => RangeFormat::Sector(None),
        None => match fsdax::probe(pmem) {
            Ok(None) => RangeFormat::Raw,
            Ok(Some(_)) => RangeFormat::Fsdax { behind: 0 },
            Err(error @ NamespaceError::Corrupt { .. }) => {
                let name = pmem.info().name;
                return Err(SetupError::Namespaces { name: format!("{RAW}{name}"), source: error });
            }
            Err(error) => return Err(error.into()),
        },
    })
}

/// Refuses a range that holds a file system of its own beside a namespace: one of the two is what
/// is left of another time, and to write to it destroys the other one.
fn refuse_both(device: &Arc<dyn BlockDevice>, path: &Path, namespace: &str) -> Result<()> {
    let Ok(info) = steadfast_ext4_check::info(device) else { return Ok(()) };
    if !info.checksum_ok {
        return Ok(());
    }
    let shown = path.display();
    Err(SetupError::Refused(format!(
        "{shown}: holds a file system (UUID {}) at its start, and the info block of {namespace}, \
         one of which is left from another time. For the file system say \
         {RAW}{shown}; for the namespace overwrite the first 4096 bytes, which are no part of it: \
         dd if=/dev/zero of={shown} bs=4096 count=1 conv=notrunc",
        info.uuid
    )))
}

/// Maps a range. What is no range, or in use, is the caller's error; what a label is in no range's
/// file is but contents.
pub fn map(path: &Path, read_only: bool) -> Result<Pmem> {
    let whole = !is_memory(path)?;
    map_as(file(path), PmemOptions { read_only, name: None, whole })
}

/// The same where somebody has said that the label counts, whatever reaches over it.
pub fn map_labelled(path: &Path) -> Result<Pmem> {
    let whole = without(path, RAW).is_some();
    map_as(file(path), PmemOptions { read_only: false, name: None, whole })
}

fn map_as(path: &Path, options: PmemOptions) -> Result<Pmem> {
    Ok(Pmem::open(path, &options)?)
}

/// That what is stored is lost with the power, or takes an msync.
pub fn promise_note(pmem: &Pmem) -> Option<String> {
    let name = pmem.info().name;
    match pmem.promise() {
        Promise::Not { reason } => Some(format!("{name}: not persistent: {reason}")),
        Promise::AfterSync => Some(format!(
            "{name}: its page cache is mapped, not the memory itself, which the kernel does not \
             allow for block devices: a fence is an msync"
        )),
        Promise::Persistent | Promise::AfterWriteBack => None,
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

/// Whether the kernel has a file in place: its file system is on an NVDIMM, and mounted with DAX.
fn is_in_place(path: &Path) -> bool {
    /// `STATX_ATTR_DAX`
    const DAX: u64 = 0x0020_0000;
    let stated = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::empty());
    stated.is_ok_and(|found| found.stx_attributes.bits() & DAX != 0)
}

/// Whether a file is in a file system that is memory (tmpfs, ramfs; linux/magic.h).
pub fn is_in_memory(path: &Path) -> bool {
    const KINDS: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    let found = rustix::fs::statfs(path);
    // The kernel's type differs between machines; the numbers are of 32 bits.
    found.is_ok_and(|found| KINDS.contains(&(found.f_type as u64 & 0xffff_ffff)))
}
