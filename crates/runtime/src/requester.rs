//! Who outside this process has asked for what a thread does.
//!
//! A front end that hands on requests of other processes says whose they are; whoever watches the
//! calls far below can then tell which of them are parts of one. In real time only: nothing outside
//! asks a simulation.

use std::cell::Cell;

/// The other side of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester {
    /// The thread that waits for the answer, as this process numbers it; 0: nobody waits.
    pub thread: u32,
    /// The kernel writes back what was changed in its memory: no call of a program's.
    pub write_back: bool,
}

thread_local! {
    static REQUESTER: Cell<Option<Requester>> = const { Cell::new(None) };
}

/// The thread works for an asker as long as this lives.
#[must_use = "the request ends when this is dropped"]
#[derive(Debug)]
pub struct OnBehalfOf {
    before: Option<Requester>,
}

/// Says that this thread now works for `requester`, until the returned value is dropped.
pub fn on_behalf_of(requester: Requester) -> OnBehalfOf {
    OnBehalfOf { before: REQUESTER.replace(Some(requester)) }
}

/// Whom this thread works for, where that was said.
pub fn requester() -> Option<Requester> {
    REQUESTER.get()
}

impl Drop for OnBehalfOf {
    fn drop(&mut self) {
        REQUESTER.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asker_is_known_until_the_answer() {
        let one = Requester { thread: 1, write_back: false };
        let asked = on_behalf_of(one);
        {
            let two = Requester { thread: 2, write_back: true };
            let _asked = on_behalf_of(two);
            assert_eq!(requester(), Some(two));
        }
        assert_eq!(requester(), Some(one));
        assert_eq!(std::thread::spawn(requester).join().unwrap(), None);
        drop(asked);
        assert_eq!(requester(), None);
    }
}
