//! What is left of a call that fails under data=transact: no open file that nobody has, which would
//! be in the way of every rollback.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Request};
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_vfs::{FileSystem, FsError, NewNode, OpenFlags};

use crate::{RW, contents, create, read_all};

/// A disk that fails to write while it is asked to.
struct Disk {
    next: Ram,
    broken: AtomicBool,
}

impl BlockDevice for Disk {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        let reads = matches!(request, Request::Read { .. });
        if !reads && self.broken.load(Ordering::Relaxed) {
            let (device, reason) = ("disk".into(), "it is broken".into());
            return Completion::ready(Err(BlockError::Gone { device, reason }));
        }
        self.next.submit(request)
    }
}

fn made() -> Arc<Disk> {
    let next = Ram::new("disk", 32 << 20).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(next.clone());
    let pages = Options { block_size: Some(4096), ..Options::random(1_700_000_000) };
    make(&device, &pages).unwrap();
    Arc::new(Disk { next, broken: AtomicBool::new(false) })
}

fn mounted(disk: &Arc<Disk>, mask: &str) -> Arc<Ext4> {
    let transact = mask.parse().unwrap();
    let options = MountOptions { data: DataMode::Transact, transact, ..MountOptions::default() };
    Ext4::mount(disk.clone(), options).unwrap()
}

fn write(fs: &Ext4, name: &str, data: &[u8]) {
    let (_, fh) = create(fs, name, RW);
    fs.write(fh, 0, data.to_vec().into()).unwrap();
    fs.release(fh).unwrap();
}

#[test]
fn an_opening_whose_point_fails_leaves_no_file_open() {
    type Open = fn(&Ext4) -> Result<(), FsError>;
    let opens: [(&str, Open); 2] = [
        ("create", |fs| fs.create(fs.root(), b"new", NewNode::default(), RW).map(drop)),
        ("truncate", |fs| {
            let ino = fs.lookup(fs.root(), b"old")?.ino;
            fs.open(ino, RW | OpenFlags::TRUNCATE).map(drop)
        }),
    ];
    for (mask, open) in opens {
        let disk = made();
        let fs = mounted(&disk, mask);
        write(&fs, "old", b"old contents");
        fs.transact().unwrap();
        // Data that the point would have to write.
        write(&fs, "dirty", &contents(1, 0, 50_000));
        disk.broken.store(true, Ordering::Relaxed);
        assert!(open(&fs).is_err(), "{mask}");
        disk.broken.store(false, Ordering::Relaxed);
        fs.rollback().unwrap();
        assert!(fs.lookup(fs.root(), b"new").is_err());
        assert_eq!(read_all(&*fs, "old"), b"old contents");
        write(&fs, "after", b"after");
        fs.transact().unwrap();
        fs.unmount().unwrap();
    }
}
