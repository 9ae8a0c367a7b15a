//! The -R report as a spreadsheet: BIFF2, the oldest form of .xls, which every spreadsheet reads.
//!
//! Records are a type and a length of two bytes each, little endian, and their contents: BOF,
//! DIMENSIONS, a LABEL or NUMBER for each cell, EOF (Microsoft's Excel 2.1 file format).

use super::results::MatrixResults;
use super::table::{records, reports};
use crate::iozone::results::IozoneResults;

const BOF: u16 = 0x0009;
const EOF: u16 = 0x000a;
const DIMENSIONS: u16 = 0x0000;
const NUMBER: u16 = 0x0003;
const LABEL: u16 = 0x0004;

/// A worksheet.
const WORKSHEET: u16 = 0x0010;

/// Longest text of a LABEL.
const TEXT_MAX: usize = 255;

#[derive(Default)]
struct Sheet {
    cells: Vec<u8>,
    rows: u16,
    columns: u16,
}

fn record(out: &mut Vec<u8>, kind: u16, contents: &[u8]) {
    out.extend(kind.to_le_bytes());
    // OK to cast: the longest is a label.
    out.extend((contents.len() as u16).to_le_bytes());
    out.extend(contents);
}

impl Sheet {
    /// Row, column, and three bytes of format: none.
    fn place(&mut self, row: u16, column: u16) -> Vec<u8> {
        self.rows = self.rows.max(row + 1);
        self.columns = self.columns.max(column + 1);
        [row.to_le_bytes(), column.to_le_bytes()].concat().into_iter().chain([0; 3]).collect()
    }

    fn text(&mut self, row: u16, column: u16, text: &str) {
        let mut contents = self.place(row, column);
        let text = &text.as_bytes()[..text.len().min(TEXT_MAX)];
        contents.push(text.len() as u8);
        contents.extend(text);
        record(&mut self.cells, LABEL, &contents);
    }

    fn number(&mut self, row: u16, column: u16, number: f64) {
        let mut contents = self.place(row, column);
        contents.extend(number.to_le_bytes());
        record(&mut self.cells, NUMBER, &contents);
    }

    fn finish(self) -> Vec<u8> {
        let mut out = Vec::new();
        record(&mut out, BOF, &[2_u16.to_le_bytes(), WORKSHEET.to_le_bytes()].concat());
        let dimensions = [0, self.rows, 0, self.columns].map(u16::to_le_bytes).concat();
        record(&mut out, DIMENSIONS, &dimensions);
        out.extend(self.cells);
        record(&mut out, EOF, &[]);
        out
    }
}

/// The report as the bytes of a .xls file: for each test its name, a line of record sizes in kB,
/// and a line for each file size.
pub fn spreadsheet(results: &MatrixResults) -> Vec<u8> {
    let mut sheet = Sheet::default();
    sheet.text(0, 0, &results.options.command_line);
    let mut row = 2;
    for (title, _, lines) in reports(results) {
        sheet.text(row, 0, &title);
        row += 1;
        for (column, record) in (1..).zip(records(results)) {
            sheet.number(row, column, (record >> 10) as f64);
        }
        for (file, figures) in lines {
            row += 1;
            sheet.number(row, 0, (file >> 10) as f64);
            for (column, figure) in (1..).zip(figures) {
                sheet.number(row, column, figure);
            }
        }
        row += 2;
    }
    sheet.finish()
}

/// The report of throughput mode: a line a test, a column for each number of children.
pub fn spreadsheet_of_runs(results: &IozoneResults) -> Vec<u8> {
    let mut sheet = Sheet::default();
    sheet.text(0, 0, &results.options.command_line);
    sheet.text(1, 0, &format!("Output is in {}/sec", results.unit));
    for (column, run) in (1..).zip(&results.runs) {
        sheet.number(2, column, run.children as f64);
        for (row, test) in (3..).zip(&run.tests) {
            sheet.text(row, 0, test.test.title());
            sheet.number(row, column, test.summary.children_see);
        }
    }
    sheet.finish()
}
