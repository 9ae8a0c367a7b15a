//! Runs a sequence against a file system and the model.

use bytes::Bytes;
use steadfast_suite::names::{self, Node, Tree};
use steadfast_suite::operation::{Change, Operation, fill, listed};
use steadfast_vfs::{Fh, FileSystem, FsError, Ino, OpenFlags, Timestamp, path};

use super::ops::{Choice, Step, file, operations};
use crate::stage::Stage;

/// What is written to a file that is held.
const HELD: Change = Change::Write { offset: 100, len: 5000 };

/// Runs `choices`; panics where file system and model disagree. Returns the model at the end.
pub fn run(stage: &mut impl Stage, choices: &[Choice]) -> Tree {
    let mut runner = Runner { tree: Tree::default(), held: None, done: Vec::new() };
    for choice in choices {
        match choice.step {
            Step::Remount => {
                runner.release(stage.fs(), false);
                stage.remount();
            }
            Step::Read => runner.read(stage.fs(), choice),
            Step::Hold => runner.hold(stage.fs(), choice),
            Step::Release => runner.release(stage.fs(), choice.writes()),
            Step::One(_) | Step::Crowd | Step::Thin => {
                for op in operations(choice, &runner.tree.names) {
                    runner.apply(stage.fs(), op);
                }
            }
        }
    }
    runner.release(stage.fs(), true);
    runner.tree
}

/// A file that is open.
struct HeldFile {
    fh: Fh,
    node: Node,
    /// Its content when it lost its last name.
    data: Vec<u8>,
}

struct Runner {
    tree: Tree,
    held: Option<HeldFile>,
    done: Vec<Operation>,
}

impl Runner {
    fn apply(&mut self, fs: &dyn FileSystem, op: Operation) {
        let index = self.done.len();
        let number = |r: &steadfast_vfs::Result<()>| r.as_ref().map_err(FsError::errno).copied();
        let due = self.tree.names.refusal(&op).map_or(Ok(()), |e| Err(e.raw_os_error()));
        let found = op.apply(fs, fs.root(), (0, index));
        if number(&found) != due {
            panic!("{op}: {found:?} in place of {due:?}, after {}", listed(&self.done));
        }
        if let Some(held) = &mut self.held
            && self.tree.names.nodes.contains_key(&held.node)
        {
            held.data = self.tree.data(held.node).to_vec();
        }
        if due.is_ok() {
            self.tree.apply((0, index), &op);
            assert_attributes(fs, &op, index);
        }
        self.done.push(op);
    }

    fn read(&self, fs: &dyn FileSystem, choice: &Choice) {
        let Some((name, node)) = self.file(choice) else { return };
        let found = names::read(fs, ino(fs, &name)).unwrap();
        names::differ(&name, &found, self.tree.data(node)).unwrap();
    }

    fn file(&self, choice: &Choice) -> Option<(String, Node)> {
        let name = file(choice, &self.tree.names)?.clone();
        let node = self.tree.names.node(&name)?;
        Some((name, node))
    }

    fn hold(&mut self, fs: &dyn FileSystem, choice: &Choice) {
        let Some((name, node)) = self.file(choice) else { return };
        self.release(fs, false);
        let fh = fs.open(ino(fs, &name), OpenFlags::READ | OpenFlags::WRITE).unwrap();
        self.held = Some(HeldFile { fh, node, data: Vec::new() });
    }

    fn release(&mut self, fs: &dyn FileSystem, write: bool) {
        let Some(HeldFile { fh, node, mut data }) = self.held.take() else { return };
        let index = self.done.len();
        if self.tree.names.nodes.contains_key(&node) {
            data = self.tree.data(node).to_vec();
        }
        if write {
            let mut bytes = vec![0; 5000];
            fill(0, index, 100, &mut bytes);
            assert_eq!(fs.write(fh, 100, Bytes::from(bytes)).unwrap(), 5000);
            HELD.make(&mut data, |offset, out| fill(0, index, offset, out));
        }
        let found = fs.read(fh, 0, 10_000).unwrap();
        assert!(found[..] == data[..data.len().min(found.len())], "a held file differs");
        if self.tree.names.nodes.contains_key(&node) {
            self.tree.change(node, |old| *old = data);
        }
        fs.release(fh).unwrap();
    }
}

fn ino(fs: &dyn FileSystem, name: &str) -> Ino {
    path::resolve(fs, name.as_bytes(), false).unwrap().ino
}

/// What the model of names does not know is as it was set.
fn assert_attributes(fs: &dyn FileSystem, op: &Operation, index: usize) {
    let attr = |name: &str| fs.getattr(ino(fs, name)).unwrap();
    match op {
        Operation::Chown { name, uid, gid } => {
            let attr = attr(name);
            assert_eq!((attr.uid, attr.gid), (*uid, *gid), "{op}");
        }
        Operation::SetTimes { name, secs } => {
            let attr = attr(name);
            // Inodes of 128 bytes have no time of creation, and whole seconds up to 2038.
            let due = match attr.crtime == Timestamp::default() {
                true => Timestamp { secs: (*secs).min(i32::MAX.into()), nanos: 0 },
                false => Timestamp { secs: *secs, nanos: index as u32 },
            };
            assert_eq!(attr.mtime, due, "{op}: {attr:?}");
        }
        _ => {}
    }
}
