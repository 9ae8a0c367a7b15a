//! Times of change: who looks twice sees every change between, and who does not costs nothing.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_vfs::{FileSystem, Ino, NewNode, SetAttr, SetXattr, Timestamp};

use crate::{RW, create};

fn mounted() -> Arc<Ext4> {
    let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 64 << 20));
    make(&disk, &Options::random(1_700_000_000)).unwrap();
    Ext4::mount(disk, MountOptions::default()).unwrap()
}

fn ctime(fs: &Ext4, ino: Ino) -> Timestamp {
    fs.getattr(ino).unwrap().ctime
}

/// What it is called, whose time it is to change, and what does it.
type Change<'a> = (&'a str, Ino, &'a dyn Fn(u16));

#[test]
fn who_looks_again_sees_that_there_was_a_change() {
    let fs = mounted();
    let (file, fh) = create(&*fs, "file", RW);
    let root = fs.root();
    let other = fs.mkdir(root, b"dir", NewNode::default()).unwrap().ino;
    let changes: [Change<'_>; 6] = [
        ("chmod", file.ino, &|n| {
            let mode = SetAttr { mode: Some(0o600 + n % 2), ..SetAttr::default() };
            fs.setattr(file.ino, mode).map(drop).unwrap();
        }),
        ("write", file.ino, &|n| {
            fs.write(fh, 0, vec![n as u8; 100].into()).unwrap();
            let now = fs.getattr(file.ino).unwrap();
            assert_eq!(now.mtime, now.ctime);
        }),
        ("setxattr", file.ino, &|n| {
            fs.setxattr(file.ino, b"user.n", &n.to_le_bytes(), SetXattr::Any).unwrap();
        }),
        ("flags", file.ino, &|n| {
            let flags = fs.inode_flags(file.ino).unwrap() & !0x40;
            fs.set_inode_flags(file.ino, flags | (u32::from(n % 2) * 0x40)).unwrap();
        }),
        ("a name in a directory", other, &|n| {
            fs.link(file.ino, other, format!("{n}").as_bytes()).map(drop).unwrap();
        }),
        ("one more link", file.ino, &|n| {
            fs.link(file.ino, root, format!("{n}").as_bytes()).map(drop).unwrap();
        }),
    ];
    for (what, ino, change) in changes {
        let mut before = ctime(&fs, ino);
        for n in 0..200 {
            change(n);
            let after = ctime(&fs, ino);
            assert!(after > before, "{what} {n}: {before:?}, then {after:?}");
            before = after;
        }
    }
    // What nobody has looked at never gets a time before what was changed earlier.
    let (second, second_fh) = create(&*fs, "second", RW);
    for n in 0..200u8 {
        fs.write(fh, 0, vec![n; 10].into()).unwrap();
        let first = ctime(&fs, file.ino);
        fs.write(second_fh, 0, vec![n; 10].into()).unwrap();
        assert!(ctime(&fs, second.ino) >= first, "{n}");
    }
    fs.release(fh).unwrap();
    fs.release(second_fh).unwrap();
    fs.unmount().unwrap();
}

#[test]
fn writes_that_nobody_looks_at_have_no_transaction_each() {
    let fs = mounted();
    let (_, fh) = create(&*fs, "file", RW);
    let updates = || fs.journal().unwrap().stats().updates;
    let before = updates();
    let begun = std::time::Instant::now();
    for n in 0..4000u32 {
        fs.write(fh, 0, n.to_le_bytes().to_vec().into()).unwrap();
    }
    // One a tick, and a few for the file's first block and its size.
    let ticks = begun.elapsed().as_millis() as u64 / 4 + 1;
    let made = updates() - before;
    assert!(made <= ticks + 10, "{made} transactions in {ticks} ticks");
    fs.release(fh).unwrap();
    fs.unmount().unwrap();
}
