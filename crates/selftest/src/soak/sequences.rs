//! The smallest sequences: a case is twenty of them, of one part of `small::quick`, as the soak of
//! the tests explores it.

use steadfast_crash::Result;
use steadfast_sweep::SweepCase;

use super::finding::{COLUMNS, SoakFinding, columns, figures, keep, kind_of};
use super::words::SoakWords;
use super::{CaseSpace, SoakResult, first_of};
use crate::small::explore;
use crate::small::quick::Part;

pub(super) const WORDS: &str = "[part=TEXT]: those parts whose name has it";

/// Sequences of a case.
const SEQUENCES: usize = 20;

const FIGURES: [&str; 1 + COLUMNS.len()] = columns(["sequences"]);

/// Sequences of some parts.
pub(super) struct SequenceCases {
    parts: Vec<Part>,
    seed: u64,
}

impl SequenceCases {
    pub fn of(words: &mut SoakWords, seed: u64) -> Result<SequenceCases> {
        let text = words.value("part").unwrap_or_default();
        let mut parts = Part::all();
        parts.retain(|part| part.name.contains(&text));
        if parts.is_empty() {
            return Err(format!("part={text}: no part has that in its name").into());
        }
        Ok(SequenceCases { parts, seed })
    }
}

impl CaseSpace for SequenceCases {
    fn columns(&self) -> &'static [&'static str] {
        &FIGURES
    }

    fn cases(&self) -> Vec<SweepCase> {
        let cases = self.parts.iter().flat_map(|part| {
            let count = part.soak_sequences().len();
            (0..count).step_by(SEQUENCES).map(|first| SweepCase {
                name: format!("{}/sequences-{first:04}", part.name),
                input: serde_json::json!([part.name, first]),
            })
        });
        cases.collect()
    }

    fn run(&self, case: &SweepCase) -> Result<SoakResult> {
        let name = case.name.split('/').next().unwrap_or_default();
        let part = Part::named(name).ok_or_else(|| format!("{name}: there is no such part"))?;
        let sequences = part.soak_sequences();
        let (_, first) = first_of(case, sequences.len())?;
        let plan = steadfast_crash::explore::Plan { seed: self.seed, ..Part::soak_plan() };
        let machine = part.machine()?;
        let mut result = SoakResult::default();
        let sequences: Vec<_> = sequences.into_iter().skip(first).take(SEQUENCES).collect();
        let report = explore(&machine, &sequences, &plan, &|_| ())?;
        result.figures.push(report.sequences);
        result.figures.extend(figures(&report));
        if report.wrong() == 0 {
            return Ok(result);
        }
        for sequence in &sequences {
            let alone = explore(&machine, std::slice::from_ref(sequence), &plan, &|_| ())?;
            let Some(kind) = kind_of(&alone) else { continue };
            let what = alone.findings.first().cloned().unwrap_or_default();
            let (kind, size) = (kind.to_owned(), sequence.len() as u64);
            keep(&mut result.findings, SoakFinding { kind, size, what, command: None });
        }
        if let Some(kind) = kind_of(&report).filter(|_| result.findings.is_empty()) {
            // It shows only where the other sequences were before.
            let what = report.findings.first().cloned().unwrap_or_default();
            let finding = SoakFinding { kind: kind.into(), size: u64::MAX, what, command: None };
            result.findings.push(finding);
        }
        Ok(result)
    }
}
