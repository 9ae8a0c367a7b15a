//! Notes the calls that go through to a file system.
//!
//! A call's number, from 1, is also that of the requests that are done for it
//! ([`Event::call`](steadfast_devices::filter::record::Event)).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_devices::filter::record::RecordLog;
use steadfast_devices::store::{Digest, PackedBytes};
use steadfast_runtime::{InCall, Mutex, Requester, in_call, requester};
use steadfast_vfs::{
    Attr, Dirent, Fallocate, Fh, FileExtent, FileSystem, FileType, FsError, Ino, NewNode,
    OpenFlags, RenameFlags, Result, SeekTo, SetAttr, SetXattr, Shutdown, StatFs, TransactMask,
    TransactPolicy,
};

use super::asked::{OngoingWrites, Request};
use super::calls::{Call, CallDetail, CallKind, Origin, file_id, number_of};
use super::faults::{CallFaults, FaultKind};
use super::paths::{Path, Paths};
use super::stacks::CallObserver;
use crate::tree::{Contents, contents_of};

/// Notes of calls in the record carry this label; what they mean is in the list of calls.
pub const CALL: u64 = 0x6361_6c6c;
/// Files up to this size are read back when they are synced or renamed, to know what they held.
const READ_BACK_MAX: u64 = 16 << 20;

#[derive(Default)]
struct CallTrace {
    calls: Vec<Call>,
    paths: Paths,
    opened: HashMap<Fh, (Ino, OpenFlags)>,
    asked: OngoingWrites,
}

/// A file system whose calls are noted.
pub struct WatchedFs {
    next: Arc<dyn FileSystem>,
    log: RecordLog,
    seen: Mutex<CallTrace>,
    faults: CallFaults,
    observer: Option<Arc<dyn CallObserver>>,
}

/// What is known of a call before it is made.
#[derive(Default)]
struct CallContext {
    ino: u64,
    replaced: u64,
    path: Path,
    other: Option<Path>,
    offset: u64,
    contents: Option<Contents>,
    promises: bool,
    /// The thread that asks may not wait for the answer.
    is_apart: bool,
    detail: CallDetail,
}

/// What a file that was made is like.
fn made(attr: &Attr) -> CallDetail {
    let Attr { mode, uid, gid, rdev, .. } = *attr;
    CallDetail::Node { mode, uid, gid, rdev, target: Vec::new() }
}

impl WatchedFs {
    /// Notes the calls to `next`, in the order of `log`.
    pub fn new(next: Arc<dyn FileSystem>, log: &RecordLog) -> WatchedFs {
        let (seen, faults) = (Mutex::default(), CallFaults::default());
        WatchedFs { next, log: log.clone(), seen, faults, observer: None }
    }

    /// Who is told of each call of a thread that waits for its answer.
    #[must_use]
    pub fn observed_by(self, observer: Option<Arc<dyn CallObserver>>) -> WatchedFs {
        WatchedFs { observer, ..self }
    }

    /// The calls noted so far, in the order in which they were made.
    pub fn calls(&self) -> Vec<Call> {
        self.seen.lock().calls.clone()
    }

    /// What `read` makes of the calls noted so far. The program waits meanwhile.
    pub fn with_calls<T>(&self, read: impl FnOnce(&[Call]) -> T) -> T {
        read(&self.seen.lock().calls)
    }

    /// The failures that wait for their calls.
    pub fn faults(&self) -> &CallFaults {
        &self.faults
    }

    /// The failure that somebody has asked for this call. The call is not passed on.
    fn fault(&self, kind: FaultKind, number: usize) -> Option<FsError> {
        let mut seen = self.seen.lock();
        // OK to index: calls are never removed.
        let call = &mut seen.calls[number];
        let is_known = call.origin != Origin::Kernel && !call.unplaced;
        call.injected = is_known.then(|| self.faults.next(kind, &call.path)).flatten();
        call.injected.map(FsError::from)
    }

    fn path(&self, ino: Ino) -> Path {
        self.seen.lock().paths.path(self.next.root(), ino)
    }

    fn place(&self, dir: Ino, name: &[u8]) -> Path {
        self.seen.lock().paths.place(self.next.root(), dir, name)
    }

    fn of_handle(&self, fh: Fh) -> Option<(Ino, OpenFlags)> {
        self.seen.lock().opened.get(&fh).copied()
    }

    /// Whether a sync is one here: with data=transact it need not be.
    fn sync_promises(&self, words: TransactMask) -> bool {
        self.next.transact_policy().map_or(true, |policy| policy.mask.intersects(words))
    }

    /// Notes that a call begins: its place in the list, and what names it to the recorder of the
    /// devices.
    fn begin(&self, kind: CallKind, about: CallContext) -> (usize, InCall) {
        self.begin_as(kind, about, |_, _| (Origin::Program, false))
    }

    fn begin_as(
        &self,
        kind: CallKind,
        about: CallContext,
        origin: impl FnOnce(&mut OngoingWrites, usize) -> (Origin, bool),
    ) -> (usize, InCall) {
        let mut seen = self.seen.lock();
        let place = seen.calls.len();
        let (origin, asked_for) = origin(&mut seen.asked, place);
        if kind.changes_names() {
            seen.paths.change();
        }
        // Under the lock, so that the list is in the order of the moments.
        let started = self.log.note(CALL, [kind as u64, place as u64, 0]);
        let CallContext { ino, replaced, path, other, offset, contents, .. } = about;
        let CallContext { promises, is_apart, detail, .. } = about;
        let promises = promises || asked_for;
        let unplaced = !path.whole || other.as_ref().is_some_and(|other| !other.whole);
        seen.calls.push(Call {
            origin,
            promises,
            unplaced: unplaced && kind != CallKind::Sync,
            ino,
            replaced,
            path: path.bytes,
            other: other.map(|other| other.bytes).unwrap_or_default(),
            offset,
            contents,
            detail,
            ..Call::plain(kind, "", started, None)
        });
        drop(seen);
        let waits = |asker: &Requester| !asker.write_back && !is_apart && asker.thread != 0;
        if let (Some(observer), Some(asker)) = (&self.observer, requester().filter(waits)) {
            observer.begins(asker.thread, place);
        }
        (place, in_call(place as u64 + 1))
    }

    /// Notes that a call has returned; what `more` says of the paths is known at the same moment.
    fn end(&self, number: usize, failed: bool, more: impl FnOnce(&mut Call, &mut Paths)) {
        let mut seen = self.seen.lock();
        let CallTrace { calls, paths, .. } = &mut *seen;
        let returned = self.log.note(CALL, [u64::MAX, number as u64, failed.into()]);
        // OK to index: calls are never removed.
        let call = &mut calls[number];
        call.returned = Some(returned);
        call.failed = failed;
        if call.kind.changes_names() {
            paths.change();
        }
        more(call, paths);
    }

    fn noted<T>(
        &self,
        kind: CallKind,
        about: CallContext,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.noted_and(kind, about, call, |_, _, _| ())
    }

    /// Notes a call, and of one that succeeds what `more` says.
    fn noted_and<T>(
        &self,
        kind: CallKind,
        about: CallContext,
        call: impl FnOnce() -> Result<T>,
        more: impl FnOnce(&T, &mut Call, &mut Paths),
    ) -> Result<T> {
        let (number, in_call) = self.begin(kind, about);
        let answer = call();
        drop(in_call);
        self.end(number, answer.is_err(), |call, paths| {
            if let Ok(answer) = &answer {
                more(answer, call, paths);
            }
        });
        answer
    }

    /// Makes a new inode, under the name given.
    fn made<T>(
        &self,
        kind: CallKind,
        (dir, name): (Ino, &[u8]),
        call: impl FnOnce() -> Result<T>,
        attr: impl FnOnce(&T) -> Attr,
    ) -> Result<T> {
        let about = CallContext { path: self.place(dir, name), ..CallContext::default() };
        self.noted_and(kind, about, call, |answer, call, paths| {
            let attr = attr(answer);
            call.ino = file_id(&attr);
            call.detail = made(&attr);
            paths.found(attr.ino, dir, name);
        })
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
        kind: CallKind,
        about: CallContext,
        origin: impl FnOnce(&mut OngoingWrites) -> Origin,
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let ino = (about.ino != 0).then(|| number_of(about.ino));
        let (number, in_call) = self.begin_as(kind, about, |asked, _| (origin(asked), false));
        // After the beginning: what changes it meanwhile is known to be later. Before the call:
        // what comes after it is not taken for promised.
        // The kernel's own sync after a write promises that write, not the file.
        let whole = self.seen.lock().calls[number].origin == Origin::Program;
        let contents = ino.filter(|_| whole).and_then(|ino| self.holds(ino));
        // The kernel's own sync after a write fails with the write.
        let fault = (whole && kind != CallKind::Sync).then(|| self.fault(FaultKind::Fsync, number));
        let answer = fault.flatten().map_or_else(call, Err);
        drop(in_call);
        self.end(number, answer.is_err(), |call, _| call.contents = contents);
        answer
    }

    /// A request to write; it is a promise if `how` says so, or the program's call.
    fn written(
        &self,
        (fh, offset): (Fh, u64),
        data: &Bytes,
        how: OpenFlags,
        call: impl FnOnce() -> Result<usize>,
    ) -> Result<usize> {
        let opened = self.of_handle(fh);
        let append = opened.is_some_and(|(_, flags)| flags.contains(OpenFlags::APPEND));
        let end = || opened.and_then(|(ino, _)| self.next.getattr(ino).ok()).map(|a| a.size);
        let from = if append { end().unwrap_or(offset) } else { offset };
        let len = data.len() as u64;
        let contents = Some(Contents { size: len, digest: Digest::of(data) });
        let request = Request::current();
        let durable = !request.is_write_back()
            && self.sync_promises(TransactMask::FSYNC | TransactMask::WRITE);
        let promises = durable && how.intersects(OpenFlags::SYNC | OpenFlags::DSYNC);
        let detail = CallDetail::Bytes(PackedBytes::pack(data));
        let is_apart = request.is_apart();
        let about = CallContext {
            offset: from,
            contents,
            promises,
            is_apart,
            detail,
            ..self.on_handle(fh)
        };
        let (number, in_call) = self.begin_as(CallKind::Write, about, |asked, place| {
            let (origin, asked_for) = asked.write(&request, fh, (from, len), place);
            (origin, durable && asked_for)
        });
        let answer = self.fault(FaultKind::Write, number).map_or_else(call, Err);
        drop(in_call);
        let written = answer.as_ref().copied().unwrap_or(0);
        if written < data.len() {
            self.seen.lock().asked.cut_short(&request);
        }
        self.end(number, answer.is_err(), |call, _| {
            if written < data.len() {
                let digest = Digest::of(&data[..written]);
                call.contents = Some(Contents { size: written as u64, digest });
                call.detail = CallDetail::Bytes(PackedBytes::pack(&data.slice(..written)));
            }
        });
        answer
    }

    fn on_handle(&self, fh: Fh) -> CallContext {
        match self.of_handle(fh) {
            Some((ino, _)) => self.on_inode(ino),
            None => CallContext::default(),
        }
    }

    fn on_inode(&self, ino: Ino) -> CallContext {
        let file = self.next.getattr(ino).map_or(ino.0, |attr| file_id(&attr));
        CallContext { ino: file, path: self.path(ino), ..CallContext::default() }
    }

    /// Removes a name; the inode that has it.
    fn removed(
        &self,
        kind: CallKind,
        (dir, name): (Ino, &[u8]),
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let file = self.next.lookup(dir, name).map_or(0, |attr| file_id(&attr));
        let about =
            CallContext { ino: file, path: self.place(dir, name), ..CallContext::default() };
        self.noted_and(kind, about, call, |(), _, paths| paths.lost(number_of(file), dir, name))
    }
}

/// Calls of which nothing is noted, as the file system below has them.
macro_rules! pass_on {
    ($($call:ident($($arg:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {$(
        fn $call(&self, $($arg: $type),*) $(-> $answer)? {
            self.next.$call($($arg),*)
        }
    )*};
}

impl FileSystem for WatchedFs {
    pass_on! {
        root() -> Ino;
        names_have_one_spelling() -> bool;
        getattr(ino: Ino) -> Result<Attr>;
        hold(ino: Ino) -> Result<Attr>;
        hold_number(ino: Ino);
        let_go(ino: Ino, holds: u64) -> bool;
        let_go_all();
        readlink(ino: Ino) -> Result<Vec<u8>>;
        flush(fh: Fh) -> Result<()>;
        read(fh: Fh, offset: u64, len: usize) -> Result<Bytes>;
        read_as(fh: Fh, offset: u64, len: usize, direct: bool) -> Result<Bytes>;
        statfs() -> Result<StatFs>;
        seek(fh: Fh, offset: u64, to: SeekTo) -> Result<u64>;
        extents(ino: Ino, offset: u64, len: u64) -> Result<Vec<FileExtent>>;
        getxattr(ino: Ino, name: &[u8]) -> Result<Vec<u8>>;
        listxattr(ino: Ino) -> Result<Vec<Vec<u8>>>;
        by_number(ino: Ino) -> Result<Attr>;
        project(ino: Ino) -> Result<u32>;
        label() -> Result<Vec<u8>>;
        set_label(label: &[u8]) -> Result<()>;
        inode_flags(ino: Ino) -> Result<u32>;
        transact_policy() -> Result<TransactPolicy>;
        set_transact_policy(policy: TransactPolicy) -> Result<()>;
        begin_group() -> Result<()>;
        end_group(commit: bool) -> Result<()>;
        shutdown(how: Shutdown) -> Result<()>;
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Attr> {
        let age = self.seen.lock().paths.age();
        let attr = self.next.lookup(dir, name)?;
        self.seen.lock().paths.seen(age, attr.ino, dir, name);
        Ok(attr)
    }

    fn setattr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        let about = self.on_inode(ino);
        let kind = if set.size.is_some() { CallKind::Truncate } else { CallKind::Attributes };
        let SetAttr { mode, uid, gid, .. } = set;
        let detail = CallDetail::Attributes { mode, uid, gid };
        let about = CallContext { offset: set.size.unwrap_or(0), detail, ..about };
        self.noted(kind, about, || self.next.setattr(ino, set))
    }

    fn create(&self, dir: Ino, name: &[u8], node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        let call = || self.next.create(dir, name, node, flags);
        let made = self.made(CallKind::Create, (dir, name), call, |(attr, _)| *attr);
        if let Ok((attr, fh)) = &made {
            self.seen.lock().opened.insert(*fh, (attr.ino, flags));
        }
        made
    }

    fn mkdir(&self, dir: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        self.made(CallKind::Mkdir, (dir, name), || self.next.mkdir(dir, name, node), |attr| *attr)
    }

    fn symlink(&self, dir: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        let about = CallContext { path: self.place(dir, name), ..CallContext::default() };
        let call = || self.next.symlink(dir, name, target, node);
        self.noted_and(CallKind::Symlink, about, call, |attr, call, paths| {
            call.ino = file_id(attr);
            call.detail = made(attr);
            if let CallDetail::Node { target: to, .. } = &mut call.detail {
                *to = target.to_vec();
            }
            paths.found(attr.ino, dir, name);
        })
    }

    fn link(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let about = CallContext { other: Some(self.place(dir, name)), ..self.on_inode(ino) };
        let call = || self.next.link(ino, dir, name);
        self.noted_and(CallKind::Link, about, call, |_, _, paths| paths.found(ino, dir, name))
    }

    fn unlink(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.removed(CallKind::Unlink, (dir, name), || self.next.unlink(dir, name))
    }

    fn rmdir(&self, dir: Ino, name: &[u8]) -> Result<()> {
        self.removed(CallKind::Rmdir, (dir, name), || self.next.rmdir(dir, name))
    }

    fn rename(&self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: RenameFlags) -> Result<()> {
        let ((from_dir, from_name), (to_dir, to_name)) = (from, to);
        let source = self.next.lookup(from_dir, from_name).ok();
        let target = self.next.lookup(to_dir, to_name).ok();
        let about = CallContext {
            ino: source.as_ref().map_or(0, file_id),
            replaced: target.as_ref().map_or(0, file_id),
            path: self.place(from_dir, from_name),
            other: Some(self.place(to_dir, to_name)),
            ..CallContext::default()
        };
        let (source, target) = (source.map(|attr| attr.ino), target.map(|attr| attr.ino));
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        let kind = if exchange { CallKind::Exchange } else { CallKind::Rename };
        let (number, in_call) = self.begin(kind, about);
        // After the beginning, as for a sync.
        let contents = source.and_then(|ino| self.holds(ino));
        let lost = target.and_then(|ino| self.holds(ino));
        let answer = self.next.rename(from, to, flags);
        drop(in_call);
        self.end(number, answer.is_err(), |call, paths| {
            (call.contents, call.lost) = (contents, lost);
            // Two names of one file: rename(2) leaves both.
            if call.failed || source == target {
                return;
            }
            if let Some(ino) = target {
                paths.lost(ino, to_dir, to_name);
            }
            if let Some(ino) = source {
                paths.lost(ino, from_dir, from_name);
                paths.found(ino, to_dir, to_name);
            }
            if let Some(ino) = target.filter(|_| exchange) {
                paths.found(ino, from_dir, from_name);
            }
        });
        answer
    }

    fn open(&self, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        let fh = if flags.contains(OpenFlags::TRUNCATE) {
            self.noted(CallKind::Truncate, self.on_inode(ino), || self.next.open(ino, flags))?
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

    fn write(&self, fh: Fh, offset: u64, data: Bytes) -> Result<usize> {
        let how = self.of_handle(fh).map_or(OpenFlags::empty(), |(_, flags)| flags);
        self.written((fh, offset), &data, how, || self.next.write(fh, offset, data.clone()))
    }

    fn write_as(&self, fh: Fh, offset: u64, data: Bytes, how: OpenFlags) -> Result<usize> {
        let call = || self.next.write_as(fh, offset, data.clone(), how);
        self.written((fh, offset), &data, how, call)
    }

    fn fsync(&self, fh: Fh, data_only: bool) -> Result<()> {
        let kind = if data_only { CallKind::Fdatasync } else { CallKind::Fsync };
        let promises = self.sync_promises(TransactMask::FSYNC);
        let request = Request::current();
        let about = CallContext { promises, ..self.on_handle(fh) };
        let origin = |asked: &mut OngoingWrites| asked.sync(&request, fh);
        self.synced(kind, about, origin, || self.next.fsync(fh, data_only))
    }

    fn readdir(&self, dir: Ino, from: u64) -> Result<Vec<Dirent>> {
        let age = self.seen.lock().paths.age();
        let entries = self.next.readdir(dir, from)?;
        // With the listing the kernel may take the inodes (readdirplus), and never look them up.
        let mut seen = self.seen.lock();
        for entry in &entries {
            seen.paths.seen(age, entry.ino, dir, &entry.name);
        }
        Ok(entries)
    }

    fn fsyncdir(&self, dir: Ino) -> Result<()> {
        let promises = self.sync_promises(TransactMask::FSYNC);
        let about = CallContext { promises, ..self.on_inode(dir) };
        self.synced(CallKind::FsyncDir, about, |_| Origin::Program, || self.next.fsyncdir(dir))
    }

    fn sync(&self) -> Result<()> {
        let promises = self.sync_promises(TransactMask::SYNC);
        let about = CallContext { promises, ..CallContext::default() };
        self.synced(CallKind::Sync, about, |_| Origin::Program, || self.next.sync())
    }

    fn mknod(&self, dir: Ino, name: &[u8], what: (FileType, u64), node: NewNode) -> Result<Attr> {
        let noted = if what.0 == FileType::Regular { CallKind::Create } else { CallKind::Mknod };
        let call = || self.next.mknod(dir, name, what, node);
        self.made(noted, (dir, name), call, |attr| *attr)
    }

    fn tmpfile(&self, dir: Ino, node: NewNode, flags: OpenFlags) -> Result<(Attr, Fh)> {
        let call = || self.next.tmpfile(dir, node, flags);
        let context = CallContext::default();
        let made = self.noted_and(CallKind::Create, context, call, |(attr, _), call, _| {
            call.ino = file_id(attr);
            call.detail = made(attr);
        });
        if let Ok((attr, fh)) = &made {
            self.seen.lock().opened.insert(*fh, (attr.ino, flags));
        }
        made
    }

    fn fallocate(&self, fh: Fh, what: Fallocate, offset: u64, len: u64) -> Result<()> {
        let detail = CallDetail::Range { what: what.into(), len };
        let about = CallContext { offset, detail, ..self.on_handle(fh) };
        self.noted(CallKind::Fallocate, about, || self.next.fallocate(fh, what, offset, len))
    }

    fn setxattr(&self, ino: Ino, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        let about = self.on_inode(ino);
        self.noted(CallKind::Attributes, about, || self.next.setxattr(ino, name, value, how))
    }

    fn removexattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        self.noted(CallKind::Attributes, self.on_inode(ino), || self.next.removexattr(ino, name))
    }

    fn set_project(&self, ino: Ino, project: u32) -> Result<()> {
        let about = self.on_inode(ino);
        self.noted(CallKind::Attributes, about, || self.next.set_project(ino, project))
    }

    fn set_inode_flags(&self, ino: Ino, flags: u32) -> Result<()> {
        let about = self.on_inode(ino);
        self.noted(CallKind::Attributes, about, || self.next.set_inode_flags(ino, flags))
    }

    fn transact(&self) -> Result<()> {
        let about = CallContext { promises: true, ..CallContext::default() };
        self.synced(CallKind::Sync, about, |_| Origin::Program, || self.next.transact())
    }

    fn rollback(&self) -> Result<()> {
        // The calls noted so far would no longer be true.
        Err(FsError::Unsupported {
            what: "going back to a transaction point while recorded".into(),
        })
    }
}
