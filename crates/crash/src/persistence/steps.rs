//! Calls taken apart: what of each may be there after a cut, and what is not.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use steadfast_vfs::{Attr, FileType};

use super::world::{ROOT, World, attr};
use crate::program::{Call, CallDetail, CallKind, RangeChange, file_id, number_of, returns};
use crate::tree::{Tree, shown};

/// Data are there or not in pieces of this many bytes: a page, as caches write it.
pub const PAGE: u64 = 4096;

/// Largest write that is taken apart, in bytes: a recording may say that it had any size.
const WRITE_MAX: usize = 64 << 20;

/// Of longer writes the size is there at once, in bytes: else there would be too many steps.
const SIZED_BY_PAGE: usize = 16 * PAGE as usize;
/// Generations from here on are given to files whose number was used before.
const AGAIN: u64 = 0x8000_0000;

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The directory's number and generation.
    pub dir: u64,
    /// The name.
    pub name: Vec<u8>,
}

/// What a step does. Files are numbers with their generations, as in calls.
#[derive(Debug, Clone)]
pub enum Effect {
    /// There is a new file, without a name yet.
    Make {
        /// It.
        file: u64,
        /// Its attributes; its size is 0.
        attr: Attr,
        /// Of a symbolic link.
        target: Vec<u8>,
    },
    /// A file gets a name.
    Bind {
        /// The name.
        at: Place,
        /// The file.
        file: u64,
    },
    /// A name goes.
    Unbind {
        /// The name.
        at: Place,
        /// The file that had it.
        file: u64,
    },
    /// A name is moved, at once.
    Move {
        /// The old name.
        from: Place,
        /// The new one.
        to: Place,
        /// The file that is moved.
        file: u64,
        /// The file that loses the name.
        replaced: Option<u64>,
    },
    /// Two names change places, at once.
    Swap {
        /// One name.
        one: Place,
        /// The other one.
        other: Place,
        /// What had them, in this order.
        files: (u64, u64),
    },
    /// A piece of data.
    Data {
        /// The file.
        file: u64,
        /// Byte offset.
        at: u64,
        /// What is written, within one page.
        bytes: Bytes,
    },
    /// A range becomes zeros.
    Zeros {
        /// The file.
        file: u64,
        /// First byte.
        from: u64,
        /// Behind the last byte.
        to: u64,
    },
    /// The file's size is another one.
    Size {
        /// The file.
        file: u64,
        /// The new size in bytes.
        size: u64,
        /// By a write beyond the end: it comes with the data.
        written: bool,
        /// The file becomes shorter.
        shorter: bool,
    },
    /// A range goes, and what follows moves down.
    Collapse {
        /// The file.
        file: u64,
        /// Where.
        at: u64,
        /// Bytes.
        len: u64,
    },
    /// A range of zeros comes in.
    Insert {
        /// The file.
        file: u64,
        /// Where.
        at: u64,
        /// Bytes.
        len: u64,
    },
    /// Permissions or owners.
    Attributes {
        /// The file.
        file: u64,
        /// The new ones, where they change.
        mode: Option<u16>,
        /// Owner.
        uid: Option<u32>,
        /// Group.
        gid: Option<u32>,
    },
}

impl Effect {
    /// The file that it is about: of a name, the one that gets or loses it.
    pub fn file(&self) -> u64 {
        match self {
            Effect::Make { file, .. }
            | Effect::Bind { file, .. }
            | Effect::Unbind { file, .. }
            | Effect::Move { file, .. }
            | Effect::Data { file, .. }
            | Effect::Zeros { file, .. }
            | Effect::Size { file, .. }
            | Effect::Collapse { file, .. }
            | Effect::Insert { file, .. }
            | Effect::Attributes { file, .. } => *file,
            Effect::Swap { files, .. } => files.0,
        }
    }

    /// The names that it changes.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        let (one, other) = match self {
            Effect::Bind { at, .. } | Effect::Unbind { at, .. } => (Some(at), None),
            Effect::Move { from, to, .. } => (Some(from), Some(to)),
            Effect::Swap { one, other, .. } => (Some(one), Some(other)),
            _ => (None, None),
        };
        one.into_iter().chain(other)
    }

    /// It changes a name.
    pub fn is_name(&self) -> bool {
        self.places().next().is_some()
    }

    /// It changes what the file holds, its size included.
    pub fn is_contents(&self) -> bool {
        !self.is_name() && !matches!(self, Effect::Make { .. } | Effect::Attributes { .. })
    }
}

/// A step of a call.
#[derive(Debug, Clone)]
pub struct Step {
    /// The call's place in the list.
    pub call: usize,
    /// The tick of its beginning: it may be there after a cut behind it.
    pub started: u64,
    /// The tick at which the call had returned.
    pub returned: u64,
    /// The tick from which on no sync makes it durable: one of its file was made to fail.
    pub lost_from: u64,
    /// What it does.
    pub effect: Effect,
}

/// What a call that makes something durable is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SyncScope {
    /// Contents and attributes of a file.
    File(u64),
    /// Contents of a file, and its size.
    Data(u64),
    /// The names in a directory.
    Names(u64),
    /// Everything.
    All,
    /// What one write wrote: the call's place.
    Write(usize),
}

/// A call that has made something durable.
#[derive(Debug, Clone, Copy)]
pub struct Sync {
    /// What.
    pub of: SyncScope,
    /// What had returned before this tick is durable,
    pub began: u64,
    /// from this tick on.
    pub ended: u64,
}

/// The steps of a run, in the order of the calls.
#[derive(Debug, Clone)]
pub struct Steps {
    /// What there was before.
    pub base: World,
    /// The steps.
    pub all: Vec<Step>,
    /// What has made some of them durable.
    pub syncs: Vec<Sync>,
    /// Calls that cannot be taken apart, in words.
    pub unknown: BTreeSet<String>,
}

impl Steps {
    /// Of the calls of a run that began with `base`. `halves`: the two names of a rename are two
    /// steps.
    pub fn of(calls: &[Call], base: &Tree, halves: bool) -> Steps {
        let base = World::of(base);
        let steps = Steps {
            base: base.clone(),
            all: Vec::new(),
            syncs: Vec::new(),
            unknown: BTreeSet::new(),
        };
        let again = HashMap::new();
        let mut taking = StepList { steps, now: base, again, halves, call: 0, times: (0, 0) };
        for ((place, call), returned) in calls.iter().enumerate().zip(returns(calls)) {
            if call.loses_data() {
                taking.lost(call);
            }
            if !call.failed {
                taking.call = place;
                taking.times =
                    (call.started.tick, returned.map_or(u64::MAX, |returned| returned.tick));
                taking.call(call);
            }
        }
        taking.steps
    }
}

/// Takes calls apart, one after the other.
struct StepList {
    steps: Steps,
    /// The files after all calls so far.
    now: World,
    /// Files whose number had another file before.
    again: HashMap<u64, u64>,
    halves: bool,
    /// The call, when it began, and when it had returned.
    call: usize,
    times: (u64, u64),
}

impl StepList {
    fn step(&mut self, effect: Effect) {
        self.now.take(&effect);
        let (started, returned) = self.times;
        let (call, lost_from) = (self.call, u64::MAX);
        self.steps.all.push(Step { call, started, returned, lost_from, effect });
    }

    /// A sync has failed: what was written to its file and is not durable yet stays so. Linux takes
    /// the pages for clean, and a later sync leaves them out; one that is written again goes out
    /// whole. (A later sync may keep the size.)
    fn lost(&mut self, sync: &Call) {
        let (lost_from, of) = (sync.started.tick, self.file(sync.ino));
        for step in &mut self.steps.all {
            if matches!(step.effect, Effect::Data { file, .. } if file == of) {
                step.lost_from = step.lost_from.min(lost_from);
            }
        }
    }

    fn synced(&mut self, of: SyncScope) {
        let (began, ended) = self.times;
        self.steps.syncs.push(Sync { of, began, ended });
    }

    /// The place of a path, or a word that it is not known.
    fn place(&mut self, call: &Call, path: &[u8]) -> Option<Place> {
        let place = if call.unplaced { None } else { self.now.place(path) };
        if place.is_none() {
            let what = format!("{call}: nobody knows in which folder");
            self.steps.unknown.insert(what);
        }
        place
    }

    /// The file of a number. A number that was used before without another generation (the kernel
    /// shows none) is another file from its creation on.
    fn file(&self, number: u64) -> u64 {
        self.again.get(&number).copied().unwrap_or(number)
    }

    fn call(&mut self, call: &Call) {
        let file = self.file(call.ino);
        match call.kind {
            CallKind::Create | CallKind::Mkdir | CallKind::Symlink | CallKind::Mknod => {
                self.made(call);
            }
            CallKind::Link => {
                if let Some(at) = self.place(call, &call.other) {
                    self.step(Effect::Bind { at, file });
                }
            }
            CallKind::Unlink | CallKind::Rmdir => {
                if let Some(at) = self.place(call, &call.path) {
                    self.step(Effect::Unbind { at, file });
                }
            }
            CallKind::Rename => self.renamed(call),
            CallKind::Exchange => {
                let one = self.place(call, &call.path);
                let other = self.place(call, &call.other);
                if let Some((one, other)) = one.zip(other) {
                    self.step(Effect::Swap { one, other, files: (file, self.file(call.replaced)) });
                }
            }
            CallKind::Write => self.written(call),
            CallKind::Truncate => self.resize(file, call.offset, false),
            CallKind::Fallocate => self.allocated(call),
            CallKind::Attributes => {
                if let CallDetail::Attributes { mode, uid, gid } = call.detail {
                    self.step(Effect::Attributes { file, mode, uid, gid });
                }
            }
            CallKind::Fsync => self.synced(SyncScope::File(file)),
            CallKind::Fdatasync => self.synced(SyncScope::Data(file)),
            CallKind::FsyncDir => {
                let root = call.path.is_empty() && !call.unplaced;
                self.synced(SyncScope::Names(if root { ROOT } else { file }));
            }
            CallKind::Sync => self.synced(SyncScope::All),
        }
    }

    fn made(&mut self, call: &Call) {
        let CallDetail::Node { mode, uid, gid, rdev, target } = &call.detail else {
            self.steps.unknown.insert(format!("{call}: it had not returned"));
            return;
        };
        let kind = match call.kind {
            CallKind::Mkdir => FileType::Directory,
            CallKind::Symlink => FileType::Symlink,
            CallKind::Mknod => FileType::Fifo,
            _ => FileType::Regular,
        };
        if self.now.size(call.ino).is_some() {
            let another = (AGAIN + self.again.len() as u64) << 32 | number_of(call.ino).0;
            self.again.insert(call.ino, another);
        }
        let file = self.file(call.ino);
        let size = target.len() as u64;
        let (mode, uid, gid, rdev) = (*mode, *uid, *gid, *rdev);
        let attr = Attr { uid, gid, rdev, size, ..attr(kind, mode) };
        self.step(Effect::Make { file, attr, target: target.clone() });
        // A file without a name (O_TMPFILE) has no path.
        if (!call.path.is_empty() || call.unplaced)
            && let Some(at) = self.place(call, &call.path)
        {
            self.step(Effect::Bind { at, file });
        }
    }

    fn renamed(&mut self, call: &Call) {
        let from = self.place(call, &call.path);
        let to = self.place(call, &call.other);
        let Some((from, to)) = from.zip(to) else { return };
        let file = self.file(call.ino);
        // Two names of one file: rename(2) leaves both.
        if self.now.at(&to) == Some(file) {
            return;
        }
        let replaced = self.now.at(&to);
        if self.halves {
            self.step(Effect::Bind { at: to, file });
            self.step(Effect::Unbind { at: from, file });
        } else {
            self.step(Effect::Move { from, to, file, replaced });
        }
    }

    fn written(&mut self, call: &Call) {
        let CallDetail::Bytes(packed) = &call.detail else { return };
        if packed.len() > WRITE_MAX {
            self.steps.unknown.insert(format!("{call}: more than {WRITE_MAX} bytes in one call"));
            return;
        }
        let (file, all) = (self.file(call.ino), packed.unpack());
        if all.is_empty() {
            return;
        }
        let (mut at, end) = (call.offset, call.offset.saturating_add(all.len() as u64));
        // A part of what was written may be written back, and the size reaches as far.
        let by_page = all.len() <= SIZED_BY_PAGE;
        while at < end {
            let to = (at / PAGE + 1).saturating_mul(PAGE).min(end);
            let from = (at - call.offset) as usize;
            let bytes = all.slice(from..from + (to - at) as usize);
            self.step(Effect::Data { file, at, bytes });
            if (by_page || to == end) && self.now.size(file).is_some_and(|size| size < to) {
                self.resize(file, to, true);
            }
            at = to;
        }
        if call.promises {
            let ended = self.times.1;
            self.steps.syncs.push(Sync { of: SyncScope::Write(self.call), began: ended, ended });
        }
    }

    fn resize(&mut self, file: u64, size: u64, written: bool) {
        let Some(now) = self.now.size(file) else { return };
        if size != now {
            self.step(Effect::Size { file, size, written, shorter: size < now });
        }
    }

    /// Whole pages lose their place; of others a part is written.
    fn zeroed(&mut self, file: u64, from: u64, end: u64) {
        let Some(size) = self.now.size(file) else { return };
        let (first, last) = (from.next_multiple_of(PAGE), end / PAGE * PAGE);
        let parts = match first <= last {
            true => [(from, first), (last, end)],
            false => [(from, end), (end, end)],
        };
        for (from, to) in parts.map(|(from, to)| (from, to.min(size))) {
            if from < to {
                let bytes = Bytes::from(vec![0; (to - from) as usize]);
                self.step(Effect::Data { file, at: from, bytes });
            }
        }
        if first < last {
            self.step(Effect::Zeros { file, from: first, to: last });
        }
    }

    fn allocated(&mut self, call: &Call) {
        let CallDetail::Range { what, len } = call.detail else { return };
        let (file, at) = (self.file(call.ino), call.offset);
        let end = at.saturating_add(len);
        match what {
            RangeChange::Allocate | RangeChange::AllocateKeepSize => {}
            RangeChange::PunchHole | RangeChange::Zero | RangeChange::ZeroKeepSize => {
                self.zeroed(file, at, end);
            }
            RangeChange::Collapse => self.step(Effect::Collapse { file, at, len }),
            RangeChange::Insert => self.step(Effect::Insert { file, at, len }),
        }
        let keeps = !matches!(what, RangeChange::Allocate | RangeChange::Zero);
        if !keeps && self.now.size(file).is_some_and(|size| size < end) {
            self.resize(file, end, false);
        }
    }
}

/// A file's name for people: the last path by which a call knew it, or its first one of before.
pub(crate) fn name_of(calls: &[Call], base: Option<&Tree>, file: u64) -> String {
    let named = calls.iter().rev().find(|call| call.ino == file && !call.path.is_empty());
    let before = || base?.nodes().find(|(_, node)| file_id(&node.attr) == file);
    named.map_or_else(
        || match before() {
            Some((path, _)) => shown(path),
            None => format!("inode {}", number_of(file).0),
        },
        |call| match call.kind {
            CallKind::Rename => shown(&call.other),
            _ => shown(&call.path),
        },
    )
}
