//! Threads of ours that seize, stop and unwind, one for each thread that is held.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use steadfast_crash::program::{CallObserver, CallStacks};

use crate::held::SeizedThread;
use crate::names;
use crate::stacks::AddressStacks;

pub use crate::held::refusal;

/// Threads that are held at the same time, at the most.
const WORKERS_MAX: usize = 64;
/// How long a call waits for its thread to be seized: an exec of another thread of the same process
/// may be in the way, which itself may wait for this call.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long the last threads are waited for.
const LAST: Duration = Duration::from_secs(1);

/// Why the stack of a call is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoStack {
    /// This machine does not allow it.
    Refused,
    /// Somebody else traces the thread.
    Traced,
    /// It has ended, or is one of the kernel's.
    Gone,
    /// Too many threads were held, or it could not be seized in time.
    Busy,
    /// It runs code that is in no file.
    NoCode,
    /// There are too many different stacks.
    TooMany,
}

impl NoStack {
    /// In words: of calls that have no stack.
    pub fn in_words(self) -> String {
        match self {
            NoStack::Refused => refusal(),
            NoStack::Traced => "their threads were traced already, as by strace or gdb".into(),
            NoStack::Gone => "their threads had ended".into(),
            NoStack::Busy => "too many threads were calling at the same time".into(),
            NoStack::NoCode => "their code is in no file".into(),
            NoStack::TooMany => "there were too many different stacks before".into(),
        }
    }
}

/// Takes the stacks of the threads that call.
pub struct Tracer(Arc<TracerState>);

#[derive(Default)]
struct TracerState {
    queue: Mutex<Queue>,
    /// Something of the queue has changed.
    changed: Condvar,
    stacks: Mutex<AddressStacks>,
}

#[derive(Default)]
struct Queue {
    asked: VecDeque<u32>,
    /// Threads that are seized, or are to be.
    held: HashMap<u32, Hold>,
    workers: usize,
    idle: usize,
    is_over: bool,
}

/// What becomes of a thread.
struct Hold {
    calls: Vec<usize>,
    /// It was told to stop, and its call may be answered.
    is_stopping: bool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CallObserver for Tracer {
    fn begins(&self, thread: u32, call: usize) {
        let shared = &self.0;
        let mut queue = lock(&shared.queue);
        if let Some(hold) = queue.held.get_mut(&thread) {
            // A further request of the same system call.
            hold.calls.push(call);
            return;
        }
        if queue.idle <= queue.asked.len() && !TracerState::start(shared, &mut queue) {
            drop(queue);
            return lock(&shared.stacks).note(&[call], Err(NoStack::Busy));
        }
        queue.held.insert(thread, Hold { calls: vec![call], is_stopping: false });
        queue.asked.push_back(thread);
        shared.changed.notify_all();
        let waits = |queue: &mut Queue| queue.held.get(&thread).is_some_and(|h| !h.is_stopping);
        let waited = shared.changed.wait_timeout_while(queue, PATIENCE, waits);
        let (mut queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            queue.held.remove(&thread);
            queue.asked.retain(|asked| *asked != thread);
            drop(queue);
            lock(&shared.stacks).note(&[call], Err(NoStack::Busy));
        }
    }
}

impl TracerState {
    /// Starts another thread; `false`: there are enough.
    fn start(shared: &Arc<TracerState>, queue: &mut Queue) -> bool {
        let worker = Arc::clone(shared);
        let thread = Builder::new().name("stacks".into());
        let starts = queue.workers < WORKERS_MAX
            && !queue.is_over
            && thread.spawn(move || worker.work()).is_ok();
        queue.workers += usize::from(starts);
        queue.idle += usize::from(starts);
        starts
    }

    /// Holds one thread after the other.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        while !queue.is_over {
            let Some(thread) = queue.asked.pop_front() else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.idle -= 1;
            drop(queue);
            let goes_on = self.hold(thread);
            queue = lock(&self.queue);
            if !goes_on {
                break;
            }
            queue.idle += 1;
        }
        queue.workers -= 1;
    }

    /// Holds a thread until its stack is known; `false`: it was too late, and only the end of this
    /// thread of ours lets it go without a stop.
    fn hold(&self, thread: u32) -> bool {
        let mut held = match SeizedThread::seize(thread) {
            Ok(held) => held,
            Err(why) => {
                self.done(thread, Err(why));
                return true;
            }
        };
        let mut queue = lock(&self.queue);
        let Some(hold) = queue.held.get_mut(&thread) else { return false };
        held.interrupt();
        hold.is_stopping = true;
        drop(queue);
        self.changed.notify_all();
        if !held.wait() {
            self.done(thread, Err(NoStack::Gone));
            return true;
        }
        let stack = match held.registers() {
            Some(registers) => lock(&self.stacks).take(thread, registers),
            None => Err(NoStack::NoCode),
        };
        // Before it makes its next call.
        self.done(thread, stack);
        held.let_go();
        true
    }

    fn done(&self, thread: u32, stack: Result<u32, NoStack>) {
        let hold = lock(&self.queue).held.remove(&thread);
        if let Some(hold) = hold {
            lock(&self.stacks).note(&hold.calls, stack);
        }
        self.changed.notify_all();
    }
}

impl Tracer {
    /// One that has nothing to do yet.
    pub fn new() -> Tracer {
        Tracer(Arc::default())
    }

    /// At the end of the program: the stacks of its calls in words, and why some are not known.
    pub fn end(&self) -> (CallStacks, Vec<(NoStack, u64)>) {
        let queue = lock(&self.0.queue);
        let waited = self.0.changed.wait_timeout_while(queue, LAST, |q| !q.held.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_over = true;
        self.0.changed.notify_all();
        // The files are let go: the program's may lie in what is to be unmounted.
        let stacks = std::mem::take(&mut *lock(&self.0.stacks));
        let mut missed: Vec<_> = stacks.missed.iter().map(|(why, count)| (*why, *count)).collect();
        missed.sort_unstable();
        (names::named(&stacks), missed)
    }
}

impl Default for Tracer {
    fn default() -> Self {
        Tracer::new()
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        lock(&self.0.queue).is_over = true;
        self.0.changed.notify_all();
    }
}
