//! What a tree shows to whoever looks at it.

use std::collections::BTreeMap;

use steadfast_vfs::{FileSystem, FileType, Ino, Result};

use crate::program::{Contents, Node, Tree};

/// What mke2fs puts into the root; a recovery may fill it.
const LOST_AND_FOUND: &[u8] = b"lost+found";
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
/// What cannot be read, in words.
pub(super) fn look(fs: &dyn FileSystem) -> std::result::Result<Names, String> {
    let tree = Tree::read(fs)?;
    let mut names = Names::new();
    for (path, node) in tree.nodes() {
        if path == LOST_AND_FOUND || path.starts_with(b"lost+found/") {
            continue;
        }
        let attr = &node.attr;
        let has_xattrs = matches!(attr.kind, FileType::Regular | FileType::Directory);
        let xattrs = match has_xattrs {
            true => xattrs(fs, attr.ino).map_err(|e| {
                format!("{}: extended attributes: {e}", String::from_utf8_lossy(path))
            })?,
            false => BTreeMap::new(),
        };
        let contents = match attr.kind {
            FileType::Symlink => Contents {
                size: node.target.len() as u64,
                digest: steadfast_devices::store::Digest::of(&node.target),
            },
            _ => node.contents,
        };
        let seen = Seen {
            ino: attr.ino.0,
            kind: attr.kind,
            nlink: attr.nlink,
            stored: attr.blocks_512 * 512,
            contents,
            pieces: pieces(node),
            xattrs,
        };
        names.insert(path.to_vec(), seen);
    }
    Ok(names)
}

/// A number for each sector of what a file holds.
fn pieces(node: &Node) -> Vec<u32> {
    if node.attr.kind != FileType::Regular {
        return Vec::new();
    }
    let bytes = node.bytes(0, node.contents.size);
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

fn xattrs(fs: &dyn FileSystem, ino: Ino) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let names = fs.listxattr(ino)?;
    let ours = names.into_iter().filter(|name| name.starts_with(b"user."));
    ours.map(|name| fs.getxattr(ino, &name).map(|value| (name, value))).collect()
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
