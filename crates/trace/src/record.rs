//! Notes the calls that pass through to a file system.

mod calls;
mod contents;
mod files;
mod probe;
mod processor;
mod queue;
mod threads;

use std::collections::HashMap;
use std::hash::RandomState;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use steadfast_runtime::{Nanos, now, request_number, requester};
use steadfast_vfs::{Attr, Fh, FileSystem, FileType, Ino, OpenFlags, Result};

use self::files::KnownFiles;
use self::probe::LowerTime;
use self::processor::ThreadClocks;
use self::queue::{FinishedCall, TraceQueue};
use self::threads::ThreadTable;
use crate::format::{CallFlag, CallOp, NameForm, TraceCall, TraceHeader, Trip, name_text};
use crate::order::CallAside;

pub use self::queue::RecordingSummary;

/// The kernel's own, which write back what programs have left.
const KERNEL: u32 = 0;
/// Requests to write have this many bytes at most; longer calls come in pieces.
const PIECE: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// After such a time without a call, in ns, a thread may have waited for another one to end.
const WAITS_NS: u64 = 200_000;
/// After a write to a file that was opened so the kernel asks for a sync by itself; where it does
/// not, the write says it.
const DURABLE: OpenFlags = OpenFlags::SYNC.union(OpenFlags::DSYNC);

/// A file system whose calls are noted. In real time only.
pub struct RecordedFs {
    next: Arc<dyn FileSystem>,
    began: Nanos,
    names: NameForm,
    key: RandomState,
    seen: Mutex<RecorderState>,
    queue: TraceQueue,
    below: LowerTime,
    clocks: ThreadClocks,
}

struct RecorderState {
    /// Of the next call, in the order of their beginnings.
    number: u64,
    files: KnownFiles,
    threads: ThreadTable,
    opened: HashMap<Fh, OpenHandle>,
    /// The last write of each thread: its handle, its end, and whether more of it may come.
    writes: HashMap<u32, (Fh, u64, bool)>,
    /// Names that were listed: whoever is told of them may go on by their numbers.
    listed: HashMap<Ino, (Ino, Vec<u8>)>,
    /// Of each thread what there was since its last call.
    aside: HashMap<u32, AsideRequests>,
}

/// Requests that are no calls.
#[derive(Default)]
struct AsideRequests {
    requests: u64,
    ns: u64,
    /// The last request of the thread that served it.
    last: u64,
    /// When the call before them ended.
    since: u64,
}

#[derive(Clone, Copy)]
struct OpenHandle {
    ino: Ino,
    flags: OpenFlags,
    /// The thread that has used it last: who closes it the kernel does not say.
    user: u32,
}

impl OpenHandle {
    fn new(ino: Ino, flags: OpenFlags, user: u32) -> OpenHandle {
        OpenHandle { ino, flags, user }
    }
}

/// A call that has begun.
struct OngoingCall {
    number: u64,
    call: TraceCall,
    aside: CallAside,
}

impl RecordedFs {
    /// Notes the calls to `next`, and writes them to `out`. The header's trip is set later.
    ///
    /// # Errors
    /// The file system does not show its root; there is no thread.
    pub fn new(
        next: Arc<dyn FileSystem>,
        out: Box<dyn Write + Send>,
        header: TraceHeader,
    ) -> crate::Result<RecordedFs> {
        let mut files = KnownFiles::default();
        let root = next.getattr(next.root())?;
        files.known(&root);
        let names = header.names;
        let queue = TraceQueue::new(out, header)?;
        let seen = RecorderState {
            number: 0,
            files,
            threads: ThreadTable::default(),
            opened: HashMap::new(),
            writes: HashMap::new(),
            listed: HashMap::new(),
            aside: HashMap::new(),
        };
        Ok(RecordedFs {
            next,
            began: now(),
            names,
            key: RandomState::new(),
            seen: Mutex::new(seen),
            queue,
            below: LowerTime::default(),
            clocks: ThreadClocks::default(),
        })
    }

    /// What calls cost on their way through the mount of this at `folder`, and back. Files are made
    /// there for a moment, if that is allowed.
    ///
    /// # Errors
    /// The mount does not answer.
    pub fn probe(&self, folder: &Path) -> std::io::Result<Trip> {
        self.below.probe(folder)
    }

    /// From here on calls are noted, and time counts: the program is started now.
    pub fn begin(&self, trip: Option<Trip>) {
        self.queue.begin(trip, self.time());
    }

    /// Writes what is left, and the last line. `at`: when the program ended ([`time`](Self::time)).
    ///
    /// # Errors
    /// The trace could not be written.
    pub fn end(
        &self,
        at: u64,
        status: Option<i32>,
        interrupted: bool,
    ) -> crate::Result<RecordingSummary> {
        self.queue.end(at, status, interrupted)
    }

    /// Whether the trace cannot be written any more: [`end`](Self::end) will say why. The calls go
    /// on.
    pub fn has_failed(&self) -> bool {
        self.queue.is_gone()
    }

    /// Now, in ns.
    pub fn time(&self) -> u64 {
        u64::try_from(now().since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }

    fn seen(&self) -> MutexGuard<'_, RecorderState> {
        // What is known is changed in single steps.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self, name: &[u8]) -> String {
        match self.names {
            NameForm::Kept => name_text(name),
            NameForm::Hashed => files::hashed(&self.key, name),
        }
    }

    /// What is no call of the program: how long it takes is remembered for its next one, and
    /// whether it was a request of its own.
    fn aside<T>(&self, request: impl FnOnce() -> T) -> T {
        let began = self.time();
        let answer = request();
        if let Some(requester) = requester() {
            let took = self.time() - began;
            let mut seen = self.seen();
            let aside = seen.aside.entry(requester.thread).or_default();
            aside.ns += took;
            if aside.last != request_number() {
                self.below.aside();
                (aside.last, aside.requests) = (request_number(), aside.requests + 1);
            }
        }
        answer
    }

    /// A call begins.
    fn start(&self, op: CallOp) -> OngoingCall {
        self.start_of(op, None)
    }

    /// The same, of this thread, if the request does not say whose it is.
    fn start_of(&self, op: CallOp, thread: Option<u32>) -> OngoingCall {
        let requester = requester();
        let kernel = requester.is_some_and(|r| r.write_back);
        let said = requester.map(|r| r.thread).filter(|thread| *thread != KERNEL);
        let thread = said.or(thread).filter(|_| !kernel).unwrap_or(KERNEL);
        let mut seen = self.seen();
        let number = seen.number;
        seen.number += 1;
        if let Some(told) = seen.threads.told(thread) {
            self.queue.thread(number, told);
        }
        let mut call = TraceCall::new(op, thread, self.time(), 0);
        call.kernel = kernel;
        let own = AsideRequests { last: request_number(), ..AsideRequests::default() };
        let before = seen.aside.insert(thread, own).unwrap_or_default();
        let has_waited = thread != KERNEL && call.start.saturating_sub(before.since) > WAITS_NS;
        let ended = if has_waited { seen.threads.ended_beside(thread) } else { Vec::new() };
        // What belongs to the same request has come with it.
        let same = u64::from(before.requests > 0 && before.last == request_number());
        let (requests, ns) = (before.requests - same, before.ns);
        let aside = CallAside { requests, ns, run: None, ended };
        OngoingCall { number, call, aside }
    }

    /// It has returned.
    fn finish<T>(
        &self,
        begun: OngoingCall,
        answer: &Result<T>,
        more: impl FnOnce(&T, &mut TraceCall, &mut RecorderState),
    ) {
        let OngoingCall { number, mut call, mut aside } = begun;
        // By now its thread sleeps, and what it has run is known to the end.
        aside.run = self.clocks.of(call.thread).filter(|_| call.thread != KERNEL);
        call.end = self.time();
        let mut seen = self.seen();
        if let Some(aside) = seen.aside.get_mut(&call.thread) {
            aside.since = call.end;
        }
        match answer {
            Ok(answer) => more(answer, &mut call, &mut seen),
            Err(e) => call.result = -i64::from(e.errno()),
        }
        drop(seen);
        self.queue.call(FinishedCall { number, call, aside });
    }

    /// A call about an inode that is known, or known from a listing.
    fn on_inode(&self, op: CallOp, ino: Ino) -> OngoingCall {
        let known = self.seen().files.number(ino);
        let file = known.or_else(|| self.file_of(&self.next.getattr(ino).ok()?));
        let mut begun = self.start(op);
        begun.call.file = file;
        begun
    }

    /// A call about a name.
    fn on_name(&self, op: CallOp, dir: Ino, name: &[u8]) -> OngoingCall {
        let text = self.name(name);
        let mut begun = self.on_inode(op, dir);
        (begun.call.dir, begun.call.name) = (begun.call.file.take(), text);
        begun
    }

    /// A call on an open file.
    fn on_handle(&self, op: CallOp, fh: Fh) -> OngoingCall {
        let ino = self.seen().opened.get(&fh).map(|opened| opened.ino);
        let mut begun = match ino {
            Some(ino) => self.on_inode(op, ino),
            None => self.start(op),
        };
        begun.call.handle = Some(fh.0);
        let thread = begun.call.thread;
        if thread != KERNEL
            && let Some(opened) = self.seen().opened.get_mut(&fh)
        {
            opened.user = thread;
        }
        begun
    }

    /// The number of a file that was there before; its first state is told.
    fn file_of(&self, attr: &Attr) -> Option<u64> {
        let seen = self.seen();
        if let Some(number) = seen.files.same(attr) {
            return Some(number);
        }
        let (dir, name) = seen.listed.get(&attr.ino).cloned()?;
        drop(seen);
        Some(self.found(attr, dir, &name))
    }

    /// A name leads to this: what it is in the trace.
    fn found(&self, attr: &Attr, dir: Ino, name: &[u8]) -> u64 {
        let target = match attr.kind {
            FileType::Symlink => self.next.readlink(attr.ino).unwrap_or_default(),
            _ => Vec::new(),
        };
        let mut seen = self.seen();
        if let Some(number) = seen.files.same(attr) {
            return number;
        }
        let number = seen.files.known(attr);
        let state = files::state(attr, number, seen.files.number(dir), self.name(name), &target);
        let at = seen.number;
        self.queue.file(at, state);
        number
    }

    /// Something is made, under a name.
    fn made<T>(
        &self,
        mut begun: OngoingCall,
        answer: Result<T>,
        of: impl FnOnce(&T) -> (Attr, Option<(Fh, OpenFlags)>),
    ) -> Result<T> {
        begun.call.file = None;
        self.finish(begun, &answer, |made, call, seen| {
            let (attr, opened) = of(made);
            call.file = Some(seen.files.known(&attr));
            if let Some((fh, flags)) = opened {
                call.handle = Some(fh.0);
                seen.opened.insert(fh, OpenHandle::new(attr.ino, flags, call.thread));
            }
        });
        answer
    }

    /// A name goes.
    fn removed(
        &self,
        op: CallOp,
        (dir, name): (Ino, &[u8]),
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let file = self.next.lookup(dir, name).ok().map(|attr| self.found(&attr, dir, name));
        let mut begun = self.on_name(op, dir, name);
        begun.call.file = file;
        let answer = call();
        self.finish(begun, &answer, |(), _, _| ());
        answer
    }

    fn wrote(
        &self,
        (fh, offset): (Fh, u64),
        (data, how): (&Bytes, OpenFlags),
        write: impl FnOnce() -> Result<usize>,
    ) -> Result<usize> {
        let opened = self.seen().opened.get(&fh).copied();
        let appends = opened.is_some_and(|o| o.flags.contains(OpenFlags::APPEND));
        let is_sync = opened.is_some_and(|o| o.flags.intersects(DURABLE));
        let end = || self.next.getattr(opened?.ino).ok().map(|attr| attr.size);
        let from = if appends { end().unwrap_or(offset) } else { offset };
        let mut begun = self.on_handle(CallOp::Write, fh);
        let call = &mut begun.call;
        (call.offset, call.len) = (from, data.len() as u64);
        call.flags = files::flags(how & OpenFlags::BY_CALL);
        if appends {
            call.flags.push(CallFlag::Append);
        }
        let thread = call.thread;
        if !call.kernel {
            let mut seen = self.seen();
            let last = seen.writes.get(&thread);
            call.part = last.is_some_and(|last| *last == (fh, from, true));
            // Of a call of more than a request there is more to come; one that is as long by
            // chance makes the next one a part of it. The kernel also cuts at the end of a page.
            // After a call that is to be durable it syncs, so that what follows is none.
            let cut = is_sync && (from + call.len).is_multiple_of(PAGE);
            let goes_on = call.len + PAGE > PIECE || cut;
            seen.writes.insert(thread, (fh, from + call.len, goes_on));
        }
        let answer = write();
        (begun.call.zeros, begun.call.saves) = contents::shares(data);
        self.finish(begun, &answer, |written, call, _| call.result = *written as i64);
        answer
    }

    fn synced(&self, op: CallOp, fh: Fh, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut begun = self.on_handle(op, fh);
        let mut seen = self.seen();
        let opened = seen.opened.get(&fh).is_some_and(|o| o.flags.intersects(DURABLE));
        // The kernel's own, after a write: at once, by the same thread.
        let wrote = seen.writes.remove(&begun.call.thread).is_some_and(|last| last.0 == fh);
        begun.call.part = opened && wrote;
        drop(seen);
        let answer = sync();
        self.finish(begun, &answer, |(), _, _| ());
        answer
    }

    fn changed<T>(&self, begun: OngoingCall, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let answer = change();
        self.finish(begun, &answer, |_, _, _| ());
        answer
    }

    fn read_from(
        &self,
        (fh, offset, len): (Fh, u64, usize),
        read: impl FnOnce() -> Result<Bytes>,
    ) -> Result<Bytes> {
        let mut begun = self.on_handle(CallOp::Read, fh);
        (begun.call.offset, begun.call.len) = (offset, len as u64);
        let answer = read();
        self.finish(begun, &answer, |data, call, _| call.result = data.len() as i64);
        answer
    }

    fn on_folder(&self, dir: Ino) -> Option<u64> {
        let known = self.seen().files.number(dir);
        known.or_else(|| self.file_of(&self.next.getattr(dir).ok()?))
    }
}
