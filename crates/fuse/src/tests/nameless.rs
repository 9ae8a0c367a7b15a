//! Nodes whose last name goes while the kernel knows them: every request about them works until the
//! kernel has forgotten as many entries as it was given.

use super::kernel::{Answer, Body, Kernel, Op, ROOT, body, u64_at};
use super::{ENOENT, ESTALE, Entry, O_CREAT, O_RDWR, O_TRUNC, empty, entry, mounted};

const DATA: &[u8] = b"contents of the file";

/// A file with contents and an attribute, closed.
fn file(kernel: &Kernel, name: &[u8]) -> Entry {
    let (made, fh) = kernel.create(ROOT, name, O_RDWR).unwrap();
    kernel.write_at(made.node, fh, 0, DATA).unwrap();
    kernel.release(made.node, fh).unwrap();
    // struct fuse_setxattr_in: size, flags
    let value = body().u32(5).u32(0).name(b"user.a").bytes(b"value");
    empty(kernel.ask(Op::Setxattr, made.node, value)).unwrap();
    made
}

/// Everything that is due is done: the file system waits for that before it answers.
fn settled(kernel: &Kernel) -> u64 {
    // struct fuse_statfs_out: blocks, free, available, files, free files
    u64_at(&kernel.ask(Op::Statfs, ROOT, body()).unwrap(), 32)
}

fn rmdir(kernel: &Kernel, name: &[u8]) {
    empty(kernel.ask(Op::Rmdir, ROOT, body().name(name))).unwrap();
}

/// `struct fuse_setattr_in`: of these fields.
fn setattr(valid: u32, size: u64, mode: u32) -> Body {
    body().u32(valid).u32(0).u64(0).u64(size).u64(0).bytes(&[0; 36]).u32(mode).bytes(&[0; 16])
}

fn is_gone(answer: Result<super::Attr, i32>) {
    let errno = answer.unwrap_err();
    assert!(matches!(errno, ENOENT | ESTALE), "{errno}");
}

#[test]
fn every_request_works_on_a_file_without_a_name() {
    let kernel = mounted();
    let free = settled(&kernel);
    let (unlinked, replaced) = (file(&kernel, b"unlinked"), file(&kernel, b"replaced"));
    kernel.unlink(ROOT, b"unlinked").unwrap();
    let over = file(&kernel, b"over");
    kernel.rename((ROOT, b"over"), (ROOT, b"replaced"), 0).unwrap();
    let others: Vec<u64> =
        (0..50).map(|i| file(&kernel, format!("other{i}").as_bytes()).node).collect();
    for node in [unlinked.node, replaced.node] {
        assert!(!others.contains(&node) && over.node != node, "a number in use");
        assert_eq!(kernel.getattr(node).unwrap().nlink, 0);
        let fh = kernel.open(node, O_RDWR).unwrap();
        assert_eq!(kernel.read(node, fh, 0, 100).unwrap(), DATA);
        kernel.write_at(node, fh, 3, b"T").unwrap();
        kernel.fsync(node, fh).unwrap();
        // struct fuse_fallocate_in: fh, offset, length, mode, padding
        let more = body().u64(fh).u64(0).u64(8192).u32(0).u32(0);
        empty(kernel.ask(Op::Fallocate, node, more)).unwrap();
        kernel.release(node, fh).unwrap();
        assert_eq!(kernel.getattr(node).unwrap().size, 8192);
        // FATTR_MODE, FATTR_SIZE, FATTR_MTIME_NOW.
        for set in [setattr(1, 0, 0o100_600), setattr(1 << 3, 5, 0), setattr(1 << 8, 0, 0)] {
            kernel.ask(Op::Setattr, node, set).unwrap();
        }
        let attr = kernel.getattr(node).unwrap();
        assert_eq!((attr.mode, attr.size, attr.nlink), (0o100_600, 5, 0));
        let get = body().u32(100).u32(0).name(b"user.a");
        assert_eq!(kernel.ask(Op::Getxattr, node, get.clone()).unwrap(), b"value");
        assert_eq!(kernel.ask(Op::Listxattr, node, body().u32(100).u32(0)).unwrap(), b"user.a\0");
        empty(kernel.ask(Op::Removexattr, node, body().name(b"user.a"))).unwrap();
        assert!(kernel.ask(Op::Getxattr, node, get).is_err());
        // FS_IOC_GETFLAGS: fh, flags, command, argument, sizes.
        let flags = body().u64(0).u32(0).u32(0x8008_6601).u64(0).u32(0).u32(8);
        kernel.ask(Op::Ioctl, node, flags).unwrap();
        let link = body().u64(node).name(b"again");
        assert_eq!(kernel.ask(Op::Link, ROOT, link), Err(ENOENT));
        let fh = kernel.open(node, O_RDWR | O_TRUNC).unwrap();
        assert_eq!(kernel.getattr(node).unwrap().size, 0);
        // It is open when the kernel forgets it, as never happens.
        kernel.forget(node, 1);
        kernel.release(node, fh).unwrap();
    }
    for i in 0..50 {
        kernel.unlink(ROOT, format!("other{i}").as_bytes()).unwrap();
    }
    others.iter().for_each(|node| kernel.forget(*node, 1));
    assert_eq!(settled(&kernel), free - 1);
    [unlinked, replaced].iter().for_each(|entry| is_gone(kernel.getattr(entry.node)));
}

#[test]
fn links_folders_and_special_files_live_on_as_well() {
    let kernel = mounted();
    let free = settled(&kernel);
    let made = |op, ask: Body| entry(&kernel.ask(op, ROOT, ask).unwrap()).node;
    let short = made(Op::Symlink, body().name(b"short").name(b"target"));
    let long = made(Op::Symlink, body().name(b"long").name(&[b'l'; 400]));
    let pipe = made(Op::Mknod, body().u32(0o010_644).u32(0).u32(0).u32(0).name(b"pipe"));
    let folder = kernel.mkdir(ROOT, b"folder").unwrap().node;
    let empty_one = kernel.mkdir(ROOT, b"empty").unwrap().node;
    let moved = kernel.mkdir(ROOT, b"moved").unwrap().node;
    kernel.unlink(ROOT, b"long").unwrap();
    kernel.rename((ROOT, b"short"), (ROOT, b"pipe"), 0).unwrap();
    kernel.unlink(ROOT, b"pipe").unwrap();
    rmdir(&kernel, b"folder");
    kernel.rename((ROOT, b"moved"), (ROOT, b"empty"), 0).unwrap();
    assert_eq!(kernel.ask(Op::Readlink, short, body()).unwrap(), b"target");
    assert_eq!(kernel.ask(Op::Readlink, long, body()).unwrap(), [b'l'; 400]);
    for node in [short, long, pipe, folder, empty_one] {
        assert_eq!(kernel.getattr(node).unwrap().nlink, 0);
        // FATTR_UID of whoever stands in it.
        kernel.ask(Op::Setattr, node, setattr(1 << 8, 0, 0)).unwrap();
    }
    for node in [folder, empty_one] {
        assert_eq!(kernel.mkdir(node, b"inside").err(), Some(ENOENT));
        assert_eq!(kernel.create(node, b"inside", O_RDWR | O_CREAT).err(), Some(ENOENT));
        // struct fuse_read_in
        let list = body().u64(0).u64(0).u32(4096).u32(0).u64(0).u32(0).u32(0);
        empty(kernel.ask(Op::Readdir, node, list)).unwrap();
        empty(kernel.ask(Op::Fsyncdir, node, body().u64(0).u32(0).u32(0))).unwrap();
    }
    // struct fuse_batch_forget_in: count, dummy; pairs of number and lookups.
    let batch = [short, long, pipe, folder, empty_one];
    let ask = batch.iter().fold(body().u32(5).u32(0), |ask, node| ask.u64(*node).u64(1));
    kernel.send(Op::BatchForget, 0, ask);
    assert_eq!(settled(&kernel), free - 1);
    batch.iter().for_each(|node| is_gone(kernel.getattr(*node)));
    assert_eq!(kernel.getattr(moved).unwrap().nlink, 2);
}

#[test]
fn only_as_many_forgets_as_entries_end_a_node() {
    let kernel = mounted();
    let made = file(&kernel, b"file");
    // One more from each request that gives an entry; "." and ".." of a listing are none.
    kernel.lookup(ROOT, b"file").unwrap();
    kernel.ask(Op::Link, ROOT, body().u64(made.node).name(b"second")).unwrap();
    let (again, fh) = kernel.create(ROOT, b"file", O_RDWR).unwrap();
    assert_eq!(again.node, made.node);
    kernel.release(made.node, fh).unwrap();
    let list = |size: u32| body().u64(0).u64(0).u32(size).u32(0).u64(0).u32(0).u32(0);
    assert!(listed(kernel.ask(Op::Readdirplus, ROOT, list(4096))) > 3);
    // Of two entries with a name one fits, or none.
    kernel.ask(Op::Readdirplus, ROOT, list(400)).unwrap();
    kernel.unlink(ROOT, b"second").unwrap();
    kernel.unlink(ROOT, b"file").unwrap();
    let mut forgotten = 0;
    while kernel.getattr(made.node).is_ok() {
        kernel.forget(made.node, 1);
        forgotten += 1;
        assert!(forgotten < 10);
        settled(&kernel);
    }
    // Made, looked up, linked, opened, and twice in the listing of both names.
    assert_eq!(forgotten, 6);
    assert_eq!(kernel.getattr(ROOT).unwrap().nlink, 3);
}

/// Entries in a listing with attributes.
fn listed(answer: Answer) -> usize {
    let (answer, mut at, mut count) = (answer.unwrap(), 0, 0);
    while at < answer.len() {
        // struct fuse_direntplus: an entry, then number, offset, length of the name, type.
        let name = super::u32_at(&answer, at + super::ENTRY + 16) as usize;
        at += (super::ENTRY + 24 + name).next_multiple_of(8);
        count += 1;
    }
    count
}
