//! The requester of a thread's work: a process outside of this one.
//!
//! A front end that forwards requests of other processes records the requester; a recorder of calls
//! below can then find out which of them belong together. In real time only: a simulation has no
//! outside requesters.

use std::cell::Cell;

/// The sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester {
    /// The thread that waits for the answer, as numbered by this process; 0: none.
    pub thread: u32,
    /// Write-back by the kernel: not a call of a program.
    pub write_back: bool,
}

thread_local! {
    static REQUESTER: Cell<Option<Requester>> = const { Cell::new(None) };
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

/// The thread works on behalf of a requester as long as this exists.
#[must_use = "the request ends when this is dropped"]
#[derive(Debug)]
pub struct OnBehalfOf {
    before: Option<Requester>,
}

/// Records that this thread works on behalf of `requester`, until the returned value is dropped.
pub fn on_behalf_of(requester: Requester) -> OnBehalfOf {
    REQUESTS.set(REQUESTS.get() + 1);
    OnBehalfOf { before: REQUESTER.replace(Some(requester)) }
}

/// How many requests this thread has worked for: the same number, as long as it is the same one.
pub fn request_number() -> u64 {
    REQUESTS.get()
}

/// The requester of this thread's work, if recorded.
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
