//! The model of names: what a task's folder holds after so many operations.

use std::collections::BTreeMap;

use super::operation::{Operation, OperationIndex, attribute};
use super::seen::{NodeKind, NodeView};

/// A node of the model: named by the operation that made it; 0 is the task's folder, others are
/// one more than the operation's index.
pub(crate) type Node = usize;

/// The task's folder.
pub(crate) const FOLDER: Node = 0;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeInfo {
    pub kind: NodeKind,
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
        let (kind, mode) = (NodeKind::Folder, 0o755);
        let folder = NodeInfo { kind, mode, target: String::new(), attribute: 0 };
        Names {
            entries: BTreeMap::from([(String::new(), FOLDER)]),
            nodes: BTreeMap::from([(FOLDER, folder)]),
        }
    }

    pub fn node(&self, name: &str) -> Option<Node> {
        self.entries.get(name).copied()
    }

    pub fn kind(&self, name: &str) -> Option<NodeKind> {
        self.node(name).map(|n| self.nodes[&n].kind)
    }

    /// Applies the operation with this index; those on data change nothing here. Returns the nodes
    /// whose inodes it changes.
    pub fn apply(&mut self, index: OperationIndex, op: &Operation) -> Vec<Node> {
        match op {
            Operation::Create { name } => self.add(name, index, (NodeKind::File, 0o644), ""),
            Operation::Mkdir { name } => self.add(name, index, (NodeKind::Folder, 0o755), ""),
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
            Operation::Rename { from, to } => self.rename(from, to),
            Operation::Exchange { one, other } => {
                let nodes = [self.node(one), self.node(other)];
                if let [Some(a), Some(b)] = nodes {
                    self.entries.extend([(one.clone(), b), (other.clone(), a)]);
                }
                self.and_parents(&nodes, &[one, other])
            }
            Operation::SetAttribute { name, len } => {
                self.change(name, |info| info.attribute = *len)
            }
            Operation::Chmod { name, mode } => self.change(name, |info| info.mode = *mode),
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

    fn add(
        &mut self,
        name: &str,
        index: OperationIndex,
        (kind, mode): (NodeKind, u16),
        target: &str,
    ) -> Vec<Node> {
        let (node, target) = (index + 1, target.to_owned());
        self.entries.insert(name.to_owned(), node);
        self.nodes.insert(node, NodeInfo { kind, mode, target, attribute: 0 });
        self.and_parents(&[Some(node)], &[name])
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

    fn rename(&mut self, from: &str, to: &str) -> Vec<Node> {
        let nodes = [self.node(from), self.node(to)];
        // Two names of one file: rename(2) does nothing.
        if nodes[0] == nodes[1] {
            return Vec::new();
        }
        let touched = self.and_parents(&nodes, &[from, to]);
        self.remove(to);
        let inside = format!("{from}/");
        let moved: Vec<String> =
            self.entries.keys().filter(|n| *n == from || n.starts_with(&inside)).cloned().collect();
        for old in moved {
            if let Some(node) = self.entries.remove(&old) {
                self.entries.insert(format!("{to}{}", &old[from.len()..]), node);
            }
        }
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

    /// Whether what was found is this; if not, where it differs.
    pub fn compare(&self, seen: &BTreeMap<String, NodeView>) -> Result<(), String> {
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
                && (info.kind != NodeKind::Symlink || found.target == info.target);
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
