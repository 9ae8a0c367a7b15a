//! The power goes between any two transactions, when each of them is one update: an operation that
//! was made of two updates without saying so leaves something that e2fsck finds.
//!
//! Under load the updates of one operation nearly always join the same transaction, and then no cut
//! shows that they are two. Here the journal takes one update at a time.

use std::sync::Arc;

use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::record::Action;
use steadfast_ext4::Ext4;
use steadfast_vfs::{
    Fallocate, FileSystem, FileType, Ino, NewNode, OpenFlags, RenameFlags, SetAttr, SetXattr,
};

use crate::last_names::{Has, take};
use crate::workload::contents;
use crate::{PLAIN, Run, Setup, judge_cuts, run_with};

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

fn file(fs: &Ext4, dir: Ino, name: &[u8], len: usize) -> Ino {
    let (attr, fh) = fs.create(dir, name, NewNode::default(), RW).unwrap();
    fs.write(fh, 0, contents(9900, 0, len)).unwrap();
    fs.release(fh).unwrap();
    attr.ino
}

/// Names of every kind come, move and go, and files change in every way.
fn all_kinds(fs: &Ext4) {
    let root = fs.root();
    let node = NewNode::default();
    let rename = |from: (Ino, &[u8]), to: (Ino, &[u8]), flags| {
        fs.rename(from, to, flags).unwrap();
    };
    let plain = RenameFlags::empty();
    let [one, two] = [&b"one"[..], b"two"].map(|name| fs.mkdir(root, name, node).unwrap().ino);
    let first = file(fs, one, b"first", 30_000);
    fs.link(first, two, b"second").unwrap();
    fs.symlink(one, b"short", b"target", node).unwrap();
    fs.symlink(one, b"long", &[b'x'; 300], node).unwrap();
    fs.mknod(one, b"pipe", (FileType::Fifo, 0), node).unwrap();
    fs.setxattr(first, b"user.large", &[7; 900], SetXattr::Any).unwrap();
    let sub = fs.mkdir(one, b"sub", node).unwrap().ino;
    file(fs, sub, b"inner", 100);
    rename((one, b"sub"), (two, b"moved"), plain);
    rename((one, b"first"), (two, b"first"), plain);
    rename((one, b"pipe"), (two, b"moved"), RenameFlags::EXCHANGE);
    rename((two, b"moved"), (one, b"pipe2"), plain);
    fs.mkdir(two, b"empty", node).unwrap();
    rename((one, b"pipe"), (two, b"empty"), plain);
}

/// The same, and what is left of it goes.
fn run(fs: &Arc<Ext4>, log: &RecordLog, has: Has) {
    take(fs, log, has);
    fs.let_go_all();
    all_kinds(fs);
    let root = fs.root();
    let [one, two] = [&b"one"[..], b"two"].map(|name| fs.lookup(root, name).unwrap().ino);
    let first = fs.lookup(two, b"first").unwrap().ino;
    let size = SetAttr { size: Some(5000), ..SetAttr::default() };
    fs.setattr(first, size).unwrap();
    let fh = fs.open(first, RW).unwrap();
    fs.fallocate(fh, Fallocate::PunchHole, 0, 4096).unwrap();
    fs.release(fh).unwrap();
    fs.removexattr(first, b"user.large").unwrap();
    for (dir, name) in
        [(two, &b"second"[..]), (two, b"first"), (one, b"short"), (one, b"long"), (one, b"pipe2")]
    {
        fs.unlink(dir, name).unwrap();
    }
    let (attr, fh) = fs.tmpfile(root, NewNode::default(), RW).unwrap();
    fs.link(attr.ino, root, b"named").unwrap();
    fs.unlink(root, b"named").unwrap();
    fs.release(fh).unwrap();
    fs.sync().unwrap();
}

/// Right after each commit block, and each move of the log's tail.
pub(crate) fn commits(run: &Run) -> impl Iterator<Item = (u64, u64)> {
    let durable = |action: &Action| matches!(action, Action::Write { fua: true, .. });
    let events = run.recording.events().iter().filter(move |event| durable(&event.action));
    events.filter_map(|event| Some((event.completed?.tick + 1, 0)))
}

fn between(setup: Setup, one_in: usize) {
    between_of(setup, one_in, Has::Nothing);
}

fn between_of(setup: Setup, one_in: usize, has: Has) {
    let setup = Setup { lone_updates: true, ..setup };
    let run = run_with(setup, 1, false, move |fs, log| run(fs, log, has));
    assert!(commits(&run).count() > 200, "more than a hundred transactions");
    judge_cuts(setup, &run, 1, commits(&run).step_by(one_in));
}

#[test]
fn between_any_two_commits() {
    between(PLAIN, 1);
}

#[test]
fn between_commits_with_block_maps_and_values_in_inodes() {
    let (block_maps, value_inodes, block_size) = (true, true, 1024);
    between(Setup { block_maps, value_inodes, block_size, ..PLAIN }, 3);
}

#[test]
fn between_commits_of_what_is_held() {
    between_of(PLAIN, 2, Has::Hold);
}
