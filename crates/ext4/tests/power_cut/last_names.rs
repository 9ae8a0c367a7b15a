//! Last names that go: of a file that is open the contents stay for whoever has it open, and after
//! a cut the file is nobody's, and free. Every way in which a name goes is tried.

use std::sync::Arc;

use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Note;
use steadfast_ext4::{DataMode, Ext4};
use steadfast_vfs::{Fh, FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags as Flags, path};

use crate::workload::contents;
use crate::{PLAIN, Setup, judge_cuts, run_with};

/// Notes: the file of this way is there, whole; its last name is gone, durably.
const THERE: u64 = 50;
const GONE: u64 = 51;
/// All names are gone, and with nothing open so many inodes are free.
const ALL_GONE: u64 = 52;

const LEN: usize = 9000;
const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

/// Unlinks the last name of the file `victim` in this directory, which also has the file `other`.
type Way = (&'static str, fn(&Ext4, Ino));

pub const WAYS: [Way; 10] = [
    ("unlink", |fs, dir| unlink(fs, dir, "victim")),
    ("rename over it", |fs, dir| rename(fs, dir, "other", dir, "victim")),
    ("rename over it from another directory", |fs, dir| {
        let sub = fs.mkdir(dir, b"sub", NewNode::default()).unwrap().ino;
        rename(fs, dir, "other", sub, "moved");
        rename(fs, sub, "moved", dir, "victim");
    }),
    ("rename over it, and leave a whiteout", |fs, dir| {
        fs.rename(dir, b"other", dir, b"victim", Flags::WHITEOUT).unwrap();
    }),
    ("exchange, then unlink", |fs, dir| {
        fs.rename(dir, b"other", dir, b"victim", Flags::EXCHANGE).unwrap();
        unlink(fs, dir, "other");
    }),
    ("exchange, then rename over it", |fs, dir| {
        fs.rename(dir, b"other", dir, b"victim", Flags::EXCHANGE).unwrap();
        rename(fs, dir, "victim", dir, "other");
    }),
    ("link, then unlink both", |fs, dir| {
        link(fs, dir, "victim", "second");
        unlink(fs, dir, "victim");
        unlink(fs, dir, "second");
    }),
    ("link, unlink, then rename over it", |fs, dir| {
        link(fs, dir, "victim", "second");
        unlink(fs, dir, "victim");
        rename(fs, dir, "other", dir, "second");
    }),
    ("rename, then unlink", |fs, dir| {
        rename(fs, dir, "victim", dir, "third");
        unlink(fs, dir, "third");
    }),
    ("unlink, and the directory goes too", |fs, dir| {
        unlink(fs, dir, "victim");
        unlink(fs, dir, "other");
        fs.rmdir(fs.root(), &directory(WAYS.len() - 1)).unwrap();
    }),
];

fn unlink(fs: &Ext4, dir: Ino, name: &str) {
    fs.unlink(dir, name.as_bytes()).unwrap();
}

fn link(fs: &Ext4, dir: Ino, name: &str, new: &str) {
    let ino = fs.lookup(dir, name.as_bytes()).unwrap().ino;
    fs.link(ino, dir, new.as_bytes()).unwrap();
}

fn rename(fs: &Ext4, from_dir: Ino, from: &str, to_dir: Ino, to: &str) {
    fs.rename(from_dir, from.as_bytes(), to_dir, to.as_bytes(), Flags::empty()).unwrap();
}

fn directory(way: usize) -> Vec<u8> {
    format!("way{way}").into_bytes()
}

/// What the file that loses its name holds, and the other one in its directory.
fn victim(way: usize) -> Vec<u8> {
    contents(9000 + way as u64, 0, LEN).to_vec()
}

fn other(way: usize) -> Vec<u8> {
    contents(9500 + way as u64, 0, LEN).to_vec()
}

fn make(fs: &Ext4, dir: Ino, name: &str, data: Vec<u8>) -> (Ino, Fh) {
    let (attr, fh) = fs.create(dir, name.as_bytes(), NewNode::default(), RW).unwrap();
    fs.write(fh, 0, data.into()).unwrap();
    fs.fsync(fh, false).unwrap();
    (attr.ino, fh)
}

/// Unlinks the last names of files that stay open, or that were closed before. Returns how many
/// inodes are still open.
pub fn take(fs: &Ext4, log: &RecordLog, keep_open: bool) -> u64 {
    // One that never had a name.
    let (_, unnamed) = fs.tmpfile(fs.root(), NewNode::default(), RW).unwrap();
    let mut open = vec![unnamed];
    for (i, (way, act)) in WAYS.iter().enumerate() {
        let dir = fs.mkdir(fs.root(), &directory(i), NewNode::default()).unwrap().ino;
        let (ino, fh) = make(fs, dir, "victim", victim(i));
        let (_, other) = make(fs, dir, "other", other(i));
        fs.release(other).unwrap();
        fs.sync().unwrap();
        log.note(THERE, [i as u64, 0, 0]);
        if keep_open {
            act(fs, dir);
            assert_eq!(fs.getattr(ino).unwrap().nlink, 0, "{way}");
            assert!(fs.read(fh, 0, LEN).unwrap() == victim(i), "{way}");
            open.push(fh);
        } else {
            fs.release(fh).unwrap();
            act(fs, dir);
        }
        fs.sync().unwrap();
        log.note(GONE, [i as u64, 0, 0]);
    }
    open.len() as u64
}

/// The recording ends before anything is closed.
fn run(fs: &Arc<Ext4>, log: &RecordLog) {
    // A file that is open holds its inode.
    let open = take(fs, log, true);
    log.note(ALL_GONE, [fs.statfs().unwrap().inodes_free + open, 0, 0]);
}

/// Holds what is there after a recovery against the notes.
pub fn judge(fs: &Ext4, notes: &[Note], what: &str) {
    let noted = |label, i: usize| notes.iter().any(|n| n.label == label && n.detail[0] == i as u64);
    for i in (0..WAYS.len()).filter(|i| noted(THERE, *i)) {
        let what = format!("{what}, way: {}", WAYS[i].0);
        let files = match fs.lookup(fs.root(), &directory(i)) {
            Ok(dir) => files(fs, dir.ino),
            Err(FsError::NotFound) => Vec::new(),
            Err(e) => panic!("{what}: {e}"),
        };
        let whole = |data: &Vec<u8>| *data == victim(i) || *data == other(i);
        assert!(files.iter().all(whole), "{what}: a file that is not whole");
        let left = files.iter().any(|data| *data == victim(i));
        assert!(!left || !noted(GONE, i), "{what}: it is back");
    }
    if let Some(all) = notes.iter().find(|n| n.label == ALL_GONE) {
        let free = fs.statfs().unwrap().inodes_free;
        assert_eq!(free, all.detail[0], "{what}: inodes that nobody has are not free");
    }
}

/// The contents of the regular files in a directory.
fn files(fs: &Ext4, dir: Ino) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for entry in path::list(fs, dir).unwrap() {
        let attr = fs.lookup(dir, &entry.name).unwrap();
        if attr.kind == steadfast_vfs::FileType::Regular {
            let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
            out.push(fs.read(fh, 0, 2 * LEN).unwrap().to_vec());
            fs.release(fh).unwrap();
        }
    }
    out
}

/// Cuts around all that makes something durable; what may be lost is lost.
fn cut_while_open(setup: Setup, one_in: usize) {
    let run = run_with(setup, 1, false, run);
    let all_gone = run.recording.notes().last().unwrap().moment.tick;
    let cuts = run.recording.boundaries().into_iter().map(|cut| (cut, 0)).step_by(one_in);
    judge_cuts(setup, &run, 1, cuts.chain([(all_gone + 1, 0), (all_gone + 1, 100)]));
}

#[test]
fn last_names() {
    cut_while_open(PLAIN, 1);
}

#[test]
fn last_names_in_an_orphan_file() {
    cut_while_open(Setup { orphan_file: true, block_size: 1024, ..PLAIN }, 2);
}

#[test]
fn last_names_beside_fast_commits() {
    cut_while_open(Setup { fast_commits: true, external: true, ..PLAIN }, 3);
}

#[test]
fn last_names_with_block_maps() {
    cut_while_open(Setup { block_maps: true, data: DataMode::Journal, ..PLAIN }, 3);
}
