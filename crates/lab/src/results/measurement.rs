//! One row of results, whatever it is of: what a workload hands over, what the document of a run
//! holds, what tables, charts and notes are made of.
//!
//! A kind of measurement is a struct whose fields are its columns, with a [`Row`] that says which
//! lines of tables it makes, and a line in the list below.

use serde::{Deserialize, Serialize};

use super::row::{Row, RowContext, TableLine};
use super::{
    AgeSeries, BandRow, CombinationRow, CopyRow, FilesRow, FioRow, GridRow, LegRow, LossRow, Point,
    QueueSeries, RandomReadRow, Ratio, ReadRow, RiskRow, ShownRow, SpeedRow, TimingRow,
    VariantTime,
};

/// A kind of measurement that is in the list.
pub trait MeasurementRow: Sized + 'static {
    /// The row, if it is of this kind.
    fn of(measurement: &Measurement) -> Option<&Self>;
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
    /// A published figure beside the range over what is unknown.
    Band(BandRow),
    /// A combination of what is unknown.
    Combination(CombinationRow),
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
    /// The requests of a job of fio's.
    Fio(FioRow),
    /// What cuts took of a volume.
    Legs(LegRow),
}

impl Measurement {
    /// The lines of tables that it makes, as one row of these results.
    pub(crate) fn lines(&self, results: &dyn RowContext) -> Vec<TableLine> {
        self.as_row().lines(results)
    }

    /// The row, if it is of a kind.
    pub(crate) fn row<R: MeasurementRow>(&self) -> Option<&R> {
        R::of(self)
    }
}
