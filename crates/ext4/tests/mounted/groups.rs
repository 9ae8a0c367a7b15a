//! What is left of a call that fails under data=transact: no open file that nobody has, which would
//! be in the way of every rollback.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Request};
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_runtime::{Sim, sleep, spawn};
use steadfast_vfs::{FileSystem, FsError, NewNode, OpenFlags, SetAttr};

use crate::{RW, contents, create, read_all};

/// A disk that is slow to read, or fails to write, while it is asked to.
struct Disk {
    next: Ram,
    slow: AtomicBool,
    broken: AtomicBool,
}

impl BlockDevice for Disk {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        let reads = matches!(request, Request::Read { .. });
        if reads && self.slow.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(10));
        }
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
    Arc::new(Disk { next, slow: AtomicBool::new(false), broken: AtomicBool::new(false) })
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

/// A call that waits for the group's end has the file open for its own time only.
#[test]
fn a_group_goes_back_after_the_call_that_was_in_its_way() {
    Sim::new(1)
        .run(|| {
            let disk = made();
            let fs = mounted(&disk, "close");
            write(&fs, "before", &contents(1, 0, 9000));
            fs.unmount().unwrap();
            drop(fs);
            let fs = mounted(&disk, "close");
            let ino = fs.lookup(fs.root(), b"before").unwrap().ino;
            fs.begin_group().unwrap();
            write(&fs, "inside", b"inside");
            disk.slow.store(true, Ordering::Relaxed);
            let cutting = spawn("cutting", {
                let fs = Arc::clone(&fs);
                // Two steps: the first reads the page that it cuts, the second waits for the end.
                let set = SetAttr { size: Some(5000), mode: Some(0o600), ..SetAttr::default() };
                move || fs.setattr(ino, set).map(drop)
            });
            sleep(Duration::from_millis(5));
            let ended = fs.end_group(false);
            disk.slow.store(false, Ordering::Relaxed);
            assert!(matches!(ended, Err(FsError::Busy { .. })), "{ended:?}");
            let refused = cutting.join().unwrap();
            assert!(matches!(refused, Err(FsError::NoSpace { .. })), "{refused:?}");
            assert!(matches!(fs.end_group(true), Err(FsError::Invalid { .. })));
            assert!(fs.lookup(fs.root(), b"inside").is_err());
            assert_eq!(read_all(&*fs, "before"), contents(1, 0, 9000));
            write(&fs, "after", b"after");
            fs.transact().unwrap();
            fs.unmount().unwrap();
        })
        .unwrap();
}
