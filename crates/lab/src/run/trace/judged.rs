//! A replay under a judge: each call is told to the account, by which it is judged after a cut.

use std::collections::{BTreeSet, HashMap};

use steadfast_crash::account::{Account, Action, Call as Told, CallId, History, Object};
use steadfast_crash::risk::LARGEST;
use steadfast_runtime::Mutex;
use steadfast_trace::format::{Call, Flag, Op};
use steadfast_trace::replay::{Observer, Paths};
use steadfast_vfs::{FileSystem, TransactMask};

/// Tells the account.
pub(super) struct Judged {
    account: Account,
    /// With data=transact an fsync need not be a promise.
    fsync_promises: bool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    objects: HashMap<u64, Object>,
    begun: HashMap<u64, CallId>,
    /// Files that are not judged: too large, or changed by what the account does not know.
    left_out: BTreeSet<Object>,
}

impl Judged {
    /// Of a replay on `fs`.
    pub fn new(account: Account, fs: &dyn FileSystem) -> Judged {
        let promises =
            fs.transact_policy().map_or(true, |policy| policy.mask.intersects(TransactMask::FSYNC));
        Judged { account, fsync_promises: promises, known: Mutex::default() }
    }

    /// What was done and promised.
    pub fn history(&self) -> History {
        let mut history = self.account.take();
        history.leave_out(&self.known.lock().left_out);
        history
    }

    /// What the account is told, and of a file that is made the object.
    fn told(&self, call: &Call, paths: &Paths) -> Option<CallId> {
        let object = || self.known.lock().objects.get(&call.file?).copied();
        let path = || paths.path.as_deref();
        let change = |action| Some(self.account.begin(Told::Change(object()?, action)));
        match call.op {
            Op::Create => {
                let id = self.account.begin(Told::Create(path()?));
                self.known.lock().objects.insert(call.file?, id.object);
                Some(id)
            }
            Op::Open if call.has(Flag::Truncate) => change(Action::EMPTY),
            Op::Write => {
                let object = object()?;
                self.too_large(object, call.offset.saturating_add(call.len));
                Some(self.account.begin(Told::Write(object, call.offset, call.len)))
            }
            Op::Truncate => {
                self.too_large(object()?, call.offset);
                change(Action::Resize { size: call.offset })
            }
            Op::Punch | Op::Zero => change(Action::Clear { offset: call.offset, len: call.len }),
            Op::Allocate | Op::Reserve => {
                let keep_size = call.op == Op::Reserve;
                self.too_large(object()?, call.offset.saturating_add(call.len));
                change(Action::Allocate { offset: call.offset, len: call.len, keep_size })
            }
            Op::Collapse | Op::Insert => {
                self.known.lock().left_out.insert(object()?);
                None
            }
            Op::Mkdir => Some(self.account.begin(Told::MakeFolder(path()?))),
            Op::Rmdir => Some(self.account.begin(Told::RemoveFolder(path()?))),
            Op::Unlink => Some(self.account.begin(Told::Remove(path()?))),
            Op::Rename => Some(self.account.begin(Told::Rename(path()?, paths.to.as_deref()?))),
            Op::Exchange => Some(self.account.begin(Told::Exchange(path()?, paths.to.as_deref()?))),
            Op::Link => Some(self.account.begin(Told::Link(path()?, paths.to.as_deref()?))),
            Op::Fsync | Op::Fdatasync if self.fsync_promises => {
                Some(self.account.begin(Told::SyncFile(object()?)))
            }
            Op::Fsyncdir if self.fsync_promises => {
                Some(self.account.begin(Told::SyncFolder(path().unwrap_or(""))))
            }
            Op::Sync => Some(self.account.begin(Told::SyncAll)),
            _ => None,
        }
    }

    fn too_large(&self, object: Object, end: u64) {
        if end > LARGEST {
            self.known.lock().left_out.insert(object);
        }
    }
}

impl Observer for Judged {
    fn made(&self, file: u64, path: &str, regular: Option<u64>) -> Option<u64> {
        let size = regular?;
        let created = self.account.begin(Told::Create(path));
        self.account.end(&created);
        self.known.lock().objects.insert(file, created.object);
        self.too_large(created.object, size);
        if size == 0 {
            return None;
        }
        let written = self.account.begin(Told::Write(created.object, 0, size));
        self.account.end(&written);
        Some(written.tag)
    }

    fn prepared(&self) {
        let everything = self.account.begin(Told::SyncAll);
        self.account.end(&everything);
    }

    fn begins(&self, number: u64, call: &Call, paths: &Paths) -> Option<u64> {
        let id = self.told(call, paths)?;
        let tag = (call.op == Op::Write).then_some(id.tag);
        self.known.lock().begun.insert(number, id);
        tag
    }

    fn ended(&self, number: u64, _: &Call, succeeded: bool, durable: bool) {
        let begun = self.known.lock().begun.remove(&number);
        match begun.filter(|_| succeeded) {
            Some(id) if durable && self.fsync_promises => self.account.end_durable(&id),
            Some(id) => self.account.end(&id),
            None => {}
        }
    }
}
