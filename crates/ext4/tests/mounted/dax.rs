//! Files that are used in place: against a model, beside the page cache, as the kernel reads them.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::source::{FileDevice, FileOptions, Pmem, PmemOptions};
use steadfast_ext4::Dax;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_vfs::{Fallocate, Fh, FileSystem, OpenFlags, SetAttr};

use crate::fallocate::{fallocate, write};
use crate::image::Image;
use crate::{RW, contents, create, read_all};

fn options(dax: Dax) -> MountOptions {
    let mut options = MountOptions { dax, ..MountOptions::default() };
    // The image is in memory, which is what is tested.
    options.journal.accept_volatile = true;
    options
}

fn pmem(image: &Image) -> Arc<dyn BlockDevice> {
    Arc::new(Pmem::open(image.path(), &PmemOptions::default()).unwrap())
}

fn mount(image: &Image, dax: Dax) -> Arc<Ext4> {
    Ext4::mount(pmem(image), options(dax)).unwrap()
}

fn refusal(image: &Image, change: impl FnOnce(&mut MountOptions)) -> String {
    let mut options = options(Dax::Always);
    change(&mut options);
    Ext4::mount(pmem(image), options).map(drop).unwrap_err().to_string()
}

fn step(fs: &Ext4, fh: Fh, model: &mut Vec<u8>, rng: &mut Rng, (extents, shifts): (bool, bool)) {
    let (at, len) = (rng.below(700_000), 1 + rng.below(90_000));
    let (from, to) = (at as usize, (at + len) as usize);
    match rng.below(12) {
        0..4 => {
            let data = contents(rng.below(100), at, len as usize);
            write(model, at, &data);
            assert_eq!(fs.write(fh, at, data), Ok(len as usize));
        }
        4 => {
            // A few bytes somewhere.
            let data = contents(rng.below(100), at, 1 + (len % 9) as usize);
            write(model, at, &data);
            assert_eq!(fs.write(fh, at, data.clone()), Ok(data.len()));
        }
        5 => {
            model.resize(from, 0);
            let set = SetAttr { size: Some(at), ..SetAttr::default() };
            fs.setattr(fs.lookup(fs.root(), b"file").unwrap().ino, set).unwrap();
        }
        6 => fs.fsync(fh, true).unwrap(),
        7 | 8 => fallocate(fs, fh, model, Fallocate::PunchHole, at, len),
        9 if extents => {
            fallocate(fs, fh, model, Fallocate::Allocate { keep_size: false }, at, len);
        }
        10 if extents => {
            fallocate(fs, fh, model, Fallocate::ZeroRange { keep_size: false }, at, len);
        }
        11 if shifts && model.len() > 3 * 4096 => {
            let blocks = model.len() as u64 / 4096;
            let at = rng.below(blocks - 1) * 4096;
            let len = (1 + rng.below(3)) * 4096;
            if rng.below(2) == 0 {
                fallocate(fs, fh, model, Fallocate::InsertRange, at, len);
            } else if at + len < model.len() as u64 {
                fallocate(fs, fh, model, Fallocate::CollapseRange, at, len);
            }
        }
        _ => {}
    }
    if rng.below(3) == 0 {
        assert_eq!(fs.read(fh, at, len as usize).unwrap(), model_range(model, from, to));
    }
}

fn model_range(model: &[u8], from: usize, to: usize) -> Vec<u8> {
    let end = to.min(model.len());
    model[from.min(end)..end].to_vec()
}

#[test]
fn any_sequence_of_operations_is_as_in_the_model_and_as_the_kernel_reads_it() {
    for (seed, mode) in (0..6).zip([
        &["-O", "^metadata_csum"][..],
        &["-O", "fast_commit"],
        &["-O", "^has_journal"],
        &["-O", "^extents,^64bit,^metadata_csum,^huge_file"],
        &["-O", "bigalloc", "-C", "16384"],
        &["-O", "quota"],
    ]) {
        let extents = !mode[1].contains("^extents");
        let shifts = extents && mode[1] != "bigalloc";
        let image = Image::mke2fs(96 << 20, &[&["-b", "4096"], mode].concat());
        let mut rng = Rng::new(seed);
        let mut model = Vec::new();
        for _ in 0..3 {
            let mut options = options(Dax::Always);
            options.journal.fast_commits = mode[1] == "fast_commit";
            options.delayed_allocation = seed % 2 == 0;
            let fs = Ext4::mount(pmem(&image), options).unwrap();
            let fh = match fs.lookup(fs.root(), b"file") {
                Ok(attr) => fs.open(attr.ino, RW).unwrap(),
                Err(_) => create(&*fs, "file", RW).1,
            };
            for n in 0..120 {
                step(&fs, fh, &mut model, &mut rng, (extents, shifts));
                assert_eq!(fs.page_cache().stats().memory_bytes, 0, "{mode:?}, step {n}");
            }
            assert!(read_all(&*fs, "file") == model, "{mode:?}");
            fs.release(fh).unwrap();
            fs.unmount().unwrap();
            drop(fs);
            image.assert_clean();
            let kernel = image.mount("ro");
            assert!(std::fs::read(kernel.folder().join("file")).unwrap() == model, "{mode:?}");
        }
        // The same through the page cache.
        let fs = mount(&image, Dax::Never);
        assert!(read_all(&*fs, "file") == model, "{mode:?}");
        fs.unmount().unwrap();
    }
}

#[test]
fn files_with_the_flag_are_used_in_place_and_what_is_made_in_their_folder() {
    const DAX: u32 = 0x0200_0000;
    let image = Image::mke2fs(48 << 20, &["-b", "4096"]);
    let fs = mount(&image, Dax::Inode);
    let root = fs.root();
    let (attr, fh) = create(&*fs, "file", RW);
    fs.write(fh, 0, contents(1, 0, 9000)).unwrap();
    assert!(fs.page_cache().stats().memory_bytes > 0);
    let flags = fs.inode_flags(attr.ino).unwrap();
    // What is dirty goes to its place first.
    fs.set_inode_flags(attr.ino, flags | DAX).unwrap();
    assert_eq!(fs.page_cache().stats().memory_bytes, 0);
    fs.write(fh, 5000, contents(2, 5000, 100)).unwrap();
    assert_eq!(fs.page_cache().stats().memory_bytes, 0);
    let mut model = contents(1, 0, 9000).to_vec();
    model[5000..5100].copy_from_slice(&contents(2, 5000, 100));
    assert!(read_all(&*fs, "file") == model);
    fs.set_inode_flags(attr.ino, flags).unwrap();
    assert!(read_all(&*fs, "file") == model);
    assert!(fs.page_cache().stats().memory_bytes > 0);
    fs.set_inode_flags(attr.ino, flags | DAX).unwrap();
    let refused = fs.set_inode_flags(attr.ino, flags | DAX | 0x4000).unwrap_err().to_string();
    assert!(refused.contains("chattr j"), "{refused}");
    fs.release(fh).unwrap();

    let dir = fs.mkdir(root, b"dir", Default::default()).unwrap().ino;
    let above = fs.inode_flags(dir).unwrap();
    fs.set_inode_flags(dir, above | DAX).unwrap();
    let (below, fh) = fs.create(dir, b"below", Default::default(), RW).unwrap();
    assert_eq!(fs.inode_flags(below.ino).unwrap() & DAX, DAX);
    fs.write(fh, 0, contents(3, 0, 5000)).unwrap();
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    image.assert_clean();
}

#[test]
fn where_it_cannot_be_done_it_is_refused_by_name() {
    let small = Image::mke2fs(48 << 20, &["-b", "1024"]);
    assert!(refusal(&small, |_| {}).contains("no pages of 4096 bytes"));
    let inline = Image::mke2fs(48 << 20, &["-b", "4096", "-I", "256", "-O", "inline_data"]);
    assert!(refusal(&inline, |_| {}).contains("inline_data"));
    let good = Image::mke2fs(48 << 20, &["-b", "4096"]);
    for data in [DataMode::Journal, DataMode::Transact] {
        assert!(refusal(&good, |o| o.data = data).contains("data=ordered"));
    }
    let file: Arc<dyn BlockDevice> =
        Arc::new(FileDevice::open(good.path(), &FileOptions::default()).unwrap());
    let refused = Ext4::mount(Arc::clone(&file), options(Dax::Always)).map(drop).unwrap_err();
    assert!(refused.to_string().contains("is not memory"), "{refused}");
    // By the default, nothing is in place there.
    Ext4::mount(file, options(Dax::Inode)).unwrap().unmount().unwrap();
    small.assert_clean();
    good.assert_clean();
}

#[test]
fn a_full_file_system_keeps_what_was_written() {
    let image = Image::mke2fs(16 << 20, &["-b", "4096", "-m", "0"]);
    let fs = mount(&image, Dax::Always);
    let (_, fh) = create(&*fs, "file", RW);
    let data = contents(1, 0, 64 << 20);
    let mut at = 0;
    let error = loop {
        let len = (data.len() - at).min(1 << 20);
        match fs.write(fh, at as u64, data.slice(at..at + len)) {
            Ok(n) => at += n,
            Err(e) => break e,
        }
    };
    assert!(matches!(error, steadfast_vfs::FsError::NoSpace { .. }), "{error}");
    assert!(at > 8 << 20, "{at}");
    assert!(read_all(&*fs, "file") == data[..at]);
    fs.write(fh, 4096, contents(2, 4096, 4096)).unwrap();
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    image.assert_clean();
}

#[test]
fn files_that_grow_side_by_side_stay_in_few_extents() {
    let image = Image::mke2fs(64 << 20, &["-b", "4096", "-O", "fast_commit"]);
    let mut options = options(Dax::Always);
    options.journal.fast_commits = true;
    let fs = Ext4::mount(pmem(&image), options).unwrap();
    let files: Vec<_> = (0..4).map(|i| create(&*fs, &format!("f{i}"), RW)).collect();
    let before = fs.journal().unwrap().stats();
    for block in 0..400 {
        for (i, (_, fh)) in files.iter().enumerate() {
            let data = contents(i as u64, block * 4096, 4096);
            assert_eq!(fs.write(*fh, block * 4096, data), Ok(4096));
            fs.fsync(*fh, false).unwrap();
        }
    }
    let after = fs.journal().unwrap().stats();
    // What has more extents than an inode holds is not in fast commits, whose area is 16 blocks.
    assert!(after.commits - before.commits < 1600 / 14, "{after:?}");
    assert!(after.fast_commits - before.fast_commits > 1400, "{after:?}");
    for (attr, fh) in files {
        let extents = fs.extents(attr.ino, 0, u64::MAX).unwrap().len();
        assert!(extents <= 4, "{extents} extents");
        fs.release(fh).unwrap();
    }
    fs.unmount().unwrap();
    drop(fs);
    image.assert_clean();
}

#[test]
fn readers_see_whole_writes_and_appends_do_not_overlap() {
    let image = Image::mke2fs(96 << 20, &["-b", "4096"]);
    let fs = mount(&image, Dax::Always);
    let (attr, fh) = create(&*fs, "file", RW | OpenFlags::APPEND);
    const RECORD: usize = 3000;
    std::thread::scope(|scope| {
        for task in 1..=4u8 {
            let fs = &fs;
            scope.spawn(move || {
                let fh = fs.open(attr.ino, RW | OpenFlags::APPEND).unwrap();
                for n in 0..200 {
                    fs.write(fh, 0, vec![task; RECORD].into()).unwrap();
                    if n % 20 == 0 {
                        fs.fsync(fh, false).unwrap();
                    }
                    let size = fs.getattr(attr.ino).unwrap().size;
                    assert_eq!(size % RECORD as u64, 0);
                    let last = fs.read(fh, size - RECORD as u64, RECORD).unwrap();
                    assert!(last.iter().all(|b| *b == last[0]), "a torn record");
                }
                fs.release(fh).unwrap();
            });
        }
    });
    let all = read_all(&*fs, "file");
    assert_eq!(all.len(), 4 * 200 * RECORD);
    assert!(all.chunks(RECORD).all(|r| r.iter().all(|b| *b == r[0])));
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    image.assert_clean();
}

#[test]
fn a_mapped_range_is_the_file_and_gets_places_when_it_is_stored_to() {
    let image = Image::mke2fs(48 << 20, &["-b", "4096"]);
    let fs = mount(&image, Dax::Always);
    let (attr, fh) = create(&*fs, "file", RW);
    fs.write(fh, 0, contents(1, 0, 10_000)).unwrap();
    let set = SetAttr { size: Some(100_000), ..SetAttr::default() };
    fs.setattr(attr.ino, set).unwrap();
    fs.fallocate(fh, Fallocate::Allocate { keep_size: false }, 40_000, 20_000).unwrap();
    let map = fs.map(fh, 4096..90_000).unwrap();
    let mut model = contents(1, 0, 10_000).to_vec();
    model.resize(100_000, 0);
    // What has a place, a hole, space that was never written, and all of them in one.
    for (at, len) in [(5000usize, 9), (30_001, 7000), (45_003, 100), (9000, 60_000)] {
        let data = contents(at as u64, 0, len);
        map.store(at as u64 - 4096, &data).unwrap();
        map.persist(at as u64 - 4096, len as u64).unwrap();
        model[at..at + len].copy_from_slice(&data);
        let mut got = vec![1; len];
        map.load(at as u64 - 4096, &mut got).unwrap();
        assert_eq!(got, data);
    }
    assert!(read_all(&*fs, "file") == model);
    assert!(map.store(0, &vec![1; 90_000]).is_err() && map.load(85_900, &mut [0; 9]).is_err());
    // Truncated under the map: what is gone answers with an error, what is left is there.
    let set = SetAttr { size: Some(50_000), ..SetAttr::default() };
    fs.setattr(attr.ino, set).unwrap();
    assert!(map.load(46_000, &mut [0; 9]).is_err() && map.store(46_000, &[1]).is_err());
    assert!(map.persist(46_000, 1).is_err());
    map.store(40_000, b"still here").unwrap();
    // The file stays as long as it is mapped.
    fs.release(fh).unwrap();
    fs.unlink(fs.root(), b"file").unwrap();
    let mut got = [0; 10];
    map.load(40_000, &mut got).unwrap();
    assert_eq!(&got, b"still here");
    drop(map);
    let (_, fh) = create(&*fs, "other", RW);
    assert!(fs.map(fh, 5..5).is_err());
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    image.assert_clean();
    let fs = mount(&image, Dax::Inode);
    let (_, fh) = create(&*fs, "third", RW);
    let refused = fs.map(fh, 0..10).unwrap_err().to_string();
    assert!(refused.contains("chattr +x"), "{refused}");
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
}

/// The power is cut at every event; of what is in doubt all is lost, or all kept, or some words.
#[test]
fn what_a_map_has_persisted_survives_a_cut() {
    use steadfast_devices::filter::record::DeviceId;
    use steadfast_devices::filter::{Record, RecordLog};
    use steadfast_devices::source::Ram;
    use steadfast_ext4_mkfs::{Options, make};

    const SIZE: u64 = 64 << 20;
    let ram = Ram::new("memory", SIZE).persistent().with_volatile_cache().with_atomic_words();
    let log = RecordLog::new();
    log.pause(true);
    let recorded: Arc<dyn BlockDevice> = Arc::new(Record::new(Arc::new(ram.clone()), &log));
    let mut made = Options::random(1_700_000_000);
    made.block_size = Some(4096);
    make(&recorded, &made).unwrap();
    let fs = Ext4::mount(Arc::clone(&recorded), options(Dax::Always)).unwrap();
    let (attr, fh) = create(&*fs, "file", RW);
    let set = SetAttr { size: Some(64 << 10), ..SetAttr::default() };
    fs.setattr(attr.ino, set).unwrap();
    fs.sync().unwrap();
    recorded.flush().unwrap();
    let base = ram.store();
    log.pause(false);
    let map = fs.map(fh, 0..64 << 10).unwrap();
    let mut promised: Vec<u64> = Vec::new();
    for n in 0..8usize {
        map.store(n as u64 * 5000, &[n as u8 + 1; 100]).unwrap();
        map.persist(n as u64 * 5000, 100).unwrap();
        promised.push(log.note(0, [n as u64, 0, 0]).tick);
    }
    drop(map);
    let recording = log.take();
    drop(fs);
    let mut rng = Rng::new(1);
    let mut seen = 0;
    for cut in recording.first_crash_point()..recording.last_crash_point() {
        for keep in [0, 50, 100] {
            let store = recording.at(DeviceId(0), cut).contents(&base, 0, keep, &mut rng);
            let after: Arc<dyn BlockDevice> =
                Arc::new(Ram::from_store("after", store).persistent().with_atomic_words());
            let fs = Ext4::mount(after, options(Dax::Always)).unwrap();
            let data = read_all(&*fs, "file");
            assert_eq!(data.len(), 64 << 10);
            for n in 0..8usize {
                let part = &data[n * 5000..n * 5000 + 100];
                let is_promised = cut > promised[n];
                let words = part.iter().all(|b| *b == 0 || *b == n as u8 + 1);
                assert!(words, "cut {cut}: foreign bytes");
                if is_promised {
                    seen += 1;
                    assert!(part.iter().all(|b| *b == n as u8 + 1), "cut {cut}: part {n} is lost");
                }
            }
            fs.unmount().unwrap();
        }
    }
    assert!(seen > 100, "{seen}");
}
