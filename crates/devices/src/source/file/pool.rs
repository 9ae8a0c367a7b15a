//! Threads that do requests, started as they are needed.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use steadfast_runtime::spawn;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job.
    idle: usize,
    threads: usize,
    closed: bool,
}

/// Std locks, not the runtime's: the pool exists in real time only, and a device that was opened
/// there may be dropped inside a simulation, which cannot wait for a thread.
#[derive(Default)]
struct PoolCore {
    state: Mutex<State>,
    more: Condvar,
}

/// At most so many threads. When it is dropped they finish the queued jobs and end.
pub(super) struct ThreadPool {
    name: String,
    threads_max: usize,
    shared: Arc<PoolCore>,
}

impl ThreadPool {
    pub(super) fn new(name: String, threads_max: usize) -> Self {
        ThreadPool { name, threads_max: threads_max.max(1), shared: Arc::default() }
    }

    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs.push_back(Box::new(job));
        // A thread that was woken but has not yet done so still counts as idle.
        if state.jobs.len() <= state.idle || state.threads == self.threads_max {
            drop(state);
            self.shared.more.notify_one();
            return;
        }
        state.threads += 1;
        let name = format!("{} {}", self.name, state.threads);
        drop(state);
        let shared = Arc::clone(&self.shared);
        spawn(name, move || work(&shared));
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.shared.more.notify_all();
    }
}

fn work(shared: &PoolCore) {
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(job) = state.jobs.pop_front() {
            drop(state);
            job();
            state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        } else if state.closed {
            return;
        } else {
            state.idle += 1;
            state = shared.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn jobs_run_side_by_side_and_all_of_them() {
        let pool = ThreadPool::new("test".into(), 3);
        let (tx, rx) = mpsc::channel();
        let gate = Arc::new((Mutex::new(0), Condvar::new()));
        for i in 0..20 {
            let (tx, gate) = (tx.clone(), Arc::clone(&gate));
            pool.run(move || {
                // The first three go on only when all three are inside.
                let mut inside = gate.0.lock().unwrap();
                *inside += 1;
                gate.1.notify_all();
                drop(gate.1.wait_while(inside, |n| *n < 3).unwrap());
                tx.send(i).unwrap();
            });
        }
        drop(pool);
        let mut got: Vec<i32> =
            (0..20).map(|_| rx.recv_timeout(Duration::from_secs(10)).unwrap()).collect();
        got.sort_unstable();
        assert_eq!(got, (0..20).collect::<Vec<_>>());
    }
}
