//! A recorded run, explored: the states of its disk, and its calls alone. With a budget those first
//! that are most likely to show something.

use anyhow::{Result, anyhow};
use steadfast_crash::explore::Decisive;
use steadfast_crash::persistence::Model;
use steadfast_crash::program::explore::{Exploration, ExplorationReport, NotExplored};
use steadfast_crash::program::exposure::{ExposureSummary, exposure, summary};
use steadfast_crash::states::Choice;

use super::budget::{Budget, Spending};
use super::failures::not_judged;
use super::models::{self, ModelPlan, ModelReports};
use crate::terminal::Progress;

/// Recoveries that are spent to find the writes that matter.
pub const SHRINK_RECOVERIES: u32 = 200;
/// The share of a budget that models may take; what they leave is for the states.
const MODELS_SHARE: f64 = 0.5;

/// What to explore.
pub struct Explorer<'a> {
    /// The states.
    pub exploration: &'a Exploration<'a>,
    /// Which they are.
    pub choice: Choice,
    /// The models that were asked for.
    pub models: &'a [Model],
    /// How long.
    pub budget: Option<&'a Budget>,
    /// Whether nobody has asked to stop.
    pub go_on: &'a (dyn Fn() -> bool + Sync),
    /// Shows how far it is.
    pub bar: &'a Progress,
}

/// What came of it.
pub struct ExplorationOutcome {
    /// Of the states; with what failed of the models.
    pub outcome: ExplorationReport,
    /// So many of its troubles are of the states.
    pub states_troubles: usize,
    /// Of the calls alone.
    pub by_calls: Option<ModelReports>,
    /// Which writes matter, of the first finding.
    pub decisive: Option<Decisive>,
    /// What the cuts take at the worst, where that is known.
    pub exposed: Option<ExposureSummary>,
    /// Somebody has asked to stop, and not all was done.
    pub stopped: bool,
    /// The budget was used up before all was done.
    pub spent: bool,
}

impl Explorer<'_> {
    /// Explores all of it, or as much as there is time for.
    pub fn explored(&self) -> Result<ExplorationOutcome> {
        let spending = self.budget.map(Budget::begin);
        let within = |share: f64| {
            move || (self.go_on)() && spending.is_none_or(|spending| spending.share() < share)
        };
        let go_on = within(1.0);
        let (mut outcome, decisive, by_calls);
        if spending.is_some() {
            by_calls = self.by_calls(true, &within(MODELS_SHARE))?;
            outcome = self.states(spending, &go_on)?;
            decisive = self.decisive(&outcome, &go_on);
        } else {
            outcome = self.states(spending, &go_on)?;
            decisive = self.decisive(&outcome, &go_on);
            by_calls = self.by_calls(false, &go_on)?;
        }
        let states_troubles = outcome.troubles.len();
        let reports = by_calls.iter().flat_map(|of| &of.reports);
        outcome.troubles.extend(reports.flat_map(|(_, report)| report.troubles.iter().cloned()));
        self.bar.set(1.0, "what each cut takes at the worst");
        let Exploration { run, system, .. } = *self.exploration;
        let exposed = if go_on() { exposure(run, system, self.choice, &go_on) } else { None };
        // The signal may have come as late as this.
        let stopped = !(self.go_on)();
        let spent = spending.is_some() && !go_on();
        let exposed = exposed.filter(|_| !stopped).and_then(|exposed| summary(&exposed));
        Ok(ExplorationOutcome {
            outcome,
            states_troubles,
            by_calls,
            decisive,
            exposed,
            stopped,
            spent,
        })
    }

    fn states(
        &self,
        spending: Option<Spending>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<ExplorationReport> {
        let progress = |cuts: u64, all: u64, states: u64| {
            match spending {
                Some(spending) => self.bar.set(spending.share(), &format!("{states} states")),
                None => {
                    let share = cuts as f64 / all.max(1) as f64;
                    self.bar.set(share, &format!("cut {cuts} of {all}, {states} states"));
                }
            }
            go_on()
        };
        let outcome = match spending {
            Some(_) => self.exploration.explore_by_value(&progress),
            None => self.exploration.explore(&progress),
        };
        outcome.map_err(|e| not_judged(anyhow!(e)))
    }

    fn decisive(&self, outcome: &ExplorationReport, go_on: &dyn Fn() -> bool) -> Option<Decisive> {
        if outcome.findings.is_empty() || !go_on() {
            return None;
        }
        self.bar.set(1.0, "looking for the writes that matter");
        decisive(self.exploration, outcome, go_on)
    }

    /// Nobody sees the calls to the kernel's file systems: there are none.
    fn by_calls(
        &self,
        by_value: bool,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<ModelReports>> {
        let Exploration { run, judge, workers, system, .. } = *self.exploration;
        if self.models.is_empty() || run.calls.is_empty() || !(self.go_on)() {
            return Ok(None);
        }
        let base = self.exploration.base().map_err(|e| not_judged(anyhow!(e)))?;
        let others = system.file_systems().len() == 1;
        let plan = ModelPlan { seed: self.choice.seed, workers, by_value, others };
        Ok(Some(models::explore(self.models, (run, &base), judge, plan, &|share| {
            self.bar.set(share, "the calls alone");
            go_on()
        })))
    }
}

/// The writes that matter of the first finding.
pub fn decisive(
    exploration: &Exploration<'_>,
    outcome: &ExplorationReport,
    go_on: &dyn Fn() -> bool,
) -> Option<Decisive> {
    let state = exploration.state(outcome.findings.first()?.state)?;
    let base = exploration.base().ok()?;
    exploration.shrink(&state, &base, SHRINK_RECOVERIES, go_on).ok()
}

impl ExplorationOutcome {
    /// What was not explored, in words: of what, and how much of it.
    pub fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        if let Some(not) = self.outcome.not_explored {
            left.push(format!("states of the recorded disk: {}", in_words(not, self.outcome.cuts)));
        }
        for (model, report) in self.by_calls.iter().flat_map(|of| &of.reports) {
            if let Some(not) = report.not_explored {
                let what = in_words(not, report.cuts);
                left.push(format!("the calls by {}: {what}", model.in_words()));
            }
        }
        left
    }
}

/// What was left, where `cuts` instants were looked at.
pub fn in_words(not_explored: NotExplored, cuts: u64) -> String {
    let NotExplored { instants, partly, states } = not_explored;
    let all = cuts + instants;
    let of = match (instants, partly) {
        (0, partly) => format!("{partly} of {all} instants in part"),
        (instants, 0) => format!("{instants} of {all} instants"),
        (instants, partly) => format!("{instants} of {all} instants, and {partly} in part"),
    };
    states.map_or(of.clone(), |states| format!("{of} ({states} states)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_counted() {
        let left =
            |instants, partly, states| in_words(NotExplored { instants, partly, states }, 50);
        assert_eq!(left(0, 3, Some(9)), "3 of 50 instants in part (9 states)");
        assert_eq!(left(10, 0, None), "10 of 60 instants");
        assert_eq!(left(10, 4, None), "10 of 60 instants, and 4 in part");
    }
}
