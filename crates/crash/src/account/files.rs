//! Files of fixed names under a judge: each is read, and compared with what was promised of it.

use steadfast_devices::filter::record::Moment;
use steadfast_vfs::path::resolve;
use steadfast_vfs::{FileSystem, FileType, FsError};

use super::{History, Operation};
use crate::figures::StateFigures;
use crate::judge::{Judge, judge};
use crate::program::Call;
use crate::tree::Node;

/// Judges the files whose names nobody judges ([`Account::begin_on`](super::Account::begin_on)).
pub struct FilesJudge(pub History);

impl Judge for FilesJudge {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        for (file, ops) in self.0.files() {
            match read_file(fs, file.as_bytes()) {
                Ok(held) => cut.add_file(file, ops, &judge(ops, at.tick, held.as_deref())),
                Err(e) => cut.damage.push(format!("{file} cannot be read after recovery: {e}")),
            }
        }
    }

    fn judge_refused(&self, at: Moment, cut: &mut StateFigures) {
        for (file, ops) in self.0.files() {
            cut.add_file(file, ops, &judge(ops, at.tick, None));
        }
    }

    fn operations(&self) -> Vec<(String, Operation)> {
        let of = |(file, ops): (&str, &[Operation])| {
            ops.iter().map(|op| (file.to_owned(), *op)).collect::<Vec<_>>()
        };
        self.0.files().flat_map(of).collect()
    }

    fn calls(&self) -> Vec<Call> {
        self.0.as_calls()
    }
}

/// The contents of a file; `None` if there is none.
fn read_file(fs: &dyn FileSystem, path: &[u8]) -> Result<Option<Vec<u8>>, FsError> {
    let attr = match resolve(fs, path, true) {
        Ok(attr) => attr,
        Err(FsError::NotFound) => return Ok(None),
        Err(e) => return Err(e),
    };
    if attr.kind != FileType::Regular {
        return Err(FsError::Invalid { what: "it is no longer a regular file" });
    }
    Node::look(fs, attr).map(|node| Some(node.bytes(0, attr.size)))
}
