//! Models of real parts beside what is published of them: a data sheet's figures, or somebody's
//! measurements.
//!
//! A part is a TOML file: a device as a scenario has it, and figures with their sources. A figure
//! that a parameter was set by is an input; the others are predictions. Each is measured in virtual
//! time on a new model, by the probes that calibrate devices.

mod file;
mod pattern;
mod text;

use serde::Serialize;
use steadfast_devices::model::ModelParams;

use crate::calibrate::{CalibrateError, in_model};

pub use file::{FigureForm, PartError, embedded, read};
pub use text::text;

/// Seed of the places of random requests.
const SEED: u64 = 1;

/// A part and what is published of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it is: maker, model, capacity.
    pub title: String,
    /// Its model.
    pub params: ModelParams,
    /// What is published.
    pub figures: Vec<FigureForm>,
}

/// A figure, published and of the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// What was measured.
    pub name: String,
    /// Of both values.
    pub unit: &'static str,
    /// What was published.
    pub published: f64,
    /// The model's.
    pub model: f64,
    /// How much more that is, in % of what was published.
    pub difference_percent: f64,
    /// Whether a parameter was set by it.
    pub input: bool,
    /// Where it was published.
    pub source: String,
}

/// A part with all its figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedPart {
    /// What it is.
    pub title: String,
    /// The kind of its model.
    pub kind: &'static str,
    /// In the order of its file.
    pub figures: Vec<ComparedFigure>,
}

/// Asks a part's model for every figure.
///
/// # Errors
/// The model fails.
pub fn compare(part: &Part) -> Result<ComparedPart, CalibrateError> {
    let one = |figure: &FigureForm| {
        let FigureForm { pattern, unit, within, .. } = figure.clone();
        let within = within.map(|size| size.0);
        let rate = in_model(&part.params, SEED, move |p| pattern.rate(p, within))?;
        let model = unit.of_rate(rate, figure.pattern.bytes, figure.pattern.at_once);
        Ok(ComparedFigure {
            name: figure.pattern.to_string(),
            unit: unit.name(),
            published: figure.value,
            model,
            difference_percent: (model / figure.value - 1.0) * 100.0,
            input: figure.input,
            source: figure.source.clone(),
        })
    };
    let figures = part.figures.iter().map(one).collect::<Result<_, CalibrateError>>()?;
    Ok(ComparedPart { title: part.title.clone(), kind: part.params.kind_name(), figures })
}
