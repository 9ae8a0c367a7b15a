//! The simulated world: coroutines, a run queue and a timer heap.
//!
//! One OS thread runs everything. A task is a coroutine; it runs until it blocks, which yields to
//! the loop in [`Sim::run`]. The loop resumes the next ready task (first in, first out); when none
//! is ready it advances the clock to the earliest timer (ties: the one set first).
//!
//! A blocked task is identified by its id and an *epoch* that counts its blockings, so that a
//! wake-up for an earlier blocking (a timer that lost to a notification) is recognised and dropped.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::Nanos;
use crate::preempt::Preemption;
use crate::rng::Rng;

mod points;

pub(crate) use points::{pass_point, set_preemption};

/// When (virtual nanoseconds), in which order among equals, and whom: task and epoch.
type TimerEntry = (u64, u64, u64, u64);

type Task = Coroutine<(), (), (), DefaultStack>;

/// Task switches within one instant after which it is called a livelock.
const SWITCHES_PER_INSTANT_MAX: u64 = 20_000_000;

/// Stack of one simulated task in bytes. Address space only: pages are committed when touched.
const STACK_BYTES: usize = 1 << 20;

/// Stacks that are kept for later tasks of a thread.
const STACKS_KEPT: usize = 64;

thread_local! {
    /// Stacks of tasks that have ended. To map one and to unmap it is four system calls, which
    /// threads of one process make one after the other.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
    /// Whether there is one: asked at each lock.
    static SIMULATED: Cell<bool> = const { Cell::new(false) };
    /// Whether it has a schedule of preemptions: asked there too.
    static PREEMPTING: Cell<bool> = const { Cell::new(false) };
    /// The yielder of the coroutine that runs at this moment.
    static YIELDER: Cell<*const Yielder<(), ()>> = const { Cell::new(std::ptr::null()) };
}

/// A task together with the blocking it was in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiter {
    task: u64,
    epoch: u64,
}

/// What a blocked task waits for: shown in a deadlock report.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub what: &'static str,
    pub made_at: &'static Location<'static>,
    pub called_at: &'static Location<'static>,
}

struct TaskState {
    name: String,
    epoch: u64,
    /// On behalf of which call it works; 0: none.
    call: u64,
    blocked: Option<Option<Wait>>,
}

pub(crate) struct Core {
    now: Cell<u64>,
    date_step: u64,
    rng: RefCell<Rng>,
    timer_seq: Cell<u64>,
    next_task: Cell<u64>,
    running: Cell<u64>,
    tasks: RefCell<BTreeMap<u64, TaskState>>,
    ready: RefCell<VecDeque<u64>>,
    timers: RefCell<BinaryHeap<Reverse<TimerEntry>>>,
    spawned: RefCell<Vec<(u64, Task)>>,
    cpus_free_at: RefCell<Vec<u64>>,
    cpu_busy_ns: Cell<u64>,
    switches: Cell<u64>,
    unwinding: Cell<bool>,
    trace: Option<RefCell<Vec<String>>>,
    preemption: RefCell<Option<Preemption>>,
    panics: RefCell<BTreeMap<u64, Box<dyn Any + Send>>>,
}

/// A task that can never run again, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedTask {
    /// The name given at [`spawn`](crate::spawn).
    pub name: String,
    /// What it waits for, where that was made, and where it waits.
    pub waits_for: String,
}

/// Why a simulation ended without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimError {
    /// No task can run and no timer is set.
    Deadlock {
        /// Virtual time at which everything stopped.
        at: Nanos,
        /// Every task that still waits.
        tasks: Vec<BlockedTask>,
    },
    /// Tasks only wake each other, and time does not advance.
    Livelock {
        /// The instant that does not end.
        at: Nanos,
        /// The task that was about to run.
        running: String,
        /// Every task and what it waits for.
        tasks: Vec<BlockedTask>,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = match self {
            SimError::Deadlock { at, tasks } => {
                write!(f, "deadlock at {at:?}: no task can run")?;
                tasks
            }
            SimError::Livelock { at, running, tasks } => {
                write!(f, "livelock at {at:?}: tasks run ('{running}' next), time stands still")?;
                tasks
            }
        };
        for t in tasks {
            write!(f, "\n  task '{}' waits for {}", t.name, t.waits_for)?;
        }
        Ok(())
    }
}

impl std::error::Error for SimError {}

/// What a simulation cost and covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimStats {
    /// Virtual time at the end.
    pub end: Nanos,
    /// Task switches made.
    pub switches: u64,
    /// Processor time declared through [`cpu`](crate::cpu), over all tasks.
    pub cpu_busy: Duration,
}

/// A simulation to be run: its seed and its machine.
#[derive(Debug, Clone)]
pub struct Sim {
    seed: u64,
    cpus: usize,
    traced: bool,
    date_step: Duration,
}

impl Sim {
    /// A simulation whose random numbers come from `seed`, on a machine with four processors.
    pub fn new(seed: u64) -> Self {
        Sim { seed, cpus: 4, traced: false, date_step: Duration::ZERO }
    }

    /// Sets how many processors [`cpu`](crate::cpu) work shares (at least one).
    pub fn cpus(mut self, cpus: usize) -> Self {
        self.cpus = cpus.max(1);
        self
    }

    /// Keeps a trace: one line for each task switch, timer and [`trace`] call.
    pub fn traced(mut self) -> Self {
        self.traced = true;
        self
    }

    /// Lets [`date`](crate::date) move in steps of this: runs that differ only in how long
    /// something took then write the same times down.
    pub fn date_step(mut self, step: Duration) -> Self {
        self.date_step = step;
        self
    }

    /// Runs `main` as the first task until it returns; tasks still alive then are unwound.
    ///
    /// A panic in `main` is resumed here; a panic in another task is returned by its join, and
    /// resumed here if nobody joins it.
    pub fn run<T: 'static>(&self, main: impl FnOnce() -> T + 'static) -> Result<T, SimError> {
        self.run_full(main).map(|(value, _, _)| value)
    }

    /// Like [`run`](Self::run), and also returns statistics and the trace (empty unless
    /// [`traced`](Self::traced)).
    pub fn run_full<T: 'static>(
        &self,
        main: impl FnOnce() -> T + 'static,
    ) -> Result<(T, SimStats, Vec<String>), SimError> {
        assert!(!is_simulated(), "a simulation cannot be started inside a simulation");
        let core = Rc::new(Core {
            now: Cell::new(0),
            date_step: u64::try_from(self.date_step.as_nanos()).unwrap_or(u64::MAX).max(1),
            rng: RefCell::new(Rng::new(self.seed)),
            timer_seq: Cell::new(0),
            next_task: Cell::new(0),
            running: Cell::new(0),
            tasks: RefCell::default(),
            ready: RefCell::default(),
            timers: RefCell::default(),
            spawned: RefCell::default(),
            cpus_free_at: RefCell::new(vec![0; self.cpus]),
            cpu_busy_ns: Cell::new(0),
            switches: Cell::new(0),
            unwinding: Cell::new(false),
            trace: self.traced.then(RefCell::default),
            preemption: RefCell::default(),
            panics: RefCell::default(),
        });
        let result = Rc::new(RefCell::new(None));
        let slot = Rc::clone(&result);
        let main_id = core.spawn("main".into(), move || *slot.borrow_mut() = Some(main()));
        let _entered = CoreGuard::new(Rc::clone(&core));
        let mut live: BTreeMap<u64, Task> = BTreeMap::new();
        let outcome = core.run_loop(&mut live, main_id);
        // Unwinding runs destructors that may use the runtime: the core stays entered.
        core.unwinding.set(true);
        core.adopt(&mut live);
        while let Some((id, task)) = live.pop_first() {
            core.running.set(id);
            drop(task);
            core.adopt(&mut live);
        }
        let unjoined = core.panics.borrow_mut().pop_first();
        if let Some((_, payload)) = unjoined {
            resume_unwind(payload);
        }
        outcome?;
        let stats = SimStats {
            end: core.now(),
            switches: core.switches.get(),
            cpu_busy: Duration::from_nanos(core.cpu_busy_ns.get()),
        };
        let trace = core.trace.as_ref().map(RefCell::take).unwrap_or_default();
        let value = result.borrow_mut().take();
        // OK to unwrap: the loop returns Ok only after main returned, which filled the slot.
        Ok((value.unwrap(), stats, trace))
    }
}

/// Keeps the stack of a task that has ended.
fn keep_stack(task: Task) {
    if !task.done() {
        return;
    }
    let stack = task.into_stack();
    STACKS.with_borrow_mut(|kept| {
        if kept.len() < STACKS_KEPT {
            kept.push(stack);
        }
    });
}

/// Makes a core current for this thread until dropped.
struct CoreGuard;

impl CoreGuard {
    fn new(core: Rc<Core>) -> Self {
        CURRENT.with(|c| *c.borrow_mut() = Some(core));
        SIMULATED.set(true);
        CoreGuard
    }
}

impl Drop for CoreGuard {
    fn drop(&mut self) {
        SIMULATED.set(false);
        PREEMPTING.set(false);
        CURRENT.with(|c| *c.borrow_mut() = None);
    }
}

impl Core {
    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.now.get())
    }

    pub(crate) fn date(&self) -> Nanos {
        let now = self.now.get();
        Nanos(now - now % self.date_step)
    }

    /// The call that the running task works for.
    pub(crate) fn call(&self) -> u64 {
        self.tasks.borrow().get(&self.running.get()).map_or(0, |task| task.call)
    }

    pub(crate) fn replace_call(&self, number: u64) -> u64 {
        let mut tasks = self.tasks.borrow_mut();
        let task = tasks.get_mut(&self.running.get());
        task.map_or(0, |task| std::mem::replace(&mut task.call, number))
    }

    pub(crate) fn random_u64(&self) -> u64 {
        self.rng.borrow_mut().bits()
    }

    fn note(&self, text: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            trace.borrow_mut().push(format!("{} {}", self.now.get(), text()));
        }
    }

    pub(crate) fn spawn(&self, name: String, body: impl FnOnce() + 'static) -> u64 {
        let id = self.next_task.get();
        self.next_task.set(id + 1);
        let kept = STACKS.with_borrow_mut(Vec::pop);
        // OK to unwrap: fails only when the address space is exhausted.
        let stack = kept.unwrap_or_else(|| DefaultStack::new(STACK_BYTES).unwrap());
        // A closure is handed to its stack by copying, up to a size: in a box it may be of any.
        let body = Box::new(body);
        let task = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            YIELDER.set(std::ptr::from_ref(yielder));
            body();
        });
        self.note(|| format!("spawn {id} {name}"));
        self.tasks.borrow_mut().insert(id, TaskState { name, epoch: 0, call: 0, blocked: None });
        self.spawned.borrow_mut().push((id, task));
        self.ready.borrow_mut().push_back(id);
        id
    }

    fn adopt(&self, live: &mut BTreeMap<u64, Task>) {
        live.extend(self.spawned.borrow_mut().drain(..));
    }

    fn run_loop(&self, live: &mut BTreeMap<u64, Task>, main_id: u64) -> Result<(), SimError> {
        let (mut instant, mut since) = (0, 0);
        loop {
            self.adopt(live);
            let next = self.ready.borrow_mut().pop_front();
            let Some(id) = next else {
                if self.fire_timer() {
                    continue;
                }
                return Err(self.deadlock());
            };
            let Some(task) = live.get_mut(&id) else { continue };
            self.running.set(id);
            self.switches.set(self.switches.get() + 1);
            if instant != self.now.get() {
                (instant, since) = (self.now.get(), self.switches.get());
            } else if self.switches.get() - since > SWITCHES_PER_INSTANT_MAX {
                return Err(self.livelock(id));
            }
            self.note(|| format!("run {id}"));
            let outcome = catch_unwind(AssertUnwindSafe(|| task.resume(())));
            match outcome {
                Ok(CoroutineResult::Yield(())) => continue,
                Ok(CoroutineResult::Return(())) => {}
                Err(payload) => {
                    self.note(|| format!("panic {id}"));
                    if id == main_id {
                        self.finish(live, id);
                        // Nothing else matters once main has panicked.
                        self.panics.borrow_mut().clear();
                        self.panics.borrow_mut().insert(id, payload);
                        return Ok(());
                    }
                    self.panics.borrow_mut().insert(id, payload);
                }
            }
            self.finish(live, id);
            if id == main_id {
                return Ok(());
            }
        }
    }

    fn finish(&self, live: &mut BTreeMap<u64, Task>, id: u64) {
        self.note(|| format!("end {id}"));
        if let Some(task) = live.remove(&id) {
            keep_stack(task);
        }
        self.tasks.borrow_mut().remove(&id);
    }

    fn fire_timer(&self) -> bool {
        let timer = self.timers.borrow_mut().pop();
        let Some(Reverse((at, _, task, epoch))) = timer else { return false };
        let waiter = Waiter { task, epoch };
        if self.is_waiting(waiter) {
            self.now.set(self.now.get().max(at));
            self.wake(waiter);
        }
        true
    }

    fn is_waiting(&self, w: Waiter) -> bool {
        self.tasks.borrow().get(&w.task).is_some_and(|t| t.epoch == w.epoch && t.blocked.is_some())
    }

    /// Makes a blocked task ready; false if it no longer is in that blocking.
    pub(crate) fn wake(&self, w: Waiter) -> bool {
        let mut tasks = self.tasks.borrow_mut();
        let Some(t) = tasks.get_mut(&w.task) else { return false };
        if t.epoch != w.epoch || t.blocked.is_none() {
            return false;
        }
        t.blocked = None;
        self.ready.borrow_mut().push_back(w.task);
        true
    }

    fn deadlock(&self) -> SimError {
        SimError::Deadlock { at: self.now(), tasks: self.waiting() }
    }

    fn livelock(&self, next: u64) -> SimError {
        let running = self.tasks.borrow().get(&next).map_or_else(String::new, |t| t.name.clone());
        SimError::Livelock { at: self.now(), running, tasks: self.waiting() }
    }

    fn waiting(&self) -> Vec<BlockedTask> {
        let tasks = self.tasks.borrow();
        tasks
            .values()
            .map(|t| BlockedTask {
                name: t.name.clone(),
                waits_for: match t.blocked.flatten() {
                    Some(w) => format!("{} made at {}, at {}", w.what, w.made_at, w.called_at),
                    None => "a turn to run".into(),
                },
            })
            .collect()
    }

    /// Opens the next blocking of the running task: the name under which to wake it.
    fn prepare(&self, wait: Option<Wait>) -> Waiter {
        // A task that is being unwound can never be resumed: its destructors must not wait.
        assert!(!self.unwinding.get(), "a destructor waited after its simulation had ended");
        let id = self.running.get();
        let mut tasks = self.tasks.borrow_mut();
        // OK to unwrap: the running task is in the table until it ends.
        let t = tasks.get_mut(&id).unwrap();
        t.epoch += 1;
        t.blocked = Some(wait);
        Waiter { task: id, epoch: t.epoch }
    }

    fn set_timer(&self, at: Nanos, w: Waiter) {
        let seq = self.timer_seq.get();
        self.timer_seq.set(seq + 1);
        self.timers.borrow_mut().push(Reverse((at.0, seq, w.task, w.epoch)));
    }

    pub(crate) fn take_panic(&self, task: u64) -> Option<Box<dyn Any + Send>> {
        self.panics.borrow_mut().remove(&task)
    }
}

/// Whether the caller runs inside a simulation.
#[inline]
pub fn is_simulated() -> bool {
    SIMULATED.get()
}

/// Adds a line to the trace of a traced simulation; does nothing outside of one.
pub fn trace(text: impl FnOnce() -> String) {
    with_current(|core| core.note(text));
}

pub(crate) fn with_current<R>(f: impl FnOnce(&Core) -> R) -> Option<R> {
    if !is_simulated() {
        return None;
    }
    // Cloned out so that `f` may itself ask for the current core.
    let core = CURRENT.with(|c| c.borrow().clone());
    core.map(|core| f(&core))
}

/// Gives the processor back to the loop until somebody wakes the running task.
#[allow(unsafe_code)]
fn suspend() {
    let yielder = YIELDER.get();
    assert!(!yielder.is_null(), "only a task of the simulation can wait");
    /// Names this coroutine's yielder again however the suspension ends: resumed or unwound.
    struct Restore(*const Yielder<(), ()>);
    impl Drop for Restore {
        fn drop(&mut self) {
            YIELDER.set(self.0);
        }
    }
    let _restore = Restore(yielder);
    // SAFETY: YIELDER names the yielder of the coroutine that runs now: it is set when a
    // coroutine starts and restored above each time one is resumed. The yielder lives on that
    // coroutine's stack for as long as its body runs, and this call is made from that body.
    unsafe { (*yielder).suspend(()) };
}

/// Blocks the running task. `register` gets the name under which to wake it.
pub(crate) fn block(wait: Wait, deadline: Option<Nanos>, register: impl FnOnce(Waiter)) {
    with_current(|core| {
        let w = core.prepare(Some(wait));
        register(w);
        if let Some(at) = deadline {
            core.set_timer(at, w);
        }
    });
    suspend();
}

/// Wakes a task from the blocking it registered; false if it has moved on.
pub(crate) fn wake(w: Waiter) -> bool {
    with_current(|core| core.wake(w)).unwrap_or(false)
}

pub(crate) fn sleep_until(deadline: Nanos) {
    with_current(|core| {
        let w = core.prepare(None);
        core.set_timer(deadline.max(core.now()), w);
    });
    suspend();
}

pub(crate) fn yield_now() {
    with_current(|core| {
        let w = core.prepare(None);
        core.wake(w);
    });
    suspend();
}

pub(crate) fn cpu(work: Duration) {
    let done = with_current(|core| {
        let ns = u64::try_from(work.as_nanos()).unwrap_or(u64::MAX);
        core.cpu_busy_ns.set(core.cpu_busy_ns.get().saturating_add(ns));
        let mut free_at = core.cpus_free_at.borrow_mut();
        // OK to unwrap: there is at least one processor.
        let cpu = free_at.iter_mut().min().unwrap();
        *cpu = (*cpu).max(core.now.get()).saturating_add(ns);
        Nanos(*cpu)
    });
    if let Some(done) = done {
        sleep_until(done);
    }
}

#[cfg(test)]
mod tests;
