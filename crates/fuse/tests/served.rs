//! An in-process mount: of a file system on a RAM disk, and of one with a fault in its code.
//! As root, on a kernel with FUSE: elsewhere the tests say SKIPPED.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_ext4::fs::Ext4;
use steadfast_ext4::mkfs::{Options as MkfsOptions, make};
use steadfast_ext4::mount::MountOptions;
use steadfast_fuse::{Invalidator, Mounted, Options, Unmounter};
use steadfast_vfs::{
    Attr, DirEntry, Fh, FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr,
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
        let mounted = Mounted::new(fs, folder.path(), &options).unwrap();
        let (unmounter, invalidator) = (mounted.unmounter(), mounted.invalidator().unwrap());
        let thread = Some(std::thread::spawn(move || mounted.serve().unwrap()));
        Some(Mount { folder, unmounter, invalidator, thread })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Unmounts; whether all was well.
    fn end(mut self) -> bool {
        self.unmounter.unmount().unwrap();
        self.thread.take().unwrap().join().unwrap()
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
    let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("ram", 32 << 20));
    make(&disk, &MkfsOptions::random(1_700_000_000)).unwrap();
    Ext4::mount(disk, MountOptions::default()).unwrap()
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
fn what_changes_behind_the_kernel_is_seen_after_it_is_told() {
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

/// A file system whose `mkdir` panics.
struct Faulty(Arc<Ext4>);

impl FileSystem for Faulty {
    fn root(&self) -> Ino {
        self.0.root()
    }
    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.0.lookup(dir, name)
    }
    fn getattr(&self, ino: Ino) -> Result<Attr> {
        self.0.getattr(ino)
    }
    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        self.0.setattr(ino, set)
    }
    fn create(&self, d: Ino, name: &[u8], node: NewNode, f: OpenFlags) -> Result<(Attr, Fh)> {
        self.0.create(d, name, node, f)
    }
    fn mkdir(&self, _: Ino, _: &[u8], _: NewNode) -> Result<Attr> {
        panic!("an index out of bounds, for example")
    }
    fn symlink(&self, _: Ino, _: &[u8], _: &[u8], _: NewNode) -> Result<Attr> {
        Err(FsError::BadHandle)
    }
    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        self.0.readlink(ino)
    }
    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.0.link(ino, dir, name)
    }
    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.0.unlink(dir, name)
    }
    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.0.rmdir(dir, name)
    }
    fn rename(&self, a: Ino, from: &[u8], b: Ino, to: &[u8], f: RenameFlags) -> Result<()> {
        self.0.rename(a, from, b, to, f)
    }
    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        self.0.open(ino, flags)
    }
    fn release(&self, fh: Fh) -> Result<()> {
        self.0.release(fh)
    }
    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<bytes::Bytes> {
        self.0.read(fh, offset, len)
    }
    fn write(&self, fh: Fh, offset: u64, data: bytes::Bytes) -> Result<usize> {
        self.0.write(fh, offset, data)
    }
    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()> {
        self.0.fsync(fh, data_only)
    }
    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<DirEntry>> {
        self.0.readdir(dir, from)
    }
    fn fsyncdir(&self, dir: Ino) -> Result<()> {
        self.0.fsyncdir(dir)
    }
    fn statfs(&self) -> Result<StatFs> {
        self.0.statfs()
    }
    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}

#[test]
fn a_fault_in_the_code_is_an_error_and_ends_it() {
    let Some(m) = Mount::new(Arc::new(Faulty(on_ram()))) else { return };
    fs::write(m.at("before"), "x").unwrap();
    assert_eq!(fs::create_dir(m.at("d")).unwrap_err().raw_os_error(), EIO);
    assert_eq!(fs::write(m.at("after"), "x").unwrap_err().raw_os_error(), EIO);
    assert!(!m.end(), "who serves it is told");
}
