//! The account of a run: what a workload did to files and to their names, and what it was promised.
//!
//! Contents belong to an *object*, the file whatever it is called: its operations are kept in the
//! order in which they were started, with the moments of the call, of its acknowledgement, and of
//! the moment from which it was promised to be durable. Writes carry stamped data
//! ([`steadfast_block::pattern`]) whose tag names the write, so that after a power cut each sector
//! shows which write it is from.
//!
//! Names are *bindings*: from an operation on, a path holds an object or nothing. Contents become
//! durable by an fsync or fdatasync of the file, bindings by an fsync of the folder they are in,
//! both by a sync of everything: what POSIX promises and no more. (Most file systems do more, as
//! ext4, whose fsync of a new file keeps its name. None is blamed for not doing so.) Of files whose
//! names nobody judges only the contents are kept ([`Account::begin_on`]): a benchmark's.
//!
//! Moments are those of the devices' record ([`RecordLog`]), so that calls and requests are in one
//! order even where many happen at the same nanosecond. One task writes to a file at a time, and
//! works in a folder: operations on a path come one after the other.
//!
//! Judges read the [`History`]: [`FilesJudge`] and
//! [`UnsyncedJudge`](crate::unsynced::UnsyncedJudge) contents alone, the history itself names too.
//! A program that is not ours writes what it likes: its calls are seen by
//! [`WatchedFs`](crate::program::WatchedFs) and judged by [`rules`](crate::program::rules).

mod calls;
mod files;
mod operation;

use std::collections::{BTreeMap, BTreeSet};

use steadfast_devices::filter::record::{Moment, RecordLog};
use steadfast_runtime::{Mutex, Nanos};

pub use files::FilesJudge;
pub use operation::{Action, Operation};

use crate::JOURNAL_MAGIC;
use crate::program::{self, CallKind};

/// Notes of the history in the record carry this label; their details mean nothing.
const NOTE: u64 = 0x0068_6973_746f_7279;
/// Of a tag, the bits that number the object's writes; those above number the object.
const WRITE_BITS: u32 = 32;

/// A file, whatever it is called. The first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object(pub u64);

impl Object {
    /// No file: what the disk held before there was a file system.
    pub const BEFORE: Object = Object(0);

    /// The object that a tag names: any tag names one, but it need not exist.
    pub(crate) fn of_tag(tag: u64) -> Object {
        Object(tag >> WRITE_BITS)
    }

    /// The tag of data that begins as the blocks of a journal do: a stamp begins with its tag.
    fn journal_tag(self) -> u64 {
        self.tag(u32::from_le_bytes(JOURNAL_MAGIC).into())
    }

    fn tag(self, write: u64) -> u64 {
        self.0 << WRITE_BITS | write
    }
}

/// What a path holds from an operation on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// The file, or nothing.
    pub holds: Option<Object>,
    /// The call: an index in [`History::namings`].
    pub by: usize,
    /// From when on it was promised to survive a power cut.
    pub durable: Option<Moment>,
}

/// Everything that was done.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The syncs in their order, and the file that each was of. What they made durable is in what
    /// follows.
    syncs: Vec<(Object, program::Call)>,
    /// The writes to each file, in order; their tags name the file.
    pub contents: BTreeMap<Object, Vec<Operation>>,
    /// The calls that changed names, in their order.
    pub namings: Vec<program::Call>,
    /// What each path held, in order; nothing before the first.
    pub bindings: BTreeMap<String, Vec<Binding>>,
    /// Files whose names are not judged, by their paths.
    files: BTreeMap<String, Object>,
    /// There may be things that nobody judges: symbolic links, devices, files too large to be read.
    pub(crate) has_others: bool,
    /// So many operations of a file, from its first one on, are promised: a sync need not look at
    /// them again.
    promised: BTreeMap<Object, usize>,
}

impl History {
    /// Whether the operation that made a binding had begun before a tick.
    pub fn begun(&self, binding: &Binding, tick: u64) -> bool {
        self.namings[binding.by].started.tick < tick
    }

    /// Whether it had returned before a tick.
    pub fn returned(&self, binding: &Binding, tick: u64) -> bool {
        self.namings[binding.by].returned.is_some_and(|r| r.tick < tick)
    }

    /// Forgets files: nothing is judged of them, nor of the names that they had.
    pub fn leave_out(&mut self, objects: &BTreeSet<Object>) {
        let is_left_out = |b: &Binding| b.holds.is_some_and(|object| objects.contains(&object));
        self.bindings.retain(|_, bindings| !bindings.iter().any(is_left_out));
        self.contents.retain(|object, _| !objects.contains(object));
        self.has_others |= !objects.is_empty();
    }

    /// The files whose names are not judged, each with what was done to it.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &[Operation])> {
        let of = |object: &Object| self.contents.get(object).map_or(&[][..], Vec::as_slice);
        self.files.iter().map(move |(path, object)| (path.as_str(), of(object)))
    }

    fn new_object(&mut self) -> Object {
        let object = Object(self.contents.len() as u64 + 1);
        self.contents.insert(object, Vec::new());
        object
    }

    /// Adds a call that changes names; what the paths hold from then on.
    fn naming(
        &mut self,
        started: Moment,
        (kind, path, other): (CallKind, &str, &str),
        object: Option<Object>,
        holds: &[(&str, Option<Object>)],
    ) -> (Object, u64, HistoryEvent) {
        let by = self.namings.len();
        let other = other.as_bytes().to_vec();
        let call = program::Call::plain(kind, path, started, None);
        self.namings.push(program::Call { other, ..call });
        for (path, holds) in holds {
            let binding = Binding { holds: *holds, by, durable: None };
            self.bindings.entry((*path).to_owned()).or_default().push(binding);
        }
        (object.unwrap_or(Object::BEFORE), 0, HistoryEvent::Naming(by))
    }

    fn sync(
        &mut self,
        started: Moment,
        kind: CallKind,
        (object, folder): (Object, &str),
    ) -> (Object, u64, HistoryEvent) {
        self.syncs.push((object, program::Call::plain(kind, folder, started, None)));
        (object, 0, HistoryEvent::Sync(self.syncs.len() - 1))
    }

    fn operations(&self, object: Object) -> u64 {
        self.contents.get(&object).map_or(0, |ops| ops.len() as u64)
    }

    fn change(
        &mut self,
        started: Moment,
        (object, tag): (Object, u64),
        action: Action,
    ) -> (Object, u64, HistoryEvent) {
        let ops = self.contents.entry(object).or_default();
        ops.push(Operation { action, started, acknowledged: None, durable: None });
        (object, tag, HistoryEvent::Write(ops.len() - 1))
    }

    /// The files in a folder: where each is, where it will be.
    fn inside(&self, from: &str, to: &str) -> Vec<(String, String, Object)> {
        let below = format!("{from}/");
        let paths = self.bindings.range(below.clone()..);
        let paths = paths.take_while(|(path, _)| path.starts_with(&below));
        let held = paths.filter_map(|(path, all)| Some((path, all.last()?.holds?)));
        held.map(|(path, object)| (path.clone(), format!("{to}{}", &path[from.len()..]), object))
            .collect()
    }

    fn holder(&self, path: &str) -> Option<Object> {
        self.bindings.get(path)?.last()?.holds
    }

    /// What a sync covers is durable from `now` on: contents of one file, or of all.
    fn contents_durable(
        &mut self,
        object: Option<Object>,
        covers: impl Fn(Moment) -> bool,
        now: Moment,
    ) {
        let wanted = |o: &Object| object.is_none_or(|wanted| wanted == *o);
        for (object, ops) in self.contents.iter_mut().filter(|(o, _)| wanted(o)) {
            let promised = self.promised.entry(*object).or_default();
            for op in &mut ops[*promised..] {
                if op.durable.is_none() && op.acknowledged.is_some_and(&covers) {
                    op.durable = Some(now);
                }
            }
            *promised += ops[*promised..].iter().take_while(|op| op.durable.is_some()).count();
        }
    }

    /// The same of the names in one folder, or in all.
    fn names_durable(&mut self, folder: Option<&[u8]>, begun: u64, now: Moment) {
        for (path, bindings) in &mut self.bindings {
            if folder.is_some_and(|folder| folder != folder_of(path).as_bytes()) {
                continue;
            }
            for binding in bindings.iter_mut().filter(|b| b.durable.is_none()) {
                if self.namings[binding.by].returned.is_some_and(|r| r.tick < begun) {
                    binding.durable = Some(now);
                }
            }
        }
    }
}

/// A call that the workload is about to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'a> {
    /// Makes a file. [`CallId::object`] is what it is from now on.
    Create(&'a str),
    /// Renames a file, or a folder with all that is in it, from and to.
    Rename(&'a str, &'a str),
    /// Two names change places.
    Exchange(&'a str, &'a str),
    /// Gives a file a second name: one that it has, the new one.
    Link(&'a str, &'a str),
    /// Removes a name.
    Remove(&'a str),
    /// Makes a folder.
    MakeFolder(&'a str),
    /// Removes an empty folder.
    RemoveFolder(&'a str),
    /// Writes [`CallId::tag`]'s stamped data: the file, the offset and the length in bytes.
    Write(Object, u64, u64),
    /// The same with data whose sectors begin with the magic number of a journal's blocks, as a
    /// copy of a file system has them. Once a file.
    WriteJournal(Object, u64, u64),
    /// Sets the size, allocates a range, or makes a hole. (A [`Write`](Call::Write) has a tag of
    /// its own.)
    Change(Object, Action),
    /// fsync or fdatasync of a file.
    SyncFile(Object),
    /// fsync of a folder.
    SyncFolder(&'a str),
    /// sync of everything.
    SyncAll,
}

/// What has been begun: hand it to [`Account::end`] when the call has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallId {
    /// The file made or written.
    pub object: Object,
    /// The tag of a write.
    pub tag: u64,
    at: Moment,
    what: HistoryEvent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HistoryEvent {
    Naming(usize),
    Write(usize),
    Sync(usize),
}

/// Writes the history while it happens.
pub struct Account {
    log: RecordLog,
    history: Mutex<History>,
}

impl Account {
    /// An empty history whose moments are in the order of `log`.
    pub fn new(log: &RecordLog) -> Self {
        Account { log: log.clone(), history: Mutex::default() }
    }

    /// Of a workload that may also make what nobody judges: symbolic links, devices, files of more
    /// than [`LARGEST`](crate::risk::LARGEST) bytes.
    #[must_use]
    pub fn with_others(self) -> Self {
        self.history.lock().has_others = true;
        self
    }

    /// Notes that a call is made.
    pub fn begin(&self, call: Call<'_>) -> CallId {
        let at = self.log.note(NOTE, [0; 3]);
        let history = &mut *self.history.lock();
        let none = Object::BEFORE;
        let (object, tag, what) = match call {
            Call::Create(path) => {
                let new = Some(history.new_object());
                history.naming(at, (CallKind::Create, path, ""), new, &[(path, new)])
            }
            Call::Rename(from, to) => {
                let object = history.holder(from);
                let inside = if object.is_none() { history.inside(from, to) } else { Vec::new() };
                let moved = inside.iter().flat_map(|(old, new, object)| {
                    [(old.as_str(), None), (new.as_str(), Some(*object))]
                });
                let own = match object {
                    Some(_) => vec![(from, None), (to, object)],
                    // What is not judged, a symbolic link, takes the place of a file.
                    None if history.holder(to).is_some() => vec![(to, None)],
                    None => Vec::new(),
                };
                let holds: Vec<_> = own.into_iter().chain(moved).collect();
                history.naming(at, (CallKind::Rename, from, to), object, &holds)
            }
            Call::Exchange(one, other) => {
                let (first, second) = (history.holder(one), history.holder(other));
                // Of folders, what is in them.
                let (to, from) = (history.inside(one, other), history.inside(other, one));
                let moved = || to.iter().chain(&from);
                let mut holds: BTreeMap<&str, Option<Object>> =
                    moved().map(|(old, ..)| (old.as_str(), None)).collect();
                holds.extend(moved().map(|(_, new, object)| (new.as_str(), Some(*object))));
                if first.or(second).is_some() {
                    holds.extend([(one, second), (other, first)]);
                }
                let holds: Vec<_> = holds.into_iter().collect();
                history.naming(at, (CallKind::Exchange, one, other), first, &holds)
            }
            Call::Link(from, to) => {
                let object = history.holder(from);
                history.naming(at, (CallKind::Link, from, to), object, &[(to, object)])
            }
            Call::Remove(path) => {
                history.naming(at, (CallKind::Unlink, path, ""), None, &[(path, None)])
            }
            // Its own name is not judged: a program that wants it durable syncs the folder that it
            // is in before it puts anything into it.
            Call::MakeFolder(path) => history.naming(at, (CallKind::Mkdir, path, ""), None, &[]),
            Call::RemoveFolder(path) => history.naming(at, (CallKind::Rmdir, path, ""), None, &[]),
            Call::Write(object, offset, len) => {
                let tag = object.tag(history.operations(object) + 1);
                history.change(at, (object, tag), Action::Write { offset, len, tag })
            }
            Call::WriteJournal(object, offset, len) => {
                let tag = object.journal_tag();
                history.change(at, (object, tag), Action::Write { offset, len, tag })
            }
            Call::Change(object, action) => history.change(at, (object, 0), action),
            Call::SyncFile(object) => history.sync(at, CallKind::Fsync, (object, "")),
            Call::SyncFolder(folder) => history.sync(at, CallKind::FsyncDir, (none, folder)),
            Call::SyncAll => history.sync(at, CallKind::Sync, (none, "")),
        };
        CallId { object, tag, at, what }
    }

    /// Notes that it has returned, with success.
    pub fn end(&self, started: &CallId) {
        let now = self.log.note(NOTE, [0; 3]);
        let history = &mut *self.history.lock();
        let begun = started.at.tick;
        match &started.what {
            HistoryEvent::Naming(by) => history.namings[*by].returned = Some(now),
            HistoryEvent::Write(index) => {
                if let Some(ops) = history.contents.get_mut(&started.object) {
                    ops[*index].acknowledged = Some(now);
                }
            }
            HistoryEvent::Sync(index) => {
                let (object, sync) = &mut history.syncs[*index];
                sync.returned = Some(now);
                let (object, kind, folder) = (*object, sync.kind, sync.path.clone());
                if kind != CallKind::FsyncDir {
                    let file = (kind == CallKind::Fsync).then_some(object);
                    history.contents_durable(file, |a| a.tick < begun, now);
                }
                if kind != CallKind::Fsync {
                    let folder = (kind == CallKind::FsyncDir).then_some(&folder[..]);
                    history.names_durable(folder, begun, now);
                }
            }
        }
    }

    /// Notes that a write has returned that promised to be durable by then.
    pub fn end_durable(&self, started: &CallId) {
        self.end(started);
        let history = &mut *self.history.lock();
        if let (HistoryEvent::Write(index), Some(ops)) =
            (&started.what, history.contents.get_mut(&started.object))
        {
            ops[*index].durable = ops[*index].acknowledged;
        }
    }

    /// Notes that a call on a file begins whose name is not judged.
    pub fn begin_on(&self, path: &str, action: Action) {
        let started = self.log.note(NOTE, [0; 3]);
        let history = &mut *self.history.lock();
        let object = match history.files.get(path) {
            Some(object) => *object,
            None => {
                let object = history.new_object();
                history.files.insert(path.to_owned(), object);
                object
            }
        };
        history.change(started, (object, 0), action);
    }

    /// Notes that the last call on such a file has returned; `durable` if that promised
    /// durability.
    pub fn end_on(&self, path: &str, durable: bool) {
        let now = self.log.note(NOTE, [0; 3]);
        let History { files, contents, .. } = &mut *self.history.lock();
        let ops = files.get(path).and_then(|object| contents.get_mut(object));
        if let Some(op) = ops.and_then(|ops| ops.last_mut()) {
            op.acknowledged = Some(now);
            op.durable = durable.then_some(now);
        }
    }

    /// Notes that an fsync or fdatasync of such a file (`None`: a sync of everything), begun at
    /// `started`, has returned: all that was acknowledged before it began is durable.
    pub fn synced(&self, path: Option<&str>, started: Nanos) {
        let now = self.log.note(NOTE, [0; 3]);
        let history = &mut *self.history.lock();
        let object = path.map(|path| history.files.get(path).copied().unwrap_or(Object::BEFORE));
        history.contents_durable(object, |a| a.at <= started, now);
    }

    #[cfg(test)]
    pub(crate) fn history(&self) -> History {
        self.history.lock().clone()
    }

    /// The history, which is empty afterwards.
    pub fn take(&self) -> History {
        std::mem::take(&mut *self.history.lock())
    }
}

/// The folder of a path: `a/b` of `a/b/c`.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_runtime::{Sim, now, sleep};

    use super::*;

    #[test]
    fn data_that_begins_as_a_journal_does() {
        let bytes = steadfast_block::pattern::bytes(Object(7).journal_tag(), 4096, 512);
        assert_eq!(bytes[..4], JOURNAL_MAGIC);
        assert_eq!(Object::of_tag(Object(7).journal_tag()), Object(7));
    }

    fn done(account: &Account, call: Call<'_>) -> CallId {
        let started = account.begin(call);
        account.end(&started);
        started
    }

    #[test]
    fn promises_are_made_to_the_file_and_to_the_folder_apart() {
        let account = Account::new(&RecordLog::new());
        let a = done(&account, Call::Create("x/a")).object;
        done(&account, Call::Write(a, 0, 512));
        done(&account, Call::SyncFile(a));
        let write = |n: usize| account.history().contents[&a][n].durable.is_some();
        let name = |path: &str, n: usize| account.history().bindings[path][n].durable.is_some();
        assert!(write(0) && !name("x/a", 0));
        done(&account, Call::Create("y/b"));
        done(&account, Call::SyncFolder("x"));
        assert!(name("x/a", 0) && !name("y/b", 0));
        done(&account, Call::Write(a, 0, 512));
        let late = account.begin(Call::SyncAll);
        done(&account, Call::Rename("x/a", "y/b"));
        account.end(&late);
        assert!(write(1) && name("y/b", 0));
        assert!(!name("y/b", 1), "begun after the sync");
        assert_eq!(account.history().bindings["y/b"][1].holds, Some(a));
        assert_eq!(account.history().bindings["x/a"][1].holds, None);
    }

    #[test]
    fn tags_name_the_object() {
        let account = Account::new(&RecordLog::new());
        let object = done(&account, Call::Create("a")).object;
        let tag = account.begin(Call::Write(object, 0, 512)).tag;
        assert_eq!((Object::of_tag(tag), tag & 0xffff_ffff), (object, 1));
    }

    #[test]
    fn a_sync_covers_what_was_acknowledged_before_it_started() {
        let history = Sim::new(0).run(|| {
            let account = Account::new(&RecordLog::new());
            let write = |tag| Action::Write { offset: 0, len: 512, tag };
            account.begin_on("f", write(1));
            account.end_on("f", false);
            account.begin_on("f", write(2));
            sleep(Duration::from_nanos(1));
            let started = now();
            sleep(Duration::from_nanos(1));
            account.end_on("f", false);
            account.synced(Some("f"), started);
            account.take()
        });
        let history = history.unwrap();
        let [("f", ops)] = history.files().collect::<Vec<_>>()[..] else { panic!("one") };
        assert!(ops[0].durable.is_some() && ops[1].durable.is_none());
    }

    #[test]
    fn what_one_sync_leaves_out_the_next_covers() {
        let account = Account::new(&RecordLog::new());
        let file = done(&account, Call::Create("f")).object;
        let write = |n: usize| account.history().contents[&file][n].durable.map(|d| d.tick);
        done(&account, Call::Write(file, 0, 512));
        let late = account.begin(Call::Write(file, 512, 512));
        done(&account, Call::SyncFile(file));
        account.end(&late);
        assert!(write(0).is_some() && write(1).is_none());
        done(&account, Call::SyncAll);
        assert!(write(1) > write(0), "{:?}", (write(0), write(1)));
    }

    #[test]
    fn a_synchronous_write_is_promised_when_it_returns() {
        let account = Account::new(&RecordLog::new());
        account.begin_on("f", Action::Write { offset: 0, len: 512, tag: 1 });
        account.end_on("f", true);
        let history = account.take();
        let [("f", [write])] = history.files().collect::<Vec<_>>()[..] else { panic!("one") };
        assert_eq!(write.durable, write.acknowledged);
    }
}
