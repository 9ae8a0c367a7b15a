//! A request scheduler, like the one of an operating system's block layer: it chooses the order and
//! the number of requests at the device.
//!
//! # What it keeps
//!
//! 1. A submitter waits only for a place in the queue, never for a completion: while the queue
//!    holds [`SchedulerSettings::queue_bytes`] of its direction, or, with throttling, while too
//!    many writes are in flight.
//! 2. At most [`SchedulerSettings::depth`] requests are at the device. Flushes do not count: they
//!    go to the device at once, because they cover only completed writes.
//! 3. Its task ends when the filter is dropped; requests that still wait fail with
//!    [`BlockError::Gone`].

mod order;
mod throttle;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use smart_default::SmartDefault;
use steadfast_block::{
    BlockDevice, BlockError, Completer, Completion, DeviceInfo, Request, Result, check,
};
use steadfast_runtime::{Condvar, JoinHandle, Mutex, MutexGuard, Nanos, is_simulated, now, spawn};

use order::PendingRequest;
pub use order::{DeadlineSettings, Direction};
pub use throttle::ThrottleSettings;

use order::{Deadline, Fifo, Order};
use throttle::DepthLimit;

/// The order in which waiting requests are served.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Policy {
    /// As they came (Linux's `none`; 2.4's elevator without its sorting).
    #[default]
    Fifo,
    /// By Linux's mq-deadline.
    Deadline(DeadlineSettings),
}

/// How requests are scheduled.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct SchedulerSettings {
    /// The order.
    pub policy: Policy,
    /// Requests that the device has at once; at least 1.
    // As many tags as SATA has.
    #[default(32)]
    pub depth: u64,
    /// Bytes that may wait or be in flight in each direction before who submits must wait
    /// (Linux 2.4: 30 MB on a machine with 64 MB and more); one request always may.
    // 256 requests of 128 KiB.
    #[default(32 << 20)]
    pub queue_bytes: u64,
    /// Writeback throttling.
    pub throttle: Option<ThrottleSettings>,
}

/// The queue at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueState {
    /// Reads that wait.
    pub reads: u64,
    /// Writes and discards that wait.
    pub writes: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Their bytes.
    pub write_bytes: u64,
    /// Requests with the device.
    pub with_device: u64,
    /// Most bytes of writes that ever waited at once.
    pub write_bytes_max: u64,
    /// The longest that a read has waited before it went to the device.
    pub read_wait_max: Duration,
    /// Writes that are let in at once, where they are throttled.
    pub write_limit: Option<u64>,
    /// Tasks that wait for a place for a write.
    pub writers_wait: u64,
}

/// A request with who waits for its answer.
struct QueuedRequest {
    request: Request,
    completer: Completer,
    waiting: PendingRequest,
}

struct State {
    order: Box<dyn Order>,
    throttle: Option<DepthLimit>,
    held: BTreeMap<u64, QueuedRequest>,
    flushes: VecDeque<(Request, Completer)>,
    next_id: u64,
    /// Reads that are not answered yet, by number: since when.
    reads: BTreeMap<u64, Nanos>,
    /// When the last read was answered.
    read_answered: Option<Nanos>,
    /// Bytes that are not answered yet, of reads and of writes.
    bytes: [u64; 2],
    /// Writes that are not answered yet.
    writes: u64,
    queue: QueueState,
    stopped: bool,
}

struct SchedulerCore {
    state: Mutex<State>,
    /// There is something to do for the task.
    work: Condvar,
    /// There may be a place.
    room: Condvar,
}

/// Schedules the requests of the device below.
pub struct Scheduler {
    next: Arc<dyn BlockDevice>,
    shared: Arc<SchedulerCore>,
    settings: SchedulerSettings,
    task: Option<JoinHandle<()>>,
}

impl Scheduler {
    /// A scheduler before a device; it has a task of its own.
    pub fn new(next: Arc<dyn BlockDevice>, settings: SchedulerSettings) -> Self {
        let order: Box<dyn Order> = match &settings.policy {
            Policy::Fifo => Box::new(Fifo::default()),
            Policy::Deadline(settings) => Box::new(Deadline::new(settings.clone())),
        };
        let state = State {
            order,
            throttle: settings.throttle.clone().map(DepthLimit::new),
            held: BTreeMap::new(),
            flushes: VecDeque::new(),
            next_id: 0,
            reads: BTreeMap::new(),
            read_answered: None,
            bytes: [0; 2],
            writes: 0,
            queue: QueueState::default(),
            stopped: false,
        };
        let shared = Arc::new(SchedulerCore {
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Condvar::new(),
        });
        let name = format!("{} (scheduler)", next.info().name);
        let (serving, device, depth) = (Arc::clone(&shared), Arc::clone(&next), settings.depth);
        let task = spawn(name, move || serve(&serving, &device, depth.max(1)));
        Scheduler { next, shared, settings, task: Some(task) }
    }

    /// How it schedules.
    pub fn settings(&self) -> &SchedulerSettings {
        &self.settings
    }

    /// What waits now.
    pub fn queue(&self) -> QueueState {
        let state = self.shared.state.lock();
        QueueState { write_limit: state.throttle.as_ref().map(DepthLimit::limit), ..state.queue }
    }

    /// Waits until there is a place for a request.
    fn with_room(&self, direction: Direction, len: u64) -> MutexGuard<'_, State> {
        let mut state = self.shared.state.lock();
        loop {
            let bytes = state.bytes[direction as usize];
            let fits = bytes == 0 || bytes.saturating_add(len) <= self.settings.queue_bytes;
            let limit = state.throttle.as_ref().map_or(u64::MAX, DepthLimit::limit);
            let let_in = direction == Direction::Read || state.writes < limit;
            if (fits && let_in) || state.stopped {
                return state;
            }
            let waits = u64::from(direction == Direction::Write);
            state.queue.writers_wait += waits;
            state = self.shared.room.wait(state);
            state.queue.writers_wait -= waits;
        }
    }
}

impl BlockDevice for Scheduler {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        if let Err(refused) = check(&self.next.info(), &request) {
            return Completion::ready(Err(refused));
        }
        let (completer, completion) = Completion::pending();
        let Some((offset, len)) = request.range() else {
            self.shared.state.lock().flushes.push_back((request, completer));
            self.shared.work.notify_one();
            return completion;
        };
        let direction = match request {
            Request::Read { .. } => Direction::Read,
            _ => Direction::Write,
        };
        let mut state = self.with_room(direction, len);
        let waiting = PendingRequest { id: state.next_id, since: now(), direction, offset, len };
        state.entered(waiting, QueuedRequest { request, completer, waiting });
        drop(state);
        self.shared.work.notify_one();
        completion
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        self.shared.work.notify_all();
        self.shared.room.notify_all();
        // Whoever drops a device may want to have what is below to himself.
        if let Some(task) = self.task.take().filter(|_| !is_simulated()) {
            // OK to ignore: a panic there has been reported, and whoever waited has been answered.
            let _ = task.join();
        }
    }
}

impl State {
    fn entered(&mut self, waiting: PendingRequest, held: QueuedRequest) {
        self.next_id += 1;
        self.order.add(waiting);
        self.held.insert(waiting.id, held);
        self.bytes[waiting.direction as usize] += waiting.len;
        match waiting.direction {
            Direction::Read => {
                self.reads.insert(waiting.id, waiting.since);
                self.queue.reads += 1;
                self.queue.read_bytes += waiting.len;
            }
            Direction::Write => {
                self.writes += 1;
                self.queue.writes += 1;
                self.queue.write_bytes += waiting.len;
                self.queue.write_bytes_max = self.queue.write_bytes_max.max(self.queue.write_bytes);
            }
        }
    }

    /// Takes the next request for the device.
    fn next(&mut self, present: Nanos) -> Option<QueuedRequest> {
        let waiting = self.order.take(present)?;
        let queue = &mut self.queue;
        match waiting.direction {
            Direction::Read => {
                queue.reads -= 1;
                queue.read_bytes -= waiting.len;
                queue.read_wait_max = queue.read_wait_max.max(present.since(waiting.since));
            }
            Direction::Write => {
                queue.writes -= 1;
                queue.write_bytes -= waiting.len;
            }
        }
        queue.with_device += 1;
        self.held.remove(&waiting.id)
    }

    /// The device has answered.
    fn answered(&mut self, waiting: &PendingRequest, at: Nanos) {
        self.queue.with_device -= 1;
        self.bytes[waiting.direction as usize] -= waiting.len;
        let time = at.since(waiting.since);
        match waiting.direction {
            Direction::Read => {
                self.reads.remove(&waiting.id);
                self.read_answered = Some(at);
                if let Some(throttle) = &mut self.throttle {
                    throttle.read_took(time);
                }
            }
            Direction::Write => {
                self.writes -= 1;
                if let Some(throttle) = &mut self.throttle {
                    throttle.write_done();
                }
            }
        }
    }

    /// Until when nothing is handed to the device, as a read may come.
    fn held_until(&self, present: Nanos) -> Option<Nanos> {
        self.order.anticipates(self.read_answered?).filter(|until| *until > present)
    }

    /// Lets the throttle look at what happened; whether there may be more room.
    fn look(&mut self, present: Nanos) -> bool {
        let oldest = self.reads.first_key_value().map(|(_, since)| *since);
        let writes = self.writes > 0;
        let Some(throttle) = &mut self.throttle else { return false };
        let before = throttle.limit();
        throttle.look(present, oldest, writes);
        throttle.limit() > before
    }
}

/// The task: hands requests to the device.
fn serve(shared: &Arc<SchedulerCore>, device: &Arc<dyn BlockDevice>, depth: u64) {
    let mut state = shared.state.lock();
    while !state.stopped {
        let present = now();
        if state.look(present) {
            shared.room.notify_all();
        }
        if let Some((request, completer)) = state.flushes.pop_front() {
            drop(state);
            device.submit(request).on_done(move |answer| completer.complete(answer.clone()));
            state = shared.state.lock();
            continue;
        }
        let held_until = state.held_until(present);
        let may_go = held_until.is_none() && state.queue.with_device < depth;
        let next = may_go.then(|| state.next(present)).flatten();
        if let Some(held) = next {
            drop(state);
            hand_over(shared, device, held);
            state = shared.state.lock();
            continue;
        }
        let window_ends = state.throttle.as_ref().and_then(DepthLimit::window_ends);
        let until = window_ends.into_iter().chain(held_until).min();
        state = match until {
            Some(until) => shared.work.wait_timeout(state, until.since(present)).0,
            None => shared.work.wait(state),
        };
    }
    let held = std::mem::take(&mut state.held).into_values().map(|held| held.completer);
    let left: Vec<Completer> = held.chain(state.flushes.drain(..).map(|(_, c)| c)).collect();
    drop(state);
    let (name, reason) = (device.info().name, "its scheduler was dropped");
    for completer in left {
        let (device, reason) = (name.clone(), reason.into());
        completer.complete(Err(BlockError::Gone { device, reason }));
    }
}

fn hand_over(shared: &Arc<SchedulerCore>, device: &Arc<dyn BlockDevice>, held: QueuedRequest) {
    let QueuedRequest { request, completer, waiting } = held;
    let shared = Arc::clone(shared);
    device.submit(request).on_done(move |answer: &Result<_>| {
        shared.state.lock().answered(&waiting, now());
        shared.work.notify_one();
        shared.room.notify_all();
        completer.complete(answer.clone());
    });
}

#[cfg(test)]
mod tests;
