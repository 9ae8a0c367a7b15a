//! What a promise costs: flushes of the disk and of the journal's device, for every way to promise
//! and every data mode. And how many updates a write makes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_devices::filter::Stat;
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{
    JournalChoice, JournalDeviceOptions, Options, make, make_journal_device,
};
use steadfast_runtime::{Sim, sleep};
use steadfast_vfs::{
    Fallocate, Fh, FileSystem, Ino, NewNode, OpenFlags, SetAttr, TransactMask, TransactPolicy,
};

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);
const EPOCH: u64 = 1_704_067_200;
const BLOCK: usize = 4096;

/// A file system whose devices, both with volatile caches, count what they are asked.
struct Bench {
    fs: Arc<Ext4>,
    disk: Arc<Stat>,
    /// The journal's device, if it has one of its own.
    card: Option<Arc<Stat>>,
}

fn counted(name: &str, bytes: u64) -> Arc<Stat> {
    Arc::new(Stat::new(Arc::new(Ram::new(name, bytes).persistent().with_volatile_cache())))
}

impl Bench {
    fn new(data: DataMode, external: bool) -> Bench {
        let disk = counted("disk", 64 << 20);
        let device: Arc<dyn BlockDevice> = disk.clone();
        let card = external.then(|| counted("card", 8 << 20));
        let journal = card.clone().map(|card| -> Arc<dyn BlockDevice> { card });
        let mut options = Options::random(EPOCH);
        options.block_size = Some(BLOCK as u32);
        if let Some(journal) = &journal {
            make_journal_device(journal, &JournalDeviceOptions::random(EPOCH)).unwrap();
            let device = Arc::clone(journal);
            options.journal = JournalChoice::External { device, accept_volatile: false };
        }
        make(&device, &options).unwrap();
        let mask = TransactMask::FSYNC | TransactMask::SYNC;
        let options = MountOptions {
            data,
            journal_device: journal,
            transact: TransactPolicy { mask, timed: None },
            simulated_epoch: EPOCH,
            ..MountOptions::default()
        };
        Bench { fs: Ext4::mount(device, options).unwrap(), disk, card }
    }

    /// Flushes of the disk and of the card that `act` makes.
    fn flushes(&self, act: impl FnOnce()) -> (u64, u64) {
        let made = |stat: &Arc<Stat>| stat.counters().flush.done;
        let card = || self.card.as_ref().map_or(0, made);
        let before = (made(&self.disk), card());
        // So that the times of a file that changes are new ones.
        sleep(Duration::from_millis(20));
        act();
        (made(&self.disk) - before.0, card() - before.1)
    }

    fn create(&self, name: &str, flags: OpenFlags) -> (Ino, Fh) {
        let root = self.fs.root();
        let (attr, fh) = self.fs.create(root, name.as_bytes(), NewNode::default(), flags).unwrap();
        (attr.ino, fh)
    }
}

fn block(n: u8) -> Bytes {
    Bytes::from(vec![n; BLOCK])
}

/// How a write is made durable.
#[derive(Clone, Copy, PartialEq, Debug)]
enum How {
    Fsync,
    Fdatasync,
    Sync,
    Dsync,
    DirectDsync,
    Syncfs,
}

const HOWS: [How; 6] =
    [How::Fsync, How::Fdatasync, How::Sync, How::Dsync, How::DirectDsync, How::Syncfs];

impl How {
    fn flags(self) -> OpenFlags {
        match self {
            How::Sync => RW | OpenFlags::SYNC,
            How::Dsync => RW | OpenFlags::DSYNC,
            How::DirectDsync => RW | OpenFlags::DSYNC | OpenFlags::DIRECT,
            How::Fsync | How::Fdatasync | How::Syncfs => RW,
        }
    }

    fn write(self, fs: &Ext4, fh: Fh, at: u64, n: u8) {
        assert_eq!(fs.write(fh, at, block(n)).unwrap(), BLOCK);
        match self {
            How::Fsync => fs.fsync(fh, false).unwrap(),
            How::Fdatasync => fs.fsync(fh, true).unwrap(),
            How::Syncfs => fs.sync().unwrap(),
            How::Sync | How::Dsync | How::DirectDsync => {}
        }
    }
}

/// Flushes of the disk and the card for each thing done and promised.
fn costs(data: DataMode, external: bool) -> Vec<(String, (u64, u64))> {
    let ran = Sim::new(1).run(move || {
        let bench = Bench::new(data, external);
        let fs = &bench.fs;
        let mut out = Vec::new();
        let mut add = |what: String, cost| out.push((what, cost));
        for how in HOWS {
            let promises = data != DataMode::Transact
                || matches!(how, How::Fsync | How::Fdatasync | How::Syncfs);
            if !promises {
                continue;
            }
            let (_, fh) = bench.create(&format!("{how:?}"), how.flags());
            fs.sync().unwrap();
            add(format!("append {how:?}"), bench.flushes(|| how.write(fs, fh, 0, 1)));
            add(format!("overwrite {how:?}"), bench.flushes(|| how.write(fs, fh, 0, 2)));
            // The times, which a datasync has left.
            fs.fsync(fh, false).unwrap();
            add(format!("nothing {how:?}"), bench.flushes(|| fs.fsync(fh, false).unwrap()));
            add(
                format!("mode {how:?}"),
                bench.flushes(|| {
                    let ino = fs.lookup(fs.root(), format!("{how:?}").as_bytes()).unwrap().ino;
                    let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
                    fs.setattr(ino, set).unwrap();
                    fs.fsync(fh, false).unwrap();
                }),
            );
        }
        let folder = |name: &str| {
            let node = NewNode { mode: 0o755, ..NewNode::default() };
            fs.mkdir(fs.root(), name.as_bytes(), node).unwrap();
        };
        add(
            "name fsyncdir".into(),
            bench.flushes(|| {
                folder("a");
                fs.fsyncdir(fs.root()).unwrap();
            }),
        );
        add(
            "name syncfs".into(),
            bench.flushes(|| {
                folder("b");
                fs.sync().unwrap();
            }),
        );
        let (_, fh) = bench.create("space", RW);
        add(
            "space fsync".into(),
            bench.flushes(|| {
                fs.fallocate(fh, Fallocate::Allocate { keep_size: false }, 0, 1 << 16).unwrap();
                fs.fsync(fh, false).unwrap();
            }),
        );
        // Data of another file that is on its way is none of a folder's business.
        let (_, other) = bench.create("other", RW | OpenFlags::DIRECT);
        fs.write(other, 0, block(1)).unwrap();
        fs.sync().unwrap();
        add(
            "name beside data fsyncdir".into(),
            bench.flushes(|| {
                fs.write(other, 0, block(2)).unwrap();
                folder("c");
                fs.fsyncdir(fs.root()).unwrap();
            }),
        );
        fs.unmount().unwrap();
        out
    });
    ran.unwrap()
}

const MODES: [DataMode; 4] =
    [DataMode::Writeback, DataMode::Ordered, DataMode::Journal, DataMode::Transact];

/// Only data that is not in the log needs the disk.
#[test]
fn a_promise_flushes_the_disk_only_for_what_is_not_in_the_log() {
    for data in MODES {
        for (what, (disk, card)) in costs(data, true) {
            let writes = what.starts_with("append") || what.starts_with("overwrite");
            let outside = writes && data != DataMode::Journal;
            let moves = what.contains("beside data") && data == DataMode::Transact;
            assert_eq!(disk, u64::from(outside || moves), "{data:?}, {what}: flushes of the disk");
            assert!(card <= 1, "{data:?}, {what}: {card} flushes of the journal's device");
            if what.starts_with("nothing") {
                assert_eq!(card, 0, "{data:?}, {what}");
            } else if data == DataMode::Journal {
                assert_eq!(card, 1, "{data:?}, {what}");
            }
        }
    }
}

/// With the journal on the same disk one flush does for both.
#[test]
fn a_promise_flushes_a_single_disk_once() {
    for data in MODES {
        for (what, (disk, _)) in costs(data, false) {
            assert_eq!(disk, u64::from(!what.starts_with("nothing")), "{data:?}, {what}");
        }
    }
}

/// The time of change and the contents go together.
#[test]
fn a_journalled_write_is_one_update() {
    let ran = Sim::new(1).run(|| {
        let bench = Bench::new(DataMode::Journal, true);
        let (ino, fh) = bench.create("file", RW);
        let journal = bench.fs.journal().unwrap();
        for n in 0..4u8 {
            sleep(Duration::from_millis(20));
            let before = (journal.stats().updates, bench.fs.getattr(ino).unwrap().mtime);
            // At the end, then over what is there.
            let at = u64::from(n / 2) * BLOCK as u64;
            bench.fs.write(fh, at, block(n)).unwrap();
            assert_eq!(journal.stats().updates - before.0, 1, "write {n}");
            let after = bench.fs.getattr(ino).unwrap();
            assert!(after.mtime > before.1 && after.ctime == after.mtime, "write {n}");
        }
        bench.fs.unmount().unwrap();
    });
    ran.unwrap();
}

/// Else old bytes come back behind the end when the file grows.
#[test]
fn the_zeros_behind_a_smaller_size_are_down_before_it() {
    let flushes = |data: DataMode| {
        let ran = Sim::new(1).run(move || {
            let bench = Bench::new(data, true);
            let fs = &bench.fs;
            let (ino, fh) = bench.create("cut", RW);
            fs.write(fh, 0, block(1)).unwrap();
            fs.write(fh, BLOCK as u64, block(2)).unwrap();
            fs.fsync(fh, false).unwrap();
            let (disk, _) = bench.flushes(|| {
                let size = SetAttr { size: Some(5000), ..SetAttr::default() };
                fs.setattr(ino, size).unwrap();
                // Somebody else's promise commits it, and owes no data.
                fs.mkdir(fs.root(), b"a", NewNode { mode: 0o755, ..NewNode::default() }).unwrap();
                fs.fsyncdir(fs.root()).unwrap();
            });
            fs.unmount().unwrap();
            disk
        });
        ran.unwrap()
    };
    assert_eq!(flushes(DataMode::Ordered), 1);
    assert_eq!(flushes(DataMode::Journal), 0);
}

/// fallocate(2) changes a file as a write does: with O_SYNC and O_DSYNC it promises as much.
#[test]
fn space_of_a_file_that_is_always_synced_is_durable() {
    for data in MODES.into_iter().filter(|data| *data != DataMode::Transact) {
        for flags in [OpenFlags::SYNC, OpenFlags::DSYNC] {
            let ran = Sim::new(1).run(move || {
                let bench = Bench::new(data, true);
                let (_, fh) = bench.create("space", RW | flags);
                bench.fs.sync().unwrap();
                let whole = Fallocate::Allocate { keep_size: false };
                let (_, card) =
                    bench.flushes(|| bench.fs.fallocate(fh, whole, 0, 1 << 16).unwrap());
                bench.fs.unmount().unwrap();
                card
            });
            assert_eq!(ran.unwrap(), 1, "{data:?}, {flags:?}: flushes of the journal's device");
        }
    }
}
