//! One call of a trace, made again.

use std::collections::HashMap;
use std::sync::Arc;

use steadfast_runtime::{Mutex, is_simulated};
use steadfast_vfs::{
    Fallocate, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, RenameFlags, SetAttr,
    SetTime,
};

use super::places::FilePlaces;
use super::{ReplayObserver, ReplayPlan, content};
use crate::format::{CallFlag, CallOp, TraceCall, name_bytes};

/// A longer read or write is made in pieces of this, in bytes: as many calls as there are tasks may
/// be under way, and the data of all are in memory.
const PIECE: u64 = 1 << 20;
/// The same in a simulation, which has one thread, and of a write that is durable when it returns:
/// each piece is a sync.
const PIECE_LONG: u64 = 4 << 20;

/// The files and handles of a replay: what each number of the trace is here.
pub(super) struct Player {
    fs: Arc<dyn FileSystem>,
    observer: Arc<dyn ReplayObserver>,
    known: Mutex<PlayerState>,
}

struct PlayerState {
    files: HashMap<u64, Ino>,
    handles: HashMap<u64, (Fh, OpenFlags)>,
    places: FilePlaces,
}

/// Why a call was not made, or what it returned.
pub(super) enum CallOutcome {
    /// As a trace has it.
    Returned(i64),
    /// Something that it needs is not there: what, in words.
    Missing(&'static str),
}

type CallResult = Result<i64, FsError>;

impl Player {
    pub fn new(
        fs: &Arc<dyn FileSystem>,
        observer: Arc<dyn ReplayObserver>,
        plan: ReplayPlan,
    ) -> Player {
        let ReplayPlan { files, places, .. } = plan;
        let known = PlayerState { files, handles: HashMap::new(), places };
        Player { fs: Arc::clone(fs), observer, known: Mutex::new(known) }
    }

    /// Makes the call of this number.
    pub fn make(&self, number: u64, call: &TraceCall) -> CallOutcome {
        let durable = OpenFlags::SYNC | OpenFlags::DSYNC;
        if call.op == CallOp::Attributes && call.failed() {
            // What it was is not kept, and it did nothing.
            return CallOutcome::Returned(call.result);
        }
        let (paths, opened) = {
            let known = self.known.lock();
            let opened = call.handle.and_then(|handle| known.handles.get(&handle).copied());
            let paths = self.observer.wants_paths().then(|| known.places.of(call));
            (paths.unwrap_or_default(), opened.map_or(OpenFlags::empty(), |(_, flags)| flags))
        };
        let tag = self.observer.begins(number, call, &paths);
        let how = (opened | flags(call)) & OpenFlags::BY_CALL;
        let done = self.done((number, tag, how), call);
        let succeeded = matches!(done, Ok(Ok(_)));
        if succeeded {
            self.known.lock().places.after(call);
        }
        let durable = call.op == CallOp::Write && (opened | flags(call)).intersects(durable);
        self.observer.ended(number, call, succeeded, durable);
        let done = match done {
            Ok(done) => done,
            Err(missing) => return CallOutcome::Missing(missing),
        };
        CallOutcome::Returned(done.unwrap_or_else(|e| -i64::from(e.errno())))
    }

    /// Closes what is still open.
    pub fn end(&self) {
        for (fh, _) in std::mem::take(&mut self.known.lock().handles).into_values() {
            // OK to ignore: the program has not closed it, either.
            let _ = self.fs.release(fh);
        }
    }

    fn file(&self, number: Option<u64>) -> Result<Ino, &'static str> {
        let known = self.known.lock();
        number.and_then(|n| known.files.get(&n)).copied().ok_or("the file is not there")
    }

    fn folder(&self, number: Option<u64>) -> Result<Ino, &'static str> {
        self.file(number).map_err(|_| "the folder is not there")
    }

    fn handle(&self, call: &TraceCall) -> Result<Fh, &'static str> {
        let known = self.known.lock();
        let opened = call.handle.and_then(|n| known.handles.get(&n));
        opened.map(|(fh, _)| *fh).ok_or("the file is not open")
    }

    fn is(&self, call: &TraceCall, ino: Ino) {
        self.known.lock().files.extend(call.file.map(|file| (file, ino)));
    }

    fn opened(&self, call: &TraceCall, fh: Fh) {
        let opened = (fh, flags(call));
        self.known.lock().handles.extend(call.handle.map(|handle| (handle, opened)));
    }

    fn done(
        &self,
        (number, tag, how): (u64, Option<u64>, OpenFlags),
        call: &TraceCall,
    ) -> Result<CallResult, &'static str> {
        let fs = &*self.fs;
        let name = |text: &str| name_bytes(text).ok_or("the name is none");
        let node = NewNode { mode: 0o644, ..NewNode::default() };
        let zero = |done: Result<(), FsError>| done.map(|()| 0);
        Ok(match call.op {
            CallOp::Lookup => {
                let found = fs.lookup(self.folder(call.dir)?, &name(&call.name)?);
                found.map(|attr| self.is(call, attr.ino)).map(|()| 0)
            }
            CallOp::List => list(fs, self.file(call.file)?, call.offset),
            CallOp::Open => {
                let opened = fs.open(self.file(call.file)?, flags(call));
                opened.map(|fh| self.opened(call, fh)).map(|()| 0)
            }
            CallOp::Create => {
                let made = fs.create(self.folder(call.dir)?, &name(&call.name)?, node, flags(call));
                made.map(|(attr, fh)| {
                    self.is(call, attr.ino);
                    self.opened(call, fh);
                    0
                })
            }
            CallOp::Tmpfile => {
                let root = fs.root();
                fs.tmpfile(root, node, flags(call)).map(|(attr, fh)| {
                    self.is(call, attr.ino);
                    self.opened(call, fh);
                    0
                })
            }
            CallOp::Close => {
                let fh = self.handle(call)?;
                if let Some(handle) = call.handle {
                    self.known.lock().handles.remove(&handle);
                }
                zero(fs.flush(fh).and_then(|()| fs.release(fh)))
            }
            CallOp::Read => {
                let fh = self.handle(call)?;
                in_pieces(call, how, |at, len| Ok(fs.read(fh, at, len as usize)?.len() as u64))
            }
            CallOp::Write => {
                let fh = self.handle(call)?;
                let tag = tag.unwrap_or(content::of_call(number));
                in_pieces(call, how, |at, len| {
                    Ok(fs.write_as(fh, at, content::bytes(tag, at, len), how)? as u64)
                })
            }
            CallOp::Fsync => zero(fs.fsync(self.handle(call)?, false)),
            CallOp::Fdatasync => zero(fs.fsync(self.handle(call)?, true)),
            CallOp::Fsyncdir => zero(fs.fsyncdir(self.file(call.file)?)),
            CallOp::Sync => zero(fs.sync()),
            CallOp::Truncate => {
                let set = SetAttr { size: Some(call.offset), ..SetAttr::default() };
                fs.setattr(self.file(call.file)?, set).map(|_| 0)
            }
            CallOp::Allocate
            | CallOp::Reserve
            | CallOp::Punch
            | CallOp::Zero
            | CallOp::Collapse
            | CallOp::Insert => {
                let fh = self.handle(call)?;
                zero(fs.fallocate(fh, range(call), call.offset, call.len))
            }
            CallOp::Mkdir => {
                let node = NewNode { mode: 0o755, ..node };
                let made = fs.mkdir(self.folder(call.dir)?, &name(&call.name)?, node);
                made.map(|attr| self.is(call, attr.ino)).map(|()| 0)
            }
            CallOp::Rmdir => zero(fs.rmdir(self.folder(call.dir)?, &name(&call.name)?)),
            CallOp::Unlink => zero(fs.unlink(self.folder(call.dir)?, &name(&call.name)?)),
            CallOp::Rename | CallOp::Exchange => {
                let (from, to) = (name(&call.name)?, name(&call.to)?);
                let mut how = RenameFlags::empty();
                how.set(RenameFlags::EXCHANGE, call.op == CallOp::Exchange);
                how.set(RenameFlags::NO_REPLACE, call.has(CallFlag::NoReplace));
                let (dir, to_dir) = (self.folder(call.dir)?, self.folder(call.to_dir)?);
                zero(fs.rename((dir, &from), (to_dir, &to), how))
            }
            CallOp::Link => {
                let to = name(&call.to)?;
                fs.link(self.file(call.file)?, self.folder(call.to_dir)?, &to).map(|_| 0)
            }
            CallOp::Symlink => {
                let (link, target) = (name(&call.name)?, name(&call.to)?);
                let made = fs.symlink(self.folder(call.dir)?, &link, &target, node);
                made.map(|attr| self.is(call, attr.ino)).map(|()| 0)
            }
            CallOp::Mknod => {
                let made = fs.mknod(
                    self.folder(call.dir)?,
                    &name(&call.name)?,
                    (FileType::Regular, 0),
                    node,
                );
                made.map(|attr| self.is(call, attr.ino)).map(|()| 0)
            }
            CallOp::Attributes => {
                let set = SetAttr { mtime: Some(SetTime::Now), ..SetAttr::default() };
                fs.setattr(self.file(call.file)?, set).map(|_| 0)
            }
        })
    }
}

/// Reads or writes a call's range in pieces, until one is short; how many bytes.
fn in_pieces(
    call: &TraceCall,
    how: OpenFlags,
    mut one: impl FnMut(u64, u64) -> Result<u64, FsError>,
) -> CallResult {
    let is_long = is_simulated() || how.intersects(OpenFlags::SYNC | OpenFlags::DSYNC);
    let piece = if is_long { PIECE_LONG } else { PIECE };
    let mut done = 0;
    loop {
        let len = (call.len - done).min(piece);
        match one(call.offset.saturating_add(done), len) {
            Ok(n) => {
                done += n.min(len);
                if n < len || done == call.len {
                    break;
                }
            }
            Err(_) if done > 0 => break,
            Err(e) => return Err(e),
        }
    }
    // OK to cast: not more than a call's length.
    Ok(done as i64)
}

/// Reads names from a position on, as one request for them does.
fn list(fs: &dyn FileSystem, dir: Ino, from: u64) -> CallResult {
    fs.readdir(dir, from).map(|entries| entries.len() as i64)
}

fn range(call: &TraceCall) -> Fallocate {
    match call.op {
        CallOp::Reserve => Fallocate::Allocate { keep_size: true },
        CallOp::Punch => Fallocate::PunchHole,
        CallOp::Zero => Fallocate::ZeroRange { keep_size: call.has(CallFlag::KeepSize) },
        CallOp::Collapse => Fallocate::CollapseRange,
        CallOp::Insert => Fallocate::InsertRange,
        _ => Fallocate::Allocate { keep_size: false },
    }
}

fn flags(call: &TraceCall) -> OpenFlags {
    let of = |flag: &CallFlag| match flag {
        CallFlag::Read => OpenFlags::READ,
        CallFlag::Write => OpenFlags::WRITE,
        CallFlag::Truncate => OpenFlags::TRUNCATE,
        CallFlag::Direct => OpenFlags::DIRECT,
        CallFlag::Dsync => OpenFlags::DSYNC,
        CallFlag::Sync => OpenFlags::SYNC,
        // The offset says where the end was: with several writers it may be another one here.
        CallFlag::Append | CallFlag::Exclusive | CallFlag::NoReplace | CallFlag::KeepSize => {
            OpenFlags::empty()
        }
    };
    call.flags.iter().map(of).fold(OpenFlags::empty(), |all, one| all | one)
}
