//! data=transact: a change whose transaction point fails has been made all the same, and the kernel
//! must not go on with the names from before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Request};
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_vfs::{FileSystem, FsError};

use super::kernel::{Answer, Body, Kernel, Op, ROOT, body};
use super::scripted::{FILE, Script, Scripted};
use super::{EIO, ENOTEMPTY, O_CREAT, O_RDWR};

/// A disk that fails to write while it is asked to.
struct Disk {
    next: Ram,
    broken: AtomicBool,
}

impl BlockDevice for Disk {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        if !matches!(request, Request::Read { .. }) && self.broken.load(Ordering::Relaxed) {
            let (device, reason) = ("disk".into(), "it is broken".into());
            return Completion::ready(Err(BlockError::Gone { device, reason }));
        }
        self.next.submit(request)
    }
}

/// A new file system on such a disk, with these operations as transaction points.
fn mounted(mask: &str) -> (Arc<Disk>, Arc<Ext4>) {
    let next = Ram::new("disk", 32 << 20).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(next.clone());
    make(&device, &Options::random(1_700_000_000)).unwrap();
    let disk = Arc::new(Disk { next, broken: AtomicBool::new(false) });
    let transact = mask.parse().unwrap();
    let options = MountOptions { data: DataMode::Transact, transact, ..MountOptions::default() };
    let fs = Ext4::mount(disk.clone(), options).unwrap();
    (disk, fs)
}

/// Codes of notifications: FUSE_NOTIFY_INVAL_INODE, FUSE_NOTIFY_INC_EPOCH.
const ATTRIBUTES: i32 = 2;
const ALL_NAMES: i32 = 8;

#[test]
fn a_rename_whose_point_fails_leaves_no_stale_name() {
    let (disk, fs) = mounted("rename");
    let kernel = Kernel::over(Arc::clone(&fs) as Arc<dyn FileSystem>);
    let (file, fh) = kernel.create(ROOT, b"old", O_RDWR).unwrap();
    kernel.write_at(file.node, fh, 0, &[1; 50_000]).unwrap();
    kernel.release(file.node, fh).unwrap();
    assert!(kernel.lookup(ROOT, b"old").unwrap().entry_valid > 0, "it is remembered");
    assert!(kernel.notices().is_empty());
    disk.broken.store(true, Ordering::Relaxed);
    assert_eq!(kernel.rename((ROOT, b"old"), (ROOT, b"new"), 0), Err(EIO));
    disk.broken.store(false, Ordering::Relaxed);
    // Before the answer.
    let codes: Vec<i32> = kernel.notices().into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [ATTRIBUTES, ATTRIBUTES, ALL_NAMES]);
    assert_eq!(kernel.lookup(ROOT, b"old").unwrap().node, 0);
    assert_eq!(kernel.lookup(ROOT, b"new").unwrap().node, file.node);
    fs.rollback().unwrap();
}

#[test]
fn a_truncation_whose_point_fails_leaves_no_stale_size() {
    // The end of a block: nothing is written before the point.
    const CUT: u64 = 7 * 4096;
    let (disk, fs) = mounted("truncate");
    let kernel = Kernel::over(Arc::clone(&fs) as Arc<dyn FileSystem>);
    let (file, fh) = kernel.create(ROOT, b"file", O_RDWR).unwrap();
    kernel.write_at(file.node, fh, 0, &[1; 50_000]).unwrap();
    fs.transact().unwrap();
    // Data that the point has to write.
    let (other, other_fh) = kernel.create(ROOT, b"other", O_RDWR).unwrap();
    kernel.write_at(other.node, other_fh, 0, &[2; 50_000]).unwrap();
    assert!(kernel.notices().is_empty());
    disk.broken.store(true, Ordering::Relaxed);
    // struct fuse_setattr_in: valid (FATTR_SIZE), padding, fh, size, and what is not set.
    let cut = body().u32(1 << 3).u32(0).u64(0).u64(CUT).bytes(&[0; 64]);
    assert_eq!(kernel.ask(Op::Setattr, file.node, cut), Err(EIO));
    disk.broken.store(false, Ordering::Relaxed);
    let codes: Vec<i32> = kernel.notices().into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [ATTRIBUTES]);
    assert_eq!(kernel.getattr(file.node).unwrap().size, CUT);
    kernel.release(file.node, fh).unwrap();
    kernel.release(other.node, other_fh).unwrap();
    fs.rollback().unwrap();
}

#[test]
fn every_change_of_names_that_fails_on_the_disk_makes_the_kernel_look_again() {
    let fs = Scripted::new();
    let kernel = Kernel::over(Arc::clone(&fs) as Arc<dyn FileSystem>);
    let requests: [(Op, Body); 9] = [
        (Op::Symlink, body().name(b"name").name(b"target")),
        (Op::Mknod, body().u32(0o100_644).u32(0).u32(0).u32(0).name(b"name")),
        (Op::Mkdir, body().u32(0o755).u32(0).name(b"name")),
        (Op::Unlink, body().name(b"name")),
        (Op::Rmdir, body().name(b"name")),
        (Op::Rename, body().u64(ROOT).name(b"a").name(b"b")),
        (Op::Rename2, body().u64(ROOT).u32(2).u32(0).name(b"a").name(b"b")),
        (Op::Link, body().u64(FILE).name(b"name")),
        (Op::Create, body().u32(O_RDWR | O_CREAT).u32(0o100_644).u32(0).u32(0).name(b"name")),
    ];
    let forgets = |kernel: &Kernel| kernel.notices().iter().any(|(code, _)| *code == ALL_NAMES);
    for (op, request) in requests {
        let asked = |fails: FsError| -> Answer {
            fs.set(Script::Fail(fails));
            kernel.ask(op, ROOT, request.clone())
        };
        assert_eq!(asked(FsError::NotEmpty), Err(ENOTEMPTY), "{op:?}");
        assert!(!forgets(&kernel), "{op:?}: nothing was changed");
        assert_eq!(asked(FsError::Io { what: "a disk".into() }), Err(EIO), "{op:?}");
        assert!(forgets(&kernel), "{op:?}");
    }
}
