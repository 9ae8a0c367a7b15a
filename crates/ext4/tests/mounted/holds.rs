//! Inodes that a front end holds by their numbers when their last name goes: the kernel's part of a
//! mount, played. What a power cut leaves of them is tried in `power_cut/last_names.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_devices::source::{Pmem, PmemOptions};
use steadfast_ext4::{DataMode, Dax, Ext4, MountOptions};
use steadfast_vfs::{
    Fallocate, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags, SetAttr,
    SetTime, SetXattr, StatFs, TransactMask, TransactPolicy,
};

use crate::image::Image;
use crate::{RW, contents, mount, read_all};

const MIB: u64 = 1 << 20;
const NODE: NewNode = NewNode { mode: 0o644, uid: 0, gid: 0, umask: 0 };

/// How a file system is made, and mounted.
struct Setup {
    what: &'static str,
    made: &'static [&'static str],
    options: MountOptions,
}

fn data(data: DataMode) -> MountOptions {
    MountOptions { data, ..MountOptions::default() }
}

fn setups() -> Vec<Setup> {
    let setup = |what, made, options| Setup { what, made, options };
    let policy = TransactPolicy { mask: TransactMask::UMOUNT, timed: None };
    let mut dax = MountOptions { dax: Dax::Always, ..MountOptions::default() };
    dax.journal.accept_volatile = true;
    let points = MountOptions { transact: policy, ..data(DataMode::Transact) };
    vec![
        setup(
            "ext2",
            &["-b", "1024", "-O", "^has_journal,^extent,^64bit"],
            data(DataMode::Ordered),
        ),
        setup("ext3", &["-O", "^extent,^64bit,^metadata_csum"], data(DataMode::Ordered)),
        setup("writeback", &["-O", "orphan_file"], data(DataMode::Writeback)),
        setup("ordered", &["-O", "^orphan_file"], data(DataMode::Ordered)),
        setup("journal", &["-O", "orphan_file,inline_data"], data(DataMode::Journal)),
        setup("transact", &["-O", "^orphan_file", "-b", "4096"], points),
        setup("dax", &["-b", "4096"], dax),
        setup("attributes in inodes", &["-O", "ea_inode"], data(DataMode::Ordered)),
    ]
}

impl Setup {
    fn image(&self) -> Image {
        Image::mke2fs(48 * MIB, self.made)
    }

    fn mount(&self, image: &Image) -> Arc<Ext4> {
        if self.options.dax != Dax::Always {
            return mount(image, self.options.clone());
        }
        let memory = Pmem::open(image.path(), &PmemOptions::default()).unwrap();
        Ext4::mount(Arc::new(memory), self.options.clone()).unwrap()
    }
}

fn file(fs: &Ext4, name: &[u8], len: usize) -> Ino {
    let (attr, fh) = fs.create(fs.root(), name, NODE, RW).unwrap();
    fs.write(fh, 0, contents(1, 0, len)).unwrap();
    fs.release(fh).unwrap();
    attr.ino
}

/// Makes one of each kind.
fn all_kinds(fs: &Ext4) -> Vec<Ino> {
    let root = fs.root();
    let file = file(fs, b"file", 50_000);
    fs.setxattr(file, b"user.name", &[7; 300], SetXattr::Any).unwrap();
    let dir = fs.mkdir(root, b"dir", NODE).unwrap().ino;
    let empty = fs.mkdir(root, b"empty", NODE).unwrap().ino;
    let short = fs.symlink(root, b"short", b"target", NODE).unwrap().ino;
    let long = fs.symlink(root, b"long", &[b'l'; 300], NODE).unwrap().ino;
    let pipe = fs.mknod(root, b"pipe", (FileType::Fifo, 0), NODE).unwrap().ino;
    let disk = fs.mknod(root, b"disk", (FileType::BlockDevice, 8 << 32), NODE).unwrap().ino;
    vec![file, dir, empty, short, long, pipe, disk]
}

/// Removes them; some are replaced.
fn remove_all(fs: &Ext4) {
    let root = fs.root();
    for name in [&b"short"[..], b"pipe", b"disk"] {
        fs.unlink(root, name).unwrap();
    }
    fs.rmdir(root, b"empty").unwrap();
    fs.mkdir(root, b"new dir", NODE).unwrap();
    fs.rename((root, b"new dir"), (root, b"dir"), RenameFlags::empty()).unwrap();
    fs.rmdir(root, b"dir").unwrap();
    for name in [&b"file"[..], b"long"] {
        file_over(fs, name);
        fs.unlink(root, name).unwrap();
    }
}

fn file_over(fs: &Ext4, name: &[u8]) {
    file(fs, b"new", 10);
    fs.rename((fs.root(), b"new"), (fs.root(), name), RenameFlags::empty()).unwrap();
}

/// What is free, once no block waits for a commit.
fn free(fs: &Ext4) -> StatFs {
    fs.sync().unwrap();
    fs.statfs().unwrap()
}

#[test]
fn every_operation_works_on_what_is_held_without_a_name() {
    for setup in setups() {
        let what = setup.what;
        let image = setup.image();
        let fs = setup.mount(&image);
        let before = free(&fs);
        let held = all_kinds(&fs);
        held.iter().for_each(|ino| assert_eq!(fs.hold(*ino).unwrap().ino, *ino));
        // Twice, as after a second lookup.
        fs.hold(held[0]).unwrap();
        let generations: Vec<u32> =
            held.iter().map(|ino| fs.getattr(*ino).unwrap().generation).collect();
        remove_all(&fs);
        for i in 0..60 {
            let other = file(&fs, format!("other{i}").as_bytes(), 3000);
            assert!(!held.contains(&other), "{what}: a number in use is another file's");
        }
        for (ino, generation) in held.iter().zip(generations) {
            let attr = fs.getattr(*ino).unwrap();
            assert_eq!((attr.nlink, attr.generation), (0, generation), "{what}");
            let set = SetAttr {
                mode: Some(0o600),
                uid: Some(5),
                mtime: Some(SetTime::Now),
                ..SetAttr::default()
            };
            assert_eq!(fs.setattr(*ino, set).unwrap().uid, 5, "{what}");
            fs.setxattr(*ino, b"trusted.late", b"value", SetXattr::Any).unwrap();
            assert_eq!(fs.getxattr(*ino, b"trusted.late").unwrap(), b"value", "{what}");
            assert!(fs.listxattr(*ino).unwrap().contains(&b"trusted.late".to_vec()), "{what}");
            fs.removexattr(*ino, b"trusted.late").unwrap();
            fs.inode_flags(*ino).unwrap();
            // It is not found by its number alone, and gets no name any more.
            assert_eq!(fs.by_number(*ino), Err(FsError::Stale), "{what}");
            assert!(fs.link(*ino, fs.root(), b"again").is_err(), "{what}");
        }
        let [file, dir, empty, short, long, ..] = held[..] else { unreachable!() };
        use_file(&fs, file, what);
        for dir in [dir, empty] {
            assert_eq!(fs.lookup(dir, b"name"), Err(FsError::NotFound), "{what}");
            assert_eq!(fs.mkdir(dir, b"name", NODE), Err(FsError::NotFound), "{what}");
            assert_eq!(fs.create(dir, b"name", NODE, RW), Err(FsError::NotFound), "{what}");
            assert_eq!(fs.tmpfile(dir, NODE, RW).map(drop), Err(FsError::NotFound), "{what}");
            let moved = fs.rename((fs.root(), b"other1"), (dir, b"name"), RenameFlags::empty());
            assert_eq!(moved, Err(FsError::NotFound), "{what}");
            assert_eq!(fs.readdir(dir, 0), Ok(Vec::new()), "{what}");
            fs.fsyncdir(dir).unwrap();
        }
        assert_eq!(fs.readlink(short).unwrap(), b"target", "{what}");
        assert_eq!(fs.readlink(long).unwrap(), [b'l'; 300], "{what}");
        // Dirty data of it is no obstacle.
        let fh = fs.open(file, RW).unwrap();
        fs.write(fh, 0, contents(9, 0, 30_000)).unwrap();
        fs.release(fh).unwrap();
        assert!(!fs.let_go(file, 1) && fs.getattr(file).is_ok(), "{what}: it is held once more");
        held.iter().for_each(|ino| assert!(fs.let_go(*ino, 1), "{what}"));
        for i in 0..60 {
            fs.unlink(fs.root(), format!("other{i}").as_bytes()).unwrap();
        }
        assert_eq!(free(&fs), before, "{what}");
        held.iter().for_each(|ino| assert_eq!(fs.getattr(*ino), Err(FsError::NotFound), "{what}"));
        fs.unmount().unwrap();
        image.assert_clean();
    }
}

/// Everything that is done with a file that is open, and with one that is opened again.
fn use_file(fs: &Ext4, file: Ino, what: &str) {
    assert_eq!(fs.getxattr(file, b"user.name").unwrap(), [7; 300], "{what}");
    let fh = fs.open(file, RW).unwrap();
    assert_eq!(fs.read(fh, 0, 60_000).unwrap(), contents(1, 0, 50_000), "{what}");
    fs.write(fh, 50_000, contents(1, 50_000, 50_000)).unwrap();
    fs.fsync(fh, false).unwrap();
    // A file with a block map cannot.
    let _ = fs.fallocate(fh, Fallocate::Allocate { keep_size: true }, 100_000, 50_000);
    fs.release(fh).unwrap();
    let fh = fs.open(file, OpenFlags::READ).unwrap();
    assert_eq!(fs.read(fh, 0, 200_000).unwrap(), contents(1, 0, 100_000), "{what}");
    fs.release(fh).unwrap();
    let cut = SetAttr { size: Some(70_000), ..SetAttr::default() };
    assert_eq!(fs.setattr(file, cut).unwrap().size, 70_000, "{what}");
    let fh = fs.open(file, RW | OpenFlags::TRUNCATE).unwrap();
    assert_eq!(fs.getattr(file).unwrap().size, 0, "{what}");
    fs.write(fh, 0, contents(2, 0, 9000)).unwrap();
    fs.release(fh).unwrap();
}

#[test]
fn a_crash_or_an_unmount_ends_all_holds() {
    for setup in setups() {
        for end in ["unmount", "crash", "e2fsck", "kernel"] {
            if end == "kernel" && matches!(setup.what, "ext2" | "transact" | "dax") {
                continue;
            }
            let what = format!("{}, {end}", setup.what);
            let image = setup.image();
            let fs = setup.mount(&image);
            let before = free(&fs);
            let held = all_kinds(&fs);
            held.iter().for_each(|ino| assert!(fs.hold(*ino).is_ok()));
            remove_all(&fs);
            assert!(held.iter().all(|ino| fs.getattr(*ino).is_ok()), "{what}");
            if end == "unmount" {
                fs.unmount().unwrap();
                image.assert_clean();
            } else if setup.what == "transact" {
                fs.transact().unwrap();
            } else {
                fs.sync().unwrap();
            }
            drop(fs);
            if end == "kernel" {
                drop(image.mount(""));
                image.assert_clean();
            } else if end != "unmount" && (end == "e2fsck" || setup.what == "ext2") {
                // Without a journal nothing else may come first.
                image.repair();
                image.assert_clean();
            }
            let fs = setup.mount(&image);
            assert_eq!(free(&fs).inodes_free, before.inodes_free, "{what}");
            assert_eq!(free(&fs).blocks_free, before.blocks_free, "{what}");
            fs.unmount().unwrap();
            image.assert_clean();
        }
    }
}

#[test]
fn a_full_disk_waits_for_deletions() {
    for setup in setups().into_iter().filter(|setup| setup.what != "transact") {
        let what = setup.what;
        let made = [setup.made, &["-N", "64", "-J", "size=4"]].concat();
        let made = if what == "ext2" { [setup.made, &["-N", "64"]].concat() } else { made };
        let image = Image::mke2fs(24 * MIB, &made);
        let fs = setup.mount(&image);
        let most =
            fs.statfs().unwrap().blocks_available * u64::from(fs.statfs().unwrap().block_size);
        let len = usize::try_from(most / 3 * 2).unwrap();
        for round in 0..4 {
            let (attr, fh) = fs.create(fs.root(), b"file", NODE, RW).unwrap();
            fs.hold(attr.ino).unwrap();
            for at in (0..len).step_by(MIB as usize) {
                let data = contents(round, at as u64, MIB as usize);
                assert_eq!(fs.write(fh, at as u64, data), Ok(MIB as usize), "{what} {round} {at}");
            }
            fs.fsync(fh, false).unwrap();
            fs.release(fh).unwrap();
            fs.unlink(fs.root(), b"file").unwrap();
            fs.let_go(attr.ino, 1);
        }
        // All inodes, several times.
        for _ in 0..200 {
            let attr = fs.mkdir(fs.root(), b"dir", NODE).unwrap();
            fs.hold(attr.ino).unwrap();
            fs.rmdir(fs.root(), b"dir").unwrap();
            fs.let_go(attr.ino, 1);
        }
        fs.unmount().unwrap();
        image.assert_clean();
    }
}

#[test]
fn a_storm_of_removals_leaves_nothing() {
    // The orphan file has 2046 slots: the others are in the list.
    for made in [&["-O", "orphan_file", "-N", "10000"][..], &["-O", "^orphan_file", "-N", "10000"]]
    {
        let image = Image::mke2fs(64 * MIB, made);
        let fs = mount(&image, MountOptions::default());
        let names: Vec<Vec<u8>> = (0..6000).map(|i| format!("f{i}").into_bytes()).collect();
        // The directory grows, and stays as it is.
        for name in &names {
            file(&fs, name, 0);
        }
        names.iter().for_each(|name| fs.unlink(fs.root(), name).unwrap());
        let before = free(&fs);
        let mut held = Vec::new();
        for name in &names {
            let ino = file(&fs, name, 10);
            fs.hold(ino).unwrap();
            held.push(ino);
        }
        names.iter().for_each(|name| fs.unlink(fs.root(), name).unwrap());
        assert_eq!(fs.statfs().unwrap().inodes_free, before.inodes_free - 6000);
        // From both ends and the middle; from several tasks.
        let (left, right) = held.split_at(2000);
        std::thread::scope(|scope| {
            scope.spawn(|| left.iter().for_each(|ino| assert!(fs.let_go(*ino, 1))));
            scope.spawn(|| right.iter().rev().for_each(|ino| assert!(fs.let_go(*ino, 9))));
        });
        assert_eq!(free(&fs), before);
        // A second time it is a crash that ends it.
        for name in &names {
            let ino = file(&fs, name, 10);
            fs.hold(ino).unwrap();
        }
        names.iter().for_each(|name| fs.unlink(fs.root(), name).unwrap());
        fs.sync().unwrap();
        drop(fs);
        let fs = mount(&image, MountOptions::default());
        assert_eq!(free(&fs), before);
        fs.unmount().unwrap();
        image.assert_clean();
    }
}

#[test]
fn what_is_held_counts_for_its_owner_until_it_is_deleted() {
    use steadfast_ext4::quota::{QuotaKind, QuotaLimits};
    let image = Image::mke2fs(48 * MIB, &["-O", "quota"]);
    let fs = mount(&image, MountOptions::default());
    let limits = QuotaLimits { space_hard_kib: 64, ..QuotaLimits::default() };
    fs.set_quota(QuotaKind::User, 77, limits).unwrap();
    let node = NewNode { uid: 77, ..NODE };
    let make = |name: &[u8]| {
        let (attr, fh) = fs.create(fs.root(), name, node, RW)?;
        fs.hold(attr.ino)?;
        let written = fs.write(fh, 0, contents(1, 0, 40_000))?;
        fs.release(fh)?;
        Ok::<_, FsError>((attr.ino, written))
    };
    let (first, _) = make(b"first").unwrap();
    fs.unlink(fs.root(), b"first").unwrap();
    assert_eq!(fs.quota(QuotaKind::User, 77).unwrap().inodes, 1);
    assert!(make(b"second").unwrap().1 < 40_000, "the quota is used up");
    let second = fs.lookup(fs.root(), b"second").unwrap().ino;
    fs.unlink(fs.root(), b"second").unwrap();
    fs.let_go(second, 1);
    fs.let_go(first, 1);
    // All of it: who would find too little waits.
    let (third, written) = make(b"third").unwrap();
    assert_eq!(written, 40_000);
    fs.unlink(fs.root(), b"third").unwrap();
    fs.let_go(third, 1);
    fs.statfs().unwrap();
    assert_eq!(fs.quota(QuotaKind::User, 77).unwrap().inodes, 0);
    fs.unmount().unwrap();
    image.assert_clean();
}

#[test]
fn a_rollback_leaves_holds_and_gives_no_held_number_to_another() {
    let image = Image::mke2fs(48 * MIB, &["-b", "4096"]);
    let policy = TransactPolicy { mask: TransactMask::UMOUNT, timed: None };
    let options = MountOptions { transact: policy, ..data(DataMode::Transact) };
    let fs = mount(&image, options);
    let before = fs.statfs().unwrap();
    // One that the point has without a name, one that it has with one, one that is younger.
    let nameless = file(&fs, b"nameless", 9000);
    let named = file(&fs, b"named", 9000);
    [nameless, named].iter().for_each(|ino| assert!(fs.hold(*ino).is_ok()));
    fs.unlink(fs.root(), b"nameless").unwrap();
    fs.transact().unwrap();
    fs.unlink(fs.root(), b"named").unwrap();
    let young = file(&fs, b"young", 9000);
    fs.hold(young).unwrap();
    fs.rollback().unwrap();
    assert_eq!(read_all(&*fs, "named"), contents(1, 0, 9000));
    let fh = fs.open(nameless, RW).unwrap();
    assert_eq!(fs.read(fh, 0, 9000).unwrap(), contents(1, 0, 9000));
    fs.release(fh).unwrap();
    assert_eq!(fs.getattr(young), Err(FsError::NotFound));
    for i in 0..100 {
        assert_ne!(file(&fs, format!("other{i}").as_bytes(), 1), young);
    }
    for ino in [nameless, named, young] {
        assert!(fs.let_go(ino, 1));
    }
    assert_eq!(fs.statfs().unwrap().inodes_free, before.inodes_free - 101);
    assert_eq!(fs.getattr(nameless), Err(FsError::NotFound));
    let numbers = [b"last1", b"last2", b"last3"].map(|name| file(&fs, name, 1));
    assert!(numbers.contains(&young), "its number is free");
    // In a group that fails nothing is deleted.
    fs.transact().unwrap();
    fs.begin_group().unwrap();
    fs.hold(named).unwrap();
    fs.unlink(fs.root(), b"named").unwrap();
    fs.let_go(named, 1);
    fs.end_group(false).unwrap();
    assert_eq!(read_all(&*fs, "named"), contents(1, 0, 9000));
    fs.hold(named).unwrap();
    fs.unlink(fs.root(), b"named").unwrap();
    fs.unmount().unwrap();
    image.assert_clean();
}

/// A name that is always replaced, never missing: as a kernel's lookup and open beside a rename.
#[test]
fn what_was_looked_up_can_be_opened_while_others_replace_it() {
    for setup in setups() {
        let image = setup.image();
        let fs = setup.mount(&image);
        file(&fs, b"target", 3000);
        fs.symlink(fs.root(), b"link", b"target", NODE).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let replace = || {
                for i in 0..150 {
                    let ino = file(&fs, b"new", 3000);
                    fs.hold(ino).unwrap();
                    fs.rename((fs.root(), b"new"), (fs.root(), b"target"), RenameFlags::empty())
                        .unwrap();
                    fs.let_go(ino, 1);
                    let to = [b't'; 200];
                    fs.symlink(fs.root(), b"new link", &to[..1 + i], NODE).unwrap();
                    fs.rename((fs.root(), b"new link"), (fs.root(), b"link"), RenameFlags::empty())
                        .unwrap();
                }
                done.store(true, Ordering::Release);
            };
            scope.spawn(replace);
            let mut used = 0u64;
            while !done.load(Ordering::Acquire) || used < 20 {
                use_target(&fs, setup.what);
                used += 1;
            }
        });
        fs.unmount().unwrap();
        image.assert_clean();
    }
}

/// Looks a name up and holds what it finds, as the bridge of a mount does.
fn find(fs: &Ext4, name: &[u8]) -> Ino {
    loop {
        let found = fs.lookup(fs.root(), name).unwrap();
        match fs.hold(found.ino) {
            Ok(now) if now.generation == found.generation => return found.ino,
            Ok(_) => drop(fs.let_go(found.ino, 1)),
            Err(e) => assert!(matches!(e, FsError::NotFound | FsError::Stale), "{e}"),
        }
    }
}

fn use_target(fs: &Ext4, what: &str) {
    let ino = find(fs, b"target");
    fs.getattr(ino).unwrap_or_else(|e| panic!("{what}: {e}"));
    let mode = SetAttr { mode: Some(0o640), ..SetAttr::default() };
    fs.setattr(ino, mode).unwrap_or_else(|e| panic!("{what}: {e}"));
    let fh = fs.open(ino, OpenFlags::READ).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(fs.read(fh, 0, 4000).unwrap(), contents(1, 0, 3000), "{what}");
    fs.release(fh).unwrap();
    fs.let_go(ino, 1);
    let link = find(fs, b"link");
    assert!(!fs.readlink(link).unwrap().is_empty(), "{what}");
    fs.let_go(link, 1);
}
