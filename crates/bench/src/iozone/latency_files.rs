//! The files of -Q: offset, latency and size of each operation.

use std::collections::BTreeMap;

use super::matrix::{Column, LatencyLine, MatrixResults};
use super::plan::Test;
use super::results::IozoneResults;

const HEADING: &str = "Offset in Kbytes   Latency in microseconds  Transfer size in bytes\n";

fn line(operation: &LatencyLine) -> String {
    let us = operation.ns as f64 / 1e3;
    format!("{:10} {us:10.0} {:10}\n", operation.offset >> 10, operation.bytes)
}

/// The names that IOzone gives them, and for the tests of which it makes none, names like them.
fn of_column(column: Column) -> &'static str {
    match column {
        Column::Write => "wol.dat",
        Column::Rewrite => "rwol.dat",
        Column::Read => "rol.dat",
        Column::Reread => "rrol.dat",
        Column::RandomRead => "randrol.dat",
        Column::RandomWrite => "randwol.dat",
        Column::BackwardRead => "bol.dat",
        Column::RecordRewrite => "recwol.dat",
        Column::StrideRead => "srol.dat",
        Column::Fwrite => "fwol.dat",
        Column::Frewrite => "frwol.dat",
        Column::Fread => "frol.dat",
        Column::Freread => "frrol.dat",
        Column::Pwrite => "pwol.dat",
        Column::Repwrite => "prwol.dat",
        Column::Pread => "prol.dat",
        Column::Repread => "prrol.dat",
        Column::Pwritev => "pwvol.dat",
        Column::Repwritev => "prwvol.dat",
        Column::Preadv => "prvol.dat",
        Column::Repreadv => "prrvol.dat",
    }
}

fn of_test(test: Test) -> &'static str {
    match test {
        Test::InitialWrite => "wol.dat",
        Test::Rewrite => "rwol.dat",
        Test::Read => "rol.dat",
        Test::Reread => "rrol.dat",
        Test::ReverseRead => "revol.dat",
        Test::StrideRead => "strideol.dat",
        Test::RandomRead => "ranrol.dat",
        Test::Mixed => "mix.dat",
        Test::RandomWrite => "ranwol.dat",
        Test::Pwrite => "pwol.dat",
        Test::Pread => "prol.dat",
        Test::Pwritev => "pwvol.dat",
        Test::Preadv => "prvol.dat",
        Test::Fwrite => "fwol.dat",
        Test::Fread => "frol.dat",
    }
}

/// Name and contents of each file of a run with one file at a time; none without -Q.
pub fn of_cells(results: &MatrixResults) -> Vec<(String, String)> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    let measures = results.cells.iter().flat_map(|cell| &cell.measures);
    for (column, run) in measures.flat_map(|m| m.runs.iter().map(|run| (m.column, run))) {
        if run.operations.is_empty() {
            continue;
        }
        let text = files.entry(of_column(column)).or_insert_with(|| HEADING.into());
        run.operations.iter().for_each(|operation| *text += &line(operation));
    }
    files.into_iter().map(|(name, text)| (name.into(), text)).collect()
}

/// Name and contents of each child's files; none without -Q.
pub fn of_runs(results: &IozoneResults) -> Vec<(String, String)> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for test in results.runs.iter().flat_map(|run| &run.tests) {
        for child in test.children.iter().filter(|c| !c.operations.is_empty()) {
            let name = format!("Child_{}_{}", child.child, of_test(test.test));
            let text = files.entry(name).or_insert_with(|| HEADING.into());
            child.operations.iter().for_each(|operation| *text += &line(operation));
        }
    }
    files.into_iter().collect()
}
