//! Contents: of files that were synced, of ranges that were promised, of files that were replaced.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_vfs::FileType;

use super::{History, Verdict, Violation, key, named};
use crate::program::calls::{Call, CallKind, Origin};
use crate::tree::{Contents, Node, shown};

/// A range that a call has written, and nobody since.
struct WriteRange {
    /// The call's place in the list.
    place: usize,
    /// The range's end.
    end: u64,
    contents: Contents,
    promised: bool,
    /// A sync of the file was made to fail after it: a later one promises nothing of it.
    lost: bool,
}

/// What was written to an inode.
#[derive(Default)]
struct Ranges {
    /// By their beginnings; they do not overlap.
    written: BTreeMap<u64, WriteRange>,
    /// Changes that may be going on: beginning, end, when they returned.
    going_on: Vec<(u64, u64, Option<u64>)>,
    /// Calls that wrote over what had been promised.
    over_promised: BTreeSet<usize>,
}

impl Ranges {
    /// A call changes `[from, end)`. Whether no other one was changing any of it.
    fn change(&mut self, place: usize, call: &Call, from: u64, end: u64) -> bool {
        let started = call.started.tick;
        self.going_on.retain(|(_, _, returned)| returned.is_none_or(|tick| tick > started));
        let alone = !self.going_on.iter().any(|(a, b, _)| *a < end && from < *b);
        self.going_on.push((from, end, call.returned.map(|returned| returned.tick)));
        let overlap = |at: &u64, w: &WriteRange| *at < end && from < w.end;
        // They do not overlap each other: only the last before `from` can reach into it.
        let first = self.written.range(..=from).next_back().map_or(from, |(at, _)| *at);
        let hit: Vec<u64> = self
            .written
            .range(first..end.max(first))
            .filter(|(at, w)| overlap(at, w))
            .map(|(at, _)| *at)
            .collect();
        for at in hit {
            if self.written.remove(&at).is_some_and(|w| w.promised) {
                self.over_promised.insert(place);
            }
        }
        alone
    }

    /// A sync was made to fail.
    fn lost(&mut self) {
        self.written.values_mut().for_each(|written| written.lost |= !written.promised);
    }

    /// A sync that began at this tick has kept its promise.
    fn synced(&mut self, calls: &[Call], started: u64) {
        for written in self.written.values_mut().filter(|written| !written.lost) {
            let returned = calls[written.place].returned;
            written.promised |= returned.is_some_and(|returned| returned.tick < started);
        }
    }
}

impl History<'_> {
    /// Everything that was promised of contents.
    pub(super) fn contents(&self, verdict: &mut Verdict) {
        let reported = self.synced(verdict);
        for (ino, ranges) in self.ranges() {
            let promised: Vec<_> = ranges.written.iter().filter(|(_, w)| w.promised).collect();
            let unpromised = |place: &&usize| !promised.iter().any(|(_, w)| w.place == **place);
            if let Some(place) = ranges.over_promised.iter().find(unpromised) {
                verdict.unmeasured.insert(format!(
                    "{}: written again after it was synced: neither the old bytes nor the new \
                     ones are judged until the next sync",
                    named(&self.calls[*place])
                ));
            }
            if !reported.contains(&ino) {
                self.kept_ranges(ino, &promised, verdict);
            }
        }
    }

    /// What was written to each inode and not written over, and what of that was promised.
    fn ranges(&self) -> BTreeMap<u64, Ranges> {
        let mut inodes: BTreeMap<u64, Ranges> = BTreeMap::new();
        for (place, call) in self.calls.iter().enumerate() {
            if let Some(ranges) = inodes.get_mut(&call.ino).filter(|_| call.loses_data()) {
                ranges.lost();
            }
            if call.failed {
                continue;
            }
            let (from, started) = (call.offset, call.started.tick);
            match (call.kind, call.contents) {
                (CallKind::Write, Some(contents)) if contents.size > 0 => {
                    let ranges = inodes.entry(call.ino).or_default();
                    let end = from.saturating_add(contents.size);
                    if ranges.change(place, call, from, end) {
                        let (promised, lost) = (self.kept(place), false);
                        let range = WriteRange { place, end, contents, promised, lost };
                        ranges.written.insert(from, range);
                    }
                }
                (CallKind::Truncate, _) => {
                    inodes.entry(call.ino).or_default().change(place, call, from, u64::MAX);
                }
                (CallKind::Fallocate, _) => {
                    inodes.entry(call.ino).or_default().change(place, call, 0, u64::MAX);
                }
                // Another file by the same number.
                (CallKind::Create, _) => drop(inodes.remove(&call.ino)),
                (CallKind::Fsync | CallKind::Fdatasync, _) if self.kept(place) => {
                    if let Some(ranges) = inodes.get_mut(&call.ino) {
                        ranges.synced(self.calls, started);
                    }
                }
                (CallKind::Sync, _) if self.kept(place) => {
                    inodes.values_mut().for_each(|ranges| ranges.synced(self.calls, started));
                }
                _ => {}
            }
        }
        inodes.remove(&0);
        inodes
    }

    /// Judges the ranges of an inode that were promised.
    fn kept_ranges(&self, ino: u64, promised: &[(&u64, &WriteRange)], verdict: &mut Verdict) {
        let Some(first) = promised.first() else { return };
        let call = &self.calls[first.1.place];
        let Some((path, node)) = self.file(ino) else {
            self.missing(call, "written and synced", verdict);
            return;
        };
        let missing = promised.iter().filter(|(at, written)| !node.holds(**at, written.contents));
        let missing: Vec<_> = missing.collect();
        let Some((at, written)) = missing.first() else { return };
        let how = match self.calls[written.place].promises {
            true => "written with O_SYNC or O_DSYNC",
            false => "written and synced",
        };
        let more = match missing.len() {
            1 => String::new(),
            n => format!(", nor are {} other such writes", n - 1),
        };
        let what = format!(
            "{}: {} bytes at {at} were {how} and are not there{more}",
            shown(path),
            written.contents.size
        );
        let kind = format!("{}: {how} and not there", shown(path));
        let call = Some(written.place);
        verdict.broken.push(Violation { what, kind, promised: true, call });
    }

    /// The regular file of this number in the recovered tree.
    fn file(&self, ino: u64) -> Option<(&[u8], &Node)> {
        let found = self
            .by_inode
            .get(&key(ino, self.by_number))
            .filter(|(_, n)| n.attr.kind == FileType::Regular);
        found.copied()
    }

    /// A file of which something was promised is not there by its number.
    fn missing(&self, call: &Call, how: &str, verdict: &mut Verdict) {
        if self.removed(call.ino) {
            return;
        }
        if call.unplaced {
            let why = format!("{}: {how}, and nobody knows under which name", named(call));
            verdict.unmeasured.insert(why);
            return;
        }
        let since = call.started.tick;
        let gone = self.tree.get(&call.path).is_none() && !self.moved_after(&call.path, since);
        if gone && self.name_is_promised(&call.path, call.ino) {
            let what = format!("{}: was {how}, its name too, and is gone", shown(&call.path));
            verdict.broken.push(Violation::broken_promise(what));
        } else if gone {
            let why = "is gone, and nothing had promised its name: its folder was not synced";
            verdict.unmeasured.insert(format!("{}: {how}, {why}", shown(&call.path)));
        }
    }

    /// Files that were synced and not changed since; those of which something is reported.
    fn synced(&self, verdict: &mut Verdict) -> BTreeSet<u64> {
        let (mut seen, mut reported) = (BTreeSet::new(), BTreeSet::new());
        for (place, sync) in self.calls.iter().enumerate().rev() {
            let is_sync = matches!(sync.kind, CallKind::Fsync | CallKind::Fdatasync);
            let is_own = sync.origin == Origin::Program;
            if !is_sync || !is_own || !self.kept(place) || sync.ino == 0 || !seen.insert(sync.ino) {
                continue;
            }
            if self.has_lost(sync.ino, sync.started.tick) {
                verdict.unmeasured.insert(format!(
                    "{}: a sync of it was made to fail: a later one promises only what was \
                     written after that",
                    named(sync)
                ));
                continue;
            }
            let Some(held) = sync.contents else {
                verdict.unmeasured.insert(format!(
                    "{}: too large to be read at its fsync: only what was written in this run is \
                     judged",
                    named(sync)
                ));
                continue;
            };
            if self.changed_after(sync.ino, sync.started.tick) {
                continue;
            }
            let before = verdict.broken.len();
            match self.file(sync.ino) {
                Some((_, node)) if node.contents() == held => {}
                Some((path, node)) => verdict.broken.push(Violation {
                    what: format!(
                        "{}: synced with {} bytes: {}",
                        shown(path),
                        held.size,
                        now_holds(node, held)
                    ),
                    kind: format!("{}: synced, and not as it was then", shown(path)),
                    promised: true,
                    call: Some(place),
                }),
                None => self.missing(sync, "synced", verdict),
            }
            if verdict.broken.len() > before {
                reported.insert(sync.ino);
            }
        }
        reported
    }

    pub(super) fn replaced(&self, verdict: &mut Verdict) {
        let mut seen = BTreeSet::new();
        for (place, rename) in self.calls.iter().enumerate().rev() {
            if rename.kind != CallKind::Rename || rename.failed {
                continue;
            }
            let Some(new) = rename.contents else { continue };
            if !seen.insert(rename.ino) || self.changed_after(rename.ino, rename.started.tick) {
                continue;
            }
            // The file that was moved, if it is under the name that it was to have.
            let Some((path, node)) = self.file(rename.ino).filter(|(p, _)| *p == rename.other)
            else {
                continue;
            };
            if node.contents() == new {
                continue;
            }
            let lost = self.has_lost(rename.ino, rename.started.tick);
            let promised = !lost && self.was_synced(rename);
            let synced = match (promised, lost) {
                (true, _) => "after its fsync",
                (_, true) => "after its fsync had failed",
                _ => "without fsync",
            };
            let (name, now) = (shown(path), now_holds(node, new));
            let (kind, not) = match rename.replaced {
                // What was there before, and what was synced, other rules judge.
                0 if promised || !self.was_made(rename.ino) => continue,
                0 => (format!("renamed {synced}"), format!("not the {} bytes it had", new.size)),
                _ => {
                    let old = |lost: Contents| format!("the old {} bytes", lost.size);
                    let old = rename.lost.map_or("what it held".into(), old);
                    let neither = format!("neither {old} nor the new {}", new.size);
                    (format!("replaced by rename {synced}"), neither)
                }
            };
            let kind = format!("{name}: {kind}");
            let what = format!("{kind}: {now}, {not}");
            verdict.broken.push(Violation { what, kind, promised, call: Some(place) });
        }
    }

    /// Whether the run has made this file.
    fn was_made(&self, ino: u64) -> bool {
        self.calls.iter().any(|call| {
            call.kind == CallKind::Create && call.ino == ino && ino != 0 && !call.failed
        })
    }

    /// Whether a sync of the file was made to fail before a tick.
    fn has_lost(&self, ino: u64, tick: u64) -> bool {
        let fails = |call: &Call| call.loses_data() && call.ino == ino && call.started.tick < tick;
        self.calls.iter().any(fails)
    }

    /// Whether the file had been synced, and not changed after that but by writes that are durable
    /// when they return, when it was renamed.
    fn was_synced(&self, rename: &Call) -> bool {
        let changes = || {
            let of_file = |call: &&Call| {
                call.ino == rename.ino && call.kind.changes_contents() && !call.failed
            };
            self.calls.iter().filter(of_file)
        };
        let last_change = changes()
            .filter(|call| !call.promises)
            .map(|call| call.returned.map_or(u64::MAX, |returned| returned.tick))
            .max();
        if last_change.is_none() && changes().count() > 0 {
            return true;
        }
        self.calls.iter().any(|call| {
            matches!(call.kind, CallKind::Fsync | CallKind::Fdatasync)
                && call.promises
                && call.ino == rename.ino
                && call.started.tick > last_change.unwrap_or(0)
                && call.done_before(rename.started.tick)
        })
    }
}

fn now_holds(node: &Node, wanted: Contents) -> String {
    match node.contents().size {
        0 => "now empty".into(),
        size if size != wanted.size => format!("now {size} bytes"),
        size if node.pieces.is_empty() => format!("now {size} zeros"),
        _ => "now something else".into(),
    }
}
