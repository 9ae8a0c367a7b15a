//! Last names that go: of a file that is open or held the contents stay for whoever has it, and
//! after a cut the file is nobody's, and free. Every way in which a name goes is tried.

use std::sync::Arc;

use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Note;
use steadfast_ext4::{DataMode, Ext4};
use steadfast_vfs::{
    Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags as Flags, path,
};

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
        fs.rename((dir, b"other"), (dir, b"victim"), Flags::WHITEOUT).unwrap();
    }),
    ("exchange, then unlink", |fs, dir| {
        fs.rename((dir, b"other"), (dir, b"victim"), Flags::EXCHANGE).unwrap();
        unlink(fs, dir, "other");
    }),
    ("exchange, then rename over it", |fs, dir| {
        fs.rename((dir, b"other"), (dir, b"victim"), Flags::EXCHANGE).unwrap();
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
    fs.rename((from_dir, from.as_bytes()), (to_dir, to.as_bytes()), Flags::empty()).unwrap();
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

/// What somebody has of a file whose last name goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Has {
    Nothing,
    /// It is open.
    Handle,
    /// Its number is in use.
    Hold,
}

/// Unlinks the last names of files of which somebody has this. Returns the inodes that are still in
/// use.
pub fn take(fs: &Ext4, log: &RecordLog, has: Has) -> Vec<Ino> {
    // One that never had a name.
    let (unnamed, _) = fs.tmpfile(fs.root(), NewNode::default(), RW).unwrap();
    let mut left = vec![unnamed.ino];
    for (i, (way, act)) in WAYS.iter().enumerate() {
        let dir = fs.mkdir(fs.root(), &directory(i), NewNode::default()).unwrap().ino;
        let (ino, fh) = make(fs, dir, "victim", victim(i));
        let (_, other) = make(fs, dir, "other", other(i));
        fs.release(other).unwrap();
        fs.sync().unwrap();
        log.note(THERE, [i as u64, 0, 0]);
        if has == Has::Hold {
            fs.hold(ino).unwrap();
        }
        if has != Has::Handle {
            fs.release(fh).unwrap();
        }
        act(fs, dir);
        if has != Has::Nothing {
            assert_eq!(fs.getattr(ino).unwrap().nlink, 0, "{way}");
            let again = if has == Has::Hold { fs.open(ino, RW).unwrap() } else { fh };
            assert!(fs.read(again, 0, LEN).unwrap() == victim(i), "{way}");
            if has == Has::Hold {
                fs.release(again).unwrap();
            }
            left.push(ino);
        }
        fs.sync().unwrap();
        log.note(GONE, [i as u64, 0, 0]);
    }
    left
}

/// What is no file is held, too, and loses its name. Returns these inodes.
fn take_others(fs: &Ext4) -> Vec<Ino> {
    let (root, node) = (fs.root(), NewNode::default());
    let [one, two, three] =
        [&b"held1"[..], b"held2", b"held3"].map(|name| fs.mkdir(root, name, node).unwrap().ino);
    let link = fs.symlink(root, b"link", &[b'l'; 300], node).unwrap().ino;
    let pipe = fs.mknod(root, b"pipe", (FileType::Fifo, 0), node).unwrap().ino;
    let short = fs.symlink(root, b"short", b"s", node).unwrap().ino;
    for ino in [one, two, link, pipe] {
        fs.hold(ino).unwrap();
    }
    fs.rmdir(root, b"held1").unwrap();
    fs.rename((root, b"held3"), (root, b"held2"), Flags::empty()).unwrap();
    fs.rename((root, b"short"), (root, b"link"), Flags::empty()).unwrap();
    fs.unlink(root, b"pipe").unwrap();
    assert_eq!(fs.lookup(root, b"held2").unwrap().ino, three);
    assert_eq!(fs.lookup(root, b"link").unwrap().ino, short);
    vec![one, two, link, pipe]
}

/// The recording ends before anything is closed.
fn run(fs: &Arc<Ext4>, log: &RecordLog) {
    // A file that is open keeps its inode.
    let open = take(fs, log, Has::Handle).len() as u64;
    log.note(ALL_GONE, [fs.statfs().unwrap().inodes_free + open, 0, 0]);
}

/// Everything is let go of: first some, whose deletion becomes durable, then the others.
fn run_held(fs: &Arc<Ext4>, log: &RecordLog) {
    let files = take(fs, log, Has::Hold);
    let others = take_others(fs);
    fs.sync().unwrap();
    let all = fs.statfs().unwrap().inodes_free + (files.len() + others.len()) as u64;
    log.note(ALL_GONE, [all, 0, 0]);
    // The first one is open, and never let go of.
    let (some, rest) = files[1..].split_at(3);
    for ino in some.iter().chain(&others) {
        assert!(fs.let_go(*ino, 1));
    }
    assert_eq!(fs.statfs().unwrap().inodes_free + files.len() as u64 - 3, all);
    fs.sync().unwrap();
    rest.iter().for_each(|ino| assert!(fs.let_go(*ino, 1)));
    assert_eq!(fs.statfs().unwrap().inodes_free + 1, all);
    fs.sync().unwrap();
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
        if attr.kind == FileType::Regular {
            let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
            out.push(fs.read(fh, 0, 2 * LEN).unwrap().to_vec());
            fs.release(fh).unwrap();
        }
    }
    out
}

/// Cuts around all that makes something durable; what may be lost is lost.
fn cut_while_open(setup: Setup, one_in: usize) {
    cut_run(setup, one_in, run);
}

/// The same while they are held, and after.
fn cut_while_held(setup: Setup, one_in: usize) {
    cut_run(setup, one_in, run_held);
}

fn cut_run(setup: Setup, one_in: usize, run: fn(&Arc<Ext4>, &RecordLog)) {
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

#[test]
fn last_names_of_what_is_held() {
    cut_while_held(PLAIN, 2);
}

#[test]
fn last_names_of_what_is_held_in_an_orphan_file_and_counted() {
    cut_while_held(Setup { orphan_file: true, quotas: true, block_size: 1024, ..PLAIN }, 4);
}

#[test]
fn last_names_of_what_is_held_without_delay() {
    let plain = Setup { data: DataMode::Writeback, delayed_allocation: false, ..PLAIN };
    cut_while_held(Setup { external: true, fast_commits: true, ..plain }, 4);
}

#[test]
fn last_names_of_what_is_held_with_block_maps() {
    cut_while_held(Setup { block_maps: true, data: DataMode::Journal, ..PLAIN }, 4);
}
