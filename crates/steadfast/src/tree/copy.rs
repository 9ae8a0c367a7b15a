//! Copying a tree from one file system to another: into an image or out of it.
//!
//! As `cp -a` and `tar -xp` do: contents with their holes, hard links, owners, modes, times to
//! the nanosecond, attributes, access control lists, capabilities, devices.
//!
//! Invariants:
//!
//! 1. Nothing is written through what is in the way. A new object is made where no name is
//!    (O_EXCL); what replaces another is made under no name or a spare one, finished, and renamed
//!    over it. So a power cut or a failure in between leaves the old one. Only where both do not
//!    fit, and the new one does without the old, the old one is removed first.
//! 2. Until it is finished an object belongs to nobody else: mode 0600, folders 0700. The owner
//!    is set before the mode, capabilities after the owner, times last.
//! 3. Memory is bounded by the number of folders on the way down and of hard links whose
//!    other names are still to come.

mod attributes;
mod contents;
mod links;
mod place;
#[cfg(test)]
mod power_cut;

use steadfast_tar::TarError;
use steadfast_vfs::{Attr, FileSystem, FileType, FsError, Ino, NewNode};

pub(super) use self::attributes::group_of_acl;
use self::contents::Budget;
use self::links::Links;
use super::Side;
use super::descent::{Descent, NotEntered, WalkStep};
use super::failures::TreeFailures;
use super::names::joined;
use super::owners::Changes;
use crate::error::{Error, Result};

/// One end of a copy.
pub(super) struct End<'c> {
    pub fs: &'c dyn FileSystem,
    pub side: Side,
    /// What the tree's top is called in messages.
    pub path: Vec<u8>,
    /// Files of the host that are the image itself: neither copied nor replaced.
    pub image: Vec<Ino>,
}

/// Why an object could not be copied.
#[derive(Debug)]
pub(super) enum CopyError {
    /// It could not be read.
    From(FsError),
    /// It could not be written.
    To(FsError),
    /// It is not to be copied, or not there.
    Refused(String),
    /// What stands at its place must stay.
    Blocked(String),
    /// The archive that it is in or goes into fails.
    Archive(TarError),
}

/// A copy in progress.
pub(super) struct Copy<'c, 'f, 'h> {
    from: End<'c>,
    to: End<'c>,
    links: Links,
    budget: Budget,
    changes: &'c Changes,
    failures: &'f mut TreeFailures<'h>,
    /// Spare names used so far.
    spare: u64,
    /// Path of the present object below the top.
    below: Vec<u8>,
    /// What could not be read of the present object's attributes.
    unread: Option<CopyError>,
}

/// A folder that is being filled: the one that it is copied from is the walk's.
struct TargetFolder {
    ino: Ino,
}

impl<'c, 'f, 'h> Copy<'c, 'f, 'h> {
    /// A copy from here to there.
    pub fn new(
        from: End<'c>,
        to: End<'c>,
        changes: &'c Changes,
        failures: &'f mut TreeFailures<'h>,
    ) -> Result<Self> {
        let budget = match from.side {
            Side::Image => Budget::of_image(from.fs).map_err(|e| failures.error(&from.path, e))?,
            Side::Host => Budget::unlimited(),
        };
        let (links, below) = (Links::default(), Vec::new());
        let (spare, unread) = (0, None);
        Ok(Copy { from, to, links, budget, changes, failures, spare, below, unread })
    }

    /// Copies the object `attr` to the name `name` of the folder `dir`, or a folder's contents and
    /// attributes to `dir` itself. An object that fails is reported; an error ends the copy.
    pub fn run(&mut self, attr: &Attr, dir: Ino, name: Option<&[u8]>) -> Result<()> {
        if attr.kind != FileType::Directory {
            let name = name.unwrap_or_default();
            let copied = self.refuse_top(dir, name).and_then(|()| self.object(attr, dir, name));
            return self.outcome(copied);
        }
        // A folder of the host that was there before is the caller's: it is filled, and stays
        // whose it was. An image has no say in that.
        let top = match name {
            None => Ok((dir, false)),
            Some(name) => self.folder(attr, dir, name),
        };
        let (ino, is_new) = match top {
            Ok(top) => top,
            Err(e) => return self.outcome(Err(e)),
        };
        let keeps_its_own = !is_new && self.to.side == Side::Host;
        let path = self.from.path.clone();
        let mut walk =
            Descent::new(self.from.fs, self.from.side, attr, &path, TargetFolder { ino });
        if self.changes.by_name {
            walk = walk.by_name();
        }
        // Paths below the top are shown under the tops of both ends.
        let top = joined(&path, b"x").len() - 1;
        while let Some(met) = walk.next(self.failures)? {
            let Some(into) = walk.here().map(|f| f.ino) else { break };
            match met {
                WalkStep::Object { name, attr } => {
                    self.below = walk.path_of(&name).split_off(top);
                    let done = if attr.kind == FileType::Directory {
                        self.enter(&mut walk, &name, &attr, into)
                    } else {
                        let done = self.object(&attr, into, &name);
                        self.let_go(&attr);
                        done
                    };
                    self.outcome(done)?;
                }
                WalkStep::End => {
                    let path = walk.path();
                    self.below = path.get(top..).unwrap_or_default().to_vec();
                    let Some((attr, folder)) = walk.leave() else { break };
                    if !(keeps_its_own && folder.ino == ino) {
                        let kept = self.attributes(&attr, folder.ino);
                        self.outcome(kept)?;
                    }
                    self.let_go_folder(attr.ino, folder.ino);
                }
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        walk: &mut Descent<'_, TargetFolder>,
        name: &[u8],
        attr: &Attr,
        into: Ino,
    ) -> std::result::Result<(), CopyError> {
        walk.check(attr).map_err(refused)?;
        let (ino, _) = self.folder(attr, into, name)?;
        walk.enter(name, attr, TargetFolder { ino }).map_err(refused)
    }

    /// What came of one object. Where nothing more can be written the copy ends.
    fn outcome(&mut self, done: std::result::Result<(), CopyError>) -> Result<()> {
        let to = || joined(&self.to.path, &self.below);
        let from = || joined(&self.from.path, &self.below);
        match done.and(self.unread.take().map_or(Ok(()), Err)) {
            Ok(()) => {
                self.failures.written(&to());
                Ok(())
            }
            Err(CopyError::Archive(e)) => Err(Error::Archive(e)),
            Err(CopyError::Refused(why)) => self.failures.record_text(&from(), &why),
            Err(CopyError::Blocked(why)) => self.failures.record_text(&to(), &why),
            Err(CopyError::From(e)) => self.failures.record(&from(), e),
            Err(CopyError::To(e)) if nothing_fits(&e) => Err(self.failures.error(&to(), e)),
            Err(CopyError::To(e)) => self.failures.record(&to(), e),
        }
    }

    /// Makes a folder, or takes the one that is there; whether it is new.
    fn folder(
        &mut self,
        attr: &Attr,
        dir: Ino,
        name: &[u8],
    ) -> std::result::Result<(Ino, bool), CopyError> {
        match self.to.fs.mkdir(dir, name, self.node(attr, 0o700)) {
            Err(FsError::Exists) => {
                let there = self.to.fs.lookup(dir, name).map_err(CopyError::To)?;
                if there.kind != FileType::Directory {
                    let why = "is in the way: it exists and is not a folder";
                    return Err(CopyError::Blocked(why.into()));
                }
                Ok((there.ino, false))
            }
            made => made.map(|a| (a.ino, true)).map_err(CopyError::To),
        }
    }

    /// How a new object is made: for its owner alone. In an image it is the owner's at once; who
    /// may give files away on the host is found out later.
    fn node(&self, attr: &Attr, mode: u16) -> NewNode {
        let (uid, gid) = self.changes.owner(attr.uid, attr.gid);
        match self.to.side {
            Side::Image => NewNode { mode, uid, gid, umask: 0 },
            Side::Host => NewNode {
                mode,
                uid: rustix::process::geteuid().as_raw(),
                gid: rustix::process::getegid().as_raw(),
                umask: 0,
            },
        }
    }

    /// Nothing more is asked of this object, unless a hard link to it follows.
    fn let_go(&self, attr: &Attr) {
        if !self.links.expects(attr.ino) {
            self.from.fs.forget_inode(attr.ino);
        }
    }

    /// A hard link may name an object in any folder that was made.
    fn let_go_folder(&self, from: Ino, to: Ino) {
        self.from.fs.forget_inode(from);
        if self.links.is_empty() {
            self.to.fs.forget_inode(to);
        }
    }
}

fn refused(why: NotEntered) -> CopyError {
    CopyError::Refused(why.to_string())
}

/// Whether the next object would fail for the same reason.
pub(super) fn nothing_fits(e: &FsError) -> bool {
    use rustix::io::Errno;
    matches!(
        Errno::from_raw_os_error(e.errno()),
        Errno::NOSPC | Errno::DQUOT | Errno::ROFS | Errno::NODEV
    )
}
