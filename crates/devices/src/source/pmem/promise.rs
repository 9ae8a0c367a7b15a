//! The persistence of a range of memory, from the kernel's description of its region.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, FileType, Stat, major, minor};
use steadfast_block::Persistence;

use crate::source::file::device_persistence;

/// When what was stored is safe from a power cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Promise {
    /// At once: the processor's caches are saved too (eADR).
    Persistent,
    /// Once its lines have left the caches and a fence was made (ADR).
    AfterWriteBack,
    /// Once the kernel was asked to write it to the device (`msync`): the mapping is its page
    /// cache. A fence does that, and takes as long as a flush of the device.
    AfterSync,
    /// Never.
    Not {
        /// Why not, in words, without a full stop.
        reason: String,
    },
}

impl Promise {
    /// A few words for tables.
    pub fn in_words(&self) -> &'static str {
        match self {
            Promise::Persistent => "persistent",
            Promise::AfterWriteBack => "persistent after flush of CPU caches",
            Promise::AfterSync => "persistent after msync",
            Promise::Not { .. } => "not persistent",
        }
    }

    pub(super) fn persistence(&self) -> Persistence {
        match self {
            Promise::Not { reason } => Persistence::Volatile { reason: reason.clone() },
            Promise::Persistent | Promise::AfterWriteBack | Promise::AfterSync => {
                Persistence::Persistent
            }
        }
    }
}

/// What is promised of a file or device, mapped with or without `MAP_SYNC`.
pub(super) fn of(stat: &Stat, synchronous: bool) -> Promise {
    let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    if !synchronous {
        return match is_block {
            // The kernel has no MAP_SYNC there; what the device is holds all the same.
            true => match device_persistence(stat.st_rdev) {
                Persistence::Volatile { reason } => Promise::Not { reason },
                Persistence::Persistent => Promise::AfterSync,
            },
            false => Promise::Not {
                reason:
                    "it is an emulated range: a file in the host's memory (MAP_SYNC is refused \
                         there), which a power cut or a restart of the host takes"
                        .into(),
            },
        };
    }
    let device = match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => folder("block", stat.st_rdev),
        _ => folder("block", stat.st_dev),
    };
    of_region(device.as_deref())
}

/// What is promised of a DAX device, by its folder of /sys. Those of memory that is none of an
/// NVDIMM (`hmem`, CXL without persistence) belong to no region.
pub(super) fn of_dax_device(device: &Path, synchronous: bool) -> Promise {
    let not = |reason: &str| Promise::Not { reason: reason.into() };
    match (region_of(device), synchronous) {
        (None, _) => not("the DAX device belongs to no region of NVDIMMs: it is ordinary memory"),
        (Some(_), false) => not("the kernel refuses MAP_SYNC for the DAX device"),
        (Some(_), true) => of_region(Some(device)),
    }
}

fn region_of(device: &Path) -> Option<&Path> {
    device.ancestors().find(|folder| folder.join("mappings").exists())
}

/// Why a block device is memory that keeps nothing, if its region says so.
pub(in crate::source) fn of_block_device(dev: Dev) -> Option<String> {
    match of_region(folder("block", dev).as_deref()) {
        Promise::Not { reason } => Some(reason),
        Promise::Persistent | Promise::AfterWriteBack | Promise::AfterSync => None,
    }
}

fn folder(kind: &str, dev: Dev) -> Option<PathBuf> {
    fs::canonicalize(format!("/sys/dev/{kind}/{}:{}", major(dev), minor(dev))).ok()
}

/// What the kernel says of the NVDIMM region that a device belongs to: `persistence_domain` of
/// the region, which is not there if it does not know (drivers/nvdimm/region_devs.c).
fn of_region(device: Option<&Path>) -> Promise {
    let Some(region) = device.and_then(region_of) else { return Promise::AfterWriteBack };
    let line = |name: &str| fs::read_to_string(region.join(name)).unwrap_or_default();
    match line("persistence_domain").trim() {
        "cpu_cache" => Promise::Persistent,
        "memory_controller" => Promise::AfterWriteBack,
        // It says nothing. Where there are NVDIMMs they have saved what is in the controller since
        // the first of them; where there are none it is memory that was set aside (memmap=).
        _ if line("mappings").trim().parse::<u32>().is_ok_and(|n| n > 0) => Promise::AfterWriteBack,
        _ => Promise::Not {
            reason: "the region has no NVDIMM: it is memory that was set aside (memmap=), which a \
                     power cut takes"
                .into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_says_what_it_promises() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("region0/namespace0.0/block/pmem0");
        fs::create_dir_all(&device).unwrap();
        let of = |domain: &str, mappings: &str| {
            fs::write(folder.path().join("region0/persistence_domain"), domain).unwrap();
            fs::write(folder.path().join("region0/mappings"), mappings).unwrap();
            of_region(Some(&device))
        };
        assert_eq!(of("cpu_cache\n", "1\n"), Promise::Persistent);
        assert_eq!(of("memory_controller\n", "1\n"), Promise::AfterWriteBack);
        assert_eq!(of("\n", "1\n"), Promise::AfterWriteBack);
        assert!(matches!(of("\n", "0\n"), Promise::Not { .. }));
        fs::remove_file(folder.path().join("region0/persistence_domain")).unwrap();
        assert!(matches!(of_region(Some(&device)), Promise::Not { .. }));
        assert_eq!(of_region(None), Promise::AfterWriteBack);
    }

    #[test]
    fn a_dax_device_promises_what_its_region_does() {
        let folder = tempfile::tempdir().unwrap();
        let region = folder.path().join("ndbus0/region0");
        let device = region.join("dax0.0/dax0.0");
        fs::create_dir_all(&device).unwrap();
        // Of a region, or of none: it has no mappings.
        assert!(matches!(of_dax_device(&device, true), Promise::Not { .. }));
        fs::write(region.join("mappings"), "1\n").unwrap();
        let of = |domain: &str| {
            fs::write(region.join("persistence_domain"), domain).unwrap();
            of_dax_device(&device, true)
        };
        assert_eq!(of("cpu_cache\n"), Promise::Persistent);
        assert_eq!(of("memory_controller\n"), Promise::AfterWriteBack);
        assert!(matches!(of_dax_device(&device, false), Promise::Not { .. }));
    }
}
