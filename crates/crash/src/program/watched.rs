//! Notes the calls that go through to a file system.
//!
//! A call's number, from 1, is also that of the requests that are done for it
//! ([`Event::call`](steadfast_devices::filter::record::Event)).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_devices::filter::record::RecordLog;
use steadfast_devices::store::Digest;
use steadfast_runtime::{InCall, Mutex, in_call};
use steadfast_vfs::{
    Attr, DirEntry, Fallocate, Fh, FileExtent, FileSystem, FileType, FsError, Ino, NewNode,
    OpenFlags, RenameFlags, Result, SeekTo, SetAttr, SetXattr, Shutdown, StatFs, TransactPolicy,
};

use super::calls::{Call, Kind};
use super::tree::{Contents, contents_of};

/// Notes of calls in the record carry this label; what they mean is in the list of calls.
pub const CALL: u64 = 0x6361_6c6c;
/// Files up to this size are read back when they are synced or renamed, to know what they held.
const READ_BACK_MAX: u64 = 16 << 20;

#[derive(Default)]
struct Seen {
    calls: Vec<Call>,
    /// Where an inode was seen last: its directory and name there.
    places: HashMap<Ino, (Ino, Vec<u8>)>,
    opened: HashMap<Fh, (Ino, OpenFlags)>,
}

impl Seen {
    /// The path of an inode, as far as it is known.
    fn path(&self, root: Ino, ino: Ino) -> Vec<u8> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = ino;
        // A moved directory may leave a circle of what was seen at different times.
        while at != root && names.len() < 256 {
            let Some((dir, name)) = self.places.get(&at) else { break };
            names.push(name);
            at = *dir;
        }
        names.reverse();
        names.join(&b'/')
    }

    fn place(&self, root: Ino, dir: Ino, name: &[u8]) -> Vec<u8> {
        let mut path = self.path(root, dir);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        path
    }
}

/// A file system whose calls are noted.
pub struct Watched {
    next: Arc<dyn FileSystem>,
    log: RecordLog,
    seen: Mutex<Seen>,
}

/// What is known of a call before it is made.
#[derive(Default)]
struct About {
    ino: u64,
    replaced: u64,
    path: Vec<u8>,
    other: Vec<u8>,
    offset: u64,
    contents: Option<Contents>,
}

impl Watched {
    /// Notes the calls to `next`, in the order of `log`.
    pub fn new(next: Arc<dyn FileSystem>, log: &RecordLog) -> Watched {
        Watched { next, log: log.clone(), seen: Mutex::default() }
    }

    /// The calls noted so far, in the order in which they were made.
    pub fn calls(&self) -> Vec<Call> {
        self.seen.lock().calls.clone()
    }

    fn path(&self, ino: Ino) -> Vec<u8> {
        self.seen.lock().path(self.next.root(), ino)
    }

    fn place(&self, dir: Ino, name: &[u8]) -> Vec<u8> {
        self.seen.lock().place(self.next.root(), dir, name)
    }

    fn found(&self, dir: Ino, name: &[u8], attr: &Attr) {
        if name != b"." && name != b".." {
            self.seen.lock().places.insert(attr.ino, (dir, name.to_vec()));
        }
    }

    fn of_handle(&self, fh: Fh) -> Option<(Ino, OpenFlags)> {
        self.seen.lock().opened.get(&fh).copied()
    }

    /// Notes that a call begins: its number, and what names it to the recorder of the devices.
    fn begin(&self, kind: Kind, about: About) -> (usize, InCall) {
        let mut seen = self.seen.lock();
        // Under the lock, so that the list is in the order of the moments.
        let started = self.log.note(CALL, [kind as u64, seen.calls.len() as u64, 0]);
        let About { ino, replaced, path, other, offset, contents } = about;
        seen.calls.push(Call {
            kind,
            started,
            returned: None,
            failed: false,
            ino,
            replaced,
            path,
            other,
            offset,
            contents,
            lost: None,
        });
        (seen.calls.len() - 1, in_call(seen.calls.len() as u64))
    }

    fn end(&self, number: usize, failed: bool, more: impl FnOnce(&mut Call)) {
        let mut seen = self.seen.lock();
        let returned = self.log.note(CALL, [u64::MAX, number as u64, failed.into()]);
        // OK to index: calls are never removed.
        let call = &mut seen.calls[number];
        call.returned = Some(returned);
        call.failed = failed;
        more(call);
    }

    fn noted<T>(&self, kind: Kind, about: About, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let (number, in_call) = self.begin(kind, about);
        let answer = call();
        drop(in_call);
        self.end(number, answer.is_err(), |_| ());
        answer
    }

    /// Makes a new inode, under the name given.
    fn made<T>(
        &self,
        kind: Kind,
        (dir, name): (Ino, &[u8]),
        call: impl FnOnce() -> Result<T>,
        attr: impl FnOnce(&T) -> Attr,
    ) -> Result<T> {
        let about = About { path: self.place(dir, name), ..About::default() };
        let (number, in_call) = self.begin(kind, about);
        let answer = call();
        drop(in_call);
        let attr = answer.as_ref().ok().map(attr);
        if let Some(attr) = &attr {
            self.found(dir, name, attr);
        }
        self.end(number, answer.is_err(), |call| call.ino = attr.map_or(0, |a| a.ino.0));
        answer
    }

    /// What a regular file holds; `None` if that is not known.
    fn holds(&self, ino: Ino) -> Option<Contents> {
        let attr = self.next.getattr(ino).ok()?;
        if attr.kind != FileType::Regular {
            return None;
        }
        contents_of(&*self.next, ino, READ_BACK_MAX).ok().flatten()
    }

    fn synced(
        &self,
        kind: Kind,
        ino: Option<Ino>,
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let path = ino.map(|ino| self.path(ino)).unwrap_or_default();
        let about = About { ino: ino.map_or(0, |ino| ino.0), path, ..About::default() };
        let (number, in_call) = self.begin(kind, about);
        // After the beginning: what changes it meanwhile is known to be later. Before the call:
        // what comes after it is not taken for promised.
        let contents = ino.and_then(|ino| self.holds(ino));
        let answer = call();
        drop(in_call);
        self.end(number, answer.is_err(), |call| call.contents = contents);
        answer
    }

    fn written(
        &self,
        fh: Fh,
        offset: u64,
        data: &Bytes,
        call: impl FnOnce() -> Result<usize>,
    ) -> Result<usize> {
        let opened = self.of_handle(fh);
        let append = opened.is_some_and(|(_, flags)| flags.contains(OpenFlags::APPEND));
        let end = || opened.and_then(|(ino, _)| self.next.getattr(ino).ok()).map(|a| a.size);
        let offset_told = if append { end().unwrap_or(offset) } else { offset };
        let contents = Some(Contents { size: data.len() as u64, digest: Digest::of(data) });
        let about = About { offset: offset_told, contents, ..self.on_handle(fh) };
        let (number, in_call) = self.begin(Kind::Write, about);
        let answer = call();
        drop(in_call);
        let written = answer.as_ref().copied().unwrap_or(0);
        self.end(number, answer.is_err(), |call| {
            if written < data.len() {
                let digest = Digest::of(&data[..written]);
                call.contents = Some(Contents { size: written as u64, digest });
            }
        });
        answer
    }

    fn on_handle(&self, fh: Fh) -> About {
        let ino = self.of_handle(fh).map(|(ino, _)| ino);
        let path = ino.map(|ino| self.path(ino)).unwrap_or_default();
        About { ino: ino.map_or(0, |ino| ino.0), path, ..About::default() }
    }

    fn on_inode(&self, ino: Ino) -> About {
        About { ino: ino.0, path: self.path(ino), ..About::default() }
    }
}

impl FileSystem for Watched {
    fn root(&self) -> Ino {
        self.next.root()
    }

    fn names_have_one_spelling(&self) -> bool {
        self.next.names_have_one_spelling()
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        let attr = self.next.lookup(dir, name)?;
        self.found(dir, name, &attr);
        Ok(attr)
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        self.next.getattr(ino)
    }

    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        let about = self.on_inode(ino);
        match set.size {
            Some(size) => self.noted(Kind::Truncate, About { offset: size, ..about }, || {
                self.next.setattr(ino, set)
            }),
            None => self.noted(Kind::Attributes, about, || self.next.setattr(ino, set)),
        }
    }

    fn create(&self, dir: Ino, name: &[u8], node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        let call = || self.next.create(dir, name, node, flags);
        let made = self.made(Kind::Create, (dir, name), call, |(attr, _)| *attr);
        if let Ok((attr, fh)) = &made {
            self.seen.lock().opened.insert(*fh, (attr.ino, flags));
        }
        made
    }

    fn mkdir(&self, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        self.made(Kind::Mkdir, (dir, name), || self.next.mkdir(dir, name, node), |attr| *attr)
    }

    fn symlink(&self, dir: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        let call = || self.next.symlink(dir, name, target, node);
        self.made(Kind::Symlink, (dir, name), call, |attr| *attr)
    }

    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        self.next.readlink(ino)
    }

    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let about = About { other: self.place(dir, name), ..self.on_inode(ino) };
        self.noted(Kind::Link, about, || self.next.link(ino, dir, name))
    }

    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        let ino = self.next.lookup(dir, name).map_or(0, |attr| attr.ino.0);
        let about = About { ino, path: self.place(dir, name), ..About::default() };
        self.noted(Kind::Unlink, about, || self.next.unlink(dir, name))
    }

    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        let about = About { path: self.place(dir, name), ..About::default() };
        self.noted(Kind::Rmdir, about, || self.next.rmdir(dir, name))
    }

    fn rename(
        &self,
        from_dir: Ino,
        from: &[u8],
        to_dir: Ino,
        to: &[u8],
        flags: RenameFlags,
    ) -> Result<()> {
        let source = self.next.lookup(from_dir, from).ok().map(|attr| attr.ino);
        let target = self.next.lookup(to_dir, to).ok().map(|attr| attr.ino);
        let about = About {
            ino: source.map_or(0, |ino| ino.0),
            replaced: target.map_or(0, |ino| ino.0),
            path: self.place(from_dir, from),
            other: self.place(to_dir, to),
            ..About::default()
        };
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        let kind = if exchange { Kind::Exchange } else { Kind::Rename };
        let (number, in_call) = self.begin(kind, about);
        // After the beginning, as for a sync.
        let contents = source.and_then(|ino| self.holds(ino));
        let lost = target.and_then(|ino| self.holds(ino));
        let answer = self.next.rename(from_dir, from, to_dir, to, flags);
        drop(in_call);
        self.end(number, answer.is_err(), |call| (call.contents, call.lost) = (contents, lost));
        answer?;
        let mut seen = self.seen.lock();
        if let Some(ino) = source {
            seen.places.insert(ino, (to_dir, to.to_vec()));
        }
        if let Some(ino) = target.filter(|_| exchange) {
            seen.places.insert(ino, (from_dir, from.to_vec()));
        }
        Ok(())
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        let fh = if flags.contains(OpenFlags::TRUNCATE) {
            self.noted(Kind::Truncate, self.on_inode(ino), || self.next.open(ino, flags))?
        } else {
            self.next.open(ino, flags)?
        };
        self.seen.lock().opened.insert(fh, (ino, flags));
        Ok(fh)
    }

    fn release(&self, fh: Fh) -> Result<()> {
        self.seen.lock().opened.remove(&fh);
        self.next.release(fh)
    }

    fn read(&self, fh: Fh, offset: u64, len: usize) -> Result<Bytes> {
        self.next.read(fh, offset, len)
    }

    fn read_as(&self, fh: Fh, offset: u64, len: usize, direct: bool) -> Result<Bytes> {
        self.next.read_as(fh, offset, len, direct)
    }

    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize> {
        self.written(fh, offset, &data, || self.next.write(fh, offset, data.clone()))
    }

    fn write_as(&self, fh: Fh, offset: u64, data: Bytes, how: OpenFlags) -> Result<usize> {
        // A write that promises is noted as a write and a sync, which is what it promises.
        let promise = OpenFlags::SYNC | OpenFlags::DSYNC;
        let call = || self.next.write_as(fh, offset, data.clone(), how - promise);
        let written = self.written(fh, offset, &data, call)?;
        if how.intersects(promise) {
            self.fsync(fh, !how.contains(OpenFlags::SYNC))?;
        }
        Ok(written)
    }

    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()> {
        let kind = if data_only { Kind::Fdatasync } else { Kind::Fsync };
        let ino = self.of_handle(fh).map(|(ino, _)| ino);
        self.synced(kind, ino, || self.next.fsync(fh, data_only))
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<DirEntry>> {
        self.next.readdir(dir, from)
    }

    fn fsyncdir(&self, dir: Ino) -> Result<()> {
        self.synced(Kind::FsyncDir, Some(dir), || self.next.fsyncdir(dir))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.next.statfs()
    }

    fn sync(&self) -> Result<()> {
        self.synced(Kind::Sync, None, || self.next.sync())
    }

    fn mknod(
        &self,
        dir: Ino,
        name: &[u8],
        kind: FileType,
        rdev: u64,
        node: NewNode,
    ) -> Result<Attr> {
        let noted = if kind == FileType::Regular { Kind::Create } else { Kind::Mknod };
        let call = || self.next.mknod(dir, name, kind, rdev, node);
        self.made(noted, (dir, name), call, |attr| *attr)
    }

    fn tmpfile(&self, dir: Ino, node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        let (attr, fh) = self.next.tmpfile(dir, node, flags)?;
        self.seen.lock().opened.insert(fh, (attr.ino, flags));
        Ok((attr, fh))
    }

    fn fallocate(&self, fh: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        let about = About { offset, ..self.on_handle(fh) };
        self.noted(Kind::Fallocate, about, || self.next.fallocate(fh, what, offset, len))
    }

    fn seek(&self, fh: Fh, offset: u64, to: SeekTo) -> Result<u64> {
        self.next.seek(fh, offset, to)
    }

    fn extents(&self, ino: Ino, offset: u64, len: u64) -> Result<Vec<FileExtent>> {
        self.next.extents(ino, offset, len)
    }

    fn getxattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.next.getxattr(ino, name)
    }

    fn setxattr(&self, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        let about = self.on_inode(ino);
        self.noted(Kind::Attributes, about, || self.next.setxattr(ino, name, value, how))
    }

    fn listxattr(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.next.listxattr(ino)
    }

    fn removexattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        self.noted(Kind::Attributes, self.on_inode(ino), || self.next.removexattr(ino, name))
    }

    fn inode_flags(&self, ino: Ino) -> Result<u32> {
        self.next.inode_flags(ino)
    }

    fn set_inode_flags(&self, ino: Ino, flags: u32) -> Result<()> {
        let about = self.on_inode(ino);
        self.noted(Kind::Attributes, about, || self.next.set_inode_flags(ino, flags))
    }

    fn transact(&self) -> Result<()> {
        self.synced(Kind::Sync, None, || self.next.transact())
    }

    fn rollback(&self) -> Result<()> {
        // The calls noted so far would no longer be true.
        Err(FsError::Unsupported {
            what: "going back to a transaction point while recorded".into(),
        })
    }

    fn transact_policy(&self) -> Result<TransactPolicy> {
        self.next.transact_policy()
    }

    fn set_transact_policy(&self, policy: TransactPolicy) -> Result<()> {
        self.next.set_transact_policy(policy)
    }

    fn begin_group(&self) -> Result<()> {
        self.next.begin_group()
    }

    fn end_group(&self, commit: bool) -> Result<()> {
        self.next.end_group(commit)
    }

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.next.shutdown(how)
    }
}
