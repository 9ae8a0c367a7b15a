//! What a recovered file system holds.

use std::collections::BTreeMap;

use steadfast_vfs::FileType;

use crate::tree::{Node, Tree};

/// The attribute that is looked at.
pub(crate) const ATTRIBUTE: &[u8] = b"user.x";

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    File,
    Folder,
    Symlink,
}

/// One name that was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub kind: Kind,
    pub ino: u64,
    pub mode: u16,
    pub links: u32,
    pub target: String,
    /// The value of [`ATTRIBUTE`]; nothing if it has none.
    pub attribute: Vec<u8>,
    pub data: Vec<u8>,
}

/// What is in a task's folder, by path; the folder itself is "".
pub(crate) type Names = BTreeMap<String, Seen>;

/// Everything below the task's folder. `None` if there is no such folder.
pub(crate) fn folder(tree: &Tree, name: &str) -> Option<Names> {
    let below = |path: &[u8]| {
        let inside = path.strip_prefix(name.as_bytes())?;
        let inside = if inside.is_empty() { inside } else { inside.strip_prefix(b"/")? };
        Some(String::from_utf8_lossy(inside).into_owned())
    };
    let seen = |node: &Node| Seen {
        kind: match node.attr.kind {
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::File,
        },
        ino: node.attr.ino.0,
        mode: node.attr.mode,
        links: node.attr.nlink,
        target: String::from_utf8_lossy(&node.target).into_owned(),
        attribute: node.xattrs.get(ATTRIBUTE).cloned().unwrap_or_default(),
        data: match node.attr.kind {
            FileType::Regular => node.bytes(0, node.attr.size),
            _ => Vec::new(),
        },
    };
    let found: Names =
        tree.nodes().filter_map(|(path, node)| Some((below(path)?, seen(node)))).collect();
    found.contains_key("").then_some(found)
}
