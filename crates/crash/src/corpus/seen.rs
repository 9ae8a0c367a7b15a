//! What a tree shows to whoever looks at it.

use std::collections::BTreeMap;

use steadfast_devices::store::Digest;
use steadfast_vfs::{FileSystem, FileType};

use crate::tree::{Contents, Node, Tree, Unreadable};

const SECTOR: usize = 512;

/// What is known of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its inode's number, in this look only.
    pub ino: u64,
    /// What it is.
    pub kind: FileType,
    /// How many names it has.
    pub nlink: u32,
    /// Bytes of storage.
    pub stored: u64,
    /// A regular file's contents, a symbolic link's target.
    pub contents: Contents,
    /// Of a regular file, a number for each 512 bytes: 0 for zeros.
    pub pieces: Vec<u32>,
    /// Extended attributes of users.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// All names, by their paths.
pub(super) type Names = BTreeMap<Vec<u8>, Seen>;

/// Looks at all there is.
///
/// # Errors
/// What cannot be read.
pub(super) fn look(fs: &dyn FileSystem) -> Result<Names, Unreadable> {
    let tree = Tree::look_whole(fs, fs.root())?;
    let seen = |node: &Node| Seen {
        ino: node.attr.ino.0,
        kind: node.attr.kind,
        nlink: node.attr.nlink,
        stored: node.attr.blocks_512 * 512,
        contents: match node.attr.kind {
            FileType::Symlink => {
                Contents { size: node.target.len() as u64, digest: Digest::of(&node.target) }
            }
            _ => node.contents(),
        },
        pieces: pieces(node),
        xattrs: node.xattrs.clone(),
    };
    Ok(tree.nodes().map(|(path, node)| (path.to_vec(), seen(node))).collect())
}

/// A number for each sector of what a file holds.
fn pieces(node: &Node) -> Vec<u32> {
    if node.attr.kind != FileType::Regular {
        return Vec::new();
    }
    let bytes = node.bytes(0, node.attr.size);
    let piece = |piece: &[u8]| match piece.iter().all(|byte| *byte == 0) {
        true => 0,
        // Of a part the rest is zeros.
        false => {
            let sum = crc32c::crc32c(piece);
            crc32c::crc32c_append(sum, &vec![0; SECTOR - piece.len()]) | 1
        }
    };
    bytes.chunks(SECTOR).map(piece).collect()
}

/// Names of one file, and directories, are what they say of themselves.
pub(super) fn inconsistent(names: &Names) -> Option<String> {
    let mut of_inode: BTreeMap<u64, Vec<&[u8]>> = BTreeMap::new();
    for (path, seen) in names {
        of_inode.entry(seen.ino).or_default().push(path);
    }
    of_inode.values().find_map(|paths| {
        let seen = &names[paths[0]];
        let (wrong, links) = match seen.kind {
            FileType::Directory => (paths.len() > 1, 1),
            _ => (paths.len() != seen.nlink as usize, seen.nlink),
        };
        let first = String::from_utf8_lossy(paths[0]);
        wrong.then(|| format!("{first}: {} names, of {links}", paths.len()))
    })
}
