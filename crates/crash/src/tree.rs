//! The tree of files that a file system shows, in memory: read, compared, judged, written out.
//! Every judge reads a recovered file system as such a tree, and keeps what it compares.

mod known;
mod pieces;
mod read;
mod write;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::OnceLock;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use steadfast_devices::store::Digest;
use steadfast_vfs::{Attr, FileType, FsError, Ino};

pub(crate) use known::KnownTree;
pub(crate) use pieces::Pieces;
pub(crate) use read::contents_of;
pub use steadfast_vfs::path::shown;

/// What mke2fs puts into the root, and where a repair puts what it found without a name: no work of
/// a program's.
pub(crate) const LOST_AND_FOUND: &[u8] = b"lost+found";
/// Bytes compared at a time.
pub(crate) const CHUNK: usize = 1 << 20;
/// Answers that [`Node::holds`] keeps, of each thread.
const ANSWERS_KEPT: usize = 1 << 16;
/// Bytes that a device writes whole at the least.
const UNIT: u64 = 512;

/// Size and digest of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Extended attributes of users, where they were asked for.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Another name of the same file, which comes earlier in the tree.
    pub same_as: Option<Vec<u8>>,
    /// The pieces in short, once it was asked for.
    contents: OnceLock<Contents>,
}

/// What of a tree could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("/{}: {why}", shown(path))]
pub struct Unreadable {
    /// Its path.
    pub path: Vec<u8>,
    /// Why.
    pub why: FsError,
}

/// Why there is no tree to be seen after a boot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTree {
    /// The mount was refused, or something on this machine failed, in words.
    #[error("{0}")]
    Refused(String),
    /// Something in it cannot be read.
    #[error("the recovered tree: {0}")]
    Unreadable(#[from] Unreadable),
}

/// A tree of files by their paths, which do not begin with '/'. The root itself is not in it.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    nodes: BTreeMap<Vec<u8>, Node>,
}

impl Tree {
    /// Of files by their paths. Those of one inode are names of one file.
    pub(crate) fn of(nodes: impl IntoIterator<Item = (Vec<u8>, Node)>) -> Tree {
        let mut tree = Tree { nodes: nodes.into_iter().collect() };
        tree.join_names();
        tree
    }

    /// The files in the order of their paths.
    pub fn nodes(&self) -> impl Iterator<Item = (&[u8], &Node)> {
        self.nodes.iter().map(|(path, node)| (&path[..], node))
    }

    /// Those from this path on.
    pub(crate) fn nodes_from(&self, from: Bound<&[u8]>) -> impl Iterator<Item = (&[u8], &Node)> {
        let paths = self.nodes.range::<[u8], _>((from, Bound::Unbounded));
        paths.map(|(path, node)| (&path[..], node))
    }

    /// The file of this path.
    pub fn get(&self, path: &[u8]) -> Option<&Node> {
        self.nodes.get(path)
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
            // The contents of a file with several names are those of its first one.
            let contents = node.same_as.is_none().then(|| node.contents());
            digest.word(contents.map_or(0, |contents| contents.size));
            let of = contents.map_or(0, |contents| contents.digest);
            digest.word(of as u64);
            digest.word((of >> 64) as u64);
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
}

impl Node {
    /// A file that holds these pieces, in order, and zeros; in short, where that is known.
    pub(crate) fn new(
        attr: Attr,
        target: Vec<u8>,
        pieces: Vec<(u64, Bytes)>,
        contents: OnceLock<Contents>,
    ) -> Node {
        Node { attr, target, pieces, xattrs: BTreeMap::new(), same_as: None, contents }
    }

    /// Size and digest of what a regular file holds; of others nothing.
    pub fn contents(&self) -> Contents {
        let is_file = self.attr.kind == FileType::Regular;
        let size = if is_file { self.attr.size } else { 0 };
        *self.contents.get_or_init(|| digest(size, &self.pieces))
    }

    /// Whether these bytes are there, from `offset` on; their digest is
    /// [`Digest::of`] them. (A recording says any length: no
    /// more is held in memory than a piece.)
    pub(crate) fn holds(&self, offset: u64, bytes: Contents) -> bool {
        if offset.checked_add(bytes.size).is_none_or(|end| end > self.attr.size) {
            return false;
        }
        // States differ in few of their files, and the same is asked of each.
        thread_local! {
            static ASKED: RefCell<HashMap<(Contents, u64, Contents), bool>> = RefCell::default();
        }
        let question = (self.contents(), offset, bytes);
        if let Some(known) = ASKED.with_borrow(|asked| asked.get(&question).copied()) {
            return known;
        }
        let holds = self.has_bytes(offset, bytes);
        ASKED.with_borrow_mut(|asked| {
            if asked.len() >= ANSWERS_KEPT {
                asked.clear();
            }
            asked.insert(question, holds);
        });
        holds
    }

    fn has_bytes(&self, offset: u64, bytes: Contents) -> bool {
        let mut digest = Digest::new();
        let mut last = [0; 8];
        for at in (0..bytes.size).step_by(CHUNK) {
            let chunk = self.bytes(offset + at, (CHUNK as u64).min(bytes.size - at));
            let (words, rest) = chunk.as_chunks::<8>();
            words.iter().for_each(|word| digest.word(u64::from_le_bytes(*word)));
            last[..rest.len()].copy_from_slice(rest);
        }
        digest.word(u64::from_le_bytes(last));
        digest.word(bytes.size);
        digest.end() == bytes.digest
    }

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
    // Between the pieces both are zeros, and a file may be of many terabytes.
    let chunks = |node: &Node| {
        let range = |(at, piece): &(u64, Bytes)| {
            at / CHUNK as u64..(at + piece.len() as u64).div_ceil(CHUNK as u64)
        };
        node.pieces.iter().flat_map(range).collect::<BTreeSet<_>>()
    };
    for chunk in chunks(one).union(&chunks(other)) {
        let at = chunk * CHUNK as u64;
        if at >= short {
            break;
        }
        let len = (CHUNK as u64).min(short - at);
        let (a, b) = (one.bytes(at, len), other.bytes(at, len));
        if let Some(place) = a.iter().zip(&b).position(|(a, b)| a != b) {
            return Some(at + place as u64);
        }
    }
    (short < long).then_some(short)
}

/// Zeros are left out, in units that do not depend on how the bytes came.
fn digest(size: u64, pieces: &[(u64, Bytes)]) -> Contents {
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

#[cfg(test)]
mod tests;
