//! One row of results, whatever it is of: what a workload hands over, what the document of a run
//! holds, what tables, charts and notes are made of.
//!
//! A kind of measurement is a struct whose fields are its columns, with a [`Row`] that says which
//! lines of tables it makes, and a line in the list below.

use serde::{Deserialize, Serialize};

use super::column::Column;
use super::{
    AgeSeries, CopyRow, FilesRow, GridRow, LegRow, LossRow, Point, QueueSeries, RandomReadRow,
    Ratio, ReadRow, Results, RiskRow, ShownRow, SpeedRow, TimingRow, VariantTime,
};

/// A kind of measurement.
pub(crate) trait Row {
    /// The lines of tables that it makes, as one row of these results; none: it is for charts and
    /// notes.
    fn lines(&self, _results: &Results) -> Vec<TableLine> {
        Vec::new()
    }
}

/// A kind of measurement that is in the list.
pub trait MeasurementRow: Sized + 'static {
    /// The row, if it is of this kind.
    fn of(measurement: &Measurement) -> Option<&Self>;
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

macro_rules! measurements {
    ($($(#[doc = $doc:literal])* $kind:ident($row:ident),)*) => {
        /// A row of results.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[expect(clippy::large_enum_variant, reason = "a run has some hundred rows")]
        pub enum Measurement {
            $($(#[doc = $doc])* $kind($row),)*
        }

        impl Measurement {
            fn as_row(&self) -> &dyn Row {
                match self {
                    $(Measurement::$kind(row) => row,)*
                }
            }
        }

        $(
            impl From<$row> for Measurement {
                fn from(row: $row) -> Measurement {
                    Measurement::$kind(row)
                }
            }

            impl MeasurementRow for $row {
                fn of(measurement: &Measurement) -> Option<&Self> {
                    match measurement {
                        Measurement::$kind(row) => Some(row),
                        _ => None,
                    }
                }
            }
        )*
    };
}

measurements! {
    /// How long a benchmark took.
    Took(VariantTime),
    /// The speed of a test.
    Speed(SpeedRow),
    /// Speeds over a matrix of sizes, of a test.
    Matrix(GridRow),
    /// A speed against the baseline's.
    Ratio(Ratio),
    /// The speed under the workload of files.
    Files(FilesRow),
    /// The data loss at power failure.
    Risk(RiskRow),
    /// The planted bugs that as many cuts show.
    PlantedBugs(ShownRow),
    /// The age of what each cut took.
    Ages(AgeSeries),
    /// What power cuts took from the measured run itself.
    Loss(LossRow),
    /// Speed beside exposure.
    SpeedAndExposure(Point),
    /// How long reads took beside a writer.
    ReadUnderWrite(ReadRow),
    /// The request scheduler's queue over time.
    Queue(QueueSeries),
    /// A timing by hdparm.
    Hdparm(TimingRow),
    /// A copy by dd.
    Dd(CopyRow),
    /// Reads at random places.
    RandomRead(RandomReadRow),
    /// What cuts took of a volume.
    Legs(LegRow),
}

impl Measurement {
    /// The lines of tables that it makes, as one row of these results.
    pub(crate) fn lines(&self, results: &Results) -> Vec<TableLine> {
        self.as_row().lines(results)
    }

    /// The row, if it is of a kind.
    pub(crate) fn row<R: MeasurementRow>(&self) -> Option<&R> {
        R::of(self)
    }
}
