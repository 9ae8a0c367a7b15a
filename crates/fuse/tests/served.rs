//! An in-process mount: of a file system on a RAM disk, and of one with a fault in its code.
//! As root, on a kernel with FUSE: otherwise the tests say SKIPPED.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steadfast_block::BlockDevice;
use steadfast_devices::filter::{Effect, Fault, FaultRule, Faults, Ops};
use steadfast_devices::source::Ram;
use steadfast_ext4::Ext4;
use steadfast_ext4::{DataMode, MountOptions};
use steadfast_ext4_mkfs::{Options as MkfsOptions, make};
use steadfast_fuse::{FuseMount, Invalidator, MountError, Options, SessionEnd, Unmounter};
use steadfast_vfs::{
    Attr, Dirent, Fh, FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr,
    StatFs,
};

/// EIO.
const EIO: Option<i32> = Some(5);

struct Mount {
    folder: tempfile::TempDir,
    unmounter: Unmounter,
    invalidator: Invalidator,
    thread: Option<JoinHandle<bool>>,
}

impl Mount {
    #[allow(clippy::print_stdout, reason = "a test that did not run says so")]
    fn new(fs: Arc<dyn FileSystem>) -> Option<Mount> {
        if !rustix::process::geteuid().is_root() || fs::File::open("/dev/fuse").is_err() {
            println!("SKIPPED: needs root and /dev/fuse");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let options = Options { threads: 4, ..Options::default() };
        let mounted = FuseMount::new(fs, folder.path(), &options).unwrap();
        let (unmounter, invalidator) = (mounted.unmounter(), mounted.invalidator());
        let thread = Some(std::thread::spawn(move || mounted.serve().unwrap()));
        Some(Mount { folder, unmounter, invalidator, thread })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Unmounts; whether all was well.
    fn end(mut self) -> bool {
        // A program that another test starts has for a moment, until it is another one, whatever
        // this process has open: files of this mount too.
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match self.unmounter.unmount() {
                Err(MountError::Busy { .. }) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                done => break done.unwrap(),
            }
        }
        let thread = self.thread.take().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while !thread.is_finished() {
            assert!(Instant::now() < until, "serving has not ended 60 s after the unmount");
            std::thread::sleep(Duration::from_millis(5));
        }
        thread.join().unwrap()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.unmounter.unmount_lazily();
        }
    }
}

fn on_ram() -> Arc<Ext4> {
    on_faulty_ram(MountOptions::default()).0
}

/// On a disk whose errors are made at will.
fn on_faulty_ram(options: MountOptions) -> (Arc<Ext4>, Faults) {
    let ram: Arc<dyn BlockDevice> = Arc::new(Ram::new("ram", 32 << 20));
    make(&ram, &MkfsOptions::random(1_700_000_000)).unwrap();
    let disk = Fault::new(ram);
    let faults = disk.faults();
    (Ext4::mount(Arc::new(disk), options).unwrap(), faults)
}

/// Runs a program; its exit status.
fn run(program: &str, arguments: &[&str]) -> Option<i32> {
    let mut command = std::process::Command::new(program);
    let ran = steadfast_suite::run(Duration::from_secs(60), command.args(arguments));
    ran.unwrap().0.code()
}

#[test]
fn a_ram_disk_is_mounted() {
    let fs = on_ram();
    let Some(m) = Mount::new(Arc::clone(&fs) as Arc<dyn FileSystem>) else { return };
    fs::create_dir(m.at("d")).unwrap();
    for i in 0..300 {
        fs::write(m.at("d").join(format!("file-{i}")), format!("{i}")).unwrap();
    }
    assert_eq!(fs::read_dir(m.at("d")).unwrap().count(), 300);
    assert_eq!(fs::read_to_string(m.at("d/file-299")).unwrap(), "299");
    fs::remove_dir_all(m.at("d")).unwrap();
    assert!(!m.at("d").exists());
    assert!(m.end());
    fs.unmount().unwrap();
}

#[test]
fn with_transaction_points_close_answers_when_its_point_is_durable() {
    let options = MountOptions { data: DataMode::Transact, ..MountOptions::default() };
    let (fs, faults) = on_faulty_ram(options);
    let Some(m) = Mount::new(Arc::clone(&fs) as Arc<dyn FileSystem>) else { return };
    let to = format!("of={}", m.at("file").display());
    let copy = ["if=/dev/zero", &to, "bs=4k", "count=3", "conv=notrunc", "status=none"];
    for _ in 0..8 {
        assert_eq!(run("dd", &copy), Some(0));
        // The release comes later: what close(2) has promised must be there without it.
        assert!(fs.since_point().unwrap().is_nothing(), "{:?}", fs.since_point());
    }
    // Closed without a word: on a disk that fails, close(2) says so.
    faults.add(FaultRule::new(Ops::WRITE | Ops::FLUSH, Effect::Fail("broken".into())));
    assert_eq!(run("dd", &copy), Some(1));
    faults.clear();
    assert!(m.end());
    assert!(fs.unmount().is_err());
}

#[test]
fn what_changes_behind_the_kernel_is_seen_after_an_invalidation() {
    let fs = on_ram();
    let Some(m) = Mount::new(Arc::clone(&fs) as Arc<dyn FileSystem>) else { return };
    fs::write(m.at("changed"), "before").unwrap();
    fs::write(m.at("removed"), "before").unwrap();
    assert!(!m.at("new").exists());
    assert_eq!(fs::read_to_string(m.at("changed")).unwrap(), "before");

    let root = fs.root();
    let file = fs.lookup(root, b"changed").unwrap();
    let fh = fs.open(file.ino, OpenFlags::WRITE).unwrap();
    fs.write(fh, 0, bytes::Bytes::from_static(b"behind you")).unwrap();
    fs.release(fh).unwrap();
    fs.unlink(root, b"removed").unwrap();
    fs.mkdir(root, b"new", NewNode { mode: 0o755, ..NewNode::default() }).unwrap();
    m.invalidator.everything().unwrap();

    assert_eq!(fs::read_to_string(m.at("changed")).unwrap(), "behind you");
    assert!(!m.at("removed").exists());
    assert!(m.at("new").is_dir());
    assert!(m.end());
    fs.unmount().unwrap();
}

/// A file system whose `mkdir` panics, and whose writes wait while they are held.
struct Faulty {
    next: Arc<Ext4>,
    held: Held,
}

/// Whether writes wait, and how many do.
#[derive(Default)]
struct Held(Mutex<(bool, u32)>, Condvar);

impl Held {
    fn hold(&self, yes: bool) {
        self.0.lock().unwrap().0 = yes;
        self.1.notify_all();
    }

    /// Until a write waits.
    fn until_waiting(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |(_, waiting)| *waiting == 0).unwrap());
    }

    fn pass(&self) {
        let mut state = self.0.lock().unwrap();
        state.1 += 1;
        self.1.notify_all();
        let mut state = self.1.wait_while(state, |(held, _)| *held).unwrap();
        state.1 -= 1;
    }
}

impl Faulty {
    fn new() -> Arc<Faulty> {
        Arc::new(Faulty { next: on_ram(), held: Held::default() })
    }
}

impl FileSystem for Faulty {
    fn root(&self) -> Ino {
        self.next.root()
    }
    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.next.lookup(dir, name)
    }
    fn getattr(&self, ino: Ino) -> Result<Attr> {
        self.next.getattr(ino)
    }
    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        self.next.setattr(ino, set)
    }
    fn create(&self, d: Ino, name: &[u8], node: NewNode, f: OpenFlags) -> Result<(Attr, Fh)> {
        self.next.create(d, name, node, f)
    }
    fn mkdir(&self, _: Ino, _: &[u8], _: NewNode) -> Result<Attr> {
        panic!("an index out of bounds, for example")
    }
    fn symlink(&self, _: Ino, _: &[u8], _: &[u8], _: NewNode) -> Result<Attr> {
        Err(FsError::BadHandle)
    }
    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        self.next.readlink(ino)
    }
    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.next.link(ino, dir, name)
    }
    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.next.unlink(dir, name)
    }
    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.next.rmdir(dir, name)
    }
    fn rename(&self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: RenameFlags) -> Result<()> {
        self.next.rename(from, to, flags)
    }
    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        self.next.open(ino, flags)
    }
    fn release(&self, fh: Fh) -> Result<()> {
        self.next.release(fh)
    }
    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<bytes::Bytes> {
        self.next.read(fh, offset, len)
    }
    fn write(&self, fh: Fh, offset: u64, data: bytes::Bytes) -> Result<usize> {
        self.held.pass();
        self.next.write(fh, offset, data)
    }
    fn write_as(&self, fh: Fh, at: u64, data: bytes::Bytes, how: OpenFlags) -> Result<usize> {
        self.held.pass();
        self.next.write_as(fh, at, data, how)
    }
    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()> {
        self.next.fsync(fh, data_only)
    }
    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        self.next.readdir(dir, from)
    }
    fn fsyncdir(&self, dir: Ino) -> Result<()> {
        self.next.fsyncdir(dir)
    }
    fn statfs(&self) -> Result<StatFs> {
        self.next.statfs()
    }
    fn sync(&self) -> Result<()> {
        self.next.sync()
    }
}

#[test]
fn a_fault_in_the_code_is_an_error_and_ends_it() {
    let Some(m) = Mount::new(Faulty::new()) else { return };
    fs::write(m.at("before"), "x").unwrap();
    assert_eq!(fs::create_dir(m.at("d")).unwrap_err().raw_os_error(), EIO);
    assert_eq!(fs::write(m.at("after"), "x").unwrap_err().raw_os_error(), EIO);
    assert!(!m.end(), "the server reports it");
}

/// What a reader brings into the kernel's page cache while a direct write is under way is old, and
/// must not be what the next reader finds. By libaio and without.
#[test]
fn a_read_after_a_direct_write_is_never_old() {
    let fs = Faulty::new();
    let Some(m) = Mount::new(Arc::clone(&fs) as Arc<dyn FileSystem>) else { return };
    fs::write(m.at("f"), [b'o'; 8192]).unwrap();
    let reader = fs::File::open(m.at("f")).unwrap();
    reader.sync_all().unwrap();
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    let writer = fs::OpenOptions::new().write(true).custom_flags(direct).open(m.at("f")).unwrap();
    let memory = vec![b'n'; 2 * 4096];
    let start = memory.as_ptr().align_offset(4096);
    let page = &memory[start..start + 4096];
    let read = |at| {
        let mut found = [0];
        reader.read_exact_at(&mut found, at).unwrap();
        found[0]
    };
    for (at, asynchronous) in [(0, true), (4096, false)] {
        rustix::fs::fadvise(&reader, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        fs.held.hold(true);
        std::thread::scope(|s| {
            let write = s.spawn(|| match asynchronous {
                true => steadfast_suite::aio_write(writer.as_fd(), at, page).unwrap(),
                false => writer.write_at(page, at).unwrap(),
            });
            fs.held.until_waiting();
            assert_eq!(read(at), b'o');
            fs.held.hold(false);
            assert_eq!(write.join().unwrap(), 4096);
        });
        assert_eq!(read(at), b'n', "asynchronous: {asynchronous}");
    }
    drop((reader, writer));
    assert!(m.end());
}

/// A change of flags moves the time of change, and stat(2) says so.
#[test]
fn a_change_of_flags_is_seen_in_the_time_of_change() {
    use std::os::unix::fs::MetadataExt;
    let fs = on_ram();
    let Some(m) = Mount::new(Arc::clone(&fs) as Arc<dyn FileSystem>) else { return };
    fs::write(m.at("f"), "x").unwrap();
    let file = fs::File::open(m.at("f")).unwrap();
    let times = |m: fs::Metadata| (m.ctime(), m.ctime_nsec());
    let before = times(file.metadata().unwrap());
    // Until the file system's clock has moved on.
    let ino = fs.lookup(fs.root(), b"f").unwrap().ino;
    for round in 0.. {
        let flags = rustix::fs::ioctl_getflags(&file).unwrap();
        rustix::fs::ioctl_setflags(&file, flags ^ rustix::fs::IFlags::NODUMP).unwrap();
        let there = fs.getattr(ino).unwrap().ctime;
        if (there.secs, i64::from(there.nanos)) != before {
            assert_eq!(times(file.metadata().unwrap()), (there.secs, there.nanos.into()));
            break;
        }
        assert!(round < 1_000_000, "the time of change stands still");
    }
    drop(file);
    assert!(m.end());
    fs.unmount().unwrap();
}

/// Only what holds it still is cut off: nothing, or a copy in another mount namespace.
#[test]
fn a_copy_in_another_mount_namespace_does_not_keep_a_mount() {
    let fs = on_ram();
    for is_copied in [false, true] {
        // For the note where it cannot run.
        let Some(m) = Mount::new(Arc::clone(&fs) as Arc<dyn FileSystem>) else { return };
        assert!(m.end());
        let folder = tempfile::tempdir().unwrap();
        let shared = Arc::clone(&fs) as Arc<dyn FileSystem>;
        let mounted = FuseMount::new(shared, folder.path(), &Options::default()).unwrap();
        let mut serving = mounted.serve_beside().unwrap();
        fs::write(serving.mountpoint().join("file"), "text").unwrap();
        let other = is_copied.then(|| steadfast_suite::OtherNamespace::new().unwrap());
        let ended = serving.unmount().unwrap();
        assert_eq!(ended, SessionEnd { well: true, cut_off: is_copied });
        drop(other);
    }
    fs.unmount().unwrap();
}
