//! A recovered tree of files, in memory: compared, judged, written out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use steadfast_devices::store::Digest;
use steadfast_vfs::path::list;
use steadfast_vfs::{Attr, FileSystem, FileType, FsError, Ino, OpenFlags, Result, SeekTo};

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;
/// Entries beyond which a tree is not read: more than any image of a program's run holds.
const ENTRIES_MAX: usize = 1 << 20;

/// Size and digest of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Contents {
    /// In bytes.
    pub size: u64,
    /// Of the bytes; holes are zeros.
    pub digest: u128,
}

/// A file of a tree.
#[derive(Debug, Clone)]
pub struct Node {
    /// What `stat` says of it.
    pub attr: Attr,
    /// A symbolic link's target.
    pub target: Vec<u8>,
    /// What a regular file holds: pieces in order; the rest are zeros.
    pub pieces: Vec<(u64, Bytes)>,
    /// The same in short.
    pub contents: Contents,
    /// Another name of the same file, which comes earlier in the tree.
    pub same_as: Option<Vec<u8>>,
}

/// A tree of files by their paths, which do not begin with '/'. The root itself is not in it.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    nodes: BTreeMap<Vec<u8>, Node>,
}

impl Tree {
    /// Reads the whole tree of `fs`.
    ///
    /// # Errors
    /// What cannot be read, with its path; a directory that is in the tree twice; more data than
    /// four times the size of the file system.
    pub fn read(fs: &dyn FileSystem) -> std::result::Result<Tree, String> {
        let space = fs.statfs().map_err(|e| format!("statfs: {e}"))?;
        let mut reader = Reader {
            fs,
            left: space.blocks.saturating_mul(space.block_size.into()).saturating_mul(4),
            tree: Tree::default(),
            directories: BTreeSet::new(),
            names: HashMap::new(),
        };
        let mut todo = vec![(Vec::new(), fs.root())];
        while let Some((path, ino)) = todo.pop() {
            let shown = || format!("/{}", String::from_utf8_lossy(&path));
            reader.directory(&path, ino, &mut todo).map_err(|e| format!("{}: {e}", shown()))?;
        }
        reader.tree.join_names();
        Ok(reader.tree)
    }

    /// The files in the order of their paths.
    pub fn nodes(&self) -> impl Iterator<Item = (&[u8], &Node)> {
        self.nodes.iter().map(|(path, node)| (&path[..], node))
    }

    /// The file of this path.
    pub fn get(&self, path: &[u8]) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// How many files, directories and others there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A number that is the same for trees that look the same to a program: names, types,
    /// permissions, owners, contents, links. Times are left out.
    pub fn digest(&self) -> u128 {
        let mut digest = Digest::new();
        for (path, node) in &self.nodes {
            digest.bytes(path);
            let a = &node.attr;
            [a.kind as u64, a.mode.into(), a.uid.into(), a.gid.into(), a.rdev]
                .into_iter()
                .for_each(|word| digest.word(word));
            digest.bytes(&node.target);
            digest.word(node.contents.size);
            digest.word(node.contents.digest as u64);
            digest.word((node.contents.digest >> 64) as u64);
            digest.bytes(node.same_as.as_deref().unwrap_or_default());
        }
        digest.end()
    }

    /// Names of one file are known as such.
    fn join_names(&mut self) {
        let mut first: HashMap<Ino, Vec<u8>> = HashMap::new();
        for (path, node) in &mut self.nodes {
            if node.attr.kind == FileType::Directory || node.attr.nlink < 2 {
                continue;
            }
            match first.get(&node.attr.ino) {
                Some(name) => node.same_as = Some(name.clone()),
                None => drop(first.insert(node.attr.ino, path.clone())),
            }
        }
    }

    /// The same without set-user-ID and set-group-ID bits; as files of this user and group, if they
    /// are given.
    pub fn without_privileges(&self, owner: Option<(u32, u32)>) -> Tree {
        let mut tree = self.clone();
        for node in tree.nodes.values_mut() {
            node.attr.mode &= !0o6000;
            (node.attr.uid, node.attr.gid) = owner.unwrap_or((node.attr.uid, node.attr.gid));
        }
        tree
    }

    /// Whether a path stays in the folder that the tree is written to: each name is one, and all
    /// but the last are directories. A damaged directory may have a name twice, as a directory and
    /// as a symbolic link.
    fn stays_inside(&self, path: &[u8]) -> bool {
        let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let is_directory = |end: usize| {
            self.get(&path[..end]).is_some_and(|node| node.attr.kind == FileType::Directory)
        };
        path.split(|byte| *byte == b'/').all(is_name) && ends.into_iter().all(is_directory)
    }

    /// Writes the tree into `folder`, which exists and is empty: hard and symbolic links,
    /// permissions, holes; owners where that is allowed. Device nodes and sockets are left out.
    ///
    /// # Errors
    /// What the host reports, with the path; a path that leads out of the folder.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        let mut directories = Vec::new();
        for (path, node) in &self.nodes {
            if !self.stays_inside(path) {
                let what = format!("{}: what it is in is no directory", shown(path));
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            let to = folder.join(OsStr::from_bytes(path));
            self.write_node(node, &to, folder)
                .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", to.display())))?;
            if node.attr.kind == FileType::Directory {
                directories.push((to, node.attr.mode));
            }
        }
        // At last, from the bottom up: they may be read-only.
        for (path, mode) in directories.into_iter().rev() {
            std::fs::set_permissions(&path, Permissions::from_mode(mode.into()))?;
        }
        Ok(())
    }

    fn write_node(&self, node: &Node, to: &Path, folder: &Path) -> io::Result<()> {
        if let Some(name) = &node.same_as {
            return std::fs::hard_link(folder.join(OsStr::from_bytes(name)), to);
        }
        match node.attr.kind {
            FileType::Directory => std::fs::create_dir(to)?,
            FileType::Symlink => symlink(OsStr::from_bytes(&node.target), to)?,
            FileType::Regular => {
                let file = File::create_new(to)?;
                for (offset, bytes) in &node.pieces {
                    file.write_all_at(bytes, *offset)?;
                }
                file.set_len(node.attr.size)?;
            }
            FileType::Fifo => {
                let mode = rustix::fs::Mode::from_raw_mode(node.attr.mode.into());
                rustix::fs::mknodat(rustix::fs::CWD, to, rustix::fs::FileType::Fifo, mode, 0)?;
            }
            FileType::CharDevice | FileType::BlockDevice | FileType::Socket => return Ok(()),
        }
        // Only root may give files away; whoever may not has its own files.
        let _ = std::os::unix::fs::lchown(to, Some(node.attr.uid), Some(node.attr.gid));
        if matches!(node.attr.kind, FileType::Regular) {
            std::fs::set_permissions(to, Permissions::from_mode(node.attr.mode.into()))?;
        }
        Ok(())
    }
}

impl Node {
    /// The bytes `[offset, offset + len)`, as far as the file reaches.
    pub fn bytes(&self, offset: u64, len: u64) -> Vec<u8> {
        let end = offset.saturating_add(len).min(self.attr.size).max(offset);
        let mut out = vec![0; (end - offset) as usize];
        for (at, piece) in &self.pieces {
            let from = (*at).max(offset);
            let to = (at + piece.len() as u64).min(end);
            if from < to {
                out[(from - offset) as usize..(to - offset) as usize]
                    .copy_from_slice(&piece[(from - at) as usize..(to - at) as usize]);
            }
        }
        out
    }
}

/// The first byte in which two files differ, their ends included; `None` if they hold the same.
pub fn first_difference(one: &Node, other: &Node) -> Option<u64> {
    let (short, long) = (one.attr.size.min(other.attr.size), one.attr.size.max(other.attr.size));
    for at in (0..short).step_by(CHUNK) {
        let len = (CHUNK as u64).min(short - at);
        let (a, b) = (one.bytes(at, len), other.bytes(at, len));
        if let Some(place) = a.iter().zip(&b).position(|(a, b)| a != b) {
            return Some(at + place as u64);
        }
    }
    (short < long).then_some(short)
}

struct Reader<'f> {
    fs: &'f dyn FileSystem,
    /// Bytes that may still be read.
    left: u64,
    tree: Tree,
    directories: BTreeSet<Ino>,
    /// What was read of files with several names.
    names: HashMap<Ino, (Vec<(u64, Bytes)>, Contents)>,
}

impl Reader<'_> {
    fn directory(&mut self, path: &[u8], ino: Ino, todo: &mut Vec<(Vec<u8>, Ino)>) -> Result<()> {
        if !self.directories.insert(ino) {
            return Err(FsError::Corrupt {
                what: "this directory is in the tree twice".into(),
                place: format!("inode {}", ino.0),
            });
        }
        for entry in list(self.fs, ino)? {
            let mut below = path.to_vec();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(&entry.name);
            let attr = self.fs.lookup(ino, &entry.name)?;
            if attr.kind == FileType::Directory {
                // What mkfs makes is no work of the program's.
                if path.is_empty() && entry.name == b"lost+found" {
                    continue;
                }
                todo.push((below.clone(), attr.ino));
            }
            let node = self.node(attr)?;
            self.tree.nodes.insert(below, node);
            if self.tree.len() > ENTRIES_MAX {
                return Err(FsError::TooBig { what: "a tree of more than a million files" });
            }
        }
        Ok(())
    }

    fn node(&mut self, attr: Attr) -> Result<Node> {
        let target = match attr.kind {
            FileType::Symlink => self.fs.readlink(attr.ino)?,
            _ => Vec::new(),
        };
        let known = self.names.get(&attr.ino).cloned();
        let (pieces, contents) = match (attr.kind, known) {
            (FileType::Regular, Some(known)) => known,
            (FileType::Regular, None) => {
                let pieces = self.pieces(&attr)?;
                let contents = digest(attr.size, &pieces);
                if attr.nlink > 1 {
                    self.names.insert(attr.ino, (pieces.clone(), contents));
                }
                (pieces, contents)
            }
            _ => (Vec::new(), Contents { size: 0, digest: 0 }),
        };
        Ok(Node { attr, target, pieces, contents, same_as: None })
    }

    fn pieces(&mut self, attr: &Attr) -> Result<Vec<(u64, Bytes)>> {
        let fh = self.fs.open(attr.ino, OpenFlags::READ)?;
        let read = read_pieces(self.fs, fh, attr.size, &mut self.left);
        self.fs.release(fh)?;
        read
    }
}

/// The parts of an open file that are not zeros; `left` bounds what is read.
fn read_pieces(
    fs: &dyn FileSystem,
    fh: steadfast_vfs::Fh,
    size: u64,
    left: &mut u64,
) -> Result<Vec<(u64, Bytes)>> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < size {
        at = match fs.seek(fh, at, SeekTo::Data) {
            Ok(data) => data.max(at),
            Err(FsError::NoAddress) => break,
            // It cannot tell.
            Err(_) => at,
        };
        let bytes = fs.read(fh, at, CHUNK.min(usize::try_from(size - at).unwrap_or(CHUNK)))?;
        if bytes.is_empty() {
            break;
        }
        let len = bytes.len() as u64;
        *left = left.checked_sub(len).ok_or(FsError::TooBig {
            what: "files with four times more data than the file system holds",
        })?;
        if bytes.iter().any(|byte| *byte != 0) {
            pieces.push((at, bytes));
        }
        at += len;
    }
    Ok(pieces)
}

/// What a file holds now, read through the file system, if it is not larger than `most` bytes.
///
/// # Errors
/// Of the file system.
pub fn contents_of(fs: &dyn FileSystem, ino: Ino, most: u64) -> Result<Option<Contents>> {
    let fh = fs.open(ino, OpenFlags::READ)?;
    let read = (|| {
        let size = fs.getattr(ino)?.size;
        if size > most {
            return Ok(None);
        }
        let pieces = read_pieces(fs, fh, size, &mut most.saturating_add(CHUNK as u64))?;
        Ok(Some(digest(size, &pieces)))
    })();
    fs.release(fh)?;
    read
}

/// Zeros are left out, in units that do not depend on how the bytes came.
fn digest(size: u64, pieces: &[(u64, Bytes)]) -> Contents {
    const UNIT: u64 = 512;
    let mut digest = Digest::new();
    let mut unit = [0; UNIT as usize];
    let (mut number, mut any) = (u64::MAX, false);
    for (offset, bytes) in pieces {
        let (mut at, mut rest) = (*offset, &bytes[..]);
        while !rest.is_empty() {
            if at / UNIT != number {
                if any {
                    digest.word(number);
                    digest.bytes(&unit);
                }
                (number, any, unit) = (at / UNIT, false, [0; UNIT as usize]);
            }
            let within = (at % UNIT) as usize;
            let (now, later) = rest.split_at((UNIT as usize - within).min(rest.len()));
            unit[within..within + now.len()].copy_from_slice(now);
            any |= now.iter().any(|byte| *byte != 0);
            (at, rest) = (at + now.len() as u64, later);
        }
    }
    if any {
        digest.word(number);
        digest.bytes(&unit);
    }
    Contents { size, digest: digest.end() }
}

/// A path as people see it.
pub fn shown(path: &[u8]) -> String {
    PathBuf::from(OsStr::from_bytes(path)).display().to_string()
}

#[cfg(test)]
mod tests {
    use steadfast_vfs::HostFs;

    use super::*;

    #[test]
    fn a_tree_is_written_as_it_was_read() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| from.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/file"), "text").unwrap();
        std::fs::hard_link(at("a/file"), at("a/b/link")).unwrap();
        symlink("../a", at("a/sym")).unwrap();
        std::fs::set_permissions(at("a/b"), Permissions::from_mode(0o500)).unwrap();
        let sparse = File::create(at("sparse")).unwrap();
        sparse.set_len(10 << 20).unwrap();
        sparse.write_all_at(b"here", 5 << 20).unwrap();
        let read = |folder: &Path| Tree::read(&HostFs::open(folder).unwrap()).unwrap();
        let tree = read(from.path());
        tree.write_to(to.path()).unwrap();
        let again = read(to.path());
        assert_eq!(again.digest(), tree.digest());
        assert_eq!(again.len(), 6);
        let file = again.get(b"sparse").unwrap();
        assert_eq!(file.bytes((5 << 20) - 1, 6), b"\0here\0");
        assert!(file.pieces.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= CHUNK);
        assert_eq!(again.get(b"a/file").unwrap().same_as.as_deref(), Some(&b"a/b/link"[..]));
        std::fs::write(to.path().join("a/file"), "teXT").unwrap();
        let changed = read(to.path());
        assert_ne!(changed.digest(), tree.digest());
        let differs =
            |path: &[u8]| first_difference(changed.get(path).unwrap(), tree.get(path).unwrap());
        assert_eq!((differs(b"a/file"), differs(b"sparse")), (Some(2), None));
        std::fs::set_permissions(at("a/b"), Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn nothing_is_written_outside_of_the_folder() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let outside = tempfile::tempdir().unwrap();
        std::fs::create_dir(from.path().join("a")).unwrap();
        std::fs::write(from.path().join("a/x"), "text").unwrap();
        symlink(outside.path(), from.path().join("b")).unwrap();
        let mut tree = Tree::read(&HostFs::open(from.path()).unwrap()).unwrap();
        // As a directory with one name twice.
        let link = tree.nodes[&b"b"[..]].clone();
        tree.nodes.insert(b"a".to_vec(), link);
        tree.nodes.remove(&b"b"[..]);
        let refused = tree.write_to(to.path()).unwrap_err();
        assert!(refused.to_string().contains("a/x"), "{refused}");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        let file = tree.nodes[&b"a/x"[..]].clone();
        for path in ["../x", "x/../../y", "/etc/x"] {
            let nodes = [(path.as_bytes().to_vec(), file.clone())].into();
            assert!(Tree { nodes }.write_to(to.path()).is_err(), "{path}");
        }
    }

    #[test]
    fn privileges_are_left_behind() {
        let from = tempfile::tempdir().unwrap();
        let file = from.path().join("file");
        std::fs::write(&file, "text").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o6755)).unwrap();
        let tree = Tree::read(&HostFs::open(from.path()).unwrap()).unwrap();
        let attr = |tree: &Tree| tree.get(b"file").unwrap().attr;
        let (own, mine) = (attr(&tree), attr(&tree.without_privileges(Some((7, 8)))));
        assert_eq!((mine.mode & 0o7777, mine.uid, mine.gid), (0o755, 7, 8));
        let kept = attr(&tree.without_privileges(None));
        assert_eq!((kept.mode & 0o7777, kept.uid, kept.gid), (0o755, own.uid, own.gid));
    }

    #[test]
    fn digests_do_not_depend_on_the_pieces() {
        let whole = vec![(0, Bytes::from(vec![7; 3000]))];
        let parts = vec![
            (0, Bytes::from(vec![7; 700])),
            (700, Bytes::from(vec![7; 2300])),
            (4096, Bytes::from(vec![0; 512])),
        ];
        assert_eq!(digest(5000, &whole), digest(5000, &parts));
        assert_ne!(digest(5000, &whole), digest(5001, &parts));
    }
}
