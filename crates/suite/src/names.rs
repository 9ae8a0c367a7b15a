//! The model of a tree: which names there are after so many operations, what they stand for, and
//! what files hold.

mod look;
mod tree;

use std::collections::BTreeMap;

use rustix::io::Errno;
use steadfast_vfs::FileType;

use crate::operation::{Operation, OperationIndex};

pub use look::{NodeView, Views, look, read};
pub use tree::{Tree, differ};

/// A node of the model: named by the operation that made it; 0 is the task's folder, others are
/// one more than the operation's index.
pub type Node = usize;

/// The task's folder.
pub const FOLDER: Node = 0;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "what they are called")]
pub enum NodeKind {
    File,
    Folder,
    Symlink,
    Fifo,
}

impl NodeKind {
    /// Of what is found; `None`: no operation makes such a thing.
    pub fn of(kind: FileType) -> Option<NodeKind> {
        Some(match kind {
            FileType::Regular => NodeKind::File,
            FileType::Directory => NodeKind::Folder,
            FileType::Symlink => NodeKind::Symlink,
            FileType::Fifo => NodeKind::Fifo,
            _ => return None,
        })
    }
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// What it is.
    pub kind: NodeKind,
    /// Permissions.
    pub mode: u16,
    /// A symbolic link's target.
    pub target: String,
    /// Length of its attribute.
    pub attribute: usize,
    /// Bytes of a file.
    pub size: u64,
}

/// Names and what they name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// By path; "" is the task's folder.
    pub entries: BTreeMap<String, Node>,
    /// Those that have a name.
    pub nodes: BTreeMap<Node, NodeInfo>,
}

/// The first difference between what was found and what is expected, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Difference(pub String);

impl From<Difference> for String {
    fn from(difference: Difference) -> String {
        difference.0
    }
}

/// The folder part of a path.
pub fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// Whether a path leads into a folder.
pub fn is_inside(name: &str, folder: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

impl Default for Names {
    fn default() -> Self {
        Names::new()
    }
}

impl Names {
    /// An empty folder.
    pub fn new() -> Self {
        let mut names = Names { entries: BTreeMap::new(), nodes: BTreeMap::new() };
        names.insert("", FOLDER, (NodeKind::Folder, 0o755), "");
        names
    }

    /// What has this name.
    pub fn node(&self, name: &str) -> Option<Node> {
        self.entries.get(name).copied()
    }

    /// What is known of what has this name.
    pub fn info(&self, name: &str) -> Option<&NodeInfo> {
        self.node(name).map(|node| &self.nodes[&node])
    }

    /// What kind of thing has this name.
    pub fn kind(&self, name: &str) -> Option<NodeKind> {
        self.info(name).map(|info| info.kind)
    }

    /// Bytes of the file with this name.
    pub fn size(&self, name: &str) -> u64 {
        self.info(name).map_or(0, |info| info.size)
    }

    /// The names of this kind, in their order.
    pub fn of_kind(&self, kind: NodeKind) -> Vec<&String> {
        self.entries.keys().filter(|name| self.kind(name) == Some(kind)).collect()
    }

    /// Whether nothing is in a folder.
    pub fn is_empty(&self, folder: &str) -> bool {
        !self.entries.keys().any(|n| !n.is_empty() && n != folder && parent(n) == folder)
    }

    /// The error that Linux gives for an operation on names; `None`: it is done.
    pub fn refusal(&self, op: &Operation) -> Option<Errno> {
        let kind = |name: &str| self.kind(name);
        let taken = |name: &str| kind(name).map(|_| Errno::EXIST);
        match op {
            Operation::Create { name }
            | Operation::Mkdir { name }
            | Operation::Mkfifo { name }
            | Operation::Symlink { name, .. } => taken(name),
            Operation::Link { from, to } => {
                taken(to).or_else(|| (kind(from) == Some(NodeKind::Folder)).then_some(Errno::PERM))
            }
            Operation::Unlink { name } | Operation::UnlinkOpen { name } => match kind(name) {
                None => Some(Errno::NOENT),
                Some(NodeKind::Folder) => Some(Errno::ISDIR),
                Some(_) => None,
            },
            Operation::Rmdir { name } => match kind(name) {
                None => Some(Errno::NOENT),
                Some(NodeKind::Folder) => (!self.is_empty(name)).then_some(Errno::NOTEMPTY),
                Some(_) => Some(Errno::NOTDIR),
            },
            Operation::RenameNew { from, to } => taken(to).or_else(|| self.no_rename(from, to)),
            Operation::Rename { from, to } => self.no_rename(from, to),
            Operation::Exchange { one, other } => match kind(other) {
                None => Some(Errno::NOENT),
                Some(_) if is_inside(other, one) || is_inside(one, other) => Some(Errno::INVAL),
                Some(_) => None,
            },
            _ => None,
        }
    }

    fn no_rename(&self, from: &str, to: &str) -> Option<Errno> {
        if is_inside(to, from) {
            return Some(Errno::INVAL);
        }
        if is_inside(from, to) {
            return Some(Errno::NOTEMPTY);
        }
        if self.node(from) == self.node(to) {
            return None;
        }
        let is_folder = |name| self.kind(name).map(|kind| kind == NodeKind::Folder);
        match (is_folder(from), is_folder(to)) {
            (None, _) => Some(Errno::NOENT),
            (Some(true), Some(false)) => Some(Errno::NOTDIR),
            (Some(false), Some(true)) => Some(Errno::ISDIR),
            (Some(true), Some(true)) => (!self.is_empty(to)).then_some(Errno::NOTEMPTY),
            _ => None,
        }
    }

    /// Applies the operation with this index, which is not [refused](Self::refusal). Returns the
    /// nodes whose inodes it changes, but for those of files whose data changes.
    pub fn apply(&mut self, index: OperationIndex, op: &Operation) -> Vec<Node> {
        if let Some((name, change)) = op.changed_file() {
            let node = self.entries[name];
            if let Some(info) = self.nodes.get_mut(&node) {
                info.size = change.size(info.size);
            }
        }
        match op {
            Operation::Create { name } => self.add(name, index, (NodeKind::File, 0o644), ""),
            Operation::Mkdir { name } => self.add(name, index, (NodeKind::Folder, 0o755), ""),
            Operation::Mkfifo { name } => self.add(name, index, (NodeKind::Fifo, 0o644), ""),
            Operation::Symlink { name, target } => {
                self.add(name, index, (NodeKind::Symlink, 0o777), target)
            }
            Operation::Link { from, to } => {
                let node = self.entries[from];
                self.entries.insert(to.clone(), node);
                self.and_parents(&[Some(node)], &[to])
            }
            Operation::Unlink { name }
            | Operation::UnlinkOpen { name }
            | Operation::Rmdir { name } => {
                let touched = self.and_parents(&[self.node(name)], &[name]);
                self.remove(name);
                touched
            }
            Operation::Rename { from, to } | Operation::RenameNew { from, to } => {
                self.rename(from, to)
            }
            Operation::Exchange { one, other } => {
                let touched = self.and_parents(&[self.node(one), self.node(other)], &[one, other]);
                if one != other {
                    let (first, second) = (self.take(one, other), self.take(other, one));
                    self.entries.extend(first.into_iter().chain(second));
                }
                touched
            }
            Operation::SetAttribute { name, len } => {
                self.change(name, |info| info.attribute = *len)
            }
            Operation::RemoveAttribute { name } => self.change(name, |info| info.attribute = 0),
            Operation::Chmod { name, mode } => self.change(name, |info| info.mode = *mode),
            Operation::Chown { name, .. } | Operation::SetTimes { name, .. } => {
                self.change(name, |_| ())
            }
            Operation::Write { .. }
            | Operation::Truncate { .. }
            | Operation::Fallocate { .. }
            | Operation::Fsync { .. }
            | Operation::FsyncDir { .. }
            | Operation::Sync
            | Operation::Transact => Vec::new(),
        }
    }

    /// Those nodes that there are, and the folders of these names.
    fn and_parents(&self, nodes: &[Option<Node>], names: &[&str]) -> Vec<Node> {
        let parents = names.iter().map(|name| self.node(parent(name)));
        nodes.iter().copied().chain(parents).flatten().collect()
    }

    fn insert(&mut self, name: &str, node: Node, (kind, mode): (NodeKind, u16), target: &str) {
        let target = target.to_owned();
        self.entries.insert(name.to_owned(), node);
        self.nodes.insert(node, NodeInfo { kind, mode, target, attribute: 0, size: 0 });
    }

    fn add(
        &mut self,
        name: &str,
        index: OperationIndex,
        kind: (NodeKind, u16),
        target: &str,
    ) -> Vec<Node> {
        self.insert(name, index + 1, kind, target);
        self.and_parents(&[Some(index + 1)], &[name])
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut NodeInfo)) -> Vec<Node> {
        let node = self.entries[name];
        self.nodes.get_mut(&node).map(change);
        vec![node]
    }

    fn remove(&mut self, name: &str) {
        let Some(node) = self.entries.remove(name) else { return };
        if !self.entries.values().any(|n| *n == node) {
            self.nodes.remove(&node);
        }
    }

    /// Takes a name out, with what is below it, as it is to be called.
    fn take(&mut self, from: &str, to: &str) -> Vec<(String, Node)> {
        let moved = |name: &&String| *name == from || is_inside(name, from);
        let moved: Vec<String> = self.entries.keys().filter(moved).cloned().collect();
        let renamed = |old: String| {
            let node = self.entries.remove(&old)?;
            Some((format!("{to}{}", &old[from.len()..]), node))
        };
        moved.into_iter().filter_map(renamed).collect()
    }

    fn rename(&mut self, from: &str, to: &str) -> Vec<Node> {
        let nodes = [self.node(from), self.node(to)];
        // Two names of one file: rename(2) does nothing.
        if nodes[0] == nodes[1] {
            return Vec::new();
        }
        let touched = self.and_parents(&nodes, &[from, to]);
        self.remove(to);
        let moved = self.take(from, to);
        self.entries.extend(moved);
        touched
    }

    /// Links of a node as `stat` counts them.
    fn links(&self, node: Node) -> u32 {
        let names = self.entries.iter().filter(|(_, n)| **n == node);
        if self.nodes[&node].kind != NodeKind::Folder {
            return names.count() as u32;
        }
        let Some((path, _)) = names.into_iter().next() else { return 0 };
        let inside = |name: &str| !name.is_empty() && name != path && parent(name) == path;
        let folders = self
            .entries
            .iter()
            .filter(|(name, n)| inside(name) && self.nodes[n].kind == NodeKind::Folder)
            .count();
        2 + folders as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::list as operations;

    #[test]
    fn folders_move_with_what_is_in_them() {
        let mut tree = Tree::default();
        let text = "mkdir d; create d/a; create e; write d/a 0 10; rename d f; exchange e f";
        for (index, op) in operations(text).unwrap().iter().enumerate() {
            assert_eq!(tree.names.refusal(op), None, "{op}");
            tree.apply((0, index), op);
        }
        let all = |tree: &Tree| tree.names.entries.keys().cloned().collect::<Vec<_>>();
        assert_eq!(all(&tree), ["", "e", "e/a", "f"]);
        assert_eq!(tree.names.kind("e"), Some(NodeKind::Folder));
        assert_eq!((tree.names.size("e/a"), tree.data(2).len()), (10, 10));
        let refused = |text: &str| tree.names.refusal(&text.parse().unwrap());
        assert_eq!(refused("rename e e/a"), Some(Errno::INVAL));
        assert_eq!(refused("rename f e"), Some(Errno::ISDIR));
        assert_eq!(refused("rmdir e"), Some(Errno::NOTEMPTY));
        assert_eq!(refused("rename e/a f"), None);
        tree.apply((0, 6), &"rename f e/a".parse().unwrap());
        assert_eq!((all(&tree).len(), tree.names.nodes.len(), tree.data(2).len()), (3, 3, 0));
    }
}
