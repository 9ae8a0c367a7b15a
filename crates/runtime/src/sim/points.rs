//! Points of the simulation at which the running task may be preempted.

use std::cmp::Reverse;

use super::{Core, PREEMPTING, Waiter, sleep_until, trace, with_current};
use crate::preempt::{PREEMPTION_TIME, Preemption, PreemptionPoint};

impl Core {
    /// What there is to know of the point that the running task passes.
    fn point(&self, is_lock: bool) -> PreemptionPoint {
        let (running, at) = (self.running.get(), self.now());
        let task = self.tasks.borrow().get(&running).map_or_else(String::new, |t| t.name.clone());
        PreemptionPoint {
            task,
            at,
            is_lock,
            alone: !self.others_run_until((at + PREEMPTION_TIME).0),
            preempted: false,
        }
    }

    /// Whether a task other than the running one can take a step up to that instant, if the running
    /// one takes none.
    fn others_run_until(&self, limit: u64) -> bool {
        let due = |Reverse((at, _, task, epoch)): &Reverse<super::TimerEntry>| {
            *at <= limit && self.is_waiting(Waiter { task: *task, epoch: *epoch })
        };
        !self.ready.borrow().is_empty() || self.timers.borrow().iter().any(due)
    }
}

/// The simulation goes by this schedule of preemptions from now on.
pub(crate) fn set_preemption(preemption: Option<Preemption>) {
    with_current(|core| {
        PREEMPTING.set(preemption.is_some());
        *core.preemption.borrow_mut() = preemption;
    });
}

/// A point at which the running task may be preempted.
#[inline]
pub(crate) fn pass_point(is_lock: bool) {
    if PREEMPTING.get() {
        pass_point_in_turn(is_lock);
    }
}

#[cold]
fn pass_point_in_turn(is_lock: bool) {
    let away = with_current(|core| {
        // Destructors at the end of a simulation must not wait.
        let passes =
            |p: &Preemption| !core.unwinding.get() && p.pass(is_lock, || core.point(is_lock));
        let preempted = core.preemption.borrow().as_ref().is_some_and(passes);
        preempted.then(|| core.now() + PREEMPTION_TIME)
    });
    if let Some(until) = away.flatten() {
        trace(|| "preempted".to_owned());
        sleep_until(until);
    }
}
