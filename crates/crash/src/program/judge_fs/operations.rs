//! The operations.

use bytes::Bytes;
use steadfast_vfs::{
    Attr, Dirent, Fallocate, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags,
    RenameFlags, Result, SeekTo, SetAttr, SetTime, SetXattr, StatFs,
};

use super::node::Body;
use super::reads::ReadSet;
use super::{FsState, JudgeFs, ROOT, checked, now};

/// What a file may have at the most, as the kernel has it.
const SIZE_MAX: u64 = i64::MAX as u64;

impl FileSystem for JudgeFs {
    fn root(&self) -> Ino {
        Ino(ROOT)
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.lock().lookup(dir, name)
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        let mut state = self.lock();
        state.note(ino, ReadSet::look_up);
        Ok(state.node(ino)?.shown())
    }

    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        let mut state = self.lock();
        state.note(ino, ReadSet::look_up);
        if let Some(size) = set.size {
            state.resize(ino, size)?;
        }
        let node = state.node_mut(ino)?;
        if node.judge == 0 {
            return Err(FsError::NotPermitted { what: "this folder is not the judge's" });
        }
        let attr = &mut node.attr;
        let now = now();
        let time = |time: SetTime| match time {
            SetTime::Now => now,
            SetTime::At(at) => at,
        };
        attr.mode = set.mode.map_or(attr.mode, |mode| mode & 0o7777);
        (attr.uid, attr.gid) = (set.uid.unwrap_or(attr.uid), set.gid.unwrap_or(attr.gid));
        attr.atime = set.atime.map_or(attr.atime, time);
        attr.mtime = set.mtime.map_or(attr.mtime, time);
        attr.ctime = now;
        Ok(node.shown())
    }

    fn create(&self, dir: Ino, name: &[u8], node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        let mut state = self.lock();
        let attr = state.make((dir, name), (FileType::Regular, 0), node, Body::empty_file())?;
        Ok((attr, state.open(attr.ino, flags)?))
    }

    fn mkdir(&self, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        self.lock().make((dir, name), (FileType::Directory, 0), node, Body::empty())
    }

    fn symlink(&self, dir: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        let body = Body::Link(target.to_vec());
        self.lock().make((dir, name), (FileType::Symlink, 0), node, body)
    }

    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        let mut state = self.lock();
        state.note(ino, ReadSet::look_up);
        match &state.node(ino)?.body {
            Body::Link(target) => Ok(target.clone()),
            _ => Err(FsError::Invalid { what: "no symbolic link" }),
        }
    }

    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.lock().link(ino, dir, checked(name)?)
    }

    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        let mut state = self.lock();
        let number = state.named(dir, name)?;
        if state.node(number)?.body.is_directory() {
            return Err(FsError::IsDirectory);
        }
        state.changed_entries(dir)?.remove(name);
        state.unnamed(number.0);
        Ok(())
    }

    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        let mut state = self.lock();
        let number = state.named(dir, name)?;
        if !state.ask_empty(number)? {
            return Err(FsError::NotEmpty);
        }
        state.changed_entries(dir)?.remove(name);
        state.node_mut(dir)?.lose_link();
        state.unnamed(number.0);
        Ok(())
    }

    fn rename(&self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: RenameFlags) -> Result<()> {
        self.lock().rename(from, (to.0, checked(to.1)?), flags)
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        let mut state = self.lock();
        match &state.node(ino)?.body {
            Body::File(_) => {}
            Body::Directory(_) => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid { what: "no regular file" }),
        }
        if flags.contains(OpenFlags::TRUNCATE) {
            state.resize(ino, 0)?;
        }
        state.open(ino, flags)
    }

    fn release(&self, fh: Fh) -> Result<()> {
        let mut state = self.lock();
        let (ino, _) = state.open.remove(&fh).ok_or(FsError::BadHandle)?;
        if let Some(node) = state.nodes.get_mut(&ino) {
            node.opened -= 1;
            if node.opened == 0 && node.attr.nlink == 0 {
                node.body.clear();
            }
        }
        Ok(())
    }

    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<Bytes> {
        let mut state = self.lock();
        let (ino, _) = state.handle(fh)?;
        let node = state.node_mut(ino)?;
        let end = offset.saturating_add(len as u64).min(node.attr.size);
        if offset >= end {
            return Ok(Bytes::new());
        }
        node.note_read(offset, end);
        match &node.body {
            Body::File(pieces) => Ok(pieces.bytes(offset, end).into()),
            _ => Err(FsError::BadHandle),
        }
    }

    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize> {
        let mut state = self.lock();
        let (ino, flags) = state.handle(fh)?;
        let len = data.len();
        let judge = state.node(ino)?.judge;
        state.take_space(judge, len as u64)?;
        let node = state.node_mut(ino)?;
        let append = flags.contains(OpenFlags::APPEND);
        let offset = if append { node.attr.size } else { offset };
        let end = offset.checked_add(len as u64).filter(|end| *end <= SIZE_MAX);
        let end = end.ok_or(FsError::FileTooLarge)?;
        if offset > node.attr.size {
            node.resize(offset);
        }
        let Body::File(pieces) = &mut node.body else { return Err(FsError::BadHandle) };
        pieces.write(offset, data);
        node.written.insert(offset, end);
        node.attr.size = node.attr.size.max(end);
        node.changed();
        Ok(len)
    }

    fn fsync(&self, fh: Fh, _data_only: bool) -> Result<()> {
        self.lock().handle(fh).map(drop)
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        self.lock().readdir(dir, from)
    }

    fn fsyncdir(&self, dir: Ino) -> Result<()> {
        self.lock().entries(dir).map(drop)
    }

    fn statfs(&self) -> Result<StatFs> {
        Ok(self.lock().statfs())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn mknod(&self, dir: Ino, name: &[u8], what: (FileType, u64), node: NewNode) -> Result<Attr> {
        let is_file = what.0 == FileType::Regular;
        let body = if is_file { Body::empty_file() } else { Body::Other };
        self.lock().make((dir, name), what, node, body)
    }

    fn fallocate(&self, fh: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        let mut state = self.lock();
        let (ino, _) = state.handle(fh)?;
        let node = state.node_mut(ino)?;
        let end = offset.checked_add(len).filter(|end| *end <= SIZE_MAX);
        let end = end.ok_or(FsError::FileTooLarge)?;
        match what {
            Fallocate::Allocate { keep_size } => {
                if !keep_size && end > node.attr.size {
                    node.resize(end);
                }
                Ok(())
            }
            Fallocate::PunchHole => {
                if let Body::File(pieces) = &mut node.body {
                    pieces.clear(offset, end);
                    node.written.insert(offset, end);
                    node.changed();
                }
                Ok(())
            }
            // As in memory elsewhere (tmpfs).
            _ => Err(FsError::Unsupported { what: "this kind of fallocate".into() }),
        }
    }

    fn seek(&self, fh: Fh, offset: u64, to: SeekTo) -> Result<u64> {
        let mut state = self.lock();
        let (ino, _) = state.handle(fh)?;
        state.note(ino, ReadSet::ask_holes);
        let node = state.node(ino)?;
        let size = node.attr.size;
        let Body::File(pieces) = &node.body else { return Err(FsError::BadHandle) };
        if offset >= size {
            return Err(FsError::NoAddress);
        }
        let data = pieces.data(offset).filter(|(begin, _)| *begin < size);
        match (to, data) {
            (SeekTo::Data, None) => Err(FsError::NoAddress),
            (SeekTo::Data, Some((begin, _))) => Ok(begin),
            (SeekTo::Hole, Some((begin, end))) if begin == offset => Ok(end.min(size)),
            (SeekTo::Hole, _) => Ok(offset),
        }
    }

    fn getxattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.lock().node(ino)?.xattrs.get(name).cloned().ok_or(FsError::NoData)
    }

    fn setxattr(&self, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        if name.starts_with(b"system.") {
            return Err(FsError::Unsupported { what: "access control lists here".into() });
        }
        let mut state = self.lock();
        let node = state.node(ino)?;
        let (judge, is_there) = (node.judge, node.xattrs.contains_key(name));
        match how {
            SetXattr::Create if is_there => return Err(FsError::Exists),
            SetXattr::Replace if !is_there => return Err(FsError::NoData),
            _ => {}
        }
        state.take_space(judge, (name.len() + value.len()) as u64)?;
        state.node_mut(ino)?.xattrs.insert(name.to_vec(), value.to_vec());
        Ok(())
    }

    fn listxattr(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        Ok(self.lock().node(ino)?.xattrs.keys().cloned().collect())
    }

    fn removexattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        self.lock().node_mut(ino)?.xattrs.remove(name).map(drop).ok_or(FsError::NoData)
    }
}

impl FsState {
    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr> {
        let number = match name {
            b"." => dir,
            b".." => Ino(self.node(dir)?.above),
            _ if dir.0 == ROOT => {
                let number = std::str::from_utf8(name).ok().and_then(|name| name.split_once('-'));
                let number = number.and_then(|(number, _)| number.parse().ok());
                let number = number.filter(|judge| self.name(*judge).as_bytes() == name);
                let folder = number.and_then(|number: u64| self.judges.get(&number));
                Ino(folder.ok_or(FsError::NotFound)?.root)
            }
            _ => {
                self.note_name(dir, name);
                self.named(dir, name)?
            }
        };
        self.note(number, ReadSet::look_up);
        Ok(self.node(number)?.shown())
    }

    /// What has a name.
    fn named(&self, dir: Ino, name: &[u8]) -> Result<Ino> {
        let (number, _) = self.entries(dir)?.get(name).ok_or(FsError::NotFound)?;
        Ok(Ino(*number))
    }

    /// Whether a directory is empty: who is told has listed it.
    fn ask_empty(&mut self, dir: Ino) -> Result<bool> {
        self.note(dir, ReadSet::list);
        Ok(self.entries(dir)?.is_empty())
    }

    fn handle(&self, fh: Fh) -> Result<(Ino, OpenFlags)> {
        let (ino, flags) = self.open.get(&fh).ok_or(FsError::BadHandle)?;
        Ok((Ino(*ino), *flags))
    }

    fn open(&mut self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        self.node_mut(ino)?.opened += 1;
        let fh = Fh(self.number());
        self.open.insert(fh, (ino.0, flags));
        Ok(fh)
    }

    fn resize(&mut self, ino: Ino, size: u64) -> Result<()> {
        let node = self.node_mut(ino)?;
        match &node.body {
            _ if size > SIZE_MAX => Err(FsError::FileTooLarge),
            Body::File(_) => {
                node.resize(size);
                Ok(())
            }
            Body::Directory(_) => Err(FsError::IsDirectory),
            _ => Err(FsError::Invalid { what: "no regular file" }),
        }
    }

    fn link(&mut self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.same_judge(ino, dir)?;
        if self.node(ino)?.body.is_directory() {
            return Err(FsError::NotPermitted { what: "a second name of a directory" });
        }
        if self.changed_entries(dir)?.contains_key(name) {
            return Err(FsError::Exists);
        }
        self.bind(dir.0, name, ino.0);
        let node = self.node_mut(ino)?;
        (node.attr.nlink, node.attr.ctime) = (node.attr.nlink + 1, now());
        Ok(node.shown())
    }

    /// Judges share nothing.
    fn same_judge(&self, one: Ino, other: Ino) -> Result<()> {
        match self.node(one)?.judge == self.node(other)?.judge {
            true => Ok(()),
            false => Err(FsError::CrossDevice { what: "a judge's folder" }),
        }
    }

    fn rename(
        &mut self,
        (from_dir, from): (Ino, &[u8]),
        (to_dir, to): (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<()> {
        if flags.contains(RenameFlags::WHITEOUT) {
            return Err(FsError::Invalid { what: "RENAME_WHITEOUT" });
        }
        self.same_judge(from_dir, to_dir)?;
        let source = self.named(from_dir, from)?;
        let target = match self.named(to_dir, to) {
            Err(FsError::NotFound) => None,
            target => Some(target?),
        };
        let moves_directory = self.node(source)?.body.is_directory();
        if flags.contains(RenameFlags::EXCHANGE) {
            let target = target.ok_or(FsError::NotFound)?;
            self.take_name(from_dir, from)?;
            self.take_name(to_dir, to)?;
            self.give_name(to_dir, to, source)?;
            return self.give_name(from_dir, from, target);
        }
        if let Some(target) = target {
            if flags.contains(RenameFlags::NO_REPLACE) {
                return Err(FsError::Exists);
            }
            if target == source {
                return Ok(());
            }
            match (moves_directory, self.node(target)?.body.is_directory()) {
                (true, false) => return Err(FsError::NotDirectory),
                (false, true) => return Err(FsError::IsDirectory),
                (true, true) if !self.ask_empty(target)? => return Err(FsError::NotEmpty),
                _ => {}
            }
            self.take_name(to_dir, to)?;
            self.unnamed(target.0);
        }
        self.take_name(from_dir, from)?;
        self.give_name(to_dir, to, source)?;
        self.node_mut(source)?.attr.ctime = now();
        Ok(())
    }

    /// Removes a name, and nothing else.
    fn take_name(&mut self, dir: Ino, name: &[u8]) -> Result<()> {
        let gone = self.changed_entries(dir)?.remove(name);
        let gone = gone.and_then(|(number, _)| self.nodes.get(&number));
        if gone.is_some_and(|node| node.body.is_directory()) {
            self.node_mut(dir)?.lose_link();
        }
        Ok(())
    }

    fn give_name(&mut self, dir: Ino, name: &[u8], what: Ino) -> Result<()> {
        self.changed_entries(dir)?;
        self.bind(dir.0, name, what.0);
        if self.node(what)?.body.is_directory() {
            self.node_mut(dir)?.attr.nlink += 1;
        }
        Ok(())
    }

    /// The entries in the order in which the names were given: that of a listing that goes on is
    /// not changed by others that come and go.
    fn readdir(&mut self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        self.note(dir, ReadSet::list);
        let above = Ino(self.node(dir)?.above);
        let mut positions: Vec<(u64, Ino, &[u8])> =
            vec![(1, dir, &b"."[..]), (2, above, &b".."[..])];
        let entries = self.entries(dir)?.iter();
        // The first number that is given is beyond these two.
        let named = entries.map(|(name, (number, at))| (*at + 2, Ino(*number), &name[..]));
        positions.extend(named);
        positions.retain(|(at, ..)| *at > from);
        positions.sort_unstable();
        let entry = |(next, ino, name): (u64, Ino, &[u8])| {
            let kind = self.nodes.get(&ino.0).map_or(FileType::Directory, |node| node.attr.kind);
            Dirent { ino, kind, name: name.to_vec(), next }
        };
        Ok(positions.into_iter().map(entry).collect())
    }
}
