//! The long explorations as the cases of a sweep, for a night or for many machines: the program
//! `soak` of this crate plans, runs and merges them by the crate `sweep`.
//!
//! A case is a few workloads on one set-up, with all their schedules, cuts and states. It knows
//! nothing of other cases, and no time: the same case has the same result on every machine. What a
//! case has in common with others (states that are alike, recoveries that are known) is found once
//! for each case: that is the price of cases that do not depend on each other.

mod corpus;
mod finding;
mod schedules;
mod sequences;
mod table;
mod words;

use serde::{Deserialize, Serialize};
use steadfast_crash::{CrashError, Result};
use steadfast_sweep::SweepCase;

pub use finding::SoakFinding;
pub use table::SoakTable;

use corpus::CorpusCases;
use schedules::ScheduleCases;
use sequences::SequenceCases;
use words::SoakWords;

/// What can be explored, as people call it, and the words that each takes.
pub const SPACES: [(&str, &str); 3] =
    [("schedules", schedules::WORDS), ("sequences", sequences::WORDS), ("corpus", corpus::WORDS)];

/// What came of a case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoakResult {
    /// A figure for each of the columns.
    pub figures: Vec<u64>,
    /// Of each kind of fault the smallest workload that shows it.
    pub findings: Vec<SoakFinding>,
}

/// A space of workloads, cut into cases.
trait CaseSpace: Send + Sync {
    /// The names of the figures.
    fn columns(&self) -> &'static [&'static str];

    /// All cases, in order. What is before the first '/' of a name is its row of the table.
    fn cases(&self) -> Vec<SweepCase>;

    /// Explores one.
    fn run(&self, case: &SweepCase) -> Result<SoakResult>;
}

/// What a soak explores.
pub struct SoakCases {
    settings: SoakSettings,
    space: Box<dyn CaseSpace>,
    every: usize,
}

/// What a plan says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoakSettings {
    /// Of [`SPACES`].
    pub space: String,
    /// What is explored of it.
    pub words: Vec<String>,
    /// Decides what is drawn, where not all is explored.
    pub seed: u64,
    /// The sources that the program is of, if somebody has said it.
    pub commit: Option<String>,
}

impl SoakCases {
    /// Reads words. `every=N` takes one of N of all cases.
    ///
    /// # Errors
    /// A word that is not known.
    pub fn new(settings: &SoakSettings) -> Result<SoakCases> {
        let mut words = SoakWords::new(&settings.words);
        let every = words.number("every", 1)?;
        let seed = settings.seed;
        let space: Box<dyn CaseSpace> = match settings.space.as_str() {
            "schedules" => Box::new(ScheduleCases::of(&mut words, seed)?),
            "sequences" => Box::new(SequenceCases::of(&mut words, seed)?),
            "corpus" => Box::new(CorpusCases::of(&mut words, seed)?),
            other => {
                let known = SPACES.map(|(name, _)| name).join(", ");
                return Err(CrashError::Words(format!("'{other}': can be explored: {known}")));
            }
        };
        words.end()?;
        let settings = settings.clone();
        Ok(SoakCases { settings, space, every: usize::try_from(every).unwrap_or(usize::MAX) })
    }

    /// What a plan says of it.
    pub fn settings(&self) -> &SoakSettings {
        &self.settings
    }

    /// All cases.
    pub fn cases(&self) -> Vec<SweepCase> {
        self.space.cases().into_iter().step_by(self.every).collect()
    }

    /// Explores one.
    ///
    /// # Errors
    /// A workload could not be run, in words.
    pub fn run(&self, case: &SweepCase) -> Result<SoakResult> {
        let mut result = self.space.run(case)?;
        for finding in &mut result.findings {
            finding.command.get_or_insert_with(|| self.command(&case.name));
        }
        Ok(result)
    }

    /// The command that runs a case, without a plan.
    pub fn command(&self, case: &str) -> String {
        let SoakSettings { space, words, seed, .. } = &self.settings;
        let words: String = words.iter().map(|word| format!(" '{word}'")).collect();
        format!("cargo xtask soak case {space}{words} --seed {seed} --case '{case}'")
    }

    /// An empty table.
    pub fn table(&self) -> SoakTable {
        SoakTable::new(self.space.columns())
    }
}

/// The number that a case begins with, of which a space has so many.
fn first_of(case: &SweepCase, count: usize) -> Result<(String, usize)> {
    let unknown = || CrashError::Words(format!("{}: there is no such case", case.name));
    let (of, first): (String, usize) =
        serde_json::from_value(case.input.clone()).map_err(|_| unknown())?;
    if first < count { Ok((of, first)) } else { Err(unknown()) }
}
