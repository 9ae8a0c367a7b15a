//! What the first changes after a mount read from the device: about what the kernel's ext4 reads.

use std::sync::{Arc, Mutex};

use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request};
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_check::check;
use steadfast_ext4_mkfs::{Options, make};
use steadfast_vfs::{FileSystem, NewNode};

use crate::RW;

/// Notes the places of reads, in blocks.
struct Reads(Arc<dyn BlockDevice>, Mutex<Vec<u64>>);

impl BlockDevice for Reads {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&self, request: Request) -> Completion {
        if let (Request::Read { .. }, Some((offset, _))) = (&request, request.range()) {
            self.1.lock().unwrap().push(offset / 4096);
        }
        self.0.submit(request)
    }
}

/// That of a small disk: about 900 groups, nearly all without bitmaps and inodes.
const SIZE: u64 = 112 << 30;

#[test]
fn a_cold_mkdir_reads_a_few_blocks_and_what_follows_none() {
    for data in [DataMode::Ordered, DataMode::Journal, DataMode::Transact] {
        let options = MountOptions { data, ..MountOptions::default() };
        let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", SIZE).persistent());
        make(&disk, &Options::random(1_700_000_000)).unwrap();
        let noted = Arc::new(Reads(Arc::clone(&disk), Mutex::default()));
        let fs = Ext4::mount(noted.clone(), options).unwrap();
        let reads = || std::mem::take(&mut *noted.1.lock().unwrap());
        reads();
        let directory = fs.mkdir(fs.root(), b"directory", NewNode::default()).unwrap().ino;
        let mkdir = reads();
        let (_, fh) = fs.create(directory, b"file", NewNode::default(), RW).unwrap();
        let create = reads();
        fs.write(fh, 0, vec![1; 4096].into()).unwrap();
        fs.fsync(fh, false).unwrap();
        let write = reads();
        // The root's block, and the bitmap of a group that holds those of others.
        assert_eq!(mkdir.len(), 2, "{data:?}: {mkdir:?}");
        assert_eq!([create, write], [[], []], "{data:?}");
        for name in ["second", "third", "fourth"] {
            fs.mkdir(fs.root(), name.as_bytes(), NewNode::default()).unwrap();
        }
        assert_eq!(reads(), []);
        fs.release(fh).unwrap();
        fs.unmount().unwrap();
        assert_eq!(check(&disk, None).unwrap().findings, []);
    }
}
