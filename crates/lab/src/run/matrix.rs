//! IOzone's single and auto mode: file sizes by record sizes, on each variant with the command
//! lines of its configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_bench::iozone;

use super::benchmark::{Iozone, Pair, files_fit};
use crate::ScenarioError;
use crate::scenario::{RunKind, Scenario, Variant, matrix_options};

impl Iozone {
    /// The matrices of all variants; without `full` those of a reduced run.
    pub fn matrices(scenario: &Scenario, full: bool) -> Result<Iozone, ScenarioError> {
        let mut lines = BTreeMap::new();
        let (mut speeds, mut risks) = (Vec::new(), Vec::new());
        for variant in &scenario.variants {
            let Some(of) = scenario.workload.lines_of(variant) else {
                return Err(ScenarioError::NoConfiguration(variant.name.clone()));
            };
            let speed = Box::new(matrix_options(if full { of.full } else { of.quick })?);
            let risk = Box::new(matrix_options(of.risk)?);
            let one = [variant.clone()];
            files_fit(scenario, &one, &speed, RunKind::speed)?;
            files_fit(scenario, &one, &risk, RunKind::risk)?;
            add_once(&mut speeds, variant, &speed);
            add_once(&mut risks, variant, &risk);
            lines.insert(variant.name.clone(), Arc::new(Pair { speed, risk }));
        }
        let (command, risk_command) = (speeds.join("; "), risks.join("; "));
        Ok(Iozone { lines, command, risk_command, takes_by_bytes: true })
    }
}

/// Adds a command line once, with its configuration's name.
fn add_once(all: &mut Vec<String>, variant: &Variant, options: &iozone::Options) {
    let line = &options.command_line;
    let text = match &variant.configuration {
        Some(name) => format!("{name}: {line}"),
        None => line.clone(),
    };
    if !all.contains(&text) {
        all.push(text);
    }
}
