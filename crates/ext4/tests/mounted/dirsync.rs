//! `dirsync`: a power cut after a change of names leaves it, without any fsync.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{JournalChoice, Options, make};
use steadfast_vfs::{FileSystem, FileType, FsError, NewNode, RenameFlags};

use crate::RW;

fn options(sync_names: bool) -> MountOptions {
    let mut options = MountOptions { sync_names, ..MountOptions::default() };
    options.journal.commit_interval = Duration::from_secs(3600);
    options
}

fn on(disk: &Ram, options: MountOptions) -> Arc<Ext4> {
    Ext4::mount(Arc::new(disk.clone()), options).unwrap()
}

/// Names below the root and below `dir`, as a power cut now leaves them.
fn after_a_cut(disk: &Ram) -> Vec<String> {
    let fs = on(&Ram::from_store("after", disk.store()).persistent(), options(false));
    let mut names = Vec::new();
    let mut folders = vec![fs.root()];
    if let Ok(dir) = fs.lookup(fs.root(), b"dir") {
        folders.push(dir.ino);
    }
    for folder in folders {
        let all = steadfast_vfs::path::list(&*fs, folder).unwrap();
        names.extend(all.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()));
    }
    names.retain(|name| !name.starts_with('.') && name != "lost+found");
    names.sort();
    fs.unmount().unwrap();
    names
}

#[test]
fn each_change_of_names_survives_a_power_cut() {
    type Change = fn(&Ext4) -> Result<(), FsError>;
    let changes: [(&str, Change, &[&str]); 8] = [
        ("mkdir", |fs| fs.mkdir(fs.root(), b"dir", NewNode::default()).map(drop), &["dir"]),
        (
            "create",
            |fs| {
                let (_, fh) = fs.create(fs.root(), b"file", NewNode::default(), RW)?;
                fs.release(fh)
            },
            &["dir", "file"],
        ),
        (
            "link",
            |fs| {
                let (file, dir) = (fs.lookup(fs.root(), b"file")?, fs.lookup(fs.root(), b"dir")?);
                fs.link(file.ino, dir.ino, b"second").map(drop)
            },
            &["dir", "file", "second"],
        ),
        (
            "rename",
            |fs| {
                let dir = fs.lookup(fs.root(), b"dir")?.ino;
                fs.rename((fs.root(), b"file"), (dir, b"moved"), RenameFlags::empty())
            },
            &["dir", "moved", "second"],
        ),
        (
            "unlink",
            |fs| {
                let dir = fs.lookup(fs.root(), b"dir")?.ino;
                fs.unlink(dir, b"moved")?;
                fs.unlink(dir, b"second")
            },
            &["dir"],
        ),
        ("rmdir", |fs| fs.rmdir(fs.root(), b"dir"), &[]),
        (
            "symlink",
            |fs| fs.symlink(fs.root(), b"link", b"target", NewNode::default()).map(drop),
            &["link"],
        ),
        (
            "mknod",
            |fs| {
                let node = NewNode::default();
                fs.mknod(fs.root(), b"pipe", (FileType::Fifo, 0), node).map(drop)
            },
            &["link", "pipe"],
        ),
    ];
    let journals = [("a journal", JournalChoice::Internal), ("no journal", JournalChoice::None)];
    for (name, journal) in journals {
        let disk = Ram::new("disk", 32 << 20).persistent();
        let device: Arc<dyn BlockDevice> = Arc::new(disk.clone());
        make(&device, &Options { journal, ..Options::random(1_700_000_000) }).unwrap();
        let fs = on(&disk, options(true));
        for (what, change, left) in &changes {
            change(&fs).unwrap();
            assert_eq!(after_a_cut(&disk), *left, "{what}, {name}");
        }
        fs.unmount().unwrap();
        // Without it they wait: the test can fail.
        let fs = on(&disk, options(false));
        changes[0].1(&fs).unwrap();
        assert_eq!(after_a_cut(&disk), ["link", "pipe"], "{name}");
    }
}

#[test]
fn transaction_points_go_by_their_mask_instead() {
    let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 32 << 20));
    make(&disk, &Options::random(1_700_000_000)).unwrap();
    let both = MountOptions { data: DataMode::Transact, ..options(true) };
    let said = Ext4::mount(disk, both).unwrap_err().to_string();
    assert!(said.contains("dirsync") && said.contains("transact="), "{said}");
}
