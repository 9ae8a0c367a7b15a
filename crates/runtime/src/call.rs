//! On whose behalf something is done: the number of a call, carried along with its task.
//!
//! Whoever makes calls that are to be recognised far below (a recording of a workload) numbers
//! them; the code between knows nothing of it. A task that somebody else started does its work on
//! nobody's behalf, as a write-back or a commit timer does.

use std::cell::Cell;

use crate::sim;

thread_local! {
    static CALL: Cell<u64> = const { Cell::new(0) };
}

/// The task is in a call as long as this lives.
#[must_use = "the call ends when this is dropped"]
#[derive(Debug)]
pub struct InCall {
    before: u64,
}

/// Says that the task now works for the call `number`, until the returned value is dropped.
pub fn in_call(number: u64) -> InCall {
    InCall { before: replace(number) }
}

/// The call that the task works for; 0 if for none.
pub fn current_call() -> u64 {
    sim::with_current(|core| core.call()).unwrap_or_else(|| CALL.with(Cell::get))
}

fn replace(number: u64) -> u64 {
    sim::with_current(|core| core.replace_call(number))
        .unwrap_or_else(|| CALL.with(|call| call.replace(number)))
}

impl Drop for InCall {
    fn drop(&mut self) {
        replace(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sim, spawn, yield_now};

    fn calls_belong_to_their_task() {
        assert_eq!(current_call(), 0);
        let call = in_call(7);
        let other = spawn("other", || {
            let before = current_call();
            let _call = in_call(8);
            yield_now();
            (before, current_call())
        });
        {
            let _inner = in_call(9);
            yield_now();
            assert_eq!(current_call(), 9);
        }
        assert_eq!(current_call(), 7);
        assert_eq!(other.join().unwrap(), (0, 8));
        drop(call);
        assert_eq!(current_call(), 0);
    }

    #[test]
    fn in_both_worlds() {
        calls_belong_to_their_task();
        Sim::new(1).run(calls_belong_to_their_task).unwrap();
    }
}
