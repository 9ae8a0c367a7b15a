//! Devices that fail, and bytes that make no sense.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_block::{
    BlockDevice, BlockError, Completion, DeviceInfo, DirectMemory, Request, Result,
};
use steadfast_devices::filter::fault::{Effect, Fault, FaultRule, Ops};
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::filter::{Record, RecordLog};
use steadfast_devices::source::Ram;
use steadfast_ext4::Dax;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_pagecache::{DirtyLimit, Settings};
use steadfast_runtime::{Mutex, Sim, now, sleep, spawn};
use steadfast_vfs::{
    Attr, Fallocate, Fh, FileSystem, FsError, Ino, NewNode, OpenFlags, SetAttr, TransactPolicy,
    path,
};

use crate::{RW, contents, create, left_by_cuts, read_all};

/// EXT4_JOURNAL_DATA_FL.
const JOURNAL_DATA: u32 = 0x4000;

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

/// Memory that fails to make durable what was stored, from some moment on.
struct FailingMemory {
    next: Ram,
    broken: Mutex<bool>,
}

impl FailingMemory {
    fn memory(&self) -> &dyn DirectMemory {
        self.next.direct_memory().unwrap()
    }
}

impl BlockDevice for FailingMemory {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        self.next.submit(request)
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        Some(self)
    }
}

impl DirectMemory for FailingMemory {
    fn load(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.memory().load(offset, out)
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.memory().store(offset, data)
    }

    fn persist(&self, offset: u64, len: u64) -> Result<()> {
        self.memory().persist(offset, len)
    }

    fn fence(&self) -> Result<()> {
        if *self.broken.lock() {
            let (device, reason) = ("memory".into(), "it is broken".into());
            return Err(BlockError::Gone { device, reason });
        }
        self.memory().fence()
    }
}

/// What whoever writes with O_DSYNC cannot make durable himself is as final as a failed flush.
#[test]
fn after_a_failed_fence_nothing_is_written_any_more() {
    let next = Ram::new("memory", 32 << 20).persistent().with_atomic_words();
    let pages = Options { block_size: Some(4096), ..Options::random(1_700_000_000) };
    make(&(Arc::new(next.clone()) as Arc<dyn BlockDevice>), &pages).unwrap();
    let memory = Arc::new(FailingMemory { next, broken: Mutex::new(false) });
    let options = || MountOptions { dax: Dax::Always, ..MountOptions::default() };
    let fs = Ext4::mount(memory.clone(), options()).unwrap();
    let (attr, fh) = create(&*fs, "file", RW);
    fs.write(fh, 0, contents(1, 0, 8192)).unwrap();
    fs.fsync(fh, false).unwrap();
    let durable = fs.open(attr.ino, RW | OpenFlags::DSYNC).unwrap();
    fs.write(durable, 4096, contents(2, 4096, 4096)).unwrap();
    *memory.broken.lock() = true;
    assert!(matches!(fs.write(durable, 0, contents(3, 0, 4096)), Err(FsError::Io { .. })));
    *memory.broken.lock() = false;
    // A later success takes nothing back.
    assert!(fs.read_only_because().is_some());
    assert!(fs.write(durable, 0, contents(3, 0, 4096)).is_err());
    assert!(fs.write(fh, 0, contents(3, 0, 4096)).is_err());
    assert!(fs.fsync(fh, true).is_err());
    assert!(fs.unmount().is_err());
    drop(fs);
    let fs = Ext4::mount(memory, options()).unwrap();
    assert_eq!(read_all(&*fs, "file")[4096..], contents(2, 4096, 4096)[..]);
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
fn a_failed_write_back_is_reported_once_to_each_handle() {
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

const PAGE: usize = 4096;

/// A file of 16 pages on a disk that failed when they were written anew, and is well again: some
/// may wait to be written again, the others, which are returned, are lost.
fn half_lost(disk: &Arc<Failing>) -> (Arc<Ext4>, Attr, Fh, Range<u64>) {
    half_lost_on(disk, disk.clone())
}

/// The same on a device that is above the disk.
fn half_lost_on(
    disk: &Arc<Failing>,
    device: Arc<dyn BlockDevice>,
) -> (Arc<Ext4>, Attr, Fh, Range<u64>) {
    // An eighth of them may wait. Nothing is written before it is asked for.
    let page_cache = Settings {
        memory_bytes: 64 * PAGE as u64,
        dirty_background: DirtyLimit::Percent(70),
        dirty_limit: DirtyLimit::Percent(80),
        writeback_interval_ms: 0,
        ..Settings::default()
    };
    let options = MountOptions { data: DataMode::Writeback, page_cache, ..MountOptions::default() };
    let fs = Ext4::mount(device, options).unwrap();
    let (attr, fh) = create(&*fs, "file", RW);
    fs.write(fh, 0, contents(1, 0, 16 * PAGE)).unwrap();
    fs.fsync(fh, false).unwrap();
    fs.write(fh, 0, contents(2, 0, 16 * PAGE)).unwrap();
    fs.fsyncdir(fs.root()).unwrap();
    *disk.broken.lock() = true;
    assert!(fs.fsync(fh, true).is_err());
    *disk.broken.lock() = false;
    let lost = fs.page_cache().failed_pages(9).into_iter().find(|part| !part.retry).unwrap().pages;
    assert_eq!(lost.end - lost.start, 8);
    (fs, attr, fh, lost)
}

/// Lost data that is written anew is promised by the next fsync as any other, and what was kept
/// with it: a cut right after it finds both, whatever the disk's cache loses.
#[test]
fn what_mends_a_loss_survives_a_power_cut() {
    for flags in [RW, RW | OpenFlags::DIRECT] {
        let disk =
            Failing { next: made(32 << 20).with_volatile_cache(), broken: Mutex::new(false) };
        let (disk, log) = (Arc::new(disk), RecordLog::new());
        let base = disk.next.store();
        let recorded = Arc::new(Record::new(disk.clone(), &log));
        let (fs, attr, fh, lost) = half_lost_on(&disk, recorded);
        let (at, len) = (lost.start * PAGE as u64, 8 * PAGE);
        let again = fs.open(attr.ino, flags).unwrap();
        fs.write(again, at, contents(3, at, len)).unwrap();
        assert_eq!(fs.fsync(fh, true), Ok(()));
        let recording = log.take();
        drop(fs);
        let cut = recording.at(DeviceId(0), recording.last_crash_point());
        let left = cut.contents(&base, 0, 0, &mut Rng::new(1));
        let left = Arc::new(Ram::from_store("after the cut", left).persistent());
        let fs = Ext4::mount(left, MountOptions::default()).unwrap();
        let found = read_all(&*fs, "file");
        let mut expected = contents(2, 0, 16 * PAGE).to_vec();
        expected[at as usize..][..len].copy_from_slice(&contents(3, at, len));
        assert!(found == expected, "opened with {flags:?}");
    }
}

/// A file system of small blocks that has an empty file, on a disk with a volatile cache.
fn small_blocks_with_a_file() -> (Ram, Ino) {
    let disk = Ram::new("disk", 32 << 20).persistent().with_volatile_cache();
    let small = Options { block_size: Some(1024), ..Options::random(1_700_000_000) };
    make(&(Arc::new(disk.clone()) as Arc<dyn BlockDevice>), &small).unwrap();
    let fs = Ext4::mount(Arc::new(disk.clone()), MountOptions::default()).unwrap();
    let (attr, fh) = create(&*fs, "file", RW);
    fs.write(fh, 64 << 10, contents(1, 64 << 10, 4096)).unwrap();
    fs.unmount().unwrap();
    (disk, attr.ino)
}

/// Data that found no place stays with its page: a write to another block of it brings both to the
/// disk, or the next fsync fails. A cut right after that fsync finds both.
#[test]
fn what_found_no_place_goes_with_the_next_write_to_its_page() {
    let (disk, ino) = small_blocks_with_a_file();
    let (base, log) = (disk.store(), RecordLog::new());
    let device = Fault::new(Arc::new(Record::new(Arc::new(disk), &log)));
    let faults = device.faults();
    let fs = Ext4::mount(Arc::new(device), MountOptions::default()).unwrap();
    let fh = fs.open(ino, RW).unwrap();
    fs.write(fh, 0, contents(1, 0, 1024)).unwrap();
    // The bitmaps cannot be read: the block that is reserved finds no place.
    faults.add(FaultRule::new(Ops::READ, Effect::Fail("unreadable".into())));
    assert!(fs.fsync(fh, false).is_err());
    assert!(faults.hits() > 0);
    faults.clear();
    fs.write(fh, 3072, contents(1, 3072, 1024)).unwrap();
    assert_eq!(fs.fsync(fh, false), Ok(()));
    let recording = log.take();
    drop(fs);
    for found in left_by_cuts(&base, &recording) {
        assert!(found[..1024] == contents(1, 0, 1024)[..], "the first block is lost");
        assert!(found[3072..4096] == contents(1, 3072, 1024)[..]);
    }
}

/// A write that gives lost data's block a place by another way than write-back ends its
/// reservation, as it would had nothing been lost. A cut right after its fsync finds it.
#[test]
fn what_found_no_place_is_not_reserved_once_it_is_written_past_the_cache() {
    let used = |lost: bool, journalled: bool| {
        let (disk, ino) = small_blocks_with_a_file();
        let (base, log) = (disk.store(), RecordLog::new());
        let device = Fault::new(Arc::new(Record::new(Arc::new(disk), &log)));
        let faults = device.faults();
        let fs = Ext4::mount(Arc::new(device), MountOptions::default()).unwrap();
        let fh = fs.open(ino, RW).unwrap();
        if lost {
            fs.write(fh, 0, contents(1, 0, 1024)).unwrap();
            faults.add(FaultRule::new(Ops::READ, Effect::Fail("unreadable".into())));
            assert!(fs.fsync(fh, false).is_err());
            faults.clear();
        }
        let fh = match journalled {
            true => {
                let flags = fs.inode_flags(ino).unwrap() | JOURNAL_DATA;
                fs.set_inode_flags(ino, flags).map(|_| fh).unwrap()
            }
            false => fs.open(ino, RW | OpenFlags::DIRECT).unwrap(),
        };
        // The whole page, which has been lost as one.
        fs.write(fh, 0, contents(2, 0, PAGE)).unwrap();
        assert_eq!(fs.fsync(fh, false), Ok(()));
        let blocks = fs.getattr(ino).unwrap().blocks_512;
        let free = fs.statfs().unwrap().blocks_free;
        assert!(read_all(&*fs, "file")[..PAGE] == contents(2, 0, PAGE)[..]);
        for found in left_by_cuts(&base, &log.take()) {
            assert!(found[..PAGE] == contents(2, 0, PAGE)[..], "lost by the cut");
        }
        fs.unmount().unwrap();
        (blocks, free)
    };
    assert_eq!(used(true, false), used(false, false));
    assert_eq!(used(true, true), used(false, true));
}

/// A write-back that fails half way ends when the writes that it has begun have ended: written
/// anew, their pages must not be overtaken by them.
#[test]
fn a_failed_write_back_waits_for_what_it_has_begun() {
    let (disk, ino) = small_blocks_with_a_file();
    let delay = Duration::from_millis(700);
    let waited = Sim::new(1).run(move || {
        let device = Fault::new(Arc::new(disk));
        let faults = device.faults();
        let fs = Ext4::mount(Arc::new(device), MountOptions::default()).unwrap();
        let fh = fs.open(ino, RW).unwrap();
        // In place first, then what needs a bitmap.
        fs.write(fh, 64 << 10, contents(2, 64 << 10, 4096)).unwrap();
        fs.write(fh, 128 << 10, contents(2, 128 << 10, 1024)).unwrap();
        faults.add(FaultRule::new(Ops::READ, Effect::Fail("unreadable".into())));
        faults.add(FaultRule::new(Ops::WRITE, Effect::Delay(delay)));
        let begun = now();
        assert!(fs.fsync(fh, false).is_err());
        Duration::from_nanos(now().0 - begun.0)
    });
    assert!(waited.unwrap() >= delay);
}

/// What is cut off or punched while its write-back is on the way to find places is not missed.
#[test]
fn data_that_goes_during_its_write_back_is_no_failure() {
    let cut: fn(&Ext4, Ino, Fh) = |fs, ino, _| {
        fs.setattr(ino, SetAttr { size: Some(1024), ..SetAttr::default() }).map(drop).unwrap();
    };
    let punch: fn(&Ext4, Ino, Fh) =
        |fs, _, fh| fs.fallocate(fh, Fallocate::PunchHole, 1024, 2048).unwrap();
    for way in [cut, punch] {
        let (disk, ino) = small_blocks_with_a_file();
        let outcome = Sim::new(1).run(move || {
            let device = Fault::new(Arc::new(disk));
            let faults = device.faults();
            let fs = Ext4::mount(Arc::new(device), MountOptions::default()).unwrap();
            let fh = fs.open(ino, RW).unwrap();
            fs.write(fh, 0, contents(1, 0, PAGE)).unwrap();
            // The write-back waits for a bitmap.
            faults.add(FaultRule::new(Ops::READ, Effect::Delay(Duration::from_secs(1))));
            let write_back = spawn("write-back", {
                let fs = Arc::clone(&fs);
                move || fs.fsync(fh, false)
            });
            sleep(Duration::from_millis(100));
            way(&fs, ino, fh);
            let outcome = write_back.join();
            let then = fs.fsync(fh, false);
            fs.unmount().unwrap();
            (outcome, then)
        });
        let (outcome, then) = outcome.unwrap();
        assert_eq!((outcome.unwrap(), then), (Ok(()), Ok(())));
    }
}

/// A hole over data that was lost makes it good, and the file is as long as it was: also after a
/// power cut.
#[test]
fn a_hole_over_lost_data_keeps_the_size() {
    let (disk, ino) = small_blocks_with_a_file();
    let (base, log) = (disk.store(), RecordLog::new());
    let device = Fault::new(Arc::new(Record::new(Arc::new(disk), &log)));
    let faults = device.faults();
    let fs = Ext4::mount(Arc::new(device), MountOptions::default()).unwrap();
    let fh = fs.open(ino, RW).unwrap();
    let end = 68 << 10;
    fs.write(fh, end, contents(1, end, PAGE)).unwrap();
    faults.add(FaultRule::new(Ops::READ, Effect::Fail("unreadable".into())));
    assert!(fs.fsync(fh, false).is_err());
    faults.clear();
    fs.fallocate(fh, Fallocate::PunchHole, end, PAGE as u64).unwrap();
    assert_eq!(fs.fsync(fh, false), Ok(()));
    let recording = log.take();
    drop(fs);
    for found in left_by_cuts(&base, &recording) {
        assert_eq!(found.len() as u64, end + PAGE as u64);
        assert!(found[end as usize..].iter().all(|b| *b == 0));
    }
}

/// A write past the cache over data that was lost makes it good, but only if it succeeds.
#[test]
fn a_direct_write_that_fails_makes_nothing_good() {
    let disk = Arc::new(Failing { next: made(32 << 20), broken: Mutex::new(false) });
    let (fs, attr, fh, lost) = half_lost(&disk);
    let direct = fs.open(attr.ino, RW | OpenFlags::DIRECT).unwrap();
    let (at, len) = (lost.start * PAGE as u64, 8 * PAGE);
    *disk.broken.lock() = true;
    assert!(fs.write(direct, at, contents(3, at, len)).is_err());
    *disk.broken.lock() = false;
    assert!(fs.fsync(fh, true).is_err(), "nobody has written it");
    fs.write(direct, at, contents(3, at, len)).unwrap();
    assert_eq!(fs.fsync(fh, true), Ok(()));
    assert_eq!(fs.read(fh, at, len).unwrap(), contents(3, at, len));
    fs.unmount().unwrap();
}

/// What is lost stays lost when a file's contents are to move, or to go another way.
#[test]
fn what_is_lost_is_not_forgotten_by_moving_it() {
    let disk = Arc::new(Failing { next: made(32 << 20), broken: Mutex::new(false) });
    let (fs, attr, fh, _) = half_lost(&disk);
    let moved = fs.fallocate(fh, Fallocate::CollapseRange, 0, PAGE as u64);
    assert!(matches!(moved, Err(FsError::Io { .. })), "{moved:?}");
    fs.set_inode_flags(attr.ino, fs.inode_flags(attr.ino).unwrap() | JOURNAL_DATA).unwrap();
    assert!(fs.fsync(fh, true).is_err(), "nobody has written it");
    fs.write(fh, 0, contents(3, 0, 16 * PAGE)).unwrap();
    assert_eq!(fs.fsync(fh, true), Ok(()));
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

/// What the commit that failed would have held is named; what one before it holds is not, nor what
/// was read only.
#[test]
fn files_whose_transaction_is_lost_are_named() {
    let disk = Arc::new(Failing { next: made(32 << 20), broken: Mutex::new(false) });
    let options = MountOptions { delayed_allocation: false, ..MountOptions::default() };
    let fs = Ext4::mount(disk.clone(), options).unwrap();
    let write = |name: &str| {
        let (attr, fh) = create(&*fs, name, RW);
        fs.write(fh, 0, contents(1, 0, 5000)).unwrap();
        (attr.ino, fh)
    };
    let (_, kept) = write("kept");
    fs.fsync(kept, false).unwrap();
    let (first, _) = write("first");
    let (second, fh) = write("second");
    read_all(&*fs, "kept");
    fs.page_cache().flush_all().unwrap();
    assert_eq!(fs.lost_with_journal(), []);
    *disk.broken.lock() = true;
    assert!(fs.fsync(fh, false).is_err());
    *disk.broken.lock() = false;
    let lost: Vec<u64> = fs.lost_with_journal().iter().map(|no| u64::from(no.0)).collect();
    assert_eq!(lost, [first.0, second.0]);
}
