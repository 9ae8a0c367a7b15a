//! What runs until the power goes: tasks that promise things to themselves, and noise.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_devices::filter::RecordLog;
use steadfast_ext4::Ext4;
use steadfast_runtime::{spawn, yield_now};
use steadfast_vfs::{FileSystem, FsError, NewNode, OpenFlags, RenameFlags, SetAttr};

/// Notes: a file holds its contents up to so many bytes.
pub const APPENDED: u64 = 1;
/// A sector range of the direct file holds at least this version.
pub const OVERWRITTEN: u64 = 2;
/// The replaced file holds at least this version.
pub const REPLACED: u64 = 3;
/// The name exists.
pub const MADE: u64 = 4;

/// The file that was made without a name has its name.
pub const NAMED: u64 = 5;

/// Size of the records of the direct file.
pub const RECORD: u64 = 16384;
pub const RECORDS: u64 = 24;

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

/// The byte that belongs at `at` of file `file`.
pub fn byte(file: u64, at: u64) -> u8 {
    let mixed = (at / 7).wrapping_mul(0x9e37_79b9).wrapping_add(file * 77);
    (mixed >> 8) as u8 | 1
}

pub fn contents(file: u64, from: u64, len: usize) -> Bytes {
    (from..from + len as u64).map(|at| byte(file, at)).collect()
}

/// Runs everything and returns when all tasks are done. `recorded`: only what leaves an fsync a
/// fast commit most of the time.
pub fn run(fs: &Arc<Ext4>, log: &RecordLog, recorded: bool) {
    let all: Vec<fn(&Ext4, &RecordLog)> = vec![
        crate::attributes::run,
        append,
        direct,
        replace,
        names,
        unnamed,
        crate::removed::run,
        noise,
        noise_big,
        crate::shaped::run,
        crate::renamed::whiteouts,
        crate::renamed::labels,
        crate::renamed::shortened,
    ];
    let some: Vec<fn(&Ext4, &RecordLog)> = vec![append, replace, names, noise_recorded];
    let tasks = if recorded { some } else { all };
    let running: Vec<_> = tasks
        .into_iter()
        .enumerate()
        .map(|(i, task)| {
            let (fs, log) = (Arc::clone(fs), log.clone());
            spawn(format!("worker {i}"), move || task(&fs, &log))
        })
        .collect();
    running.into_iter().for_each(|t| t.join().unwrap_or_else(|p| p.resume()));
}

fn append(fs: &Ext4, log: &RecordLog) {
    let flags = RW | OpenFlags::APPEND;
    let (_, fh) = fs.create(fs.root(), b"appended", NewNode::default(), flags).unwrap();
    let mut end = 0;
    for i in 0..60 {
        let data = contents(1, end, 700 + i * 41);
        end += fs.write(fh, 0, data).unwrap() as u64;
        fs.fsync(fh, i % 2 == 0).unwrap();
        log.note(APPENDED, [1, end, 0]);
    }
    fs.release(fh).unwrap();
}

fn direct(fs: &Ext4, log: &RecordLog) {
    let flags = RW | OpenFlags::DIRECT | OpenFlags::SYNC;
    let (_, fh) = fs.create(fs.root(), b"direct", NewNode::default(), flags).unwrap();
    for version in 1..5u64 {
        for record in 0..RECORDS {
            let at = record * RECORD;
            let data = steadfast_block::pattern::bytes(version, at, RECORD as usize);
            assert_eq!(fs.write(fh, at, data).unwrap() as u64, RECORD);
            log.note(OVERWRITTEN, [record, version, 0]);
        }
    }
    fs.release(fh).unwrap();
}

fn replace(fs: &Ext4, log: &RecordLog) {
    for version in 1..25u64 {
        let (_, fh) = fs.create(fs.root(), b"new", NewNode::default(), RW).unwrap();
        fs.write(fh, 0, contents(100 + version, 0, 9000)).unwrap();
        fs.fsync(fh, false).unwrap();
        fs.release(fh).unwrap();
        let root = fs.root();
        fs.rename((root, b"new"), (root, b"replaced"), RenameFlags::empty()).unwrap();
        fs.fsyncdir(root).unwrap();
        log.note(REPLACED, [version, 0, 0]);
    }
}

/// Files that get their names when they are whole.
fn unnamed(fs: &Ext4, log: &RecordLog) {
    for i in 0..30u64 {
        let (attr, fh) = fs.tmpfile(fs.root(), NewNode::default(), RW).unwrap();
        fs.write(fh, 0, contents(3000 + i, 0, 6000)).unwrap();
        fs.fsync(fh, false).unwrap();
        if i % 3 > 0 {
            fs.link(attr.ino, fs.root(), format!("named{i}").as_bytes()).unwrap();
            fs.fsync(fh, false).unwrap();
            log.note(NAMED, [i, 0, 0]);
        }
        fs.release(fh).unwrap();
    }
}

fn names(fs: &Ext4, log: &RecordLog) {
    let dir = fs.mkdir(fs.root(), b"names", NewNode::default()).unwrap().ino;
    for i in 0..80u64 {
        let name = format!("a-rather-long-name-so-that-blocks-fill-up-{i}");
        let (_, fh) = fs.create(dir, name.as_bytes(), NewNode::default(), RW).unwrap();
        fs.release(fh).unwrap();
        if i % 8 == 7 {
            fs.fsyncdir(dir).unwrap();
            log.note(MADE, [i + 1, 0, 0]);
        }
        if i % 20 == 19 {
            let sub = format!("sub{i}");
            let sub = fs.mkdir(dir, sub.as_bytes(), NewNode::default()).unwrap().ino;
            fs.symlink(sub, b"link", &[b'x'; 200], NewNode::default()).unwrap();
        }
    }
}

/// Files that come, grow, shrink and go, without anybody waiting for them.
fn noise(fs: &Ext4, _: &RecordLog) {
    let root = fs.root();
    for i in 0..60u64 {
        let name = format!("noise{}", i % 5);
        match fs.unlink(root, name.as_bytes()) {
            Ok(()) | Err(FsError::NotFound) => {}
            Err(e) => panic!("{e}"),
        }
        let (attr, fh) = fs.create(root, name.as_bytes(), NewNode::default(), RW).unwrap();
        let file = 1000 + i % 5;
        fs.write(fh, 0, contents(file, 0, 30_000)).unwrap();
        fs.write(fh, 200_000, contents(file, 200_000, 20_000)).unwrap();
        if i % 3 == 0 {
            let size = Some(11_111 * (i % 7));
            fs.setattr(attr.ino, SetAttr { size, ..SetAttr::default() }).unwrap();
            fs.write(fh, 5_000, contents(file, 5_000, 100)).unwrap();
        }
        if i % 4 == 0 {
            fs.unlink(root, name.as_bytes()).unwrap();
            fs.write(fh, 90_000, contents(file, 90_000, 5_000)).unwrap();
        }
        fs.release(fh).unwrap();
        for _ in 0..20 {
            yield_now();
        }
    }
}

/// Files that come, grow, and change their names.
fn noise_recorded(fs: &Ext4, _: &RecordLog) {
    let root = fs.root();
    for i in 0..40u64 {
        let (attr, fh) = fs.create(root, b"first", NewNode::default(), RW).unwrap();
        let file = 1000 + i;
        fs.write(fh, 0, contents(file, 0, 3_000 * (i as usize % 5))).unwrap();
        fs.write(fh, 100_000, contents(file, 100_000, 5_000)).unwrap();
        let name = format!("noise{i}");
        fs.rename((root, b"first"), (root, name.as_bytes()), RenameFlags::empty()).unwrap();
        if i % 3 == 0 {
            fs.fsync(fh, false).unwrap();
        }
        if i % 4 == 0 {
            fs.link(attr.ino, root, b"second").unwrap();
            fs.unlink(root, b"second").unwrap();
        }
        fs.release(fh).unwrap();
        for _ in 0..10 {
            yield_now();
        }
    }
}

fn noise_big(fs: &Ext4, _: &RecordLog) {
    let root = fs.root();
    for round in 0..3u64 {
        let (_, fh) = fs.create(root, b"big", NewNode::default(), RW).unwrap();
        for i in 0..48u64 {
            let at = i * 100_000;
            fs.write(fh, at, contents(2000 + round, at, 100_000)).unwrap();
        }
        fs.release(fh).unwrap();
        if round == 1 {
            fs.sync().unwrap();
        }
        fs.unlink(root, b"big").unwrap();
    }
}
