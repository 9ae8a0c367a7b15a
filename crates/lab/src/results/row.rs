//! What a kind of measurement says of itself: the lines of tables that it makes.

use super::ClockKind;
use super::cell::Cell;
use super::column::Column;

/// A kind of measurement.
pub(crate) trait Row {
    /// The lines of tables that it makes, as one row of these results; none: it is for charts and
    /// notes.
    fn lines(&self, _results: &dyn RowContext) -> Vec<TableLine> {
        Vec::new()
    }
}

/// What the lines of a row say of the results that it is one of.
pub(crate) trait RowContext {
    /// Which clock its times were taken by.
    fn clock(&self) -> ClockKind;
    /// At what size the benchmark ran.
    fn size(&self) -> &'static str;
    /// A test's name, with the figure where it is not the children's sum.
    fn test_label(&self, test: &str) -> String;
    /// The configuration that a variant runs, if there are several.
    fn configuration(&self, variant: &str) -> Option<&str>;
    /// Names of the baselines.
    fn baselines(&self) -> String;
    /// A ratio at the published size, where it is another than here at a reduced one.
    fn full_ratio(&self, test: &str, variant: &str) -> Cell;
}

/// A line of a table. Of several runs those with the same table and name are one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableLine {
    /// Where the table stands.
    pub order: Order,
    /// The table's title.
    pub title: String,
    /// A variant or a test.
    pub name: String,
    /// Its figures.
    pub columns: Vec<Column>,
}

impl TableLine {
    /// A line of a table.
    pub fn new(
        order: Order,
        title: impl Into<String>,
        name: impl Into<String>,
        columns: Vec<Column>,
    ) -> TableLine {
        TableLine { order, title: title.into(), name: name.into(), columns }
    }
}

/// Where a table stands among the others: first what the scenario asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Before all others.
    First,
    /// What the source says in words.
    Sentences,
    /// Test by test the speeds over the baseline's.
    Ratio,
    /// Speeds test by test.
    Speed,
    /// Speeds of devices.
    Devices,
    /// Beside the kernel's.
    Peers,
    /// The speed of the workload of files.
    Files,
    /// What cuts took from the measured run.
    Loss,
    /// What cuts took.
    Risk,
    /// What the zeros of the cuts are worth.
    Planted,
    /// The chart of speed against exposure.
    Exposure,
    /// What cuts took of volumes.
    Volumes,
    /// Speeds by size.
    Sizes,
}

/// Each once, in the order in which they first appear.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}
