//! What the workload did to files and to their names, and what it was promised.
//!
//! Contents belong to an *object*, the file whatever it is called: its writes carry tags that name
//! the object and the call. Names are *bindings*: from an operation on, a path holds an object or
//! nothing. Contents become durable by an fsync or fdatasync of the file, bindings by an fsync of
//! the folder they are in, both by a sync of everything: what POSIX promises and no more. (Most
//! file systems do more, as ext4, whose fsync of a new file keeps its name. None is blamed for not
//! doing so.)
//!
//! One task works in a folder and with its files, so operations on a path come one after
//! the other.

use std::collections::BTreeMap;

use steadfast_devices::filter::record::{Moment, RecordLog};
use steadfast_runtime::Mutex;

use crate::JOURNAL_MAGIC;
use crate::ledger::{Action, Operation};

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

/// An operation on names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Naming {
    /// A new file.
    Create {
        /// Its path.
        path: String,
    },
    /// A file got another name, which replaced what had it.
    Rename {
        /// Old path.
        from: String,
        /// New path.
        to: String,
    },
    /// A file got one name more.
    Link {
        /// A name that it has.
        from: String,
        /// The new one.
        to: String,
    },
    /// A name was removed.
    Remove {
        /// The path.
        path: String,
    },
    /// A folder was made. Its own name is not judged: a program that wants it durable syncs the
    /// folder that it is in before it puts anything into it.
    MakeFolder {
        /// Its path.
        path: String,
    },
    /// An empty folder was removed.
    RemoveFolder {
        /// Its path.
        path: String,
    },
}

/// An operation on names, with its moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameOperation {
    /// What it did.
    pub naming: Naming,
    /// When the call was made.
    pub started: Moment,
    /// When it returned.
    pub acknowledged: Option<Moment>,
}

/// What a path holds from an operation on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// The file, or nothing.
    pub holds: Option<Object>,
    /// The operation: an index in [`History::namings`].
    pub by: usize,
    /// From when on it was promised to survive a power cut.
    pub durable: Option<Moment>,
}

/// What a sync was of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncScope {
    /// A file.
    File(Object),
    /// A folder, by its path.
    Folder(String),
    /// Everything.
    All,
}

/// A sync, with its moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncOperation {
    /// What was to be made durable.
    pub of: SyncScope,
    /// When the call was made.
    pub started: Moment,
    /// When it returned.
    pub returned: Option<Moment>,
}

/// Everything that was done.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The syncs, in the order of their calls. What they made durable is in what follows.
    pub syncs: Vec<SyncOperation>,
    /// The writes to each file, in order; their tags name the file.
    pub contents: BTreeMap<Object, Vec<Operation>>,
    /// The operations on names, in the order of their calls.
    pub namings: Vec<NameOperation>,
    /// What each path held, in order; nothing before the first.
    pub bindings: BTreeMap<String, Vec<Binding>>,
}

impl History {
    /// Whether the operation that made a binding had begun before a tick.
    pub fn begun(&self, binding: &Binding, tick: u64) -> bool {
        self.namings[binding.by].started.tick < tick
    }

    /// Whether it had returned before a tick.
    pub fn returned(&self, binding: &Binding, tick: u64) -> bool {
        self.namings[binding.by].acknowledged.is_some_and(|a| a.tick < tick)
    }

    fn bind(&mut self, path: &str, holds: Option<Object>, by: usize) {
        let binding = Binding { holds, by, durable: None };
        self.bindings.entry(path.to_owned()).or_default().push(binding);
    }

    fn sync(&mut self, started: Moment, of: SyncScope) -> HistoryEvent {
        self.syncs.push(SyncOperation { of, started, returned: None });
        HistoryEvent::Sync(self.syncs.len() - 1)
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

    fn holder(&self, path: &str) -> Option<Object> {
        self.bindings.get(path)?.last()?.holds
    }
}

/// A call that the workload is about to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'a> {
    /// Makes a file. [`CallId::object`] is what it is from now on.
    Create(&'a str),
    /// Renames, from and to.
    Rename(&'a str, &'a str),
    /// Gives a file a second name: one that it has, the new one.
    Link(&'a str, &'a str),
    /// Removes a name.
    Remove(&'a str),
    /// Makes a folder.
    MakeFolder(&'a str),
    /// Removes an empty folder.
    RemoveFolder(&'a str),
    /// Writes [`CallId::tag`]'s stamped data: the file, the offset and the length in bytes, both
    /// multiples of 512.
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

    /// Notes that a call is made.
    pub fn begin(&self, call: Call<'_>) -> CallId {
        let at = self.log.note(NOTE, [0; 3]);
        let history = &mut *self.history.lock();
        let mut naming = |naming| {
            history.namings.push(NameOperation { naming, started: at, acknowledged: None });
            history.namings.len() - 1
        };
        let none = Object::BEFORE;
        let (object, tag, what) = match call {
            Call::Create(path) => {
                let by = naming(Naming::Create { path: path.into() });
                let object = Object(history.contents.len() as u64 + 1);
                history.contents.insert(object, Vec::new());
                history.bind(path, Some(object), by);
                (object, 0, HistoryEvent::Naming(by))
            }
            Call::Rename(from, to) => {
                let by = naming(Naming::Rename { from: from.into(), to: to.into() });
                let object = history.holder(from);
                history.bind(from, None, by);
                history.bind(to, object, by);
                (object.unwrap_or(none), 0, HistoryEvent::Naming(by))
            }
            Call::Link(from, to) => {
                let by = naming(Naming::Link { from: from.into(), to: to.into() });
                let object = history.holder(from);
                history.bind(to, object, by);
                (object.unwrap_or(none), 0, HistoryEvent::Naming(by))
            }
            Call::Remove(path) => {
                let by = naming(Naming::Remove { path: path.into() });
                history.bind(path, None, by);
                (none, 0, HistoryEvent::Naming(by))
            }
            Call::MakeFolder(path) => {
                (none, 0, HistoryEvent::Naming(naming(Naming::MakeFolder { path: path.into() })))
            }
            Call::RemoveFolder(path) => {
                (none, 0, HistoryEvent::Naming(naming(Naming::RemoveFolder { path: path.into() })))
            }
            Call::Write(object, offset, len) => {
                let tag = object.tag(history.operations(object) + 1);
                history.change(at, (object, tag), Action::Write { offset, len, tag })
            }
            Call::WriteJournal(object, offset, len) => {
                let tag = object.journal_tag();
                history.change(at, (object, tag), Action::Write { offset, len, tag })
            }
            Call::Change(object, action) => history.change(at, (object, 0), action),
            Call::SyncFile(object) => (object, 0, history.sync(at, SyncScope::File(object))),
            Call::SyncFolder(folder) => {
                (none, 0, history.sync(at, SyncScope::Folder(folder.into())))
            }
            Call::SyncAll => (none, 0, history.sync(at, SyncScope::All)),
        };
        CallId { object, tag, at, what }
    }

    /// Notes that it has returned, with success.
    pub fn end(&self, started: &CallId) {
        let now = self.log.note(NOTE, [0; 3]);
        let history = &mut *self.history.lock();
        let begun = started.at.tick;
        match &started.what {
            HistoryEvent::Naming(by) => history.namings[*by].acknowledged = Some(now),
            HistoryEvent::Write(index) => {
                if let Some(ops) = history.contents.get_mut(&started.object) {
                    ops[*index].acknowledged = Some(now);
                }
            }
            HistoryEvent::Sync(index) => {
                let sync = &mut history.syncs[*index];
                sync.returned = Some(now);
                match sync.of.clone() {
                    SyncScope::File(object) => history.contents_durable(Some(object), begun, now),
                    SyncScope::Folder(folder) => history.names_durable(Some(&folder), begun, now),
                    SyncScope::All => {
                        history.contents_durable(None, begun, now);
                        history.names_durable(None, begun, now);
                    }
                }
            }
        }
    }

    /// The history as it is now.
    pub fn history(&self) -> History {
        self.history.lock().clone()
    }
}

impl History {
    /// What had returned before `begun` is durable from `now` on: contents of one file, or of all.
    fn contents_durable(&mut self, object: Option<Object>, begun: u64, now: Moment) {
        let wanted = |o: &Object| object.is_none_or(|wanted| wanted == *o);
        for (_, ops) in self.contents.iter_mut().filter(|(o, _)| wanted(o)) {
            for op in ops.iter_mut().filter(|op| op.durable.is_none()) {
                if op.acknowledged.is_some_and(|a| a.tick < begun) {
                    op.durable = Some(now);
                }
            }
        }
    }

    /// The same of the names in one folder, or in all.
    fn names_durable(&mut self, folder: Option<&str>, begun: u64, now: Moment) {
        for (path, bindings) in &mut self.bindings {
            if folder.is_some_and(|folder| folder != folder_of(path)) {
                continue;
            }
            for binding in bindings.iter_mut().filter(|b| b.durable.is_none()) {
                if self.namings[binding.by].acknowledged.is_some_and(|a| a.tick < begun) {
                    binding.durable = Some(now);
                }
            }
        }
    }
}

/// The folder of a path: `a/b` of `a/b/c`.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
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
}
