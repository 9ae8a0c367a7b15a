//! A device whose requests can be held, so that something else happens in the middle of them.

use std::sync::Arc;

use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request};
use steadfast_runtime::{Condvar, Mutex, spawn};

type Which = Box<dyn FnMut(&Request) -> bool + Send>;

#[derive(Default)]
struct State {
    which: Option<Which>,
    held: usize,
}

/// Passes requests on, except those that it is to hold, until it is opened.
#[derive(Clone)]
pub struct Gate {
    next: Arc<dyn BlockDevice>,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Gate {
    pub fn new(next: Arc<dyn BlockDevice>) -> Gate {
        Gate { next, state: Arc::new((Mutex::new(State::default()), Condvar::new())) }
    }

    /// Holds requests of which this is true.
    pub fn shut(&self, which: impl FnMut(&Request) -> bool + Send + 'static) {
        self.state.0.lock().which = Some(Box::new(which));
    }

    /// Lets all go.
    pub fn open(&self) {
        let mut state = self.state.0.lock();
        state.which = None;
        state.held = 0;
        self.state.1.notify_all();
    }

    /// Waits until a request is held.
    pub fn wait(&self) {
        let mut state = self.state.0.lock();
        while state.held == 0 {
            state = self.state.1.wait(state);
        }
    }
}

impl BlockDevice for Gate {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        {
            let mut state = self.state.0.lock();
            if !state.which.as_mut().is_some_and(|which| which(&request)) {
                drop(state);
                return self.next.submit(request);
            }
            state.held += 1;
            self.state.1.notify_all();
        }
        let (completer, completion) = Completion::pending();
        let gate = self.clone();
        spawn("held", move || {
            let mut state = gate.state.0.lock();
            while state.held > 0 {
                state = gate.state.1.wait(state);
            }
            drop(state);
            completer.complete(gate.next.submit(request).wait());
        });
        completion
    }
}

/// Whether it is a flush.
pub fn is_flush(request: &Request) -> bool {
    matches!(request, Request::Flush)
}

/// Whether a request writes into this range.
pub fn writes(range: std::ops::Range<u64>) -> impl FnMut(&Request) -> bool + Send {
    move |request| match request {
        Request::Write { offset, .. } => range.contains(offset),
        _ => false,
    }
}
