//! The number of the call on whose behalf a task works.
//!
//! A workload numbers its calls so that a recorder far below can recognise them; the code in
//! between is not involved. A task that was started by another component, such as write-back or a
//! commit timer, works on behalf of no call.

use std::cell::Cell;

use crate::sim;

thread_local! {
    static CALL: Cell<u64> = const { Cell::new(0) };
}

/// The task is in a call as long as this exists.
#[must_use = "the call ends when this is dropped"]
#[derive(Debug)]
pub struct InCall {
    before: u64,
}

/// Records that the task works for call `number`, until the returned value is dropped.
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
