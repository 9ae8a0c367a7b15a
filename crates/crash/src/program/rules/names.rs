//! Names: what must be there, and what must not.

use std::collections::BTreeMap;

use super::{History, Verdict, Violation, concerns, is_at_or_above, key, parent};
use crate::program::calls::{Call, CallKind, file_id};
use crate::tree::shown;

/// What a name was left with by the last call about it.
struct LastCall<'c> {
    call: &'c Call,
    /// The inode that has it; `None`: nobody.
    has: Option<u64>,
    /// An earlier call about the name had not returned when this one began: either may be the last.
    unsure: bool,
}

impl<'c> History<'c> {
    /// What was there and was never taken away, but is not there.
    pub(super) fn gone(&self, verdict: &mut Verdict) {
        let taken = |path: &[u8]| {
            self.calls.iter().any(|call| {
                let other = match call.kind {
                    CallKind::Unlink | CallKind::Rmdir | CallKind::Rename => false,
                    CallKind::Exchange => is_at_or_above(&call.other, path),
                    _ => return false,
                };
                let concerned = other || is_at_or_above(&call.path, path);
                (concerned || call.unplaced) && !call.failed
            })
        };
        let gone = |path: &[u8]| self.tree.get(path).is_none() && !taken(path);
        let gone = self.base.nodes().filter(|(path, _)| gone(path));
        verdict.broken.extend(gone.map(|(path, _)| {
            let what = format!("{}: was there before the run and is gone", shown(path));
            Violation::broken_promise(what)
        }));
    }

    /// Names whose directory was synced after they were made or removed.
    pub(super) fn folders(&self, verdict: &mut Verdict) {
        let mut unknown = false;
        let syncs = self.calls.iter().enumerate().filter(|(place, call)| {
            let of_names =
                matches!(call.kind, CallKind::FsyncDir | CallKind::Sync) && self.kept(*place);
            unknown |= of_names && call.unplaced;
            of_names && !call.unplaced
        });
        if syncs.count() > 0 && !self.unplaced {
            verdict.broken.extend(self.last().iter().filter_map(|(path, l)| self.name(path, l)));
        }
        if unknown {
            let why = "names: fsync of a folder of unknown path";
            verdict.unmeasured.insert(why.into());
        }
    }

    /// The last call about each name.
    fn last(&self) -> BTreeMap<&'c [u8], LastCall<'c>> {
        let mut names: BTreeMap<&[u8], LastCall<'_>> = BTreeMap::new();
        for call in self.calls.iter().filter(|call| !call.failed && call.kind.changes_names()) {
            // Two names of one file: rename(2) does nothing.
            if call.kind == CallKind::Rename && call.ino == call.replaced && call.ino != 0 {
                continue;
            }
            let (path, other) = (&call.path[..], &call.other[..]);
            if matches!(call.kind, CallKind::Rename | CallKind::Exchange) {
                // What is in a directory that was moved is not followed.
                names.retain(|name, _| name == &path || name == &other || !concerns(call, name));
            }
            let mut set = |name, has| {
                let earlier = names.get(name).map(|last| (last.unsure, last.call.returned));
                let unsure = earlier.is_some_and(|(unsure, returned)| {
                    unsure || returned.is_none_or(|r| r.tick > call.started.tick)
                });
                names.insert(name, LastCall { call, has, unsure });
            };
            match call.kind {
                CallKind::Unlink | CallKind::Rmdir => set(path, None),
                CallKind::Link => set(other, Some(call.ino)),
                CallKind::Rename => {
                    set(path, None);
                    set(other, Some(call.ino));
                }
                CallKind::Exchange => {
                    set(path, Some(call.replaced));
                    set(other, Some(call.ino));
                }
                _ => set(path, Some(call.ino)),
            }
        }
        names
    }

    fn name(&self, path: &[u8], last: &LastCall<'_>) -> Option<Violation> {
        let returned = last.call.returned?.tick;
        let folder = parent(path);
        let folder_is_there = folder.is_empty() || self.tree.get(folder).is_some();
        if last.unsure || !folder_is_there || !self.folder_synced_after(folder, returned) {
            return None;
        }
        let key = |file| key(file, self.by_number);
        let found = self.tree.get(path).map(|node| key(file_id(&node.attr)));
        let now = match (last.has, found) {
            (Some(_), None) => "is gone",
            (Some(ino), Some(other)) if key(ino) != other && ino != 0 => "is another file",
            (None, Some(_)) => "is there again",
            _ => return None,
        };
        let did = last.call.kind.name();
        let what = format!("{}: its folder was synced after {did}, and it {now}", shown(path));
        Some(Violation::broken_promise(what))
    }
}
