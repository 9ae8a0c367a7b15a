//! Parameters that were fitted, and where each is from.

use std::collections::BTreeMap;

use steadfast_devices::model::parameters::Describe;

use super::figures::{Figure, Figures};

/// Where the value of a parameter is from.
#[derive(Debug, Clone)]
pub(super) enum Provenance {
    /// It follows from a figure; how, in a few words.
    Probes { figure: Figure, how: String },
    /// The device says so, or the caller.
    Said(String),
}

/// A device with fitted parameters. What is not in `from` has the model's default, or follows from
/// what is.
#[derive(Debug, Clone)]
pub(super) struct Fit<P> {
    pub params: P,
    pub from: BTreeMap<&'static str, Provenance>,
}

impl<P: Describe> Fit<P> {
    pub fn new(params: P) -> Self {
        Fit { params, from: BTreeMap::new() }
    }

    pub fn note(&mut self, parameter: &'static str, from: Provenance) {
        self.from.insert(parameter, from);
    }

    /// The parameter follows from this figure, if there is one.
    pub fn measured(
        &mut self,
        parameter: &'static str,
        figures: &Figures,
        figure: &str,
        how: &str,
    ) {
        if let Some(figure) = figures.get(figure) {
            let (figure, how) = (figure.clone(), how.to_owned());
            self.note(parameter, Provenance::Probes { figure, how });
        }
    }
}
