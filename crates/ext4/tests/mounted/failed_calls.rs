//! Calls that fail on the way: what the cache holds of the file stays, or what is on disk.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_devices::filter::{Fault, Record, RecordLog};
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_vfs::{Fallocate, Fh, FileSystem, FsError, OpenFlags, SetAttr};

use crate::{RW, contents, create, left_by_cuts};

/// Why the write past the cache fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fails {
    /// There is space for some of its blocks only.
    Full,
    /// The device refuses the data.
    Device,
}

/// What gives the cached data its place before it is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placed {
    /// Nothing: its blocks are delayed.
    Delayed,
    /// fallocate(2) with FALLOC_FL_KEEP_SIZE before the write.
    Kept,
    /// The mount option `nodelalloc`.
    AtOnce,
}

/// Takes all the space there is but for so many bytes.
fn fill(fs: &Ext4, left: u64) {
    let (_, big) = create(fs, "big", RW);
    let (mut size, mut step) = (0, 8 << 20);
    while step >= 1024 {
        match fs.fallocate(big, Fallocate::Allocate { keep_size: false }, size, step) {
            Ok(()) => size += step,
            Err(FsError::NoSpace { .. }) => step /= 2,
            Err(e) => panic!("{e}"),
        }
    }
    if left > 0 {
        fs.fallocate(big, Fallocate::PunchHole, size - left, left).unwrap();
    }
    fs.fsync(big, false).unwrap();
    fs.release(big).unwrap();
}

/// A cached write, then one past the cache behind it that fails, then fsync: the cached data is
/// there after a power cut.
fn cached_data_survives(block_size: u32, cluster_size: Option<u32>, placed: Placed, fails: Fails) {
    let what = format!("{block_size}, {cluster_size:?}, {placed:?}, {fails:?}");
    let disk = Ram::new("disk", 24 << 20).persistent().with_volatile_cache();
    let mut made = Options { block_size: Some(block_size), ..Options::random(1_700_000_000) };
    if cluster_size.is_some() {
        made.cluster_size = cluster_size;
        made.features.ro_compat |= steadfast_ext4_format::ondisk::RoCompat::BIGALLOC;
    }
    make(&(Arc::new(disk.clone()) as Arc<dyn BlockDevice>), &made).unwrap();
    let (base, log) = (disk.store(), RecordLog::new());
    let device = Fault::new(Arc::new(Record::new(Arc::new(disk), &log)));
    let faults = device.faults();
    let delayed_allocation = placed != Placed::AtOnce;
    let options = MountOptions { delayed_allocation, ..MountOptions::default() };
    let fs = Ext4::mount(Arc::new(device), options).unwrap();
    let (attr, fh) = create(&*fs, "file", RW);
    if placed == Placed::Kept {
        fs.fallocate(fh, Fallocate::Allocate { keep_size: true }, 0, 64 << 10).unwrap();
    }
    if fails == Fails::Full {
        fill(&fs, 64 << 10);
    }
    fs.write(fh, 0, contents(1, 0, 4096)).unwrap();
    let direct: Fh = fs.open(attr.ino, RW | OpenFlags::DIRECT).unwrap();
    // Behind what was allocated before.
    let at = if placed == Placed::Kept { 64 << 10 } else { 4096 };
    if fails == Fails::Device {
        // Of its data alone: what is written for others on the way is not to fail.
        faults.add(FaultRule::new(Ops::WRITE, Effect::Fail("it is broken".into())).nth(1));
    }
    let failed = fs.write(direct, at, contents(2, at, 1 << 20)).unwrap_err();
    faults.clear();
    match fails {
        Fails::Full => assert!(matches!(failed, FsError::NoSpace { .. }), "{what}: {failed}"),
        Fails::Device => assert!(failed.to_string().contains("broken"), "{what}: {failed}"),
    }
    assert_eq!(fs.getattr(attr.ino).unwrap().size, 4096, "{what}");
    assert_eq!(fs.fsync(fh, false), Ok(()), "{what}");
    assert_eq!(fs.read(fh, 0, 4096).unwrap(), contents(1, 0, 4096), "{what}");
    let recording = log.take();
    for found in left_by_cuts(&base, &recording) {
        assert!(found == contents(1, 0, 4096)[..], "{what}: {} bytes", found.len());
    }
    fs.unmount().unwrap();
}

#[test]
fn a_direct_append_that_fails_takes_no_cached_data() {
    for fails in [Fails::Full, Fails::Device] {
        for placed in [Placed::Delayed, Placed::Kept, Placed::AtOnce] {
            for block_size in [1024, 4096] {
                cached_data_survives(block_size, None, placed, fails);
            }
            cached_data_survives(1024, Some(16 << 10), placed, fails);
        }
    }
}

/// A range of a file that cannot be made zeros, because its holes find no space, shows what was
/// written last or zeros; never what was there before, and the same after a power cut.
#[test]
fn zeros_that_find_no_space_bring_nothing_old_back() {
    for data in [DataMode::Ordered, DataMode::Writeback, DataMode::Journal, DataMode::Transact] {
        let disk = Ram::new("disk", 24 << 20).persistent().with_volatile_cache();
        let made = Options { block_size: Some(4096), ..Options::random(1_700_000_000) };
        make(&(Arc::new(disk.clone()) as Arc<dyn BlockDevice>), &made).unwrap();
        let (base, log) = (disk.store(), RecordLog::new());
        let device = Arc::new(Record::new(Arc::new(disk), &log));
        let fs = Ext4::mount(device, MountOptions { data, ..MountOptions::default() }).unwrap();
        let (attr, fh) = create(&*fs, "file", RW);
        let len = 64 << 10;
        fs.write(fh, 0, vec![1; len].into()).unwrap();
        fs.fsync(fh, false).unwrap();
        fill(&fs, 256 << 10);
        fs.write(fh, 0, vec![2; len].into()).unwrap();
        let zeroed = fs.fallocate(fh, Fallocate::ZeroRange { keep_size: false }, 0, 8 << 20);
        assert!(matches!(zeroed, Err(FsError::NoSpace { .. })), "{data:?}: {zeroed:?}");
        assert_eq!(fs.fsync(fh, false), Ok(()), "{data:?}");
        let size = fs.getattr(attr.ino).unwrap().size as usize;
        let shown = fs.read(fh, 0, size).unwrap();
        assert!(!shown.contains(&1), "{data:?}: old contents");
        for found in left_by_cuts(&base, &log.take()) {
            assert!(found == shown, "{data:?}: {} bytes, {size} were shown", found.len());
        }
        fs.unmount().unwrap();
    }
}

/// A file can always be made shorter, also one with holes on a full disk.
#[test]
fn shortening_takes_no_space() {
    for data in [DataMode::Ordered, DataMode::Journal, DataMode::Transact] {
        let disk = Ram::new("disk", 24 << 20).persistent();
        let made = Options { block_size: Some(1024), ..Options::random(1_700_000_000) };
        make(&(Arc::new(disk.clone()) as Arc<dyn BlockDevice>), &made).unwrap();
        let options = MountOptions { data, ..MountOptions::default() };
        let fs = Ext4::mount(Arc::new(disk), options).unwrap();
        let (attr, fh) = create(&*fs, "file", RW);
        let resize = |size| {
            fs.setattr(attr.ino, SetAttr { size: Some(size), ..SetAttr::default() }).unwrap()
        };
        resize(500_100);
        fill(&fs, 0);
        assert_eq!(resize(300_100).blocks_512, 0, "{data:?}");
        fs.fsync(fh, false).unwrap();
        assert_eq!(fs.getattr(attr.ino).unwrap().blocks_512, 0, "{data:?}");
        fs.unmount().unwrap();
    }
}
