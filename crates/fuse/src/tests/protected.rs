//! Files that are made immutable while they are open for writing (`bridge/writers.rs`).

use std::time::{Duration, Instant};

use super::attributes::ioctl;
use super::kernel::{Answer, Kernel, Op, ROOT, body, init, u64_at};
use super::{EPERM, O_RDWR, ext4};
use crate::options::Options;

const SETFLAGS: (u32, u32) = (0x4008_6602, 0);
/// FS_EXTENT_FL, which stays, and FS_IMMUTABLE_FL.
const EXTENTS: u32 = 0x8_0000;
const IMMUTABLE: u32 = 0x10;

/// A mount with a file that is open for writing.
fn with_file(writeback_cache: bool, minor: u32) -> (Kernel, u64, u64) {
    let options = Options { threads: 1, writeback_cache, ..Options::default() };
    let kernel = Kernel::unconnected(ext4(), options);
    kernel.ask(Op::Init, 0, init(7, minor)).unwrap();
    let (file, fh) = kernel.create(ROOT, b"file", O_RDWR).unwrap();
    assert_eq!(kernel.notices(), []);
    (kernel, file.node, fh)
}

fn set_flags(kernel: &Kernel, node: u64, flags: u32) {
    ioctl(kernel, node, SETFLAGS, &flags.to_ne_bytes(), 0).unwrap();
}

/// GETATTR with a handle (FUSE_GETATTR_FH).
fn getattr_by(kernel: &Kernel, node: u64, fh: u64) -> Answer {
    kernel.ask(Op::Getattr, node, body().u32(1).u32(0).u64(fh))
}

/// A page that the kernel has kept (FUSE_WRITE_CACHE).
fn write_page(kernel: &Kernel, node: u64, fh: u64) -> Answer {
    let asked = body().u64(fh).u64(0).u32(4).u32(1).u64(0).u32(0).u32(0).bytes(b"page");
    kernel.ask(Op::Write, node, asked)
}

/// Where the kernel was to forget from: FUSE_NOTIFY_INVAL_INODE (2) of this node. -1: attributes.
fn forgotten(kernel: &Kernel, node: u64) -> Vec<i64> {
    let notices = kernel.notices();
    assert!(notices.iter().all(|(code, n)| (*code, u64_at(n, 0)) == (2, node)), "{notices:?}");
    notices.iter().map(|(_, notice)| u64_at(notice, 8).cast_signed()).collect()
}

#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIPPED: making files immutable needs root");
    }
    is_root
}

#[test]
fn writers_that_the_kernel_asks_about_are_refused() {
    if !is_root() {
        return;
    }
    let (kernel, file, fh) = with_file(true, 41);
    write_page(&kernel, file, fh).unwrap();
    let reader = kernel.open(file, 0).unwrap();
    assert_eq!(forgotten(&kernel, file), []);
    set_flags(&kernel, file, EXTENTS | IMMUTABLE);
    // What it has is written out first, and then it is to ask.
    assert_eq!(forgotten(&kernel, file), [0, -1]);
    for _ in 0..2 {
        assert_eq!(getattr_by(&kernel, file, fh), Err(EPERM));
        assert_eq!(forgotten(&kernel, file), []);
        // Before each answer with attributes.
        getattr_by(&kernel, file, reader).unwrap();
        kernel.getattr(file).unwrap();
        kernel.lookup(ROOT, b"file").unwrap();
        let listed = body().u64(0).u64(0).u32(4096).u32(0).u64(0).u32(0).u32(0);
        kernel.ask(Op::Readdirplus, ROOT, listed).unwrap();
        assert_eq!(forgotten(&kernel, file), [-1; 4]);
    }
    // A page that comes all the same.
    assert_eq!(write_page(&kernel, file, fh), Err(EPERM));
    // The kernel shows it no longer; that comes by another thread.
    let end = Instant::now() + Duration::from_secs(60);
    while forgotten(&kernel, file).is_empty() {
        assert!(Instant::now() < end, "the page is not forgotten");
        kernel.ask(Op::Statfs, ROOT, body()).unwrap();
    }
    set_flags(&kernel, file, EXTENTS);
    assert_eq!(forgotten(&kernel, file), [-1]);
    getattr_by(&kernel, file, fh).unwrap();
    write_page(&kernel, file, fh).unwrap();
    // Of what nobody writes to the kernel keeps what it was told.
    kernel.release(file, fh).unwrap();
    set_flags(&kernel, file, EXTENTS | IMMUTABLE);
    kernel.getattr(file).unwrap();
    assert_eq!(forgotten(&kernel, file), [-1]);
    kernel.end().unwrap();
}

/// An older kernel asks with a handle for other reasons too. Without writeback_cache none asks
/// before a write.
#[test]
fn others_are_refused_pages_only() {
    if !is_root() {
        return;
    }
    for (writeback_cache, minor) in [(true, 34), (false, 41)] {
        let (kernel, file, fh) = with_file(writeback_cache, minor);
        set_flags(&kernel, file, EXTENTS | IMMUTABLE);
        assert_eq!(forgotten(&kernel, file), [0, -1]);
        getattr_by(&kernel, file, fh).unwrap();
        kernel.getattr(file).unwrap();
        assert_eq!(forgotten(&kernel, file), []);
        assert_eq!(write_page(&kernel, file, fh), Err(EPERM));
        kernel.end().unwrap();
    }
}
