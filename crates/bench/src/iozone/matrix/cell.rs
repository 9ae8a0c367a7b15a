//! One file size with one record: the tests in order.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use steadfast_vfs::{FileSystem, FsError};

use super::column::Column;
use super::results::{Cell, Measure, RunOf};
use super::target::MatrixTarget;
use crate::calls::path_in;
use crate::iozone::data::FileData;
use crate::iozone::engine::RunError;
use crate::iozone::file::TestFile;
use crate::iozone::observer::Observer;
use crate::iozone::options::{Matrix, Options};
use crate::iozone::random;
use crate::iozone::results::Surroundings;

/// Who has a part in a run beside the file system.
#[derive(Clone, Copy)]
pub(super) struct RunContext<'a> {
    pub place: &'a dyn MatrixTarget,
    pub observer: &'a dyn Observer,
    pub surroundings: &'a Surroundings,
    /// Of the cell: all cells have one file, and no two writes of a run the same tag.
    pub number: usize,
}

/// What all tests of a cell share.
pub(super) struct Runner<'a> {
    pub(super) fs: &'a Arc<dyn FileSystem>,
    pub(super) options: Options,
    pub(super) matrix: &'a Matrix,
    pub(super) around: RunContext<'a>,
    /// Path from the root.
    pub(super) file: String,
    /// Whether the file is this run's.
    is_made: AtomicBool,
    pub(super) data: FileData,
    /// The order of the random tests.
    pub(super) shuffled: Vec<u64>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        fs: &'a Arc<dyn FileSystem>,
        folder: &str,
        options: &Options,
        matrix: &'a Matrix,
        around: RunContext<'a>,
        (file_bytes, record_bytes): (u64, u64),
    ) -> Runner<'a> {
        let options = Options { file_bytes, record_bytes, ..options.clone() };
        let file = path_in(folder, options.base.clone());
        let random = Column::of(&options).iter().any(|(c, runs)| c.number() == 2 && *runs);
        // What is written every time is the same in all cells.
        let number = if around.surroundings.repeat_data { 0 } else { around.number };
        Runner {
            fs,
            matrix,
            around,
            file,
            is_made: AtomicBool::new(false),
            data: FileData::of(number, &options, around.surroundings),
            shuffled: if random { random::shuffled(options.records()) } else { Vec::new() },
            options,
        }
    }

    /// Runs the cell as often as it is to be repeated.
    pub(super) fn run(mut self) -> Result<Cell, RunError> {
        let memory = self.around.surroundings.memory_bytes;
        let mut measures: Vec<Measure> = Vec::new();
        for _ in 0..self.matrix.repeat {
            let ran = self.once();
            let removed = match self.options.keep_files {
                true => Ok(()),
                false => self.remove(ran.is_err()),
            };
            for (column, run) in ran? {
                match measures.iter_mut().find(|m| m.column == column) {
                    Some(measure) => measure.runs.push(run),
                    None => {
                        let only_the_cache = self.is_only_the_cache(column, &run, memory);
                        measures.push(Measure { column, runs: vec![run], only_the_cache });
                    }
                }
            }
            removed?;
        }
        let Options { file_bytes, record_bytes, .. } = self.options;
        Ok(Cell { file_bytes, record_bytes, measures })
    }

    fn once(&mut self) -> Result<Vec<(Column, RunOf)>, RunError> {
        let no_retest = self.options.no_retest;
        let columns = Column::of(&self.options).into_iter();
        let run = columns.filter(|(column, is_run)| *is_run && !(no_retest && column.is_repeat()));
        run.map(|(column, _)| Ok((column, self.pass(column)?))).collect()
    }

    /// Whether the device had no part in a figure, as far as is known.
    fn is_only_the_cache(&self, column: Column, run: &RunOf, memory: Option<u64>) -> bool {
        let o = &self.options;
        let direct = o.direct && !column.is_stdio();
        let fits = memory.is_some_and(|memory| o.file_bytes < memory);
        let durable = o.include_fsync || ((o.sync || o.dsync) && !column.is_stdio());
        fits && !direct && if column.reads() { run.caches.is_none() } else { !durable }
    }

    fn remove(&self, failed: bool) -> Result<(), RunError> {
        self.at().remove(failed).map_err(|e| self.failed("removing the file".into(), Some(e)))
    }

    pub(super) fn at(&self) -> TestFile<'_> {
        let (fs, observer) = (&**self.fs, self.around.observer);
        TestFile { fs, observer, child: 0, path: &self.file, is_made: &self.is_made }
    }

    pub(super) fn failed(&self, doing: String, source: Option<FsError>) -> RunError {
        RunError { test: None, file: self.file.clone(), doing, source }
    }
}
