//! Access control lists: what a list does to modes and to what is made in a directory, the same
//! as with the kernel.

use steadfast_vfs::{FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, SetAttr, SetXattr};

use crate::image::Image;
use crate::stage::{Kernel, Ours, Stage};

const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT: &[u8] = b"system.posix_acl_default";

const USER_OBJ: u16 = 1;
const USER: u16 = 2;
const GROUP_OBJ: u16 = 4;
const GROUP: u16 = 8;
const MASK: u16 = 16;
const OTHER: u16 = 32;

/// A list as programs hand it over.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, perm, id) in entries {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&perm.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

fn named(user: u16, group: u16, mask: u16, other: u16) -> Vec<u8> {
    let none = u32::MAX;
    acl(&[
        (USER_OBJ, user, none),
        (USER, 6, 1000),
        (USER, 5, 70_000),
        (GROUP_OBJ, group, none),
        (GROUP, 7, 50),
        (MASK, mask, none),
        (OTHER, other, none),
    ])
}

fn plain(user: u16, group: u16, other: u16) -> Vec<u8> {
    let none = u32::MAX;
    acl(&[(USER_OBJ, user, none), (GROUP_OBJ, group, none), (OTHER, other, none)])
}

/// What is seen of an inode.
type Seen = (u16, Result<Vec<u8>, i32>, Result<Vec<u8>, i32>, Vec<Vec<u8>>);

fn seen(fs: &dyn FileSystem, ino: Ino) -> Seen {
    let get = |name| fs.getxattr(ino, name).map_err(|e: FsError| e.errno());
    let mode = fs.getattr(ino).unwrap().mode;
    (mode, get(ACCESS), get(DEFAULT), fs.listxattr(ino).unwrap())
}

fn number<T>(outcome: Result<T, FsError>) -> i32 {
    outcome.map_or_else(|e| e.errno(), |_| 0)
}

/// Makes one of each kind in `dir` and returns what each got.
fn made_in(fs: &dyn FileSystem, dir: Ino, mode: u16, umask: u16) -> Vec<Seen> {
    let node = NewNode { mode, uid: 0, gid: 0, umask };
    let name = |kind: &str| format!("{kind}-{mode:o}-{umask:o}").into_bytes();
    let (file, fh) = fs.create(dir, &name("file"), node, OpenFlags::WRITE).unwrap();
    fs.release(fh).unwrap();
    let sub = fs.mkdir(dir, &name("dir"), node).unwrap();
    let fifo = fs.mknod(dir, &name("fifo"), (FileType::Fifo, 0), node).unwrap();
    let link = fs.symlink(dir, &name("link"), b"target", node).unwrap();
    let results = [file.ino, sub.ino, fifo.ino, link.ino].map(|ino| seen(fs, ino)).to_vec();
    for kind in ["file", "fifo", "link"] {
        fs.unlink(dir, &name(kind)).unwrap();
    }
    fs.rmdir(dir, &name("dir")).unwrap();
    results
}

fn results_of(fs: &dyn FileSystem) -> Vec<(Vec<i32>, Vec<Seen>)> {
    let node = NewNode { mode: 0o755, ..NewNode::default() };
    let dir = fs.mkdir(fs.root(), b"dir", node).unwrap().ino;
    let (file, fh) = fs.create(fs.root(), b"file", NewNode::default(), OpenFlags::WRITE).unwrap();
    fs.release(fh).unwrap();
    let file = file.ino;
    let link = fs.symlink(fs.root(), b"link", b"file", node).unwrap().ino;
    let set = |ino, name: &[u8], value: &[u8]| number(fs.setxattr(ino, name, value, SetXattr::Any));
    let chmod =
        |ino, mode| number(fs.setattr(ino, SetAttr { mode: Some(mode), ..SetAttr::default() }));
    let mut results = Vec::new();
    results.push((vec![], made_in(fs, dir, 0o666, 0o022)));
    let bad = [
        set(file, DEFAULT, &named(7, 5, 7, 5)),
        set(file, DEFAULT, b""),
        set(file, ACCESS, &acl(&[(USER_OBJ, 7, 0)])),
        set(file, ACCESS, &named(7, 9, 7, 0)),
        set(file, ACCESS, &named(7, 5, 7, 0)[..20]),
        set(file, ACCESS, &[1, 0, 0, 0]),
        set(file, ACCESS, &[2, 0]),
        set(link, ACCESS, &plain(7, 7, 7)),
        number(fs.removexattr(file, ACCESS)),
        number(fs.removexattr(file, DEFAULT)),
    ];
    results.push((bad.to_vec(), vec![seen(fs, file), seen(fs, link)]));
    for list in [named(6, 4, 5, 1), plain(7, 5, 1), named(7, 7, 0, 0), acl(&[]), named(4, 2, 6, 0)]
    {
        results.push((vec![set(file, ACCESS, &list)], vec![seen(fs, file)]));
        for mode in [0o640, 0o2757, 0o4711] {
            results.push((vec![chmod(file, mode)], vec![seen(fs, file)]));
        }
    }
    results.push((vec![number(fs.removexattr(file, ACCESS))], vec![seen(fs, file)]));
    for default in [named(7, 5, 6, 4), plain(7, 5, 0), named(7, 7, 7, 7)] {
        results.push((vec![set(dir, DEFAULT, &default)], vec![seen(fs, dir)]));
        for (mode, umask) in [(0o666, 0o022), (0o777, 0o077), (0o1640, 0), (0o1775, 0o002)] {
            results.push((vec![set(dir, b"user.n", &default)], made_in(fs, dir, mode, umask)));
        }
    }
    results.push((vec![set(dir, DEFAULT, b"")], made_in(fs, dir, 0o777, 0o027)));
    results
}

#[test]
fn lists_do_what_they_do_in_the_kernel() {
    for options in [&["-b", "1024", "-I", "128"][..], &["-b", "4096"]] {
        let image = || Image::mke2fs(24 << 20, options);
        let (ours, mut kernel) = (Ours::mount(image()), Kernel::mount(image()));
        for (i, pair) in results_of(ours.fs()).into_iter().zip(results_of(kernel.fs())).enumerate()
        {
            assert_eq!(pair.0, pair.1, "step {i} (ours, the kernel's)");
        }
        let file = |fs: &dyn FileSystem| fs.lookup(fs.root(), b"file").unwrap().ino;
        let list = named(6, 4, 5, 1);
        ours.fs().setxattr(file(ours.fs()), ACCESS, &list, SetXattr::Any).unwrap();
        kernel.fs().setxattr(file(kernel.fs()), ACCESS, &list, SetXattr::Any).unwrap();
        // Each reads the other's.
        kernel.remount();
        let (ours, kernel) = (ours.unmount(), kernel.unmount());
        ours.assert_clean();
        let (ours, kernel) = (Kernel::mount(ours), Ours::mount(kernel));
        assert_eq!(seen(ours.fs(), file(ours.fs())), seen(kernel.fs(), file(kernel.fs())));
        assert_eq!(seen(ours.fs(), file(ours.fs())).1, Ok(list));
    }
}
