//! What every program may expect of a recovered tree, judged by the calls that it made.
//!
//! 1. *Promises*: a file that was synced holds what it held then, unless it was changed later. Its
//!    name is there if it was there before the run, or its directory was synced after it was made.
//!    The file system is at fault.
//! 2. *Names*: what was there before the run, and was never removed or moved, is there, also if it
//!    was replaced by a rename meanwhile. The file system is at fault.
//! 3. *Replacement*: a file that was renamed over another is whole: after the cut the name shows
//!    the old file or the new one, and the new one holds what it held when it was renamed. Where
//!    the new file had not been synced before, the program is at fault: a file system need not
//!    keep that order.
//!
//! A file that was changed while it was synced or renamed, or later, is not judged by these rules.

use std::collections::{BTreeMap, BTreeSet};

use super::calls::{Call, Kind};
use super::tree::{Contents, Node, Tree, shown};

/// Something that should not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// In words.
    pub what: String,
    /// The file system had promised it; else the program has forgotten to ask for it.
    pub promised: bool,
}

/// Judges the tree that a cut before `tick` left. `base` is the tree at the beginning of the run.
pub fn judge(calls: &[Call], base: &Tree, tree: &Tree, tick: u64) -> Vec<Broken> {
    let before = calls.partition_point(|call| call.started.tick < tick);
    let history = History { calls: &calls[..before], base, tick };
    let by_inode: BTreeMap<u64, &[u8]> =
        tree.nodes().map(|(path, node)| (node.attr.ino.0, path)).collect();
    let mut broken = history.replaced(tree, &by_inode);
    broken.extend(history.synced(tree));
    broken.extend(history.gone(tree));
    broken
}

struct History<'a> {
    /// Those that began before the cut.
    calls: &'a [Call],
    base: &'a Tree,
    tick: u64,
}

impl History<'_> {
    /// Whether the bytes of an inode may have changed after a tick.
    fn changed_after(&self, ino: u64, tick: u64) -> bool {
        self.calls.iter().any(|call| {
            let touches = call.kind.changes_contents() || call.kind == Kind::Create;
            let late = call.returned.is_none_or(|returned| returned.tick > tick);
            call.ino == ino && touches && late && !call.failed
        })
    }

    /// Whether a name may have changed after a tick: its own, or that of a directory above it.
    fn moved_after(&self, path: &[u8], tick: u64) -> bool {
        let concerns = |name: &[u8]| is_at_or_above(name, path);
        self.calls.iter().any(|call| {
            let renames = matches!(
                call.kind,
                Kind::Rename | Kind::Exchange | Kind::Unlink | Kind::Rmdir | Kind::Link
            );
            let late = call.returned.is_none_or(|returned| returned.tick > tick);
            renames && late && !call.failed && (concerns(&call.path) || concerns(&call.other))
        })
    }

    /// Whether the name of a file must be there: it was there before everything, or its directory
    /// was synced since the name was made.
    fn name_is_promised(&self, path: &[u8], ino: u64) -> bool {
        let made = self.calls.iter().rev().find(|call| {
            let gives = matches!(call.kind, Kind::Create | Kind::Mknod) && call.path == path
                || matches!(call.kind, Kind::Rename | Kind::Link | Kind::Exchange)
                    && (call.other == path || call.path == path);
            gives && !call.failed
        });
        let Some(made) = made else {
            return self.base.get(path).is_some_and(|node| node.attr.ino.0 == ino);
        };
        let Some(returned) = made.returned else { return false };
        let parent = path.iter().rposition(|byte| *byte == b'/').map_or(&[][..], |at| &path[..at]);
        // Names of the directories above are not followed further than this.
        let parent_is_old = parent.is_empty() || self.base.get(parent).is_some();
        parent_is_old
            && self.calls.iter().any(|call| {
                call.kind == Kind::FsyncDir
                    && call.path == parent
                    && call.started.tick > returned.tick
                    && call.done_before(self.tick)
            })
    }

    /// What was there and was never taken away, but is not there.
    fn gone(&self, tree: &Tree) -> Vec<Broken> {
        let taken = |path: &[u8]| {
            self.calls.iter().any(|call| {
                let moved = match call.kind {
                    Kind::Unlink | Kind::Rmdir | Kind::Rename => false,
                    Kind::Exchange => is_at_or_above(&call.other, path),
                    _ => return false,
                };
                moved || is_at_or_above(&call.path, path)
            })
        };
        let gone = self.base.nodes().filter(|(path, _)| tree.get(path).is_none() && !taken(path));
        gone.map(|(path, _)| {
            let what = format!("{}: was there before the run and is gone", shown(path));
            Broken { what, promised: true }
        })
        .collect()
    }

    fn synced(&self, tree: &Tree) -> Vec<Broken> {
        let mut seen = BTreeSet::new();
        let mut broken = Vec::new();
        for sync in self.calls.iter().rev() {
            let is_sync = matches!(sync.kind, Kind::Fsync | Kind::Fdatasync);
            let Some(held) = sync.contents.filter(|_| is_sync) else { continue };
            if !sync.done_before(self.tick) || !seen.insert(sync.ino) {
                continue;
            }
            let since = sync.started.tick;
            if self.changed_after(sync.ino, since) || self.moved_after(&sync.path, since) {
                continue;
            }
            let name = shown(&sync.path);
            let what = match tree.get(&sync.path) {
                Some(node) if node.contents == held => continue,
                Some(node) if node.attr.ino.0 != sync.ino => continue,
                Some(node) => {
                    format!("{name}: synced with {} bytes: {}", held.size, now_holds(node, held))
                }
                None if self.name_is_promised(&sync.path, sync.ino) => {
                    format!("{name}: was synced, its name too, and is gone")
                }
                None => continue,
            };
            broken.push(Broken { what, promised: true });
        }
        broken
    }

    fn replaced(&self, tree: &Tree, by_inode: &BTreeMap<u64, &[u8]>) -> Vec<Broken> {
        let mut seen = BTreeSet::new();
        let mut broken = Vec::new();
        for rename in self.calls.iter().rev() {
            if rename.kind != Kind::Rename || rename.replaced == 0 || rename.failed {
                continue;
            }
            let Some(new) = rename.contents else { continue };
            if !seen.insert(rename.ino) || self.changed_after(rename.ino, rename.started.tick) {
                continue;
            }
            // The file that was moved, if it is under the name that it was to have.
            let Some(path) = by_inode.get(&rename.ino).filter(|p| **p == rename.other) else {
                continue;
            };
            let Some(node) = tree.get(path).filter(|node| node.contents != new) else { continue };
            let promised = self.was_synced(rename);
            let synced = if promised { "after its fsync" } else { "without fsync" };
            let name = shown(path);
            let old = rename.lost.map_or(String::new(), |c| format!("the old {} bytes", c.size));
            let what = format!(
                "{name}: replaced by rename {synced}: {}, neither {old} nor the new {}",
                now_holds(node, new),
                new.size
            );
            broken.push(Broken { what, promised });
        }
        broken
    }

    /// Whether the file had been synced, and not changed after that, when it was renamed.
    fn was_synced(&self, rename: &Call) -> bool {
        let last_change = self
            .calls
            .iter()
            .filter(|call| call.ino == rename.ino && call.kind.changes_contents() && !call.failed)
            .map(|call| call.returned.map_or(u64::MAX, |returned| returned.tick))
            .max()
            .unwrap_or(0);
        self.calls.iter().any(|call| {
            matches!(call.kind, Kind::Fsync | Kind::Fdatasync)
                && call.ino == rename.ino
                && call.started.tick > last_change
                && call.done_before(rename.started.tick)
        })
    }
}

/// Whether `name` is `path` or a directory above it.
fn is_at_or_above(name: &[u8], path: &[u8]) -> bool {
    !name.is_empty()
        && path.starts_with(name)
        && (path.len() == name.len() || path.get(name.len()) == Some(&b'/'))
}

fn now_holds(node: &Node, wanted: Contents) -> String {
    match node.contents.size {
        0 => "now empty".into(),
        size if size != wanted.size => format!("now {size} bytes"),
        size if node.pieces.is_empty() => format!("now {size} zeros"),
        _ => "now something else".into(),
    }
}
