//! What the first changes after a mount read from the device: about what the kernel's ext4 reads.

use std::sync::{Arc, Mutex};

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request};
use steadfast_devices::filter::record::{DeviceId, Record, RecordLog, Recording};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_check::check;
use steadfast_ext4_format::ondisk::Compat;
use steadfast_ext4_mkfs::{Options, make};
use steadfast_vfs::{FileSystem, NewNode};

use crate::image::Image;
use crate::{RW, open};

/// Notes the places of reads, in blocks.
struct Reads(Arc<dyn BlockDevice>, Mutex<Vec<u64>>);

impl BlockDevice for Reads {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&self, request: Request) -> Completion {
        if let (Request::Read { .. }, Some((offset, _))) = (&request, request.range()) {
            self.1.lock().unwrap().push(offset / 4096);
        }
        self.0.submit(request)
    }
}

/// That of a small disk: about 900 groups, nearly all without bitmaps and inodes.
const SIZE: u64 = 112 << 30;

#[test]
fn a_cold_mkdir_reads_a_few_blocks_and_what_follows_none() {
    for data in [DataMode::Ordered, DataMode::Journal, DataMode::Transact] {
        let options = MountOptions { data, ..MountOptions::default() };
        let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", SIZE).persistent());
        make(&disk, &Options::random(1_700_000_000)).unwrap();
        let noted = Arc::new(Reads(Arc::clone(&disk), Mutex::default()));
        let fs = Ext4::mount(noted.clone(), options).unwrap();
        let reads = || std::mem::take(&mut *noted.1.lock().unwrap());
        reads();
        let directory = fs.mkdir(fs.root(), b"directory", NewNode::default()).unwrap().ino;
        let mkdir = reads();
        let (_, fh) = fs.create(directory, b"file", NewNode::default(), RW).unwrap();
        let create = reads();
        fs.write(fh, 0, vec![1; 4096].into()).unwrap();
        fs.fsync(fh, false).unwrap();
        let write = reads();
        // The root's block, and the bitmap of a group that holds those of others.
        assert!((1..=2).contains(&mkdir.len()), "{data:?}: {mkdir:?}");
        assert_eq!([create, write], [[], []], "{data:?}");
        for name in ["second", "third", "fourth"] {
            fs.mkdir(fs.root(), name.as_bytes(), NewNode::default()).unwrap();
            let more = reads();
            assert!(more.len() <= 1, "{data:?}: {more:?}");
        }
        fs.release(fh).unwrap();
        fs.unmount().unwrap();
        assert_eq!(check(&disk, None).unwrap().findings, []);
    }
}

/// Cuts of each run.
const CUTS: u64 = 20;
const DIRECTORIES: u64 = 12;

fn name(kind: &str, number: u64) -> Vec<u8> {
    format!("{kind} {number}").into_bytes()
}

/// 38 groups, three blocks of descriptors, the last not full; in the tables blocks that hold only
/// what was deleted, and some that were never used.
fn used_before(fast: bool) -> Store {
    let disk = Arc::new(Ram::new("disk", 300 << 20).persistent());
    let mut options = Options::random(1_700_000_000);
    options.block_size = Some(1024);
    if fast {
        options.features.compat |= Compat::FAST_COMMIT;
    }
    make(&(disk.clone() as Arc<dyn BlockDevice>), &options).unwrap();
    let fs = Ext4::mount(disk.clone(), MountOptions::default()).unwrap();
    for number in 0..40 {
        let old = fs.mkdir(fs.root(), &name("old", number), NewNode::default()).unwrap().ino;
        for file in 0..10 {
            let (_, fh) = fs.create(old, &name("file", file), NewNode::default(), RW).unwrap();
            fs.release(fh).unwrap();
        }
        // One in four stays.
        if number % 4 != 0 {
            (0..10).for_each(|file| fs.unlink(old, &name("file", file)).unwrap());
            fs.rmdir(fs.root(), &name("old", number)).unwrap();
        }
    }
    fs.unmount().unwrap();
    disk.store()
}

/// Makes directories, each with a durable file; a note for each that is acknowledged.
fn record(base: &Store, options: MountOptions) -> Recording {
    let log = RecordLog::new();
    let disk = Ram::from_store("disk", base.snapshot()).persistent().with_volatile_cache();
    let fs = Ext4::mount(Arc::new(Record::new(Arc::new(disk), &log)), options).unwrap();
    for number in 0..DIRECTORIES {
        let new = fs.mkdir(fs.root(), &name("new", number), NewNode::default()).unwrap().ino;
        let (_, fh) = fs.create(new, b"file", NewNode::default(), RW).unwrap();
        fs.write(fh, 0, vec![number as u8 + 1; 3000].into()).unwrap();
        fs.fsync(fh, false).unwrap();
        fs.release(fh).unwrap();
        log.note(0, [number, 0, 0]);
    }
    fs.unmount().unwrap();
    log.take()
}

#[test]
fn a_power_cut_while_blocks_are_written_that_were_never_read() {
    let kinds = [DataMode::Ordered, DataMode::Journal, DataMode::Transact].map(|d| (d, false));
    for (data, fast) in kinds.into_iter().chain([(DataMode::Ordered, true)]) {
        let base = used_before(fast);
        let mut options = MountOptions { data, ..MountOptions::default() };
        options.journal.fast_commits = fast;
        let recording = record(&base, options);
        let (first, last) = (recording.first_crash_point(), recording.last_crash_point());
        let mut rng = Rng::new(39);
        let mut acknowledged = 0;
        for number in 0..CUTS {
            let cut = first + 1 + rng.below(last - first);
            let keep = [0, 50, 100][number as usize % 3];
            let left = recording.at(DeviceId(0), cut).contents(&base, 0, keep, &mut rng);
            let what = format!("{data:?}, fast {fast}, cut {cut}, keep {keep} %");
            let promised = recording.notes_before(cut).iter().map(|note| note.detail[0]);
            acknowledged += judge(&left, promised, &what);
        }
        assert!(acknowledged > CUTS, "{data:?}, fast {fast}: {acknowledged}");
    }
}

/// Recovers: what was promised is there, and e2fsck finds nothing. How much was promised.
fn judge(left: &Store, promised: impl Iterator<Item = u64>, what: &str) -> u64 {
    let image = Image::empty();
    left.export(&image.path()).unwrap();
    let fs = Ext4::mount(open(&image), MountOptions::default()).unwrap();
    for kept in (0..40).step_by(4) {
        let old = fs.lookup(fs.root(), &name("old", kept)).expect(what).ino;
        for file in 0..10 {
            fs.lookup(old, &name("file", file)).expect(what);
        }
    }
    let mut count = 0;
    for number in promised {
        count += 1;
        let new = fs.lookup(fs.root(), &name("new", number)).expect(what).ino;
        let attr = fs.lookup(new, b"file").expect(what);
        let fh = fs.open(attr.ino, RW).unwrap();
        let found = fs.read(fh, 0, 4000).unwrap();
        fs.release(fh).unwrap();
        assert_eq!(found, vec![number as u8 + 1; 3000], "{what}: {number}");
    }
    fs.unmount().unwrap();
    image.assert_clean();
    count
}
