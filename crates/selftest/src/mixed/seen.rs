//! What a recovered file system holds.

use steadfast_crash::program::{Node, Tree, shown};
use steadfast_suite::names::{NodeKind, NodeView, Views};
use steadfast_suite::operation::ATTRIBUTE;
use steadfast_vfs::FileType;

/// The path of a FIFO, a socket or a device, if there is one: no task makes any, so an inode has
/// the wrong type.
pub(crate) fn special(tree: &Tree) -> Option<String> {
    let is_special =
        |kind| !matches!(kind, FileType::Regular | FileType::Directory | FileType::Symlink);
    let mut found = tree.nodes().filter(|(_, node)| is_special(node.attr.kind));
    found.next().map(|(path, _)| shown(path))
}

/// Everything below the task's folder. `None` if there is no such folder.
pub(crate) fn folder(tree: &Tree, name: &str) -> Option<Views> {
    let below = |path: &[u8]| {
        let inside = path.strip_prefix(name.as_bytes())?;
        let inside = if inside.is_empty() { inside } else { inside.strip_prefix(b"/")? };
        Some(String::from_utf8_lossy(inside).into_owned())
    };
    let seen = |node: &Node| NodeView {
        kind: NodeKind::of(node.attr.kind).unwrap_or(NodeKind::File),
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
    let found: Views =
        tree.nodes().filter_map(|(path, node)| Some((below(path)?, seen(node)))).collect();
    found.contains_key("").then_some(found)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};
    use steadfast_vfs::{FileSystem, HostFs};

    use super::*;

    /// It has no contents, and would be as good as an empty file.
    #[test]
    fn a_special_file_is_no_empty_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("t0")).unwrap();
        std::fs::write(folder.path().join("t0/empty"), "").unwrap();
        let fs = HostFs::open(folder.path()).unwrap();
        let look = || Tree::look_whole(&fs, fs.root()).unwrap();
        assert_eq!(special(&look()), None);
        let fifo = folder.path().join("t0/fifo");
        mknodat(CWD, &fifo, Kind::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(special(&look()).as_deref(), Some("t0/fifo"));
    }
}
