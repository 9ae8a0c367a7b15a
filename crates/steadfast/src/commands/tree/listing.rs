//! The names of one folder, a part at a time, however large it is.
//!
//! A damaged directory is told once; then its blocks are gone through one by one, and those that
//! can be read are.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

use steadfast_vfs::{DirEntry, FileSystem, FsError, Ino};

use super::names;

/// What a folder has next.
pub enum Next {
    /// A name.
    Entry(DirEntry),
    /// A name that must not be used, and why.
    Refused(Vec<u8>, &'static str),
    /// Part of the folder cannot be read.
    Damage(FsError),
}

/// A reading of a folder.
pub struct Listing {
    dir: Ino,
    part: VecDeque<DirEntry>,
    at: At,
    /// Hashes of the names that were met: a name stands in a folder once.
    met: HashSet<u64>,
    hasher: RandomState,
    /// The last damage that was told.
    told: Option<FsError>,
}

enum At {
    /// At a position of `readdir`.
    Position(u64),
    /// At a byte, block by block, because `readdir` fails.
    Byte(u64),
    End,
}

impl Listing {
    /// The folder's names from the first one on, without "." and "..".
    pub fn new(dir: Ino, hasher: RandomState) -> Self {
        let (part, met) = (VecDeque::new(), HashSet::new());
        Listing { dir, part, at: At::Position(0), met, hasher, told: None }
    }

    /// The next name, or what is wrong.
    pub fn next(&mut self, fs: &dyn FileSystem) -> Option<Next> {
        loop {
            while let Some(e) = self.part.pop_front() {
                let first = self.met.insert(self.hasher.hash_one(&e.name));
                // Block by block, what was read before comes again.
                let again = !first && matches!(self.at, At::Byte(_));
                if again || (first && matches!(e.name.as_slice(), b"." | b"..")) {
                    continue;
                }
                if let Some(why) = names::why_refused(&e.name) {
                    return Some(Next::Refused(e.name, why));
                }
                if first {
                    return Some(Next::Entry(e));
                }
                let why = "the folder has this name twice: only the first is taken";
                return Some(Next::Refused(e.name, why));
            }
            // What stopped `readdir` is met again in its block.
            if let Err(e) = self.read(fs)?
                && self.told.as_ref() != Some(&e)
            {
                self.told = Some(e.clone());
                return Some(Next::Damage(e));
            }
        }
    }

    /// Reads the next part; `None` at the end.
    fn read(&mut self, fs: &dyn FileSystem) -> Option<Result<(), FsError>> {
        match self.at {
            At::End => None,
            At::Position(from) => {
                let part = match fs.readdir(self.dir, from) {
                    Ok(part) => part,
                    Err(e) => {
                        self.at = At::Byte(0);
                        return Some(Err(e));
                    }
                };
                let Some(last) = part.last() else {
                    self.at = At::End;
                    return None;
                };
                if last.next <= from && from != 0 {
                    self.at = At::Byte(0);
                    let what = "readdir does not move forward";
                    return Some(Err(FsError::Invalid { what }));
                }
                self.at = At::Position(last.next);
                self.part = part.into();
                Some(Ok(()))
            }
            At::Byte(from) => {
                let Ok(Some(block)) = fs.readdir_block(self.dir, from) else {
                    self.at = At::End;
                    return None;
                };
                self.at = At::Byte(block.end);
                self.part = block.entries.into();
                Some(block.damage.map_or(Ok(()), Err))
            }
        }
    }
}
