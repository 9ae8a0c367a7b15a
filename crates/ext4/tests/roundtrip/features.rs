//! Features of inodes that few file systems have.

use bytes::Bytes;
use steadfast_ext4::quota::{Quota, QuotaKind, QuotaLimits};
use steadfast_vfs::{
    Fallocate, FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, SetAttr,
};

use crate::image::Image;
use crate::stage::{Kernel, Ours, Stage};

const IMAGE_BYTES: u64 = 48 << 20;
const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

/// A verity file's hashes lie beyond its end; nobody can enable it here (the kernel has to be
/// built for it), so debugfs makes one of an ordinary file.
#[test]
fn verity_files_are_read_and_never_written() {
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &["-b", "4096", "-O", "verity"]));
    let fs = ours.fs();
    let (attr, fh) = fs.create(fs.root(), b"file", NewNode::default(), RW).unwrap();
    let data = Bytes::from(vec![7; 100_000]);
    assert_eq!(fs.write(fh, 0, data.clone()).unwrap(), data.len());
    fs.release(fh).unwrap();
    let image = ours.unmount();
    image.debugfs("sif file size 30000");
    image.debugfs("sif file flags 0x180000");
    image.assert_clean();
    let ours = Ours::mount(image);
    let fs = ours.fs();
    let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
    assert_eq!(fs.read(fh, 0, 200_000).unwrap(), data.slice(..30_000));
    fs.release(fh).unwrap();
    let refused = |e: FsError| assert!(matches!(e, FsError::NotPermitted { .. }), "{e}");
    refused(fs.open(attr.ino, RW).unwrap_err());
    refused(fs.setattr(attr.ino, SetAttr { size: Some(1), ..SetAttr::default() }).unwrap_err());
    fs.setattr(attr.ino, SetAttr { mode: Some(0o600), ..SetAttr::default() }).unwrap();
    let image = ours.unmount();
    image.assert_clean();
    assert!(image.debugfs_says("stat file").contains("Blockcount: 200"));
    let ours = Ours::mount(image);
    ours.fs().unlink(ours.fs().root(), b"file").unwrap();
    ours.unmount().assert_clean();
}

fn write(fs: &dyn FileSystem, name: &str, offset: u64, data: &[u8]) -> Ino {
    let (ino, fh) = match fs.lookup(fs.root(), name.as_bytes()) {
        Ok(attr) => (attr.ino, fs.open(attr.ino, RW).unwrap()),
        Err(_) => {
            let (attr, fh) = fs.create(fs.root(), name.as_bytes(), NewNode::default(), RW).unwrap();
            (attr.ino, fh)
        }
    };
    assert_eq!(fs.write(fh, offset, Bytes::copy_from_slice(data)).unwrap(), data.len());
    fs.release(fh).unwrap();
    ino
}

fn read(fs: &dyn FileSystem, name: &str) -> Bytes {
    let ino = fs.lookup(fs.root(), name.as_bytes()).unwrap().ino;
    let fh = fs.open(ino, OpenFlags::READ).unwrap();
    let data = fs.read(fh, 0, 1 << 20).unwrap();
    fs.release(fh).unwrap();
    data
}

fn set_size(fs: &dyn FileSystem, name: &str, size: u64) {
    let ino = fs.lookup(fs.root(), name.as_bytes()).unwrap().ino;
    fs.setattr(ino, SetAttr { size: Some(size), ..SetAttr::default() }).unwrap();
}

/// The kernel leaves contents in the inode of a file that is cut longer; we read them, and go on.
#[test]
fn contents_stay_in_the_inode_and_come_out_of_it() {
    let options = ["-O", "inline_data", "-b", "4096"];
    let kernel = Kernel::mount(Image::mke2fs(IMAGE_BYTES, &options));
    let fs = kernel.fs();
    for i in 0..12 {
        write(fs, &format!("f{i}"), 0, &vec![b'k'; 10 * i + 1]);
    }
    set_size(fs, "f3", 70);
    set_size(fs, "f4", 20_000);
    set_size(fs, "f5", 5);
    let mut ours = Ours::mount(kernel.unmount());
    let fs = ours.fs();
    let mut want = vec![b'k'; 41];
    want.resize(20_000, 0);
    assert_eq!(read(fs, "f4"), want);
    assert_eq!(read(fs, "f5"), &b"kkkkk"[..]);
    write(fs, "f9", 0, b"x");
    write(fs, "f6", 0, b"x");
    write(fs, "f4", 10_000, b"far");
    want[10_000..10_003].copy_from_slice(b"far");
    let ino = write(fs, "f6", 61, b"tail");
    let fh = fs.open(ino, RW).unwrap();
    fs.fallocate(fh, Fallocate::Allocate { keep_size: true }, 0, 10_000).unwrap();
    fs.release(fh).unwrap();
    for i in 0..30 {
        write(fs, "g", i * 9, b"123456789");
    }
    ours.remount();
    let fs = ours.fs();
    assert_eq!(read(fs, "f4"), want);
    let f6 = [&b"x"[..], &[b'k'; 60], b"tail"].concat();
    assert_eq!(read(fs, "f6"), f6);
    assert_eq!(read(fs, "g"), b"123456789".repeat(30));
    let image = ours.unmount();
    image.assert_clean();
    assert!(image.debugfs_says("stat f9").contains("Flags: 0x10000000"));
    assert!(image.debugfs_says("stat f6").contains("Flags: 0x80000"));
    let kernel = Kernel::mount(image);
    let fs = kernel.fs();
    assert_eq!((read(fs, "f4"), read(fs, "f6")), (want.into(), f6.into()));
    assert_eq!(read(fs, "f3").len(), 70);
    write(fs, "f0", 1, &[b'y'; 300]);
    kernel.unmount().assert_clean();
}

const QUOTA: [&str; 6] =
    ["-b", "1024", "-O", "quota,project", "-E", "quotatype=usrquota:grpquota:prjquota"];

fn own(fs: &dyn FileSystem, ino: Ino, uid: u32, gid: u32) -> Result<(), FsError> {
    let set = SetAttr { uid: Some(uid), gid: Some(gid), ..SetAttr::default() };
    fs.setattr(ino, set).map(drop)
}

/// Many ids, so that the tree of the quota files grows. The kernels that run these tests are
/// often built without quota: e2fsck and debugfs judge.
#[test]
fn quota_is_right_however_many_ids_there_are() {
    let mut ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &QUOTA));
    let fs = ours.shared();
    for i in 0..200u32 {
        let ino = write(&*fs, &format!("f{i}"), 0, &vec![b'q'; 100 * i as usize + 1]);
        own(&*fs, ino, 1000 + i * 7919, i << 20).unwrap();
        fs.set_project(ino, i % 5).unwrap();
    }
    for i in (0..200).step_by(3) {
        fs.unlink(fs.root(), format!("f{i}").as_bytes()).unwrap();
    }
    fs.sync().unwrap();
    let quota = fs.quota(QuotaKind::User, 1000 + 7919).unwrap();
    assert_eq!((quota.space, quota.inodes), (1024, 1));
    assert_eq!(fs.quota(QuotaKind::User, 1000).unwrap(), Quota::default());
    drop(fs);
    ours.remount();
    let image = ours.unmount();
    image.assert_clean();
    let said = image.debugfs_says("list_quota user");
    let line = said.lines().find(|l| l.split_whitespace().next() == Some("8919"));
    let numbers: Vec<&str> = line.expect(&said).split_whitespace().collect();
    assert_eq!((numbers[1], numbers[4]), ("1024", "1"), "{numbers:?}");
}

#[test]
fn nobody_gets_more_than_his_quota() {
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &QUOTA));
    let fs = ours.shared();
    let limits = QuotaLimits { space_hard_kib: 20, inodes_hard: 3, ..QuotaLimits::default() };
    fs.set_quota(QuotaKind::User, 77, limits).unwrap();
    let node = NewNode { uid: 77, ..NewNode::default() };
    let mut made = Vec::new();
    for name in [b"a", b"b", b"c"] {
        made.push(fs.create(fs.root(), name, node, RW).unwrap());
    }
    let one_more = fs.create(fs.root(), b"d", node, RW).map(drop);
    assert_eq!(one_more, Err(FsError::QuotaExceeded));
    let other = write(&*fs, "other", 0, &[1; 30_000]);
    assert_eq!(own(&*fs, other, 77, 0), Err(FsError::QuotaExceeded));
    // A write is short, the next one fails; what was taken stays.
    let fh = made[0].1;
    assert_eq!(fs.write(fh, 0, vec![1; 15 << 10].into()).unwrap(), 15 << 10);
    assert_eq!(fs.write(made[1].1, 0, vec![2; 15 << 10].into()).unwrap(), 5 << 10);
    assert_eq!(fs.write(made[2].1, 0, vec![3; 10].into()), Err(FsError::QuotaExceeded));
    made.iter().for_each(|(_, fh)| fs.fsync(*fh, false).unwrap());
    let quota = fs.quota(QuotaKind::User, 77).unwrap();
    assert_eq!((quota.space, quota.inodes, quota.limits), (20 << 10, 3, limits));
    made.iter().for_each(|(_, fh)| fs.release(*fh).unwrap());
    fs.unlink(fs.root(), b"a").unwrap();
    write(&*fs, "c", 0, &[3; 9000]);
    drop(fs);
    ours.unmount().assert_clean();
}

/// What is written and has no place yet counts for the owner that the file has by now.
#[test]
fn what_is_only_reserved_goes_to_a_new_owner() {
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &QUOTA));
    let fs = ours.shared();
    let limits = QuotaLimits { space_hard_kib: 20, ..QuotaLimits::default() };
    [77, 78].iter().for_each(|id| fs.set_quota(QuotaKind::User, *id, limits).unwrap());
    let create = |name: &[u8], uid| {
        let node = NewNode { uid, ..NewNode::default() };
        fs.create(fs.root(), name, node, RW).unwrap()
    };
    let (first, one) = create(b"one", 77);
    assert_eq!(fs.write(one, 0, vec![1; 15 << 10].into()).unwrap(), 15 << 10);
    own(&*fs, first.ino, 78, 0).unwrap();
    // All of his space for the one, and for the other what is left.
    let ((_, two), (_, three)) = (create(b"two", 77), create(b"three", 78));
    assert_eq!(fs.write(two, 0, vec![2; 20 << 10].into()).unwrap(), 20 << 10);
    assert_eq!(fs.write(three, 0, vec![3; 20 << 10].into()).unwrap(), 5 << 10);
    fs.sync().unwrap();
    for id in [77, 78] {
        assert_eq!(fs.quota(QuotaKind::User, id).unwrap().space, 20 << 10, "{id}");
    }
    [one, two, three].iter().for_each(|fh| fs.release(*fh).unwrap());
    drop(fs);
    ours.unmount().assert_clean();
}

/// What is in a directory with the project-inherit flag is of its project, and stays in it.
#[test]
fn projects_are_inherited() {
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &QUOTA));
    let fs = ours.fs();
    fs.mkdir(fs.root(), b"dir", NewNode::default()).unwrap();
    let image = ours.unmount();
    // PROJINHERIT, EXTENTS.
    image.debugfs("sif dir flags 0x20080000");
    let ours = Ours::mount(image);
    let fs = ours.shared();
    let dir = fs.lookup(fs.root(), b"dir").unwrap().ino;
    fs.set_project(dir, 42).unwrap();
    let below = fs.mkdir(dir, b"below", NewNode::default()).unwrap().ino;
    let (deep, fh) = fs.create(below, b"deep", NewNode::default(), RW).unwrap();
    fs.release(fh).unwrap();
    assert_eq!((fs.project(below).unwrap(), fs.project(deep.ino).unwrap()), (42, 42));
    assert_eq!(fs.quota(QuotaKind::Project, 42).unwrap().inodes, 3);
    let outside = write(&*fs, "outside", 0, b"x");
    let crossing = fs.link(outside, below, b"in").map(drop);
    assert!(matches!(crossing, Err(FsError::CrossDevice { .. })));
    let none = RenameFlags::empty();
    let crossing = fs.rename(fs.root(), b"outside", dir, b"in", none);
    assert!(matches!(crossing, Err(FsError::CrossDevice { .. })));
    fs.rename(below, b"deep", fs.root(), b"out", none).unwrap();
    drop(fs);
    ours.unmount().assert_clean();
}
