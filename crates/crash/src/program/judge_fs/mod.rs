//! The file system that judges work in: for each a folder with the recovered files and what the
//! program had printed. All is in memory, and is not copied before it is changed.
//!
//! It sees what a judge reads ([`ReadSet`]). A judge that does the same each time says the same of
//! all trees in which it would read the same, whatever else they hold.
//!
//! What is mounted over it must not remember anything from one judge to the next: inode numbers are
//! not used again.

mod node;
mod operations;
mod reads;
#[cfg(test)]
mod tests;
pub(super) mod verdicts;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use steadfast_vfs::{
    Attr, Fh, FileType, FsError, Ino, NewNode, OpenFlags, Result, StatFs, Timestamp,
};

use self::node::{Body, Entries, FileNode};
use self::reads::Place;
pub use self::reads::{JudgeView, ReadSet};
use crate::tree::{Node, Pieces, Tree};

/// The folder of all judges.
const ROOT: u64 = 1;
/// The recovered files in a judge's folder.
pub const TREE: &str = "tree";
/// What the program had printed, in a judge's folder.
pub const PRINTED: &str = "printed";
/// Bytes that a judge may write, at the least: it would take the memory of this machine.
const SPACE_MIN: u64 = 1 << 30;
/// Nothing is counted before so many bytes more were written.
const COUNTED_EVERY: u64 = 64 << 20;
/// Files that a judge may make.
const FILES_MAX: usize = 1 << 20;
/// Longest name in bytes.
const NAME_MAX: usize = 255;
const BLOCK: u32 = 4096;

/// A folder for each judge.
pub struct JudgeFs {
    state: Mutex<FsState>,
}

struct FsState {
    nodes: HashMap<u64, FileNode>,
    open: HashMap<Fh, (u64, OpenFlags)>,
    judges: BTreeMap<u64, JudgeFolder>,
    next: u64,
    /// Ends the folders' names: other users may not look into a judge's folder, nor list them.
    secret: u64,
}

/// A judge's folder.
#[derive(Default)]
struct JudgeFolder {
    root: u64,
    nodes: Vec<u64>,
    reads: ReadSet,
    /// Bytes that it may have in its files.
    space: u64,
    /// Bytes that were written since they were counted.
    written: u64,
}

impl Default for JudgeFs {
    fn default() -> JudgeFs {
        let root = FileNode::new(0, new_attr(FileType::Directory, 0o711, owner()), Body::empty());
        let nodes = HashMap::from([(ROOT, root.numbered(ROOT))]);
        let (open, judges) = (HashMap::new(), BTreeMap::new());
        JudgeFs {
            state: Mutex::new(FsState { nodes, open, judges, next: ROOT + 1, secret: secret() }),
        }
    }
}

impl JudgeFs {
    /// What a judge's folder is called.
    pub fn name(&self, judge: u64) -> String {
        self.lock().name(judge)
    }

    /// Makes a folder for a judge, by its number.
    ///
    /// # Errors
    /// A path leads out of the tree.
    pub fn begin(&self, shown: JudgeView<'_>) -> io::Result<u64> {
        self.lock().begin(shown)
    }

    /// Takes the folder away; what was read in it.
    pub fn end(&self, judge: u64) -> ReadSet {
        self.lock().end(judge)
    }

    fn lock(&self) -> MutexGuard<'_, FsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn secret() -> u64 {
    let mut bytes = [0; 8];
    // OK to ignore: the kernel has random bytes since it was booted.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_le_bytes(bytes)
}

impl FsState {
    fn begin(&mut self, JudgeView { tree, printed }: JudgeView<'_>) -> io::Result<u64> {
        let owner = owner();
        // A judge may become another user, as a server must that does not run as root.
        let folder = new_attr(FileType::Directory, 0o711, owner);
        let judge = self.next;
        let space = tree.nodes().map(|(_, node)| node.attr.size).fold(0, u64::saturating_add);
        let space = space.saturating_mul(4).clamp(SPACE_MIN, 4 * SPACE_MIN);
        self.judges.insert(judge, JudgeFolder { root: judge, space, ..JudgeFolder::default() });
        self.add(FileNode::new(judge, folder, Body::empty()));
        let file = Attr { size: printed.len() as u64, ..new_attr(FileType::Regular, 0o644, owner) };
        let lines = Pieces::of(&[(0, Bytes::copy_from_slice(printed))]);
        let node = FileNode::new(judge, file, Body::File(lines)).left_at(Place::Printed);
        let number = self.add(node);
        self.bind(judge, PRINTED.as_bytes(), number);
        let root = new_attr(FileType::Directory, 0o755, owner);
        let node = FileNode::new(judge, root, Body::empty()).left_at(Place::At(Vec::new()));
        let top = self.add(node);
        self.bind(judge, TREE.as_bytes(), top);
        if let Some(top) = self.nodes.get_mut(&top) {
            top.attr.nlink += reads::folders(tree) as u32;
        }
        let filled = self.fill(tree, (judge, top));
        if filled.is_err() {
            self.end(judge);
        }
        filled.map(|()| judge)
    }

    /// The files of a tree; but for device nodes and sockets, as where it is written to a folder.
    fn fill(&mut self, tree: &Tree, (judge, top): (u64, u64)) -> io::Result<()> {
        let mut at: HashMap<&[u8], u64> = HashMap::from([(&b""[..], top)]);
        for (path, node) in tree.nodes() {
            tree.check_inside(path)?;
            let body = match node.attr.kind {
                FileType::CharDevice | FileType::BlockDevice | FileType::Socket => continue,
                FileType::Directory => Body::empty(),
                FileType::Regular => Body::File(Pieces::of(&node.pieces)),
                FileType::Symlink => Body::Link(node.target.clone()),
                FileType::Fifo => Body::Other,
            };
            let first = node.same_as.as_deref().and_then(|first| at.get(first).copied());
            let number = first.unwrap_or_else(|| {
                let made = FileNode::new(judge, shown_attr(node), body);
                self.add(made.left_at(Place::At(path.to_vec())))
            });
            let end = path.iter().rposition(|byte| *byte == b'/');
            let (above, name) = (&path[..end.unwrap_or(0)], &path[end.map_or(0, |end| end + 1)..]);
            // OK to index: what it is in is a directory, and comes before it.
            self.bind(at[above], name, number);
            at.insert(path, number);
        }
        Ok(())
    }

    fn end(&mut self, judge: u64) -> ReadSet {
        let Some(folder) = self.judges.remove(&judge) else { return ReadSet::default() };
        let mut reads = folder.reads;
        for number in folder.nodes {
            let Some(node) = self.nodes.remove(&number) else { continue };
            if let Some(place) = node.origin {
                reads.read(place, node.read.within(0, u64::MAX).collect());
            }
        }
        self.open.retain(|_, (ino, _)| self.nodes.contains_key(ino));
        reads
    }

    fn name(&self, judge: u64) -> String {
        format!("{judge}-{:016x}", self.secret)
    }

    /// A new number, which nothing has had.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn add(&mut self, node: FileNode) -> u64 {
        let number = self.number();
        if let Some(folder) = self.judges.get_mut(&node.judge) {
            folder.nodes.push(number);
        }
        self.nodes.insert(number, node.numbered(number));
        number
    }

    /// Gives what has a number a name. Links were counted elsewhere.
    fn bind(&mut self, dir: u64, name: &[u8], number: u64) {
        let position = self.number();
        let is_directory =
            self.nodes.get(&number).is_some_and(|node| node.attr.kind == FileType::Directory);
        if let Some(Body::Directory(entries)) = self.nodes.get_mut(&dir).map(|dir| &mut dir.body) {
            entries.insert(name.to_vec(), (number, position));
        }
        if let Some(node) = self.nodes.get_mut(&number).filter(|_| is_directory) {
            node.above = dir;
        }
    }

    fn node(&self, ino: Ino) -> Result<&FileNode> {
        self.nodes.get(&ino.0).ok_or(FsError::NotFound)
    }

    fn node_mut(&mut self, ino: Ino) -> Result<&mut FileNode> {
        self.nodes.get_mut(&ino.0).ok_or(FsError::NotFound)
    }

    fn entries(&self, dir: Ino) -> Result<&Entries> {
        match &self.node(dir)?.body {
            Body::Directory(entries) => Ok(entries),
            _ => Err(FsError::NotDirectory),
        }
    }

    /// A directory in which a judge may change names.
    fn changed_entries(&mut self, dir: Ino) -> Result<&mut Entries> {
        let node = self.node_mut(dir)?;
        if node.judge == 0 {
            return Err(FsError::NotPermitted { what: "this folder is not the judge's" });
        }
        node.changed();
        match &mut node.body {
            Body::Directory(entries) => Ok(entries),
            _ => Err(FsError::NotDirectory),
        }
    }

    /// Notes that a name was looked up, in a directory that the program has left.
    fn note_name(&mut self, dir: Ino, name: &[u8]) {
        let Some(node) = self.nodes.get(&dir.0) else { return };
        let Some(Place::At(path)) = &node.origin else { return };
        let mut path = path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        if let Some(folder) = self.judges.get_mut(&node.judge) {
            folder.reads.look_up(Place::At(path));
        }
    }

    /// Notes something of a node that the program has left.
    fn note(&mut self, ino: Ino, note: impl FnOnce(&mut ReadSet, Place)) {
        let Some(node) = self.nodes.get(&ino.0) else { return };
        let (Some(place), Some(folder)) = (&node.origin, self.judges.get_mut(&node.judge)) else {
            return;
        };
        note(&mut folder.reads, place.clone());
    }

    /// A new node of a judge in a directory of its own.
    fn make(
        &mut self,
        (dir, name): (Ino, &[u8]),
        (kind, rdev): (FileType, u64),
        node: NewNode,
        body: Body,
    ) -> Result<Attr> {
        let name = checked(name)?;
        if self.entries(dir)?.contains_key(name) {
            return Err(FsError::Exists);
        }
        self.changed_entries(dir)?;
        let above = self.node(dir)?;
        let judge = above.judge;
        let (mut mode, mut gid) = (node.mode & !node.umask, node.gid);
        // A directory may give its group to what is made in it (inode(7)).
        if above.attr.mode & 0o2000 != 0 {
            gid = above.attr.gid;
            mode |= if kind == FileType::Directory { 0o2000 } else { 0 };
        }
        let folder = self.judges.get(&judge).ok_or(FsError::NotFound)?;
        if folder.nodes.len() >= FILES_MAX {
            return Err(FsError::NoSpace { what: "inodes" });
        }
        let size = if let Body::Link(target) = &body { target.len() as u64 } else { 0 };
        let attr = Attr { rdev, size, ..new_attr(kind, mode, (node.uid, gid)) };
        let number = self.add(FileNode::new(judge, attr, body));
        self.bind(dir.0, name, number);
        if kind == FileType::Directory {
            self.node_mut(dir)?.attr.nlink += 1;
        }
        Ok(self.node(Ino(number))?.shown())
    }

    /// Whether a judge may write so many bytes more.
    fn take_space(&mut self, judge: u64, bytes: u64) -> Result<()> {
        let Some(folder) = self.judges.get_mut(&judge) else { return Err(FsError::NotFound) };
        folder.written = folder.written.saturating_add(bytes);
        if folder.written <= COUNTED_EVERY {
            return Ok(());
        }
        let nodes = folder.nodes.iter().filter_map(|number| self.nodes.get(number));
        let held: u64 = nodes.map(FileNode::len).sum();
        if held.saturating_add(bytes) > folder.space {
            return Err(FsError::NoSpace { what: "blocks" });
        }
        folder.written = 0;
        Ok(())
    }

    /// A name of it has gone.
    fn unnamed(&mut self, number: u64) {
        let Some(node) = self.nodes.get_mut(&number) else { return };
        let names = if node.body.is_directory() { 2 } else { 1 };
        node.attr.nlink = node.attr.nlink.saturating_sub(names);
        node.attr.ctime = now();
        if node.attr.nlink == 0 && node.opened == 0 {
            node.body.clear();
        }
    }

    fn statfs(&self) -> StatFs {
        let blocks = SPACE_MIN / u64::from(BLOCK);
        let inodes = FILES_MAX as u64;
        StatFs {
            block_size: BLOCK,
            blocks,
            blocks_free: blocks,
            blocks_available: blocks,
            inodes,
            inodes_free: inodes,
            name_max: NAME_MAX as u32,
        }
    }
}

/// A name that a file may have.
fn checked(name: &[u8]) -> Result<&[u8]> {
    match name {
        b"" | b"." | b".." => Err(FsError::Invalid { what: "no name" }),
        _ if name.contains(&b'/') => Err(FsError::Invalid { what: "a name with '/'" }),
        _ if name.len() > NAME_MAX => Err(FsError::NameTooLong),
        _ => Ok(name),
    }
}

/// As whom this process makes files.
fn owner() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// What a judge sees of a node: only root may give files away, so for others all are their own.
fn shown_attr(node: &Node) -> Attr {
    let (uid, gid) = match rustix::process::geteuid().is_root() {
        true => (node.attr.uid, node.attr.gid),
        false => owner(),
    };
    let Attr { kind, mode, nlink, size, rdev, .. } = node.attr;
    Attr { nlink, size, rdev, ..new_attr(kind, mode, (uid, gid)) }
}

fn new_attr(kind: FileType, mode: u16, (uid, gid): (u32, u32)) -> Attr {
    let now = now();
    Attr {
        ino: Ino(0),
        kind,
        mode: mode & 0o7777,
        nlink: if kind == FileType::Directory { 2 } else { 1 },
        uid,
        gid,
        size: 0,
        blocks_512: 0,
        block_size: BLOCK,
        rdev: 0,
        atime: now,
        mtime: now,
        ctime: now,
        crtime: now,
        generation: 0,
    }
}

/// The time of day.
fn now() -> Timestamp {
    const SECOND: u64 = 1_000_000_000;
    let ns = steadfast_runtime::unix_ns(0);
    // OK to cast: both are small.
    Timestamp { secs: (ns / SECOND) as i64, nanos: (ns % SECOND) as u32 }
}

steadfast_runtime::debug_fields!(JudgeFs);
