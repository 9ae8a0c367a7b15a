//! Journals that a crash leaves: ours for e2fsck and the kernel, the kernel's for us.

use std::fs;

use steadfast_ext4::{DataMode, MountOptions};
use steadfast_vfs::{FileSystem, FsError, OpenFlags, SetAttr};

use crate::image::Image;
use crate::{RW, contents, create, mount, read_all};

/// Makes files and makes them durable, then makes more and lets go of everything.
fn crash(image: &Image, data: DataMode) {
    let fs = mount(image, MountOptions { data, ..MountOptions::default() });
    for i in 0..30u64 {
        let (_, fh) = create(&*fs, &format!("kept{i}"), RW);
        fs.write(fh, 0, contents(i, 0, 10_000)).unwrap();
        fs.fsync(fh, false).unwrap();
        fs.release(fh).unwrap();
    }
    fs.unlink(fs.root(), b"kept0").unwrap();
    fs.sync().unwrap();
    for i in 0..30 {
        create(&*fs, &format!("lost{i}"), RW);
    }
}

fn assert_kept(fs: &dyn FileSystem) {
    for i in 1..30 {
        let data = read_all(fs, &format!("kept{i}"));
        assert_eq!(data, contents(i, 0, 10_000), "kept{i}");
    }
    assert_eq!(fs.lookup(fs.root(), b"kept0"), Err(FsError::NotFound));
    assert_eq!(fs.lookup(fs.root(), b"lost0"), Err(FsError::NotFound));
}

const MODES: [DataMode; 3] = [DataMode::Ordered, DataMode::Writeback, DataMode::Journal];

#[test]
fn our_journal_is_replayed_by_the_kernel() {
    for data in MODES {
        let image = Image::mke2fs(48 << 20, &[]);
        crash(&image, data);
        let mount = image.mount("rw");
        assert_kept(mount.fs());
        drop(mount);
        image.assert_clean();
    }
}

#[test]
fn our_journal_is_replayed_by_e2fsck() {
    for data in MODES {
        let image = Image::mke2fs(48 << 20, &["-O", "metadata_csum_seed,orphan_file"]);
        crash(&image, data);
        image.repair();
        image.assert_clean();
        let fs = mount(&image, MountOptions::default());
        assert_kept(&*fs);
        fs.unmount().unwrap();
    }
}

#[test]
fn our_journal_is_replayed_by_us_and_in_memory_for_a_read_only_mount() {
    for data in MODES {
        let image = Image::mke2fs(48 << 20, &[]);
        crash(&image, data);
        let before = fs::read(image.path()).unwrap();
        let read_only = MountOptions { read_only: true, ..MountOptions::default() };
        let ro = mount(&image, read_only);
        assert_kept(&*ro);
        assert!(matches!(
            ro.create(ro.root(), b"no", Default::default(), RW),
            Err(FsError::ReadOnly { .. })
        ));
        ro.unmount().unwrap();
        drop(ro);
        assert!(before == fs::read(image.path()).unwrap(), "a read-only mount has written");
        let rw = mount(&image, MountOptions::default());
        assert_kept(&*rw);
        rw.unmount().unwrap();
        image.assert_clean();
    }
}

#[test]
fn the_kernels_journal_is_replayed_by_us() {
    for data in ["ordered", "journal", "writeback"] {
        let image = Image::mke2fs(48 << 20, &[]);
        let copy = Image::mke2fs(48 << 20, &[]);
        let mount_point = image.mount(&format!("rw,data={data}"));
        for i in 0..50 {
            let path = mount_point.folder().join(format!("file{i}"));
            fs::write(&path, contents(i, 0, 20_000)).unwrap();
            fs::File::open(&path).unwrap().sync_all().unwrap();
        }
        fs::remove_file(mount_point.folder().join("file7")).unwrap();
        fs::File::open(mount_point.folder()).unwrap().sync_all().unwrap();
        // The image as it is now, in use: a crash.
        fs::copy(image.path(), copy.path()).unwrap();
        drop(mount_point);
        let ours = mount(&copy, MountOptions::default());
        for i in (0..50).filter(|i| *i != 7) {
            assert_eq!(read_all(&*ours, &format!("file{i}")), contents(i, 0, 20_000), "{data} {i}");
        }
        assert_eq!(ours.lookup(ours.root(), b"file7"), Err(FsError::NotFound));
        ours.unmount().unwrap();
        copy.assert_clean();
    }
}

/// Delayed data makes a file longer than it is on disk. What is written directly before that data
/// must not lie beyond the size on disk when the power goes.
#[test]
fn a_direct_write_before_delayed_data() {
    let image = Image::mke2fs(16 << 20, &["-b", "4096"]);
    let fs = mount(&image, MountOptions::default());
    let (attr, fh) = create(&*fs, "file", RW);
    fs.write(fh, 65536, contents(1, 0, 4096)).unwrap();
    let direct = fs.open(attr.ino, RW | OpenFlags::DIRECT).unwrap();
    fs.write(direct, 0, contents(2, 0, 28672)).unwrap();
    // Another file's fsync commits what happened to this one.
    let (_, other) = create(&*fs, "other", RW);
    fs.fsync(other, false).unwrap();
    drop(fs);
    let fs = mount(&image, MountOptions::default());
    let found = read_all(&*fs, "file");
    assert!(found.len() >= 28672 && found[..28672] == contents(2, 0, 28672));
    fs.unmount().unwrap();
    image.assert_clean();
}

/// A file without a name that is cut or written to is still to be deleted after a crash.
#[test]
fn a_nameless_file_stays_an_orphan() {
    let image = Image::mke2fs(16 << 20, &["-b", "4096"]);
    let fs = mount(&image, MountOptions::default());
    let free = fs.statfs().unwrap().inodes_free;
    let (attr, fh) = create(&*fs, "file", RW | OpenFlags::DIRECT);
    fs.write(fh, 0, contents(1, 0, 16384)).unwrap();
    fs.unlink(fs.root(), b"file").unwrap();
    fs.write(fh, 16384, contents(1, 0, 16384)).unwrap();
    let set = SetAttr { size: Some(4096), ..SetAttr::default() };
    fs.setattr(attr.ino, set).unwrap();
    let (_, other) = create(&*fs, "other", RW);
    fs.fsync(other, false).unwrap();
    drop(fs);
    let fs = mount(&image, MountOptions::default());
    assert_eq!(fs.statfs().unwrap().inodes_free, free - 1);
    fs.unmount().unwrap();
    image.assert_clean();
}
