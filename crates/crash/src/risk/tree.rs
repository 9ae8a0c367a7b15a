//! What a recovered file system shows of the workload.

use std::collections::BTreeMap;

use steadfast_vfs::{FileSystem, FileType};

use crate::tree;

/// Files are judged up to this size, in bytes. Those of the workload are far smaller: what claims
/// to be larger is damage.
pub const LARGEST: u64 = 64 << 20;

/// The regular files below the root, with what they hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    /// By path, without a leading '/'.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What could not be read, or is not what the workload made, in words.
    pub unreadable: Vec<String>,
}

impl Tree {
    /// Reads everything but `lost+found`. What fails is in [`unreadable`](Self::unreadable).
    /// Where there may be other things (`others`), they are passed over.
    pub fn read(fs: &dyn FileSystem, others: bool) -> Tree {
        let (seen, unreadable) = tree::Tree::look(fs, fs.root());
        let unreadable = unreadable.into_iter().map(|e| format!("after recovery: {e}")).collect();
        let mut tree = Tree { files: BTreeMap::new(), unreadable };
        for (path, node) in seen.nodes() {
            let (path, size) = (String::from_utf8_lossy(path).into_owned(), node.attr.size);
            match node.attr.kind {
                FileType::Directory => {}
                FileType::Regular if size <= LARGEST => {
                    tree.files.insert(path, node.bytes(0, size));
                }
                _ if others => {}
                kind => tree
                    .unreadable
                    .push(format!("{path} is {kind:?} of {size} bytes: nobody made such a thing")),
            }
        }
        tree
    }
}
