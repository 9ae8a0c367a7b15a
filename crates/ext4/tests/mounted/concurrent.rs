//! Several tasks write, cut, read and remove the same files, in every data mode.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_format::ondisk::RoCompat;
use steadfast_ext4_mkfs::{Options, make};
use steadfast_runtime::spawn;
use steadfast_vfs::{Fallocate, Fh, FileSystem, FsError, NewNode, OpenFlags, SetAttr};

use crate::image::Image;
use crate::{RW, contents, create, mount};

const STEPS: u32 = 400;

fn work(fs: &Ext4, seed: u64) {
    let mut rng = Rng::new(seed);
    let root = fs.root();
    for _ in 0..STEPS {
        let name = format!("file{}", rng.below(3));
        let flags = [RW, RW | OpenFlags::DIRECT, RW | OpenFlags::DSYNC, RW | OpenFlags::APPEND];
        let flags = flags[rng.below(4) as usize];
        let opened = match fs.lookup(root, name.as_bytes()) {
            Ok(attr) => fs.open(attr.ino, flags).map(|fh| (attr.ino, fh)),
            Err(_) => fs
                .create(root, name.as_bytes(), NewNode::default(), flags)
                .map(|(attr, fh)| (attr.ino, fh)),
        };
        let (ino, fh) = match opened {
            Ok(opened) => opened,
            // Somebody was faster.
            Err(FsError::Exists | FsError::NotFound) => continue,
            Err(e) => panic!("{e}"),
        };
        let at = rng.below(400) * 1024;
        let len = (1 + rng.below(80) as usize) * 1024;
        match rng.below(9) {
            0..4 => assert_eq!(fs.write(fh, at, contents(seed, at, len)), Ok(len)),
            4 => drop(fs.read(fh, at, len).unwrap()),
            5 => fs.fsync(fh, rng.percent(50)).unwrap(),
            6 => {
                let size = Some(rng.below(400_000));
                fs.setattr(ino, SetAttr { size, ..SetAttr::default() }).unwrap();
            }
            7 => fs.fallocate(fh, Fallocate::PunchHole, at, len as u64).unwrap(),
            _ => match fs.unlink(root, name.as_bytes()) {
                Ok(()) | Err(FsError::NotFound) => {}
                Err(e) => panic!("{e}"),
            },
        }
        fs.release(fh).unwrap();
    }
}

#[test]
fn tasks_share_files() {
    let modes = [DataMode::Ordered, DataMode::Writeback, DataMode::Journal, DataMode::Transact];
    let pages_and_parts = ["4096", "1024"];
    for (data, block) in modes.into_iter().flat_map(|data| pages_and_parts.map(|b| (data, b))) {
        let image = Image::mke2fs(48 << 20, &["-b", block, "-J", "size=4"]);
        let mut options = MountOptions { data, ..MountOptions::default() };
        options.page_cache.memory_bytes = 2 << 20;
        let fs = mount(&image, options);
        let free = fs.statfs().unwrap();
        let tasks: Vec<_> = (0..4)
            .map(|seed| {
                let fs = Arc::clone(&fs);
                spawn("worker", move || work(&fs, seed))
            })
            .collect();
        tasks.into_iter().for_each(|t| t.join().unwrap_or_else(|p| p.resume()));
        for i in 0..3 {
            let name = format!("file{i}");
            match fs.unlink(fs.root(), name.as_bytes()) {
                Ok(()) | Err(FsError::NotFound) => {}
                Err(e) => panic!("{e}"),
            }
        }
        fs.sync().unwrap();
        assert_eq!(fs.statfs().unwrap(), free, "{data:?}: space is lost");
        assert_eq!(fs.read_only_because(), None);
        fs.unmount().unwrap();
        image.assert_clean();
    }
}

/// Small appends beside the write-back of the block that they go to: a block that gets its place
/// meanwhile is not reserved again, and nothing is counted but what the file has.
#[test]
fn an_append_beside_its_write_back_reserves_nothing_twice() {
    for quota in [false, true] {
        let disk = Ram::new("disk", 32 << 20).persistent();
        let mut made = Options { block_size: Some(4096), ..Options::random(1_700_000_000) };
        if quota {
            made.features.ro_compat |= RoCompat::QUOTA;
        }
        make(&(Arc::new(disk.clone()) as Arc<dyn BlockDevice>), &made).unwrap();
        let fs = Ext4::mount(Arc::new(disk.clone()), MountOptions::default()).unwrap();
        let (attr, fh) = create(&*fs, "file", RW | OpenFlags::APPEND);
        append_beside_fsync(&fs, fh);
        let (counted, space) = (fs.getattr(attr.ino).unwrap().blocks_512, fs.statfs().unwrap());
        fs.release(fh).unwrap();
        fs.unmount().unwrap();
        let fs = Ext4::mount(Arc::new(disk), MountOptions::default()).unwrap();
        assert_eq!(fs.getattr(attr.ino).unwrap().blocks_512, counted, "quota: {quota}");
        assert_eq!(fs.statfs().unwrap(), space, "quota: {quota}");
        fs.unmount().unwrap();
    }
}

fn append_beside_fsync(fs: &Arc<Ext4>, fh: Fh) {
    let ended = Arc::new(AtomicBool::new(false));
    let flushers = [0, 1].map(|_| {
        let (fs, ended) = (Arc::clone(fs), Arc::clone(&ended));
        spawn("flusher", move || {
            while !ended.load(Ordering::Relaxed) {
                fs.fsync(fh, true).unwrap();
            }
        })
    });
    for _ in 0..60_000 {
        fs.write(fh, 0, contents(1, 0, 300)).unwrap();
    }
    ended.store(true, Ordering::Relaxed);
    flushers.into_iter().for_each(|task| task.join().unwrap_or_else(|p| p.resume()));
    fs.fsync(fh, false).unwrap();
}
