//! The answer to a request, now or later.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_runtime::{Condvar, Mutex, spawn};

use crate::{BlockError, Result};

type Hook = Box<dyn FnOnce(&Result<Bytes>) + Send>;

#[derive(Default)]
struct State {
    result: Option<Result<Bytes>>,
    hooks: Vec<Hook>,
}

struct CompletionCore {
    state: Mutex<State>,
    done: Condvar,
}

/// The answer to one request: bytes for a read, empty otherwise. Clones share the answer.
///
/// Dropping it does not cancel the request.
#[derive(Clone)]
pub struct Completion(Arc<CompletionCore>);

/// The device's end of a [`Completion`]. Dropping it unanswered answers [`BlockError::Gone`].
pub struct Completer {
    shared: Option<Arc<CompletionCore>>,
}

impl Completion {
    /// An answer that is already there.
    pub fn ready(result: Result<Bytes>) -> Self {
        let state = State { result: Some(result), hooks: Vec::new() };
        Completion(Arc::new(CompletionCore { state: Mutex::new(state), done: Condvar::new() }))
    }

    /// An answer that comes later through the [`Completer`].
    pub fn pending() -> (Completer, Completion) {
        let shared =
            Arc::new(CompletionCore { state: Mutex::new(State::default()), done: Condvar::new() });
        (Completer { shared: Some(Arc::clone(&shared)) }, Completion(shared))
    }

    /// What `body` answers on a task of its own: for a request that has to wait for others.
    pub fn on_task(name: &str, body: impl FnOnce() -> Result<Bytes> + Send + 'static) -> Self {
        let (completer, completion) = Completion::pending();
        spawn(name, move || completer.complete(body()));
        completion
    }

    /// Another answer made from this one when it comes; `change` must not wait.
    #[must_use]
    pub fn map(
        &self,
        change: impl FnOnce(Result<Bytes>) -> Result<Bytes> + Send + 'static,
    ) -> Completion {
        let (completer, completion) = Completion::pending();
        self.on_done(move |answer| completer.complete(change(answer.clone())));
        completion
    }

    /// Waits for the answer.
    pub fn wait(&self) -> Result<Bytes> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(result) = &state.result {
                return result.clone();
            }
            state = self.0.done.wait(state);
        }
    }

    /// Whether the answer is there.
    pub fn is_done(&self) -> bool {
        self.0.state.lock().result.is_some()
    }

    /// Calls `hook` when the answer comes, on the task that brings it, before any waiter
    /// continues; at once if it is there. Hooks run in the order given and must not wait.
    pub fn on_done(&self, hook: impl FnOnce(&Result<Bytes>) + Send + 'static) {
        let mut state = self.0.state.lock();
        match state.result.clone() {
            None => state.hooks.push(Box::new(hook)),
            Some(result) => {
                drop(state);
                hook(&result);
            }
        }
    }

    /// Waits for all; the first error in the given order, if any. All are waited for even so.
    pub fn wait_all<'a>(all: impl IntoIterator<Item = &'a Completion>) -> Result<()> {
        let mut outcome = Ok(());
        for c in all {
            let r = c.wait().map(drop);
            outcome = outcome.and(r);
        }
        outcome
    }
}

impl Completer {
    /// Gives the answer: runs the hooks, then lets the waiters go on.
    pub fn complete(mut self, result: Result<Bytes>) {
        if let Some(shared) = self.shared.take() {
            answer(&shared, result);
        }
    }
}

fn answer(shared: &CompletionCore, result: Result<Bytes>) {
    loop {
        let mut state = shared.state.lock();
        let hooks = std::mem::take(&mut state.hooks);
        if hooks.is_empty() {
            state.result = Some(result);
            break;
        }
        drop(state);
        hooks.into_iter().for_each(|hook| hook(&result));
    }
    shared.done.notify_all();
}

impl Drop for Completer {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            let (device, reason) = ("device".into(), "it dropped the request unanswered".into());
            answer(&shared, Err(BlockError::Gone { device, reason }));
        }
    }
}

impl std::fmt::Debug for Completion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Completion(done: {})", self.is_done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use steadfast_runtime::{Sim, now, sleep, spawn};

    #[test]
    fn hooks_run_before_waiters() {
        let order = Sim::new(0).run(|| {
            let log = Arc::new(Mutex::new(Vec::new()));
            let (completer, completion) = Completion::pending();
            let (c2, log2) = (completion.clone(), log.clone());
            let waiter = spawn("waiter", move || {
                c2.wait().unwrap();
                log2.lock().push(("waiter", now().0));
            });
            let log3 = log.clone();
            completion.on_done(move |_| log3.lock().push(("hook", now().0)));
            sleep(Duration::from_nanos(5));
            completer.complete(Ok(Bytes::new()));
            waiter.join().unwrap();
            std::mem::take(&mut *log.lock())
        });
        assert_eq!(order, Ok(vec![("hook", 5), ("waiter", 5)]));
    }

    #[test]
    fn a_dropped_completer_is_an_error() {
        let (completer, completion) = Completion::pending();
        drop(completer);
        assert!(matches!(completion.wait(), Err(BlockError::Gone { .. })));
    }
}
