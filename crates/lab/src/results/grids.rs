//! The speeds of a benchmark over a matrix: file sizes with record sizes.

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::column::{always, wide};
use super::row::{Order, Row, RowContext, TableLine};
use crate::scenario::sized;

/// Tests whose speeds are shown by file size also without `--wide`: of those a source speaks.
const ALWAYS_SHOWN: [&str; 3] = ["write", "read", "random write"];

/// One test's speeds on one variant.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GridRow {
    /// Variant's name.
    pub variant: String,
    /// The test: "write", "random read" ...
    pub test: String,
    /// Files from small to large; of one file records from small to large.
    pub cells: Vec<GridCell>,
}

impl Row for GridRow {
    fn lines(&self, results: &dyn RowContext) -> Vec<TableLine> {
        let of =
            results.configuration(&self.variant).map_or(String::new(), |name| format!(", {name}"));
        let title = format!("{}, MiB/s by file size{of}", self.test);
        let column = if ALWAYS_SHOWN.contains(&self.test.as_str()) { always } else { wide };
        let mut files: Vec<u64> = self.cells.iter().map(|cell| cell.file_kb).collect();
        files.dedup();
        let line = |file: u64| {
            let mib = Cell::plain(self.mean_of_file(file)? / 1024.0, 1);
            let columns = vec![column(self.variant.clone(), mib)];
            Some(TableLine::new(Order::Sizes, &title, sized(file << 10), columns))
        };
        files.into_iter().filter_map(line).collect()
    }
}

/// The speed with one size of file and one of records.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GridCell {
    /// Size of the file in KiB.
    pub file_kb: u64,
    /// Size of a record in KiB.
    pub record_kb: u64,
    /// Speed in KiB a second.
    pub kb_per_s: f64,
    /// It says how fast the page cache is: the file fits in it, and nothing made the data durable
    /// in the time, or dropped it before.
    pub only_the_cache: bool,
}

impl GridRow {
    /// The geometric mean over the cells: what stands for all of them where one figure is reported.
    /// No large figure of a few cells drowns the others, and ratios of means are means of ratios.
    pub fn mean_kb_per_s(&self) -> f64 {
        geometric_mean(self.cells.iter().map(|cell| cell.kb_per_s))
    }

    /// The same over the cells of one file size.
    pub(crate) fn mean_of_file(&self, file_kb: u64) -> Option<f64> {
        let of_file = || self.cells.iter().filter(move |cell| cell.file_kb == file_kb);
        of_file().next().map(|_| geometric_mean(of_file().map(|cell| cell.kb_per_s)))
    }
}

/// 0 of none, and of speeds that are.
fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, n), x| (sum + x.ln(), n + 1.0));
    if count > 0.0 { f64::exp(sum / count) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_over_cells_or_those_of_one_file() {
        let cell =
            |file_kb, kb_per_s| GridCell { file_kb, record_kb: 4, kb_per_s, only_the_cache: false };
        let cells = vec![cell(64, 1.0), cell(64, 4.0), cell(128, 16.0)];
        let row = GridRow { variant: "a".into(), test: "write".into(), cells };
        assert!((row.mean_kb_per_s() - 4.0).abs() < 1e-9);
        assert!((row.mean_of_file(64).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(row.mean_of_file(256), None);
        let none = GridRow { cells: Vec::new(), ..row };
        assert_eq!(none.mean_kb_per_s(), 0.0);
    }
}
