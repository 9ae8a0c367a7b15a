//! Files that have one inode number one after the other are not taken for one another.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_devices::filter::record::{Record, RecordLog};
use steadfast_devices::source::Ram;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_vfs::{FileSystem, NewNode, OpenFlags, RenameFlags};

use super::{Verdict, judge};
use crate::program::WatchedFs;
use crate::tree::Tree;

const TEXT: &[u8] = b"AAAA";

fn write(fs: &dyn FileSystem, name: &[u8]) {
    let (_, fh) = fs.create(fs.root(), name, NewNode::default(), OpenFlags::WRITE).unwrap();
    fs.write(fh, 0, Bytes::from_static(TEXT)).unwrap();
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
}

fn number(fs: &dyn FileSystem, name: &[u8]) -> u64 {
    fs.lookup(fs.root(), name).unwrap().ino.0
}

/// "a" is replaced by another file, and "log" gets its inode number and holds the same bytes. What
/// a disk that lost all of that leaves is judged: the tree as it was before.
fn verdict(sync_folder: bool) -> Verdict {
    let ram: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 16 << 20));
    make(&ram, &Options::random(1_704_067_200)).unwrap();
    let log = RecordLog::new();
    let disk: Arc<dyn BlockDevice> = Arc::new(Record::new(ram, &log));
    let fs: Arc<dyn FileSystem> = Ext4::mount(disk, MountOptions::default()).unwrap();
    write(&*fs, b"a");
    let (base, old) = (Tree::read(&*fs).unwrap(), number(&*fs, b"a"));
    let watched = WatchedFs::new(Arc::clone(&fs), &log);
    let root = fs.root();
    write(&watched, b"a.tmp");
    watched.rename((root, b"a.tmp"), (root, b"a"), RenameFlags::empty()).unwrap();
    // Committed, so that its number is free.
    watched.sync().unwrap();
    write(&watched, b"log");
    assert_eq!(number(&*fs, b"log"), old, "the number is used again");
    if sync_folder {
        watched.fsyncdir(root).unwrap();
    }
    judge(&watched.calls(), &base, &base, u64::MAX)
}

#[test]
fn a_lost_file_is_not_another_one_that_had_its_number() {
    let broken: Vec<_> = verdict(true).broken.into_iter().map(|broken| broken.what).collect();
    let gone = "log: was synced, its name too, and is gone";
    assert!(broken.iter().any(|what| what == gone), "{broken:?}");
}

#[test]
fn a_lost_file_whose_name_nothing_promised_is_not_measured() {
    let verdict = verdict(false);
    let said = |what: &String| what.starts_with("log: synced, is gone");
    assert!(verdict.unmeasured.iter().any(said), "{verdict:?}");
    assert!(!verdict.broken.iter().any(|broken| broken.what.starts_with("log")), "{verdict:?}");
}
