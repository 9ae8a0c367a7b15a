//! Bytes of files: holes, sizes, direct and cached together, the layout on the device.

use bytes::Bytes;
use steadfast_ext4::MountOptions;
use steadfast_runtime::spawn;
use steadfast_vfs::{FileSystem, FsError, OpenFlags, SetAttr, SetTime, Timestamp};

use crate::image::Image;
use crate::{RW, contents, create, mount, read_all};

#[test]
fn direct_and_cached_see_each_other() {
    let image = Image::mke2fs(48 << 20, &["-b", "4096"]);
    let fs = mount(&image, MountOptions::default());
    let (attr, cached) = create(&*fs, "file", RW);
    let direct = fs.open(attr.ino, RW | OpenFlags::DIRECT).unwrap();
    fs.write(cached, 0, contents(1, 0, 100_000)).unwrap();
    assert_eq!(fs.read(direct, 0, 98_304).unwrap(), contents(1, 0, 98_304));
    assert_eq!(fs.read(direct, 98_304, 4096).unwrap(), contents(1, 98_304, 1696));
    fs.write(direct, 8192, contents(2, 8192, 16384)).unwrap();
    assert_eq!(fs.read(cached, 8192, 16384).unwrap(), contents(2, 8192, 16384));
    assert_eq!(fs.read(cached, 0, 8192).unwrap(), contents(1, 0, 8192));
    // Beyond the end, leaving a hole; then into the hole.
    fs.write(direct, 1 << 20, contents(3, 1 << 20, 65536)).unwrap();
    assert_eq!(fs.getattr(attr.ino).unwrap().size, (1 << 20) + 65536);
    assert_eq!(fs.read(direct, 500_000 / 512 * 512, 1024).unwrap(), vec![0; 1024]);
    fs.write(direct, 512 << 10, contents(4, 512 << 10, 4096)).unwrap();
    assert_eq!(fs.read(cached, 512 << 10, 4096).unwrap(), contents(4, 512 << 10, 4096));
    assert_eq!(fs.read(cached, (512 << 10) + 4096, 4096).unwrap(), vec![0; 4096]);
    // Whole sectors only; parts of blocks go through the cache and are on the device after.
    let odd = fs.write(direct, 100, Bytes::from_static(b"x"));
    assert!(matches!(odd, Err(FsError::Invalid { .. })));
    fs.write(direct, 512, contents(5, 512, 1024)).unwrap();
    assert_eq!(fs.read(direct, 512, 1024).unwrap(), contents(5, 512, 1024));
    assert_eq!(fs.page_cache().dirty_bytes(), 0);
    assert!(matches!(fs.read(direct, 1, 512), Err(FsError::Invalid { .. })));
    fs.unmount().unwrap();
    image.assert_clean();
}

/// Holes, data that is dirty, in place, in the log or in the inode: into memory comes what a read
/// gives, by every way that it may take.
#[test]
fn a_read_into_memory_is_the_same_read() {
    use steadfast_ext4::DataMode;
    for (mode, features) in [
        (DataMode::Ordered, "none"),
        (DataMode::Ordered, "inline_data"),
        (DataMode::Journal, "none"),
    ] {
        let image = Image::mke2fs(48 << 20, &["-b", "1024", "-O", features]);
        let fs = mount(&image, MountOptions { data: mode, ..MountOptions::default() });
        let (attr, writer) = create(&*fs, "file", RW);
        let reader = fs.open(attr.ino, OpenFlags::READ | OpenFlags::CALLER_CACHES).unwrap();
        let same = |when: &str| {
            for (offset, len) in [
                (0, 100),
                (0, 128 << 10),
                (128 << 10, 256 << 10),
                (4096, 1 << 20),
                (1 << 20, 512 << 10),
                (3 << 20, 128 << 10),
                (4095, 200 << 10),
                (u64::MAX >> 1, 128 << 10),
            ] {
                let (mut out, expected) = (vec![0xa5; len], fs.read_as(reader, offset, len, false));
                let read = fs.read_into(reader, offset, &mut out, false);
                match (read, expected) {
                    (Ok(n), Ok(bytes)) => {
                        assert_eq!(out[..n], bytes, "{mode:?} {when} {offset} {len}");
                    }
                    (read, expected) => assert_eq!(read.is_err(), expected.is_err(), "{read:?}"),
                }
            }
        };
        fs.write(writer, 0, contents(9, 0, 60)).unwrap();
        same("short");
        fs.write(writer, 0, contents(1, 0, 2 << 20)).unwrap();
        same("dirty");
        fs.fsync(writer, false).unwrap();
        same("synced");
        fs.write(writer, 130_000, contents(2, 130_000, 70_000)).unwrap();
        same("dirty in part");
        fs.write(writer, (3 << 20) + 5, contents(3, 0, 100_000)).unwrap();
        fs.sync().unwrap();
        same("with a hole");
        fs.unmount().unwrap();
        let again = image.mount("ro");
        let fs = again.fs();
        let ino = fs.lookup(fs.root(), b"file").unwrap().ino;
        let fh = fs.open(ino, OpenFlags::READ | OpenFlags::CALLER_CACHES).unwrap();
        let mut out = vec![0; 1 << 20];
        assert_eq!(fs.read_into(fh, 0, &mut out, false), Ok(1 << 20));
        assert_eq!(out, fs.read(fh, 0, 1 << 20).unwrap());
    }
}

#[test]
fn a_file_that_shrinks_and_grows_shows_zeros() {
    let image = Image::mke2fs(48 << 20, &[]);
    let fs = mount(&image, MountOptions::default());
    let (attr, fh) = create(&*fs, "file", RW);
    fs.write(fh, 0, contents(1, 0, 50_000)).unwrap();
    fs.sync().unwrap();
    let resize = |size| {
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        assert_eq!(fs.setattr(attr.ino, set).unwrap().size, size);
    };
    resize(10_001);
    resize(60_000);
    let mut expected = contents(1, 0, 10_001).to_vec();
    expected.resize(60_000, 0);
    assert_eq!(read_all(&*fs, "file"), expected);
    fs.unmount().unwrap();
    image.assert_clean();
    let mounted = image.mount("ro");
    assert_eq!(read_all(mounted.fs(), "file"), expected);
}

#[test]
fn sizes_have_an_end() {
    let image = Image::mke2fs(48 << 20, &["-b", "4096"]);
    let fs = mount(&image, MountOptions::default());
    let (attr, fh) = create(&*fs, "file", RW);
    let last = ((1u64 << 32) - 1) * 4096;
    assert_eq!(fs.write(fh, last, Bytes::from_static(b"x")), Err(FsError::FileTooLarge));
    // Negative as an offset: no place in any file.
    for at in [1 << 63, u64::MAX - 3] {
        let refused = fs.write(fh, at, contents(1, 0, 9));
        assert!(matches!(refused, Err(FsError::Invalid { .. })), "{refused:?}");
        assert!(matches!(fs.read(fh, at, 9), Err(FsError::Invalid { .. })));
        let set = SetAttr { size: Some(at), ..SetAttr::default() };
        assert!(matches!(fs.setattr(attr.ino, set), Err(FsError::Invalid { .. })));
    }
    let set = SetAttr { size: Some(last + 1), ..SetAttr::default() };
    assert_eq!(fs.setattr(attr.ino, set), Err(FsError::FileTooLarge));
    assert_eq!(fs.write(fh, last - 1, Bytes::from_static(b"x")), Ok(1));
    assert_eq!(fs.read(fh, last - 2, 100).unwrap(), Bytes::from_static(b"\0x"));
    fs.unmount().unwrap();
    image.assert_clean();
}

#[test]
fn attributes_are_kept() {
    let image = Image::mke2fs(48 << 20, &[]);
    let fs = mount(&image, MountOptions::default());
    let (attr, _) = create(&*fs, "file", RW);
    let time = Timestamp { secs: 5_000_000_000, nanos: 123_456_789 };
    let set = SetAttr {
        mode: Some(0o4711),
        uid: Some(70_000),
        gid: Some(80_000),
        atime: Some(SetTime::At(time)),
        mtime: Some(SetTime::Now),
        ..SetAttr::default()
    };
    let after = fs.setattr(attr.ino, set).unwrap();
    assert_eq!((after.mode, after.uid, after.gid, after.atime), (0o4711, 70_000, 80_000, time));
    fs.unmount().unwrap();
    image.assert_clean();
    let mounted = image.mount("ro");
    let seen = mounted.fs().lookup(mounted.fs().root(), b"file").unwrap();
    assert_eq!((seen.mode, seen.uid, seen.gid, seen.atime), (0o4711, 70_000, 80_000, time));
    assert_eq!((seen.mtime, seen.ctime), (after.mtime, after.ctime));
}

#[test]
fn files_written_side_by_side_stay_in_long_runs() {
    let image = Image::mke2fs(256 << 20, &[]);
    let fs = mount(&image, MountOptions::default());
    for direct in [false, true] {
        let flags = if direct { RW | OpenFlags::DIRECT } else { RW };
        let tasks: Vec<_> = (0..3)
            .map(|i| {
                let fs = fs.clone();
                spawn("writer", move || {
                    let (attr, fh) = create(&*fs, &format!("{direct}{i}"), flags);
                    for n in 0..96u64 {
                        fs.write(fh, n << 18, contents(i, n << 18, 1 << 18)).unwrap();
                    }
                    fs.fsync(fh, false).unwrap();
                    fs.release(fh).unwrap();
                    attr.ino
                })
            })
            .collect();
        for task in tasks {
            let ino = task.join().unwrap();
            let txn = fs.look();
            let (mut extents, mut at) = (0, 0);
            let no = steadfast_ext4_format::ondisk::InodeNo(ino.0 as u32);
            while let Some(e) = steadfast_ext4::next_extent(&txn, no, at).unwrap() {
                (extents, at) = (extents + 1, e.end());
            }
            assert!(extents <= 8, "24 MiB in {extents} extents, direct: {direct}");
        }
    }
    fs.unmount().unwrap();
    image.assert_clean();
}

#[test]
fn old_inodes_have_whole_seconds() {
    let image = Image::mke2fs(48 << 20, &["-I", "128", "-b", "1024"]);
    let fs = mount(&image, MountOptions::default());
    let (attr, fh) = create(&*fs, "file", RW);
    fs.write(fh, 0, contents(1, 0, 70_000)).unwrap();
    assert_eq!(fs.getattr(attr.ino).unwrap().mtime.nanos, 0);
    fs.unmount().unwrap();
    image.assert_clean();
    let mounted = image.mount("ro");
    assert_eq!(read_all(mounted.fs(), "file"), contents(1, 0, 70_000));
}
