//! Recording of all changes, from which crash states are built.
//!
//! [`Record`] filters of several devices write one [`RecordLog`], so that a journal device and a
//! file-system device are in one order. Each submission, each completion and each
//! [note](RecordLog::note) of the workload gets the next *tick*. A crash point is a tick: events
//! with a lower tick have happened. Virtual time cannot be used: many events have the same
//! nanosecond.
//!
//! A finished log is a [`Recording`], which says of a crash point what each device [must still
//! hold](CutEffect::Durable) and what it [may](CutEffect::InDoubt). Reads are not recorded, nor are
//! requests that the device below refuses.
//!
//! Memory devices are recorded too: stores, persists and fences. Each aligned 8-byte word of a
//! store may or may not survive until its cache line was persisted after it and a later fence has
//! returned.
//!
//! What serde makes of these types is the form of recordings in files
//! (`steadfast_crash::program::file`): whoever changes one changes the version of that form.

mod at_crash_point;
mod media;
mod memory;
mod recording;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_block::{BlockDevice, Completion, DeviceInfo, DirectMemory, Request, check};
use steadfast_runtime::{Mutex, Nanos, current_call, now};

pub use at_crash_point::{AtCrashPoint, CutEffect};
pub use media::{Media, MediaError};
pub use recording::{RebuildError, Recording};

use crate::store::PackedBytes;

/// Names a device of one log: the first is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceId(pub u32);

/// A position in the one order of everything that happened, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment {
    /// Number of this happening; never the same twice in a log.
    pub tick: u64,
    /// When it was. Not in a file, which has the times of all ticks once.
    #[serde(skip)]
    pub at: Nanos,
}

/// When a completed write survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Durability {
    /// At once: there is no volatile cache.
    OnCompletion,
    /// The same of what was stored in memory: the caches of the processors are saved too (eADR).
    OnStore,
    /// Once a flush that was submitted after it has completed; with FUA, at once.
    OnFlush,
    /// When the cache happens to have written it; flushes and FUA mean nothing.
    Lying {
        /// What the cache holds: a write is durable once writes of so many bytes followed it.
        cache_bytes: u64,
        /// A write is durable once it has been complete for so long.
        drains_within: Duration,
    },
}

/// A lying cache writes its contents out in the background; after this time a write is safe.
const LYING_DRAINS_WITHIN: Duration = Duration::from_secs(1);

impl Durability {
    /// Of a device whose cache of so many bytes ignores flushes.
    pub fn lying(cache_bytes: u64) -> Self {
        Durability::Lying { cache_bytes, drains_within: LYING_DRAINS_WITHIN }
    }

    /// What an honest device promises.
    pub fn of(info: &DeviceInfo) -> Self {
        if info.volatile_cache { Durability::OnFlush } else { Durability::OnCompletion }
    }
}

/// A device of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDevice {
    /// Its description when recording began.
    pub info: DeviceInfo,
    /// When its writes are durable.
    pub durability: Durability,
    /// What a power cut does to them until then.
    pub media: Media,
}

impl RecordedDevice {
    /// Bytes of a write that a power cut leaves old or new, never mixed.
    pub fn unit(&self) -> u32 {
        self.media.unit(self.info.atomic_write)
    }
}

/// What was asked of a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Action {
    /// A write.
    Write {
        /// Byte offset.
        offset: u64,
        /// The bytes, packed where they can be.
        data: PackedBytes,
        /// Force unit access.
        fua: bool,
    },
    /// A flush.
    Flush,
    /// A discard.
    Discard {
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Bytes stored to a device that is memory.
    Store {
        /// Byte offset.
        offset: u64,
        /// The bytes.
        data: PackedBytes,
    },
    /// Cache lines of a device that is memory are written back.
    Persist {
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// What was persisted is waited for.
    Fence,
}

impl Action {
    /// The bytes that it is about: the first, how many, and what they are to be.
    pub fn range(&self) -> (u64, u64, Option<&PackedBytes>) {
        match self {
            Action::Write { offset, data, .. } | Action::Store { offset, data } => {
                (*offset, data.len() as u64, Some(data))
            }
            Action::Discard { offset, len } | Action::Persist { offset, len } => {
                (*offset, *len, None)
            }
            Action::Flush | Action::Fence => (0, 0, None),
        }
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Of which device.
    pub device: DeviceId,
    /// When it was submitted.
    pub submitted: Moment,
    /// When it was answered; `None` if it never was.
    pub completed: Option<Moment>,
    /// The answer was an error.
    pub failed: bool,
    /// The call that it was done for ([`steadfast_runtime::in_call`]); 0: for none, by a write-back
    /// or a timer.
    pub call: u64,
    /// What was asked.
    pub action: Action,
}

impl Event {
    /// Whether it had been answered with success before a tick.
    pub fn done_before(&self, tick: u64) -> bool {
        !self.failed && self.completed.is_some_and(|c| c.tick < tick)
    }
}

/// Something the workload wanted to be recorded: that it has its answer to a `write` or
/// `fsync`, for example. The numbers mean what the workload says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When.
    pub moment: Moment,
    /// What kind of note.
    pub label: u64,
    /// About what.
    pub detail: [u64; 3],
}

#[derive(Default)]
struct Log {
    devices: Vec<RecordedDevice>,
    events: Vec<Event>,
    notes: Vec<Note>,
    /// Time of each tick from `first_tick` on.
    times: Vec<Nanos>,
    first_tick: u64,
    /// Events forgotten so far: number of the first one in `events`.
    first_event: usize,
}

impl Log {
    fn moment(&mut self) -> Moment {
        // Threads do not read the clock in the order in which they get here.
        let at = now().max(self.times.last().copied().unwrap_or_default());
        self.times.push(at);
        Moment { tick: self.first_tick + self.times.len() as u64 - 1, at }
    }

    /// Forgets what happened; ticks and event numbers go on.
    fn take(&mut self) -> Recording {
        let events = std::mem::take(&mut self.events);
        let times = std::mem::take(&mut self.times);
        let first_tick = self.first_tick;
        self.first_event += events.len();
        self.first_tick += times.len() as u64;
        let notes = std::mem::take(&mut self.notes);
        Recording::new(self.devices.clone(), events, notes, times, first_tick)
    }
}

/// A log that several [`Record`] filters write. Clones are the same log.
#[derive(Clone, Default)]
pub struct RecordLog(Arc<RecorderCore>);

#[derive(Default)]
struct RecorderCore {
    log: Mutex<Log>,
    /// To be asked without the lock; changed while it is held.
    paused: AtomicBool,
}

impl RecordLog {
    /// An empty log.
    pub fn new() -> Self {
        RecordLog::default()
    }

    /// Writes a note into the order of events, and returns its moment.
    pub fn note(&self, label: u64, detail: [u64; 3]) -> Moment {
        let mut log = self.0.log.lock();
        let moment = log.moment();
        log.notes.push(Note { moment, label, detail });
        moment
    }

    /// Stops recording requests (`true`) or goes on with it. Notes are always written.
    pub fn pause(&self, paused: bool) {
        let _log = self.0.log.lock();
        self.0.paused.store(paused, Ordering::Relaxed);
    }

    /// Requests recorded and not yet taken.
    pub fn len(&self) -> usize {
        self.0.log.lock().events.len()
    }

    /// Whether no requests are recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything recorded so far. To be called when nothing is in flight, together with
    /// a copy of the devices' contents: the base that later cuts build on.
    pub fn clear(&self) {
        drop(self.0.log.lock().take());
    }

    /// Begins anew while the devices are in use: if nothing is in flight, takes a copy of their
    /// contents (`contents`, which must not submit anything) and forgets what was recorded, both
    /// before anything new can begin. `None` if something was in flight: ask again.
    pub fn begin_anew<T>(&self, contents: impl FnOnce() -> T) -> Option<T> {
        let mut log = self.0.log.lock();
        if log.events.iter().any(|event| event.completed.is_none()) {
            return None;
        }
        let contents = contents();
        drop(log.take());
        Some(contents)
    }

    /// Takes what is recorded out of the log. What is in flight counts as never answered.
    pub fn take(&self) -> Recording {
        self.0.log.lock().take()
    }

    fn is_paused(&self) -> bool {
        self.0.paused.load(Ordering::Relaxed)
    }

    fn add_device(&self, info: DeviceInfo, durability: Durability) -> DeviceId {
        let mut log = self.0.log.lock();
        let id = DeviceId(log.devices.len() as u32);
        log.devices.push(RecordedDevice { info, durability, media: Media::default() });
        id
    }

    fn set_media(&self, device: DeviceId, media: Media) {
        self.0.log.lock().devices[device.0 as usize].media = media;
    }

    /// Notes a submission; the event's number, unless the log is paused.
    fn begin(&self, device: DeviceId, action: Action) -> Option<usize> {
        let mut log = self.0.log.lock();
        if self.is_paused() {
            return None;
        }
        let submitted = log.moment();
        let call = current_call();
        log.events.push(Event { device, submitted, completed: None, failed: false, call, action });
        Some(log.first_event + log.events.len() - 1)
    }

    fn end(&self, number: usize, failed: bool) {
        let mut log = self.0.log.lock();
        // Forgotten or taken meanwhile: nobody would see it.
        let Some(index) = number.checked_sub(log.first_event) else { return };
        let completed = log.moment();
        let event = &mut log.events[index];
        event.completed = Some(completed);
        event.failed = failed;
    }
}

/// Records what passes through to the device below.
pub struct Record {
    next: Arc<dyn BlockDevice>,
    info: DeviceInfo,
    log: RecordLog,
    device: DeviceId,
}

impl Record {
    /// Adds `next` to the devices of `log` and records it, trusting its description.
    pub fn new(next: Arc<dyn BlockDevice>, log: &RecordLog) -> Self {
        let durability = Durability::of(&next.info());
        Record::with_durability(next, log, durability)
    }

    /// As [`new`](Self::new), for a device whose description is not true.
    pub fn with_durability(
        next: Arc<dyn BlockDevice>,
        log: &RecordLog,
        durability: Durability,
    ) -> Self {
        let info = next.info();
        let device = log.add_device(info.clone(), durability);
        Record { next, info, log: log.clone(), device }
    }

    /// On a medium that loses otherwise.
    #[must_use]
    pub fn on_media(self, media: Media) -> Record {
        self.log.set_media(self.device, media);
        self
    }

    /// This device's name in the log.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    fn begin(&self, request: &mut Request) -> Option<usize> {
        if check(&self.info, request).is_err() || self.log.is_paused() {
            return None;
        }
        let action = match request {
            Request::Read { .. } => return None,
            Request::Write { offset, data, fua } => {
                // The device's own store need not look for them again.
                data.find_stamps();
                Action::Write { offset: *offset, data: PackedBytes::pack_payload(data), fua: *fua }
            }
            Request::Flush => Action::Flush,
            Request::Discard { offset, len } => Action::Discard { offset: *offset, len: *len },
        };
        self.log.begin(self.device, action)
    }
}

impl BlockDevice for Record {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, mut request: Request) -> Completion {
        let number = self.begin(&mut request);
        let completion = self.next.submit(request);
        if let Some(number) = number {
            let log = self.log.clone();
            completion.on_done(move |answer| log.end(number, answer.is_err()));
        }
        completion
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        self.next.direct_memory().map(|_| self as &dyn DirectMemory)
    }
}
