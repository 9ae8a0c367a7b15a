//! Reading a tree through the file system that shows it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

use bytes::Bytes;
use steadfast_devices::store::Store;
use steadfast_vfs::path::list;
use steadfast_vfs::{Attr, Fh, FileSystem, FileType, FsError, Ino, OpenFlags, Result, SeekTo};

use super::{CHUNK, Contents, KnownTree, LOST_AND_FOUND, Node, Tree, Unreadable, digest};

/// Entries beyond which a tree is not read: more than any image of a program's run holds.
const ENTRIES_MAX: usize = 1 << 20;

/// What is read beside names, attributes and what is written in files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Where a file says that it has a hole, it is believed: programs make large ones.
    Data,
    /// Holes too, which must be zeros, and extended attributes of users.
    All,
}

impl Tree {
    /// Reads the whole tree of `fs`, but for what files say is a hole.
    ///
    /// # Errors
    /// The first thing that cannot be read; a directory or a name that is in the tree twice; more
    /// data than four times the size of the file system.
    pub fn read(fs: &dyn FileSystem) -> std::result::Result<Tree, Unreadable> {
        Tree::read_again(fs, None)
    }

    /// The same, where the tree of before is known, and what the disk holds now.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub(crate) fn read_again(
        fs: &dyn FileSystem,
        known: Option<(&KnownTree, &Store)>,
    ) -> std::result::Result<Tree, Unreadable> {
        all_of(Reader::read((fs, known), fs.root(), Depth::Data, 1))
    }

    /// Reads every byte and attribute below `dir`, with what could not be read.
    pub(crate) fn look(fs: &dyn FileSystem, dir: Ino) -> (Tree, Vec<Unreadable>) {
        Reader::read((fs, None), dir, Depth::All, usize::MAX)
    }

    /// The same, where all of it must be readable.
    ///
    /// # Errors
    /// The first thing that cannot be read.
    pub fn look_whole(fs: &dyn FileSystem, dir: Ino) -> std::result::Result<Tree, Unreadable> {
        all_of(Reader::read((fs, None), dir, Depth::All, 1))
    }
}

impl Node {
    /// Reads every byte of the file that `attr` is of.
    pub(crate) fn look(fs: &dyn FileSystem, attr: Attr) -> Result<Node> {
        Reader::new((fs, None), Depth::All, 1)?.node(attr)
    }
}

fn all_of((tree, unreadable): (Tree, Vec<Unreadable>)) -> std::result::Result<Tree, Unreadable> {
    unreadable.into_iter().next().map_or(Ok(tree), Err)
}

/// A file system, and perhaps what was read of it before, with what its disk holds now.
type ReadFrom<'f> = (&'f dyn FileSystem, Option<(&'f KnownTree, &'f Store)>);

struct Reader<'f> {
    fs: &'f dyn FileSystem,
    /// The tree of before, and what the disk holds now.
    before: Option<(&'f KnownTree, &'f Store)>,
    depth: Depth,
    /// Goes on until so much could not be read.
    most: usize,
    /// Bytes that may still be read.
    left: u64,
    tree: Tree,
    unreadable: Vec<Unreadable>,
    directories: HashSet<Ino>,
    todo: Vec<(Vec<u8>, Ino)>,
    /// What was read of files with several names.
    known: HashMap<Ino, Vec<(u64, Bytes)>>,
}

impl<'f> Reader<'f> {
    fn new((fs, before): ReadFrom<'f>, depth: Depth, most: usize) -> Result<Reader<'f>> {
        let space = fs.statfs()?;
        Ok(Reader {
            fs,
            before,
            depth,
            most,
            left: space.blocks.saturating_mul(space.block_size.into()).saturating_mul(4),
            tree: Tree::default(),
            unreadable: Vec::new(),
            directories: HashSet::new(),
            todo: Vec::new(),
            known: HashMap::new(),
        })
    }

    fn read(from: ReadFrom<'f>, dir: Ino, depth: Depth, most: usize) -> (Tree, Vec<Unreadable>) {
        let mut reader = match Reader::new(from, depth, most) {
            Ok(reader) => reader,
            Err(why) => return (Tree::default(), vec![Unreadable { path: Vec::new(), why }]),
        };
        reader.todo.push((Vec::new(), dir));
        while let Some((path, dir)) = reader.todo.pop() {
            if let Err(why) = reader.directory(&path, dir) {
                reader.unreadable.push(Unreadable { path, why });
            }
            if reader.unreadable.len() >= most {
                break;
            }
        }
        reader.tree.join_names();
        (reader.tree, reader.unreadable)
    }

    fn directory(&mut self, path: &[u8], dir: Ino) -> Result<()> {
        let corrupt = |what: &str| {
            let place = format!("inode {}", dir.0);
            Err(FsError::Corrupt { what: what.into(), place })
        };
        if !self.directories.insert(dir) {
            return corrupt("this directory is in the tree twice");
        }
        for entry in list(self.fs, dir)? {
            let mut below = path.to_vec();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(&entry.name);
            let read = self.fs.lookup(dir, &entry.name).and_then(|attr| {
                let skipped = attr.kind == FileType::Directory && below == LOST_AND_FOUND;
                if skipped { Ok(None) } else { self.node(attr).map(Some) }
            });
            let node = match read {
                Ok(None) => continue,
                Ok(Some(node)) => node,
                Err(why) => {
                    self.unreadable.push(Unreadable { path: below, why });
                    if self.unreadable.len() >= self.most {
                        return Ok(());
                    }
                    continue;
                }
            };
            if node.attr.kind == FileType::Directory {
                self.todo.push((below.clone(), node.attr.ino));
            }
            if self.tree.nodes.insert(below, node).is_some() {
                return corrupt("a name is there twice");
            }
            if self.tree.nodes.len() > ENTRIES_MAX {
                return Err(FsError::TooBig { what: "a tree of more than a million files" });
            }
        }
        Ok(())
    }

    fn node(&mut self, attr: Attr) -> Result<Node> {
        if let Some((known, disk)) = self.before
            && let Some(same) = known.same(self.fs, disk, &attr)
        {
            return Ok(Node { attr, same_as: None, ..same.clone() });
        }
        let (mut target, mut pieces) = (Vec::new(), Vec::new());
        match (attr.kind, self.known.get(&attr.ino)) {
            (FileType::Symlink, _) => target = self.fs.readlink(attr.ino)?,
            (FileType::Regular, Some(known)) => pieces.clone_from(known),
            (FileType::Regular, None) => {
                pieces = self.pieces(&attr)?;
                if attr.nlink > 1 {
                    self.known.insert(attr.ino, pieces.clone());
                }
            }
            _ => {}
        }
        let has_xattrs = matches!(attr.kind, FileType::Regular | FileType::Directory);
        let xattrs = match self.depth == Depth::All && has_xattrs {
            true => xattrs(self.fs, attr.ino)?,
            false => BTreeMap::new(),
        };
        Ok(Node { attr, target, pieces, xattrs, same_as: None, contents: OnceLock::new() })
    }

    fn pieces(&mut self, attr: &Attr) -> Result<Vec<(u64, Bytes)>> {
        let fh = self.fs.open(attr.ino, OpenFlags::READ)?;
        let read = read_pieces(self.fs, fh, attr.size, self.depth, &mut self.left);
        self.fs.release(fh)?;
        match read? {
            (pieces, end) if end == attr.size => Ok(pieces),
            (_, end) => {
                let size = attr.size;
                Err(FsError::Io { what: format!("{end} of {size} bytes could be read") })
            }
        }
    }
}

fn xattrs(fs: &dyn FileSystem, ino: Ino) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let names = match fs.listxattr(ino) {
        Err(FsError::Unsupported { .. }) => Vec::new(),
        names => names?,
    };
    let ours = names.into_iter().filter(|name| name.starts_with(b"user."));
    ours.map(|name| fs.getxattr(ino, &name).map(|value| (name, value))).collect()
}

/// The parts of an open file that are not zeros, and where the file ends; `left` bounds what is
/// read.
fn read_pieces(
    fs: &dyn FileSystem,
    fh: Fh,
    size: u64,
    depth: Depth,
    left: &mut u64,
) -> Result<(Vec<(u64, Bytes)>, u64)> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < size {
        if depth == Depth::Data {
            at = match fs.seek(fh, at, SeekTo::Data) {
                Ok(data) => data.max(at),
                Err(FsError::NoAddress) => return Ok((pieces, size)),
                // It has no such query.
                Err(_) => at,
            };
        }
        let bytes = fs.read(fh, at, CHUNK)?;
        if bytes.is_empty() {
            break;
        }
        let len = bytes.len() as u64;
        *left = left.checked_sub(len).ok_or(FsError::TooBig {
            what: "files with four times more data than the file system holds",
        })?;
        // Data beyond the end is shown in the place where reading ended.
        let kept = bytes.slice(..len.min(size - at) as usize);
        if kept.iter().any(|byte| *byte != 0) {
            pieces.push((at, kept));
        }
        at += len;
    }
    Ok((pieces, at))
}

/// What a file holds now, read through the file system, if it is not larger than `most` bytes.
///
/// # Errors
/// Of the file system.
pub(crate) fn contents_of(fs: &dyn FileSystem, ino: Ino, most: u64) -> Result<Option<Contents>> {
    let fh = fs.open(ino, OpenFlags::READ)?;
    let read = (|| {
        let size = fs.getattr(ino)?.size;
        if size > most {
            return Ok(None);
        }
        let mut left = most.saturating_add(CHUNK as u64);
        let (pieces, _) = read_pieces(fs, fh, size, Depth::Data, &mut left)?;
        Ok(Some(digest(size, &pieces)))
    })();
    fs.release(fh)?;
    read
}
