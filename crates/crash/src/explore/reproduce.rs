//! One crash state of a plan, reproduced by its number, with all that is recorded of it.

use std::sync::Arc;

use super::{Checks, CutSource, OtherJudges, Plan, System};
use crate::e2fsck::E2fsck;
use crate::figures::StateFigures;
use crate::judge::Judge;
use crate::program::{Looks, NoTree, ProgramRun, Tree, recover};
use crate::states::{State, States};

/// A crash state that was reproduced.
pub struct ReproducedState {
    /// The recorded run and its calls.
    pub run: ProgramRun,
    /// What was in doubt, what survived, and what the devices hold.
    pub state: State,
    /// The files before the run.
    pub before: Result<Tree, NoTree>,
    /// The files after the recovery.
    pub after: Result<Tree, NoTree>,
    /// The verdict: the same as in the exploration, with e2fsck's where it is installed.
    pub cut: StateFigures,
}

/// Reproduces the plan's state `number`; `None` if the plan has no such state.
pub fn reproduce(
    system: &dyn System,
    recorded: CutSource,
    plan: &Plan,
    number: u64,
) -> Option<ReproducedState> {
    let state = States::of(&recorded, plan.choice()).find(|state| state.number == number)?;
    let calls = recorded.judge.calls();
    let looks = Arc::new(Looks::judging(&recorded.judge));
    let judge: Arc<dyn Judge> = Arc::clone(&looks) as Arc<dyn Judge>;
    let recorded = CutSource { judge, ..recorded };
    let others = OtherJudges { e2fsck: E2fsck::find(), kernel: None };
    let trial = others.trial((system, &recorded.judge), plan, state.cut, Checks::E2FSCK);
    let cut = trial.run(state.contents.clone(), state.choices.clone()).0;
    let refused = || Err(NoTree::Refused("it could not be mounted".into()));
    let after = looks.take().map_or_else(refused, |tree| tree.map_err(NoTree::from));
    let before = recover(system, recorded.bases.clone());
    let before = before.map_err(|e| NoTree::Refused(e.to_string())).and_then(|found| found.tree);
    let CutSource { bases, recording, .. } = recorded;
    let cut = StateFigures { number, place: state.place, ..cut };
    let run = ProgramRun::new(Default::default(), bases, recording, Vec::new(), calls);
    Some(ReproducedState { run, state, before, after, cut })
}
