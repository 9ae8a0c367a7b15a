//! Which files are used in place, on a device that is memory.

use steadfast_block::{BlockDevice, DirectMemory};
use steadfast_ext4_format::ondisk::{Features, Incompat, InodeFlags};
use steadfast_ext4_format::{Ext4Error, Result, refused};
use steadfast_pagecache::PAGE;
use steadfast_vfs::FileType;

use crate::meta::Volume;
use crate::mounted::Ext4;
use crate::options::{DataMode, Dax, MountOptions};
use crate::state::Inode;

/// Whether files can be used in place on this device with these options; by name what cannot be.
pub(crate) fn check(volume: &Volume, options: &MountOptions) -> Result<bool> {
    let refuse = |what: &str| {
        let device = volume.device.info().name;
        refused(format!("dax=always: {device}: {what}"))
    };
    let layout = &volume.layout;
    let hindrance = hindrance(&*volume.device, layout.block_size, layout.features);
    match (options.dax, hindrance) {
        (Dax::Never, _) => Ok(false),
        (Dax::Inode, hindrance) => Ok(hindrance.is_none() && options.data != DataMode::Transact),
        (Dax::Always, Some(what)) => refuse(what),
        (Dax::Always, None) => Ok(true),
    }
}

/// Why no file of such a file system can be used in place on a device, if that is so.
pub(crate) fn hindrance(
    device: &dyn BlockDevice,
    block_size: u32,
    features: Features,
) -> Option<&'static str> {
    if device.direct_memory().is_none() {
        Some(
            "the device is not memory, or is a sector namespace, which is used by way of a table, \
             or cannot be mapped: mount without dax, or make a range of memory with `steadfast \
             pmem create`, of mode raw or fsdax",
        )
    } else if block_size as usize != PAGE {
        Some("the file system's blocks are no pages of 4096 bytes: make it with mkfs -b 4096")
    } else if features.incompat.contains(Incompat::INLINE_DATA) {
        Some("the file system may hold files in their inodes (inline_data): mount without dax")
    } else {
        None
    }
}

/// Whether the inode's data is used in place.
pub(crate) fn is_dax(fs: &Ext4, inode: &Inode) -> bool {
    if !fs.dax {
        return false;
    }
    let raw = &inode.state().raw;
    raw.file_type() == Some(FileType::Regular)
        && (fs.options.dax == Dax::Always || raw.flags().contains(InodeFlags::DAX))
        && !(fs.options.data == DataMode::Journal || raw.flags().contains(InodeFlags::JOURNAL_DATA))
}

/// The device's memory, of a file that is used in place.
pub(crate) fn memory(fs: &Ext4) -> Result<&dyn DirectMemory> {
    fs.volume.device.direct_memory().ok_or_else(|| {
        let device = fs.volume.device.info().name;
        let reason = "it is no longer memory".into();
        Ext4Error::Block(steadfast_block::BlockError::Gone { device, reason })
    })
}
