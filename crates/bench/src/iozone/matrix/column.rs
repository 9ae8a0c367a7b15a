//! The tests as columns of the table.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::iozone::options::{Matrix, Options};
use crate::iozone::plan::{OpenMode, RecordOrder, Role, Test, Wall, role};

/// A column: a test, or its second pass.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs, reason = "IOzone's words")]
pub enum Column {
    Write,
    Rewrite,
    Read,
    Reread,
    #[strum(serialize = "random read")]
    RandomRead,
    #[strum(serialize = "random write")]
    RandomWrite,
    #[strum(serialize = "backward read")]
    BackwardRead,
    #[strum(serialize = "record rewrite")]
    RecordRewrite,
    #[strum(serialize = "stride read")]
    StrideRead,
    Fwrite,
    Frewrite,
    Fread,
    Freread,
    Pwrite,
    Repwrite,
    Pread,
    Repread,
    Pwritev,
    Repwritev,
    Preadv,
    Repreadv,
}

/// Of each column the number of -i, whether it is the second pass over the same file, both lines
/// of its heading, its name in the report of -R, and its file of -Q without ".dat".
type ColumnRow = (Column, (u8, bool), (&'static str, &'static str), &'static str, &'static str);

/// In the order in which they run and are printed.
const SHOWN: [ColumnRow; 21] = [
    (Column::Write, (0, false), ("         ", "    write"), "Writer", "wol"),
    (Column::Rewrite, (0, true), ("         ", "  rewrite"), "Re-writer", "rwol"),
    (Column::Read, (1, false), ("         ", "    read "), "Reader", "rol"),
    (Column::Reread, (1, true), ("         ", "   reread"), "Re-Reader", "rrol"),
    (Column::RandomRead, (2, false), ("  random ", "    read "), "Random read", "randrol"),
    (Column::RandomWrite, (2, false), ("   random", "    write"), "Random write", "randwol"),
    (Column::BackwardRead, (3, false), ("     bkwd", "     read"), "Backward read", "bol"),
    (Column::RecordRewrite, (4, false), ("    record", "   rewrite"), "Record rewrite", "recwol"),
    (Column::StrideRead, (5, false), ("    stride", "      read"), "Stride read", "srol"),
    (Column::Fwrite, (6, false), ("         ", "   fwrite"), "Fwrite", "fwol"),
    (Column::Frewrite, (6, true), ("         ", " frewrite"), "Re-Fwrite", "frwol"),
    (Column::Fread, (7, false), ("         ", "    fread"), "Fread", "frol"),
    (Column::Freread, (7, true), ("         ", "  freread"), "Re-Fread", "frrol"),
    (Column::Pwrite, (9, false), ("         ", "  pwrite "), "Pwrite", "pwol"),
    (Column::Repwrite, (9, true), ("         ", "repwrite "), "Re-Pwrite", "prwol"),
    (Column::Pread, (10, false), ("        ", "  pread "), "Pread", "prol"),
    (Column::Repread, (10, true), ("         ", "  repread"), "Re-Pread", "prrol"),
    (Column::Pwritev, (11, false), ("          ", "   pwritev"), "Pwritev", "pwvol"),
    (Column::Repwritev, (11, true), ("          ", " repwritev"), "Re-Pwritev", "prwvol"),
    (Column::Preadv, (12, false), ("          ", "    preadv"), "Preadv", "prvol"),
    (Column::Repreadv, (12, true), ("          ", "  repreadv"), "Re-Preadv", "prrvol"),
];

impl Column {
    fn shown(self) -> &'static ColumnRow {
        // OK to index: they are in the order of the variants; a test compares.
        &SHOWN[self as usize]
    }

    /// Every column.
    pub fn all() -> impl Iterator<Item = Column> {
        SHOWN.iter().map(|shown| shown.0)
    }

    /// Its name in words: "random read".
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The number that -i selects it with.
    pub fn number(self) -> u8 {
        self.shown().1.0
    }

    /// Whether it is the second pass of its test.
    pub(crate) fn is_repeat(self) -> bool {
        self.shown().1.1
    }

    /// Columns of the terminal that it takes.
    pub fn width(self) -> usize {
        self.heading().1.len()
    }

    /// Both lines of its heading.
    pub fn heading(self) -> (&'static str, &'static str) {
        self.shown().2
    }

    /// Its name in the -R report.
    pub fn title(self) -> &'static str {
        self.shown().3
    }

    /// Its file of -Q, without ".dat".
    pub(crate) fn latency_file(self) -> &'static str {
        self.shown().4
    }

    /// Whether it goes through stdio.
    pub(crate) fn is_stdio(self) -> bool {
        matches!(self.number(), 6 | 7)
    }

    /// Whether it only reads: the name says it.
    pub fn reads(self) -> bool {
        self.name().contains("read")
    }

    /// The columns that the table has for a command line, and which of them are run.
    pub fn of(options: &Options) -> Vec<(Column, bool)> {
        let default = Matrix::default();
        let matrix = options.matrix.as_ref().unwrap_or(&default);
        let given = |n: u8| options.tests.as_ref().is_some_and(|tests| tests.contains(&n));
        let runs = |n: u8| options.tests.is_none() || given(n);
        let has = |n: u8| match n {
            0 | 1 => true,
            2..=7 => !matrix.short_table,
            9 | 10 => matrix.extended && !matrix.short_table,
            _ => given(n),
        };
        // There is no stdio through a mapping.
        let mapped = matrix.mapped.is_some();
        let columns = Column::all().filter(|c| has(c.number()));
        columns.map(|c| (c, runs(c.number()) && !(mapped && c.is_stdio()))).collect()
    }

    /// What is done: as a child of throughput mode does it.
    pub(super) fn role(self, options: &Options) -> Role {
        let test = match self {
            Column::Rewrite | Column::RecordRewrite => Test::Rewrite,
            Column::RandomWrite => Test::RandomWrite,
            // OK to unwrap: of the others the first test of their number is it.
            _ => Test::all().find(|test| test.number() == self.number()).unwrap(),
        };
        let mut role = Role { wall: Wall::None, ..role(test, 0, 1, options) };
        match self {
            Column::RecordRewrite => role.order = RecordOrder::Same,
            Column::Fwrite => role.opening = OpenMode::Empty,
            Column::Repwrite | Column::Repwritev | Column::Frewrite => {
                role.opening = OpenMode::Existing;
            }
            _ => {}
        }
        role
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_columns() {
        let options = Options::default();
        for (i, (column, _, heading, ..)) in SHOWN.iter().enumerate() {
            assert_eq!(*column as usize, i);
            assert_eq!(heading.0.len(), heading.1.len(), "{i}");
            let json = serde_json::to_value(column).unwrap();
            assert_eq!(json.as_str().unwrap().replace('_', " "), column.name());
            assert_eq!(column.reads(), !column.role(&options).writes, "{column:?}");
        }
    }
}
