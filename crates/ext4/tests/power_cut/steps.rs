//! The power goes between any two of the transactions that one operation takes, and then between
//! any two of those that recovery takes to finish it, or to delete what is left.
//!
//! Each file here has one operation, which is made durable. Cut within it, the file has each of its
//! blocks as before or as after the operation, or none there; and one of the two sizes. Where it is
//! to be cut in the middle of a block, the rest of that block is zeros before the size is smaller.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Note;
use steadfast_ext4::{DataMode, Ext4};
use steadfast_ext4_format::ondisk::Incompat;
use steadfast_vfs::{Fallocate, Fh, FileSystem, FsError, NewNode, OpenFlags, RenameFlags, SetAttr};

use crate::between::commits;
use crate::judge::Judge;
use crate::{PLAIN, Setup, run_with};

/// Notes: all files are there and durable; an operation has begun; it is durable.
const MADE: u64 = 80;
const BEGUN: u64 = 81;
const DONE: u64 = 82;

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);
const BLOCK: u64 = 1024;
/// Bytes of each file: several times what one transaction frees of journalled blocks of 1 KiB.
const SIZE: u64 = 150 * BLOCK + 300;
/// A range of whole blocks, which several transactions take.
const RANGE: (u64, u64) = (3 * BLOCK, 100 * BLOCK);
/// Names in the folder, so long that it has some forty blocks and an index.
const NAMES: u64 = 140;

#[derive(Debug, Clone, Copy)]
enum Step {
    Cut(u64),
    Shape(Fallocate, u64, u64),
    Unlink,
    /// Of a file that is open until another one has been made durable.
    UnlinkOpen,
    /// A new file takes its name.
    Replace,
}

const STEPS: [Step; 9] = [
    Step::Cut(0),
    Step::Cut(700),
    Step::Shape(Fallocate::PunchHole, 500, RANGE.1),
    Step::Shape(Fallocate::ZeroRange { keep_size: true }, 500, RANGE.1),
    Step::Shape(Fallocate::CollapseRange, RANGE.0, RANGE.1),
    Step::Shape(Fallocate::InsertRange, RANGE.0, RANGE.1),
    Step::Unlink,
    Step::UnlinkOpen,
    Step::Replace,
];

fn name(step: usize) -> Vec<u8> {
    format!("step{step}").into_bytes()
}

/// A byte that is no zero, and differs from block to block.
fn byte(step: usize, at: u64) -> u8 {
    (at / BLOCK * 7 + step as u64 * 31) as u8 | 1
}

fn before(step: usize) -> Vec<u8> {
    (0..SIZE).map(|at| byte(step, at)).collect()
}

/// What the file holds after its operation; `None`: it is gone.
fn after(step: usize) -> Option<Vec<u8>> {
    let mut data = before(step);
    let range = |at: u64, len: u64| at as usize..(at + len) as usize;
    match STEPS[step] {
        Step::Cut(size) => data.truncate(size as usize),
        Step::Shape(Fallocate::CollapseRange, at, len) => drop(data.drain(range(at, len))),
        Step::Shape(Fallocate::InsertRange, at, len) => {
            let at = at as usize;
            drop(data.splice(at..at, vec![0; len as usize]));
        }
        Step::Shape(_, at, len) => data[range(at, len)].fill(0),
        Step::Unlink | Step::UnlinkOpen => return None,
        Step::Replace => data = before(STEPS.len()),
    }
    Some(data)
}

fn create(fs: &Ext4, name: &[u8], data: Vec<u8>) -> Fh {
    let (_, fh) = fs.create(fs.root(), name, NewNode::default(), RW).unwrap();
    fs.write(fh, 0, Bytes::from(data)).unwrap();
    fh
}

fn sync_root(fs: &Ext4) {
    fs.fsyncdir(fs.root()).unwrap();
}

/// Block maps can only be punched.
fn is_possible(fs: &Ext4, step: usize) -> bool {
    let extents = fs.volume().layout.features.incompat.contains(Incompat::EXTENT);
    match STEPS[step] {
        Step::Shape(what, ..) => extents || what == Fallocate::PunchHole,
        _ => true,
    }
}

fn carry_out(fs: &Ext4, step: usize) {
    let (root, name) = (fs.root(), name(step));
    let ino = fs.lookup(root, &name).unwrap().ino;
    let fh = fs.open(ino, RW).unwrap();
    match STEPS[step] {
        Step::Cut(size) => {
            fs.setattr(ino, SetAttr { size: Some(size), ..SetAttr::default() }).unwrap();
        }
        Step::Shape(what, at, len) => fs.fallocate(fh, what, at, len).unwrap(),
        Step::Unlink => {
            fs.release(fh).unwrap();
            fs.unlink(root, &name).unwrap();
            return sync_root(fs);
        }
        Step::UnlinkOpen => {
            fs.unlink(root, &name).unwrap();
            sync_root(fs);
        }
        Step::Replace => {
            fs.release(fh).unwrap();
            let new = create(fs, b"new", before(STEPS.len()));
            fs.fsync(new, false).unwrap();
            fs.release(new).unwrap();
            fs.rename(root, b"new", root, &name, RenameFlags::empty()).unwrap();
            return sync_root(fs);
        }
    }
    fs.fsync(fh, false).unwrap();
    fs.release(fh).unwrap();
}

fn run(fs: &Arc<Ext4>, log: &RecordLog) {
    for step in 0..STEPS.len() {
        let fh = create(fs, &name(step), before(step));
        fs.release(fh).unwrap();
    }
    fs.sync().unwrap();
    log.note(MADE, [0; 3]);
    for step in (0..STEPS.len()).filter(|step| is_possible(fs, *step)) {
        log.note(BEGUN, [step as u64, 0, 0]);
        carry_out(fs, step);
        log.note(DONE, [step as u64, 0, 0]);
    }
    // A folder grows to an index, and goes.
    let folder = fs.mkdir(fs.root(), b"folder", NewNode::default()).unwrap().ino;
    let long = |i: u64| format!("{i:0>200}").into_bytes();
    for i in 0..NAMES {
        let (_, fh) = fs.create(folder, &long(i), NewNode::default(), RW).unwrap();
        fs.release(fh).unwrap();
    }
    (0..NAMES).for_each(|i| fs.unlink(folder, &long(i)).unwrap());
    fs.rmdir(fs.root(), b"folder").unwrap();
    fs.sync().unwrap();
}

/// Judges the files of these steps, if the notes speak of them.
pub fn judge(fs: &Ext4, notes: &[Note], what: &str) {
    if !notes.iter().any(|n| n.label == MADE) {
        return;
    }
    for (step, said) in STEPS.iter().enumerate() {
        let noted = |label| notes.iter().any(|n| n.label == label && n.detail[0] == step as u64);
        let found = read(fs, &name(step));
        let (old, new) = (Some(before(step)), after(step));
        let what = format!("{what}: {said:?}");
        match (noted(BEGUN), noted(DONE)) {
            (false, _) => assert!(found == old, "{what}: it is not as it was"),
            (_, true) => assert!(found == new, "{what}: it is not done"),
            _ => assert_between(found.as_deref(), old.as_deref(), new.as_deref(), &what),
        }
    }
}

fn assert_between(found: Option<&[u8]>, old: Option<&[u8]>, new: Option<&[u8]>, what: &str) {
    let Some(found) = found else { return assert!(new.is_none(), "{what}: it is gone") };
    if found.is_empty() && new.is_some_and(<[u8]>::is_empty) {
        return;
    }
    let [old, new] = [old, new].map(Option::unwrap_or_default);
    let of_size = found.len() == old.len() || found.len() == new.len();
    assert!(of_size, "{what}: {} bytes", found.len());
    for (i, block) in found.chunks(BLOCK as usize).enumerate() {
        let at = i * BLOCK as usize;
        let same = |all: &[u8]| all.get(at..at + block.len()).is_some_and(|part| part == block);
        let zeros = block.iter().all(|b| *b == 0);
        let cut = new.len().saturating_sub(at).min(block.len());
        let rest_is_zeros = block[cut..].iter().all(|b| *b == 0);
        let is_cut =
            rest_is_zeros && old.get(at..at + cut).is_some_and(|kept| block.starts_with(kept));
        assert!(zeros || same(old) || same(new) || is_cut, "{what}: block {i}");
    }
}

fn read(fs: &Ext4, name: &[u8]) -> Option<Vec<u8>> {
    let attr = match fs.lookup(fs.root(), name) {
        Err(FsError::NotFound) => return None,
        found => found.unwrap(),
    };
    let fh = fs.open(attr.ino, OpenFlags::READ).unwrap();
    let data = fs.read(fh, 0, attr.size as usize).unwrap().to_vec();
    fs.release(fh).unwrap();
    Some(data)
}

/// So many of these, evenly spread; in a soak all.
fn some<T>(all: Vec<T>, most: usize) -> impl Iterator<Item = T> {
    let most = if std::env::var_os("STEADFAST_SOAK").is_some() { usize::MAX } else { most };
    let every = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(every)
}

/// Cuts a run between its transactions; of some states, those that recovery takes several
/// transactions for, recovery is cut so too.
fn between_steps(setup: Setup) {
    const STATES: usize = 16;
    const RECOVERIES: usize = 2;
    const OF_RECOVERY: usize = 5;
    let setup = Setup { lone_updates: true, block_size: BLOCK as u32, ..setup };
    let run = run_with(setup, 1, false, run);
    let judge = Judge::new(setup);
    let mut rng = Rng::new(1);
    let notes = |cut| run.recording.notes_before(cut).to_vec();
    let begun = |cut: &(u64, u64)| notes(cut.0).iter().any(|n| n.label == BEGUN);
    let cuts: Vec<_> = commits(&run).filter(begun).collect();
    let (mut states, mut long, mut again) = (0, Vec::new(), 0);
    for (cut, keep) in some(cuts, STATES) {
        let what = format!("{setup:?}, cut {cut}");
        let recovery = judge.judge(run.contents(cut, keep, &mut rng), &notes(cut), &what);
        let seconds: Vec<_> = commits(&recovery).collect();
        states += 1;
        if seconds.len() > OF_RECOVERY {
            long.push((what, notes(cut), recovery, seconds));
        }
    }
    for (what, notes, recovery, seconds) in some(long, RECOVERIES) {
        for (second, keep) in some(seconds, OF_RECOVERY) {
            let what = format!("{what}, then {second}");
            judge.judge(recovery.contents(second, keep, &mut rng), &notes, &what);
            again += 1;
        }
    }
    assert!(states > 10 && again > 5, "{states} states, {again} of recovery");
}

#[test]
fn between_the_steps_of_operations() {
    between_steps(Setup { data: DataMode::Journal, orphan_file: true, ..PLAIN });
}

#[test]
fn between_the_steps_of_operations_with_block_maps() {
    between_steps(Setup { data: DataMode::Journal, block_maps: true, ..PLAIN });
}
