//! A whole tree as it is seen, to be compared.

use std::collections::BTreeMap;

use steadfast_vfs::{Attr, FileSystem, FileType, Ino, OpenFlags, path};

use super::Model;
use super::model::Kind;

/// What is seen of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub kind: FileType,
    pub mode: u16,
    pub links: u32,
    pub size: u64,
    /// Contents, or a link's target.
    pub bytes: Vec<u8>,
    /// The first path (in order) of the same inode.
    pub same_as: Vec<u8>,
}

/// By path from the root, without lost+found.
pub type Tree = BTreeMap<Vec<u8>, Seen>;

/// The tree in a file system.
pub fn tree_of(fs: &dyn FileSystem) -> Tree {
    let (mut tree, mut first) = (Tree::new(), BTreeMap::new());
    see(fs, fs.root(), Vec::new(), &mut tree, &mut first);
    tree
}

fn see(
    fs: &dyn FileSystem,
    ino: Ino,
    at: Vec<u8>,
    tree: &mut Tree,
    first: &mut BTreeMap<Ino, Vec<u8>>,
) {
    let attr = fs.getattr(ino).unwrap();
    let bytes = match attr.kind {
        FileType::Regular => read_all(fs, ino),
        FileType::Symlink => fs.readlink(ino).unwrap(),
        _ => Vec::new(),
    };
    let same_as = first.entry(ino).or_insert_with(|| at.clone()).clone();
    let size = if attr.kind == FileType::Directory { 0 } else { attr.size };
    let (kind, mode, links) = (attr.kind, attr.mode, attr.nlink);
    tree.insert(at.clone(), Seen { kind, mode, links, size, bytes, same_as });
    if attr.kind != FileType::Directory {
        return;
    }
    let mut names = path::list(fs, ino).unwrap();
    names.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in names {
        if at.is_empty() && entry.name == b"lost+found" {
            continue;
        }
        let child = fs.lookup(ino, &entry.name).unwrap();
        assert_eq!((child.ino, child.kind), (entry.ino, entry.kind), "entry and inode agree");
        see(fs, child.ino, [&at[..], b"/", &entry.name].concat(), tree, first);
    }
}

/// Attributes by path, with lost+found. Inode numbers are left out: `HostFs` has its own.
pub fn attrs_of(fs: &dyn FileSystem) -> BTreeMap<Vec<u8>, Attr> {
    let mut all = BTreeMap::new();
    let mut below = vec![(Vec::new(), fs.root())];
    while let Some((at, ino)) = below.pop() {
        let attr = fs.getattr(ino).unwrap();
        if attr.kind == FileType::Directory {
            for entry in path::list(fs, ino).unwrap() {
                let child = fs.lookup(ino, &entry.name).unwrap();
                below.push(([&at[..], b"/", &entry.name].concat(), child.ino));
            }
        }
        all.insert(at, Attr { ino: Ino(0), generation: 0, ..attr });
    }
    all
}

/// All bytes of a file.
pub fn read_all(fs: &dyn FileSystem, ino: Ino) -> Vec<u8> {
    let fh = fs.open(ino, OpenFlags::READ).unwrap();
    let mut all = Vec::new();
    loop {
        let part = fs.read(fh, all.len() as u64, 1 << 20).unwrap();
        if part.is_empty() {
            break;
        }
        all.extend_from_slice(&part);
    }
    fs.release(fh).unwrap();
    all
}

impl Model {
    /// The tree as it should be seen.
    pub fn tree(&self) -> Tree {
        let (mut tree, mut first) = (Tree::new(), BTreeMap::new());
        self.see(super::model::ROOT, Vec::new(), &mut tree, &mut first);
        // lost+found is a subdirectory of the root.
        tree.entry(Vec::new()).and_modify(|root| root.links += 1);
        tree
    }

    fn see(&self, node: usize, at: Vec<u8>, tree: &mut Tree, first: &mut BTreeMap<usize, Vec<u8>>) {
        let here = &self.nodes[node];
        let same_as = first.entry(node).or_insert_with(|| at.clone()).clone();
        let (bytes, links) = match &here.kind {
            Kind::File(bytes) | Kind::Symlink(bytes) => (bytes.clone(), here.names),
            Kind::Dir(entries) => {
                let below = entries.values().filter(|n| self.is_dir(**n)).count();
                (Vec::new(), 2 + below as u32)
            }
        };
        let size = bytes.len() as u64;
        let (kind, mode) = (self.kind(node), here.mode);
        tree.insert(at.clone(), Seen { kind, mode, links, size, bytes, same_as });
        if let Kind::Dir(entries) = &here.kind {
            for (name, child) in entries {
                self.see(*child, [&at[..], b"/", name].concat(), tree, first);
            }
        }
    }
}

/// Panics where attributes differ.
pub fn assert_same_attrs(ours: &BTreeMap<Vec<u8>, Attr>, kernels: &BTreeMap<Vec<u8>, Attr>) {
    for (path, kernel) in kernels {
        let name = String::from_utf8_lossy(path);
        assert_eq!(ours.get(path), Some(kernel), "attributes of {name}: ours, the kernel's");
    }
    assert_eq!(ours.len(), kernels.len());
}

/// Says how two trees differ, briefly.
pub fn assert_same(found: &Tree, wanted: &Tree, who: &str) {
    let lossy = |p: &[u8]| String::from_utf8_lossy(p).into_owned();
    for (path, want) in wanted {
        let Some(got) = found.get(path) else { panic!("{who}: {} is missing", lossy(path)) };
        if got == want {
            continue;
        }
        let differ = got.bytes.iter().zip(&want.bytes).position(|(a, b)| a != b);
        panic!(
            "{who}: {} differs: {:?} instead of {:?}; first different byte {differ:?}",
            lossy(path),
            (got.kind, got.mode, got.links, got.size, lossy(&got.same_as)),
            (want.kind, want.mode, want.links, want.size, lossy(&want.same_as)),
        );
    }
    for path in found.keys() {
        assert!(wanted.contains_key(path), "{who}: {} should not be there", lossy(path));
    }
}
