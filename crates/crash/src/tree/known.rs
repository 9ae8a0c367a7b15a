//! A tree that was read before: what lies where it lay, with the same bytes, is not read again.

use std::collections::HashMap;

use steadfast_devices::store::Store;
use steadfast_vfs::{Attr, FileExtent, FileSystem, FileType, Ino};

use super::{Node, Tree};

/// A tree, where its files lie, and the disk below it.
///
/// A power cut changes little of a tree, and its other files need not be read: a file of the same
/// size in the same places has the same bytes if the disk has them there. Of data that a file
/// system holds in memory alone the disk knows nothing, so this is for one that was just mounted.
#[derive(Debug)]
pub(crate) struct KnownTree {
    disk: Store,
    files: HashMap<Ino, (Node, Vec<FileExtent>)>,
}

impl KnownTree {
    /// The tree that `fs` shows, which has changed nothing since its mount; `disk` is what it lies
    /// on.
    pub fn of(tree: &Tree, fs: &dyn FileSystem, disk: Store) -> KnownTree {
        let mut files = HashMap::new();
        for (_, node) in tree.nodes() {
            if let Some(extents) = places(fs, &node.attr) {
                // Said of each tree that has it.
                node.contents();
                files.insert(node.attr.ino, (node.clone(), extents));
            }
        }
        KnownTree { disk, files }
    }

    /// Whether a piece of a file is one of this tree's, and no copy.
    #[cfg(test)]
    pub fn holds(&self, piece: &bytes::Bytes) -> bool {
        let all = self.files.values().flat_map(|(node, _)| &node.pieces);
        all.into_iter().any(|(_, known)| known.as_ptr() == piece.as_ptr())
    }

    /// The same file with the same bytes, where that is sure; `disk` is what `fs` lies on now.
    pub fn same(&self, fs: &dyn FileSystem, disk: &Store, attr: &Attr) -> Option<&Node> {
        let (node, extents) = self.files.get(&attr.ino)?;
        if node.attr.size != attr.size || places(fs, attr)? != *extents {
            return None;
        }
        let is_same = |e: &FileExtent| e.unwritten || disk.same_at(&self.disk, e.physical, e.len);
        extents.iter().all(is_same).then_some(node)
    }
}

/// Where a file's bytes are, if all of them are in blocks of the disk.
fn places(fs: &dyn FileSystem, attr: &Attr) -> Option<Vec<FileExtent>> {
    if attr.kind != FileType::Regular || attr.size == 0 {
        return None;
    }
    let extents = fs.extents(attr.ino, 0, attr.size).ok()?;
    extents.iter().all(|e| !e.delayed && !e.inline).then_some(extents)
}
