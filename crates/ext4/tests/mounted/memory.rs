//! What is kept in memory stays within the stated size; names that are found again are right.

use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_ext4::{DataMode, MountOptions};
use steadfast_vfs::{FileSystem, FsError, NewNode, OpenFlags, RenameFlags};

use crate::image::Image;
use crate::{RW, contents, create, mount};

#[test]
fn memory_is_bounded_by_the_stated_size() {
    const CACHE: u64 = 4 << 20;
    let image = Image::mke2fs(96 << 20, &["-b", "4096", "-N", "8000"]);
    let options = MountOptions { cache_bytes: Some(CACHE), ..MountOptions::default() };
    let fs = mount(&image, options);
    let mut most = 0;
    for i in 0..3000u64 {
        let dir = match fs.lookup(fs.root(), format!("d{}", i % 50).as_bytes()) {
            Ok(attr) => attr.ino,
            Err(FsError::NotFound) => {
                let name = format!("d{}", i % 50);
                fs.mkdir(fs.root(), name.as_bytes(), NewNode::default()).unwrap().ino
            }
            Err(e) => panic!("{e}"),
        };
        let name = format!("file{i}");
        let (attr, fh) = fs.create(dir, name.as_bytes(), NewNode::default(), RW).unwrap();
        fs.write(fh, 0, contents(i, 0, 9000)).unwrap();
        fs.release(fh).unwrap();
        if i % 7 == 0 {
            let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
            assert_eq!(fs.read(fh, 0, 9000).unwrap(), contents(i, 0, 9000));
            fs.release(fh).unwrap();
        }
        if i % 500 == 0 {
            fs.sync().unwrap();
        }
        most = most.max(fs.memory_bytes());
    }
    assert!(most <= CACHE, "{most}");
    assert!(most > CACHE / 2, "the size is used: {most}");
    fs.unmount().unwrap();
    image.assert_clean();
}

/// With data=journal the log is larger than all memory: what is in it and not home counts, and is
/// sent home before memory is exceeded. What is gone from memory is read from the device.
#[test]
fn journalled_data_counts_against_the_stated_size() {
    const CACHE: u64 = 8 << 20;
    const FILE: usize = 24 << 20;
    const PIECE: usize = 3 << 20;
    // Pages make room for what the journal has taken when the next of them comes.
    const AHEAD: u64 = 16 << 10;
    let journal_of = |block: &'static str| ["-b", block, "-J", "size=64", "-N", "64"];
    let by_cache = MountOptions { cache_bytes: Some(CACHE), ..MountOptions::default() };
    let mut by_pages = MountOptions::default();
    by_pages.page_cache.memory_bytes = CACHE;
    for (block, options) in [("4096", by_cache.clone()), ("1024", by_cache), ("4096", by_pages)] {
        let image = Image::mke2fs(160 << 20, &journal_of(block));
        let whole = options.cache_bytes.is_some();
        let fs = mount(&image, MountOptions { data: DataMode::Journal, ..options });
        let (_, fh) = create(&*fs, "large", RW);
        let used = || {
            let journal = fs.journal().unwrap();
            let ((now, most), pages) = (journal.image_bytes(), fs.page_cache().stats());
            assert!(now <= most && most <= CACHE / 2, "{now} of {most}");
            if whole { fs.memory_bytes() } else { now + pages.memory_bytes }
        };
        let mut most = 0;
        for at in (0..FILE).step_by(PIECE) {
            fs.write(fh, at as u64, contents(9, at as u64, PIECE)).unwrap();
            most = most.max(used());
            fs.fsync(fh, true).unwrap();
            most = most.max(used());
        }
        for at in (0..FILE).step_by(PIECE) {
            assert_eq!(fs.read(fh, at as u64, PIECE).unwrap(), contents(9, at as u64, PIECE));
            most = most.max(used());
        }
        assert!(most <= CACHE + AHEAD && most > CACHE / 2, "{block}: {most}");
        let journal = fs.journal().unwrap();
        let (stats, (_, log)) = (journal.stats(), journal.usage());
        assert!(stats.home_blocks > 0 && stats.logged_blocks < log.into(), "{stats:?}");
        fs.release(fh).unwrap();
        fs.unmount().unwrap();
        image.assert_clean();
    }
}

#[test]
fn names_in_memory_follow_every_change() {
    let image = Image::mke2fs(48 << 20, &[]);
    let fs = mount(&image, MountOptions::default());
    let root = fs.root();
    let find = |name: &[u8]| fs.lookup(root, name).map(|a| a.ino);
    for _ in 0..2 {
        assert_eq!(find(b"a"), Err(FsError::NotFound));
    }
    let make = |name: &str| {
        let (attr, fh) = create(&*fs, name, RW);
        fs.release(fh).unwrap();
        attr
    };
    let (a, b) = (make("a"), make("b"));
    assert_eq!((find(b"a"), find(b"b")), (Ok(a.ino), Ok(b.ino)));
    fs.rename((root, b"a"), (root, b"b"), RenameFlags::EXCHANGE).unwrap();
    assert_eq!((find(b"a"), find(b"b")), (Ok(b.ino), Ok(a.ino)));
    fs.rename((root, b"a"), (root, b"c"), RenameFlags::NO_REPLACE).unwrap();
    assert_eq!((find(b"a"), find(b"c")), (Err(FsError::NotFound), Ok(b.ino)));
    fs.rename((root, b"b"), (root, b"c"), RenameFlags::empty()).unwrap();
    assert_eq!((find(b"b"), find(b"c")), (Err(FsError::NotFound), Ok(a.ino)));
    fs.link(a.ino, root, b"b").unwrap();
    fs.unlink(root, b"c").unwrap();
    assert_eq!((find(b"b"), find(b"c")), (Ok(a.ino), Err(FsError::NotFound)));
    // A directory's number becomes a file's: nothing is found in that.
    let dir = fs.mkdir(root, b"dir", NewNode::default()).unwrap().ino;
    assert_eq!(fs.lookup(dir, b"x").map(drop), Err(FsError::NotFound));
    fs.rmdir(root, b"dir").unwrap();
    assert_eq!(fs.lookup(dir, b"x").map(drop), Err(FsError::NotFound));
    let reused = (0..20).map(|i| make(&format!("f{i}")).ino).any(|i| i == dir);
    if reused {
        assert_eq!(fs.lookup(dir, b"x").map(drop), Err(FsError::NotDirectory));
    }
    fs.unmount().unwrap();
    image.assert_clean();
}

/// While a name goes to and fro, who looks finds one inode under one of the two names, never the
/// old name again after the rename has returned.
#[test]
fn a_lookup_beside_renames_brings_no_name_back() {
    let image = Image::mke2fs(48 << 20, &[]);
    let fs = mount(&image, MountOptions::default());
    let root = fs.root();
    let (attr, fh) = create(&*fs, "here", RW);
    fs.release(fh).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    for name in [b"here".as_slice(), b"there"] {
                        match fs.lookup(root, name) {
                            Ok(found) => assert_eq!(found.ino, attr.ino),
                            Err(e) => assert_eq!(e, FsError::NotFound),
                        }
                    }
                }
            });
        }
        let renames = scope.spawn(|| {
            for i in 0..2000 {
                let (from, to): (&[u8], &[u8]) =
                    if i % 2 == 0 { (b"here", b"there") } else { (b"there", b"here") };
                fs.rename((root, from), (root, to), RenameFlags::empty()).unwrap();
                assert_eq!(fs.lookup(root, from).map(drop), Err(FsError::NotFound));
                assert_eq!(fs.lookup(root, to).map(|a| a.ino), Ok(attr.ino));
            }
        });
        // Also if they failed: the scope waits for those who look.
        let renamed = renames.join();
        done.store(true, Ordering::Release);
        renamed.unwrap();
    });
    fs.unmount().unwrap();
    image.assert_clean();
}
