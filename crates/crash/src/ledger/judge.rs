//! The ledger as a judge: every file is read, and compared with what was promised of it.

use steadfast_devices::filter::record::Moment;
use steadfast_vfs::path::resolve;
use steadfast_vfs::{FileSystem, FileType, FsError};

use super::{Ledger, Operation};
use crate::figures::StateFigures;
use crate::judge::{Judge, judge};
use crate::program::Call;
use crate::tree::Node;

impl Judge for Ledger {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        for (file, ops) in self.files() {
            match read_file(fs, file.as_bytes()) {
                Ok(held) => cut.add_file(&file, &ops, &judge(&ops, at.tick, held.as_deref())),
                Err(e) => cut.damage.push(format!("{file} cannot be read after recovery: {e}")),
            }
        }
    }

    fn judge_refused(&self, at: Moment, cut: &mut StateFigures) {
        for (file, ops) in self.files() {
            cut.add_file(&file, &ops, &judge(&ops, at.tick, None));
        }
    }

    fn operations(&self) -> Vec<(String, Operation)> {
        let files = self.files().into_iter();
        files.flat_map(|(file, ops)| ops.into_iter().map(move |op| (file.clone(), op))).collect()
    }

    fn calls(&self) -> Vec<Call> {
        let files = self.files();
        let each = files.iter().flat_map(|(file, ops)| ops.iter().map(move |op| (file, op)));
        let mut calls: Vec<Call> = each.map(|(file, op)| Call::of(file, op)).collect();
        calls.sort_by_key(|call| call.started.tick);
        calls
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
