//! Fast commits of several ranges of blocks: after a cut the file has exactly these blocks, written
//! or unwritten, in these places, and no others.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Note;
use steadfast_ext4::Ext4;
use steadfast_vfs::{Fallocate, Fh, FileExtent, FileSystem, Ino, NewNode, OpenFlags};

use crate::workload::contents;
use crate::{PLAIN, Setup, judge_cuts, run_with};

/// Notes: a step begins; the blocks of all files, as a number, are durable.
const BEGUN: u64 = 60;
const MAPPED: u64 = 61;

/// What one step writes, in blocks of the file: begin and end.
type Ranges = &'static [(u64, u64)];

/// A file with more than four extents has them in blocks of their own: no fast commit records it.
const STEPS: [(&str, Ranges); 8] = [
    ("old", &[(8, 10), (16, 17), (24, 27)]),
    // Behind each of them, so that the extents grow: a part of an extent is recorded.
    ("old", &[(4, 6), (10, 11), (17, 20), (27, 28)]),
    // What is there is written again, a hole beside it for the first time.
    ("old", &[(5, 8)]),
    ("new", &[(0, 3), (5, 6), (9, 12)]),
    ("new", &[(3, 5), (20, 21)]),
    // Parts of what is allocated and unwritten: the extent is split.
    ("unwritten", &[(2, 4)]),
    ("unwritten", &[(0, 2), (9, 10)]),
    // One range of two extents.
    ("backwards", &[(1, 4)]),
];

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

fn create(fs: &Ext4, name: &str) -> Fh {
    fs.create(fs.root(), name.as_bytes(), NewNode::default(), RW).unwrap().1
}

fn write(fs: &Ext4, fh: Fh, (from, to): (u64, u64)) {
    let block = u64::from(fs.statfs().unwrap().block_size);
    let (at, len) = (from * block, (to - from) * block);
    fs.write(fh, at, contents(9800, at, len as usize)).unwrap();
}

fn inode(fs: &Ext4, name: &str) -> Option<Ino> {
    fs.lookup(fs.root(), name.as_bytes()).ok().map(|attr| attr.ino)
}

/// The blocks of all files: where they are, and whether they are written.
fn maps(fs: &Ext4) -> Vec<(&'static str, Vec<FileExtent>)> {
    let there = ["old", "new", "unwritten", "backwards"].into_iter();
    let with_inode = there.filter_map(|name| Some((name, inode(fs, name)?)));
    with_inode.map(|(name, ino)| (name, fs.extents(ino, 0, 1 << 30).unwrap())).collect()
}

fn digest(fs: &Ext4) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, extents) in maps(fs) {
        name.hash(&mut hasher);
        for e in extents {
            (e.logical, e.physical, e.len, e.unwritten).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn run(fs: &Arc<Ext4>, log: &RecordLog) {
    let block = u64::from(fs.statfs().unwrap().block_size);
    let [old, unwritten, backwards] =
        ["old", "unwritten", "backwards"].map(|name| create(fs, name));
    let allocate = |fh, from, to| {
        let how = Fallocate::Allocate { keep_size: false };
        fs.fallocate(fh, how, from * block, (to - from) * block).unwrap();
    };
    write(fs, old, (0, 4));
    allocate(unwritten, 0, 10);
    allocate(backwards, 2, 4);
    allocate(backwards, 0, 2);
    let pieces = fs.extents(inode(fs, "backwards").unwrap(), 0, 1 << 20).unwrap();
    assert_eq!(pieces.len(), 2, "{pieces:?}");
    fs.sync().unwrap();
    let stats = || fs.journal().unwrap().stats();
    let mut new = None;
    let commits = stats().commits;
    for (i, (name, ranges)) in STEPS.iter().enumerate() {
        log.note(BEGUN, [i as u64, 0, 0]);
        let fh = match *name {
            "old" => old,
            "unwritten" => unwritten,
            "backwards" => backwards,
            _ => *new.get_or_insert_with(|| create(fs, name)),
        };
        ranges.iter().for_each(|range| write(fs, fh, *range));
        fs.fsync(fh, false).unwrap();
        assert_eq!(stats().fast_commits, i as u64 + 1, "step {i} is no fast commit");
        log.note(MAPPED, [i as u64, digest(fs), 0]);
    }
    assert_eq!(stats().commits, commits, "a full commit has come in between");
}

/// A file has its blocks at once, but not its data, when somebody else's fsync makes that durable.
fn run_unwritten(fs: &Arc<Ext4>, log: &RecordLog) {
    let [old, new] = ["old", "new"].map(|name| create(fs, name));
    fs.sync().unwrap();
    write(fs, old, (0, 3));
    write(fs, new, (0, 2));
    fs.fsync(new, false).unwrap();
    assert_eq!(fs.journal().unwrap().stats().fast_commits, 1);
    let extents = fs.extents(inode(fs, "old").unwrap(), 0, 1 << 20).unwrap();
    assert!(extents.iter().all(|e| e.unwritten) && !extents.is_empty(), "{extents:?}");
    log.note(MAPPED, [0, digest(fs), 0]);
}

/// Holds the maps that a recovery has left against the newest that was durable.
pub fn judge(fs: &Ext4, notes: &[Note], what: &str) {
    let ours = |note: &&Note| [BEGUN, MAPPED].contains(&note.label);
    let Some(newest) = notes.iter().rfind(ours) else { return };
    if newest.label == MAPPED {
        let found = maps(fs);
        assert_eq!(digest(fs), newest.detail[1], "{what}: step {}: {found:?}", newest.detail[0]);
    }
}

fn fast_maps(setup: Setup, work: fn(&Arc<Ext4>, &RecordLog)) {
    let setup = Setup { fast_commits: true, ..setup };
    let run = run_with(setup, 1, false, work);
    let durable = run.recording.notes().iter().filter(|note| note.label == MAPPED);
    let cuts = durable.flat_map(|note| [0, 60].map(|keep| (note.moment.tick + 1, keep)));
    judge_cuts(setup, &run, 1, cuts);
}

#[test]
fn fast_maps_are_replayed_exactly() {
    fast_maps(PLAIN, run);
}

#[test]
fn fast_maps_in_small_blocks_on_an_external_journal() {
    fast_maps(Setup { block_size: 1024, external: true, ..PLAIN }, run);
}

#[test]
fn fast_maps_of_blocks_that_are_not_written() {
    fast_maps(Setup { delayed_allocation: false, ..PLAIN }, run_unwritten);
}
