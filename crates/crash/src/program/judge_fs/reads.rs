//! What a judge has read, and what it would read elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use steadfast_devices::store::Digest;
use steadfast_vfs::FileType;

use crate::tree::{CHUNK, Node, Tree};

/// What a judge is shown: the recovered files, and what the program had printed.
#[derive(Clone, Copy)]
pub struct JudgeView<'a> {
    /// The files.
    pub tree: &'a Tree,
    /// The lines.
    pub printed: &'a [u8],
}

/// Something that a judge is shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    /// The file with the lines that the program had printed.
    Printed,
    /// The tree's root, whose path is empty, or what is at this path in it.
    At(Vec<u8>),
}

/// Which names a judge has looked up, which directories it has listed, and which bytes it has read.
/// Where all of that is the same, a judge that does the same each time says the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ReadSet {
    /// Names that were looked up, there or not, and inodes that were asked for attributes.
    looked_up: BTreeSet<Place>,
    listed: BTreeSet<Place>,
    /// Ranges that do not touch, in order.
    bytes: BTreeMap<Place, Vec<(u64, u64)>>,
    /// Files of which was asked where they have holes.
    holes: BTreeSet<Place>,
}

impl ReadSet {
    pub(super) fn look_up(&mut self, place: Place) {
        self.looked_up.insert(place);
    }

    pub(super) fn list(&mut self, place: Place) {
        self.listed.insert(place);
    }

    /// All that was read of a file.
    pub(super) fn read(&mut self, place: Place, ranges: Vec<(u64, u64)>) {
        if !ranges.is_empty() {
            self.bytes.insert(place, ranges);
        }
    }

    pub(super) fn ask_holes(&mut self, place: Place) {
        self.holes.insert(place);
    }

    /// How many things it has.
    pub(super) fn len(&self) -> usize {
        self.looked_up.len() + self.listed.len() + self.bytes.len() + self.holes.len()
    }

    /// Names, attributes and listings as they are there, in short.
    pub(super) fn names(&self, shown: JudgeView<'_>) -> u128 {
        let mut digest = Digest::new();
        for place in &self.looked_up {
            match place {
                Place::Printed => digest.word(shown.printed.len() as u64),
                // Of the root nothing else is known.
                Place::At(path) if path.is_empty() => digest.word(folders(shown.tree)),
                Place::At(path) => attributes(shown.tree.get(path), &mut digest),
            }
        }
        for place in &self.listed {
            let Place::At(path) = place else { continue };
            for (name, node) in entries(shown.tree, path) {
                digest.bytes(name);
                digest.word(node.attr.kind as u64);
                // A listing has numbers of inodes.
                digest.bytes(node.same_as.as_deref().unwrap_or_default());
            }
            digest.word(u64::MAX);
        }
        digest.end()
    }

    /// The bytes as they are there, in short.
    pub(super) fn contents(&self, shown: JudgeView<'_>) -> u128 {
        let mut digest = Digest::new();
        for (place, ranges) in &self.bytes {
            for (from, to) in ranges {
                match place {
                    Place::Printed => {
                        let at = |end: u64| (end as usize).min(shown.printed.len());
                        digest.bytes(&shown.printed[at(*from)..at(*to)]);
                    }
                    Place::At(path) => {
                        let Some(node) = shown.tree.get(path) else { continue };
                        // Of a hole, too, no more is in memory.
                        for at in (*from..*to).step_by(CHUNK) {
                            digest.bytes(&node.bytes(at, (CHUNK as u64).min(to - at)));
                        }
                    }
                }
            }
        }
        for place in &self.holes {
            let Place::At(path) = place else { continue };
            for (at, piece) in shown.tree.get(path).iter().flat_map(|node| &node.pieces) {
                digest.word(*at);
                digest.bytes(piece);
            }
        }
        digest.end()
    }
}

/// All that is said of a node beside what it holds.
fn attributes(node: Option<&Node>, digest: &mut Digest) {
    let Some(node) = node else { return digest.word(u64::MAX) };
    let a = &node.attr;
    let words =
        [a.kind as u64, a.mode.into(), a.uid.into(), a.gid.into(), a.nlink.into(), a.size, a.rdev];
    words.into_iter().for_each(|word| digest.word(word));
    // What it takes of the disk.
    digest.word(node.pieces.iter().map(|(_, piece)| piece.len() as u64).sum());
    digest.bytes(&node.target);
    digest.bytes(node.same_as.as_deref().unwrap_or_default());
}

/// How many folders there are in the root.
pub(super) fn folders(tree: &Tree) -> u64 {
    let is_folder = |(_, node): &(&[u8], &Node)| node.attr.kind == FileType::Directory;
    entries(tree, b"").into_iter().filter(is_folder).count() as u64
}

/// The names in a directory, in order.
fn entries<'t>(tree: &'t Tree, dir: &[u8]) -> Vec<(&'t [u8], &'t Node)> {
    let mut first = dir.to_vec();
    if !dir.is_empty() {
        first.push(b'/');
    }
    tree.nodes_from(Bound::Included(&first[..]))
        .map_while(|(path, node)| Some((path.strip_prefix(&first[..])?, node)))
        .filter(|(name, _)| !name.is_empty() && !name.contains(&b'/'))
        .collect()
}
