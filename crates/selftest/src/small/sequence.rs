//! Every sequence of a few operations over two files and a folder.
//!
//! Names are `a`, `b` and, in the folder `d`, `d/a`; at most two files exist at a time. A
//! sequence begins in an empty folder or in one that holds `d` and a file `a` with data, both
//! durable. Left out is what can do nothing (an fsync of what did not change since, a rename
//! between names of one file) and what differs from another sequence only by the names `a` and
//! `b` being exchanged.

use std::collections::BTreeSet;

use steadfast_suite::names::{FOLDER, Names, Node, NodeKind, parent};
use steadfast_suite::operation::{Operation, OperationIndex, WriteKind, listed};

pub(super) const FILES: [&str; 3] = ["a", "b", "d/a"];
pub(super) const DIR: &str = "d";
/// Files that exist at a time.
const FILES_MAX: usize = 2;
/// A write from the start of a file: more than a block, less than two, of 1 KiB.
const WRITE: u64 = 1500;
/// What is appended: into the block begun by [`WRITE`] and beyond it.
pub(super) const APPEND: u64 = 1000;

/// What is there when a sequence begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Start {
    /// Nothing.
    Empty,
    /// A folder `d` and a file `a` of 1500 bytes.
    Populated,
    /// A file `a` whose blocks of 1 KiB lie in four places: as many as its inode can name.
    Sparse,
    /// A folder `d` of one block of 1 KiB, which is full, and files `a` and `b` with the same
    /// attribute, in a block.
    Crowded,
    /// A folder `d` and a file `a` whose blocks of 1 KiB are more than a transaction frees.
    Large,
    /// A folder `d` with a name, and a file `a` that nearly fill their inodes.
    Inline,
}

/// Lengths of names that fill a folder of one block of 1 KiB, but for 8 bytes.
const FILLING: [usize; 4] = [240, 240, 240, 228];
/// Bytes of the file of [`Start::Large`]: with blocks of 1 KiB, which are revoked, several times
/// what one transaction frees.
pub(super) const LARGE: u64 = 150_000;
/// Bytes of the file of [`Start::Inline`], and how long the name in its folder is: an inode of 256
/// bytes has room for some 150, but for less than this if it has attributes.
const INLINE: u64 = 90;
const INLINE_NAME: usize = 30;
/// Bytes of an attribute that does not fit into an inode.
pub(super) const ATTRIBUTE: usize = 300;

/// A name in the folder that fills a part of its inode.
pub(super) fn in_folder(letter: char) -> String {
    format!("{DIR}/{}", letter.to_string().repeat(INLINE_NAME))
}

impl Start {
    /// All of them.
    pub(super) const ALL: [Start; 6] = [
        Start::Empty,
        Start::Populated,
        Start::Sparse,
        Start::Crowded,
        Start::Large,
        Start::Inline,
    ];
    /// What [`Sequence::all`] begins with.
    const USUAL: [Start; 2] = [Start::Empty, Start::Populated];

    /// The operations that make it; what comes then must be made durable.
    pub(super) fn operations(self) -> Vec<Operation> {
        match self {
            Start::Empty => Vec::new(),
            Start::Populated => vec![
                Operation::Mkdir { name: DIR.into() },
                Operation::Create { name: "a".into() },
                write("a", 0, WRITE),
            ],
            Start::Sparse => vec![
                Operation::Create { name: "a".into() },
                write("a", 0, 3000),
                write("a", 4 << 10, 1000),
                write("a", 6 << 10, 1000),
                write("a", 8 << 10, 500),
            ],
            Start::Large => vec![
                Operation::Mkdir { name: DIR.into() },
                Operation::Create { name: "a".into() },
                write("a", 0, LARGE),
            ],
            Start::Inline => vec![
                Operation::Mkdir { name: DIR.into() },
                Operation::Create { name: "a".into() },
                write("a", 0, INLINE),
                Operation::Link { from: "a".into(), to: in_folder('n') },
            ],
            Start::Crowded => {
                let attribute =
                    |name: &str| Operation::SetAttribute { name: name.into(), len: ATTRIBUTE };
                let mut made = vec![
                    Operation::Mkdir { name: DIR.into() },
                    Operation::Create { name: "a".into() },
                    Operation::Create { name: "b".into() },
                    attribute("a"),
                    attribute("b"),
                ];
                made.extend(FILLING.iter().zip('m'..).map(|(len, letter)| Operation::Link {
                    from: "a".into(),
                    to: format!("{DIR}/{}", letter.to_string().repeat(*len)),
                }));
                made
            }
        }
    }
}

/// A start and a few operations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sequence {
    /// What is there when it begins.
    pub start: Start,
    pub(super) operations: Vec<Operation>,
}

impl std::fmt::Display for Sequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.start, listed(&self.operations))
    }
}

impl Sequence {
    /// All sequences of 1 to `longest` operations, shorter ones first.
    pub fn all(longest: usize) -> Vec<Sequence> {
        let mut found = Vec::new();
        for start in Start::USUAL {
            let mut begun = vec![(State::new(start), Vec::new())];
            for _ in 0..longest {
                let mut longer = Vec::new();
                for (state, operations) in &begun {
                    for op in state.possible() {
                        let mut next = state.clone();
                        next.apply(&op);
                        let operations = [&operations[..], &[op]].concat();
                        found.push(Sequence { start, operations: operations.clone() });
                        longer.push((next, operations));
                    }
                }
                begun = longer;
            }
        }
        found.sort_by_key(|s: &Sequence| s.operations.len());
        found
    }

    /// A write to a new file, or over one that is there, and its fsync: what commits whatever
    /// others have begun.
    pub(super) fn written_and_synced(start: Start) -> Sequence {
        let create = Operation::Create { name: "a".into() };
        let fsync = Operation::Fsync { name: "a".into(), data_only: false };
        let operations = match start {
            Start::Empty => vec![create, fsync],
            _ => vec![write("a", 0, WRITE), fsync],
        };
        Sequence { start, operations }
    }

    /// How many operations it has.
    #[allow(clippy::len_without_is_empty)] // there are no empty sequences
    pub fn len(&self) -> usize {
        self.operations.len()
    }
}

pub(super) fn write(name: &str, offset: u64, len: u64) -> Operation {
    Operation::Write { name: name.into(), offset, len, how: WriteKind::Buffered }
}

/// What some operations have made.
#[derive(Clone)]
pub(super) struct State {
    pub names: Names,
    /// Changed since they were last made durable by name.
    dirty: BTreeSet<Node>,
    next: OperationIndex,
    /// Whether `a` was ever there: before that, `b` would be `a` by another name.
    a_known: bool,
}

impl State {
    pub fn new(start: Start) -> State {
        let mut state =
            State { names: Names::new(), dirty: BTreeSet::new(), next: 0, a_known: false };
        start.operations().iter().for_each(|op| state.apply(op));
        state.apply(&Operation::Sync);
        state
    }

    pub fn apply(&mut self, op: &Operation) {
        self.dirty.extend(self.names.apply(self.next, op));
        let node = |name: &str| self.names.node(name).unwrap_or(FOLDER);
        if let Some((name, _)) = op.changed_file() {
            self.dirty.insert(node(name));
        }
        match op {
            Operation::Fsync { name, .. } | Operation::FsyncDir { name } => {
                self.dirty.remove(&node(name));
            }
            Operation::Sync => self.dirty.clear(),
            _ => {}
        }
        self.next += 1;
        self.a_known |= self.names.node("a").is_some();
        // What has no name cannot be made durable.
        self.dirty.retain(|node| self.names.nodes.contains_key(node));
    }

    /// The names of files, one for each file.
    fn files(&self) -> Vec<(&'static str, Node)> {
        let mut seen = BTreeSet::new();
        let named = FILES.iter().filter_map(|name| Some((*name, self.names.node(name)?)));
        named.filter(|(_, node)| seen.insert(*node)).collect()
    }

    /// Whether a name can be given now.
    fn can_name(&self, name: &str) -> bool {
        let folder = self.names.kind(parent(name)) == Some(NodeKind::Folder);
        folder && (name != "b" || self.a_known)
    }

    /// Whether the file or folder has changed since it was made durable.
    pub fn is_dirty(&self, name: &str) -> bool {
        self.names.node(name).is_some_and(|node| self.dirty.contains(&node))
    }

    /// What can be done now.
    pub fn possible(&self) -> Vec<Operation> {
        let files = self.files();
        let mut found = Vec::new();
        for name in FILES {
            if self.names.node(name).is_some() {
                found.push(Operation::Unlink { name: name.into() });
            } else if self.can_name(name) {
                if files.len() < FILES_MAX {
                    found.push(Operation::Create { name: name.into() });
                }
                let link = |(from, _): &(&str, _)| Operation::Link {
                    from: (*from).into(),
                    to: name.into(),
                };
                found.extend(files.iter().map(link));
            }
        }
        for (from, to) in FILES.iter().flat_map(|from| FILES.iter().map(move |to| (from, to))) {
            let Some(node) = self.names.node(from) else { continue };
            if self.can_name(to) && self.names.node(to) != Some(node) {
                found.push(Operation::Rename { from: (*from).into(), to: (*to).into() });
            }
        }
        for (name, _) in &files {
            let size = self.names.size(name);
            found.push(write(name, 0, WRITE));
            if size > 0 {
                found.push(write(name, size, APPEND));
            }
            if self.is_dirty(name) {
                found.push(Operation::Fsync { name: (*name).into(), data_only: false });
            }
        }
        if self.names.node(DIR).is_none() {
            found.push(Operation::Mkdir { name: DIR.into() });
        }
        for name in ["", DIR] {
            if self.is_dirty(name) {
                found.push(Operation::FsyncDir { name: name.into() });
            }
        }
        if !self.dirty.is_empty() {
            found.push(Operation::Sync);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use steadfast_suite::operation::OperationKind as Sort;
    use strum::VariantArray;

    use super::*;

    #[test]
    fn the_sequences_are_all_different_and_none_is_useless() {
        let all = Sequence::all(2);
        let different: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(different.len(), all.len());
        let first: Vec<String> =
            all.iter().filter(|s| s.len() == 1).map(ToString::to_string).collect();
        // Of the empty folder: a file or a folder can be made, nothing else.
        let empty = first.iter().filter(|s| s.starts_with("Empty")).count();
        assert_eq!(empty, 2, "{first:#?}");
        assert!(!first.iter().any(|s| s.contains("sync")), "{first:#?}");
        assert!(!different.iter().any(|s| s.contains("; sync; sync")));
    }

    /// Whoever adds an operation puts it into a family, or says here that only the random runs have
    /// it.
    #[test]
    fn every_operation_is_in_a_family_or_named() {
        const IN_NONE: [Sort; 7] = [
            Sort::Mkfifo,
            Sort::Symlink,
            Sort::RenameNew,
            Sort::RemoveAttribute,
            Sort::Chown,
            Sort::SetTimes,
            Sort::Transact,
        ];
        let families = [
            Sequence::all(2),
            Sequence::data(Start::Populated, 1024),
            Sequence::data_in_steps(Start::Populated, 2, 1024),
            Sequence::names_in_steps(Start::Populated, 2),
            Sequence::there_and_back(1024),
            Sequence::forgotten(1024),
            Sequence::in_several_transactions(1024),
            Sequence::inline(2),
        ];
        let sequences = families.iter().flatten();
        let found: HashSet<Sort> = sequences.flat_map(|s| &s.operations).map(Sort::from).collect();
        for sort in Sort::VARIANTS {
            assert_ne!(found.contains(sort), IN_NONE.contains(sort), "{sort:?}");
        }
    }
}
