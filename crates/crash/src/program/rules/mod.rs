//! What every program may expect of a recovered tree, judged by the calls that it made.
//!
//! 1. *Promises*, which the file system makes (`contents`, `names`):
//!    a file that was synced holds what it held then, unless it was changed later; a range that was
//!    written with O_SYNC or O_DSYNC, or that was synced after it was written, holds what was
//!    written, unless it was written again. A name is there if its directory was synced since it
//!    was made, and gone if that was synced since it was removed.
//! 2. *Names*: what was there before the run, and was never removed or moved, is there, also if it
//!    was replaced by a rename meanwhile. The file system is at fault.
//! 3. *Replacement*: a file that was renamed over another is whole: after the cut the name shows
//!    the old file or the new one, and the new one holds what it held when it was renamed. Where
//!    the new file had not been synced before, the program is at fault: a file system need not
//!    keep that order. So it is of a file that the program has made and renamed to a name that
//!    nothing had: under that name it is whole, or it is not there.
//!
//! Contents are found by inode and generation, wherever the file is: a number may be used again.
//! What these rules cannot judge is said too: see [`Verdict::unmeasured`].

mod contents;
mod names;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use steadfast_devices::filter::record::Moment;

use super::calls::{Call, CallKind, file_id, number_of, returns};
use crate::tree::{Node, Tree, shown};

/// Something that should not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// In words.
    pub what: String,
    /// The same of every state that it may show in: which file, and which rule. How many bytes
    /// there are, and what else differs from state to state, is in `what` alone.
    pub kind: String,
    /// The file system had promised it; else the program has forgotten to ask for it.
    pub promised: bool,
    /// The place of the call that it is about, where it is about one.
    pub call: Option<usize>,
}

impl Violation {
    /// One whose words are the same in every state.
    pub(crate) fn broken_promise(what: String) -> Violation {
        Violation { kind: what.clone(), what, promised: true, call: None }
    }
}

/// What the rules say of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What is wrong.
    pub broken: Vec<Violation>,
    /// What had been promised and could not be judged, with the reason; in words.
    pub unmeasured: BTreeSet<String>,
}

/// Judges the tree that a cut before `tick` left. `base` is the tree at the beginning of the run.
pub fn judge(calls: &[Call], base: &Tree, tree: &Tree, tick: u64) -> Verdict {
    let before = calls.partition_point(|call| call.started.tick < tick);
    // The kernel's mount shows no generations.
    let by_number = tree.nodes().all(|(_, node)| node.attr.generation == 0);
    let key = |attr| key(file_id(attr), by_number);
    let by_inode = tree.nodes().map(|(path, node)| (key(&node.attr), (path, node))).collect();
    let history = History {
        returns: returns(calls),
        calls: &calls[..before],
        unplaced: calls[..before]
            .iter()
            .any(|call| call.unplaced && call.kind.changes_names() && !call.failed),
        base,
        tree,
        by_inode,
        by_number,
        tick,
    };
    let mut verdict = Verdict::default();
    history.replaced(&mut verdict);
    history.contents(&mut verdict);
    history.folders(&mut verdict);
    history.gone(&mut verdict);
    if history.unplaced {
        let why = "names: something in a folder of unknown path was made, moved or removed";
        verdict.unmeasured.insert(why.into());
    }
    verdict
}

struct History<'a> {
    /// Those that began before the cut.
    calls: &'a [Call],
    /// When each call had returned to the program.
    returns: Vec<Option<Moment>>,
    /// A name was changed whose path is not known.
    unplaced: bool,
    base: &'a Tree,
    tree: &'a Tree,
    by_inode: BTreeMap<u64, (&'a [u8], &'a Node)>,
    /// The tree has no generations.
    by_number: bool,
    tick: u64,
}

/// What stands for a file in the tree.
fn key(file: u64, by_number: bool) -> u64 {
    if by_number { number_of(file).0 } else { file }
}

impl History<'_> {
    /// Whether the bytes of an inode may have changed after a tick.
    fn changed_after(&self, ino: u64, tick: u64) -> bool {
        self.calls.iter().any(|call| {
            let touches = call.kind.changes_contents() || call.kind == CallKind::Create;
            call.ino == ino && touches && call.may_end_after(tick)
        })
    }

    /// Whether a name may have changed after a tick: its own, or that of a directory above it.
    fn moved_after(&self, path: &[u8], tick: u64) -> bool {
        use CallKind::{Exchange, Link, Rename, Rmdir, Unlink};
        self.calls.iter().any(|call| {
            let renames = matches!(call.kind, Rename | Exchange | Unlink | Rmdir | Link);
            renames && call.may_end_after(tick) && concerns(call, path)
        })
    }

    /// Whether an inode may have lost a name, and with it everything.
    fn removed(&self, ino: u64) -> bool {
        self.calls.iter().any(|call| match call.kind {
            CallKind::Unlink => call.ino == ino && !call.failed,
            CallKind::Rename => call.replaced == ino && call.ino != ino && !call.failed,
            _ => false,
        })
    }

    /// Whether a call was made for durability and had returned to the program.
    fn kept(&self, place: usize) -> bool {
        let call = &self.calls[place];
        let ended = self.returns[place].is_some_and(|end| end.tick < self.tick);
        call.promises && !call.failed && ended
    }

    /// Whether the name of a file must be there: it was there before everything, or its directory
    /// was synced since the name was made.
    fn name_is_promised(&self, path: &[u8], ino: u64) -> bool {
        if self.unplaced {
            return false;
        }
        let made = self.calls.iter().rev().find(|call| {
            let gives = matches!(call.kind, CallKind::Create | CallKind::Mknod)
                && call.path == path
                || matches!(call.kind, CallKind::Rename | CallKind::Link | CallKind::Exchange)
                    && (call.other == path || call.path == path);
            gives && !call.failed
        });
        let Some(made) = made else {
            return self.base.get(path).is_some_and(|node| file_id(&node.attr) == ino);
        };
        let Some(returned) = made.returned else { return false };
        // Names of the directories above are not followed further than this.
        let parent_is_old = parent(path).is_empty() || self.base.get(parent(path)).is_some();
        parent_is_old && self.folder_synced_after(parent(path), returned.tick)
    }

    /// Whether the names in a folder were made durable by a call begun after a tick.
    fn folder_synced_after(&self, folder: &[u8], tick: u64) -> bool {
        (0..self.calls.len()).any(|place| {
            let call = &self.calls[place];
            let covers = match call.kind {
                CallKind::FsyncDir => call.path == folder && !call.unplaced,
                CallKind::Sync => true,
                _ => false,
            };
            covers && call.started.tick > tick && self.kept(place)
        })
    }
}

/// The directory of a path.
pub(super) fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(&[], |at| &path[..at])
}

/// Whether a call about names may have changed this path. Of a path that is not whole nobody knows.
fn concerns(call: &Call, path: &[u8]) -> bool {
    call.unplaced || is_at_or_above(&call.path, path) || is_at_or_above(&call.other, path)
}

/// Whether `name` is `path` or a directory above it.
fn is_at_or_above(name: &[u8], path: &[u8]) -> bool {
    !name.is_empty()
        && path.starts_with(name)
        && (path.len() == name.len() || path.get(name.len()) == Some(&b'/'))
}

/// A call's file, for people.
fn named(call: &Call) -> String {
    match call.unplaced {
        true => format!("inode {}", number_of(call.ino).0),
        false => shown(&call.path),
    }
}
