//! Makes a failing case small: few operations, and few writes that make the difference.
//!
//! First the operations: those that began after the cut go, then parts of what is left as long as
//! some cut of the shorter run is still wrong (delta debugging). Then, at one such cut, the writes:
//! of everything that was in doubt, the fewest units that must be lost while all the rest is
//! there, or the fewest that must be there while all the rest is lost, whichever are fewer.
//!
//! Everything is drawn from the seeds, so a case that was found once is found again.

use std::fmt;
use std::sync::Arc;

use steadfast_crash::delta::minimise;
use steadfast_crash::e2fsck::E2fsck;
use steadfast_crash::explore::{
    Checks, CutSource, Decisive, OtherJudges, Plan, RebootTarget, System, first_wrong,
};
use steadfast_crash::figures::StateFigures;
use steadfast_crash::states::{State, Unit};
use steadfast_crash::{CrashError, Result};

use crate::mixed::{MixedMachine, Script};

/// A failing case made small.
#[derive(Debug, Clone)]
pub struct MinimalCase {
    /// How many operations the run had.
    pub operations_before: usize,
    /// Those that are left.
    pub script: Script,
    /// The cut, with what it took.
    pub cut: StateFigures,
    /// The writes that make the difference.
    pub decisive: Decisive,
    /// Runs that were tried.
    pub tries: u32,
}

/// How much to try.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Runs that are recorded and cut.
    pub runs: u32,
    /// Recoveries of one cut.
    pub recoveries: u32,
}

/// Makes a failure of the mixed workload small; `None` if the plan's cuts of the run are not
/// `wrong`.
///
/// # Errors
/// If the run itself fails, in words.
pub fn shrink(
    machine: &MixedMachine,
    (seed, script): (u64, &Script),
    plan: &Plan,
    wrong: &dyn Fn(&StateFigures) -> bool,
    effort: Effort,
) -> Result<Option<MinimalCase>> {
    let shared: Arc<dyn RebootTarget> = Arc::new(*machine);
    let recorded = machine.record_script(seed, script)?;
    let Some((cut, _)) = first_wrong(&shared, &recorded, plan, wrong) else { return Ok(None) };
    // A run that cannot be recorded is no smaller case of this.
    let failing = |script: &Script| {
        let recorded = machine.record_script(seed, script).ok()?;
        let (cut, state) = first_wrong(&shared, &recorded, plan, wrong)?;
        Some((recorded, cut, state))
    };
    let begun = script.before(&recorded.recording, cut.tick);
    let mut tries = effort.runs;
    let start = if failing(&begun).is_some() { begun } else { script.clone() };
    let chosen = |places: &[(usize, usize)]| start.only(|task, at| places.contains(&(task, at)));
    let places = minimise(&start.places(), &mut tries, |part| failing(&chosen(part)).is_some());
    let (operations_before, script) = (script.len(), chosen(&places));
    let Some((recorded, cut, state)) = failing(&script) else {
        return Err(CrashError::Run("the shrunk run does not fail again".into()));
    };
    // As dear as a recovery: only if nothing else saw what was wrong.
    let by_e2fsck = !wrong(&StateFigures { e2fsck: None, ..cut.clone() });
    let e2fsck = by_e2fsck.then(E2fsck::find).flatten();
    let run: (&dyn System, _) = (&shared, &recorded);
    let decisive = decisive_of(run, plan, &state, effort.recoveries, e2fsck, wrong);
    let tries = effort.runs - tries;
    Ok(Some(MinimalCase { operations_before, script, cut, decisive, tries }))
}

/// The units in doubt that make the difference to a state of `recorded` that is `wrong`, found with
/// so many recoveries at most. Of each e2fsck is asked, if it is given.
pub(crate) fn decisive_of(
    (system, recorded): (&dyn System, &CutSource),
    plan: &Plan,
    state: &State,
    recoveries: u32,
    e2fsck: Option<E2fsck>,
    wrong: &dyn Fn(&StateFigures) -> bool,
) -> Decisive {
    let others = OtherJudges { e2fsck, kernel: None };
    let trial = others.trial((system, &recorded.judge), plan, state.cut, Checks::E2FSCK);
    let run = (&recorded.bases[..], &recorded.recording);
    // As it was found: recovery draws the same.
    Decisive::find(run, state, recoveries, &mut |contents| {
        wrong(&trial.run(contents, state.choices.clone()).0)
    })
}

impl fmt::Display for MinimalCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MinimalCase { operations_before, script, cut, decisive, tries } = self;
        let (number, tick) = (cut.number, cut.tick);
        writeln!(
            f,
            "{} of {operations_before} operations, cut {number} at tick {tick} ({tries} runs):",
            script.len()
        )?;
        script.lines().iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        write!(f, "  {decisive}:")?;
        decisive.units.iter().try_for_each(|Unit { device, submitted, offset }| {
            write!(f, " [device {device}, byte {offset}, submitted at tick {submitted}]")
        })
    }
}
