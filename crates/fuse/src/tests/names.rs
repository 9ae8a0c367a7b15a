//! Names: found, not found, made, moved, removed, forgotten.

use std::sync::Arc;

use super::kernel::{Kernel, Op, ROOT, body, u64_at};
use super::{
    EEXIST, EINVAL, ENAMETOOLONG, ENOENT, ENOTDIR, ENOTEMPTY, EPERM, ESTALE, O_EXCL, O_RDWR, empty,
    entry, ext4, mounted,
};
use crate::options::Options;

#[test]
fn an_absent_name_is_remembered_until_it_is_made() {
    let kernel = mounted();
    // Number 0, valid for a time: the kernel need not ask once more.
    let nothing = kernel.lookup(ROOT, b"absent").unwrap();
    assert!(nothing.node == 0 && nothing.entry_valid > 0);
    let made = kernel.mkdir(ROOT, b"absent").unwrap();
    let found = kernel.lookup(ROOT, b"absent").unwrap();
    assert!(made.node > 1 && found.node == made.node && found.attr == made.attr);
    assert_eq!((found.attr.mode, found.attr.nlink), (0o40755, 2));
    let options =
        Options { threads: 1, negative_timeout: std::time::Duration::ZERO, ..Options::default() };
    let kernel = Kernel::with(ext4(), options);
    assert_eq!(kernel.lookup(ROOT, b"absent").err(), Some(ENOENT));
}

#[test]
fn names_that_cannot_be_are_refused_by_every_request() {
    let fs = ext4();
    let kernel = Kernel::over(Arc::clone(&fs));
    kernel.create(ROOT, b"file", O_RDWR).unwrap();
    let file = kernel.lookup(ROOT, b"file").unwrap().node;
    for (name, errno) in [(vec![b'n'; 256], ENAMETOOLONG), (b"a/b".to_vec(), EINVAL)] {
        let name = &name[..];
        let refused = |answer: Result<Vec<u8>, i32>| match answer {
            Err(e) => assert!(e == errno || e == ENOENT, "{e}"),
            Ok(_) => panic!("taken: {} bytes", name.len()),
        };
        let node = |kernel: &Kernel, op, head: super::kernel::Body| {
            refused(kernel.ask(op, ROOT, head.name(name)));
        };
        node(&kernel, Op::Mkdir, body().u32(0o755).u32(0));
        node(&kernel, Op::Mknod, body().u32(0o100_644).u32(0).u32(0).u32(0));
        node(&kernel, Op::Create, body().u32(O_RDWR | 0o100).u32(0o100_644).u32(0).u32(0));
        node(&kernel, Op::Link, body().u64(file));
        node(&kernel, Op::Unlink, body());
        node(&kernel, Op::Rmdir, body());
        refused(kernel.ask(Op::Symlink, ROOT, body().name(name).name(b"target")));
        let to = body().u64(ROOT).u32(0).u32(0).name(b"file").name(name);
        refused(kernel.ask(Op::Rename2, ROOT, to));
        let from = body().u64(ROOT).u32(0).u32(0).name(name).name(b"other");
        refused(kernel.ask(Op::Rename2, ROOT, from));
        match kernel.lookup(ROOT, name) {
            Ok(found) => assert_eq!(found.node, 0),
            Err(e) => assert_eq!(e, errno),
        }
    }
    // A name ends at its NUL: what is behind it is not of it.
    let made = kernel.ask(Op::Mkdir, ROOT, body().u32(0o755).u32(0).bytes(b"short\0behind\0"));
    assert!(made.is_ok());
    let root = fs.root();
    let names: Vec<Vec<u8>> = fs.readdir(root, 0).unwrap().into_iter().map(|e| e.name).collect();
    assert!(names.contains(&b"short".to_vec()) && names.len() == 5, "{names:?}");
}

#[test]
fn dots_and_the_empty_name_make_nothing() {
    let kernel = mounted();
    for name in [&b"."[..], b"..", b""] {
        let made = kernel.mkdir(ROOT, name).err();
        assert!(matches!(made, Some(EEXIST | EINVAL | ENOENT)), "{name:?}: {made:?}");
        let removed = empty(kernel.ask(Op::Rmdir, ROOT, body().name(name))).err();
        assert!(matches!(removed, Some(EINVAL | ENOENT | ENOTEMPTY | 16)), "{name:?}: {removed:?}");
    }
    assert_eq!(kernel.lookup(ROOT, b"..").unwrap().node, ROOT);
    assert_eq!(kernel.lookup(ROOT, b".").unwrap().node, ROOT);
}

#[test]
fn a_number_that_is_used_once_more_has_another_generation() {
    let kernel = mounted();
    let (first, fh) = kernel.create(ROOT, b"first", O_RDWR).unwrap();
    kernel.release(first.node, fh).unwrap();
    kernel.unlink(ROOT, b"first").unwrap();
    let (between, _) = kernel.create(ROOT, b"between", O_RDWR).unwrap();
    assert_ne!(between.node, first.node, "the kernel still knows it");
    kernel.forget(first.node, 1);
    // Not before what is forgotten has been deleted.
    kernel.ask(Op::Statfs, ROOT, body()).unwrap();
    let (second, _) = kernel.create(ROOT, b"second", O_RDWR).unwrap();
    assert_eq!(second.node, first.node, "the number is free");
    assert_ne!(second.generation, first.generation);
    // The kernel asks for a file handle's number by ".".
    assert_eq!(kernel.lookup(second.node, b".").unwrap().generation, second.generation);
}

#[test]
fn removed_and_unknown_numbers_are_distinguished_from_present_ones() {
    let kernel = mounted();
    for number in [0, 3, 12_345, u64::from(u32::MAX) + 12, u64::MAX] {
        // EPERM: an inode of the file system itself. 2 is the root's own number on the disk.
        let errno = kernel.getattr(number).unwrap_err();
        assert!(matches!(errno, EPERM | ENOENT | ESTALE | EINVAL), "{number}: {errno}");
        let errno = kernel.lookup(number, b"name").err().unwrap();
        assert!(matches!(errno, EPERM | ENOENT | ESTALE | EINVAL | ENOTDIR), "{number}: {errno}");
    }
    let folder = kernel.mkdir(ROOT, b"folder").unwrap();
    empty(kernel.ask(Op::Rmdir, ROOT, body().name(b"folder"))).unwrap();
    // A process may still stand in it: fstat(2) says that it has no name.
    assert_eq!(kernel.getattr(folder.node).unwrap().nlink, 0);
    kernel.forget(folder.node, 1);
    kernel.ask(Op::Statfs, ROOT, body()).unwrap();
    let errno = kernel.getattr(folder.node).unwrap_err();
    assert!(matches!(errno, ENOENT | ESTALE), "{errno}");
}

#[test]
fn forgetting_is_never_answered() {
    let kernel = mounted();
    let file = kernel.create(ROOT, b"file", O_RDWR).unwrap().0.node;
    for lookups in [0, 1, u64::MAX] {
        kernel.forget(file, lookups);
        kernel.forget(ROOT, lookups);
        kernel.forget(987_654, lookups);
    }
    // struct fuse_batch_forget_in: count, dummy; pairs of number and lookups.
    let pair = |body: super::kernel::Body, node: u64| body.u64(node).u64(1);
    let batch = pair(pair(body().u32(2).u32(0), file), ROOT);
    kernel.send(Op::BatchForget, 0, batch);
    // It claims more than it has.
    kernel.send(Op::BatchForget, 0, pair(body().u32(0).u32(0), file));
    kernel.assert_quiet();
    assert_eq!(kernel.getattr(file).unwrap().nlink, 1);
}

#[test]
fn a_rename_replaces_exchanges_or_refuses() {
    const NOREPLACE: u32 = 1;
    const EXCHANGE: u32 = 2;
    let kernel = mounted();
    let a = kernel.create(ROOT, b"a", O_RDWR).unwrap().0.node;
    let b = kernel.create(ROOT, b"b", O_RDWR).unwrap().0.node;
    let dir = kernel.mkdir(ROOT, b"dir").unwrap().node;
    let node = |dir, name: &[u8]| kernel.lookup(dir, name).unwrap().node;
    assert_eq!(kernel.rename((ROOT, b"a"), (ROOT, b"b"), NOREPLACE), Err(EEXIST));
    kernel.rename((ROOT, b"a"), (ROOT, b"b"), EXCHANGE).unwrap();
    assert_eq!((node(ROOT, b"a"), node(ROOT, b"b")), (b, a));
    assert_eq!(kernel.rename((ROOT, b"a"), (ROOT, b"none"), EXCHANGE), Err(ENOENT));
    for unknown in [1 << 7, NOREPLACE | EXCHANGE, u32::MAX] {
        assert_eq!(kernel.rename((ROOT, b"a"), (ROOT, b"b"), unknown), Err(EINVAL), "{unknown}");
    }
    kernel.rename((ROOT, b"a"), (dir, b"moved"), 0).unwrap();
    assert_eq!((node(ROOT, b"a"), node(dir, b"moved")), (0, b));
    // Over another file: it is gone, and still answered for while somebody has it.
    kernel.rename((dir, b"moved"), (ROOT, b"b"), 0).unwrap();
    assert_eq!(kernel.getattr(a).unwrap().nlink, 0);
    assert_eq!(kernel.rename((ROOT, b"dir"), (dir, b"inside"), 0), Err(EINVAL));
    // RENAME of protocol 7.1 to 7.22 has no flags.
    let old = body().u64(dir).name(b"b").name(b"c");
    empty(kernel.ask(Op::Rename, ROOT, old)).unwrap();
    assert_eq!(node(dir, b"c"), b);
}

#[test]
fn links_and_devices_are_what_was_asked_for() {
    let kernel = mounted();
    let file = kernel.create(ROOT, b"file", O_RDWR).unwrap().0.node;
    let link = kernel.ask(Op::Link, ROOT, body().u64(file).name(b"second")).unwrap();
    assert_eq!((entry(&link).node, entry(&link).attr.nlink), (file, 2));
    let link = kernel.ask(Op::Symlink, ROOT, body().name(b"link").name(b"/to/no place")).unwrap();
    let link = entry(&link);
    assert_eq!((link.attr.mode & 0o170_000, link.attr.size), (0o120_000, 12));
    assert_eq!(kernel.ask(Op::Readlink, link.node, body()).unwrap(), b"/to/no place");
    assert_eq!(kernel.ask(Op::Readlink, file, body()), Err(EINVAL));
    // struct fuse_mknod_in: mode, rdev, umask, padding; 8:300 as the kernel packs it.
    let rdev = (300 & 0xff) | (8 << 8) | ((300 & 0xfff00) << 12);
    let node = body().u32(0o60_666).u32(rdev).u32(0o022).u32(0).name(b"disk");
    let node = entry(&kernel.ask(Op::Mknod, ROOT, node).unwrap());
    assert_eq!((node.attr.mode, node.attr.rdev), (0o60_644, rdev));
    let folder = body().u32(0o040_755).u32(0).u32(0).u32(0).name(b"folder");
    assert_eq!(kernel.ask(Op::Mknod, ROOT, folder), Err(EINVAL));
    assert_eq!(kernel.create(ROOT, b"file", O_RDWR | O_EXCL).err(), Some(EEXIST));
    let (same, fh) = kernel.create(ROOT, b"file", O_RDWR).unwrap();
    assert_eq!(same.node, file);
    kernel.release(file, fh).unwrap();
    assert_eq!(kernel.lookup(file, b"below").err(), Some(ENOTDIR));
    let statfs = kernel.ask(Op::Statfs, ROOT, body()).unwrap();
    assert!(statfs.len() == 80 && u64_at(&statfs, 0) > u64_at(&statfs, 8));
}
