//! IOzone's single and auto mode as a workload: file sizes by record sizes, on each variant with
//! the command lines of its configuration.

use std::collections::BTreeMap;

use steadfast_bench::iozone;

use super::benchmark::{Pair, files_fit};
use super::load::{Cuttable, JobResult, Load};
use super::measured::matrix_options;
use super::{Part, Report, Setting};
use crate::scenario::{RunKind, Scenario, Variant};
use crate::{ScenarioError, VariantError};

/// The matrices of a scenario, by variant.
pub(super) struct Matrices {
    lines: BTreeMap<String, Pair>,
    command: String,
    risk_command: String,
}

impl Matrices {
    /// Of all variants; without `full` those of a reduced run.
    pub fn new(scenario: &Scenario, full: bool) -> Result<Matrices, ScenarioError> {
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
            lines.insert(variant.name.clone(), Pair { speed, risk });
        }
        Ok(Matrices { lines, command: speeds.join("; "), risk_command: risks.join("; ") })
    }

    fn of(&self, variant: &Variant) -> Result<&Pair, VariantError> {
        let none = || VariantError::NoLines(variant.name.clone());
        self.lines.get(&variant.name).ok_or_else(none)
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

impl Load for Matrices {
    fn command(&self) -> Option<String> {
        Some(self.command.clone())
    }

    fn risk_command(&self) -> Option<String> {
        Some(self.risk_command.clone())
    }

    fn parts(&self, setting: &Setting, variant: &Variant) -> Vec<Part> {
        Pair::parts(setting, variant)
    }

    fn run(
        &self,
        setting: &Setting,
        variant: &Variant,
        part: Part,
        report: Report,
    ) -> Result<JobResult, VariantError> {
        self.of(variant)?.run(setting, variant, part, report)
    }

    fn recorded(
        &self,
        setting: &Setting,
        variant: &Variant,
    ) -> Option<Result<Cuttable, VariantError>> {
        Some(self.of(variant).and_then(|pair| pair.recorded(setting, variant)))
    }

    /// By the bytes that are moved.
    fn weight(&self, variant: &Variant) -> u64 {
        self.of(variant).map_or(1, |lines| 1 + (lines.speed.data_bytes() >> 20))
    }
}
