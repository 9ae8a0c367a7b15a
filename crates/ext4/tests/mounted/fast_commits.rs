//! Which operations leave an fsync a fast commit, and which a full one; and where fast commits
//! are refused. Power cuts are judged in `power_cut`, `format` and crate crash.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_format::ondisk::{Compat, RoCompat};
use steadfast_ext4_mkfs::{JournalChoice, Options, make};
use steadfast_runtime::{Sim, sleep};
use steadfast_vfs::{
    Fallocate, FileSystem, Ino, NewNode, OpenFlags, RenameFlags, SetAttr, SetXattr,
};

use crate::{RW, create, read_all};

fn made(change: impl FnOnce(&mut Options)) -> Arc<dyn BlockDevice> {
    let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 32 << 20).persistent());
    let mut options = Options::random(1_700_000_000);
    options.block_size = Some(4096);
    options.features.compat |= Compat::FAST_COMMIT;
    change(&mut options);
    make(&disk, &options).unwrap();
    disk
}

fn fast() -> MountOptions {
    let mut options = MountOptions::default();
    options.journal.fast_commits = true;
    options
}

/// The root directory's file `name`, made durable by a full commit.
fn settled(fs: &Ext4, name: &str) -> Ino {
    let (attr, fh) = create(fs, name, RW);
    fs.write(fh, 0, vec![7; 10_000].into()).unwrap();
    fs.release(fh).unwrap();
    fs.sync().unwrap();
    attr.ino
}

fn write(fs: &Ext4, ino: Ino, at: u64, len: usize) {
    let fh = fs.open(ino, RW).unwrap();
    fs.write(fh, at, vec![9; len].into()).unwrap();
    fs.release(fh).unwrap();
}

fn fsync(fs: &Ext4, ino: Ino) {
    let fh = fs.open(ino, OpenFlags::READ).unwrap();
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
}

type Act = fn(&Ext4, Ino);

fn set(fs: &Ext4, ino: Ino, set: SetAttr) {
    fs.setattr(ino, set).unwrap();
}

const RECORDED: [(&str, Act); 9] = [
    ("append", |fs, ino| write(fs, ino, 10_000, 9_000)),
    ("fill a hole", |fs, ino| write(fs, ino, 100_000, 100)),
    ("overwrite", |fs, ino| write(fs, ino, 0, 100)),
    ("chmod", |fs, ino| set(fs, ino, SetAttr { mode: Some(0o600), ..SetAttr::default() })),
    ("chown", |fs, ino| set(fs, ino, SetAttr { uid: Some(5), ..SetAttr::default() })),
    ("link", |fs, ino| {
        fs.link(ino, fs.root(), b"recorded-link").unwrap();
    }),
    ("unlink one of two", |fs, _| fs.unlink(fs.root(), b"recorded-link").unwrap()),
    ("rename", |fs, _| {
        fs.rename((fs.root(), b"file"), (fs.root(), b"moved"), RenameFlags::empty()).unwrap();
    }),
    ("create", |fs, _| {
        let (attr, fh) = create(fs, "recorded-new", RW);
        fs.write(fh, 0, vec![1; 5000].into()).unwrap();
        fs.release(fh).unwrap();
        fsync(fs, attr.ino);
    }),
];

const NOT_RECORDED: [(&str, Act); 10] = [
    ("truncate", |fs, ino| set(fs, ino, SetAttr { size: Some(100), ..SetAttr::default() })),
    ("unlink the last", |fs, _| fs.unlink(fs.root(), b"other").unwrap()),
    ("replace", |fs, _| {
        fs.rename((fs.root(), b"third"), (fs.root(), b"fourth"), RenameFlags::empty()).unwrap();
    }),
    ("exchange", |fs, _| {
        fs.rename((fs.root(), b"moved"), (fs.root(), b"fourth"), RenameFlags::EXCHANGE).unwrap();
    }),
    ("mkdir", |fs, _| {
        fs.mkdir(fs.root(), b"dir", NewNode::default()).unwrap();
    }),
    ("rename a directory", |fs, _| {
        fs.rename((fs.root(), b"dir"), (fs.root(), b"moved-dir"), RenameFlags::empty()).unwrap();
    }),
    ("symlink", |fs, _| {
        fs.symlink(fs.root(), b"l", b"x", NewNode::default()).unwrap();
    }),
    ("xattr", |fs, ino| fs.setxattr(ino, b"user.x", b"y", SetXattr::Any).unwrap()),
    ("punch a hole", |fs, ino| {
        let fh = fs.open(ino, RW).unwrap();
        fs.fallocate(fh, Fallocate::PunchHole, 0, 4096).unwrap();
        fs.release(fh).unwrap();
    }),
    ("an extent tree", |fs, ino| (0..20).for_each(|n| write(fs, ino, 1_000_000 + n * 90_000, 9))),
];

#[test]
fn what_can_be_recorded_is_and_nothing_else() {
    Sim::new(1).run(recorded_and_not_recorded).unwrap();
}

fn recorded_and_not_recorded() {
    let disk = made(|_| {});
    let fs = Ext4::mount(disk.clone(), fast()).unwrap();
    let counts = || {
        let stats = fs.journal().unwrap().stats();
        (stats.commits, stats.fast_commits)
    };
    let ino = settled(&fs, "file");
    for name in ["other", "third", "fourth"] {
        settled(&fs, name);
    }
    // The counts before it and after.
    let count_around = |act: fn(&Ext4, Ino)| {
        fs.sync().unwrap();
        // The times change.
        sleep(Duration::from_millis(20));
        let before = counts();
        act(&fs, ino);
        fsync(&fs, ino);
        fs.fsyncdir(fs.root()).unwrap();
        (before, counts())
    };
    for (what, act) in RECORDED {
        let (before, after) = count_around(act);
        assert_eq!(after.0, before.0, "{what}: no full commit");
        assert!(after.1 > before.1, "{what}: a fast commit");
    }
    for (what, act) in NOT_RECORDED {
        let (before, after) = count_around(act);
        assert!(after.0 > before.0, "{what}: a full commit");
        assert_eq!(after.1, before.1, "{what}: no fast commit");
    }
    // Nothing to do: nothing is done.
    let before = counts();
    fsync(&fs, ino);
    assert_eq!(counts(), before);
    fs.unmount().unwrap();
    let fs = Ext4::mount(disk, MountOptions::default()).unwrap();
    assert_eq!(read_all(&*fs, "recorded-new"), [1; 5000]);
    fs.unmount().unwrap();
}

#[test]
fn a_full_area_makes_a_full_commit() {
    Sim::new(1).run(more_than_fits).unwrap();
}

fn more_than_fits() {
    let fs = Ext4::mount(made(|_| {}), fast()).unwrap();
    let ino = settled(&fs, "file");
    for n in 0..600u64 {
        write(&fs, ino, n % 2 * 4096, 1);
        let mode = Some(0o600 + n as u16 % 64);
        set(&fs, ino, SetAttr { mode, ..SetAttr::default() });
        fsync(&fs, ino);
    }
    let stats = fs.journal().unwrap().stats();
    assert!(stats.fast_commits > 500 && stats.commits < 20, "{stats:?}");
    fs.unmount().unwrap();
}

#[test]
fn refused_by_name() {
    let refusal = |disk: &Arc<dyn BlockDevice>, options| {
        Ext4::mount(disk.clone(), options).map(drop).unwrap_err().to_string()
    };
    let without = made(|options| options.features.compat.remove(Compat::FAST_COMMIT));
    let said = refusal(&without, fast());
    assert!(said.contains("fast_commit") && said.contains("tune2fs -O fast_commit"), "{said}");
    let clusters = made(|options| options.features.ro_compat |= RoCompat::BIGALLOC);
    assert!(refusal(&clusters, fast()).contains("bigalloc"));
    let disk = made(|_| {});
    for data in [DataMode::Journal, DataMode::Transact] {
        let said = refusal(&disk, MountOptions { data, ..fast() });
        assert!(said.contains("fast_commit") && said.contains("data=ordered"), "{said}");
    }
    let mut options = MountOptions { data: DataMode::Writeback, ..fast() };
    options.journal.async_commit = true;
    assert!(refusal(&disk, options).contains("journal_async_commit"));
    let bare: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 32 << 20).persistent());
    let mut options = Options::random(1);
    options.features.compat |= Compat::FAST_COMMIT;
    options.journal = JournalChoice::None;
    let said = make(&bare, &options).unwrap_err().to_string();
    assert!(said.contains("fast_commit needs a journal"), "{said}");
}
