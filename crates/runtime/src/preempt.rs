//! Preemption in the simulation: a task loses the processor at a point where it does not wait.
//!
//! A simulated task runs until it waits. Races between two steps of a task that does not wait, such
//! as two transactions that should be one, never show then. At a *preemption point*
//! ([`preemption_point`], and each lock on request) a task may be preempted: it is suspended for
//! [`PREEMPTION_TIME`] of virtual time, in which other tasks run, unless they wait for it. The set
//! of these points is the schedule, and part of a run: the same schedule gives the same run. So the
//! schedules of a run can be enumerated (bounded by the number of preemptions, after Musuvathi and
//! Qadeer, "Iterative Context Bounding for Systematic Testing of Multithreaded Programs", PLDI
//! 2007). Each passed point records whether a preemption there can change anything
//! ([`PreemptionPoint`]).

use std::sync::{self, Arc};
use std::time::Duration;

use crate::Nanos;

/// How long a preempted task is suspended: longer than another task's commit takes.
pub const PREEMPTION_TIME: Duration = Duration::from_millis(10);

/// At which points a task is preempted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PreemptionSchedule {
    /// Those, by their numbers, counted from 0.
    At(Vec<u64>),
    /// Each with a probability of one in so many, drawn.
    Drawn { state: u64, one_in: u64 },
}

/// A point that a task passed, or was preempted at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreemptionPoint {
    /// The name of the task, as given at [`spawn`](crate::spawn).
    pub task: String,
    /// When.
    pub at: Nanos,
    /// Whether it is a lock that was about to be taken.
    pub is_lock: bool,
    /// No other task can run within [`PREEMPTION_TIME`] from here, unless this task continues: a
    /// preemption here only delays.
    pub alone: bool,
    /// Whether the task was preempted.
    pub preempted: bool,
}

#[derive(Debug)]
struct PreemptionState {
    schedule: sync::Mutex<PreemptionSchedule>,
    passed: sync::Mutex<Vec<PreemptionPoint>>,
}

/// A schedule of preemptions, active between [`start`](Self::start) and [`stop`](Self::stop).
/// Clones are the same schedule. It is used in one simulation.
///
/// ```
/// use steadfast_runtime::{PREEMPTION_TIME, Preemption, Sim, now, preemption_point};
/// let ran = Sim::new(1).run(|| {
///     let preemption = Preemption::at(&[1]);
///     preemption.start();
///     let begun = now();
///     preemption_point();
///     assert_eq!(now(), begun);
///     preemption_point();
///     assert_eq!(now(), begun + PREEMPTION_TIME);
///     preemption.stop();
///     preemption.points()
/// });
/// assert_eq!(ran, Ok(2));
/// ```
#[derive(Debug, Clone)]
pub struct Preemption {
    inner: Arc<PreemptionState>,
    locks: bool,
}

impl Preemption {
    fn of(schedule: PreemptionSchedule) -> Preemption {
        let inner = PreemptionState {
            schedule: sync::Mutex::new(schedule),
            passed: sync::Mutex::default(),
        };
        Preemption { inner: Arc::new(inner), locks: false }
    }

    /// At these points, by their numbers in the order in which they are passed, from 0.
    pub fn at(points: &[u64]) -> Preemption {
        Preemption::of(PreemptionSchedule::At(points.to_vec()))
    }

    /// At each point with a probability of one in `one_in`, drawn from `seed`.
    pub fn drawn(seed: u64, one_in: u64) -> Preemption {
        Preemption::of(PreemptionSchedule::Drawn { state: seed, one_in: one_in.max(1) })
    }

    /// Taking a lock is a point too.
    #[must_use]
    pub fn with_locks(mut self) -> Preemption {
        self.locks = true;
        self
    }

    /// Activates this schedule in the caller's simulation.
    pub fn start(&self) {
        crate::sim::set_preemption(Some(self.clone()));
    }

    /// Deactivates the schedule.
    pub fn stop(&self) {
        crate::sim::set_preemption(None);
    }

    /// Points that were passed so far.
    pub fn points(&self) -> u64 {
        // OK to unwrap: nothing panics while it has the list.
        self.inner.passed.lock().unwrap().len() as u64
    }

    /// The points that were passed so far, in their order.
    pub fn passed(&self) -> Vec<PreemptionPoint> {
        // OK to unwrap: nothing panics while it has the list.
        self.inner.passed.lock().unwrap().clone()
    }

    /// Passes a point; whether the task is preempted there. `point` has what there is to know
    /// of it.
    pub(crate) fn pass(&self, is_lock: bool, point: impl FnOnce() -> PreemptionPoint) -> bool {
        if is_lock && !self.locks {
            return false;
        }
        // OK to unwrap: nothing panics while it has the list.
        let mut passed = self.inner.passed.lock().unwrap();
        let number = passed.len() as u64;
        // OK to unwrap: nothing panics while it has the schedule.
        let preempted = match &mut *self.inner.schedule.lock().unwrap() {
            PreemptionSchedule::At(points) => points.contains(&number),
            PreemptionSchedule::Drawn { state, one_in } => {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9e37_79b9);
                (*state >> 33).is_multiple_of(*one_in)
            }
        };
        passed.push(PreemptionPoint { preempted, ..point() });
        preempted
    }
}

/// A preemption point: another task may run here, but only in a simulation with a [`Preemption`]
/// for it.
#[inline]
pub fn preemption_point() {
    crate::sim::pass_point(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mutex, Sim, now, spawn};

    /// Two steps of each of two tasks, as they come.
    fn run(preemption: &Preemption) -> Vec<(u8, u8)> {
        let preemption = preemption.clone();
        Sim::new(1)
            .run(move || {
                let order = Arc::new(Mutex::new(Vec::new()));
                preemption.start();
                let tasks = [0u8, 1].map(|task| {
                    let order = Arc::clone(&order);
                    spawn("task", move || {
                        order.lock().push((task, 0));
                        preemption_point();
                        order.lock().push((task, 1));
                    })
                });
                tasks.into_iter().for_each(|task| task.join().unwrap());
                preemption.stop();
                preemption_point();
                order.lock().clone()
            })
            .unwrap()
    }

    #[test]
    fn a_task_that_does_not_wait_is_preempted_where_the_schedule_says() {
        let none = Preemption::at(&[]);
        assert_eq!(run(&none), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(none.points(), 2, "what is passed after the end does not count");
        assert_eq!(run(&Preemption::at(&[0])), [(0, 0), (1, 0), (1, 1), (0, 1)]);
        assert_eq!(run(&Preemption::at(&[1])), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        let locks = Preemption::at(&[0]).with_locks();
        assert_eq!(run(&locks), [(1, 0), (1, 1), (0, 0), (0, 1)], "before the first lock");
        assert_eq!(locks.points(), 6);
    }

    #[test]
    fn a_point_has_whether_another_task_can_take_a_step() {
        let none = Preemption::at(&[]);
        run(&none);
        let alone: Vec<bool> = none.passed().iter().map(|p| p.alone).collect();
        assert_eq!(
            alone,
            [false, false],
            "who waited for the first task goes on when it has ended"
        );
        let first = Preemption::at(&[0]);
        run(&first);
        let passed = first.passed();
        assert!(passed[0].preempted && !passed[1].preempted);
        assert!(!passed[1].alone, "the first task comes back within that time");
        let later = Sim::new(1).run(|| {
            let preemption = Preemption::at(&[]);
            preemption.start();
            spawn("sleeps for longer", || crate::sleep(PREEMPTION_TIME * 2));
            crate::sleep(PREEMPTION_TIME / 2);
            preemption_point();
            crate::sleep(PREEMPTION_TIME);
            preemption_point();
            preemption.passed().iter().map(|p| p.alone).collect::<Vec<_>>()
        });
        assert_eq!(later, Ok(vec![true, false]));
    }

    #[test]
    fn drawn_schedules_are_the_same_for_the_same_seed() {
        let preempted = |seed| {
            let drawn = Preemption::drawn(seed, 4);
            let point = || PreemptionPoint {
                task: String::new(),
                at: now(),
                is_lock: false,
                alone: true,
                preempted: false,
            };
            (0..100).map(|_| drawn.pass(false, point)).collect::<Vec<_>>()
        };
        assert_eq!(preempted(1), preempted(1));
        assert_ne!(preempted(1), preempted(2));
        let count = preempted(1).into_iter().filter(|p| *p).count();
        assert!((10..45).contains(&count), "{count}");
    }

    #[test]
    fn nothing_is_preempted_in_real_time_or_without_a_schedule() {
        preemption_point();
        Sim::new(1).run(|| (preemption_point(), assert_eq!(now().0, 0))).unwrap();
        // The schedule of a simulation that has ended does not outlive it.
        Sim::new(1).run(|| Preemption::drawn(1, 1).start()).unwrap();
        Sim::new(1).run(|| (preemption_point(), assert_eq!(now().0, 0))).unwrap();
    }
}
