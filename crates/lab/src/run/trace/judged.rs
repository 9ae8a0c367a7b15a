//! A replay under a judge: each call is told to the account, by which it is judged after a cut.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use steadfast_crash::account::{Account, Action, Call as Told, CallId, History, Object};
use steadfast_crash::risk::LARGEST;
use steadfast_runtime::Mutex;
use steadfast_trace::format::{CallFlag, CallOp, TraceCall};
use steadfast_trace::replay::{CallPaths, ReplayObserver};
use steadfast_vfs::{FileSystem, TransactMask};

use crate::results::JudgedScope;

/// Tells the account.
pub(super) struct ReplayAccount {
    account: Account,
    /// With data=transact an fsync need not be a promise.
    fsync_promises: bool,
    known: Mutex<AccountState>,
}

#[derive(Default)]
struct AccountState {
    objects: HashMap<u64, Object>,
    begun: HashMap<u64, (Option<CallId>, CallPaths)>,
    /// Files that are not judged: too large, or changed by what the account does not know.
    left_out: BTreeSet<Object>,
    promises: u64,
    synced: BTreeSet<Object>,
    /// Where files are whose name is new and not synced.
    unnamed: BTreeMap<Object, String>,
}

impl AccountState {
    /// What a call that has returned leaves of names and syncs.
    fn note(&mut self, call: &TraceCall, paths: &CallPaths, durable: bool) {
        let object = call.file.and_then(|file| self.objects.get(&file)).copied();
        let folder = |path: &str| path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        if call.op.is_sync() || durable {
            self.promises += 1;
        }
        match call.op {
            CallOp::Create | CallOp::Mknod => self.unnamed.extend(object.zip(paths.path.clone())),
            CallOp::Rename => self.unnamed.extend(object.zip(paths.to.clone())),
            CallOp::Unlink => {
                self.unnamed.retain(|_, at| Some(at.as_str()) != paths.path.as_deref());
            }
            CallOp::Fsyncdir => {
                let synced = paths.path.as_deref().unwrap_or("");
                self.unnamed.retain(|_, at| folder(at) != synced);
            }
            CallOp::Sync => self.unnamed.clear(),
            CallOp::Fsync | CallOp::Fdatasync => self.synced.extend(object),
            CallOp::Write if durable => self.synced.extend(object),
            _ => {}
        }
    }
}

impl ReplayAccount {
    /// Of a replay on `fs`.
    pub fn new(account: Account, fs: &dyn FileSystem) -> ReplayAccount {
        let promises =
            fs.transact_policy().map_or(true, |policy| policy.mask.intersects(TransactMask::FSYNC));
        ReplayAccount { account, fsync_promises: promises, known: Mutex::default() }
    }

    /// What was done and promised.
    pub fn history(&self) -> History {
        let mut history = self.account.take();
        history.leave_out(&self.known.lock().left_out);
        history
    }

    /// What of it is judged, as far as the calls say.
    pub fn scope(&self) -> JudgedScope {
        let known = self.known.lock();
        let without = known.unnamed.keys().filter(|object| known.synced.contains(object));
        JudgedScope {
            promises: known.promises,
            files_left_out: known.left_out.len() as u64,
            files_without_name: without.count() as u64,
            no_volatile_cache: false,
        }
    }

    /// What the account is told, and of a file that is made the object.
    fn told(&self, call: &TraceCall, paths: &CallPaths) -> Option<CallId> {
        let object = || self.known.lock().objects.get(&call.file?).copied();
        let path = || paths.path.as_deref();
        let change = |action| Some(self.account.begin(Told::Change(object()?, action)));
        match call.op {
            CallOp::Create | CallOp::Mknod => {
                let id = self.account.begin(Told::Create(path()?));
                self.known.lock().objects.insert(call.file?, id.object);
                Some(id)
            }
            CallOp::Open if call.has(CallFlag::Truncate) => change(Action::EMPTY),
            CallOp::Write => {
                let object = object()?;
                self.too_large(object, call.offset.saturating_add(call.len));
                Some(self.account.begin(Told::Write(object, call.offset, call.len)))
            }
            CallOp::Truncate => {
                self.too_large(object()?, call.offset);
                change(Action::Resize { size: call.offset })
            }
            CallOp::Punch => change(Action::Clear { offset: call.offset, len: call.len }),
            CallOp::Allocate | CallOp::Reserve => {
                let keep_size = call.op == CallOp::Reserve;
                self.too_large(object()?, call.offset.saturating_add(call.len));
                change(Action::Allocate { offset: call.offset, len: call.len, keep_size })
            }
            // Zeros may make the file longer, too: that is one change more than the account knows.
            CallOp::Collapse | CallOp::Insert | CallOp::Zero => {
                self.known.lock().left_out.insert(object()?);
                None
            }
            CallOp::Mkdir => Some(self.account.begin(Told::MakeFolder(path()?))),
            CallOp::Rmdir => Some(self.account.begin(Told::RemoveFolder(path()?))),
            CallOp::Unlink => Some(self.account.begin(Told::Remove(path()?))),
            CallOp::Rename => Some(self.account.begin(Told::Rename(path()?, paths.to.as_deref()?))),
            CallOp::Exchange => {
                Some(self.account.begin(Told::Exchange(path()?, paths.to.as_deref()?)))
            }
            CallOp::Link => Some(self.account.begin(Told::Link(path()?, paths.to.as_deref()?))),
            CallOp::Fsync | CallOp::Fdatasync if self.fsync_promises => {
                Some(self.account.begin(Told::SyncFile(object()?)))
            }
            CallOp::Fsyncdir if self.fsync_promises => {
                Some(self.account.begin(Told::SyncFolder(path().unwrap_or(""))))
            }
            CallOp::Sync => Some(self.account.begin(Told::SyncAll)),
            _ => None,
        }
    }

    fn too_large(&self, object: Object, end: u64) {
        if end > LARGEST {
            self.known.lock().left_out.insert(object);
        }
    }
}

impl ReplayObserver for ReplayAccount {
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

    fn begins(&self, number: u64, call: &TraceCall, paths: &CallPaths) -> Option<u64> {
        let id = self.told(call, paths);
        let tag = id.as_ref().filter(|_| call.op == CallOp::Write).map(|id| id.tag);
        self.known.lock().begun.insert(number, (id, paths.clone()));
        tag
    }

    fn ended(&self, number: u64, call: &TraceCall, succeeded: bool, durable: bool) {
        let begun = self.known.lock().begun.remove(&number);
        let Some((id, paths)) = begun.filter(|_| succeeded) else { return };
        if self.fsync_promises || call.op == CallOp::Sync {
            self.known.lock().note(call, &paths, durable);
        }
        match id {
            Some(id) if durable && self.fsync_promises => self.account.end_durable(&id),
            Some(id) => self.account.end(&id),
            None => {}
        }
    }
}
