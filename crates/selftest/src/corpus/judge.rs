//! What must be there after a cut.
//!
//! A state of the run is what was seen after one of its operations. Of what had been made durable
//! at a state, each name must be as in that state or in a later one that may have been reached: the
//! operations after it may be there or not, but each of them whole.
//!
//! * *sync*: all names, and all of their files.
//! * *fsync of a file*: the file, under each of its names, with size, bytes, links and extended
//!   attributes. (POSIX does not promise the names. Linux's journaling file systems keep them.)
//! * *fdatasync*: size and bytes, under any name that the file has had.
//! * *fsync of a directory*: the names in it and what has them, not what the files hold; its own.
//! * *always*: what was durable and never removed is under at least one of its names; each file
//!   has as many names as it says.
//!
//! A file that is under a durable name and was not made durable itself (it was made, moved or
//! linked there later) may lack what was still in memory: nothing was promised of it but the name.
//!
//! Of a file whose bytes are written, truncated or allocated after they were made durable, each 512
//! bytes are as in one of the states that may have been reached, or zeros: a write is not atomic,
//! a sector is. Blocks that were allocated beyond a file's end are durable with it.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_crash::program::{Node, Tree, shown};
use steadfast_suite::operation::Operation;
use steadfast_vfs::{Fallocate, FileType, Ino};

use super::foreign::first_foreign;
use super::run::OperationTrace;
use super::step::{Persists, persists};

/// Allocation is judged in blocks of so many bytes.
const BLOCK: u64 = 4096;

/// How much of a name is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// What has the name.
    Name,
    /// And what it holds.
    Data,
    /// And what it says of itself.
    All,
}

/// One cut of a trace.
struct Judge<'s> {
    trace: &'s OperationTrace,
    found: &'s Tree,
    /// The last state that may have been reached.
    last: usize,
    wrong: BTreeSet<String>,
}

/// What is wrong with what was found after a cut at a tick, in words.
pub(super) fn judge(trace: &OperationTrace, found: &Tree, tick: u64) -> Vec<String> {
    let last = trace.done.iter().filter(|done| done.started.tick < tick).count();
    let mut judge = Judge { trace, found, last, wrong: BTreeSet::new() };
    judge.wrong.extend(miscounted(found));
    judge.promised(0, Persists::Everything);
    for (number, done) in trace.done.iter().enumerate() {
        let kept = !done.refused && done.returned.tick < tick;
        if let Some(what) = persists(&done.op).filter(|_| kept) {
            judge.promised(number + 1, what);
        }
    }
    judge.wrong.into_iter().collect()
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(&[], |cut| &path[..cut])
}

/// A file that has not as many names as it says, or a directory that has several, in words.
fn miscounted(tree: &Tree) -> Option<String> {
    let mut of_inode: BTreeMap<Ino, Vec<(&[u8], &Node)>> = BTreeMap::new();
    for (path, node) in tree.nodes() {
        of_inode.entry(node.attr.ino).or_default().push((path, node));
    }
    of_inode.values().find_map(|names| {
        let (path, Node { attr, .. }) = names[0];
        let is_folder = attr.kind == FileType::Directory;
        let links = if is_folder { 1 } else { attr.nlink };
        let wrong = names.len() != links as usize;
        wrong.then(|| format!("{}: {} names, of {links}", shown(path), names.len()))
    })
}

impl Judge<'_> {
    fn promised(&mut self, state: usize, what: Persists<'_>) {
        match what {
            Persists::Everything => {
                let files: BTreeSet<u64> = self.trace.files[state].values().copied().collect();
                for path in self.paths(state, |_| true) {
                    self.binding(&path, state, Level::All, &|file| files.contains(&file));
                }
                files.into_iter().for_each(|file| self.not_lost(file, state));
            }
            Persists::All(path) | Persists::Data(path) => {
                let path = path.as_bytes();
                let folder = path.is_empty()
                    || self.trace.seen[state]
                        .get(path)
                        .is_some_and(|node| node.attr.kind == FileType::Directory);
                if folder {
                    return self.folder(path, state);
                }
                let Some(file) = self.trace.files[state].get(path).copied() else { return };
                match what {
                    Persists::Data(_) => self.data(file, state),
                    _ => self.file(file, state),
                }
                self.not_lost(file, state);
            }
        }
    }

    /// All paths of what was found and of the states from this one on, those that are wanted.
    fn paths(&self, state: usize, wanted: impl Fn(&[u8]) -> bool) -> BTreeSet<Vec<u8>> {
        let states = self.trace.seen[state..=self.last].iter();
        let all = states.chain([self.found]).flat_map(|tree| tree.nodes());
        all.map(|(path, _)| path).filter(|path| wanted(path)).map(<[u8]>::to_vec).collect()
    }

    fn folder(&mut self, folder: &[u8], state: usize) {
        let below = self.paths(state, |path| !path.is_empty() && parent(path) == folder);
        let files = &self.trace.files[state];
        let inside: Vec<u64> =
            files.iter().filter(|(path, _)| parent(path) == folder).map(|(_, f)| *f).collect();
        for path in below {
            self.binding(&path, state, Level::Name, &|_| true);
        }
        inside.into_iter().for_each(|file| self.not_lost(file, state));
        if !folder.is_empty() {
            self.binding(folder, state, Level::Name, &|_| true);
        }
    }

    fn file(&mut self, file: u64, state: usize) {
        let files = &self.trace.files[state];
        let names: Vec<Vec<u8>> =
            files.iter().filter(|(_, f)| **f == file).map(|(path, _)| path.clone()).collect();
        for path in names {
            self.binding(&path, state, Level::All, &|other| other == file);
        }
    }

    /// A name is as in one of the states from this one on. What it holds was promised of those
    /// files that were made durable at the state: another one that has the name later is judged as
    /// one of which nothing was.
    fn binding(
        &mut self,
        path: &[u8],
        state: usize,
        level: Level,
        is_promised: &dyn Fn(u64) -> bool,
    ) {
        let found = self.found.get(path);
        let mut why = None;
        for at in state..=self.last {
            let wanted = self.trace.seen[at].get(path);
            match (wanted, found) {
                (None, None) => return,
                (Some(wanted), Some(found)) => {
                    let file = self.trace.files[at][path];
                    let differs = match is_promised(file) {
                        true => self.differs(wanted, found, file, state, level),
                        false => self.differs_unpromised(wanted, found, file),
                    };
                    match differs {
                        None => return,
                        Some(how) => drop(why.get_or_insert(how)),
                    }
                }
                (None, Some(_)) => drop(why.get_or_insert("is there again".into())),
                (Some(_), None) => drop(why.get_or_insert("is gone".into())),
            }
        }
        let why = why.unwrap_or_default();
        self.wrong.insert(format!("{}: durable at {}, {why}", text(path), self.named(state)));
    }

    fn named(&self, state: usize) -> String {
        match state.checked_sub(1) {
            None => "the beginning".into(),
            Some(number) => format!("{}. {}", number + 1, self.trace.done[number].op),
        }
    }

    /// How what was found is not what was wanted; `None`: it is.
    fn differs(
        &self,
        wanted: &Node,
        found: &Node,
        file: u64,
        state: usize,
        level: Level,
    ) -> Option<String> {
        let (was, is) = (&wanted.attr, &found.attr);
        if was.kind != is.kind {
            return Some(format!("is a {:?}, not a {:?}", is.kind, was.kind));
        }
        let link = was.kind == FileType::Symlink;
        let bytes = was.kind == FileType::Regular && level != Level::Name;
        if bytes && self.bytes_change(file, state) {
            if let Some(at) = self.foreign(found, file, state) {
                return Some(format!("holds at {at} what was never there"));
            }
        } else if bytes || link {
            let size = |node: &Node| node.contents().size.max(node.target.len() as u64);
            if size(wanted) != size(found) {
                return Some(format!("has {} bytes, not {}", size(found), size(wanted)));
            }
            if wanted.contents() != found.contents() || wanted.target != found.target {
                return Some("holds other bytes".into());
            }
            let (stored, least) = (is.blocks_512 * 512, self.allocated(file, state));
            if stored < least {
                return Some(format!("has {stored} bytes of storage, not {least}"));
            }
        }
        if level != Level::All || was.kind == FileType::Directory {
            return None;
        }
        if was.nlink != is.nlink {
            return Some(format!("has {} links, not {}", is.nlink, was.nlink));
        }
        (wanted.xattrs != found.xattrs).then(|| "has other extended attributes".into())
    }

    /// How what was found is not what a file of which nothing was promised may be. That it is this
    /// file, its number says. It has links, bytes and attributes of any of its states: those that
    /// were in memory may be gone, but nothing else may be there.
    fn differs_unpromised(&self, wanted: &Node, found: &Node, file: u64) -> Option<String> {
        if wanted.attr.ino != found.attr.ino {
            return Some("is another file".into());
        }
        let states = || (0..=self.last).filter_map(|at| self.of_file(file, at));
        self.differs(wanted, found, file, 0, Level::Data).or_else(|| {
            let was_there = states().any(|node| node.xattrs == found.xattrs);
            (!was_there).then(|| "has extended attributes that it never had".into())
        })
    }

    /// The first 512 bytes that are as in no state, by their place.
    fn foreign(&self, found: &Node, file: u64, state: usize) -> Option<u64> {
        let states: Vec<&Node> =
            (state..=self.last).filter_map(|at| self.of_file(file, at)).collect();
        first_foreign(found, &states)
    }

    /// Whether the bytes of a file may have been changed after a state.
    fn bytes_change(&self, file: u64, state: usize) -> bool {
        (state..self.last).any(|number| {
            let done = &self.trace.done[number];
            let changed = done.op.changed_file();
            changed.is_some_and(|(path, _)| self.file_of(number, path) == Some(file))
        })
    }

    /// Which file an operation was about.
    fn file_of(&self, number: usize, path: &str) -> Option<u64> {
        self.trace.files[number].get(path.as_bytes()).copied()
    }

    /// Bytes that must have been allocated to a file at a state, because it was asked for.
    fn allocated(&self, file: u64, state: usize) -> u64 {
        let mut blocks: BTreeSet<u64> = BTreeSet::new();
        for (number, done) in self.trace.done[..state].iter().enumerate() {
            let is_of = |name: &str| !done.refused && self.file_of(number, name) == Some(file);
            match &done.op {
                Operation::Fallocate { name, what, offset, len } if is_of(name) => {
                    let of = offset / BLOCK..(offset + len).div_ceil(BLOCK);
                    match what {
                        Fallocate::Allocate { .. } | Fallocate::ZeroRange { .. } => {
                            blocks.extend(of);
                        }
                        _ => blocks.retain(|block| !of.contains(block)),
                    }
                }
                Operation::Truncate { name, size } if is_of(name) => {
                    blocks.retain(|block| *block < size.div_ceil(BLOCK));
                }
                _ => {}
            }
        }
        blocks.len() as u64 * BLOCK
    }

    /// What a file holds is under one of the names that it has had.
    fn data(&mut self, file: u64, state: usize) {
        let mut why = String::from("is gone");
        for at in 0..=self.last {
            let named = self.trace.files[at].iter().filter(|(_, f)| **f == file);
            for (path, _) in named {
                let Some(found) = self.found.get(path) else { continue };
                for state_of in state..=self.last {
                    let Some(wanted) = self.of_file(file, state_of) else { return };
                    match self.differs(wanted, found, file, state, Level::Data) {
                        None => return,
                        Some(how) => why = how,
                    }
                }
            }
        }
        if self.always_there(file, state) {
            let named = self.named(state);
            self.wrong.insert(format!("a file, durable at {named}, {why}"));
        }
    }

    /// What a file is in a state.
    fn of_file(&self, file: u64, state: usize) -> Option<&Node> {
        let path = self.trace.files[state].iter().find(|(_, f)| **f == file)?.0;
        self.trace.seen[state].get(path)
    }

    fn always_there(&self, file: u64, state: usize) -> bool {
        (state..=self.last).all(|at| self.of_file(file, at).is_some())
    }

    /// A file that was durable, and that nothing removes, has one of its names.
    fn not_lost(&mut self, file: u64, state: usize) {
        if !self.always_there(file, state) {
            return;
        }
        let mut names: BTreeMap<&[u8], FileType> = BTreeMap::new();
        for at in state..=self.last {
            for (path, _) in self.trace.files[at].iter().filter(|(_, f)| **f == file) {
                names.extend(self.trace.seen[at].get(path).map(|node| (&path[..], node.attr.kind)));
            }
        }
        let there = |(path, kind): (&&[u8], &FileType)| {
            self.found.get(path).is_some_and(|node| node.attr.kind == *kind)
        };
        if !names.iter().any(there) {
            let first = names.keys().next().map(|path| text(path)).unwrap_or_default();
            let named = self.named(state);
            self.wrong.insert(format!("{first}: durable at {named}, is under none of its names"));
        }
    }
}
