//! Points by time: a task that wakes when the first change after a point is old enough.
//!
//! It sleeps without a timer while nothing has changed, so that an idle simulation can be seen to
//! be idle.

use std::sync::Arc;
use std::time::Duration;

use steadfast_runtime::{Condvar, JoinHandle, Mutex, Nanos, now, spawn};

/// The task, and what it waits for.
pub(crate) struct Timer {
    shared: Arc<TimerSignal>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct TimerSignal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    period: Option<Duration>,
    /// When the first change since the last point was noted.
    changed_at: Option<Nanos>,
    stop: bool,
}

impl Timer {
    pub fn new(period: Option<Duration>) -> Self {
        let state = Mutex::new(State { period, ..State::default() });
        let shared = Arc::new(TimerSignal { state, changed: Condvar::new() });
        Timer { shared, task: Mutex::new(None) }
    }

    /// Starts the task. `make_point` says whether there will be another.
    pub fn start(&self, make_point: impl Fn() -> bool + Send + 'static) {
        let shared = Arc::clone(&self.shared);
        let run = move || while wait(&shared) && make_point() {};
        *self.task.lock() = Some(spawn("transaction points", run));
    }

    pub fn set_period(&self, period: Option<Duration>) {
        self.shared.state.lock().period = period;
        self.shared.changed.notify_all();
    }

    /// Whether a change is to be noted: there is a period, and none has been noted.
    pub fn listens(&self) -> bool {
        let state = self.shared.state.lock();
        state.period.is_some() && state.changed_at.is_none()
    }

    pub fn note(&self) {
        self.shared.state.lock().changed_at.get_or_insert_with(now);
        self.shared.changed.notify_all();
    }

    /// Asks the task to end; does not wait for it.
    pub fn stop(&self) {
        self.shared.state.lock().stop = true;
        self.shared.changed.notify_all();
    }

    /// Ends the task.
    pub fn end(&self) {
        self.stop();
        let task = self.task.lock().take();
        if let Some(task) = task
            && let Err(panicked) = task.join()
        {
            panicked.resume();
        }
    }
}

/// Waits until a point is due; false when the task must end.
fn wait(shared: &TimerSignal) -> bool {
    let mut state = shared.state.lock();
    loop {
        if state.stop {
            return false;
        }
        let due = state.changed_at.and_then(|at| state.period.map(|period| at + period));
        state = match due.map(|at| at.since(now())) {
            None => shared.changed.wait(state),
            Some(left) if left.is_zero() => {
                state.changed_at = None;
                return true;
            }
            Some(left) => shared.changed.wait_timeout(state, left).0,
        };
    }
}
