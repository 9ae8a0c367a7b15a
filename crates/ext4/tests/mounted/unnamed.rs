//! Files without a name, where data and storage are, and going down at once.

use steadfast_ext4::{DataMode, MountOptions};
use steadfast_vfs::{
    Fallocate, FileSystem, FsError, NewNode, OpenFlags, RenameFlags, SeekTo, Shutdown,
};

use crate::image::Image;
use crate::{RW, contents, create, mount, read_all};

#[test]
fn a_file_without_a_name_gets_one_or_goes() {
    for feature in ["^orphan_file", "orphan_file"] {
        let image = Image::mke2fs(48 << 20, &["-O", feature]);
        let fs = mount(&image, MountOptions::default());
        let free = fs.statfs().unwrap();
        let root = fs.root();
        let (attr, fh) = fs.tmpfile(root, NewNode::default(), RW).unwrap();
        assert_eq!(attr.nlink, 0);
        fs.write(fh, 0, contents(1, 0, 50_000)).unwrap();
        fs.fsync(fh, false).unwrap();
        fs.release(fh).unwrap();
        assert_eq!(fs.getattr(attr.ino), Err(FsError::NotFound));
        fs.sync().unwrap();
        assert_eq!(fs.statfs().unwrap(), free);
        let (attr, fh) = fs.tmpfile(root, NewNode::default(), RW).unwrap();
        fs.write(fh, 0, contents(2, 0, 50_000)).unwrap();
        assert_eq!(fs.link(attr.ino, root, b"named").unwrap().nlink, 1);
        assert_eq!(fs.link(attr.ino, root, b"again").unwrap().nlink, 2);
        fs.fsync(fh, false).unwrap();
        fs.release(fh).unwrap();
        // A file that has lost its last name gets none any more.
        let (attr, fh) = create(&*fs, "gone", RW);
        fs.unlink(root, b"gone").unwrap();
        assert_eq!(fs.link(attr.ino, root, b"back"), Err(FsError::NotFound));
        fs.release(fh).unwrap();
        let file = fs.lookup(root, b"named").unwrap().ino;
        assert_eq!(fs.tmpfile(file, NewNode::default(), RW), Err(FsError::NotDirectory));
        let (_, open) = fs.tmpfile(root, NewNode::default(), RW).unwrap();
        fs.write(open, 0, contents(3, 0, 50_000)).unwrap();
        fs.fsync(open, false).unwrap();
        drop(fs);
        // After a crash.
        let fs = mount(&image, MountOptions::default());
        assert_eq!(fs.statfs().unwrap().inodes_free, free.inodes_free - 1);
        fs.unmount().unwrap();
        image.assert_clean();
        assert_eq!(read_all(image.mount("ro").fs(), "named").len(), 50_000);
    }
}

#[test]
fn data_and_holes_are_found() {
    let data_modes =
        [(DataMode::Ordered, true), (DataMode::Ordered, false), (DataMode::Journal, true)];
    for (data, delayed_allocation) in data_modes {
        let image = Image::mke2fs(48 << 20, &["-b", "4096"]);
        let options = MountOptions { data, delayed_allocation, ..MountOptions::default() };
        let fs = mount(&image, options);
        let (attr, fh) = create(&*fs, "file", RW);
        fs.write(fh, 40_960, contents(1, 0, 8192)).unwrap();
        fs.write(fh, 100_000, contents(1, 0, 1)).unwrap();
        for synced in [false, true] {
            let seek = |at, to| fs.seek(fh, at, to);
            let what = format!("{data:?} {delayed_allocation} {synced}");
            assert_eq!(seek(0, SeekTo::Data), Ok(40_960), "{what}");
            assert_eq!(seek(0, SeekTo::Hole), Ok(0));
            assert_eq!(seek(41_000, SeekTo::Data), Ok(41_000));
            assert_eq!(seek(41_000, SeekTo::Hole), Ok(49_152));
            assert_eq!(seek(49_152, SeekTo::Data), Ok(98_304));
            assert_eq!(seek(98_304, SeekTo::Hole), Ok(100_001));
            assert_eq!(seek(100_000, SeekTo::Data), Ok(100_000));
            assert_eq!(seek(100_001, SeekTo::Data), Err(FsError::NoAddress));
            assert_eq!(seek(100_001, SeekTo::Hole), Err(FsError::NoAddress));
            let all = fs.extents(attr.ino, 0, u64::MAX).unwrap();
            let places: Vec<_> = all.iter().map(|e| (e.logical, e.len)).collect();
            assert_eq!(places, [(40_960, 8192), (98_304, 4096)], "{what}");
            if synced {
                assert!(all.iter().all(|e| !e.delayed && !e.unwritten && e.physical > 0));
            }
            fs.sync().unwrap();
        }
        // Unwritten space is a hole until it has data.
        fs.fallocate(fh, Fallocate::Allocate { keep_size: false }, 200_704, 40_960).unwrap();
        assert_eq!(fs.seek(fh, 110_592, SeekTo::Data), Err(FsError::NoAddress));
        assert_eq!(fs.seek(fh, 110_592, SeekTo::Hole), Ok(110_592));
        fs.write(fh, 208_896, contents(1, 0, 5)).unwrap();
        assert_eq!(fs.seek(fh, 110_592, SeekTo::Data), Ok(208_896));
        assert_eq!(fs.seek(fh, 208_896, SeekTo::Hole), Ok(212_992));
        let last = *fs.extents(attr.ino, 0, u64::MAX).unwrap().last().unwrap();
        assert!(last.unwritten && last.logical + last.len == 241_664, "{last:?}");
        fs.unmount().unwrap();
        image.assert_clean();
    }
}

#[test]
fn after_a_shutdown_nothing_works_and_the_disk_is_as_after_a_power_cut() {
    for how in [Shutdown::Now, Shutdown::FlushJournal, Shutdown::Flush] {
        for data in [DataMode::Ordered, DataMode::Journal] {
            let image = Image::mke2fs(48 << 20, &[]);
            let options = MountOptions { data, ..MountOptions::default() };
            let fs = mount(&image, options.clone());
            let root = fs.root();
            let (_, old) = create(&*fs, "old", RW);
            fs.write(old, 0, contents(1, 0, 20_000)).unwrap();
            fs.fsync(old, false).unwrap();
            let (attr, fh) = create(&*fs, "new", RW);
            fs.write(fh, 0, contents(2, 0, 20_000)).unwrap();
            let before = (how == Shutdown::Now).then(|| std::fs::read(image.path()).unwrap());
            fs.shutdown(how).unwrap();
            let is_eio = |what: &str, outcome: Result<(), FsError>| {
                assert!(matches!(outcome, Err(FsError::Io { .. })), "{what}: {outcome:?}");
            };
            is_eio("getattr", fs.getattr(attr.ino).map(drop));
            is_eio("lookup", fs.lookup(root, b"old").map(drop));
            is_eio("read", fs.read(old, 0, 10).map(drop));
            is_eio("write", fs.write(fh, 0, contents(1, 0, 9)).map(drop));
            is_eio("fsync", fs.fsync(fh, false));
            is_eio("sync", fs.sync());
            is_eio("open", fs.open(attr.ino, OpenFlags::READ).map(drop));
            is_eio("readdir", fs.readdir(root, 0).map(drop));
            is_eio("rename", fs.rename((root, b"old"), (root, b"x"), RenameFlags::empty()));
            is_eio("again", fs.shutdown(Shutdown::Now));
            fs.release(fh).unwrap();
            fs.release(old).unwrap();
            fs.unmount().unwrap();
            drop(fs);
            if let Some(before) = before {
                assert!(before == std::fs::read(image.path()).unwrap(), "nothing was written");
            }
            let fs = mount(&image, options);
            assert_eq!(read_all(&*fs, "old"), contents(1, 0, 20_000));
            match how {
                Shutdown::Now => assert_eq!(fs.lookup(root, b"new"), Err(FsError::NotFound)),
                Shutdown::FlushJournal => drop(fs.lookup(root, b"new").unwrap()),
                Shutdown::Flush => assert_eq!(read_all(&*fs, "new"), contents(2, 0, 20_000)),
            }
            fs.unmount().unwrap();
            image.assert_clean();
        }
    }
}
