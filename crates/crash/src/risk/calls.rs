//! The history as the calls that it came from: to print what came before a cut.

use super::history::{Binding, History, Naming, Object, SyncScope};
use crate::program::{Call, CallKind};

impl History {
    /// The path of a file at a tick: the one it got last.
    fn path_of(&self, object: Object, tick: u64) -> String {
        let of = |b: &&Binding| b.holds == Some(object) && self.begun(b, tick);
        let named = self
            .bindings
            .iter()
            .filter_map(|(path, bindings)| bindings.iter().rfind(of).map(|b| (b.by, path)));
        named.max().map_or_else(|| format!("file {}", object.0), |(_, path)| path.clone())
    }

    /// All calls, in the order in which they were made.
    pub(super) fn as_calls(&self) -> Vec<Call> {
        let names = self.namings.iter().map(|n| {
            let plain = |kind, path: &str| Call::plain(kind, path, n.started, n.acknowledged);
            match &n.naming {
                Naming::Create { path } => plain(CallKind::Create, path),
                Naming::Remove { path } => plain(CallKind::Unlink, path),
                Naming::MakeFolder { path } => plain(CallKind::Mkdir, path),
                Naming::RemoveFolder { path } => plain(CallKind::Rmdir, path),
                Naming::Link { from, to } => {
                    Call { other: to.clone().into_bytes(), ..plain(CallKind::Link, from) }
                }
                Naming::Rename { from, to } => {
                    Call { other: to.clone().into_bytes(), ..plain(CallKind::Rename, from) }
                }
            }
        });
        let syncs = self.syncs.iter().map(|s| {
            let plain = |kind, path: &str| Call::plain(kind, path, s.started, s.returned);
            match &s.of {
                SyncScope::File(o) => plain(CallKind::Fsync, &self.path_of(*o, s.started.tick)),
                SyncScope::Folder(folder) => plain(CallKind::FsyncDir, folder),
                SyncScope::All => plain(CallKind::Sync, ""),
            }
        });
        let writes = self.contents.iter().flat_map(|(object, ops)| {
            ops.iter().map(|op| Call::of(&self.path_of(*object, op.started.tick), op))
        });
        let mut all: Vec<Call> = names.chain(syncs).chain(writes).collect();
        all.sort_by_key(|call| call.started.tick);
        all
    }
}

#[cfg(test)]
mod tests {
    use steadfast_devices::filter::record::RecordLog;

    use super::super::history::{Account, Call as Made};

    #[test]
    fn calls_are_in_their_order_with_the_names_of_their_time() {
        let account = Account::new(&RecordLog::new());
        let did = |call: Made<'_>| {
            let started = account.begin(call);
            account.end(&started);
            started.object
        };
        let file = did(Made::Create("a"));
        did(Made::Write(file, 0, 512));
        did(Made::Rename("a", "b"));
        did(Made::SyncFile(file));
        did(Made::SyncFolder("d"));
        did(Made::Remove("b"));
        did(Made::SyncAll);
        let calls: Vec<String> =
            account.history().as_calls().iter().map(ToString::to_string).collect();
        let want = [
            "create a",
            "write a: 512 bytes at 0",
            "rename a to b",
            "fsync b",
            "fsync of directory d",
            "unlink b",
            "sync",
        ];
        assert_eq!(calls, want);
    }
}
