//! INIT: versions, what is agreed on, and whoever begins otherwise.

use super::kernel::{Kernel, Op, ROOT, body, init, u32_at};
use super::{EIO, ext4};
use crate::options::Options;

fn unconnected() -> Kernel {
    Kernel::unconnected(ext4(), Options { threads: 1, ..Options::default() })
}

#[test]
fn what_is_agreed_on_is_what_was_offered() {
    let kernel = unconnected();
    // FUSE_ATOMIC_O_TRUNC (1 << 3) and FUSE_DO_READDIRPLUS (1 << 13) only.
    let offered = (1 << 3) | (1 << 13);
    let body = body().u32(7).u32(31).u32(64 << 10).u32(offered).u32(0).bytes(&[0; 44]);
    let agreed = kernel.ask(Op::Init, 0, body).unwrap();
    assert_eq!(u32_at(&agreed, 0), 7);
    assert!(u32_at(&agreed, 8) <= 64 << 10, "reads further ahead than the kernel does");
    assert_eq!(u32_at(&agreed, 12) & !offered, 0, "flags that were not offered");
    assert_eq!(u32_at(&agreed, 12) & offered, offered);
    let max_write = u32_at(&agreed, 20);
    assert!((4096..=1 << 20).contains(&max_write), "{max_write} bytes a write");
    kernel.end().unwrap();
}

#[test]
fn write_back_caching_is_asked_for_by_an_option_only() {
    const WRITEBACK_CACHE: u32 = 1 << 16;
    for wanted in [false, true] {
        let options = Options { threads: 1, writeback_cache: wanted, ..Options::default() };
        let kernel = Kernel::unconnected(ext4(), options);
        let agreed = kernel.ask(Op::Init, 0, init(7, 41)).unwrap();
        assert_eq!(u32_at(&agreed, 12) & WRITEBACK_CACHE != 0, wanted);
        kernel.end().unwrap();
    }
}

#[test]
fn a_newer_kernel_gets_our_version_and_begins_once_more() {
    let kernel = unconnected();
    let agreed = kernel.ask(Op::Init, 0, init(8, 0)).unwrap();
    assert_eq!(u32_at(&agreed, 0), 7);
    let agreed = kernel.ask(Op::Init, 0, init(7, 41)).unwrap();
    assert_eq!(u32_at(&agreed, 0), 7);
    assert!(kernel.lookup(ROOT, b"lost+found").is_ok());
    kernel.end().unwrap();
}

#[test]
fn who_does_not_begin_with_a_handshake_is_refused() {
    let kernel = unconnected();
    assert_eq!(kernel.ask(Op::Getattr, ROOT, body().u32(0).u32(0).u64(0)), Err(EIO));
    drop(kernel.end().unwrap_err());
    let kernel = unconnected();
    assert!(kernel.ask(Op::Init, 0, init(7, 5)).is_err());
    drop(kernel.end().unwrap_err());
    // Nothing at all.
    let kernel = unconnected();
    kernel.write(&[0; 3]);
    drop(kernel.end().unwrap_err());
}

#[test]
fn a_second_handshake_changes_nothing() {
    let fs = ext4();
    let kernel = Kernel::over(fs.clone());
    assert_eq!(kernel.ask(Op::Init, 0, init(7, 41)), Err(EIO));
    assert!(kernel.lookup(ROOT, b"lost+found").is_ok());
    kernel.end().unwrap();
    // Unmounting the connection does not unmount what is behind it.
    assert!(fs.lookup(fs.root(), b"lost+found").is_ok());
}
