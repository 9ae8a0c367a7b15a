//! The power goes between any two of the transactions that one operation takes, and then between
//! any two of those that recovery takes to finish it, or to delete what is left.
//!
//! Each file here has one operation, which is made durable. Cut within it, the file has each of its
//! blocks as before or as after the operation, or none there; and one of the two sizes. Where it is
//! to be cut in the middle of a block, the rest of that block is zeros before the size is smaller.

use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Note;
use steadfast_ext4::{DataMode, Ext4};
use steadfast_ext4_format::ondisk::Incompat;
use steadfast_suite::names::Tree;
use steadfast_suite::operation::Operation;
use steadfast_vfs::{Fallocate, FileSystem, FsError, NewNode, OpenFlags};

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
/// Names in the folder, so long that it has some forty blocks and an index.
const NAMES: u64 = 140;

/// Each of a file of its own; of "unlinkopen" until another file has been made durable.
const STEPS: [&str; 9] = [
    "truncate step0 0",
    "truncate step1 700",
    "falloc step2 punch_hole 500 102400",
    "falloc step3 zero_range,keep_size 500 102400",
    // Whole blocks, which several transactions take.
    "falloc step4 collapse 3072 102400",
    "falloc step5 insert 3072 102400",
    "unlink step6",
    "unlinkopen step7",
    // A new file takes its name.
    "rename new step8",
];

fn name(step: usize) -> String {
    format!("step{step}")
}

fn operation(step: usize) -> Operation {
    STEPS[step].parse().unwrap()
}

/// Makes a file of this name: the operations, and the numbers that say what it holds.
fn creation(step: usize, name: &str) -> [((usize, usize), Operation); 2] {
    let write = format!("write {name} 0 {SIZE}");
    [((0, 10 * step), format!("create {name}")), ((0, 10 * step + 1), write)]
        .map(|(by, text)| (by, text.parse().unwrap()))
}

/// What the file of a step holds before its operation, and after it; `None`: it is gone.
fn contents(step: usize) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut tree = Tree::default();
    let found = |tree: &Tree| tree.names.node(&name(step)).map(|n| tree.data(n).to_vec());
    let new = creation(STEPS.len(), "new");
    for (by, op) in creation(step, &name(step)).iter().chain(&new) {
        tree.apply(*by, op);
    }
    let before = found(&tree).unwrap();
    tree.apply((0, 0), &operation(step));
    (before, found(&tree))
}

fn sync_root(fs: &Ext4) {
    fs.fsyncdir(fs.root()).unwrap();
}

/// Block maps can only be punched.
fn is_possible(fs: &Ext4, step: usize) -> bool {
    let extents = fs.volume().layout.features.incompat.contains(Incompat::EXTENT);
    match operation(step) {
        Operation::Fallocate { what, .. } => extents || what == Fallocate::PunchHole,
        _ => true,
    }
}

fn carry_out(fs: &Ext4, step: usize) {
    let (op, name) = (operation(step), name(step));
    let apply = |op: &Operation, by| op.apply(fs, fs.root(), by).unwrap();
    let sync = |name: &str| apply(&format!("fsync {name}").parse().unwrap(), (0, 0));
    match &op {
        Operation::UnlinkOpen { .. } => {
            let ino = fs.lookup(fs.root(), name.as_bytes()).unwrap().ino;
            let fh = fs.open(ino, OpenFlags::WRITE).unwrap();
            fs.unlink(fs.root(), name.as_bytes()).unwrap();
            sync_root(fs);
            fs.fsync(fh, false).unwrap();
            fs.release(fh).unwrap();
        }
        Operation::Unlink { .. } => {
            apply(&op, (0, 0));
            sync_root(fs);
        }
        Operation::Rename { from, .. } => {
            creation(STEPS.len(), from).iter().for_each(|(by, op)| apply(op, *by));
            sync(from);
            apply(&op, (0, 0));
            sync_root(fs);
        }
        _ => {
            apply(&op, (0, 0));
            sync(&name);
        }
    }
}

fn run(fs: &Arc<Ext4>, log: &RecordLog) {
    for step in 0..STEPS.len() {
        for (by, op) in creation(step, &name(step)) {
            op.apply(&**fs, fs.root(), by).unwrap();
        }
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
        let found = read(fs, name(step).as_bytes());
        let (old, new) = contents(step);
        let old = Some(old);
        let what = format!("{what}: {said}");
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
