//! Device nodes, FIFOs, sockets, times, set-id bits and inode flags: the same as with the kernel.

use bytes::Bytes;
use steadfast_ext4::{AccessTimes, MountOptions};
use steadfast_vfs::{
    FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, SetAttr, SetTime, SetXattr, Timestamp,
};

use crate::image::Image;
use crate::stage::{Kernel, Ours, Stage};

const IMAGE_BYTES: u64 = 16 << 20;
const FOLDER: NewNode = NewNode { mode: 0o755, uid: 0, gid: 0, umask: 0 };

fn number<T>(outcome: Result<T, FsError>) -> i32 {
    outcome.map_or_else(|e| e.errno(), |_| 0)
}

fn set(fs: &dyn FileSystem, ino: Ino, set: SetAttr) -> i32 {
    number(fs.setattr(ino, set))
}

fn file(fs: &dyn FileSystem, name: &[u8], mode: u16) -> Ino {
    let node = NewNode { mode, ..FOLDER };
    let (attr, fh) = fs.create(fs.root(), name, node, OpenFlags::WRITE).unwrap();
    fs.write(fh, 0, Bytes::from_static(b"contents")).unwrap();
    fs.release(fh).unwrap();
    attr.ino
}

const NODES: [(&[u8], FileType, u64); 8] = [
    (b"null", FileType::CharDevice, 1 << 32 | 3),
    (b"loop300", FileType::BlockDevice, 7 << 32 | 300),
    (b"far", FileType::CharDevice, 300 << 32 | 5),
    (b"farthest", FileType::BlockDevice, 0xfff << 32 | 0xf_ffff),
    (b"zero", FileType::CharDevice, 0),
    (b"fifo", FileType::Fifo, 0),
    (b"socket", FileType::Socket, 0),
    (b"plain", FileType::Regular, 0),
];

/// Name, types in the directory and the inode, device, mode, size, and what setting a "user."
/// attribute answers.
type Node = (Vec<u8>, FileType, FileType, u64, u16, u64, i32);

fn nodes(fs: &dyn FileSystem) -> Vec<Node> {
    let entries = fs.readdir(fs.root(), 0).unwrap();
    let mut all: Vec<_> = entries
        .into_iter()
        .filter(|e| NODES.iter().any(|(name, ..)| *name == e.name))
        .map(|e| {
            let attr = fs.lookup(fs.root(), &e.name).unwrap();
            let user = number(fs.setxattr(attr.ino, b"user.x", b"y", SetXattr::Any));
            (e.name, e.kind, attr.kind, attr.rdev, attr.mode, attr.size, user)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn nodes_of_all_kinds_are_the_kernels() {
    let image = || Image::mke2fs(IMAGE_BYTES, &[]);
    let (ours, kernel) = (Ours::mount(image()), Kernel::mount(image()));
    for fs in [ours.fs(), kernel.fs()] {
        for (name, kind, rdev) in NODES {
            let node = NewNode { mode: 0o660, uid: 3, gid: 4, umask: 0 };
            let attr = fs.mknod(fs.root(), name, (kind, rdev), node).unwrap();
            assert_eq!((attr.kind, attr.rdev, attr.nlink), (kind, rdev, 1));
        }
        assert!(fs.mknod(fs.root(), b"d", (FileType::Directory, 0), FOLDER).is_err());
        assert!(fs.mknod(fs.root(), b"null", (FileType::Fifo, 0), FOLDER).is_err());
    }
    let expected = nodes(ours.fs());
    assert_eq!(expected, nodes(kernel.fs()));
    let (ours, kernel) = (ours.unmount(), kernel.unmount());
    ours.assert_clean();
    let (ours, kernel) = (Kernel::mount(ours), Ours::mount(kernel));
    assert_eq!((nodes(ours.fs()), nodes(kernel.fs())), (expected.clone(), expected));
    for (name, ..) in NODES {
        kernel.fs().unlink(kernel.fs().root(), name).unwrap();
    }
    kernel.unmount().assert_clean();
}

/// Times that fit, that do not, and what is left of them.
fn times(fs: &dyn FileSystem) -> Vec<(Timestamp, Timestamp)> {
    let ino = file(fs, b"times", 0o644);
    let at = |secs, nanos| Timestamp { secs, nanos };
    let all = [
        at(0, 1),
        at(1, 999_999_999),
        at(-1, 5),
        at(-2_147_483_648, 0),
        at(-3_000_000_000, 0),
        at(2_147_483_648, 123),
        at(4_294_967_296, 0),
        at(15_032_385_535, 7),
        at(16_000_000_000, 0),
    ];
    let mut kept = Vec::new();
    for t in all {
        let (atime, mtime) = (Some(SetTime::At(t)), Some(SetTime::At(at(t.secs, 42))));
        assert_eq!(set(fs, ino, SetAttr { atime, mtime, ..SetAttr::default() }), 0);
        let attr = fs.getattr(ino).unwrap();
        kept.push((attr.atime, attr.mtime));
    }
    kept
}

#[test]
fn times_are_kept_as_the_kernel_keeps_them() {
    for options in [&["-I", "256"][..], &["-I", "128"]] {
        let image = || Image::mke2fs(IMAGE_BYTES, options);
        let (ours, kernel) = (Ours::mount(image()), Kernel::mount(image()));
        assert_eq!(times(ours.fs()), times(kernel.fs()), "{options:?}");
        ours.unmount().assert_clean();
    }
}

/// Modes after changes of owner, for files and directories with each set of special bits.
fn owners(fs: &dyn FileSystem) -> Vec<(u16, u16, u16, bool)> {
    let mut results = Vec::new();
    for (i, mode) in [0o4755, 0o2755, 0o6745, 0o6770, 0o1777, 0o644].into_iter().enumerate() {
        let ino = file(fs, format!("own{i}").as_bytes(), 0o600);
        let chmod = SetAttr { mode: Some(mode), ..SetAttr::default() };
        let capability = [1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        fs.setxattr(ino, b"security.capability", &capability, SetXattr::Any).unwrap();
        assert_eq!(set(fs, ino, chmod), 0);
        let before = fs.getattr(ino).unwrap().mode;
        assert_eq!(set(fs, ino, SetAttr { gid: Some(5), ..SetAttr::default() }), 0);
        let after = fs.getattr(ino).unwrap().mode;
        let kept = fs.getxattr(ino, b"security.capability").is_ok();
        let dir = fs.mkdir(fs.root(), format!("dir{i}").as_bytes(), FOLDER).unwrap().ino;
        assert_eq!(set(fs, dir, chmod), 0);
        assert_eq!(set(fs, dir, SetAttr { uid: Some(5), ..SetAttr::default() }), 0);
        results.push((before, after, fs.getattr(dir).unwrap().mode, kept));
    }
    let ino = file(fs, b"capable", 0o755);
    let capability = [1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    fs.setxattr(ino, b"security.capability", &capability, SetXattr::Any).unwrap();
    let fh = fs.open(ino, OpenFlags::WRITE).unwrap();
    fs.write(fh, 0, Bytes::from_static(b"x")).unwrap();
    fs.release(fh).unwrap();
    let kept = fs.getxattr(ino, b"security.capability").is_ok();
    results.push((0, 0, 0, kept));
    results
}

#[test]
fn a_change_of_owner_or_contents_takes_rights_away_as_in_the_kernel() {
    let image = || Image::mke2fs(IMAGE_BYTES, &[]);
    let (ours, kernel) = (Ours::mount(image()), Kernel::mount(image()));
    assert_eq!(owners(ours.fs()), owners(kernel.fs()));
    ours.unmount().assert_clean();
}

const IMMUTABLE: u32 = 0x10;
const APPEND: u32 = 0x20;
const NO_DUMP: u32 = 0x40;

/// What flagged inodes allow.
fn flagged(fs: &dyn FileSystem) -> Vec<(u32, u32, Vec<i32>)> {
    let mut results = Vec::new();
    for (i, flags) in
        [0, IMMUTABLE, APPEND, NO_DUMP, 0x80, 0x8, 0x1_0000, 0x100_0000].into_iter().enumerate()
    {
        let name = format!("flagged{i}").into_bytes();
        let dir_name = format!("dir{i}").into_bytes();
        let ino = file(fs, &name, 0o644);
        let dir = fs.mkdir(fs.root(), &dir_name, FOLDER).unwrap().ino;
        fs.mkdir(dir, b"inner", FOLDER).unwrap();
        let change = |ino, flags| {
            let now = fs.inode_flags(ino).unwrap();
            number(fs.set_inode_flags(ino, now | flags))
        };
        let mut said = vec![change(ino, flags), change(dir, flags)];
        let shown = (fs.inode_flags(ino).unwrap(), fs.inode_flags(dir).unwrap());
        let open = |how| {
            let opened = fs.open(ino, how);
            if let Ok(fh) = opened {
                fs.release(fh).unwrap();
            }
            number(opened)
        };
        let now = Some(SetTime::Now);
        let then = Some(SetTime::At(Timestamp { secs: 5, nanos: 0 }));
        said.extend([
            open(OpenFlags::WRITE),
            open(OpenFlags::WRITE | OpenFlags::APPEND),
            open(OpenFlags::READ),
            set(fs, ino, SetAttr { mode: Some(0o600), ..SetAttr::default() }),
            set(fs, ino, SetAttr { uid: Some(1), ..SetAttr::default() }),
            set(fs, ino, SetAttr { size: Some(3), ..SetAttr::default() }),
            set(fs, ino, SetAttr { mtime: then, ..SetAttr::default() }),
            set(fs, ino, SetAttr { mtime: now, atime: now, ..SetAttr::default() }),
            number(fs.setxattr(ino, b"user.a", b"1", SetXattr::Any)),
            number(fs.removexattr(ino, b"user.b")),
            number(fs.link(ino, fs.root(), &[&name[..], b"-link"].concat())),
            number(fs.mkdir(dir, b"new", FOLDER)),
            number(fs.rmdir(dir, b"inner")),
            number(fs.unlink(fs.root(), &name)),
            number(fs.rmdir(fs.root(), &dir_name)),
        ]);
        for ino in [ino, dir] {
            if let Ok(now) = fs.inode_flags(ino) {
                said.push(number(fs.set_inode_flags(ino, now & !(IMMUTABLE | APPEND))));
            }
        }
        results.push((shown.0, shown.1, said));
    }
    results
}

/// Asked of the kernel this needs a capability of its own.
#[test]
fn data_takes_another_way_when_the_flag_for_that_changes() {
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &[]));
    let fs = ours.fs();
    let ino = file(fs, b"journalled", 0o644);
    let plain = fs.inode_flags(ino).unwrap();
    let fh = fs.open(ino, OpenFlags::READ | OpenFlags::WRITE).unwrap();
    for round in 0..6u8 {
        let flags = if round % 2 == 0 { plain | 0x4000 } else { plain };
        fs.set_inode_flags(ino, flags).unwrap();
        assert_eq!(fs.inode_flags(ino).unwrap(), flags);
        for at in [0, 5000, 40_000] {
            fs.write(fh, at, vec![round + 1; 6000].into()).unwrap();
        }
        assert_eq!(fs.read(fh, 40_000, 9000).unwrap(), vec![round + 1; 6000]);
    }
    fs.release(fh).unwrap();
    let image = ours.unmount();
    image.assert_clean();
    let kernel = Kernel::mount(image);
    let ino = kernel.fs().lookup(kernel.fs().root(), b"journalled").unwrap().ino;
    let fh = kernel.fs().open(ino, OpenFlags::READ).unwrap();
    assert_eq!(kernel.fs().read(fh, 0, 11_000).unwrap(), vec![6; 11_000]);
    assert_eq!(kernel.fs().read(fh, 11_000, 29_000).unwrap(), vec![0; 29_000]);
    assert_eq!(kernel.fs().read(fh, 40_000, 6000).unwrap(), vec![6; 6000]);
    kernel.fs().release(fh).unwrap();
}

#[test]
fn inode_flags_are_shown_and_obeyed_as_by_the_kernel() {
    let image = || Image::mke2fs(IMAGE_BYTES, &[]);
    let (ours, kernel) = (Ours::mount(image()), Kernel::mount(image()));
    for (ours, kernel) in flagged(ours.fs()).into_iter().zip(flagged(kernel.fs())) {
        assert_eq!(ours, kernel, "(ours, the kernel's)");
    }
    ours.unmount().assert_clean();
}

/// Which accesses move the time of access, beginning with one that is old.
fn accesses(access_times: AccessTimes) -> [bool; 4] {
    let options = MountOptions { access_times, ..MountOptions::default() };
    let ours = Ours::mount_as(Image::mke2fs(IMAGE_BYTES, &[]), options);
    let fs = ours.fs();
    let ino = file(fs, b"read", 0o644);
    let link = fs.symlink(fs.root(), b"link", b"target", FOLDER).unwrap().ino;
    let tick = || std::thread::sleep(std::time::Duration::from_millis(9));
    let moved = |ino, access: &dyn Fn()| {
        let before = fs.getattr(ino).unwrap().atime;
        tick();
        access();
        fs.getattr(ino).unwrap().atime != before
    };
    let read = || {
        let fh = fs.open(ino, OpenFlags::READ).unwrap();
        assert_eq!(fs.read(fh, 0, 8).unwrap().len(), 8);
        fs.release(fh).unwrap();
    };
    let list = || drop(fs.readdir(fs.root(), 0).unwrap());
    let follow = || drop(fs.readlink(link).unwrap());
    let moved =
        [moved(ino, &read), moved(ino, &read), moved(fs.root(), &list), moved(link, &follow)];
    ours.unmount().assert_clean();
    moved
}

#[test]
fn times_of_access_move_as_the_mount_options_want() {
    assert_eq!(accesses(AccessTimes::Never), [false; 4]);
    assert_eq!(accesses(AccessTimes::Relative), [true, false, true, true]);
    assert_eq!(accesses(AccessTimes::Always), [true; 4]);
}
