//! data=transact as a program sees it: what makes a point, what a rollback leaves, groups, and
//! what happens when space or the journal runs out. Power cuts are judged in crate crash.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{JournalChoice, Options, make};
use steadfast_runtime::{Sim, sleep};
use steadfast_vfs::{
    Fallocate, FileSystem, FsError, NewNode, OpenFlags, RenameFlags, SetAttr, TransactMask,
    TransactPolicy,
};

use crate::image::Image;
use crate::{RW, contents, create, mount, read_all};

fn options(transact: TransactPolicy) -> MountOptions {
    MountOptions { data: DataMode::Transact, transact, ..MountOptions::default() }
}

fn by_hand() -> MountOptions {
    options(TransactPolicy::MANUAL)
}

fn made(size: u64, journal_blocks: u32) -> Ram {
    let disk = Ram::new("disk", size).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(disk.clone());
    let mut options = Options::random(1_700_000_000);
    options.block_size = Some(4096);
    options.journal = JournalChoice::InternalOf(journal_blocks);
    make(&device, &options).unwrap();
    disk
}

fn on(disk: &Ram, options: MountOptions) -> Arc<Ext4> {
    Ext4::mount(Arc::new(disk.clone()), options).unwrap()
}

/// The names in the root directory after a power cut now.
fn names_after_a_cut(disk: &Ram) -> Vec<String> {
    let store: Store = disk.store();
    let fs = on(&Ram::from_store("after", store).persistent(), by_hand());
    let all = steadfast_vfs::path::list(&*fs, fs.root()).unwrap();
    let mut names: Vec<String> =
        all.into_iter().map(|e| String::from_utf8(e.name).unwrap()).collect();
    names.retain(|n| !n.starts_with('.') && n != "lost+found");
    names.sort();
    names
}

fn write(fs: &Ext4, name: &str, data: &[u8]) {
    let (_, fh) = create(fs, name, RW);
    fs.write(fh, 0, data.to_vec().into()).unwrap();
    fs.release(fh).unwrap();
}

#[test]
fn each_bit_of_the_mask_makes_a_point_and_no_other() {
    type Act = fn(&Ext4);
    let root_file = |fs: &Ext4| fs.lookup(fs.root(), b"old").unwrap().ino;
    let acts: [(&str, Act); 8] = [
        ("create", |fs| assert!(create(fs, "x", OpenFlags::READ).1.0 > 0)),
        ("mkdir", |fs| assert!(fs.mkdir(fs.root(), b"x", NewNode::default()).is_ok())),
        ("unlink", |fs| fs.unlink(fs.root(), b"other").unwrap()),
        ("rename", |fs| {
            fs.rename((fs.root(), b"other"), (fs.root(), b"x"), RenameFlags::empty()).unwrap();
        }),
        ("link", |fs| {
            let ino = fs.lookup(fs.root(), b"old").unwrap().ino;
            fs.link(ino, fs.root(), b"x").unwrap();
        }),
        ("truncate", |fs| {
            let ino = fs.lookup(fs.root(), b"old").unwrap().ino;
            let set = SetAttr { size: Some(3), ..SetAttr::default() };
            fs.setattr(ino, set).unwrap();
        }),
        ("sync", |fs| fs.sync().unwrap()),
        ("fsync", |fs| fs.fsyncdir(fs.root()).unwrap()),
    ];
    let disk = made(16 << 20, 1024);
    let fs = on(&disk, by_hand());
    write(&fs, "old", b"old contents");
    write(&fs, "other", b"other");
    fs.transact().unwrap();
    let commits = || fs.journal().unwrap().stats().commits;
    for (bit, act) in acts {
        for policy in ["none", "all"].map(str::to_owned).into_iter().chain([bit.into()]) {
            // Something that a point would have to write.
            let node = NewNode::default();
            fs.set_transact_policy(TransactPolicy::MANUAL).unwrap();
            fs.symlink(fs.root(), b"changed", b"x", node).unwrap();
            fs.set_transact_policy(policy.parse().unwrap()).unwrap();
            let before = commits();
            act(&fs);
            let made = commits() - before;
            assert_eq!(made > 0, policy != "none", "{bit} under {policy}: {made} points");
            fs.set_transact_policy(TransactPolicy::MANUAL).unwrap();
            // As it was.
            let _ = fs.unlink(fs.root(), b"changed");
            let _ = fs.unlink(fs.root(), b"x");
            let _ = fs.rmdir(fs.root(), b"x");
            if fs.lookup(fs.root(), b"other").is_err() {
                write(&fs, "other", b"other");
            }
            fs.transact().unwrap();
            // Nothing to do: nothing is done.
            let before = commits();
            fs.transact().unwrap();
            assert_eq!(commits(), before);
        }
    }
    // Writes and closes.
    for (bit, writes, closes) in [("write", 1, 0), ("close", 0, 1), ("fsync", 0, 0)] {
        fs.set_transact_policy(bit.parse().unwrap()).unwrap();
        let fh = fs.open(root_file(&fs), RW).unwrap();
        let before = commits();
        fs.write(fh, 0, contents(1, 0, 100)).unwrap();
        assert_eq!(commits() - before, writes, "a write under {bit}");
        let before = commits();
        fs.release(fh).unwrap();
        assert_eq!(commits() - before, closes, "a close under {bit}");
    }
    // Each close(2) of a handle; its release adds nothing unless it was written to meanwhile.
    fs.set_transact_policy("close".parse().unwrap()).unwrap();
    let fh = fs.open(root_file(&fs), RW).unwrap();
    let before = commits();
    for (round, steps) in [(1, 1), (2, 2), (3, 2)] {
        if round < 3 {
            fs.write(fh, 0, contents(round, 0, 100)).unwrap();
        }
        fs.flush(fh).unwrap();
        assert_eq!(commits() - before, steps, "round {round}");
    }
    assert!(fs.since_point().unwrap().is_nothing());
    fs.symlink(fs.root(), b"another's", b"x", NewNode::default()).unwrap();
    fs.release(fh).unwrap();
    assert_eq!(commits() - before, 2);
    // O_SYNC asks for what fsync does.
    fs.set_transact_policy("fsync".parse().unwrap()).unwrap();
    let fh = fs.open(root_file(&fs), RW | OpenFlags::DSYNC).unwrap();
    let before = commits();
    fs.write(fh, 0, contents(2, 0, 100)).unwrap();
    assert_eq!(commits() - before, 1);
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
}

#[test]
fn without_the_bit_fsync_is_nothing_and_unmount_discards() {
    let disk = made(16 << 20, 1024);
    let fs = on(&disk, by_hand());
    write(&fs, "kept", &contents(1, 0, 50_000));
    fs.transact().unwrap();
    write(&fs, "lost", b"lost");
    let fh = fs.open(fs.lookup(fs.root(), b"kept").unwrap().ino, RW).unwrap();
    fs.write(fh, 100, contents(9, 0, 30_000)).unwrap();
    fs.fsync(fh, false).unwrap();
    fs.sync().unwrap();
    assert_eq!(names_after_a_cut(&disk), ["kept"]);
    // The file stays open: the handle is of no use afterwards, nothing else.
    fs.unmount().unwrap();
    drop(fs);
    let fs = on(&disk, options(TransactPolicy::default()));
    assert_eq!(read_all(&*fs, "kept"), contents(1, 0, 50_000));
    assert!(fs.lookup(fs.root(), b"lost").is_err());
    // With the bit unmount is a point.
    let policy = TransactPolicy { mask: TransactMask::UMOUNT, timed: None };
    fs.set_transact_policy(policy).unwrap();
    write(&fs, "late", b"late");
    fs.unmount().unwrap();
    drop(fs);
    let fs = on(&disk, by_hand());
    assert_eq!(read_all(&*fs, "late"), b"late");
    fs.unmount().unwrap();
}

#[test]
fn a_power_cut_after_a_close_leaves_what_was_closed() {
    let disk = made(16 << 20, 1024);
    let fs = on(&disk, options(TransactPolicy::default()));
    let (_, fh) = create(&*fs, "closed", RW);
    fs.write(fh, 0, contents(3, 0, 20_000)).unwrap();
    fs.flush(fh).unwrap();
    // Before the release: a program that has closed goes on at once.
    let after = on(&Ram::from_store("after", disk.store()).persistent(), by_hand());
    assert_eq!(read_all(&*after, "closed"), contents(3, 0, 20_000));
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
}

#[test]
fn a_close_after_ftruncate_is_a_point_too() {
    let disk = made(16 << 20, 1024);
    let fs = on(&disk, options("close".parse().unwrap()));
    let (attr, fh) = create(&*fs, "cut", RW);
    fs.write(fh, 0, contents(3, 0, 10_000)).unwrap();
    // Of a duplicate of the descriptor.
    fs.flush(fh).unwrap();
    fs.setattr(attr.ino, SetAttr { size: Some(5), ..SetAttr::default() }).unwrap();
    fs.flush(fh).unwrap();
    let after = on(&Ram::from_store("after", disk.store()).persistent(), by_hand());
    assert_eq!(read_all(&*after, "cut"), contents(3, 0, 5));
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
}

#[test]
fn a_rollback_goes_back_to_the_point_and_is_refused_while_files_are_open() {
    let disk = made(16 << 20, 1024);
    let fs = on(&disk, by_hand());
    for i in 0..20 {
        write(&fs, &format!("file{i}"), &contents(i, 0, 20_000));
    }
    let dir = fs.mkdir(fs.root(), b"dir", NewNode::default()).unwrap().ino;
    fs.transact().unwrap();
    let before = fs.statfs().unwrap();
    for round in 0..3 {
        for i in 0..10 {
            let name = format!("file{i}");
            let fh = fs.open(fs.lookup(fs.root(), name.as_bytes()).unwrap().ino, RW).unwrap();
            fs.write(fh, 4000 * i, contents(99, 0, 9000)).unwrap();
            if i % 3 == 0 {
                fs.fallocate(fh, Fallocate::PunchHole, 5000, 9000).unwrap();
            }
            fs.release(fh).unwrap();
        }
        for i in 10..20 {
            fs.unlink(fs.root(), format!("file{i}").as_bytes()).unwrap();
            write(&fs, &format!("new{i}"), &contents(i, 7, 70_000));
        }
        fs.rename((fs.root(), b"dir"), (fs.root(), b"moved"), RenameFlags::empty()).unwrap();
        if round == 1 {
            sleep(Duration::from_millis(1));
            let (_, fh) = create(&*fs, "open", RW);
            assert!(matches!(fs.rollback(), Err(FsError::Busy { .. })));
            assert_eq!(read_all(&*fs, "new11"), contents(11, 7, 70_000));
            fs.release(fh).unwrap();
        }
        let rollbacks = fs.rollbacks();
        fs.rollback().unwrap();
        assert_eq!(fs.rollbacks(), rollbacks + 1);
        for i in 0..20 {
            assert_eq!(read_all(&*fs, &format!("file{i}")), contents(i, 0, 20_000), "file{i}");
            assert!(fs.lookup(fs.root(), format!("new{i}").as_bytes()).is_err());
        }
        assert_eq!(fs.lookup(fs.root(), b"dir").unwrap().ino, dir);
        assert_eq!(fs.statfs().unwrap(), before);
    }
    // What was open without a name at the point is gone after a rollback.
    let (_, fh) = create(&*fs, "nameless", RW);
    fs.write(fh, 0, contents(5, 0, 40_000)).unwrap();
    fs.unlink(fs.root(), b"nameless").unwrap();
    fs.transact().unwrap();
    fs.release(fh).unwrap();
    fs.rollback().unwrap();
    fs.transact().unwrap();
    assert_eq!(fs.statfs().unwrap(), before);
    // And it can be gone on from there.
    write(&fs, "more", &contents(3, 0, 100_000));
    fs.transact().unwrap();
    assert_eq!(names_after_a_cut(&disk).len(), 22);
    fs.unmount().unwrap();
}

#[test]
fn a_group_is_there_whole_or_not_at_all() {
    let disk = made(16 << 20, 1024);
    let fs = on(&disk, options(TransactPolicy::default()));
    write(&fs, "before", b"before");
    fs.begin_group().unwrap();
    assert!(matches!(fs.begin_group(), Err(FsError::Busy { .. })));
    write(&fs, "one", b"1");
    write(&fs, "two", b"2");
    assert!(matches!(fs.transact(), Err(FsError::Busy { .. })));
    fs.sync().unwrap();
    assert_eq!(names_after_a_cut(&disk), ["before"]);
    fs.end_group(true).unwrap();
    assert_eq!(names_after_a_cut(&disk), ["before", "one", "two"]);
    fs.begin_group().unwrap();
    write(&fs, "three", b"3");
    fs.end_group(false).unwrap();
    assert!(fs.lookup(fs.root(), b"three").is_err());
    assert!(matches!(fs.end_group(true), Err(FsError::Invalid { .. })));
    fs.unmount().unwrap();
}

#[test]
fn a_group_that_does_not_fit_fails_as_a_whole() {
    let disk = made(16 << 20, 1024);
    let fs = on(&disk, options(TransactPolicy::default()));
    write(&fs, "before", &contents(1, 0, 1 << 20));
    let free = fs.statfs().unwrap().blocks_free;
    fs.begin_group().unwrap();
    write(&fs, "small", b"fits");
    let (_, fh) = create(&*fs, "large", RW);
    let mut at = 0;
    let full = loop {
        match fs.write(fh, at, contents(2, at, 100_000)) {
            Ok(n) => at += n as u64,
            Err(e) => break e,
        }
    };
    assert!(matches!(full, FsError::NoSpace { .. }), "{full}");
    // Also what would fit: half a group is worse than none.
    let more = fs.create(fs.root(), b"tiny", NewNode::default(), RW).map(drop);
    assert!(matches!(more, Err(FsError::NoSpace { .. })), "{more:?}");
    let synced = fs.fsync(fh, false).unwrap_err().to_string();
    assert!(!synced.contains("was taken back"), "the group is still there: {synced}");
    fs.release(fh).unwrap();
    let ended = fs.end_group(true).unwrap_err();
    assert!(matches!(ended, FsError::NoSpace { .. }), "{ended}");
    assert!(ended.to_string().contains("was taken back"), "{ended}");
    assert!(fs.lookup(fs.root(), b"small").is_err());
    assert_eq!(fs.statfs().unwrap().blocks_free, free);
    write(&fs, "after", b"after");
    assert_eq!(names_after_a_cut(&disk), ["after", "before"]);
    fs.unmount().unwrap();
}

/// Nothing of the group can be kept, and it cannot go back while the file is open.
#[test]
fn a_group_that_fails_while_a_file_is_open_goes_back_when_it_is_closed() {
    for full in [true, false] {
        let disk = made(16 << 20, 1024);
        let fs = on(&disk, options(TransactPolicy::default()));
        write(&fs, "before", &contents(1, 0, 1 << 20));
        let free = fs.statfs().unwrap().blocks_free;
        let other = fs.open(fs.lookup(fs.root(), b"before").unwrap().ino, RW).unwrap();
        fs.begin_group().unwrap();
        let (_, fh) = create(&*fs, "inside", RW);
        let mut at = 0;
        while full && let Ok(n) = fs.write(fh, at, contents(2, at, 100_000)) {
            at += n as u64;
        }
        let ended = fs.end_group(full).unwrap_err();
        assert!(matches!(ended, FsError::Busy { .. }), "{ended}");
        // Whoever asks for a promise is refused, and whoever changes something.
        let refusals = [
            ("fsync", fs.fsync(fh, false)),
            ("fsync of a file from before", fs.fsync(other, true)),
            ("fsync of a folder", fs.fsyncdir(fs.root())),
            ("sync", fs.sync()),
            ("close", fs.flush(fh)),
            ("point", fs.transact()),
            ("create", fs.create(fs.root(), b"late", NewNode::default(), RW).map(drop)),
            ("unlink", fs.unlink(fs.root(), b"before")),
            ("group", fs.begin_group()),
            ("end", fs.end_group(true)),
            ("rollback", fs.rollback()),
        ];
        for (what, refused) in refusals {
            assert!(refused.is_err(), "{what} promised something");
        }
        assert_eq!(names_after_a_cut(&disk), ["before"]);
        fs.release(other).unwrap();
        assert!(fs.fsyncdir(fs.root()).is_err(), "one file is still open");
        fs.release(fh).unwrap();
        // It has gone back, and everything is as it was before the group.
        assert!(matches!(fs.end_group(true), Err(FsError::Invalid { .. })));
        assert!(fs.lookup(fs.root(), b"inside").is_err());
        assert_eq!(fs.statfs().unwrap().blocks_free, free);
        let (_, fh) = create(&*fs, "after", RW);
        fs.write(fh, 0, contents(3, 0, 5000)).unwrap();
        fs.fsync(fh, false).unwrap();
        assert_eq!(names_after_a_cut(&disk), ["after", "before"]);
        let cut = on(&Ram::from_store("after", disk.store()).persistent(), by_hand());
        assert_eq!(read_all(&*cut, "after"), contents(3, 0, 5000));
        assert_eq!(read_all(&*cut, "before"), contents(1, 0, 1 << 20));
        fs.release(fh).unwrap();
        fs.unmount().unwrap();
        drop(fs);
        let fs = on(&disk, by_hand());
        assert_eq!(read_all(&*fs, "after"), contents(3, 0, 5000));
        fs.unmount().unwrap();
    }
}

/// The file stays open to the end: the unmount says that what came since is gone.
#[test]
fn an_unmount_after_a_failed_group_is_no_success() {
    let disk = made(16 << 20, 1024);
    let fs = on(&disk, options(TransactPolicy::default()));
    write(&fs, "before", b"before");
    fs.begin_group().unwrap();
    create(&*fs, "inside", RW);
    assert!(matches!(fs.end_group(false), Err(FsError::Busy { .. })));
    fs.unmount().unwrap_err();
    drop(fs);
    assert_eq!(names_after_a_cut(&disk), ["before"]);
}

/// With VOLFULL the space that deleted and overwritten data gives back is there when it is needed;
/// without, an overwrite finds no space although the file already has all that it needs.
#[test]
fn overwrites_need_space_and_points_give_it_back() {
    for (words, enough) in [("volfull", true), ("none", false)] {
        let disk = made(16 << 20, 1024);
        let fs = on(&disk, options(words.parse().unwrap()));
        let free = fs.statfs().unwrap().blocks_available * 4096;
        let size = free / 10 * 6;
        let (_, fh) = create(&*fs, "file", RW);
        let rewrite = |seed: u64| -> Result<(), FsError> {
            let mut at = 0;
            while at < size {
                let len = 65536.min(size - at) as usize;
                at += fs.write(fh, at, contents(seed, at, len))? as u64;
            }
            Ok(())
        };
        rewrite(1).unwrap();
        fs.transact().unwrap();
        let again = rewrite(2);
        assert_eq!(again.is_ok(), enough, "{words}: {again:?}");
        if enough {
            rewrite(3).unwrap();
            fs.transact().unwrap();
            fs.release(fh).unwrap();
            assert_eq!(read_all(&*fs, "file"), contents(3, 0, size as usize));
        } else {
            assert!(matches!(again, Err(FsError::NoSpace { what: "blocks" })));
            // The point makes room.
            fs.transact().unwrap();
            fs.release(fh).unwrap();
        }
        fs.unmount().unwrap();
    }
}

#[test]
fn a_transaction_larger_than_the_journal() {
    for (words, enough) in [("volfull", true), ("none", false)] {
        let disk = made(256 << 20, 1024);
        let fs = on(&disk, options(words.parse().unwrap()));
        let mut made = 0;
        let outcome = (0..4000u64).try_for_each(|i| {
            // A folder takes a block of its own.
            made = i;
            fs.mkdir(fs.root(), format!("folder{i}").as_bytes(), NewNode::default()).map(drop)
        });
        assert_eq!(outcome.is_ok(), enough, "{words}: {outcome:?} after {made}");
        if !enough {
            let why = outcome.unwrap_err().to_string();
            assert!(why.contains("larger than the journal"), "{why}");
            assert!(made > 500, "only {made} folders");
            assert_eq!(names_after_a_cut(&disk).len(), 0);
        }
        fs.transact().unwrap();
        assert_eq!(names_after_a_cut(&disk).len() as u64, if enough { 4000 } else { made });
        fs.unmount().unwrap();
    }
}

#[test]
fn points_by_time_come_when_something_has_changed() {
    Sim::new(1)
        .run(|| {
            let disk = made(16 << 20, 1024);
            let fs = on(&disk, options("timed=5s".parse().unwrap()));
            let commits = || fs.journal().unwrap().stats().commits;
            let start = commits();
            sleep(Duration::from_secs(60));
            assert_eq!(commits(), start, "nothing has changed");
            write(&fs, "one", b"1");
            sleep(Duration::from_secs(4));
            assert!(names_after_a_cut(&disk).is_empty());
            sleep(Duration::from_secs(2));
            assert_eq!(names_after_a_cut(&disk), ["one"]);
            fs.set_transact_policy("timed=100ms".parse().unwrap()).unwrap();
            write(&fs, "two", b"2");
            sleep(Duration::from_millis(200));
            assert_eq!(names_after_a_cut(&disk), ["one", "two"]);
            fs.set_transact_policy(TransactPolicy::MANUAL).unwrap();
            write(&fs, "three", b"3");
            sleep(Duration::from_secs(60));
            assert_eq!(names_after_a_cut(&disk), ["one", "two"]);
            fs.unmount().unwrap();
        })
        .unwrap();
}

/// One call that is larger than a transaction can be.
#[test]
fn a_write_larger_than_the_journal_is_short() {
    let disk = made(64 << 20, 1024);
    let fs = on(&disk, options(TransactPolicy::default()));
    let (_, fh) = create(&*fs, "big", RW);
    let data = contents(1, 0, 12 << 20);
    let mut at = 0;
    while at < data.len() {
        let written = fs.write(fh, at as u64, data.slice(at..)).unwrap();
        assert!(written >= 512 << 10 || at + written == data.len(), "{written} at {at}");
        at += written;
    }
    fs.release(fh).unwrap();
    assert_eq!(read_all(&*fs, "big"), data);
    fs.unmount().unwrap();
}

/// The kernel's file system, ours for a while, and the kernel's again.
#[test]
fn a_file_system_of_the_kernels_comes_and_goes() {
    let image = Image::mke2fs(64 << 20, &["-b", "4096"]);
    {
        let kernel = image.mount("rw");
        let data = contents(1, 0, 300_000);
        std::fs::write(kernel.folder().join("kernels"), &data).unwrap();
    }
    let fs = mount(&image, options(TransactPolicy::default()));
    let fh = fs.open(fs.lookup(fs.root(), b"kernels").unwrap().ino, RW).unwrap();
    for at in [5000, 100_000, 250_000] {
        fs.write(fh, at, contents(2, at, 10_000)).unwrap();
        fs.transact().unwrap();
    }
    fs.release(fh).unwrap();
    write(&fs, "ours", &contents(3, 0, 100_000));
    let seen = read_all(&*fs, "kernels");
    fs.unmount().unwrap();
    drop(fs);
    image.assert_clean();
    let kernel = image.mount("rw");
    assert_eq!(std::fs::read(kernel.folder().join("kernels")).unwrap(), seen);
    let ours = std::fs::read(kernel.folder().join("ours")).unwrap();
    assert_eq!(ours, contents(3, 0, 100_000));
}

#[test]
fn what_cannot_transact_is_refused_by_name() {
    let refused = |image: &Image, options: MountOptions| {
        Ext4::mount(crate::open(image), options).map(drop).unwrap_err().to_string()
    };
    let plain = Image::mke2fs(16 << 20, &["-b", "4096"]);
    let mut asynchronous = by_hand();
    asynchronous.journal.async_commit = true;
    assert!(refused(&plain, asynchronous).contains("journal_async_commit"));
    let at_once = MountOptions { delayed_allocation: false, ..by_hand() };
    assert!(refused(&plain, at_once).contains("nodelalloc"));
    let without = Image::mke2fs(16 << 20, &["-b", "4096", "-O", "^has_journal"]);
    assert!(refused(&without, by_hand()).contains("needs a journal"));
    let ordered = mount(&plain, MountOptions::default());
    assert!(matches!(ordered.transact(), Err(FsError::Unsupported { .. })));
    ordered.unmount().unwrap();
}
