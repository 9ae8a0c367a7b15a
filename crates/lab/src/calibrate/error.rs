//! Why a device could not be calibrated.

use steadfast_block::BlockError;
use steadfast_devices::model::ModelError;
use steadfast_runtime::SimError;

use super::figures::Figure;

fn shown(figures: &[Figure]) -> String {
    let all = figures.iter().map(|f| format!("{}: {:.2} ms", f.name, f.value / 1e3));
    all.collect::<Vec<_>>().join("; ")
}

/// Why a device could not be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A request failed.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The simulation of the model cannot go on.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// No model is like the device.
    #[error("no model can have these figures: {0}")]
    Model(#[from] ModelError),
    /// The seek times contradict each other.
    #[error(
        "too noisy to believe: no disk has such seek times ({}). End what else uses the device or \
         the machine, and try again; a file should be much larger than the drive's cache. ({why})",
        shown(.figures)
    )]
    Seeks {
        /// What the model says.
        why: String,
        /// What was measured.
        figures: Vec<Figure>,
    },
    /// It has less than is needed for figures of the device rather than of its caches.
    #[error("{device}: is too small: {size} bytes, calibration needs {least}")]
    TooSmall {
        /// The device's name.
        device: String,
        /// Its bytes.
        size: u64,
        /// Bytes that are needed.
        least: u64,
    },
    /// It was to be written to, and cannot be.
    #[error("{device}: is read-only: leave --write out")]
    ReadOnly {
        /// The device's name.
        device: String,
    },
    /// The same figure differs too much between rounds.
    #[error(
        "{device}: too noisy to believe: '{figure}' was {low:.1} to {high:.1} {unit} in {rounds} \
         rounds. End what else uses the device or the machine, and try again"
    )]
    TooNoisy {
        /// The device's name.
        device: String,
        /// Which figure.
        figure: String,
        /// Its least value.
        low: f64,
        /// Its greatest value.
        high: f64,
        /// Of both.
        unit: &'static str,
        /// How often it was measured.
        rounds: usize,
    },
    /// Somebody wanted it to stop.
    #[error("interrupted: nothing was written")]
    Interrupted,
}

/// What calibrating returns.
pub(crate) type Result<T, E = CalibrateError> = std::result::Result<T, E>;
