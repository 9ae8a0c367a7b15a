//! Names, with what files hold.

use std::collections::BTreeMap;

use super::{Difference, FOLDER, Names, Node, NodeKind, Views};
use crate::operation::{Operation, OperationIndex, fill};

/// Names, and what their files hold.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// The names.
    pub names: Names,
    data: BTreeMap<Node, Vec<u8>>,
}

impl Tree {
    /// Applies the operation with this index of this task, as [`Names::apply`].
    pub fn apply(&mut self, (task, index): (usize, OperationIndex), op: &Operation) {
        if let Some((name, change)) = op.changed_file() {
            let data = self.data.entry(self.names.entries[name]).or_default();
            change.make(data, |offset, out| fill(task, index, offset, out));
        }
        self.names.apply(index, op);
        self.data.retain(|node, _| self.names.nodes.contains_key(node));
    }

    /// What a file holds.
    pub fn data(&self, node: Node) -> &[u8] {
        self.data.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Changes what a file holds by other means than an operation.
    pub fn change(&mut self, node: Node, change: impl FnOnce(&mut Vec<u8>)) {
        let data = self.data.entry(node).or_default();
        change(data);
        if let Some(info) = self.names.nodes.get_mut(&node) {
            info.size = data.len() as u64;
        }
    }

    /// Whether what was found is this, with what files hold; if not, where it differs.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn compare(&self, seen: &Views) -> Result<(), Difference> {
        self.names.compare(seen)?;
        for (name, found) in seen.iter().filter(|(_, view)| view.kind == NodeKind::File) {
            let node = self.names.node(name).unwrap_or(FOLDER);
            differ(&format!("'{name}'"), &found.data, self.data(node))?;
        }
        Ok(())
    }
}

/// Says where two contents part.
///
/// # Errors
/// They do, in words.
pub fn differ(what: &str, found: &[u8], expected: &[u8]) -> Result<(), Difference> {
    if found == expected {
        return Ok(());
    }
    if found.len() != expected.len() {
        return Err(Difference(format!(
            "{what}: {} bytes, expected {}",
            found.len(),
            expected.len()
        )));
    }
    let pairs = || found.iter().zip(expected);
    let first = pairs().position(|(f, e)| f != e).unwrap_or(0);
    let count = pairs().filter(|(f, e)| f != e).count();
    let (f, e) = (found[first], expected[first]);
    Err(Difference(format!(
        "{what}: byte {first} is {f:#x}, expected {e:#x}; {count} bytes differ"
    )))
}
