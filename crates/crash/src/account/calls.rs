//! The history as the calls that it came from: to print what came before a cut.

use super::{Binding, History, Object};
use crate::program::{Call, CallKind};

impl History {
    /// The path of a file at a tick: the one it got last.
    fn path_of(&self, object: Object, tick: u64) -> String {
        if let Some((path, _)) = self.files.iter().find(|(_, of)| **of == object) {
            return path.clone();
        }
        let of = |b: &&Binding| b.holds == Some(object) && self.begun(b, tick);
        let named = self
            .bindings
            .iter()
            .filter_map(|(path, bindings)| bindings.iter().rfind(of).map(|b| (b.by, path)));
        named.max().map_or_else(|| format!("file {}", object.0), |(_, path)| path.clone())
    }

    /// All calls, in the order in which they were made.
    pub(crate) fn as_calls(&self) -> Vec<Call> {
        let syncs = self.syncs.iter().map(|(object, call)| match call.kind {
            CallKind::Fsync => {
                Call { path: self.path_of(*object, call.started.tick).into_bytes(), ..call.clone() }
            }
            _ => call.clone(),
        });
        let writes = self.contents.iter().flat_map(|(object, ops)| {
            ops.iter().map(|op| Call::of(&self.path_of(*object, op.started.tick), op))
        });
        let names = self.namings.iter().cloned();
        let mut all: Vec<Call> = names.chain(syncs).chain(writes).collect();
        all.sort_by_key(|call| call.started.tick);
        all
    }
}

#[cfg(test)]
mod tests {
    use steadfast_devices::filter::record::RecordLog;

    use super::super::{Account, Call as Made};

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
            account.take().as_calls().iter().map(ToString::to_string).collect();
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
