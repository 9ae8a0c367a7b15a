//! Packing: a tree of a file system into an archive, by name, so that the same tree gives the same
//! archive.

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

use steadfast_tar::{Member, MemberKind, Writer};
use steadfast_vfs::path::{list, resolve};
use steadfast_vfs::{Attr, Fh, FileType, FsError, Ino, OpenFlags};

use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::tree::bound::{BEYOND, SizeLimit};
use crate::tree::copy::CopyError;
use crate::tree::descent::{Descent, WalkStep};
use crate::tree::failures::TreeFailures;
use crate::tree::names::{joined, last};
use crate::tree::owners::Changes;
use crate::tree::pieces::{CHUNK, next_data};

/// Pieces of one file that are kept apart; what follows them is one piece.
const PIECES_MAX: usize = 1 << 20;

/// A tree that is being packed.
struct Pack<'c, 'f, 'h, 'w> {
    fs: &'c FileSystem,
    changes: &'c Changes,
    failures: &'f mut TreeFailures<'h>,
    writer: Writer<&'w mut dyn Write>,
    /// Objects with more names: the path of the first, and how many are still to come.
    links: HashMap<Ino, (Vec<u8>, u32)>,
    bound: SizeLimit,
}

type Step<T> = std::result::Result<T, CopyError>;

/// Packs the file or folder `from`; names are those below the folder.
pub(in crate::tree) fn pack(
    fs: &FileSystem,
    from: &[u8],
    archive: &mut dyn Write,
    changes: &Changes,
    failures: &mut TreeFailures<'_>,
) -> Result<()> {
    let vfs = &**fs.vfs();
    let attr = resolve(vfs, from, true).map_err(|e| failures.error(from, e))?;
    let bound = SizeLimit::of(vfs, fs.side()).map_err(|e| failures.error(from, e))?;
    let writer = Writer::new(archive);
    let mut pack = Pack { fs, changes, failures, writer, links: HashMap::new(), bound };
    if attr.kind == FileType::Directory {
        pack.tree(&attr, from)?;
    } else {
        let done = pack.object(&attr, last(from).unwrap_or(b"file"), from);
        pack.outcome(from, done)?;
    }
    pack.writer.finish().map_err(Error::Archive)?;
    Ok(())
}

impl Pack<'_, '_, '_, '_> {
    fn tree(&mut self, top: &Attr, from: &[u8]) -> Result<()> {
        let vfs = &**self.fs.vfs();
        let done = self.object(top, b".", from);
        self.outcome(from, done)?;
        let mut walk = Descent::new(vfs, self.fs.side(), top, from, top.ino).by_name();
        let below = joined(from, b"x").len() - 1;
        while let Some(met) = walk.next(self.failures)? {
            let WalkStep::Object { name, attr } = met else {
                walk.leave();
                continue;
            };
            let path = walk.path_of(&name);
            if walk.here().is_some_and(|dir| *dir == vfs.root()) && self.is_unused(&name, &attr) {
                continue;
            }
            let member = path.get(below..).unwrap_or_default();
            let member = joined(b"./", member);
            let entered = match attr.kind {
                FileType::Directory => {
                    walk.check(&attr).map_err(|why| CopyError::Refused(why.to_string()))
                }
                _ => Ok(()),
            };
            let done = entered.and_then(|()| self.object(&attr, &member, &path));
            let is_whole = done.is_ok();
            self.outcome(&path, done)?;
            if attr.kind == FileType::Directory {
                if is_whole {
                    // OK to ignore: asked just before.
                    let _ = walk.enter(&name, &attr, attr.ino);
                }
            } else {
                vfs.forget_inode(attr.ino);
            }
        }
        Ok(())
    }

    /// What every file system has, and no tree is about.
    fn is_unused(&self, name: &[u8], attr: &Attr) -> bool {
        let is_empty = || list(&**self.fs.vfs(), attr.ino).is_ok_and(|names| names.len() <= 2);
        name == b"lost+found" && attr.kind == FileType::Directory && is_empty()
    }

    fn outcome(&mut self, path: &[u8], done: Step<()>) -> Result<()> {
        match done {
            Ok(()) => Ok(()),
            Err(CopyError::Archive(e)) => Err(Error::Archive(e)),
            Err(CopyError::Refused(why) | CopyError::Blocked(why)) => {
                self.failures.record_text(path, &why)
            }
            Err(CopyError::From(e) | CopyError::To(e)) => self.failures.record(path, e),
        }
    }

    /// One object under the name that the archive has for it.
    fn object(&mut self, attr: &Attr, name: &[u8], path: &[u8]) -> Step<()> {
        let vfs = &**self.fs.vfs();
        let mut member = self.member(attr, name);
        if attr.nlink > 1
            && attr.kind != FileType::Directory
            && let Some((first, more)) = self.links.get_mut(&attr.ino)
        {
            member.kind = MemberKind::HardLink(first.clone());
            *more = more.saturating_sub(1);
            if *more == 0 {
                self.links.remove(&attr.ino);
            }
            return self.writer.begin(&member, &[]).map_err(CopyError::Archive);
        }
        member.kind = match attr.kind {
            FileType::Regular => MemberKind::File,
            FileType::Directory => MemberKind::Directory,
            FileType::Symlink => {
                MemberKind::Symlink(vfs.readlink(attr.ino).map_err(CopyError::From)?)
            }
            FileType::CharDevice => MemberKind::CharDevice(attr.rdev),
            FileType::BlockDevice => MemberKind::BlockDevice(attr.rdev),
            FileType::Fifo => MemberKind::Fifo,
            FileType::Socket => {
                self.failures.note("a socket is left out: archives have none", path);
                return Ok(());
            }
        };
        self.xattrs(attr, &mut member, path);
        if attr.nlink > 1 && attr.kind != FileType::Directory {
            self.links.insert(attr.ino, (member.path.clone(), attr.nlink - 1));
        }
        if member.kind != MemberKind::File {
            return self.writer.begin(&member, &[]).map_err(CopyError::Archive);
        }
        member.size = attr.size;
        let flags = OpenFlags::READ | OpenFlags::CALLER_CACHES | OpenFlags::NO_ACCESS_TIME;
        let fh = vfs.open(attr.ino, flags).map_err(CopyError::From)?;
        let done = self.file(&member, fh);
        let closed = vfs.release(fh).map_err(CopyError::From);
        if done.is_err() {
            self.links.remove(&attr.ino);
        }
        done.and(closed)
    }

    fn member(&self, attr: &Attr, name: &[u8]) -> Member {
        let attr = self.changes.of(attr);
        Member {
            mode: attr.mode,
            uid: attr.uid,
            gid: attr.gid,
            mtime: attr.mtime,
            ..Member::new(name)
        }
    }

    fn xattrs(&mut self, attr: &Attr, member: &mut Member, path: &[u8]) {
        let vfs = &**self.fs.vfs();
        let mut names = vfs.listxattr(attr.ino).unwrap_or_default();
        names.sort();
        for name in names {
            match vfs.getxattr(attr.ino, &name) {
                Ok(mut value) => {
                    self.changes.value(&name, &mut value);
                    member.xattrs.push((name, value));
                }
                Err(e) => {
                    let name = steadfast_vfs::path::shown(&name);
                    self.failures.note(&format!("attribute {name} is not kept ({e})"), path);
                }
            }
        }
    }

    fn file(&mut self, member: &Member, fh: Fh) -> Step<()> {
        let vfs = &**self.fs.vfs();
        let (mut pieces, mut at, mut data): (Vec<Range<u64>>, u64, u64) = (Vec::new(), 0, 0);
        while let Some(piece) =
            next_data(vfs, fh, at, member.size, self.bound).map_err(CopyError::From)?
        {
            at = piece.end;
            let joins = pieces.len() >= PIECES_MAX
                || pieces.last().is_some_and(|last| last.end == piece.start);
            match pieces.last_mut().filter(|_| joins) {
                Some(last) => {
                    data += piece.end - last.end;
                    last.end = piece.end;
                }
                None => {
                    data += piece.end - piece.start;
                    pieces.push(piece);
                }
            }
            if data > self.bound.bytes {
                return Err(CopyError::Refused(format!("{BEYOND}: left out")));
            }
        }
        self.writer.begin(member, &pieces).map_err(CopyError::Archive)?;
        let mut unread = None;
        for piece in pieces {
            let mut at = piece.start;
            while at < piece.end {
                // OK to cast: at most CHUNK.
                let len = (piece.end - at).min(CHUNK) as usize;
                let part = match vfs.read(fh, at, len) {
                    Ok(part) if !part.is_empty() => part,
                    Ok(_) => vec![0; len].into(),
                    Err(e) => {
                        unread.get_or_insert((at, e));
                        vec![0; len].into()
                    }
                };
                self.writer.data(&part).map_err(CopyError::Archive)?;
                at += part.len() as u64;
            }
        }
        match unread {
            None => Ok(()),
            Some((at, e)) => Err(CopyError::Refused(unreadable(at, &e))),
        }
    }
}

fn unreadable(at: u64, e: &FsError) -> String {
    format!("{e}; in the archive there are zeros instead, from byte {at} on")
}
