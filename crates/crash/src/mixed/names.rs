//! The model of names: what a task's folder holds after so many operations.

use std::collections::BTreeMap;

use super::operation::{Index, Operation, attribute};
use super::seen::{Kind, Seen};

/// A node of the model: named by the operation that made it; 0 is the task's folder, others are
/// one more than the operation's index.
pub(crate) type Node = usize;

/// The task's folder.
pub(crate) const FOLDER: Node = 0;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeInfo {
    pub kind: Kind,
    pub mode: u16,
    /// A symbolic link's target.
    pub target: String,
    /// Length of its attribute.
    pub attribute: usize,
}

/// Names and what they name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    pub entries: BTreeMap<String, Node>,
    pub nodes: BTreeMap<Node, NodeInfo>,
}

/// The folder part of a path.
pub(crate) fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(dir, _)| dir)
}

impl Names {
    pub fn new() -> Self {
        let (kind, mode) = (Kind::Folder, 0o755);
        let folder = NodeInfo { kind, mode, target: String::new(), attribute: 0 };
        Names {
            entries: BTreeMap::from([(String::new(), FOLDER)]),
            nodes: BTreeMap::from([(FOLDER, folder)]),
        }
    }

    pub fn node(&self, name: &str) -> Option<Node> {
        self.entries.get(name).copied()
    }

    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.node(name).map(|n| self.nodes[&n].kind)
    }

    fn add(&mut self, name: &str, node: Node, kind: Kind, mode: u16, target: &str) {
        self.entries.insert(name.to_owned(), node);
        let target = target.to_owned();
        self.nodes.insert(node, NodeInfo { kind, mode, target, attribute: 0 });
    }

    fn remove(&mut self, name: &str) {
        let Some(node) = self.entries.remove(name) else { return };
        if !self.entries.values().any(|n| *n == node) {
            self.nodes.remove(&node);
        }
    }

    /// Applies the operation with this index; those on data change nothing here.
    pub fn apply(&mut self, index: Index, op: &Operation) {
        match op {
            Operation::Create { name } => self.add(name, index + 1, Kind::File, 0o644, ""),
            Operation::Mkdir { name } => self.add(name, index + 1, Kind::Folder, 0o755, ""),
            Operation::Symlink { name, target } => {
                self.add(name, index + 1, Kind::Symlink, 0o777, target);
            }
            Operation::Link { from, to } => {
                self.entries.insert(to.clone(), self.entries[from]);
            }
            Operation::Unlink { name }
            | Operation::UnlinkOpen { name }
            | Operation::Rmdir { name } => self.remove(name),
            Operation::Rename { from, to } => self.rename(from, to),
            Operation::Exchange { one, other } => {
                if let (Some(a), Some(b)) = (self.node(one), self.node(other)) {
                    self.entries.extend([(one.clone(), b), (other.clone(), a)]);
                }
            }
            Operation::SetAttribute { name, len } => {
                let node = self.entries[name];
                if let Some(info) = self.nodes.get_mut(&node) {
                    info.attribute = *len;
                }
            }
            Operation::Chmod { name, mode } => {
                let node = self.entries[name];
                if let Some(info) = self.nodes.get_mut(&node) {
                    info.mode = *mode;
                }
            }
            Operation::Write { .. }
            | Operation::Truncate { .. }
            | Operation::Fallocate { .. }
            | Operation::Fsync { .. }
            | Operation::FsyncDir { .. }
            | Operation::Sync
            | Operation::Transact => {}
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        // Two names of one file: rename(2) does nothing.
        if self.entries.get(from) == self.entries.get(to) {
            return;
        }
        self.remove(to);
        let inside = format!("{from}/");
        let moved: Vec<String> =
            self.entries.keys().filter(|n| *n == from || n.starts_with(&inside)).cloned().collect();
        for old in moved {
            if let Some(node) = self.entries.remove(&old) {
                self.entries.insert(format!("{to}{}", &old[from.len()..]), node);
            }
        }
    }

    /// Links of a node as `stat` counts them.
    fn links(&self, node: Node) -> u32 {
        let names = self.entries.iter().filter(|(_, n)| **n == node);
        if self.nodes[&node].kind != Kind::Folder {
            return names.count() as u32;
        }
        let Some((path, _)) = names.into_iter().next() else { return 0 };
        let inside = |name: &str| !name.is_empty() && name != path && parent(name) == path;
        let folders = self
            .entries
            .iter()
            .filter(|(name, n)| inside(name) && self.nodes[n].kind == Kind::Folder)
            .count();
        2 + folders as u32
    }

    /// Whether what was found is this; if not, where it differs.
    pub fn compare(&self, seen: &BTreeMap<String, Seen>) -> Result<(), String> {
        if let Some(name) = self.entries.keys().find(|n| !seen.contains_key(*n)) {
            return Err(format!("'{name}' is missing"));
        }
        let mut numbers: BTreeMap<u64, Node> = BTreeMap::new();
        for (name, found) in seen {
            let Some(node) = self.node(name) else { return Err(format!("'{name}' is there")) };
            let info = &self.nodes[&node];
            if *numbers.entry(found.ino).or_insert(node) != node {
                return Err(format!("'{name}' shares its inode with another file"));
            }
            let links = self.links(node);
            let same = (found.kind, found.mode, found.links) == (info.kind, info.mode, links)
                && (info.kind != Kind::Symlink || found.target == info.target);
            if found.attribute != attribute(info.attribute) {
                let (has, due) = (found.attribute.len(), info.attribute);
                return Err(format!("'{name}' has an attribute of {has} bytes, not {due}"));
            }
            if !same {
                return Err(format!(
                    "'{name}' is {:?} {:o} with {} links, target '{}', not {:?} {:o} with {links}, \
                     '{}'",
                    found.kind,
                    found.mode,
                    found.links,
                    found.target,
                    info.kind,
                    info.mode,
                    info.target
                ));
            }
        }
        Ok(())
    }
}
