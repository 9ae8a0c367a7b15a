//! What is left of a call that fails under data=transact: no open file that nobody has, which would
//! be in the way of every rollback.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Request};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_pagecache::FileKey;
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

/// Ends a group that fails while `waiting` waits for its end. The file systems that a power cut
/// leaves: after the group's end, and after a point that follows the call.
fn aborted<T: Send + 'static>(
    fs: &Arc<Ext4>,
    disk: &Arc<Disk>,
    waiting: impl FnOnce(&Ext4) -> T + Send + 'static,
) -> (T, [Arc<Ext4>; 2]) {
    disk.slow.store(true, Ordering::Relaxed);
    let call = spawn("waiting", {
        let fs = Arc::clone(fs);
        move || waiting(&fs)
    });
    sleep(Duration::from_millis(5));
    let ended = fs.end_group(false);
    disk.slow.store(false, Ordering::Relaxed);
    ended.unwrap();
    let cut = || {
        let store = disk.next.store();
        check(&store);
        let slow = AtomicBool::new(false);
        let next = Ram::from_store("after", store).persistent();
        mounted(&Arc::new(Disk { next, slow, broken: AtomicBool::new(false) }), "none")
    };
    let first = cut();
    let answer = call.join().unwrap();
    fs.transact().unwrap();
    (answer, [first, cut()])
}

/// The checker finds nothing wrong in what a power cut leaves, once it is recovered.
fn check(store: &Store) {
    let after = Ram::from_store("after", store.clone()).persistent();
    let fs = Ext4::mount(Arc::new(after.clone()), MountOptions::default()).unwrap();
    fs.unmount().unwrap();
    let found =
        steadfast_ext4_check::check(&(Arc::new(after) as Arc<dyn BlockDevice>), None).unwrap();
    assert!(found.is_clean(), "{:?}", found.findings);
}

/// A call that waits for the end of a group is not in its way: the group goes back, then the call
/// does what it was asked for.
#[test]
fn a_call_that_waits_does_not_keep_a_group_from_going_back() {
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
            // Two steps: the first reads the page that it cuts, the second waits for the end.
            let set = SetAttr { size: Some(5000), mode: Some(0o600), ..SetAttr::default() };
            let (answer, [first, then]) = aborted(&fs, &disk, move |fs| fs.setattr(ino, set));
            let attr = answer.unwrap();
            assert_eq!((attr.size, attr.mode), (5000, 0o600));
            assert!(matches!(fs.end_group(true), Err(FsError::Invalid { .. })));
            assert_eq!(read_all(&*first, "before"), contents(1, 0, 9000));
            for fs in [&fs, &first, &then] {
                assert!(fs.lookup(fs.root(), b"inside").is_err());
            }
            for fs in [&fs, &then] {
                assert_eq!(read_all(&**fs, "before"), contents(1, 0, 5000));
                assert_eq!(fs.lookup(fs.root(), b"before").unwrap().mode, 0o600);
            }
            fs.unmount().unwrap();
        })
        .unwrap();
}

/// The file of the call is taken back, and its number is another file's again: that one stays as
/// it is.
#[test]
fn a_call_that_waits_is_refused_when_its_file_is_taken_back() {
    Sim::new(1)
        .run(|| {
            let disk = made();
            let fs = mounted(&disk, "close");
            write(&fs, "before", &contents(1, 0, 9000));
            let was = fs.lookup(fs.root(), b"before").unwrap();
            fs.begin_group().unwrap();
            fs.unlink(fs.root(), b"before").unwrap();
            write(&fs, "inside", &contents(2, 0, 9000));
            let inside = fs.lookup(fs.root(), b"inside").unwrap();
            assert_eq!(inside.ino, was.ino);
            // Out of memory, so that cutting it reads.
            fs.page_cache().flush_all().unwrap();
            fs.page_cache().invalidate(FileKey(inside.ino.0), 0..u64::MAX);
            let set = SetAttr { size: Some(5000), mode: Some(0o600), ..SetAttr::default() };
            let (answer, [first, then]) =
                aborted(&fs, &disk, move |fs| fs.setattr(inside.ino, set));
            assert!(matches!(answer, Err(FsError::NotFound)), "{answer:?}");
            for fs in [&fs, &first, &then] {
                assert!(fs.lookup(fs.root(), b"inside").is_err());
                assert_eq!(read_all(&**fs, "before"), contents(1, 0, 9000));
                assert_eq!(fs.lookup(fs.root(), b"before").unwrap().mode, was.mode);
            }
            fs.unmount().unwrap();
        })
        .unwrap();
}
