//! The pipeline of all crash tests: a recorded run is cut, recovers, and is judged.
//!
//! * A *workload* leaves a [`CutSource`] run: what its devices were asked, and the
//!   [`Judge`](crate::judge::Judge) that knows what was done and promised.
//! * A [`Plan`] says which crash states are made of it ([`cuts`](crate::states)), what else fails
//!   when the power goes, and who else judges.
//! * A [`System`] recovers from a state, as the next boot does.
//! * A [`Trial`] is one state's way through all of that; a [`StateFigures`] is what came of it.
//! * [`explore`] makes all states of a plan, and counts ([`Figures`]).
//!
//! docs/crash.md says how a workload and a judge are added.

mod decisive;
pub mod ext4;
mod joined;
mod machine;
mod plan;
pub mod ram;
mod recorded;
mod reproduce;
mod second;
mod stack_machine;
mod system;
mod trial;
mod use_it;

use crate::figures::{Figures, StateFigures, run_number};
use crate::states::{State, States};

pub use crate::states::{ActiveTime, CrashPoints};
pub use decisive::Decisive;
pub use joined::{JoinedMachine, JoinedPart};
pub use machine::{BootedMachine, FsDevices, RebootTarget, structure, structure_on};
pub use plan::{Checks, Plan, SecondCuts};
pub use ram::OnRam;
pub use recorded::CutSource;
pub use reproduce::{ReproducedState, reproduce};
pub use stack_machine::{MountChange, StackMachine};
pub use system::{Boot, BootRecovery, Look, System};
pub use trial::{OtherJudges, Trial, recover_all};

/// Makes the plan's crash states in the order of time, lets the system recover from each, and
/// counts what each takes. `progress` gets after each how many are done.
pub fn explore(
    system: &dyn System,
    recorded: CutSource,
    plan: &Plan,
    progress: &dyn Fn(u64),
) -> Figures {
    let run = run_number(&recorded.recording);
    let mut figures = Figures { run, ..Figures::default() };
    each_cut(system, &recorded, plan, &mut |cut, _| {
        let done = cut.number + 1;
        figures.add(cut);
        progress(done);
        true
    });
    figures
}

/// The first state, in the order of time, that is `wrong`.
pub fn first_wrong(
    system: &dyn System,
    recorded: &CutSource,
    plan: &Plan,
    wrong: &dyn Fn(&StateFigures) -> bool,
) -> Option<(StateFigures, State)> {
    let mut first = None;
    each_cut(system, recorded, plan, &mut |cut, state| {
        if wrong(&cut) {
            first = Some((cut, state.clone()));
        }
        first.is_none()
    });
    first
}

/// Makes the states and lets the system recover from each, until `visit` says that it is enough.
/// Returns how many crash points there were until then.
pub fn each_cut(
    system: &dyn System,
    recorded: &CutSource,
    plan: &Plan,
    visit: &mut dyn FnMut(StateFigures, &State) -> bool,
) -> u64 {
    let others = OtherJudges::of(plan);
    let mut cuts = States::of(recorded, plan.choice());
    for state in cuts.by_ref() {
        let (number, place, moment) = (state.number, state.place, state.cut);
        let checks = plan.checks(number);
        let trial = others.trial((system, &recorded.judge), plan, moment, checks);
        let cut = trial.run(state.contents.clone(), state.choices.clone()).0;
        if !visit(StateFigures { number, place, ..cut }, &state) {
            break;
        }
        let second = trial.second_cuts(&state.contents, state.choices.clone(), checks);
        if !second.into_iter().all(|cut| visit(StateFigures { number, place, ..cut }, &state)) {
            break;
        }
    }
    cuts.cuts()
}
