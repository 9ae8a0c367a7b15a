//! Who outside this process has asked for what a thread does.
//!
//! A front end that hands on requests of other processes says whose they are; whoever watches the
//! calls far below can then tell which of them are parts of one. In real time only: nothing outside
//! asks a simulation.

use std::cell::Cell;

/// The other side of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// The thread that waits for the answer, as this process numbers it; 0: nobody waits.
    pub thread: u32,
    /// The kernel writes back what was changed in its memory: no call of a program's.
    pub write_back: bool,
}

thread_local! {
    static ASKER: Cell<Option<Asker>> = const { Cell::new(None) };
}

/// The thread works for an asker as long as this lives.
#[must_use = "the request ends when this is dropped"]
#[derive(Debug)]
pub struct AskedBy {
    before: Option<Asker>,
}

/// Says that this thread now works for `asker`, until the returned value is dropped.
pub fn asked_by(asker: Asker) -> AskedBy {
    AskedBy { before: ASKER.replace(Some(asker)) }
}

/// Whom this thread works for, where that was said.
pub fn asker() -> Option<Asker> {
    ASKER.get()
}

impl Drop for AskedBy {
    fn drop(&mut self) {
        ASKER.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asker_is_known_until_the_answer() {
        let one = Asker { thread: 1, write_back: false };
        let asked = asked_by(one);
        {
            let two = Asker { thread: 2, write_back: true };
            let _asked = asked_by(two);
            assert_eq!(asker(), Some(two));
        }
        assert_eq!(asker(), Some(one));
        assert_eq!(std::thread::spawn(asker).join().unwrap(), None);
        drop(asked);
        assert_eq!(asker(), None);
    }
}
