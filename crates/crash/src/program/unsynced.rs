//! What a power cut at this moment might take, by the calls alone.
//!
//! Counted are write calls that have returned, whose bytes nobody has changed since, in files that
//! have their names, and that nothing has promised: no O_SYNC or O_DSYNC, and no fsync, fdatasync
//! or transaction point that began after their return and has succeeded. (A write whose file had a
//! sync that was made to fail is not promised by a later one.) Names count by what POSIX promises:
//! one that was made, moved or removed, and whose directory was not synced since.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast_runtime::Nanos;

use super::calls::{Call, CallKind};
use super::exposure::{Live, live_writes};
use super::rules::parent;
use crate::persistence::steps::name_of;

/// What is unsynced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsyncedWork {
    /// Files with writes that nothing has promised, in the order of their numbers.
    pub files: Vec<UnsyncedFile>,
    /// Places of calls whose change of names nothing has promised, in their order.
    pub names: Vec<usize>,
}

/// A file with writes that nothing has promised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsyncedFile {
    /// Its number and generation, as in [`Call::ino`].
    pub file: u64,
    /// The last path by which a call knew it.
    pub path: String,
    /// Bytes of those writes.
    pub bytes: u64,
    /// How many calls they are.
    pub calls: u64,
    /// From the return of the oldest of them until now.
    pub age: Duration,
}

impl UnsyncedWork {
    /// After these calls, at a moment of their clock.
    pub fn of(calls: &[Call], now: Nanos) -> UnsyncedWork {
        let syncs = FileSyncs::of(calls);
        let mut files = Vec::new();
        for (file, writes) in live_writes(calls) {
            let mut unpromised: Vec<&Live> =
                writes.iter().filter(|write| syncs.is_unpromised(calls, file, write)).collect();
            let Some(oldest) =
                unpromised.iter().filter_map(|write| write.returned).min_by_key(|r| r.tick)
            else {
                continue;
            };
            let bytes = unpromised.iter().map(|write| write.contents.size).sum();
            unpromised.dedup_by_key(|write| write.call);
            let (calls_of_it, age) = (unpromised.len() as u64, now.max(oldest.at) - oldest.at);
            let path = name_of(calls, None, file);
            files.push(UnsyncedFile { file, path, bytes, calls: calls_of_it, age });
        }
        UnsyncedWork { files, names: unsynced_names(calls) }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Write calls of all files.
    pub fn calls(&self) -> u64 {
        self.files.iter().map(|file| file.calls).sum()
    }

    /// Of the oldest write.
    pub fn age(&self) -> Duration {
        self.files.iter().map(|file| file.age).max().unwrap_or_default()
    }
}

/// When syncs began: those that have succeeded, and those that were made to fail.
#[derive(Default)]
struct FileSyncs {
    /// By file; 0 has those of everything.
    done: BTreeMap<u64, Vec<u64>>,
    failed: BTreeMap<u64, Vec<u64>>,
}

impl FileSyncs {
    fn of(calls: &[Call]) -> FileSyncs {
        let mut syncs = FileSyncs::default();
        for call in calls {
            let file = match call.kind {
                CallKind::Fsync | CallKind::Fdatasync => call.ino,
                CallKind::Sync => 0,
                _ => continue,
            };
            if call.promises && !call.failed && call.returned.is_some() {
                syncs.done.entry(file).or_default().push(call.started.tick);
            } else if call.loses_data() {
                syncs.failed.entry(file).or_default().push(call.started.tick);
            }
        }
        syncs
    }

    /// A write has returned, and nothing has promised it.
    fn is_unpromised(&self, calls: &[Call], file: u64, write: &Live) -> bool {
        let Some(returned) = write.returned else { return false };
        if calls[write.call].promises {
            return false;
        }
        let first_after = |of: &BTreeMap<u64, Vec<u64>>, file: u64| {
            let ticks = of.get(&file).map_or(&[][..], Vec::as_slice);
            ticks.get(ticks.partition_point(|tick| *tick <= returned.tick)).copied()
        };
        let done = [file, 0].into_iter().filter_map(|file| first_after(&self.done, file)).min();
        let failed = first_after(&self.failed, file);
        done.is_none_or(|done| failed.is_some_and(|failed| failed < done))
    }
}

/// Calls whose names are in a directory that was not synced since.
fn unsynced_names(calls: &[Call]) -> Vec<usize> {
    let mut synced: BTreeMap<&[u8], u64> = BTreeMap::new();
    let mut everything = 0;
    for call in calls.iter().filter(|c| c.promises && !c.failed && c.returned.is_some()) {
        match call.kind {
            CallKind::FsyncDir if !call.unplaced => {
                synced.insert(&call.path, call.started.tick);
            }
            CallKind::Sync => everything = call.started.tick,
            _ => {}
        }
    }
    let is_unsynced = |call: &Call| {
        let Some(returned) = call.returned.filter(|_| !call.failed) else { return false };
        let paths: &[&[u8]] = match call.kind {
            CallKind::Link => &[&call.other],
            CallKind::Rename | CallKind::Exchange => &[&call.path, &call.other],
            kind if kind.changes_names() => &[&call.path],
            _ => return false,
        };
        // A file without a name (O_TMPFILE) has none to lose.
        let named = paths.iter().filter(|path| !path.is_empty() || call.unplaced);
        let since = |path: &&[u8]| synced.get(parent(path)).copied().unwrap_or(0).max(everything);
        named.map(since).any(|synced| synced <= returned.tick)
    };
    (0..calls.len()).filter(|place| is_unsynced(&calls[*place])).collect()
}

#[cfg(test)]
mod tests {
    use steadfast_devices::filter::record::Moment;

    use super::super::faults::FaultError;
    use super::*;

    /// Of a file: its path, bytes, calls, age in ms.
    type Figures = (String, u64, u64, u128);
    use crate::tree::Contents;

    /// Calls one after the other, each with two ticks, one a millisecond.
    struct Calls(Vec<Call>);

    impl Calls {
        fn add(&mut self, kind: CallKind, path: &str, ino: u64) -> &mut Call {
            let at = |tick: u64| Moment { tick, at: Nanos(tick * 1_000_000) };
            let tick = 2 * self.0.len() as u64 + 1;
            let call = Call::plain(kind, path, at(tick), Some(at(tick + 1)));
            self.0.push(Call { ino, ..call });
            self.0.last_mut().unwrap()
        }

        fn write(&mut self, path: &str, ino: u64, offset: u64, size: u64) -> &mut Call {
            let call = self.add(CallKind::Write, path, ino);
            (call.offset, call.contents) = (offset, Some(Contents { size, digest: 1 }));
            call
        }

        /// Of each file: path, bytes, calls, milliseconds; and the calls about names.
        fn unsynced(&self) -> (Vec<Figures>, Vec<usize>) {
            let unsynced = UnsyncedWork::of(&self.0, Nanos(1_000_000_000));
            let file = |f: UnsyncedFile| (f.path, f.bytes, f.calls, f.age.as_millis());
            (unsynced.files.into_iter().map(file).collect(), unsynced.names)
        }
    }

    #[test]
    fn a_write_is_unsynced_until_its_file_is_synced() {
        let mut calls = Calls(Vec::new());
        calls.write("a", 1, 0, 10);
        calls.write("a", 1, 10, 10);
        calls.write("a", 1, 15, 1);
        calls.write("b", 2, 0, 5).promises = true;
        let file = |bytes, calls, ms| vec![("a".to_owned(), bytes, calls, ms)];
        assert_eq!(calls.unsynced().0, file(11, 2, 998));
        calls.add(CallKind::Fsync, "b", 2);
        calls.add(CallKind::Fdatasync, "a", 1);
        assert_eq!(calls.unsynced().0, []);
        calls.write("a", 1, 0, 3);
        assert_eq!(calls.unsynced().0, file(3, 1, 986));
        calls.add(CallKind::Sync, "", 0);
        assert_eq!(calls.unsynced(), (vec![], vec![]));
    }

    #[test]
    fn what_a_failed_sync_has_lost_is_not_promised_later() {
        let mut calls = Calls(Vec::new());
        calls.write("a", 1, 0, 10);
        let failed = calls.add(CallKind::Fsync, "a", 1);
        (failed.failed, failed.injected) = (true, Some(FaultError::Io));
        calls.write("a", 1, 10, 4);
        calls.add(CallKind::Fsync, "a", 1);
        assert_eq!(calls.unsynced().0, [("a".to_owned(), 10, 1, 998)]);
        calls.write("a", 1, 0, 10);
        calls.add(CallKind::Fsync, "a", 1);
        assert_eq!(calls.unsynced().0, []);
    }

    #[test]
    fn names_are_unsynced_until_their_directories_are_synced() {
        let mut calls = Calls(Vec::new());
        calls.add(CallKind::Create, "d/a", 1);
        calls.add(CallKind::Rename, "d/a", 1).other = b"b".to_vec();
        calls.add(CallKind::Create, "", 3);
        assert_eq!(calls.unsynced().1, [0, 1]);
        calls.add(CallKind::FsyncDir, "d", 9);
        assert_eq!(calls.unsynced().1, [1]);
        calls.add(CallKind::FsyncDir, "", 8);
        assert_eq!(calls.unsynced().1, []);
        calls.add(CallKind::Unlink, "b", 1);
        assert_eq!(calls.unsynced().1, [5]);
    }
}
