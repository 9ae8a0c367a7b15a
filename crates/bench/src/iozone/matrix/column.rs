//! The tests as columns of the table.

use serde::{Deserialize, Serialize};

use crate::iozone::options::{Matrix, Options};
use crate::iozone::plan::{OpenMode, RecordOrder, Role, Test, Wall, role};

/// A column: a test, or its second pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "IOzone's words")]
pub enum Column {
    Write,
    Rewrite,
    Read,
    Reread,
    RandomRead,
    RandomWrite,
    BackwardRead,
    RecordRewrite,
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

/// What is in the heading and the table of a column.
struct ColumnHeading {
    column: Column,
    /// The number that -i selects it with.
    number: u8,
    /// Second pass over the same file.
    repeat: bool,
    /// Columns of the terminal that it takes.
    width: usize,
    top: &'static str,
    name: &'static str,
    /// In the report of -R.
    title: &'static str,
}

const fn shown(
    column: Column,
    (number, repeat): (u8, bool),
    width: usize,
    (top, name): (&'static str, &'static str),
    title: &'static str,
) -> ColumnHeading {
    ColumnHeading { column, number, repeat, width, top, name, title }
}

/// In the order in which they run and are printed.
const SHOWN: [ColumnHeading; 21] = [
    shown(Column::Write, (0, false), 9, ("         ", "    write"), "Writer"),
    shown(Column::Rewrite, (0, true), 9, ("         ", "  rewrite"), "Re-writer"),
    shown(Column::Read, (1, false), 9, ("         ", "    read "), "Reader"),
    shown(Column::Reread, (1, true), 9, ("         ", "   reread"), "Re-Reader"),
    shown(Column::RandomRead, (2, false), 9, ("  random ", "    read "), "Random read"),
    shown(Column::RandomWrite, (2, false), 9, ("   random", "    write"), "Random write"),
    shown(Column::BackwardRead, (3, false), 9, ("     bkwd", "     read"), "Backward read"),
    shown(Column::RecordRewrite, (4, false), 10, ("    record", "   rewrite"), "Record rewrite"),
    shown(Column::StrideRead, (5, false), 10, ("    stride", "      read"), "Stride read"),
    shown(Column::Fwrite, (6, false), 9, ("         ", "   fwrite"), "Fwrite"),
    shown(Column::Frewrite, (6, true), 9, ("         ", " frewrite"), "Re-Fwrite"),
    shown(Column::Fread, (7, false), 9, ("         ", "    fread"), "Fread"),
    shown(Column::Freread, (7, true), 9, ("         ", "  freread"), "Re-Fread"),
    shown(Column::Pwrite, (9, false), 9, ("         ", "  pwrite "), "Pwrite"),
    shown(Column::Repwrite, (9, true), 9, ("         ", "repwrite "), "Re-Pwrite"),
    shown(Column::Pread, (10, false), 8, ("        ", "  pread "), "Pread"),
    shown(Column::Repread, (10, true), 9, ("         ", "  repread"), "Re-Pread"),
    shown(Column::Pwritev, (11, false), 10, ("          ", "   pwritev"), "Pwritev"),
    shown(Column::Repwritev, (11, true), 10, ("          ", " repwritev"), "Re-Pwritev"),
    shown(Column::Preadv, (12, false), 10, ("          ", "    preadv"), "Preadv"),
    shown(Column::Repreadv, (12, true), 10, ("          ", "  repreadv"), "Re-Preadv"),
];

impl Column {
    fn shown(self) -> &'static ColumnHeading {
        // OK to index: they are in the order of the variants; a test compares.
        &SHOWN[self as usize]
    }

    /// Every column.
    pub fn all() -> impl Iterator<Item = Column> {
        SHOWN.iter().map(|shown| shown.column)
    }

    /// Its name in words: "random read".
    pub fn name(self) -> &'static str {
        use Column::*;
        match self {
            Write => "write",
            Rewrite => "rewrite",
            Read => "read",
            Reread => "reread",
            RandomRead => "random read",
            RandomWrite => "random write",
            BackwardRead => "backward read",
            RecordRewrite => "record rewrite",
            StrideRead => "stride read",
            Fwrite => "fwrite",
            Frewrite => "frewrite",
            Fread => "fread",
            Freread => "freread",
            Pwrite => "pwrite",
            Repwrite => "repwrite",
            Pread => "pread",
            Repread => "repread",
            Pwritev => "pwritev",
            Repwritev => "repwritev",
            Preadv => "preadv",
            Repreadv => "repreadv",
        }
    }

    /// The number that -i selects it with.
    pub fn number(self) -> u8 {
        self.shown().number
    }

    /// Whether it is the second pass of its test.
    pub(crate) fn is_repeat(self) -> bool {
        self.shown().repeat
    }

    /// Columns of the terminal that it takes.
    pub fn width(self) -> usize {
        self.shown().width
    }

    /// Both lines of its heading.
    pub fn heading(self) -> (&'static str, &'static str) {
        (self.shown().top, self.shown().name)
    }

    /// Its name in the -R report.
    pub fn title(self) -> &'static str {
        self.shown().title
    }

    /// Whether it goes through stdio.
    pub(crate) fn is_stdio(self) -> bool {
        matches!(self.number(), 6 | 7)
    }

    /// Whether it only reads.
    pub fn reads(self) -> bool {
        use Column::{BackwardRead, RandomRead, Read, Reread, StrideRead};
        use Column::{Fread, Freread, Pread, Preadv, Repread, Repreadv};
        matches!(
            self,
            Read | Reread
                | RandomRead
                | BackwardRead
                | StrideRead
                | Fread
                | Freread
                | Pread
                | Repread
                | Preadv
                | Repreadv
        )
    }

    /// The columns that the table has for a command line, and which of them are run.
    pub fn of(options: &Options, matrix: &Matrix) -> Vec<(Column, bool)> {
        let given = |n: u8| options.tests.as_ref().is_some_and(|tests| tests.contains(&n));
        let runs = |n: u8| options.tests.is_none() || given(n);
        let has = |n: u8| match n {
            0 | 1 => true,
            2..=7 => !matrix.short_table,
            9 | 10 => matrix.extended && !matrix.short_table,
            _ => given(n),
        };
        let columns = SHOWN.iter().filter(|s| has(s.number));
        columns.map(|s| (s.column, runs(s.number) && !Self::is_mapped_stdio(s, matrix))).collect()
    }

    /// There is no stdio through a mapping.
    fn is_mapped_stdio(shown: &ColumnHeading, matrix: &Matrix) -> bool {
        matrix.mapped.is_some() && matches!(shown.number, 6 | 7)
    }

    /// What is done: as a child of throughput mode does it.
    pub(super) fn role(self, options: &Options) -> Role {
        let test = match self {
            Column::Write => Test::InitialWrite,
            Column::Rewrite => Test::Rewrite,
            Column::Read | Column::Reread => Test::Read,
            Column::RandomRead => Test::RandomRead,
            Column::RandomWrite => Test::RandomWrite,
            Column::BackwardRead => Test::ReverseRead,
            Column::RecordRewrite => Test::Rewrite,
            Column::StrideRead => Test::StrideRead,
            Column::Fwrite | Column::Frewrite => Test::Fwrite,
            Column::Fread | Column::Freread => Test::Fread,
            Column::Pwrite | Column::Repwrite => Test::Pwrite,
            Column::Pread | Column::Repread => Test::Pread,
            Column::Pwritev | Column::Repwritev => Test::Pwritev,
            Column::Preadv | Column::Repreadv => Test::Preadv,
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
        for (i, shown) in SHOWN.iter().enumerate() {
            assert_eq!(shown.column as usize, i);
            assert_eq!((shown.top.len(), shown.name.len()), (shown.width, shown.width), "{i}");
            let json = serde_json::to_value(shown.column).unwrap();
            assert_eq!(json.as_str().unwrap().replace('_', " "), shown.column.name());
        }
    }
}
