//! Tasks: threads, or coroutines of the simulation.

use std::any::Any;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex};

use crate::sim::{self, Wait, Waiter};

/// A task ended by panicking.
pub struct TaskPanic {
    payload: Box<dyn Any + Send>,
}

impl TaskPanic {
    /// Lets the caller panic with the same payload.
    pub fn resume(self) -> ! {
        std::panic::resume_unwind(self.payload)
    }
}

impl fmt::Debug for TaskPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self
            .payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| self.payload.downcast_ref::<String>().map(String::as_str));
        write!(f, "the task panicked: {}", text.unwrap_or("(no message)"))
    }
}

/// The result slot of a simulated task, and who waits for it.
struct Slot<T> {
    value: Option<T>,
    done: bool,
    joiner: Option<Waiter>,
}

enum TaskThread<T> {
    Thread(std::thread::JoinHandle<T>),
    Task { id: u64, slot: Arc<Mutex<Slot<T>>>, made_at: &'static Location<'static> },
}

/// The right to wait for a task's result. Dropping it lets the task go on by itself.
pub struct JoinHandle<T>(TaskThread<T>);

/// Marks the slot done and wakes the joiner, also when the task unwinds.
struct Finish<T>(Arc<Mutex<Slot<T>>>);

impl<T> Drop for Finish<T> {
    fn drop(&mut self) {
        // OK to unwrap: nothing panics while it holds the slot.
        let joiner = {
            let mut slot = self.0.lock().unwrap();
            slot.done = true;
            slot.joiner.take()
        };
        if let Some(w) = joiner {
            sim::wake(w);
        }
    }
}

/// A task is the process's, not that of the thread which happens to start it: a thread that answers
/// a mount's requests may be bound to one processor and have a nice of its own, which a new thread
/// would inherit for as long as it lives (sched(7)).
#[cfg(target_os = "linux")]
fn as_the_process_runs() {
    use rustix::process::{getpid, getpriority_process, setpriority_process};
    use rustix::thread::{gettid, sched_getaffinity, sched_setaffinity};
    // The first thread has the process's number.
    let (first, me) = (getpid(), gettid());
    // OK to ignore errors here: it runs in any case.
    if let (Ok(all), Ok(own)) = (sched_getaffinity(Some(first)), sched_getaffinity(None))
        && all != own
    {
        let _ = sched_setaffinity(None, &all);
    }
    if let (Ok(nice), Ok(own)) = (getpriority_process(Some(first)), getpriority_process(Some(me)))
        && nice != own
    {
        let _ = setpriority_process(Some(me), nice);
    }
}

/// A thread of another system has nothing of that kind.
#[cfg(not(target_os = "linux"))]
fn as_the_process_runs() {}

/// Starts a task. `name` appears in traces, deadlock reports and, for threads, to the system.
#[track_caller]
pub fn spawn<T: Send + 'static>(
    name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let name = name.into();
    let made_at = Location::caller();
    if !sim::is_simulated() {
        // OK to expect: as std::thread::spawn, which panics when the system has no threads left.
        let of_process = || {
            as_the_process_runs();
            body()
        };
        let thread = std::thread::Builder::new().name(name).spawn(of_process);
        let thread = thread.expect("start a thread");
        return JoinHandle(TaskThread::Thread(thread));
    }
    let slot = Arc::new(Mutex::new(Slot { value: None, done: false, joiner: None }));
    let inner = Arc::clone(&slot);
    let id = sim::with_current(|core| {
        core.spawn(name, move || {
            let finish = Finish(inner);
            let value = body();
            finish.0.lock().unwrap().value = Some(value);
        })
    });
    // OK to unwrap: is_simulated() was just true.
    JoinHandle(TaskThread::Task { id: id.unwrap(), slot, made_at })
}

impl<T> JoinHandle<T> {
    /// Waits for the task to end and takes its result.
    #[track_caller]
    pub fn join(self) -> Result<T, TaskPanic> {
        let (id, slot, made_at) = match self.0 {
            TaskThread::Thread(thread) => {
                return thread.join().map_err(|payload| TaskPanic { payload });
            }
            TaskThread::Task { id, slot, made_at } => (id, slot, made_at),
        };
        let wait = Wait { what: "the end of a task", made_at, called_at: Location::caller() };
        while !slot.lock().unwrap().done {
            sim::block(wait, None, |w| slot.lock().unwrap().joiner = Some(w));
        }
        if let Some(value) = slot.lock().unwrap().value.take() {
            return Ok(value);
        }
        // The slot is marked while the task unwinds; its payload arrives when it has.
        sim::yield_now();
        let payload = sim::with_current(|core| core.take_panic(id)).flatten();
        Err(TaskPanic { payload: payload.unwrap_or_else(|| Box::new("the simulation ended")) })
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            TaskThread::Thread(thread) => thread.is_finished(),
            TaskThread::Task { slot, .. } => slot.lock().unwrap().done,
        }
    }
}

/// Lets other ready tasks run first.
pub fn yield_now() {
    if sim::is_simulated() {
        sim::yield_now();
    } else {
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_returns_its_value() {
        assert_eq!(spawn("adder", || 2 + 2).join().unwrap(), 4);
    }

    #[test]
    fn a_task_returns_its_value() {
        let v = crate::Sim::new(0).run(|| spawn("adder", || 2 + 2).join().unwrap());
        assert_eq!(v, Ok(4));
    }
}
