//! The common part of all models: a queue in front, a service task behind, contents in between.
//!
//! [`Physics`] is the part that differs: a discrete-event machine that gets commands and computes
//! when they complete. It never waits, and gets the time as a parameter, so its decisions do not
//! depend on when the service task wakes up.
//!
//! # Invariants
//!
//! 1. The lock is never held across a wait other than on its own condition variables.
//! 2. Physics gets commands and time in one chronological order: before a command that arrived at
//!    `t` is passed on, everything due by `t` has happened.
//! 3. The contents change when a write is done, before its completion is answered.
//! 4. The service task ends when the device is dropped; requests still in the queue fail with
//!    [`BlockError::Gone`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{
    BlockDevice, BlockError, Completer, Completion, DeviceInfo, Request, Result as BlockResult,
    check,
};
use steadfast_runtime::{Condvar, Mutex, MutexGuard, Nanos, now, spawn, trace};

use super::agenda::Agenda;
use super::parameters::Describe;
use super::{FlushBehaviour, Model, ModelError, exchange};
use crate::store::Store;

/// What a command asks for, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    Read,
    Write { fua: bool },
    Flush,
    Discard,
}

/// A command as the hardware sees it. Offsets and lengths are bytes; 0 for a flush.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    pub id: u64,
    pub op: CommandKind,
    pub offset: u64,
    pub len: u64,
}

/// A command that has been carried out, or has failed for the reason given.
#[derive(Debug)]
pub struct CommandCompletion {
    pub id: u64,
    pub fault: Option<String>,
}

impl CommandCompletion {
    pub(super) fn well(id: u64) -> Self {
        CommandCompletion { id, fault: None }
    }
}

/// The hardware: when is which command done? Times are nanoseconds of the world's clock.
pub trait Physics: Send + Sized + 'static {
    /// What describes it.
    type Params: Describe;

    /// Whether a discard empties the range (otherwise it changes nothing).
    const DISCARDS: bool;

    /// The hardware that parameters describe, each of which makes sense.
    fn new(params: &Self::Params) -> Result<Self, ModelError>;

    /// Requests that it has at a time; more wait before it.
    fn queue_depth(params: &Self::Params) -> u32;

    /// A command arrives. The instant at which it is done, if that is known; [`advance`] says it
    /// of the others.
    ///
    /// [`advance`]: Self::advance
    fn arrive(&mut self, at_ns: u64, command: Command) -> Option<u64>;

    /// When something will happen next, if no command arrives before.
    fn next_event(&self) -> Option<u64> {
        None
    }

    /// Lets time pass up to and including `until_ns`; pushes what was done, in order.
    fn advance(&mut self, _until_ns: u64, _done: &mut Vec<CommandCompletion>) {}

    /// Whether what [`Self::describe_health`] says can change.
    const HEALTH_CHANGES: bool = false;

    /// Enters how it is now.
    fn describe_health(&self, _info: &mut DeviceInfo) {}

    /// The contents were replaced at once.
    fn contents_replaced(&mut self, _contents: &Store) {}
}

struct State<P> {
    physics: P,
    store: Store,
    arrivals: VecDeque<(Nanos, Command)>,
    /// When commands are done, where their arrival decided that.
    answers: Agenda<u64>,
    in_flight: BTreeMap<u64, (Request, Completer)>,
    next_id: u64,
    stopped: bool,
}

struct EngineCore<P> {
    name: String,
    state: Mutex<State<P>>,
    /// Commands have arrived, or the device is dropped.
    work: Condvar,
    /// A place in the queue has become free.
    room: Condvar,
}

/// A modelled device: a queue, its hardware, its contents. Dropping it stops the service task.
pub struct Engine<P: Physics> {
    info: DeviceInfo,
    promise: FlushBehaviour,
    shared: Arc<EngineCore<P>>,
    queue_depth: usize,
}

impl<P: Physics> Engine<P> {
    /// An empty device, working in the caller's world.
    ///
    /// # Errors
    /// [`ModelError::Parameter`] names the parameter that makes no sense.
    pub fn new(name: &str, params: &P::Params) -> Result<Self, ModelError> {
        params.check()?;
        let info = params.info(name);
        let state = State {
            physics: P::new(params)?,
            store: Store::new(info.size),
            arrivals: VecDeque::new(),
            answers: Agenda::default(),
            in_flight: BTreeMap::new(),
            next_id: 0,
            stopped: false,
        };
        let shared = Arc::new(EngineCore {
            name: name.to_owned(),
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Condvar::new(),
        });
        let service = Arc::clone(&shared);
        spawn(format!("{name} (model)"), move || service.serve());
        let promise = match params.lying_cache_bytes() {
            Some(_) => FlushBehaviour::LyingFlush,
            None => FlushBehaviour::Honest,
        };
        Ok(Engine { info, promise, shared, queue_depth: P::queue_depth(params) as usize })
    }

    /// Looks at, or changes, the hardware's own state.
    pub(super) fn with_physics<T>(&self, f: impl FnOnce(&mut P) -> T) -> T {
        f(&mut self.shared.state.lock().physics)
    }
}

impl<P: Physics> BlockDevice for Engine<P> {
    fn info(&self) -> DeviceInfo {
        let mut info = self.info.clone();
        if P::HEALTH_CHANGES {
            self.with_physics(|physics| physics.describe_health(&mut info));
        }
        info
    }

    /// Queues a request, waiting for a place in the queue.
    fn submit(&self, request: Request) -> Completion {
        if let Err(refusal) = check(&self.info, &request) {
            return Completion::ready(Err(refusal));
        }
        let (completer, completion) = Completion::pending();
        let mut state = self.shared.state.lock();
        while state.in_flight.len() >= self.queue_depth && !state.stopped {
            state = self.shared.room.wait(state);
        }
        let id = state.next_id;
        state.next_id += 1;
        let (offset, len) = request.range().unwrap_or((0, 0));
        let op = match &request {
            Request::Read { .. } => CommandKind::Read,
            Request::Write { fua, .. } => CommandKind::Write { fua: *fua },
            Request::Flush => CommandKind::Flush,
            Request::Discard { .. } => CommandKind::Discard,
        };
        state.in_flight.insert(id, (request, completer));
        // Read under the lock, so that arrivals are in the order of their times.
        state.arrivals.push_back((now(), Command { id, op, offset, len }));
        self.shared.work.notify_one();
        completion
    }
}

impl<P: Physics> Model for Engine<P> {
    fn contents(&self) -> Store {
        self.shared.state.lock().store.snapshot()
    }

    fn set_contents(&self, contents: Store) -> Result<(), ModelError> {
        let mut guard = self.shared.state.lock();
        let state = &mut *guard;
        exchange(&self.info.name, &mut state.store, contents)?;
        state.physics.contents_replaced(&state.store);
        Ok(())
    }

    fn promise(&self) -> FlushBehaviour {
        self.promise
    }
}

impl<P: Physics> Drop for Engine<P> {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        self.shared.work.notify_all();
        self.shared.room.notify_all();
    }
}

impl<P: Physics> EngineCore<P> {
    fn serve(&self) {
        let mut done = Vec::new();
        let mut state = self.state.lock();
        while !state.stopped {
            let present = now();
            state.catch_up(present, &mut done);
            if !done.is_empty() {
                self.answer(state, &mut done);
                state = self.state.lock();
                continue;
            }
            state = match state.next_event() {
                Some(at) => self.work.wait_timeout(state, Nanos(at).since(present)).0,
                None => self.work.wait(state),
            };
        }
        let abandoned = std::mem::take(&mut state.in_flight);
        drop(state);
        for (_, completer) in abandoned.into_values() {
            let (device, reason) = (self.name.clone(), "the model was dropped".into());
            completer.complete(Err(BlockError::Gone { device, reason }));
        }
    }

    /// Applies what was done to the contents, then, unlocked, answers in order.
    fn answer(&self, mut state: MutexGuard<'_, State<P>>, done: &mut Vec<CommandCompletion>) {
        let mut answers = Vec::with_capacity(done.len());
        for d in done.drain(..) {
            // A command is done once: its entry is there.
            let Some((request, completer)) = state.in_flight.remove(&d.id) else { continue };
            trace(|| format!("{}: {} {:?} done", self.name, request.op(), request.range()));
            let unreadable = match &request {
                Request::Read { offset, len } => state.store.unreadable(*offset, *len),
                _ => None,
            };
            let unreadable = unreadable.map(|at| format!("the sector at byte {at} is unreadable"));
            let result = match d.fault.or(unreadable) {
                None => Ok(state.carry_out(&request)),
                Some(reason) => self.fault(&request, reason),
            };
            answers.push((completer, result));
        }
        self.room.notify_all();
        drop(state);
        for (completer, result) in answers {
            completer.complete(result);
        }
    }

    fn fault(&self, request: &Request, reason: String) -> BlockResult<Bytes> {
        let (device, op) = (self.name.clone(), request.op());
        let offset = request.range().map_or(0, |(offset, _)| offset);
        Err(BlockError::Io { device, op, offset, reason })
    }
}

impl<P: Physics> State<P> {
    /// Advances the hardware from its last time to the present.
    fn catch_up(&mut self, present: Nanos, done: &mut Vec<CommandCompletion>) {
        while let Some((at, command)) = self.arrivals.pop_front() {
            self.advance(at.0, done);
            if let Some(done_ns) = self.physics.arrive(at.0, command) {
                self.answers.enter(done_ns, command.id);
            }
        }
        self.advance(present.0, done);
    }

    fn next_event(&self) -> Option<u64> {
        [self.physics.next_event(), self.answers.next()].into_iter().flatten().min()
    }

    fn advance(&mut self, until_ns: u64, done: &mut Vec<CommandCompletion>) {
        self.physics.advance(until_ns, done);
        while let Some((_, id)) = self.answers.take_due(until_ns) {
            done.push(CommandCompletion::well(id));
        }
    }

    fn carry_out(&mut self, request: &Request) -> Bytes {
        match request {
            Request::Read { offset, len } => return self.store.read(*offset, *len),
            Request::Write { offset, data, .. } => self.store.write(*offset, data),
            Request::Discard { offset, len } if P::DISCARDS => self.store.discard(*offset, *len),
            Request::Discard { .. } | Request::Flush => {}
        }
        Bytes::new()
    }
}
