//! fallocate against a model: contents after any sequence of operations, in every data mode, as we
//! read them and as the kernel does; what is refused; where the storage goes.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_suite::operation::Change;
use steadfast_vfs::{Fallocate, Fh, FileSystem, FsError, Ino, OpenFlags, SeekTo, SetAttr};

use crate::image::Image;
use crate::{RW, contents, create, mount, read_all};

const KEEP: Fallocate = Fallocate::Allocate { keep_size: true };
const GROW: Fallocate = Fallocate::Allocate { keep_size: false };
const ZERO: Fallocate = Fallocate::ZeroRange { keep_size: false };

/// Changes what the file should have.
pub fn write(model: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let change = Change::Write { offset, len: data.len() as u64 };
    change.make(model, |_, out| out.copy_from_slice(data));
}

/// The same, with the file.
pub fn fallocate(fs: &Ext4, fh: Fh, model: &mut Vec<u8>, what: Fallocate, offset: u64, len: u64) {
    Change::Fallocate { what, offset, len }.make(model, |_, _| ());
    fs.fallocate(fh, what, offset, len).unwrap();
}

fn step(fs: &Ext4, fh: Fh, model: &mut Vec<u8>, rng: &mut Rng, setup: Setup) {
    let (size, block) = (model.len() as u64, setup.cluster);
    let (at, len) = (rng.below(300_000), 1 + rng.below(60_000));
    let kinds = [KEEP, GROW, Fallocate::PunchHole, Fallocate::PunchHole, ZERO];
    match rng.below(11) {
        10 => {
            model.resize(at as usize, 0);
            let set = SetAttr { size: Some(at), ..SetAttr::default() };
            fs.setattr(fs.lookup(fs.root(), b"file").unwrap().ino, set).unwrap();
        }
        0..3 => {
            let data = contents(rng.below(100), at, len as usize);
            write(model, at, &data);
            assert_eq!(fs.write(fh, at, data), Ok(len as usize));
        }
        3 => fs.fsync(fh, true).unwrap(),
        4 if setup.extents && size > 2 * block => {
            let at = rng.below(size / block - 1) * block;
            let len = (1 + rng.below((size - at) / block)) * block;
            if at + len < size {
                fallocate(fs, fh, model, Fallocate::CollapseRange, at, len);
            }
        }
        5 if setup.extents && size > block && size < 600_000 => {
            let at = rng.below(size / block) * block;
            let len = (1 + rng.below(20)) * block;
            fallocate(fs, fh, model, Fallocate::InsertRange, at, len);
        }
        _ => {
            let any = kinds[rng.below(5) as usize];
            let what = if setup.extents { any } else { Fallocate::PunchHole };
            fallocate(fs, fh, model, what, at, len);
        }
    }
}

/// How a file system is made and mounted.
#[derive(Debug, Clone, Copy)]
struct Setup {
    data: DataMode,
    delayed_allocation: bool,
    block: u64,
    /// Without extents a file can only be punched.
    extents: bool,
    /// Bytes a cluster, in which ranges are shifted: the block, or more with bigalloc.
    cluster: u64,
}

impl Setup {
    const fn new(data: DataMode, block: u64) -> Setup {
        Setup { data, delayed_allocation: true, block, extents: true, cluster: block }
    }

    fn options(self) -> MountOptions {
        let Setup { data, delayed_allocation, .. } = self;
        MountOptions { data, delayed_allocation, ..MountOptions::default() }
    }

    /// Larger blocks are beyond the kernel.
    fn kernel_mounts(self) -> bool {
        self.block <= 4096
    }
}

const SETUPS: [Setup; 21] = [
    Setup::new(DataMode::Ordered, 4096),
    Setup::new(DataMode::Ordered, 1024),
    Setup { delayed_allocation: false, ..Setup::new(DataMode::Ordered, 1024) },
    Setup::new(DataMode::Journal, 1024),
    Setup::new(DataMode::Journal, 4096),
    Setup::new(DataMode::Writeback, 2048),
    Setup::new(DataMode::Transact, 1024),
    Setup::new(DataMode::Transact, 4096),
    Setup::new(DataMode::Ordered, 16384),
    Setup { delayed_allocation: false, ..Setup::new(DataMode::Ordered, 16384) },
    Setup::new(DataMode::Journal, 16384),
    Setup::new(DataMode::Ordered, 65536),
    Setup { extents: false, ..Setup::new(DataMode::Ordered, 1024) },
    Setup { extents: false, ..Setup::new(DataMode::Ordered, 4096) },
    Setup { extents: false, ..Setup::new(DataMode::Journal, 1024) },
    Setup { cluster: 16384, ..Setup::new(DataMode::Ordered, 1024) },
    Setup { cluster: 16384, ..Setup::new(DataMode::Ordered, 4096) },
    Setup { cluster: 65536, ..Setup::new(DataMode::Ordered, 4096) },
    Setup { cluster: 65536, ..Setup::new(DataMode::Writeback, 1024) },
    Setup { cluster: 16384, ..Setup::new(DataMode::Journal, 1024) },
    Setup { cluster: 4096, delayed_allocation: false, ..Setup::new(DataMode::Ordered, 1024) },
];

/// One sequence, judged after every step, also with nothing in memory now and then.
fn sequence(setup: Setup, seed: u64) {
    let (block, cluster) = (setup.block.to_string(), setup.cluster.to_string());
    let journal = if setup.block > 4096 { "size=64" } else { "size=4" };
    let mut args = vec!["-b", &block, "-J", journal];
    if !setup.extents {
        args.extend(["-O", "^extents,^64bit,^flex_bg"]);
    }
    if setup.cluster > setup.block {
        args.extend(["-O", "bigalloc", "-C", &cluster]);
    }
    let image = Image::mke2fs(if setup.block > 4096 { 160 } else { 48 } << 20, &args);
    let mut fs = mount(&image, setup.options());
    let free = fs.statfs().unwrap().blocks_free;
    let (attr, mut fh) = create(&*fs, "file", RW);
    let (mut rng, mut model) = (Rng::new(seed), Vec::new());
    for i in 0..150 {
        step(&fs, fh, &mut model, &mut rng, setup);
        if rng.percent(4) {
            fs.release(fh).unwrap();
            fs.unmount().unwrap();
            drop(fs);
            fs = mount(&image, setup.options());
            fh = fs.open(attr.ino, RW).unwrap();
        }
        let what = format!("{setup:?}, seed {seed}, step {i}");
        assert_eq!(fs.getattr(attr.ino).unwrap().size, model.len() as u64, "{what}");
        read_long(&fs, attr.ino, &model, &mut rng, &what);
        if rng.percent(50) {
            continue;
        }
        let found = read_all(&*fs, "file");
        let differs = found.iter().zip(&model).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{what}");
    }
    fs.sync().unwrap();
    let free_at_end = fs.statfs().unwrap().blocks_free;
    fs.unmount().unwrap();
    drop(fs);
    image.assert_clean();
    if setup.kernel_mounts() {
        assert!(read_all(image.mount("ro").fs(), "file") == model, "the kernel reads the same");
    }
    let fs = mount(&image, setup.options());
    assert_eq!(fs.statfs().unwrap().blocks_free, free_at_end, "{setup:?}, seed {seed}: reserved");
    fs.unlink(fs.root(), b"file").unwrap();
    fs.sync().unwrap();
    assert_eq!(fs.statfs().unwrap().blocks_free, free);
    fs.unmount().unwrap();
    image.assert_clean();
}

/// A read that leaves nothing in memory unless something of it is there.
fn read_long(fs: &Ext4, ino: Ino, model: &[u8], rng: &mut Rng, what: &str) {
    let fh = fs.open(ino, OpenFlags::READ | OpenFlags::CALLER_CACHES).unwrap();
    let from = rng.below(model.len() as u64 / 4096 + 1) * 4096;
    let len = (128 << 10) + rng.below(64) as usize * 1024;
    let found = fs.read(fh, from, len).unwrap();
    fs.release(fh).unwrap();
    let rest = &model[model.len().min(from as usize)..];
    assert!(found == rest[..rest.len().min(len)], "{what}: {len} bytes at {from}");
}

/// With a seed that once lost data: zeros that changed nothing left a reservation behind, and what
/// was written there later had none.
#[test]
fn zeros_that_change_nothing_reserve_nothing() {
    sequence(SETUPS[6], 206);
}

#[test]
fn long_reads_leave_nothing_behind_if_the_caller_keeps_them() {
    let image = Image::mke2fs(48 << 20, &["-b", "4096"]);
    let fs = mount(&image, MountOptions::default());
    let (attr, fh) = create(&*fs, "file", RW);
    let model = contents(1, 0, 1_000_000);
    fs.write(fh, 0, model.clone()).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    let fs = mount(&image, MountOptions::default());
    let kept = fs.open(attr.ino, OpenFlags::READ | OpenFlags::CALLER_CACHES).unwrap();
    let read = |from: usize, len: usize| {
        let end = model.len().min(from + len);
        assert_eq!(fs.read(kept, from as u64, len).unwrap(), model[from..end]);
        let stats = fs.page_cache().stats();
        (stats.store_reads, stats.hit_pages)
    };
    for _ in 0..2 {
        assert_eq!(read(0, 256 << 10), (0, 0));
        assert_eq!(read(768 << 10, 512 << 10), (0, 0), "beyond the end");
    }
    let (loads, _) = read(512 << 10, 64 << 10);
    assert!(loads > 0, "a short one stays");
    // What is there is used.
    let (_, hits) = read(512 << 10, 64 << 10);
    assert!(hits >= 16);
    assert!(read(448 << 10, 128 << 10).1 >= hits + 16);
    fs.unmount().unwrap();
}

/// `STEADFAST_SOAK` says how many sequences, each of another seed.
#[test]
fn any_sequence_leaves_what_the_model_says() {
    let soak = std::env::var("STEADFAST_SOAK").ok().and_then(|v| v.parse().ok()).unwrap_or(1u64);
    for round in 0..soak.max(1) {
        for (setup, seed) in SETUPS.into_iter().zip(0..) {
            sequence(setup, seed + 100 * round);
        }
    }
}

#[test]
fn space_behind_the_end_stays_until_the_file_is_cut() {
    let image = Image::mke2fs(48 << 20, &["-b", "4096"]);
    let fs = mount(&image, MountOptions::default());
    let (attr, fh) = create(&*fs, "file", RW);
    fs.write(fh, 0, contents(1, 0, 10_000)).unwrap();
    fs.fallocate(fh, KEEP, 0, 1 << 20).unwrap();
    let seen = fs.getattr(attr.ino).unwrap();
    assert_eq!((seen.size, seen.blocks_512), (10_000, 2048));
    fs.sync().unwrap();
    fs.unmount().unwrap();
    drop(fs);
    image.assert_clean();
    let fs = mount(&image, MountOptions::default());
    assert_eq!(fs.getattr(attr.ino).unwrap().blocks_512, 2048);
    // Growing over it shows zeros, and writes need no new space.
    let resize = |size| {
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        fs.setattr(attr.ino, set).unwrap();
    };
    resize(500_000);
    assert!(read_all(&*fs, "file")[10_000..].iter().all(|b| *b == 0));
    let fh = fs.open(attr.ino, RW).unwrap();
    fs.write(fh, 100_000, contents(2, 0, 9000)).unwrap();
    fs.fsync(fh, false).unwrap();
    assert_eq!(fs.getattr(attr.ino).unwrap().blocks_512, 2048);
    resize(500_000);
    assert_eq!(fs.getattr(attr.ino).unwrap().blocks_512, 123 * 8);
    fs.unmount().unwrap();
    image.assert_clean();
}

#[test]
fn what_is_refused() {
    let image = Image::mke2fs(48 << 20, &["-b", "4096"]);
    let fs = mount(&image, MountOptions::default());
    let (attr, fh) = create(&*fs, "file", RW);
    fs.write(fh, 0, contents(1, 0, 100_000)).unwrap();
    let invalid = |what, at, len| {
        let refused = fs.fallocate(fh, what, at, len);
        assert!(matches!(refused, Err(FsError::Invalid { .. })), "{what:?} {at} {len}");
    };
    invalid(KEEP, 0, 0);
    invalid(Fallocate::CollapseRange, 1, 4096);
    invalid(Fallocate::CollapseRange, 4096, 4095);
    invalid(Fallocate::CollapseRange, 4096, 25 * 4096);
    invalid(Fallocate::InsertRange, 512, 4096);
    invalid(Fallocate::InsertRange, 25 * 4096, 4096);
    invalid(GROW, u64::MAX - 5, 10);
    invalid(GROW, 10, 1 << 63);
    assert_eq!(fs.fallocate(fh, GROW, (1 << 63) - 5, 10), Err(FsError::FileTooLarge));
    assert_eq!(fs.fallocate(fh, KEEP, 1 << 44, 1 << 20), Err(FsError::FileTooLarge));
    assert_eq!(fs.fallocate(fh, Fallocate::InsertRange, 0, 1 << 43), Ok(()));
    assert_eq!(fs.fallocate(fh, Fallocate::InsertRange, 0, 1 << 43), Err(FsError::FileTooLarge));
    assert_eq!(fs.fallocate(fh, Fallocate::CollapseRange, 0, 1 << 43), Ok(()));
    let reader = fs.open(attr.ino, OpenFlags::READ).unwrap();
    assert_eq!(fs.fallocate(reader, KEEP, 0, 1), Err(FsError::BadHandle));
    assert!(matches!(fs.fallocate(fh, KEEP, 0, 1 << 30), Err(FsError::NoSpace { .. })));
    assert_eq!(read_all(&*fs, "file"), contents(1, 0, 100_000));
    fs.unmount().unwrap();
    image.assert_clean();
}

#[test]
fn many_extents_move_in_many_transactions() {
    let image = Image::mke2fs(64 << 20, &["-b", "1024", "-J", "size=1"]);
    let fs = mount(&image, MountOptions::default());
    let (_, fh) = create(&*fs, "holes", RW);
    let mut model = Vec::new();
    for i in 0..6000 {
        let data = contents(i, 0, 1024);
        write(&mut model, i * 2048, &data);
        fs.write(fh, i * 2048, data).unwrap();
    }
    for (what, at, len) in [
        (Fallocate::InsertRange, 3 << 10, 5 << 10),
        (Fallocate::CollapseRange, 100 << 10, 300 << 10),
        (Fallocate::PunchHole, 5000, 4 << 20),
        (ZERO, 9_000_000, 1_000_000),
    ] {
        fallocate(&fs, fh, &mut model, what, at, len);
        assert!(read_all(&*fs, "holes") == model, "{what:?}");
    }
    fs.unmount().unwrap();
    image.assert_clean();
}

/// File blocks of 1 KiB that count as written, and that the rest is unwritten.
fn written_blocks(fs: &Ext4, ino: Ino) -> Vec<u64> {
    let extents = fs.extents(ino, 0, u64::MAX).unwrap();
    let all: u64 = extents.iter().map(|extent| extent.len).sum();
    assert_eq!(all, 64 * 1024, "{extents:?}");
    let written = extents.iter().filter(|extent| !extent.unwritten);
    written.flat_map(|e| e.logical / 1024..(e.logical + e.len) / 1024).collect()
}

/// Where blocks are smaller than pages a page is written with some of them: the others stay
/// allocated and unwritten, now and after a power cut, and all bytes are what they should be.
#[test]
fn blocks_of_a_page_that_nobody_wrote_stay_unwritten() {
    // Not data=transact, which moves all blocks of a page that a point holds.
    let ordered = DataMode::Ordered;
    for (data, delayed_allocation) in
        [(ordered, true), (ordered, false), (DataMode::Writeback, true)]
    {
        let what = format!("{data:?}, {delayed_allocation}");
        let disk = Ram::new("disk", 32 << 20).persistent();
        let device: Arc<dyn BlockDevice> = Arc::new(disk.clone());
        let small = Options { block_size: Some(1024), ..Options::random(1_700_000_000) };
        make(&device, &small).unwrap();
        let options = MountOptions { data, delayed_allocation, ..MountOptions::default() };
        let fs = Ext4::mount(device, options.clone()).unwrap();
        let (attr, fh) = create(&*fs, "file", RW);
        fs.fallocate(fh, GROW, 0, 64 * 1024).unwrap();
        fs.fsync(fh, false).unwrap();
        let mut model = vec![0; 64 * 1024];
        let mut put = |at: u64, len: usize| {
            let bytes = contents(1, at, len);
            write(&mut model, at, &bytes);
            fs.write(fh, at, bytes).unwrap();
        };
        put(5 * 1024, 1024);
        put(9 * 1024 + 100, 10);
        put(19 * 1024, 2048);
        fs.fsync(fh, false).unwrap();
        assert_eq!(written_blocks(&fs, attr.ino), [5, 9, 19, 20], "{what}");
        put(6 * 1024 + 1, 1);
        fs.fsync(fh, false).unwrap();
        let left = [5, 6, 9, 19, 20];
        assert_eq!(written_blocks(&fs, attr.ino), left, "{what}");
        assert_eq!(fs.seek(fh, 7 * 1024, SeekTo::Data), Ok(9 * 1024), "{what}");
        // The power goes.
        let after = Ram::from_store("after", disk.store()).persistent();
        let after: Arc<dyn BlockDevice> = Arc::new(after);
        let cut = Ext4::mount(Arc::clone(&after), options).unwrap();
        assert_eq!(written_blocks(&cut, attr.ino), left, "{what}");
        assert!(read_all(&*cut, "file") == model, "{what}");
        cut.unmount().unwrap();
        let found = steadfast_ext4_check::check(&after, None).unwrap();
        assert!(found.is_clean(), "{what}: {:?}", found.findings);
    }
}
