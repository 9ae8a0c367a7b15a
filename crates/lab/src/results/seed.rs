//! The figures of one seed.

use serde::{Deserialize, Serialize};

use super::{FilesRow, Measurement, MeasurementRow};

/// What one seed brought.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeedResults {
    /// Seed of every random choice.
    pub seed: u64,
    /// What was measured, a row each, and what follows from it.
    pub measurements: Vec<Measurement>,
}

impl SeedResults {
    /// Whether nothing of it had ended when it was interrupted.
    pub fn is_empty(&self) -> bool {
        self.measurements.is_empty()
    }

    /// The rows of a kind.
    pub fn of<R: MeasurementRow>(&self) -> impl Iterator<Item = &R> + Clone {
        self.measurements.iter().filter_map(R::of)
    }

    /// The rows of the workload of files, to be changed.
    pub(crate) fn files_mut(&mut self) -> impl Iterator<Item = &mut FilesRow> {
        self.measurements.iter_mut().filter_map(|m| match m {
            Measurement::Files(row) => Some(row),
            _ => None,
        })
    }
}
