//! What users and projects take of the disk, and may take.

use bytes::Bytes;
use steadfast_ext4::quota::{Quota, QuotaKind, QuotaLimits};
use steadfast_ext4::{DataMode, MountOptions};
use steadfast_vfs::{
    Fallocate, FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, SetAttr, TransactPolicy,
};

use crate::features::write;
use crate::image::Image;
use crate::stage::{Ours, Stage};

const IMAGE_BYTES: u64 = 48 << 20;
const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

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

/// Space that was promised to delayed data lets the same call take no more than that.
#[test]
fn what_is_promised_gives_no_more_than_was_asked_for() {
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &QUOTA));
    let fs = ours.shared();
    let limits = QuotaLimits { space_hard_kib: 1024, ..QuotaLimits::default() };
    fs.set_quota(QuotaKind::User, 77, limits).unwrap();
    let node = NewNode { uid: 77, ..NewNode::default() };
    let (_, fh) = fs.create(fs.root(), b"file", node, RW).unwrap();
    for delayed in [false, true] {
        if delayed {
            fs.write(fh, 0, Bytes::from_static(b"x")).unwrap();
        }
        let grown = fs.fallocate(fh, Fallocate::Allocate { keep_size: false }, 0, 8 << 20);
        assert_eq!(grown, Err(FsError::QuotaExceeded), "delayed: {delayed}");
        fs.fsync(fh, false).unwrap();
        let used = fs.quota(QuotaKind::User, 77).unwrap().space;
        assert!(used <= 1 << 20, "delayed: {delayed}: {used}");
    }
    fs.release(fh).unwrap();
    drop(fs);
    ours.unmount().assert_clean();
}

/// Data that was accepted is written back, whatever blocks of the tree that takes.
#[test]
fn a_full_quota_fails_no_write_back() {
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &QUOTA));
    let fs = ours.shared();
    let limits = QuotaLimits { space_hard_kib: 1024, ..QuotaLimits::default() };
    fs.set_quota(QuotaKind::User, 77, limits).unwrap();
    let node = NewNode { uid: 77, ..NewNode::default() };
    let (_, fh) = fs.create(fs.root(), b"file", node, RW).unwrap();
    fs.fallocate(fh, Fallocate::Allocate { keep_size: false }, 0, 1 << 20).unwrap();
    assert_eq!(fs.quota(QuotaKind::User, 77).unwrap().space, 1 << 20);
    for at in (0..400).step_by(2) {
        fs.write(fh, at << 10, Bytes::from(vec![1; 1024])).unwrap();
    }
    assert_eq!(fs.fsync(fh, false), Ok(()));
    assert!(fs.quota(QuotaKind::User, 77).unwrap().space > 1 << 20, "no block of the tree");
    let grown = fs.fallocate(fh, Fallocate::Allocate { keep_size: true }, 1 << 20, 1024);
    assert_eq!(grown, Err(FsError::QuotaExceeded));
    fs.release(fh).unwrap();
    drop(fs);
    ours.unmount().assert_clean();
}

/// What is only reserved for a file counts when its owner changes.
#[test]
fn nobody_is_given_more_than_his_quota() {
    let ours = Ours::mount(Image::mke2fs(IMAGE_BYTES, &QUOTA));
    let fs = ours.shared();
    let limits = QuotaLimits { space_hard_kib: 1024, ..QuotaLimits::default() };
    fs.set_quota(QuotaKind::User, 77, limits).unwrap();
    fs.set_quota(QuotaKind::Project, 7, limits).unwrap();
    for synced in [true, false] {
        let (attr, fh) = fs.create(fs.root(), b"file", NewNode::default(), RW).unwrap();
        fs.write(fh, 0, Bytes::from(vec![1; 2 << 20])).unwrap();
        if synced {
            fs.fsync(fh, false).unwrap();
        }
        assert_eq!(own(&*fs, attr.ino, 77, 0), Err(FsError::QuotaExceeded), "{synced}");
        assert_eq!(fs.set_project(attr.ino, 7), Err(FsError::QuotaExceeded), "{synced}");
        own(&*fs, attr.ino, 78, 0).unwrap();
        fs.release(fh).unwrap();
        fs.unlink(fs.root(), b"file").unwrap();
    }
    drop(fs);
    ours.unmount().assert_clean();
}

/// Writers that look at the same time what is left do not both get it.
#[test]
fn writers_share_what_is_left_of_a_quota() {
    for data in [DataMode::Ordered, DataMode::Transact] {
        let options = MountOptions { data, ..MountOptions::default() };
        let ours = Ours::mount_as(Image::mke2fs(IMAGE_BYTES, &QUOTA), options);
        let fs = ours.shared();
        let limits = QuotaLimits { space_hard_kib: 512, ..QuotaLimits::default() };
        for uid in 100..120 {
            fs.set_quota(QuotaKind::User, uid, limits).unwrap();
            let write = |writer: u64| {
                let node = NewNode { uid, ..NewNode::default() };
                let name = format!("file{writer} of {uid}");
                let (attr, fh) = fs.create(fs.root(), name.as_bytes(), node, RW).unwrap();
                let mut at = 0;
                while let Ok(written) = fs.write(fh, at, vec![1; 64 << 10].into()) {
                    at += written as u64;
                }
                fs.release(fh).unwrap();
                fs.getattr(attr.ino).unwrap().size
            };
            let sizes: u64 = std::thread::scope(|scope| {
                let writers: Vec<_> = (0..8).map(|n| scope.spawn(move || write(n))).collect();
                writers.into_iter().map(|writer| writer.join().unwrap()).sum()
            });
            assert!(sizes <= 512 << 10, "{data:?}: {sizes}");
        }
        fs.sync().unwrap();
        drop(fs);
        ours.unmount().assert_clean();
    }
}

/// What a rollback takes back is no longer held against quotas.
#[test]
fn a_rollback_gives_back_what_was_reserved() {
    let transact = TransactPolicy::MANUAL;
    let options = MountOptions { data: DataMode::Transact, transact, ..MountOptions::default() };
    let ours = Ours::mount_as(Image::mke2fs(IMAGE_BYTES, &QUOTA), options);
    let fs = ours.shared();
    let limits = QuotaLimits { space_hard_kib: 1024, ..QuotaLimits::default() };
    fs.set_quota(QuotaKind::User, 77, limits).unwrap();
    let node = NewNode { uid: 77, ..NewNode::default() };
    fs.create(fs.root(), b"file", node, RW).map(|(_, fh)| fs.release(fh).unwrap()).unwrap();
    fs.transact().unwrap();
    for _ in 0..3 {
        let ino = fs.lookup(fs.root(), b"file").unwrap().ino;
        let fh = fs.open(ino, RW).unwrap();
        assert_eq!(fs.write(fh, 0, Bytes::from(vec![1; 640 << 10])).unwrap(), 640 << 10);
        fs.release(fh).unwrap();
        fs.rollback().unwrap();
    }
    drop(fs);
    ours.unmount().assert_clean();
}

/// With data=transact too; what moves to a new place is not counted twice.
#[test]
fn quotas_hold_with_transaction_points() {
    let options = MountOptions { data: DataMode::Transact, ..MountOptions::default() };
    let ours = Ours::mount_as(Image::mke2fs(IMAGE_BYTES, &QUOTA), options);
    let fs = ours.shared();
    let limits = QuotaLimits { space_hard_kib: 1024, ..QuotaLimits::default() };
    fs.set_quota(QuotaKind::User, 77, limits).unwrap();
    let node = NewNode { uid: 77, ..NewNode::default() };
    let (_, fh) = fs.create(fs.root(), b"file", node, RW).unwrap();
    let data = Bytes::from(vec![1; 64 << 10]);
    let mut size = 0;
    let full = loop {
        match fs.write(fh, size, data.clone()) {
            Ok(written) => size += written as u64,
            Err(e) => break e,
        }
    };
    assert_eq!(full, FsError::QuotaExceeded);
    // Blocks of the map count too.
    assert!((1000 << 10..=1 << 20).contains(&size), "{size}");
    fs.fsync(fh, false).unwrap();
    fs.transact().unwrap();
    // All of it moves.
    for at in (0..size - (64 << 10)).step_by(64 << 10) {
        assert_eq!(fs.write(fh, at, Bytes::from(vec![2; 64 << 10])).unwrap(), 64 << 10);
    }
    fs.fsync(fh, false).unwrap();
    let used = fs.quota(QuotaKind::User, 77).unwrap().space;
    assert!(used <= 1 << 20, "{used}");
    // What a reservation took is given back once: all of it can be taken again.
    fs.setattr(
        fs.lookup(fs.root(), b"file").unwrap().ino,
        SetAttr { size: Some(0), ..SetAttr::default() },
    )
    .unwrap();
    fs.transact().unwrap();
    assert_eq!(fs.write(fh, 0, Bytes::from(vec![3; 900 << 10])).unwrap(), 900 << 10);
    fs.release(fh).unwrap();
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
    let crossing = fs.rename((fs.root(), b"outside"), (dir, b"in"), none);
    assert!(matches!(crossing, Err(FsError::CrossDevice { .. })));
    fs.rename((below, b"deep"), (fs.root(), b"out"), none).unwrap();
    drop(fs);
    ours.unmount().assert_clean();
}
