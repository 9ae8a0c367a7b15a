//! What data=transact costs and gains on a disk: scattered overwrites become long writes, and
//! what they leave must be gathered when it is read. `--nocapture` shows the figures that
//! docs/transactions.md quotes.

// The figures are for people.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::model::{HddParams, ModelParams};
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{Contents, Options, make};
use steadfast_runtime::{Sim, now};
use steadfast_vfs::{FileSystem, TransactPolicy};

use crate::{RW, contents, create};

const FILE: u64 = 64 << 20;
const RECORD: u64 = 4096;
/// Overwrites between two times that all must be durable.
const BATCH: u64 = 64;

/// Figures of one mode.
struct Figures {
    overwrites: Duration,
    rewrite: Duration,
    read_before: Duration,
    read_after: Duration,
    extents: usize,
}

fn timed(work: impl FnOnce()) -> Duration {
    let from = now();
    work();
    now() - from
}

fn read_through(disk: &Arc<dyn BlockDevice>, options: &MountOptions) -> Duration {
    let fs = Ext4::mount(Arc::clone(disk), options.clone()).unwrap();
    let fh = fs.open(fs.lookup(fs.root(), b"file").unwrap().ino, RW).unwrap();
    let took = timed(|| {
        for at in (0..FILE).step_by(1 << 20) {
            assert_eq!(fs.read(fh, at, 1 << 20).unwrap().len(), 1 << 20);
        }
    });
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
    took
}

/// Overwrites a quarter of the file's records in random order, durable in batches.
fn measure(data: DataMode) -> Figures {
    Sim::new(1)
        .run(move || {
            let disk = HddParams { sectors: 8 << 21, ..HddParams::default() };
            let disk: Arc<dyn BlockDevice> = ModelParams::Hdd(disk).build("disk").unwrap();
            let mut how = Options::random(1_700_000_000);
            how.contents = Contents::Zeros;
            make(&disk, &how).unwrap();
            let transact = TransactPolicy::MANUAL;
            let options = MountOptions { data, transact, ..MountOptions::default() };
            let durable = |fs: &Ext4, fh| match data {
                DataMode::Transact => fs.transact().unwrap(),
                _ => fs.fsync(fh, true).unwrap(),
            };
            let fs = Ext4::mount(Arc::clone(&disk), options.clone()).unwrap();
            let (attr, fh) = create(&*fs, "file", RW);
            let fill = |seed| {
                for at in (0..FILE).step_by(1 << 20) {
                    fs.write(fh, at, contents(seed, at, 1 << 20)).unwrap();
                }
                durable(&fs, fh);
            };
            fill(1);
            fs.unmount().unwrap();
            let read_before = read_through(&disk, &options);
            let fs = Ext4::mount(Arc::clone(&disk), options.clone()).unwrap();
            let fh = fs.open(attr.ino, RW).unwrap();
            let mut rng = Rng::new(2);
            let overwrites = timed(|| {
                for i in 0..FILE / RECORD / 4 {
                    let at = rng.below(FILE / RECORD) * RECORD;
                    fs.write(fh, at, contents(2, at, RECORD as usize)).unwrap();
                    if i % BATCH == BATCH - 1 {
                        durable(&fs, fh);
                    }
                }
            });
            let extents = fs.extents(attr.ino, 0, FILE).unwrap().len();
            fs.release(fh).unwrap();
            durable(&fs, fs.open(attr.ino, RW).unwrap());
            fs.unmount().unwrap();
            drop(fs);
            let read_after = read_through(&disk, &options);
            let fs = Ext4::mount(Arc::clone(&disk), options.clone()).unwrap();
            let fh = fs.open(attr.ino, RW).unwrap();
            let rewrite = timed(|| {
                for at in (0..FILE).step_by(1 << 20) {
                    fs.write(fh, at, contents(3, at, 1 << 20)).unwrap();
                }
                durable(&fs, fh);
            });
            fs.release(fh).unwrap();
            fs.unmount().unwrap();
            Figures { overwrites, rewrite, read_before, read_after, extents }
        })
        .unwrap()
}

#[test]
fn scattered_overwrites_are_cheap_and_reading_them_is_not() {
    let modes = [DataMode::Ordered, DataMode::Transact];
    let [ordered, transact] = modes.map(|mode| {
        let f = measure(mode);
        println!(
            "{mode:?}: scattered overwrites {:.2?}, reading before {:.2?}, after {:.2?}, \
             {} extents, sequential rewrite {:.2?}",
            f.overwrites, f.read_before, f.read_after, f.extents, f.rewrite
        );
        f
    });
    assert!(transact.overwrites < ordered.overwrites, "long writes are faster");
    assert!(transact.extents > ordered.extents);
    assert!(transact.read_before < ordered.read_before * 11 / 10);
    assert!(transact.rewrite < ordered.rewrite * 3 / 2);
}
