//! Unpacking: member by member, as they come.
//!
//! Memory is bounded by the number of folders, whose times are set at the end, because what is made
//! in them changes them; and, where whiteouts are applied, by the number of objects.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;

use bytes::Bytes;
use steadfast_tar::{ACCESS_ACL, Member, MemberKind, Reader};
use steadfast_vfs::path::{resolve, shown, why_refused};
use steadfast_vfs::{
    Attr, FileSystem as Vfs, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags, SetAttr,
    SetTime, SetXattr, Timestamp,
};

use super::whiteouts::{self, Whiteout, Whiteouts};
use crate::error::{Error, Result};
use crate::tree::copy::{CopyError, group_of_acl, nothing_fits};
use crate::tree::failures::{TreeFailures, to_path};
use crate::tree::owners::Changes;
use crate::tree::pieces::CHUNK;

/// Spare names that are tried before giving up.
const SPARE_TRIES: u32 = 100;

/// An archive that is being unpacked.
struct Unpack<'c, 'f, 'h> {
    fs: &'c dyn Vfs,
    /// The folder that it goes into.
    top: Ino,
    changes: &'c Changes,
    whiteouts: Whiteouts,
    failures: &'f mut TreeFailures<'h>,
    /// Folders of the archive, with their times.
    folders: BTreeMap<Ino, (Timestamp, Timestamp)>,
    /// What this archive has made or named, where whiteouts are applied.
    made: HashSet<Ino>,
    buffer: Vec<u8>,
}

type Step<T> = std::result::Result<T, CopyError>;

/// Unpacks an archive into the folder `to`.
pub(in crate::tree) fn unpack(
    fs: &dyn Vfs,
    archive: &mut dyn Read,
    to: &[u8],
    (changes, whiteouts): (&Changes, Whiteouts),
    failures: &mut TreeFailures<'_>,
) -> Result<()> {
    let top = resolve(fs, to, true).map_err(|e| failures.error(to, e))?;
    if top.kind != FileType::Directory {
        return Err(failures.error(to, FsError::NotDirectory));
    }
    let mut reader = Reader::new(archive);
    let mut unpack = Unpack {
        fs,
        top: top.ino,
        changes,
        whiteouts,
        failures,
        folders: BTreeMap::new(),
        made: HashSet::new(),
        // OK to cast: a MiB.
        buffer: vec![0; CHUNK as usize],
    };
    let mut any = false;
    while let Some(member) = reader.next_member().map_err(Error::Archive)? {
        any = true;
        let done = unpack.member(&member, &mut reader);
        unpack.outcome(&member, done)?;
    }
    unpack.end()?;
    if !reader.has_end() {
        let what = match any {
            true => "the archive has no end mark: it may be cut off behind this",
            false => "the archive is empty",
        };
        unpack.failures.note_at_last(what, to);
    }
    Ok(())
}

impl Unpack<'_, '_, '_> {
    /// What came of one member. Where nothing more can be written the work ends.
    fn outcome(&mut self, member: &Member, done: Step<()>) -> Result<()> {
        let path = &member.path;
        match done {
            Ok(()) => {
                self.failures.written(path);
                Ok(())
            }
            Err(CopyError::Archive(e)) => Err(Error::Archive(e)),
            Err(CopyError::Refused(why) | CopyError::Blocked(why)) => {
                self.failures.record_text(path, &why)
            }
            Err(CopyError::To(e)) if nothing_fits(&e) => Err(self.failures.error(path, e)),
            Err(CopyError::From(e) | CopyError::To(e)) => self.failures.record(path, e),
        }
    }

    fn member(&mut self, member: &Member, reader: &mut Reader<&mut dyn Read>) -> Step<()> {
        if let Some(why) = &member.refused {
            return Err(CopyError::Refused(format!("left out: {why}")));
        }
        for (name, why) in &member.not_kept {
            self.not_kept(member, name, why);
        }
        let names = self.names_of(&member.path, &member.path)?;
        let Some((name, folders)) = names.split_last() else {
            if member.kind != MemberKind::Directory {
                return Err(CopyError::Refused("has no name".into()));
            }
            return self.attributes(member, self.top);
        };
        let whiteout = Whiteout::of(name).filter(|_| self.whiteouts != Whiteouts::Keep);
        if let Some(whiteout) = whiteout {
            return self.whiteout(&whiteout, folders);
        }
        let dir = self.folder_of(folders)?;
        if let MemberKind::HardLink(target) = &member.kind {
            return self.link(member, target, dir, name);
        }
        let there = match self.fs.lookup(dir, name) {
            Ok(there) => Some(there),
            Err(FsError::NotFound) => None,
            Err(e) => return Err(CopyError::To(e)),
        };
        let ino = match there {
            None => self.object(member, reader, dir, name)?,
            Some(there) if member.kind == MemberKind::Directory && is_folder(&there) => {
                self.attributes(member, there.ino)?;
                there.ino
            }
            Some(there) => {
                self.make_way(&there, dir, name)?;
                if is_folder(&there) {
                    self.object(member, reader, dir, name)?
                } else {
                    self.replacement(member, reader, dir, name)?
                }
            }
        };
        self.note_made(ino);
        if member.kind != MemberKind::Directory {
            self.fs.forget_inode(ino);
        }
        Ok(())
    }

    fn note_made(&mut self, ino: Ino) {
        if self.whiteouts == Whiteouts::Apply {
            self.made.insert(ino);
        }
    }

    /// The names of a path, each fit for a folder.
    fn names_of<'p>(&mut self, path: &'p [u8], of: &[u8]) -> Step<Vec<&'p [u8]>> {
        if path.starts_with(b"/") {
            self.failures.note("the / in front of the name is left out", of);
        }
        let names: Vec<&[u8]> =
            path.split(|byte| *byte == b'/').filter(|n| !matches!(*n, b"" | b".")).collect();
        for name in &names {
            if *name == b".." {
                let why = "left out: '..' is no name that leads into the target";
                return Err(CopyError::Refused(why.into()));
            }
            if let Some(why) = why_refused(name) {
                return Err(CopyError::Refused(format!("left out: {why}")));
            }
        }
        Ok(names)
    }

    /// Goes down to a folder; those that are not there are made. Links are not followed.
    fn folder_of(&mut self, names: &[&[u8]]) -> Step<Ino> {
        let mut at = self.top;
        for name in names {
            at = match self.fs.lookup(at, name) {
                Ok(there) => below(&there, name)?,
                Err(FsError::NotFound) => {
                    let (uid, gid) = self.changes.owner(0, 0);
                    let node = NewNode { mode: 0o755, uid, gid, umask: 0 };
                    let made = self.fs.mkdir(at, name, node).map_err(CopyError::To)?;
                    self.note_made(made.ino);
                    made.ino
                }
                Err(e) => return Err(CopyError::To(e)),
            };
        }
        Ok(at)
    }

    /// What stands at a name goes, if it may.
    fn make_way(&mut self, there: &Attr, dir: Ino, name: &[u8]) -> Step<()> {
        if !is_folder(there) {
            return Ok(());
        }
        if self.whiteouts == Whiteouts::Apply && !self.made.contains(&there.ino) {
            whiteouts::remove(self.fs, dir, name, &self.made).map_err(CopyError::To)?;
        }
        match self.fs.rmdir(dir, name) {
            Ok(()) | Err(FsError::NotFound) => {
                self.folders.remove(&there.ino);
                Ok(())
            }
            Err(FsError::NotEmpty) => {
                let why = "is in the way: it exists and is a folder that is not empty";
                Err(CopyError::Blocked(why.into()))
            }
            Err(e) => Err(CopyError::To(e)),
        }
    }

    /// Makes an object beside the one that it replaces, and renames it over that.
    fn replacement(
        &mut self,
        member: &Member,
        reader: &mut Reader<&mut dyn Read>,
        dir: Ino,
        name: &[u8],
    ) -> Step<Ino> {
        let spare = self.spare(dir)?;
        let made = self.object(member, reader, dir, &spare).and_then(|ino| {
            if member.kind == MemberKind::Directory {
                // A folder replaces nothing but a folder.
                self.fs.unlink(dir, name).map_err(CopyError::To)?;
            }
            let renamed = self.fs.rename((dir, &spare), (dir, name), RenameFlags::empty());
            renamed.map_err(CopyError::To).map(|()| ino)
        });
        made.inspect_err(|_| {
            // OK to ignore: it may not have come to that, and the first error is what to say.
            let _ = self.fs.unlink(dir, &spare).or_else(|_| self.fs.rmdir(dir, &spare));
        })
    }

    /// A name that is free.
    fn spare(&self, dir: Ino) -> Step<Vec<u8>> {
        for number in 0..SPARE_TRIES {
            let name = format!(".steadfast-{number:x}").into_bytes();
            match self.fs.lookup(dir, &name) {
                Err(FsError::NotFound) => return Ok(name),
                Err(e) => return Err(CopyError::To(e)),
                Ok(_) => {}
            }
        }
        Err(CopyError::To(FsError::Exists))
    }

    fn link(&mut self, member: &Member, target: &[u8], dir: Ino, name: &[u8]) -> Step<()> {
        let names = self.names_of(target, &member.path)?;
        let mut at = self.top;
        let missing = || {
            let target = shown(target);
            CopyError::Refused(format!("left out: a hard link to {target}, which is not there"))
        };
        let mut found = None;
        for part in &names {
            if let Some(there) = &found {
                at = below(there, part)?;
            }
            match self.fs.lookup(at, part) {
                Ok(there) => found = Some(there),
                Err(FsError::NotFound) => return Err(missing()),
                Err(e) => return Err(CopyError::To(e)),
            }
        }
        let found = found.ok_or_else(missing)?;
        if is_folder(&found) {
            return Err(CopyError::Refused("left out: a hard link to a folder".into()));
        }
        match self.fs.link(found.ino, dir, name) {
            Err(FsError::Exists) => {
                let there = self.fs.lookup(dir, name).map_err(CopyError::To)?;
                if there.ino == found.ino {
                    return Ok(());
                }
                self.make_way(&there, dir, name)?;
                let spare = self.spare(dir)?;
                self.fs.link(found.ino, dir, &spare).map_err(CopyError::To)?;
                let renamed = self.fs.rename((dir, &spare), (dir, name), RenameFlags::empty());
                renamed.map_err(CopyError::To)?;
            }
            linked => drop(linked.map_err(CopyError::To)?),
        }
        self.note_made(found.ino);
        Ok(())
    }

    /// Does what a whiteout in the folder of these names says.
    fn whiteout(&mut self, whiteout: &Whiteout<'_>, folders: &[&[u8]]) -> Step<()> {
        if self.whiteouts == Whiteouts::Overlay {
            let dir = self.folder_of(folders)?;
            let marked = match whiteout {
                Whiteout::Unused => Ok(()),
                Whiteout::Opaque => {
                    self.fs.setxattr(dir, b"trusted.overlay.opaque", b"y", SetXattr::Any)
                }
                Whiteout::Gone(name) => {
                    let device = (FileType::CharDevice, 0);
                    self.fs
                        .mknod(dir, name, device, NewNode { mode: 0, ..NewNode::default() })
                        .map(drop)
                }
            };
            return marked.map_err(CopyError::To);
        }
        let mut at = self.top;
        for name in folders {
            match self.fs.lookup(at, name) {
                Ok(there) if is_folder(&there) => at = there.ino,
                // Nothing is there that could go.
                Ok(_) | Err(FsError::NotFound) => return Ok(()),
                Err(e) => return Err(CopyError::To(e)),
            }
        }
        let removed = match whiteout {
            Whiteout::Gone(name) => whiteouts::remove(self.fs, at, name, &self.made),
            Whiteout::Opaque => whiteouts::empty(self.fs, at, &self.made),
            Whiteout::Unused => Ok(()),
        };
        removed.map_err(CopyError::To)
    }

    /// Makes the object under a name that is free, with all that belongs to it.
    fn object(
        &mut self,
        member: &Member,
        reader: &mut Reader<&mut dyn Read>,
        dir: Ino,
        name: &[u8],
    ) -> Step<Ino> {
        let (uid, gid) = self.changes.owner(member.uid, member.gid);
        let node = NewNode { mode: 0o600, uid, gid, umask: 0 };
        let special = |kind, number| self.fs.mknod(dir, name, (kind, number), node);
        let made = match &member.kind {
            MemberKind::File => {
                let made = self.fs.create(dir, name, node, OpenFlags::WRITE);
                let (attr, fh) = made.map_err(CopyError::To)?;
                let filled = self.contents(member, reader, attr.ino, fh);
                let closed = self.fs.release(fh).map_err(CopyError::To);
                if let Err(e) = filled.and(closed) {
                    // OK to ignore: the first error is what to say.
                    let _ = self.fs.unlink(dir, name);
                    return Err(e);
                }
                Ok(attr)
            }
            MemberKind::Directory => self.fs.mkdir(dir, name, NewNode { mode: 0o700, ..node }),
            MemberKind::Symlink(target) if target.is_empty() || target.contains(&0) => {
                return Err(CopyError::Refused("left out: a symbolic link to nothing".into()));
            }
            MemberKind::Symlink(target) => self.fs.symlink(dir, name, target, node),
            MemberKind::CharDevice(number) => special(FileType::CharDevice, *number),
            MemberKind::BlockDevice(number) => special(FileType::BlockDevice, *number),
            MemberKind::Fifo => special(FileType::Fifo, 0),
            MemberKind::HardLink(_) => Err(FsError::Invalid { what: "a hard link of its own" }),
        };
        let made = made.map_err(CopyError::To)?.ino;
        self.attributes(member, made)?;
        Ok(made)
    }

    fn contents(
        &mut self,
        member: &Member,
        reader: &mut Reader<&mut dyn Read>,
        ino: Ino,
        fh: steadfast_vfs::Fh,
    ) -> Step<()> {
        let mut end = 0;
        while let Some((at, len)) = reader.data(&mut self.buffer).map_err(CopyError::Archive)? {
            let mut part = Bytes::copy_from_slice(self.buffer.get(..len).unwrap_or_default());
            end = at;
            while !part.is_empty() {
                let n = self.fs.write(fh, end, part.clone()).map_err(CopyError::To)?;
                if n == 0 {
                    return Err(CopyError::To(FsError::Io { what: format!("at byte {end}") }));
                }
                end += n as u64;
                part = part.slice(n..);
            }
        }
        if end < member.size {
            let size = SetAttr { size: Some(member.size), ..SetAttr::default() };
            self.fs.setattr(ino, size).map_err(CopyError::To)?;
        }
        Ok(())
    }

    /// Gives an object what its member says: owner, attributes, mode, times, in this order.
    fn attributes(&mut self, member: &Member, ino: Ino) -> Step<()> {
        let (uid, gid) = self.changes.owner(member.uid, member.gid);
        let now = self.fs.getattr(ino).map_err(CopyError::To)?;
        if (now.uid, now.gid) != (uid, gid) {
            let owner = SetAttr { uid: Some(uid), gid: Some(gid), ..SetAttr::default() };
            self.fs.setattr(ino, owner).map_err(CopyError::To)?;
        }
        // What a default list of the folder gave it, or an older object had.
        for name in self.fs.listxattr(ino).unwrap_or_default() {
            if !member.xattrs.iter().any(|(wanted, _)| *wanted == name)
                && let Err(e) = self.fs.removexattr(ino, &name)
                && e != FsError::NoData
            {
                self.not_kept(member, &name, &format!("not removed: {e}"));
            }
        }
        let mut mode = member.mode;
        for (name, value) in &member.xattrs {
            let mut value = value.clone();
            self.changes.value(name, &mut value);
            match self.fs.setxattr(ino, name, &value, SetXattr::Any) {
                Ok(()) => {}
                Err(e @ FsError::ReadOnly { .. }) => return Err(CopyError::To(e)),
                Err(e) => {
                    if name == ACCESS_ACL
                        && let Some(group) = group_of_acl(&value)
                    {
                        // The group's bits were the list's mask.
                        mode = mode & !0o070 | (mode & group << 3);
                    }
                    self.not_kept(member, name, &e.to_string());
                }
            }
        }
        let is_link = matches!(member.kind, MemberKind::Symlink(_));
        let (atime, mtime) = self.changes.times(member.atime.unwrap_or(member.mtime), member.mtime);
        let set = SetAttr {
            mode: (!is_link).then_some(mode),
            atime: Some(SetTime::At(atime)),
            mtime: Some(SetTime::At(mtime)),
            ..SetAttr::default()
        };
        let now = self.fs.setattr(ino, set).map_err(CopyError::To)?;
        if (now.atime, now.mtime) != (atime, mtime) {
            let what = "times are not kept exactly: beyond what the target can hold";
            self.failures.note(what, &member.path);
        }
        if member.kind == MemberKind::Directory {
            self.folders.insert(ino, (atime, mtime));
        }
        Ok(())
    }

    fn not_kept(&mut self, member: &Member, name: &[u8], why: &str) {
        let what = format!("attribute {} is not kept ({why})", shown(name));
        self.failures.note(&what, &member.path);
    }

    /// Gives folders the times that making things in them has changed.
    fn end(&mut self) -> Result<()> {
        for (ino, (atime, mtime)) in std::mem::take(&mut self.folders) {
            let set = SetAttr {
                atime: Some(SetTime::At(atime)),
                mtime: Some(SetTime::At(mtime)),
                ..SetAttr::default()
            };
            if let Err(e) = self.fs.setattr(ino, set) {
                // One that a later member has replaced.
                if e != FsError::NotFound {
                    return Err(Error::at("unpack", &to_path(b"/"))(e));
                }
            }
        }
        Ok(())
    }
}

fn is_folder(attr: &Attr) -> bool {
    attr.kind == FileType::Directory
}

/// The folder that a path goes on in.
fn below(there: &Attr, name: &[u8]) -> Step<Ino> {
    if is_folder(there) {
        return Ok(there.ino);
    }
    let name = shown(name);
    Err(CopyError::Refused(format!(
        "left out: its path leads through '{name}', which is no folder"
    )))
}
