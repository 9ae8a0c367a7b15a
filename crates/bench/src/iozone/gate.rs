//! The start of a test: children report ready, the parent lets them go.

use steadfast_runtime::{Condvar, Mutex};

struct State {
    ready: usize,
    /// Children that may go: all below this number.
    begun: usize,
    /// Somebody could not get ready; nobody goes.
    broken: bool,
}

/// Where children wait for each other.
pub(super) struct Gate {
    children: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    pub(super) fn new(children: usize) -> Gate {
        let state = Mutex::new(State { ready: 0, begun: 0, broken: false });
        Gate { children, state, changed: Condvar::new() }
    }

    /// A child is ready and waits for its start; false if there will be none.
    pub(super) fn wait_for_start(&self, child: usize) -> bool {
        let mut state = self.state.lock();
        state.ready += 1;
        self.changed.notify_all();
        let state = self.changed.wait_while(state, |s| s.begun <= child && !s.broken);
        !state.broken
    }

    /// A child could not get ready.
    pub(super) fn give_up(&self) {
        self.state.lock().broken = true;
        self.changed.notify_all();
    }

    /// The parent waits until all are ready; false if somebody gave up.
    pub(super) fn wait_until_ready(&self) -> bool {
        let state = self.state.lock();
        let state = self.changed.wait_while(state, |s| s.ready < self.children && !s.broken);
        !state.broken
    }

    /// Lets the children up to and including `child` go.
    pub(super) fn begin(&self, child: usize) {
        self.state.lock().begun = child + 1;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use steadfast_runtime::{Sim, spawn};

    #[test]
    fn nobody_goes_if_one_gives_up() {
        let went = Sim::new(0).run(|| {
            let gate = Arc::new(Gate::new(2));
            let (a, b) = (Arc::clone(&gate), Arc::clone(&gate));
            let waits = spawn("waits", move || a.wait_for_start(0));
            let fails = spawn("fails", move || b.give_up());
            let all = gate.wait_until_ready();
            fails.join().unwrap();
            (all, waits.join().unwrap())
        });
        assert_eq!(went, Ok((false, false)));
    }

    #[test]
    fn children_go_one_by_one() {
        let order = Sim::new(0).run(|| {
            let gate = Arc::new(Gate::new(3));
            let order = Arc::new(Mutex::new(Vec::new()));
            let tasks: Vec<_> = (0..3)
                .map(|i| {
                    let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
                    spawn("child", move || {
                        assert!(gate.wait_for_start(i));
                        order.lock().push(i);
                    })
                })
                .collect();
            assert!(gate.wait_until_ready());
            (0..3).for_each(|i| gate.begin(i));
            tasks.into_iter().for_each(|t| t.join().unwrap());
            order.lock().len()
        });
        assert_eq!(order, Ok(3));
    }
}
