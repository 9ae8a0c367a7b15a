//! Single and auto mode: one file at a time, of each size with each record.
//!
//! ```text
//! column   the tests, as columns of the table
//! cell     one file size with one record: the tests in order
//! pass     one test: open, records, fsync, close
//! target   what only the place of the files can do: mapping, locking, dropping caches
//! results  what came out, for programs; several runs of a cell and their interval
//! table    what came out, in IOzone's layout; the -R report
//! biff     the report as a spreadsheet
//! ```

mod biff;
mod cell;
mod column;
mod pass;
mod results;
mod table;
mod target;

use std::sync::Arc;

use steadfast_vfs::FileSystem;

pub use biff::{spreadsheet, spreadsheet_of_runs};
pub use column::Column;
pub use results::{Cell, LatencyLine, MatrixResults, Measure, RunOf};
pub use table::{end, head, row};
pub use target::{InProcessTarget, Mapping, MatrixTarget, TargetError};

use super::engine::RunError;
use super::observer::{self, Observer};
use super::options::Options;
use super::results::{MATRIX_FORMAT, Surroundings, VERSION};

/// Who is notified of each cell, and may know it already (`--resume`).
pub trait Cells {
    /// A cell that was measured before.
    fn known(&self, _file_bytes: u64, _record_bytes: u64) -> Option<Cell> {
        None
    }

    /// A cell is done, or was known.
    fn done(&mut self, _cell: &Cell, _known: bool) {}
}

/// Nobody is notified.
pub struct SilentWatcher;

impl Cells for SilentWatcher {}

/// Runs a command line of these modes; `folder` is as for [`run`](super::run). With several calls
/// under way (-H, -k) the observer of every change and every promise sees none of theirs.
///
/// # Errors
/// The first error of the file system, or data that are wrong.
pub fn run(
    fs: &Arc<dyn FileSystem>,
    folder: &str,
    options: &Options,
    surroundings: &Surroundings,
    (place, observer): (&dyn MatrixTarget, Option<&dyn Observer>),
    cells: &mut dyn Cells,
) -> Result<MatrixResults, RunError> {
    let observer = observer.unwrap_or(&observer::SilentObserver);
    let matrix = options.matrix.clone().unwrap_or_default();
    let mut results = MatrixResults {
        format: MATRIX_FORMAT,
        version: VERSION,
        options: options.clone(),
        began: surroundings.began.clone(),
        machine: surroundings.machine.clone(),
        unit: options.unit().into(),
        cells: Vec::new(),
        notes: Vec::new(),
    };
    let cells_of = matrix.cells(options.file_bytes, options.record_bytes);
    for (number, (file, record)) in cells_of.into_iter().enumerate() {
        let known = cells.known(file, record);
        let is_known = known.is_some();
        let cell = match known {
            Some(cell) => cell,
            None => {
                let around = cell::RunContext { place, observer, surroundings, number };
                cell::Runner::new(fs, folder, options, &matrix, around, (file, record)).run()?
            }
        };
        cells.done(&cell, is_known);
        results.cells.push(cell);
    }
    results.notes = results::notes(&results, &matrix);
    Ok(results)
}
