//! Which schedules need not be run, because others leave the same.
//!
//! A schedule is left out before it is run if what is known of the runs that were made shows that
//! the preemption which it adds changes nothing that a device or the judge sees:
//!
//! 1. *Alone*: nobody else can take a step until the preempted task comes back
//!    ([`PreemptionPoint::alone`]). It does the same, later.
//! 2. *Handed back*: the preemption follows another one of another task, at the same instant, and
//!    is at the first point that this task comes to at all. What an operation does before its first
//!    point changes nothing. So the first task comes back at once, as without both preemptions.
//! 3. *The other begins*: of two tasks the one that begins is preempted at its first point, and
//!    when the other one begins it has ended before this one gets there. So it is a run that the
//!    other begins. (If the other one waits before it ends, it is not: this task is away for
//!    longer.)
//!
//! In 2 and 3 an operation has started earlier, as the judge sees it, than in the run that stands
//! for it: of operations that have started less is required ([`super::distinct`]).
//! Dates move in steps, and a time shift of a few milliseconds reaches no timer of the file system
//! (the shortest is of seconds), which is why *later* is *the same*.

use steadfast_runtime::PreemptionPoint;

use super::Schedule;
use crate::mixed::run::folder_name;

/// Which schedules to leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prune {
    /// None: each is run.
    Nothing,
    /// Those that leave nothing new, by the rules of this module.
    Equal,
    /// The control: rule 2 for every preemption that follows one of another task. It loses
    /// schedules that matter.
    TooMuch,
}

/// Of a run without preemptions of two tasks: whether the task that begins has ended when the other
/// one comes to its first point.
pub(super) fn begins_and_ends(passed: &[PreemptionPoint], begins: usize) -> bool {
    let other = folder_name(1 - begins.min(1));
    passed.iter().find(|p| p.task == other).is_some_and(|p| p.alone)
}

impl Prune {
    /// Whether a run that is preempted at point `next` too need not be made. `passed` is of the run
    /// of `schedule`; `other_ends`: if the other task begins, it [ends](begins_and_ends) before.
    pub(super) fn leaves_out(
        self,
        passed: &[PreemptionPoint],
        schedule: &Schedule,
        next: usize,
        other_ends: bool,
    ) -> bool {
        if self == Prune::Nothing {
            return false;
        }
        let point = &passed[next];
        let is_client = |p: &PreemptionPoint| p.task.starts_with(CLIENTS);
        if point.alone {
            return true;
        }
        let of_other = |before: &PreemptionPoint| {
            before.preempted && is_client(before) && before.task != point.task && is_client(point)
        };
        let is_new = passed[..next].iter().all(|p| p.task != point.task);
        let handed_back = match (self, next.checked_sub(1).map(|before| &passed[before])) {
            (Prune::TooMuch, _) => passed[..next].iter().any(of_other),
            (_, before) => is_new && before.is_some_and(|b| of_other(b) && b.at == point.at),
        };
        if handed_back {
            return true;
        }
        other_ends && next == 0 && point.task == folder_name(schedule.begins)
    }
}

/// What the names of tasks that carry out sequences begin with.
const CLIENTS: &str = "task";
