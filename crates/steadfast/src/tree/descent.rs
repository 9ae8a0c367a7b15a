//! A descent through a tree, without recursion.
//!
//! It knows the folders above the one that it is in, those above its start too, and of an image
//! also every folder that it has been to: a folder has one name, so a walk that meets it again is
//! in a cycle, or would go through it once for each of 2^n ways. What it keeps is bounded by the
//! number of folders.

use std::cell::Cell;
use std::collections::HashSet;
use std::hash::RandomState;
use std::rc::Rc;

use steadfast_vfs::path::shown;
use steadfast_vfs::{Attr, FileSystem, FileType, FsError, Ino};

use super::Side;
use super::bound::SizeLimit;
use super::failures::TreeFailures;
use super::listing::{ListStep, Listing};
use super::names::joined;
use crate::error::Result;

/// Deepest folder, counted from the start: far beyond what paths can name, and no more than a
/// descent can keep in memory.
const DEPTH_MAX: usize = 4096;

/// What is met.
pub(super) enum WalkStep {
    /// An object, in the folder of [`Descent::here`].
    Object {
        /// Its name.
        name: Vec<u8>,
        /// What it is.
        attr: Attr,
    },
    /// The end of the folder of [`Descent::here`], which [`Descent::leave`] leaves.
    End,
}

/// Why a folder is not entered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotEntered {
    /// It is one of those that lead to it.
    #[error("a cycle: this is the folder {above} (inode {ino}) again, inside itself")]
    InsideItself {
        /// The path by which it was met first.
        above: String,
        /// Its number.
        ino: u64,
    },
    /// It is above the start.
    #[error("a cycle: this is a folder above itself (inode {ino})")]
    AboveItself {
        /// Its number.
        ino: u64,
    },
    /// It has two names.
    #[error("a second name of a folder that was met before (inode {ino})")]
    SecondName {
        /// Its number.
        ino: u64,
    },
    /// Deeper than any path leads.
    #[error("more than {DEPTH_MAX} folders deep")]
    TooDeep,
}

/// One folder on the way down.
struct Folder<T> {
    attr: Attr,
    listing: Listing,
    /// Length of its path.
    path: usize,
    here: T,
}

/// A descent. `T` is what its user keeps for each folder on the way down.
pub(super) struct Descent<'f, T> {
    fs: &'f dyn FileSystem,
    side: Side,
    bound: SizeLimit,
    /// Bytes that all its folders together may still have.
    all_left: Rc<Cell<u64>>,
    folders: Vec<Folder<T>>,
    /// Folders above the start.
    above: HashSet<Ino>,
    been: HashSet<Ino>,
    path: Vec<u8>,
    hasher: RandomState,
    by_name: bool,
}

impl<'f, T> Descent<'f, T> {
    /// A descent that begins in the folder `start`, whose path is `path`.
    pub fn new(fs: &'f dyn FileSystem, side: Side, start: &Attr, path: &[u8], here: T) -> Self {
        // An image that cannot even report its size has no names to go through.
        let bound = SizeLimit::of(fs, side).unwrap_or(SizeLimit::NONE);
        let mut descent = Descent {
            fs,
            side,
            bound,
            all_left: Rc::new(Cell::new(bound.bytes)),
            folders: Vec::new(),
            above: HashSet::new(),
            been: HashSet::from([start.ino]),
            path: path.to_vec(),
            hasher: RandomState::new(),
            by_name: false,
        };
        descent.note_above(start.ino);
        descent.push(*start, here);
        descent
    }

    /// Each folder by name, which takes memory for its names.
    pub fn by_name(mut self) -> Self {
        self.by_name = true;
        self.folders.iter_mut().for_each(|folder| folder.listing.by_name());
        self
    }

    /// Notes the folders above the start, as far as their ".." lead.
    fn note_above(&mut self, start: Ino) {
        let mut at = start;
        for _ in 0..DEPTH_MAX {
            match self.fs.lookup(at, b"..") {
                Ok(up) if up.ino != at && up.ino != start && self.above.insert(up.ino) => {
                    at = up.ino;
                }
                _ => return,
            }
        }
    }

    /// A reading of a folder, by the bounds of this descent.
    pub fn listing(&self, dir: &Attr) -> Listing {
        Listing::new(dir, self.bound, Rc::clone(&self.all_left), self.hasher.clone())
    }

    fn push(&mut self, attr: Attr, here: T) {
        let mut listing = self.listing(&attr);
        if self.by_name {
            listing.by_name();
        }
        self.folders.push(Folder { attr, listing, path: self.path.len(), here });
    }

    /// What is kept for the folder that it is in; `None` once it has left its start.
    pub fn here(&mut self) -> Option<&mut T> {
        self.folders.last_mut().map(|f| &mut f.here)
    }

    /// The path of an object in the folder that it is in.
    pub fn path_of(&self, name: &[u8]) -> Vec<u8> {
        joined(&self.path, name)
    }

    /// The next object, or the end of the folder; `None` at the end. Names that lead to
    /// nothing are reported.
    pub fn next(&mut self, failures: &mut TreeFailures<'_>) -> Result<Option<WalkStep>> {
        loop {
            let Some(folder) = self.folders.last_mut() else { return Ok(None) };
            let Some(next) = folder.listing.next(self.fs) else { return Ok(Some(WalkStep::End)) };
            let e = match next {
                ListStep::Entry(e) => e,
                ListStep::Refused(name, why) => {
                    failures.record_text(&self.path_of(&name), why)?;
                    continue;
                }
                ListStep::More(count) => {
                    failures.record_text(&self.path, &more_refused(count))?;
                    continue;
                }
                ListStep::Damage(e) => {
                    failures.record(&self.path, e)?;
                    continue;
                }
            };
            let found = match self.side {
                // The very entry, also where a lookup would find another one.
                Side::Image => self.fs.getattr(e.ino).and_then(in_use),
                Side::Host => self.fs.lookup(folder.attr.ino, &e.name),
            };
            match found {
                Ok(attr) => return Ok(Some(WalkStep::Object { name: e.name, attr })),
                Err(e2) => failures.record(&self.path_of(&e.name), e2)?,
            }
        }
    }

    /// Goes down into a folder that was met, unless that would be a cycle.
    ///
    /// # Errors
    /// Why not.
    pub fn enter(
        &mut self,
        name: &[u8],
        attr: &Attr,
        here: T,
    ) -> std::result::Result<(), NotEntered> {
        self.check(attr)?;
        if self.side == Side::Image {
            self.been.insert(attr.ino);
        }
        self.path = joined(&self.path, name);
        self.push(*attr, here);
        Ok(())
    }

    /// Whether it may go into a folder.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, attr: &Attr) -> std::result::Result<(), NotEntered> {
        debug_assert_eq!(attr.kind, FileType::Directory);
        let ino = attr.ino.0;
        if let Some(same) = self.folders.iter().find(|f| f.attr.ino == attr.ino) {
            let above = shown(&self.path[..same.path]);
            let above = if above.is_empty() { "/".into() } else { above };
            return Err(NotEntered::InsideItself { above, ino });
        }
        if self.above.contains(&attr.ino) {
            return Err(NotEntered::AboveItself { ino });
        }
        if self.been.contains(&attr.ino) {
            return Err(NotEntered::SecondName { ino });
        }
        if self.folders.len() >= DEPTH_MAX {
            return Err(NotEntered::TooDeep);
        }
        Ok(())
    }

    /// Leaves the folder that it is in, and hands back what was kept for it.
    pub fn leave(&mut self) -> Option<(Attr, T)> {
        let folder = self.folders.pop()?;
        let up = self.folders.last().map_or(self.path.len(), |f| f.path);
        self.path.truncate(up);
        Some((folder.attr, folder.here))
    }

    /// The path of the folder that it is in.
    pub fn path(&self) -> &[u8] {
        &self.path
    }
}

/// What is said of refused names that are not reported one by one.
pub(super) fn more_refused(count: u64) -> String {
    format!("{count} more names of this folder are refused")
}

/// Refuses an inode that has been deleted: a name must not lead to it.
pub(super) fn in_use(attr: Attr) -> std::result::Result<Attr, FsError> {
    if attr.nlink == 0 {
        let place = format!("inode {}", attr.ino.0);
        return Err(FsError::Corrupt { what: "a name of a deleted inode".into(), place });
    }
    Ok(attr)
}
