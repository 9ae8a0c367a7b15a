//! The files that are there once some steps have been taken.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use steadfast_vfs::{Attr, FileType, Ino, Timestamp};

use super::steps::{Effect, PAGE, Place};
use crate::program::{file_id, number_of};
use crate::tree::{Contents, Node, Pieces, Tree};

/// The root; no file has this number.
pub(super) const ROOT: u64 = u64::MAX;

#[derive(Debug, Clone)]
struct File {
    attr: Attr,
    target: Vec<u8>,
    pieces: Pieces,
    /// Of a directory.
    names: BTreeMap<Vec<u8>, u64>,
    /// The pieces in short, once a tree has had them.
    contents: OnceLock<Contents>,
}

/// Files by number and generation. What is not changed is shared between copies.
#[derive(Debug, Clone)]
pub struct World {
    files: HashMap<u64, Arc<File>>,
}

impl World {
    /// Of the tree before a run.
    pub fn of(base: &Tree) -> World {
        let root = attr(FileType::Directory, 0o755);
        let empty = |attr| File {
            attr,
            target: Vec::new(),
            pieces: Pieces::default(),
            names: BTreeMap::new(),
            contents: OnceLock::new(),
        };
        let mut files = HashMap::from([(ROOT, empty(root))]);
        for (_, node) in base.nodes() {
            let file = File {
                target: node.target.clone(),
                pieces: Pieces::of(&node.pieces),
                ..empty(node.attr)
            };
            // Of several names the first has the contents.
            files.entry(file_id(&node.attr)).or_insert(file);
        }
        for (path, node) in base.nodes() {
            let (above, name) = split(path);
            let above = if above.is_empty() { Some(ROOT) } else { base.get(above).map(id) };
            if let Some(above) = above.and_then(|above| files.get_mut(&above)) {
                above.names.insert(name.to_vec(), file_id(&node.attr));
            }
        }
        World { files: files.into_iter().map(|(id, file)| (id, Arc::new(file))).collect() }
    }

    /// The directory of a path and the name in it.
    pub fn place(&self, path: &[u8]) -> Option<Place> {
        let (above, name) = split(path);
        let mut dir = ROOT;
        for part in above.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            dir = *self.files.get(&dir)?.names.get(part)?;
        }
        let is_directory = self.files.get(&dir)?.attr.kind == FileType::Directory;
        (is_directory && !name.is_empty()).then(|| Place { dir, name: name.to_vec() })
    }

    /// What has a name.
    pub fn at(&self, place: &Place) -> Option<u64> {
        self.files.get(&place.dir)?.names.get(&place.name).copied()
    }

    /// A file's size; `None`: there is no such file.
    pub fn size(&self, file: u64) -> Option<u64> {
        Some(self.files.get(&file)?.attr.size)
    }

    /// A file that is about to change.
    fn file(&mut self, file: u64) -> Option<&mut File> {
        let file = self.files.get_mut(&file).map(Arc::make_mut)?;
        file.contents = OnceLock::new();
        Some(file)
    }

    fn bind(&mut self, place: &Place, file: u64) {
        if let Some(dir) = self.file(place.dir) {
            dir.names.insert(place.name.clone(), file);
        }
    }

    fn unbind(&mut self, place: &Place) {
        if let Some(dir) = self.file(place.dir) {
            dir.names.remove(&place.name);
        }
    }

    /// Takes a step. What it is about may not be there: then nothing comes of it.
    pub fn take(&mut self, effect: &Effect) {
        match effect {
            Effect::Make { file, attr, target } => {
                let (pieces, names) = (Pieces::default(), BTreeMap::new());
                let (target, contents) = (target.clone(), OnceLock::new());
                let made = File { attr: *attr, target, pieces, names, contents };
                self.files.insert(*file, Arc::new(made));
            }
            Effect::Bind { at, file } => self.bind(at, *file),
            Effect::Unbind { at, .. } => self.unbind(at),
            Effect::Move { from, to, file, .. } => {
                self.unbind(from);
                self.bind(to, *file);
            }
            Effect::Swap { one, other, files } => {
                self.bind(one, files.1);
                self.bind(other, files.0);
            }
            Effect::Data { file, at, bytes } => {
                if let Some(file) = self.file(*file) {
                    file.pieces.write(*at, bytes.clone());
                }
            }
            Effect::Zeros { file, from, to } => {
                if let Some(file) = self.file(*file) {
                    file.pieces.clear(*from, *to);
                }
            }
            Effect::Size { file, size, .. } => {
                if let Some(file) = self.file(*file) {
                    if *size < file.attr.size {
                        file.pieces.clear(*size, u64::MAX);
                    }
                    file.attr.size = *size;
                }
            }
            Effect::Collapse { file, at, len } => {
                if let Some(file) = self.file(*file) {
                    file.pieces.collapse(*at, *len);
                    file.attr.size = file.attr.size.saturating_sub(*len);
                }
            }
            Effect::Insert { file, at, len } => {
                if let Some(file) = self.file(*file) {
                    file.pieces.insert(*at, *len);
                    file.attr.size = file.attr.size.saturating_add(*len);
                }
            }
            Effect::Attributes { file, mode, uid, gid } => {
                if let Some(File { attr, .. }) = self.file(*file) {
                    attr.mode = mode.unwrap_or(attr.mode);
                    attr.uid = uid.unwrap_or(attr.uid);
                    attr.gid = gid.unwrap_or(attr.gid);
                }
            }
        }
    }

    /// What can be reached from the root.
    pub fn tree(&self) -> Tree {
        let (mut found, mut links) = (Vec::new(), HashMap::<u64, u32>::new());
        let mut directories = HashSet::from([ROOT]);
        let mut todo = vec![(Vec::new(), ROOT)];
        while let Some((path, dir)) = todo.pop() {
            let Some(above) = self.files.get(&dir) else { continue };
            for (name, id) in &above.names {
                // A name whose file never reached the disk: a check removes it.
                let Some(file) = self.files.get(id) else { continue };
                let mut below: Vec<u8> = path.clone();
                if !below.is_empty() {
                    below.push(b'/');
                }
                below.extend_from_slice(name);
                if file.attr.kind == FileType::Directory {
                    // One that was moved, with only one half of the move there.
                    if !directories.insert(*id) {
                        continue;
                    }
                    todo.push((below.clone(), *id));
                } else {
                    *links.entry(*id).or_default() += 1;
                }
                found.push((below, *id, file));
            }
        }
        let node = |(path, id, file): (Vec<u8>, u64, &Arc<File>)| {
            let mut attr = file.attr;
            attr.nlink = links.get(&id).copied().unwrap_or(2);
            (attr.ino, attr.generation) = (number_of(id), (id >> 32) as u32);
            let pieces = match attr.kind {
                FileType::Regular => file.pieces.within(attr.size),
                _ => Vec::new(),
            };
            let node = Node::new(attr, file.target.clone(), pieces, file.contents.clone());
            file.contents.get_or_init(|| node.contents());
            (path, node)
        };
        Tree::of(found.into_iter().map(node))
    }
}

/// Attributes of a new file of root's; judges do not see times.
pub(super) fn attr(kind: FileType, mode: u16) -> Attr {
    let never = Timestamp::default();
    Attr {
        ino: Ino(0),
        kind,
        mode,
        nlink: 1,
        uid: 0,
        gid: 0,
        size: 0,
        blocks_512: 0,
        block_size: PAGE as u32,
        rdev: 0,
        atime: never,
        mtime: never,
        ctime: never,
        crtime: never,
        generation: 0,
    }
}

fn id(node: &Node) -> u64 {
    file_id(&node.attr)
}

/// The path of the directory, and the name in it.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}
