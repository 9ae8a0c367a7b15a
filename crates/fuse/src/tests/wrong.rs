//! Requests that no kernel sends: unknown, cut off, too long, of arbitrary bytes. Each is answered
//! once, nothing is changed by one that cannot be understood, and serving goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use steadfast_vfs::FileSystem;

use super::kernel::{Body, Kernel, Op, ROOT, body, u64_at};
use super::scripted::{FILE, Scripted};
use super::{EINVAL, ENOENT, ENOSYS, ENXIO, mounted};
use crate::options::Options;

/// Every request with arguments, whole.
fn whole() -> Vec<(Op, Body)> {
    let io = || body().u64(1).u64(0).u32(4).u32(0).u64(0).u32(0).u32(0);
    let two = || body().u64(1).u32(0).u32(0);
    vec![
        (Op::Lookup, body().name(b"file")),
        (Op::Getattr, two()),
        (Op::Setattr, body().bytes(&[0; 88])),
        (Op::Symlink, body().name(b"name").name(b"target")),
        (Op::Mknod, body().u32(0o100_644).u32(0).u32(0).u32(0).name(b"name")),
        (Op::Mkdir, body().u32(0o755).u32(0).name(b"name")),
        (Op::Unlink, body().name(b"name")),
        (Op::Rmdir, body().name(b"name")),
        (Op::Rename, body().u64(ROOT).name(b"a").name(b"b")),
        (Op::Link, body().u64(FILE).name(b"name")),
        (Op::Open, body().u32(0).u32(0)),
        (Op::Read, io()),
        (Op::Write, io().bytes(b"data")),
        (Op::Release, body().u64(1).u32(0).u32(0).u64(0)),
        (Op::Fsync, two()),
        (Op::Setxattr, body().u32(5).u32(0).name(b"user.a").bytes(b"value")),
        (Op::Getxattr, body().u32(5).u32(0).name(b"user.a")),
        (Op::Listxattr, body().u32(5).u32(0)),
        (Op::Removexattr, body().name(b"user.a")),
        (Op::Flush, body().u64(1).u32(0).u32(0).u64(0)),
        (Op::Opendir, body().u32(0).u32(0)),
        (Op::Readdir, io()),
        (Op::Releasedir, body().u64(1).u32(0).u32(0).u64(0)),
        (Op::Fsyncdir, two()),
        (Op::Access, body().u32(0).u32(0)),
        (Op::Create, body().u32(0).u32(0o100_644).u32(0).u32(0).name(b"name")),
        (Op::Interrupt, body().u64(2)),
        (Op::Bmap, body().u64(0).u32(4096).u32(0)),
        (Op::Ioctl, body().u64(1).u32(0).u32(1).u64(0).u32(4).u32(4).bytes(&[0; 4])),
        (Op::Poll, body().u64(1).u64(0).u32(0).u32(1)),
        (Op::Fallocate, body().u64(1).u64(0).u64(1).u32(0).u32(0)),
        (Op::Readdirplus, io()),
        (Op::Rename2, body().u64(ROOT).u32(0).u32(0).name(b"a").name(b"b")),
        (Op::Lseek, body().u64(1).u64(0).u32(3).u32(0)),
        (Op::CopyFileRange, body().u64(1).u64(0).u64(FILE).u64(1).u64(0).u64(1).u64(0)),
    ]
}

#[test]
fn a_request_that_is_cut_off_is_answered_and_does_nothing() {
    let fs = Scripted::new();
    let options = Options { threads: 1, ..Options::default() };
    let kernel = Kernel::with(Arc::clone(&fs) as Arc<dyn FileSystem>, options);
    for (op, whole) in whole() {
        // All of it, first: it is understood.
        let calls = fs.calls.load(Ordering::Relaxed);
        let _ = kernel.ask(op, FILE, whole.clone());
        let understood = fs.calls.load(Ordering::Relaxed) > calls;
        for len in 0..whole.0.len() {
            let calls = fs.calls.load(Ordering::Relaxed);
            let answer = kernel.ask(op, FILE, Body(whole.0[..len].to_vec()));
            let called = fs.calls.load(Ordering::Relaxed) > calls;
            // Which is not supported, whatever is asked.
            let error = if op == Op::Interrupt { ENOSYS } else { EINVAL };
            assert_eq!((answer, called), (Err(error), false), "{op:?}, {len} bytes");
        }
        let known = [Op::Access, Op::Interrupt, Op::Bmap, Op::Poll, Op::Flush];
        let by_default = [Op::Opendir, Op::Releasedir, Op::Ioctl, Op::Setxattr];
        let others = [Op::Getxattr, Op::Listxattr, Op::Removexattr, Op::Lseek];
        let unheard = known.contains(&op) || by_default.contains(&op) || others.contains(&op);
        assert!(understood || unheard || op == Op::Fallocate || op == Op::Mknod, "{op:?}");
    }
    kernel.assert_quiet();
    kernel.end().unwrap();
}

#[test]
fn what_is_behind_a_request_is_not_of_it() {
    let kernel = mounted();
    for (op, whole) in whole() {
        if matches!(op, Op::Ioctl | Op::Setxattr | Op::Write) {
            continue;
        }
        let unique = kernel.send(op, ROOT, whole.bytes(&[0xff; 3000]));
        let _ = kernel.answer(unique);
    }
    kernel.assert_quiet();
    // The head says where the request ends: here before its name is over.
    let length = 40 + 8 + 2;
    let asked = body().u32(0o755).u32(0).bytes(b"name\0");
    let unique = kernel.send_raw(Op::Mkdir as u32, ROOT, asked, Some(length));
    assert!(kernel.answer(unique).is_err());
    assert_eq!(kernel.lookup(ROOT, b"na").unwrap().node, 0);
}

#[test]
fn unknown_requests_are_answered_with_enosys() {
    let kernel = mounted();
    // SETUPMAPPING, REMOVEMAPPING, and numbers of nobody.
    for opcode in [0, 7, 19, 48, 49, 54, 1000, 4096, u32::MAX] {
        let unique = kernel.send_raw(opcode, ROOT, body().bytes(&[0; 64]), None);
        assert_eq!(kernel.answer(unique), Err(ENOSYS), "{opcode}");
    }
    assert_eq!(kernel.ask(Op::Poll, ROOT, body().u64(0).u64(0).u32(0).u32(1)), Err(ENOSYS));
    assert_eq!(kernel.ask(Op::Bmap, ROOT, body().u64(0).u32(512).u32(0)), Err(ENOSYS));
    kernel.assert_quiet();
}

#[test]
fn a_message_that_has_no_head_ends_serving() {
    for message in [&[0; 1][..], &[0; 39], &100_000_u32.to_ne_bytes()] {
        let kernel = mounted();
        kernel.write(message);
        let error = kernel.end().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{error}");
    }
}

/// Arbitrary arguments for every request, of a seed each: whatever they mean, one answer comes, and
/// the file system below stays whole.
#[test]
fn arbitrary_arguments_get_one_answer_each() {
    use steadfast_block::rng::Rng;
    let soak: u64 = std::env::var("STEADFAST_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let kernel = mounted();
    let (file, _) = kernel.create(ROOT, b"file", 2).unwrap();
    for seed in 0..300 * soak {
        let mut rng = Rng::new(seed);
        for (op, whole) in whole() {
            let mut asked = whole.0;
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(asked.len() as u64) as usize;
                asked[at] = [0, 1, 0x7f, 0x80, 0xff, rng.below(256) as u8][rng.below(6) as usize];
            }
            if matches!(op, Op::Ioctl | Op::Read | Op::Setxattr) {
                // A shutdown is a right answer, too, a read of gigabytes takes its time, and a
                // value must be as long as it is said to be.
                continue;
            }
            if op == Op::Write {
                // As much data as it says, which the library asserts.
                asked[16..20].copy_from_slice(&4_u32.to_ne_bytes());
            }
            // Numbers that are in use, or that nothing can have: those of free inodes are not the
            // kernel's to send.
            let mut number = || [ROOT, file.node, 0, u64::MAX, 3][rng.below(5) as usize];
            let (node, second) = (number(), number());
            match op {
                Op::Rename | Op::Rename2 | Op::Link => {
                    asked[..8].copy_from_slice(&second.to_ne_bytes());
                }
                Op::CopyFileRange => asked[16..24].copy_from_slice(&second.to_ne_bytes()),
                _ => {}
            }
            let what = format!("{op:?} of {node}, seed {seed}: {asked:?}");
            let _ = kernel.ask(op, node, Body(asked));
            // A wrong request is no damage: that would make the file system read-only.
            assert_eq!(kernel.unlink(ROOT, b"absent"), Err(ENOENT), "after {what}");
        }
    }
    // FORGET has no answer.
    kernel.forget(file.node, 0);
    kernel.assert_quiet();
    // The file may be gone, and its handle closed; another one works as ever.
    let (file, fh) = kernel.create(ROOT, b"another", 2).unwrap();
    assert_eq!(kernel.write_at(file.node, fh, 0, b"well"), Ok(4));
    assert_eq!(kernel.read(file.node, fh, 0, 4).unwrap(), b"well");
    // Beyond the last data.
    let seek = kernel.ask(Op::Lseek, file.node, body().u64(fh).u64(1 << 40).u32(3).u32(0));
    assert_eq!(seek.map(|at| u64_at(&at, 0)), Err(ENXIO));
}
