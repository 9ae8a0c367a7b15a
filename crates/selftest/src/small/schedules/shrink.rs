//! Makes a case that shows something wrong small: the fewest operations, with these the fewest
//! preemptions, then of the first state that is wrong the fewest writes that make the difference.

use std::fmt;
use std::sync::Arc;

use steadfast_crash::Result;
use steadfast_crash::explore::{Decisive, Plan, RebootTarget, SecondCuts, System, first_wrong};
use steadfast_crash::figures::StateFigures;
use steadfast_suite::operation::Operation;

use super::distinct::{Distinct, RunKey};
use super::{Prune, Schedule, ScheduledCase, Schedules, TaskSequences, each_run};
use crate::shrink::decisive_of;
use crate::small::explore::{Explorer, SequenceReport};
use crate::small::explored::Verdict;
use crate::small::machine::{SequenceRun, SmallMachine};
use crate::small::sequence::{Sequence, Start};

/// Recoveries that are spent to find the units that matter.
const TRIES: u32 = 200;

/// A small case.
#[derive(Debug, Clone)]
pub struct ShrunkCase {
    /// The case.
    pub case: ScheduledCase,
    /// The first state that is wrong.
    pub cut: StateFigures,
    /// The writes that make the difference there.
    pub decisive: Decisive,
    /// Schedules that were run to find it.
    pub runs: u64,
}

impl fmt::Display for ShrunkCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShrunkCase { case, cut, decisive, runs } = self;
        let (preemptions, operations) = (case.schedule.points.len(), case.operations());
        writeln!(f, "{operations} operations, {preemptions} preemptions ({runs} runs): {case}")?;
        let words = Verdict::of(cut.clone()).words.join("; ");
        writeln!(f, "cut at tick {}, {decisive}: {words}", cut.tick)?;
        write!(f, "{}", case.command())
    }
}

impl ScheduledCase {
    /// Runs it and cuts it everywhere.
    ///
    /// # Errors
    /// If it cannot be run, in words.
    pub fn explore(&self, plan: &Plan) -> Result<SequenceReport> {
        let machine = SmallMachine::new(self.setup)?;
        let mut explorer = Explorer::new(&machine, plan);
        let (run, _) = self.record(&machine)?;
        explorer.sequences(&self.to_string(), &self.tasks, run);
        Ok(explorer.figures)
    }

    /// The smallest case that shows something wrong too; `None` if this one does not.
    ///
    /// # Errors
    /// If it cannot be run, in words.
    pub fn shrink(&self, plan: &Plan) -> Result<Option<ShrunkCase>> {
        let machine = SmallMachine::new(self.setup)?;
        let plan = Plan { e2fsck_every: 0, second: SecondCuts::NONE, ..*plan };
        let mut search = Search { machine: &machine, plan, runs: 0 };
        let mut best = self.clone();
        if let Some(fewer) = search.fewest_preemptions(&best, best.schedule.points.len()) {
            best = fewer;
        }
        // Fewer operations may need more preemptions, but never more than there were.
        while let Some(smaller) = search.smaller(&best, self.schedule.points.len()) {
            best = smaller;
        }
        let runs = search.runs;
        let (SequenceRun { recorded, begin, .. }, _) = best.record(&machine)?;
        let system: Arc<dyn RebootTarget> = Arc::new(machine);
        // Before the first cut what is there at the start was not made yet, as it seems.
        let wrong =
            |cut: &StateFigures| cut.tick >= begin && !Verdict::of(cut.clone()).words.is_empty();
        let Some((cut, state)) = first_wrong(&system, &recorded, &plan, &wrong) else {
            return Ok(None);
        };
        let run: (&dyn System, _) = (&system, &recorded);
        let decisive = decisive_of(run, &plan, &state, TRIES, None, &wrong);
        Ok(Some(ShrunkCase { case: best, cut, decisive, runs }))
    }
}

struct Search<'a> {
    machine: &'a SmallMachine,
    plan: Plan,
    runs: u64,
}

impl Search<'_> {
    /// The same with an operation taken out, or with a task that does nothing but sync, and at most
    /// so many preemptions.
    fn smaller(&mut self, case: &ScheduledCase, preemptions: usize) -> Option<ScheduledCase> {
        if case.locks {
            // The numbers of points would be others, and there are too many to try them all.
            return None;
        }
        let tried = |task: usize, start: Start, operations: Vec<Operation>| {
            let mut smaller = case.clone();
            smaller.tasks[task] = Sequence { start, operations };
            smaller
        };
        let mut all = Vec::new();
        for (task, sequence) in case.tasks.iter().enumerate() {
            if sequence.len() > 1 {
                all.push(tried(task, sequence.start, vec![Operation::Sync]));
            }
            for index in 0..sequence.len() {
                let mut operations = sequence.operations.clone();
                operations.remove(index);
                // What an operation made may be there from the start.
                for start in [sequence.start, Start::Populated] {
                    all.push(tried(task, start, operations.clone()));
                }
            }
        }
        all.iter().find_map(|smaller| self.fewest_preemptions(smaller, preemptions + 1))
    }

    /// A schedule of the case's tasks that shows something wrong, with the fewest preemptions and
    /// less than so many.
    fn fewest_preemptions(&mut self, case: &ScheduledCase, below: usize) -> Option<ScheduledCase> {
        (0..below).find_map(|preemptions| match case.locks {
            true => self.of_its_points(case, preemptions),
            false => self.of_all(case, preemptions),
        })
    }

    fn of_all(&mut self, case: &ScheduledCase, preemptions: usize) -> Option<ScheduledCase> {
        let tasks = TaskSequences { number: 0, sequences: case.tasks.clone() };
        let schedules = Schedules { prune: Prune::Equal, ..Schedules::all(preemptions) };
        let mut explorer = Explorer::new(self.machine, &self.plan);
        let (mut found, mut distinct) = (None, Distinct::default());
        let joint = self.machine.setup.points.is_some();
        let counts = each_run(self.machine, &tasks, &schedules, &mut |case, run| {
            // Fewer have been tried.
            let tried = case.schedule.points.len() < preemptions;
            if distinct.insert(RunKey::of(&run.recorded.recording, joint)) && !tried {
                explorer.sequences("", &case.tasks, run);
            }
            found = (explorer.figures.wrong() > 0).then_some(case);
            found.is_none()
        });
        // What cannot be run without an operation that was taken out shows nothing.
        self.runs += counts.map_or(0, |counts| counts.run);
        found
    }

    fn of_its_points(&mut self, case: &ScheduledCase, preemptions: usize) -> Option<ScheduledCase> {
        let all = &case.schedule.points;
        let subsets = (0..1u64 << all.len().min(16))
            .filter(|bits| bits.count_ones() as usize == preemptions)
            .map(|bits| all.iter().zip(0..).filter(move |(_, n)| bits >> n & 1 == 1))
            .map(|points| points.map(|(point, _)| *point).collect());
        let begins = case.schedule.begins;
        let fewer = subsets
            .map(|points| ScheduledCase { schedule: Schedule { begins, points }, ..case.clone() });
        for fewer in fewer {
            self.runs += 1;
            let Ok((run, _)) = fewer.record(self.machine) else { continue };
            let mut explorer = Explorer::new(self.machine, &self.plan);
            explorer.sequences("", &fewer.tasks, run);
            if explorer.figures.wrong() > 0 {
                return Some(fewer);
            }
        }
        None
    }
}
