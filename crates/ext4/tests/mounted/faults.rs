//! Devices that fail, and bytes that make no sense.

use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Request, Result};
use steadfast_devices::source::Ram;
use steadfast_ext4::mkfs::{Options, make};
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_runtime::Mutex;
use steadfast_vfs::{FileSystem, FsError, NewNode, OpenFlags, TransactPolicy, path};

use crate::{RW, contents, create};

/// A device whose writes fail from some moment on.
struct Failing {
    next: Ram,
    broken: Mutex<bool>,
}

impl BlockDevice for Failing {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        if *self.broken.lock() && !matches!(request, Request::Read { .. }) {
            let (device, reason) = ("disk".into(), "it is broken".into());
            let failed: Result<_> = Err(BlockError::Gone { device, reason });
            return Completion::ready(failed);
        }
        self.next.submit(request)
    }
}

fn made(size: u64) -> Ram {
    let disk = Ram::new("disk", size).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(disk.clone());
    make(&device, &Options::random(1_700_000_000)).unwrap();
    disk
}

#[test]
fn after_a_failed_commit_nothing_is_written_any_more() {
    let disk = Arc::new(Failing { next: made(32 << 20), broken: Mutex::new(false) });
    let fs = Ext4::mount(disk.clone(), MountOptions::default()).unwrap();
    let (_, fh) = create(&*fs, "file", RW);
    fs.write(fh, 0, contents(1, 0, 5000)).unwrap();
    fs.fsync(fh, false).unwrap();
    *disk.broken.lock() = true;
    fs.write(fh, 5000, contents(1, 5000, 5000)).unwrap();
    assert!(matches!(fs.fsync(fh, false), Err(FsError::Io { .. })));
    assert!(fs.sync().is_err());
    *disk.broken.lock() = false;
    // A later success takes nothing back.
    let refused = fs.create(fs.root(), b"more", NewNode::default(), RW).map(drop);
    assert!(matches!(refused, Err(FsError::ReadOnly { .. })), "{refused:?}");
    assert!(fs.read_only_because().is_some());
    assert!(fs.write(fh, 0, contents(2, 0, 10)).is_err());
    assert!(fs.fsync(fh, false).is_err());
    assert!(fs.unmount().is_err());
    drop(fs);
    let fs = Ext4::mount(disk, MountOptions::default()).unwrap();
    let attr = fs.lookup(fs.root(), b"file").unwrap();
    let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
    assert_eq!(fs.read(fh, 0, 5000).unwrap(), contents(1, 0, 5000));
}

#[test]
fn a_failed_write_back_is_told_once_to_each_handle() {
    let disk = Arc::new(Failing { next: made(32 << 20), broken: Mutex::new(false) });
    let options = MountOptions { data: DataMode::Writeback, ..MountOptions::default() };
    let fs = Ext4::mount(disk.clone(), options).unwrap();
    let (attr, first) = create(&*fs, "file", RW);
    fs.write(first, 0, contents(1, 0, 50_000)).unwrap();
    fs.fsync(first, false).unwrap();
    let second = fs.open(attr.ino, RW).unwrap();
    // An overwrite in place: the journal is not concerned.
    fs.write(first, 4096, contents(2, 4096, 4096)).unwrap();
    fs.fsyncdir(fs.root()).unwrap();
    *disk.broken.lock() = true;
    assert!(fs.fsync(first, true).is_err());
    *disk.broken.lock() = false;
    assert_eq!(fs.fsync(first, true), Ok(()));
    assert!(fs.fsync(second, true).is_err());
    assert_eq!(fs.fsync(second, true), Ok(()));
    let late = fs.open(attr.ino, RW).unwrap();
    assert_eq!(fs.fsync(late, true), Ok(()));
    fs.unmount().unwrap();
}

#[test]
fn a_point_that_fails_is_the_last_until_a_rollback() {
    let disk = Arc::new(Failing { next: made(32 << 20), broken: Mutex::new(false) });
    let transact = TransactPolicy::MANUAL;
    let options = MountOptions { data: DataMode::Transact, transact, ..MountOptions::default() };
    let fs = Ext4::mount(disk.clone(), options.clone()).unwrap();
    let (_, fh) = create(&*fs, "file", RW);
    fs.write(fh, 0, contents(1, 0, 50_000)).unwrap();
    fs.transact().unwrap();
    *disk.broken.lock() = true;
    fs.write(fh, 4096, contents(2, 4096, 9000)).unwrap();
    let first = fs.transact().unwrap_err();
    *disk.broken.lock() = false;
    assert_eq!(fs.transact(), Err(first.clone()));
    assert!(first.to_string().contains("rollback"), "{first}");
    fs.release(fh).unwrap();
    fs.rollback().unwrap();
    let fh = fs.open(fs.lookup(fs.root(), b"file").unwrap().ino, RW).unwrap();
    assert_eq!(fs.read(fh, 0, 50_000).unwrap(), contents(1, 0, 50_000));
    fs.write(fh, 0, contents(3, 0, 100)).unwrap();
    fs.transact().unwrap();
    // A journal that could not be written is another matter: nothing brings it back.
    fs.write(fh, 0, contents(4, 0, 100)).unwrap();
    fs.mkdir(fs.root(), b"dir", NewNode::default()).unwrap();
    let flushed = fs.set_transact_policy(TransactPolicy::default());
    assert_eq!(flushed, Ok(()));
    *disk.broken.lock() = true;
    assert!(fs.transact().is_err());
    *disk.broken.lock() = false;
    assert!(fs.transact().is_err());
    fs.release(fh).unwrap_err();
    assert!(fs.unmount().is_err());
    drop(fs);
    let fs = Ext4::mount(disk, options).unwrap();
    let fh = fs.open(fs.lookup(fs.root(), b"file").unwrap().ino, RW).unwrap();
    assert_eq!(fs.read(fh, 0, 100).unwrap(), contents(3, 0, 100));
    assert!(fs.lookup(fs.root(), b"dir").is_err());
}

/// Walks over everything, reads and writes here and there. Errors are fine; panics, hangs and
/// endless memory are not.
fn exercise(fs: &Ext4) {
    let mut dirs = vec![fs.root()];
    let mut seen = 0;
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = path::list(fs, dir) else { continue };
        for entry in entries {
            seen += 1;
            if seen > 500 {
                return;
            }
            let Ok(attr) = fs.lookup(dir, &entry.name) else { continue };
            match attr.kind {
                steadfast_vfs::FileType::Directory if attr.ino != dir => dirs.push(attr.ino),
                steadfast_vfs::FileType::Symlink => drop(fs.readlink(attr.ino)),
                _ => {}
            }
            let Ok(fh) = fs.open(attr.ino, RW) else { continue };
            let _ = fs.read(fh, 0, 70_000);
            let _ = fs.write(fh, 3000, contents(9, 3000, 9000));
            let _ = fs.fsync(fh, false);
            let _ = fs.release(fh);
            if seen % 3 == 0 {
                let _ = fs.unlink(dir, &entry.name);
            }
        }
    }
    let _ = fs.create(fs.root(), b"new", NewNode::default(), RW);
    let _ = fs.sync();
}

#[test]
fn flipped_bytes_never_panic() {
    let disk = made(12 << 20);
    let fs = Ext4::mount(Arc::new(disk.clone()), MountOptions::default()).unwrap();
    for i in 0..20u64 {
        let (_, fh) = create(&*fs, &format!("file{i}"), RW);
        for piece in 0..8 {
            fs.write(fh, piece * 20_000, contents(i, piece * 20_000, 3000)).unwrap();
        }
        fs.release(fh).unwrap();
        let dir = format!("dir{i}");
        fs.mkdir(fs.root(), dir.as_bytes(), NewNode::default()).unwrap();
        fs.symlink(fs.root(), format!("link{i}").as_bytes(), &[b'a'; 90], NewNode::default())
            .unwrap();
    }
    fs.unmount().unwrap();
    drop(fs);
    let clean = disk.store();
    let used: Vec<(u64, u64)> = clean.populated().collect();
    let mut rng = Rng::new(4);
    for round in 0..400 {
        let mut store = clean.clone();
        for _ in 0..1 + rng.below(4) {
            // Half of the flips hit superblock, descriptors and the first inode tables.
            let at = if rng.percent(50) {
                rng.below(200 * 1024)
            } else {
                let (start, len) = used[rng.below(used.len() as u64) as usize];
                start + rng.below(len)
            };
            let sector = at / 512 * 512;
            let mut bytes = store.read(sector, 512).to_vec();
            bytes[(at - sector) as usize] ^= 1 << rng.below(8);
            store.write_slice(sector, &bytes);
        }
        let disk = Ram::from_store(format!("round {round}"), store).persistent();
        let Ok(fs) = Ext4::mount(Arc::new(disk), MountOptions::default()) else { continue };
        exercise(&fs);
        let _ = fs.unmount();
    }
}
