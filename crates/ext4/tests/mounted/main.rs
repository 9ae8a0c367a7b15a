//! Mounting with all options, full file systems, crashes seen from outside, and what is refused.
//! Needs root, for loop mounts.

mod backup;
mod concurrent;
mod data;
mod dax;
mod device_reads;
mod dirsync;
mod failed_calls;
mod fallocate;
mod fast_commits;
mod faults;
mod fragmentation;
mod groups;
mod holds;
mod image;
mod labels;
mod links;
mod memory;
mod orphans;
mod recovery;
mod refusals;
mod relied_upon;
mod space;
mod stamps;
mod transact;
mod unnamed;

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{DeviceId, Recording};
use steadfast_devices::source::{FileDevice, FileOptions, Ram};
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_vfs::{Attr, Fh, FileSystem, NewNode, OpenFlags};

use image::Image;

/// Reading and writing.
const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

fn open(image: &Image) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image.path(), &FileOptions::default()).unwrap())
}

fn mount(image: &Image, options: MountOptions) -> Arc<Ext4> {
    Ext4::mount(open(image), options).unwrap()
}

fn create(fs: &dyn FileSystem, name: &str, flags: OpenFlags) -> (Attr, Fh) {
    fs.create(fs.root(), name.as_bytes(), NewNode::default(), flags).unwrap()
}

/// Bytes that say where they belong; never zero.
fn contents(seed: u64, from: u64, len: usize) -> Bytes {
    let byte = |at: u64| (at.wrapping_mul(seed * 2 + 1) >> 5) as u8 | 1;
    (from..from + len as u64).map(byte).collect()
}

/// All bytes of a file in the root directory.
fn read_all(fs: &dyn FileSystem, name: &str) -> Vec<u8> {
    let attr = fs.lookup(fs.root(), name.as_bytes()).unwrap();
    let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
    let data = fs.read(fh, 0, attr.size as usize).unwrap();
    fs.release(fh).unwrap();
    data.to_vec()
}

/// What the file "file" holds after cuts at the end of a recording.
fn left_by_cuts(base: &Store, recording: &Recording) -> Vec<Vec<u8>> {
    let contents_of = |seed| {
        let cut = recording.at(DeviceId(0), recording.last_crash_point());
        let left = cut.contents(base, 0, 0, &mut Rng::new(seed));
        let left = Arc::new(Ram::from_store("after the cut", left).persistent());
        let fs = Ext4::mount(left, MountOptions::default()).unwrap();
        read_all(&*fs, "file")
    };
    (1..5).map(contents_of).collect()
}
