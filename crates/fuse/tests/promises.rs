//! What a mount has promised is there after a power cut, whichever way the program asked; what
//! nobody asked for is not, or the test would see nothing. As root, on a kernel with FUSE:
//! otherwise the tests say SKIPPED.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::Recording;
use steadfast_devices::filter::record::{DeviceId, Record, RecordLog};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{JournalChoice, Options, make};
use steadfast_fuse::{self as fuse, FuseMount};
use steadfast_suite::promises::SyncMethod;
use steadfast_vfs::{FileSystem, NewNode, OpenFlags};

const DISK: u64 = 32 << 20;
/// What a program writes.
const LEN: usize = 16 << 10;

/// One write: how it is asked for, and where.
#[derive(Debug, Clone, Copy)]
struct Case {
    asked: SyncMethod,
    direct: bool,
    /// Over what is there, or behind it.
    grows: bool,
}

impl Case {
    fn all() -> impl Iterator<Item = Case> {
        let where_to = [(false, false), (false, true), (true, false), (true, true)];
        SyncMethod::ALL.into_iter().flat_map(move |asked| {
            where_to.into_iter().map(move |(direct, grows)| Case { asked, direct, grows })
        })
    }

    fn name(self) -> String {
        let Case { asked, direct, grows } = self;
        format!("{asked:?}-{}-{}", ["buffered", "direct"][usize::from(direct)], u8::from(grows))
    }

    fn before(self) -> Vec<u8> {
        vec![b'o'; if self.grows { 4096 } else { LEN }]
    }

    fn offset(self) -> u64 {
        if self.grows { 4096 } else { 0 }
    }

    /// The file's contents with what was written.
    fn after(self) -> Vec<u8> {
        let mut all = self.before();
        all.truncate(self.offset() as usize);
        all.extend(vec![b'n'; LEN]);
        all
    }
}

#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && std::fs::File::open("/dev/fuse").is_ok();
    if !can {
        println!("SKIPPED: needs root and /dev/fuse");
    }
    can
}

fn options(data: DataMode) -> MountOptions {
    let mut options = MountOptions { data, ..MountOptions::default() };
    // No timer makes durable what nobody has asked for.
    options.journal.commit_interval = Duration::from_secs(3600);
    options.transact.timed = None;
    options
}

/// A file system with every case's file.
fn base(data: DataMode) -> Store {
    let ram = Ram::new("disk", DISK).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
    let mut made = Options::random(1_704_067_200);
    made.block_size = Some(4096);
    made.journal = JournalChoice::InternalOf(1024);
    make(&device, &made).unwrap();
    let fs = Ext4::mount(device, options(data)).unwrap();
    for case in Case::all() {
        let name = case.name();
        let node = NewNode::default();
        let (_, fh) = fs.create(fs.root(), name.as_bytes(), node, OpenFlags::WRITE).unwrap();
        fs.write(fh, 0, Bytes::from(case.before())).unwrap();
        fs.fsync(fh, false).unwrap();
        fs.release(fh).unwrap();
    }
    fs.sync().unwrap();
    fs.unmount().unwrap();
    ram.store()
}

/// What a file holds after the power was cut at `cut`, and all that was not promised is lost.
fn held(data: DataMode, base: &Store, recording: &Recording, cut: u64, name: &str) -> Vec<u8> {
    let at = recording.at(DeviceId(0), cut);
    let left = at.contents(base, 0, 0, &mut Rng::new(1));
    let device = Arc::new(Ram::from_store("disk", left).persistent());
    let fs = Ext4::mount(device, options(data)).unwrap();
    let attr = fs.lookup(fs.root(), name.as_bytes()).unwrap();
    let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
    let read = fs.read(fh, 0, 2 * LEN).unwrap();
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
    read.to_vec()
}

fn promises_are_kept(data: DataMode) {
    if !can_mount() {
        return;
    }
    let base = base(data);
    let ram = Ram::from_store("disk", base.clone()).persistent().with_volatile_cache();
    let log = RecordLog::new();
    let disk: Arc<dyn BlockDevice> = Arc::new(Record::new(Arc::new(ram), &log));
    let fs = Ext4::mount(disk, options(data)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let served = Arc::clone(&fs) as Arc<dyn FileSystem>;
    let mounted = FuseMount::new(served, folder.path(), &fuse::Options::default()).unwrap();
    let unmounter = mounted.unmounter();
    let server = std::thread::spawn(move || mounted.serve().unwrap());

    let mut cuts = Vec::new();
    let mut open = Vec::new();
    for case in Case::all() {
        let path = folder.path().join(case.name());
        let written = vec![b'n'; LEN];
        // Closed at the end: it must not be closing that makes it durable.
        open.push(case.asked.write(&path, case.direct, case.offset(), &written));
        cuts.push((case, log.note(0, [0; 3]).tick));
    }
    let recording = log.take();
    let failed: Vec<_> = Case::all().zip(&open).filter(|(_, file)| file.is_err()).collect();
    assert!(failed.is_empty(), "{data:?}: {failed:?}");
    drop(open);
    unmounter.unmount().unwrap();
    assert!(server.join().unwrap());
    fs.unmount().unwrap();

    let mut wrong = Vec::new();
    for (case, cut) in cuts {
        let is_there = held(data, &base, &recording, cut, &case.name()) == case.after();
        if is_there != case.asked.is_promised() {
            wrong.push(case);
        }
    }
    assert!(wrong.is_empty(), "{data:?}: lost, or there without having been asked for: {wrong:#?}");
}

#[test]
fn promises_are_kept_ordered() {
    promises_are_kept(DataMode::Ordered);
}

#[test]
fn promises_are_kept_writeback() {
    promises_are_kept(DataMode::Writeback);
}

#[test]
fn promises_are_kept_journal() {
    promises_are_kept(DataMode::Journal);
}

#[test]
fn promises_are_kept_transact() {
    promises_are_kept(DataMode::Transact);
}
