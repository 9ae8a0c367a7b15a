//! The names of one folder, a part at a time, however large it is.
//!
//! A damaged directory is reported once; then its blocks are gone through one by one, and those
//! that can be read are.

use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use steadfast_vfs::path::why_refused;
use steadfast_vfs::{Attr, Dirent, FileSystem, FsError, Ino};

use super::bound::{BEYOND, SizeLimit};

/// Refused names of one folder that are reported one by one.
const REFUSED_MAX: u64 = 100;

/// Bytes that a folder may have in any case: some tens of thousands of names.
const LEAST: u64 = 1 << 20;

/// What a folder has next.
pub(super) enum ListStep {
    /// A name.
    Entry(Dirent),
    /// A name that must not be used, and why.
    Refused(Vec<u8>, &'static str),
    /// At the end: so many more names were refused.
    More(u64),
    /// Part of the folder cannot be read.
    Damage(FsError),
}

impl ListStep {
    fn name(&self) -> Option<&[u8]> {
        match self {
            ListStep::Entry(e) => Some(&e.name),
            ListStep::Refused(name, _) => Some(name),
            ListStep::More(_) | ListStep::Damage(_) => None,
        }
    }
}

/// A reading of a folder.
pub(super) struct Listing {
    dir: Ino,
    part: VecDeque<Dirent>,
    at: ListPosition,
    /// Hashes of the names that were met: a name stands in a folder once.
    met: HashSet<u64>,
    hasher: RandomState,
    /// Names that were refused and not reported yet, and those that were.
    refused: (u64, u64),
    /// Bytes that the folder may still have.
    left: u64,
    /// Bytes that all folders of the walk together may still have.
    all_left: Rc<Cell<u64>>,
    bound: SizeLimit,
    /// The last damage that was reported.
    reported: Option<FsError>,
    /// All steps by name, once the first was asked for; `None`: as they come.
    sorted: Option<SortedSteps>,
}

/// Steps by name.
enum SortedSteps {
    /// Nothing was read yet.
    Unread,
    /// Those that are left.
    Left(VecDeque<ListStep>),
}

enum ListPosition {
    /// At the start of a folder that is larger than it can be.
    Oversized,
    /// At a position of `readdir`.
    Position(u64),
    /// At a byte, block by block, because `readdir` fails.
    Byte(u64),
    End,
}

impl Listing {
    /// The folder's names from the first one on, without "." and "..".
    /// One that is larger than its bound is gone through block by block, as far as the bound goes.
    /// It may take what `all_left` has for all folders together: many that claim the same blocks
    /// would else take the bound each. When they have used that up, a little is left for each.
    pub fn new(dir: &Attr, bound: SizeLimit, all_left: Rc<Cell<u64>>, hasher: RandomState) -> Self {
        Listing {
            dir: dir.ino,
            part: VecDeque::new(),
            at: if dir.size > bound.bytes {
                ListPosition::Oversized
            } else {
                ListPosition::Position(0)
            },
            met: HashSet::new(),
            hasher,
            refused: (0, 0),
            left: bound.bytes.min(all_left.get().max(LEAST)),
            all_left,
            bound,
            reported: None,
            sorted: None,
        }
    }

    /// Names in their order; what is wrong comes before them.
    pub fn by_name(&mut self) {
        self.sorted = Some(SortedSteps::Unread);
    }

    /// The next name, or what is wrong.
    pub fn next(&mut self, fs: &dyn FileSystem) -> Option<ListStep> {
        match &mut self.sorted {
            None => self.step(fs),
            Some(SortedSteps::Left(left)) => left.pop_front(),
            Some(SortedSteps::Unread) => {
                let mut all: Vec<ListStep> = std::iter::from_fn(|| self.step(fs)).collect();
                all.sort_by(|a, b| a.name().cmp(&b.name()));
                let mut left = VecDeque::from(all);
                let first = left.pop_front();
                self.sorted = Some(SortedSteps::Left(left));
                first
            }
        }
    }

    /// The next one as it comes.
    fn step(&mut self, fs: &dyn FileSystem) -> Option<ListStep> {
        loop {
            while let Some(e) = self.part.pop_front() {
                let first = self.met.insert(self.hasher.hash_one(&e.name));
                // Block by block, what was read before comes once more.
                let repeated = !first && matches!(self.at, ListPosition::Byte(_));
                if repeated || (first && matches!(e.name.as_slice(), b"." | b"..")) {
                    continue;
                }
                let twice = "the folder has this name twice: only the first is taken";
                match why_refused(&e.name).or((!first).then_some(twice)) {
                    None => return Some(ListStep::Entry(e)),
                    Some(_) if self.refused.1 >= REFUSED_MAX => self.refused.0 += 1,
                    Some(why) => {
                        self.refused.1 += 1;
                        return Some(ListStep::Refused(e.name, why));
                    }
                }
            }
            let Some(read) = self.read(fs) else {
                let more = std::mem::take(&mut self.refused.0);
                return (more > 0).then_some(ListStep::More(more));
            };
            // What stopped `readdir` is met again in its block.
            if let Err(e) = read
                && self.reported.as_ref() != Some(&e)
            {
                self.reported = Some(e.clone());
                return Some(ListStep::Damage(e));
            }
        }
    }

    /// Counts what was read against what the folder can have.
    fn charge(&mut self, bytes: u64) -> Result<(), FsError> {
        let Some(left) = self.left.checked_sub(bytes) else {
            self.at = ListPosition::End;
            self.part.clear();
            return Err(self.beyond());
        };
        self.left = left;
        self.all_left.set(self.all_left.get().saturating_sub(bytes));
        Ok(())
    }

    fn beyond(&self) -> FsError {
        FsError::Corrupt { what: BEYOND.into(), place: format!("directory inode {}", self.dir.0) }
    }

    /// Reads the next part; `None` at the end.
    fn read(&mut self, fs: &dyn FileSystem) -> Option<Result<(), FsError>> {
        match self.at {
            ListPosition::Oversized => {
                self.at = ListPosition::Byte(0);
                Some(Err(self.beyond()))
            }
            ListPosition::End => None,
            ListPosition::Position(from) => {
                let part = match fs.readdir(self.dir, from) {
                    Ok(part) => part,
                    Err(e) => {
                        self.at = ListPosition::Byte(0);
                        return Some(Err(e));
                    }
                };
                let Some(last) = part.last() else {
                    self.at = ListPosition::End;
                    return None;
                };
                if last.next <= from && from != 0 {
                    self.at = ListPosition::Byte(0);
                    let what = "readdir does not move forward";
                    return Some(Err(FsError::Invalid { what }));
                }
                self.at = ListPosition::Position(last.next);
                // At least what the names take, each behind a head of 8 bytes.
                let bytes = part.iter().map(|e| 8 + e.name.len() as u64).sum();
                self.part = part.into();
                Some(self.charge(bytes))
            }
            ListPosition::Byte(from) => {
                let Ok(Some(block)) = fs.readdir_block(self.dir, from) else {
                    self.at = ListPosition::End;
                    return None;
                };
                self.at = ListPosition::Byte(block.end);
                self.part = block.entries.into();
                let charged = self.charge(self.bound.block);
                Some(charged.and(block.damage.map_or(Ok(()), Err)))
            }
        }
    }
}
