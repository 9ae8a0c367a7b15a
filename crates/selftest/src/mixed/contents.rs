//! The data of all files of a task.

use std::collections::BTreeMap;

use steadfast_suite::names::{FOLDER, Names, Node};
use steadfast_suite::operation::{Operation, OperationIndex};

use super::content::Content;

/// The data of a task's files.
pub(super) struct Contents {
    task: usize,
    files: BTreeMap<Node, Content>,
}

impl Contents {
    pub fn new(task: usize) -> Self {
        Contents { task, files: BTreeMap::new() }
    }

    /// Applies the operation with this index, before which there are these names; those on names
    /// change nothing here.
    pub fn apply(&mut self, names: &Names, index: OperationIndex, op: &Operation) {
        if let Some((name, change)) = op.changed_file() {
            self.of(names.node(name).unwrap_or(FOLDER)).apply(index, change);
        }
    }

    pub fn of(&mut self, node: Node) -> &mut Content {
        self.files.entry(node).or_insert_with(|| Content::new(self.task))
    }

    /// If anything was ever done to it.
    pub fn get(&self, node: Node) -> Option<&Content> {
        self.files.get(&node)
    }

    /// All of it was promised: sync.
    pub fn promise_all(&mut self) {
        self.files.values_mut().for_each(Content::promise_all);
    }
}
