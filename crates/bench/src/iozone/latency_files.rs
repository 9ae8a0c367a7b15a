//! The files of -Q: offset, latency and size of each operation.

use std::collections::BTreeMap;

use super::matrix::{LatencyLine, MatrixResults};
use super::results::IozoneResults;

const HEADING: &str = "Offset in Kbytes   Latency in microseconds  Transfer size in bytes\n";

fn line(operation: &LatencyLine) -> String {
    let us = operation.ns as f64 / 1e3;
    format!("{:10} {us:10.0} {:10}\n", operation.offset >> 10, operation.bytes)
}

/// Name and contents of each file, of files' names and what is in them.
fn files<'r>(
    operations: impl Iterator<Item = (String, &'r Vec<LatencyLine>)>,
) -> Vec<(String, String)> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for (name, operations) in operations.filter(|(_, operations)| !operations.is_empty()) {
        let text = files.entry(name).or_insert_with(|| HEADING.into());
        operations.iter().for_each(|operation| *text += &line(operation));
    }
    files.into_iter().collect()
}

/// Name and contents of each file of a run with one file at a time; none without -Q.
pub fn of_cells(results: &MatrixResults) -> Vec<(String, String)> {
    let measures = results.cells.iter().flat_map(|cell| &cell.measures);
    files(measures.flat_map(|m| {
        let name = format!("{}.dat", m.column.latency_file());
        m.runs.iter().map(move |run| (name.clone(), &run.operations))
    }))
}

/// Name and contents of each child's files; none without -Q.
pub fn of_runs(results: &IozoneResults) -> Vec<(String, String)> {
    let tests = results.runs.iter().flat_map(|run| &run.tests);
    files(tests.flat_map(|test| {
        let name = test.test.latency_file();
        let file = move |child: usize| format!("Child_{child}_{name}.dat");
        test.children.iter().map(move |child| (file(child.child), &child.operations))
    }))
}
