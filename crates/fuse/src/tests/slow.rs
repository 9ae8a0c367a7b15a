//! A file system below that waits, fails or has a fault; several threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use steadfast_vfs::{FileSystem, FsError, Shutdown};

use super::kernel::{Body, Kernel, Op, ROOT, body};
use super::scripted::{FILE, Script, Scripted};
use super::{EACCES, EIO, ENOSYS, empty};
use crate::options::Options;

fn served(threads: usize) -> (Kernel, Arc<Scripted>) {
    let fs = Scripted::new();
    let options = Options { threads, ..Options::default() };
    (Kernel::with(Arc::clone(&fs) as Arc<dyn FileSystem>, options), fs)
}

/// `struct fuse_read_in` of ten bytes.
fn ten_bytes() -> Body {
    body().u64(1).u64(0).u32(10).u32(0).u64(0).u32(0).u32(0)
}

#[test]
fn a_slow_call_does_not_keep_the_others() {
    let (kernel, fs) = served(3);
    fs.set(Script::Wait);
    let slow = [kernel.send(Op::Read, FILE, ten_bytes()), kernel.send(Op::Read, FILE, ten_bytes())];
    fs.until_waiting(2);
    fs.set(Script::Answer);
    // The third thread goes on.
    for _ in 0..50 {
        assert_eq!(kernel.ask(Op::Read, FILE, ten_bytes()).unwrap(), b"xxxxxxxxxx");
    }
    assert!(!kernel.has_answer());
    fs.go();
    for unique in slow {
        assert_eq!(kernel.answer(unique).unwrap(), b"xxxxxxxxxx");
    }
    kernel.end().unwrap();
}

#[test]
fn an_interrupt_neither_loses_nor_repeats_an_answer() {
    let (kernel, fs) = served(2);
    fs.set(Script::Wait);
    let slow = kernel.send(Op::Read, FILE, ten_bytes());
    fs.until_waiting(1);
    // ENOSYS: the kernel sends no more of them, and waits for the answer.
    assert_eq!(kernel.ask(Op::Interrupt, 0, body().u64(slow)), Err(ENOSYS));
    // Of a request that is answered already, or was never made.
    assert_eq!(kernel.ask(Op::Interrupt, 0, body().u64(slow + 1000)), Err(ENOSYS));
    fs.go();
    assert_eq!(kernel.answer(slow).unwrap(), b"xxxxxxxxxx");
    assert!(!kernel.has_answer());
    kernel.end().unwrap();
}

#[test]
fn every_failure_is_reported_once_with_its_number() {
    let (kernel, fs) = served(1);
    let failures = [
        FsError::NoSpace { what: "blocks" },
        FsError::Io { what: "a sector".into() },
        FsError::Corrupt { what: "a block".into(), place: "7".into() },
        FsError::ReadOnly { why: "an error".into() },
        FsError::QuotaExceeded,
        FsError::Stale,
        FsError::Host { errno: 75 },
    ];
    for failure in failures {
        fs.set(Script::Fail(failure.clone()));
        let wanted = Err(failure.errno());
        assert_eq!(empty(kernel.ask(Op::Fsync, FILE, body().u64(1).u64(0))), wanted);
        assert_eq!(empty(kernel.ask(Op::Fsyncdir, ROOT, body().u64(1).u64(0))), wanted);
        // What close(2) returns.
        assert_eq!(empty(kernel.ask(Op::Flush, FILE, body().u64(1).u64(0).u64(0))), wanted);
        assert_eq!(kernel.read(FILE, 1, 0, 10).map(drop), wanted);
        assert_eq!(kernel.write_at(FILE, 1, 0, b"x").map(drop), wanted);
        assert_eq!(kernel.mkdir(ROOT, b"dir").map(drop), wanted);
        assert_eq!(kernel.getattr(FILE).map(drop), wanted);
        assert_eq!(kernel.lookup(ROOT, b"file").map(drop), wanted);
        assert_eq!(kernel.unlink(ROOT, b"file"), wanted);
        assert_eq!(kernel.open(FILE, 0).map(drop), wanted);
        kernel.assert_quiet();
    }
    fs.set(Script::Answer);
    assert!(kernel.getattr(FILE).is_ok(), "a failure is not the end");
}

/// The kernel copies through us, and sends no fsync for it.
#[test]
fn with_sync_a_range_is_durable_before_its_copy_is_answered() {
    for sync in [false, true] {
        let fs = Scripted::new();
        let options = Options { sync, ..Options::default() };
        let kernel = Kernel::with(Arc::clone(&fs) as Arc<dyn FileSystem>, options);
        // struct fuse_copy_file_range_in
        let asked = body().u64(1).u64(0).u64(FILE).u64(2).u64(0).u64(10).u64(0);
        kernel.ask(Op::CopyFileRange, FILE, asked).unwrap();
        assert_eq!(fs.synced.load(Ordering::Relaxed), u64::from(sync), "{sync}");
        kernel.end().unwrap();
    }
}

#[test]
fn a_fault_is_eio_for_its_caller_and_for_all_after_it() {
    let (kernel, fs) = served(1);
    fs.set(Script::Panic);
    assert_eq!(kernel.getattr(FILE).err(), Some(EIO));
    assert_eq!(*fs.shut_down.lock().unwrap(), Some(Shutdown::Now));
    fs.set(Script::Answer);
    let calls = fs.calls.load(Ordering::Relaxed);
    assert_eq!(kernel.getattr(FILE).err(), Some(EIO));
    assert_eq!(kernel.read(FILE, 1, 0, 10), Err(EIO));
    assert_eq!(kernel.lookup(ROOT, b"absent").err(), Some(EIO), "not: that there is none");
    assert_eq!(kernel.release(FILE, 1), Err(EIO));
    assert_eq!(kernel.ask(Op::Statfs, ROOT, body()), Err(EIO));
    assert_eq!(fs.calls.load(Ordering::Relaxed), calls, "it is asked nothing any more");
    kernel.end().unwrap();
}

#[test]
fn another_user_is_refused_unless_the_mount_allows_it() {
    let (mut kernel, fs) = served(1);
    kernel.uid += 1;
    let calls = fs.calls.load(Ordering::Relaxed);
    assert_eq!(kernel.getattr(FILE).err(), Some(EACCES));
    assert_eq!(kernel.mkdir(ROOT, b"dir").err(), Some(EACCES));
    assert_eq!(kernel.open(FILE, 0).err(), Some(EACCES));
    assert_eq!(fs.calls.load(Ordering::Relaxed), calls);
    // A file that the owner has opened may be handed on to him.
    assert!(kernel.read(FILE, 1, 0, 10).is_ok());
    kernel.uid -= 1;
    assert!(kernel.getattr(FILE).is_ok());
}

#[test]
fn many_requests_at_once_are_each_answered_with_their_own() {
    let (kernel, _fs) = served(4);
    let asked: Vec<(u64, u32)> = (1..=200_u32)
        .map(|len| {
            let read = body().u64(1).u64(0).u32(len).u32(0).u64(0).u32(0).u32(0);
            (kernel.send(Op::Read, FILE, read), len)
        })
        .collect();
    for (unique, len) in asked.into_iter().rev() {
        assert_eq!(kernel.answer(unique).unwrap().len(), len as usize);
    }
    kernel.end().unwrap();
}
