//! Schedules of two tasks: a case is twenty pairs of two operations each on one set-up, or one pair
//! where locks are points too.

use steadfast_crash::Result;
use steadfast_crash::explore::{Plan, SecondCuts};
use steadfast_sweep::SweepCase;

use super::finding::{COLUMNS, SoakFinding, columns, figures, keep, kind_of};
use super::words::SoakWords;
use super::{CaseSpace, SoakResult, first_of};
use crate::mixed::Setup;
use crate::small::{
    ScheduleReport, ScheduledCase, Schedules, SmallMachine, TaskSequences, explore_schedules,
};

pub(super) const WORDS: &str = "[ordered|journal|transact|writeback] [internal|external]
            [preemptions=2] [locks] [bug=NAME]";

const MODES: [&str; 3] = ["ordered", "journal", "transact"];
/// It writes what data=ordered writes, nearly: only who asks for it gets it.
const WRITEBACK: &str = "writeback";
const JOURNALS: [&str; 2] = ["internal", "external"];

/// Pairs of a case, and where there are many more schedules of each.
const PAIRS: usize = 20;
const PAIRS_WITH_LOCKS: usize = 1;

const FIGURES: [&str; 4 + COLUMNS.len()] =
    columns(["pairs", "schedules", "pruned schedules", "distinct"]);

/// All pairs of two operations, in all schedules with a few preemptions, on some set-ups.
pub(super) struct ScheduleCases {
    /// As cases are called, and in the words of [`ScheduledCase`].
    setups: Vec<(String, String)>,
    pairs: Vec<TaskSequences>,
    schedules: Schedules,
    seed: u64,
}

impl ScheduleCases {
    pub fn of(words: &mut SoakWords, seed: u64) -> Result<ScheduleCases> {
        let modes = match words.has(WRITEBACK) {
            true => vec![WRITEBACK],
            false => words.some_of(&MODES),
        };
        let journals = words.some_of(&JOURNALS);
        let bug = words.value("bug").map_or(String::new(), |bug| format!(" bug={bug}"));
        let mut setups = Vec::new();
        for (mode, journal) in modes.iter().flat_map(|m| journals.iter().map(move |j| (m, j))) {
            let words = format!("{mode} {journal}{bug}");
            setup(&words)?;
            setups.push((words.replace(' ', "-"), words));
        }
        let preemptions = words.number("preemptions", 2)?;
        let preemptions = usize::try_from(preemptions).unwrap_or(usize::MAX);
        let locks = words.has("locks");
        let schedules = Schedules { locks, ..Schedules::all(preemptions) };
        Ok(ScheduleCases { setups, pairs: TaskSequences::of_two(), schedules, seed })
    }

    fn pairs_of_a_case(&self) -> usize {
        if self.schedules.locks { PAIRS_WITH_LOCKS } else { PAIRS }
    }

    fn plan(&self) -> Plan {
        Plan {
            seed: self.seed,
            e2fsck_every: 2000,
            second: SecondCuts { every: 200, ..SecondCuts::NONE },
            ..Plan::EVERYWHERE
        }
    }
}

/// A set-up of the smallest machine.
fn setup(words: &str) -> Result<Setup> {
    // A case of no tasks is not one, but its set-up is read.
    Ok(format!("{words} empty: begins=0").parse::<ScheduledCase>()?.setup)
}

impl CaseSpace for ScheduleCases {
    fn columns(&self) -> &'static [&'static str] {
        &FIGURES
    }

    fn cases(&self) -> Vec<SweepCase> {
        let Schedules { preemptions, locks, .. } = self.schedules;
        let locks = if locks { "-locks" } else { "" };
        let firsts = (0..self.pairs.len()).step_by(self.pairs_of_a_case());
        let cases = self.setups.iter().flat_map(|(name, words)| {
            firsts.clone().map(move |first| SweepCase {
                name: format!("{name}/preemptions-{preemptions}{locks}/pairs-{first:04}"),
                input: serde_json::json!([words, first]),
            })
        });
        cases.collect()
    }

    fn run(&self, case: &SweepCase) -> Result<SoakResult> {
        let (words, first) = first_of(case, self.pairs.len())?;
        let machine = SmallMachine::new(setup(&words)?)?;
        let pairs = self.pairs.iter().skip(first).take(self.pairs_of_a_case());
        let pairs: Vec<_> = pairs.cloned().collect();
        let plan = self.plan();
        let report = explore_schedules(&machine, &pairs, &self.schedules, &plan, &|_| ())?;
        let ScheduleReport { pairs, schedules, pruned, distinct, explored, wrong, .. } = report;
        let mut result = SoakResult::default();
        result.figures.extend([pairs, schedules, pruned, distinct]);
        result.figures.extend(figures(&explored));
        for case in wrong {
            let alone = case.explore(&plan)?;
            let Some(kind) = kind_of(&alone) else { continue };
            let (operations, preemptions) = (case.operations(), case.schedule.points.len());
            let finding = SoakFinding {
                kind: kind.into(),
                // A preemption is worth less than an operation.
                size: 100 * operations as u64 + preemptions as u64,
                what: alone.findings.first().cloned().unwrap_or_default(),
                command: Some(case.command()),
            };
            keep(&mut result.findings, finding);
        }
        if let Some(kind) = kind_of(&explored).filter(|_| result.findings.is_empty()) {
            // It shows only where the other schedules were before.
            let what = explored.findings.first().cloned().unwrap_or_default();
            let finding = SoakFinding { kind: kind.into(), size: u64::MAX, what, command: None };
            result.findings.push(finding);
        }
        Ok(result)
    }
}
