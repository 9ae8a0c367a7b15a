//! What stands in a column of a table in one row: heading, figure, and whether it is shown without
//! `--wide`. The heading says which clock a time is of.

use super::Percentiles;
use super::cell::{Cell, Unit};

/// A column's figure in one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    /// Above it; the same in every row that has it.
    pub heading: String,
    /// Only with `--wide`.
    pub wide: bool,
    /// Any above zero takes from the variant what it promises.
    pub must_be_zero: bool,
    /// A control that did not fail as it must.
    pub blind: bool,
    /// The figure.
    pub cell: Cell,
}

/// Shown always.
pub(crate) fn always(heading: impl Into<String>, cell: Cell) -> Column {
    Column { heading: heading.into(), wide: false, must_be_zero: false, blind: false, cell }
}

/// Shown with `--wide`.
pub(super) fn wide(heading: impl Into<String>, cell: Cell) -> Column {
    Column { wide: true, ..always(heading, cell) }
}

pub(super) fn zero(column: Column) -> Column {
    Column { must_be_zero: true, ..column }
}

/// Median, 99th percentile or what there is instead of it, and maximum.
pub(super) fn percentiles(what: &str, p: &Percentiles, unit: Unit) -> [Column; 3] {
    let tail = p.tail();
    let max = p.p99().map(|_| p.max());
    [
        wide(format!("{what} p50"), Cell::of(p.p50(), unit)),
        always(format!("{what} {}", tail.name()), Cell::of(tail.value(), unit)),
        wide(format!("{what} max"), Cell::maybe(max, unit)),
    ]
}

pub(super) fn only_wide(column: Column) -> Column {
    Column { wide: true, ..column }
}
