//! Disks that remember everything that was asked of them, and what a power cut may leave.
//!
//! A [`Recorder`] is shared by the disks of one test, so that what happened on several disks has
//! one order. [`Recorder::cut`] says what each disk may hold after a power cut at any instant: what
//! was promised is there; of everything else each sector (or smaller unit, as the disk says) is
//! there or not, as chance has it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Payload, Request, check};
use steadfast_runtime::{is_simulated, sleep, spawn};

use crate::rng::Rng;

#[derive(Clone)]
enum Event {
    Write {
        disk: usize,
        id: usize,
        offset: u64,
        data: Payload,
        fua: bool,
    },
    Flush {
        disk: usize,
        id: usize,
    },
    Done {
        id: usize,
    },
    /// A number of the test's own: what was acknowledged.
    Note(u64),
}

/// What happened on all disks, in order.
#[derive(Default)]
pub struct Recorder {
    events: Mutex<Vec<Event>>,
    disks: Mutex<Vec<Arc<Disk>>>,
}

/// What the write cache of a disk does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// There is none: completion is durability.
    None,
    /// It loses its contents at a power cut, and says so.
    Volatile,
    /// It loses its contents at a power cut, and says that there is none.
    Lying,
}

/// A disk in memory.
pub struct Disk {
    info: DeviceInfo,
    cache: Cache,
    number: usize,
    recorder: Option<Arc<Recorder>>,
    bytes: Mutex<Vec<u8>>,
    rng: Mutex<Rng>,
    fail_writes_at: Mutex<Option<(u64, u64)>>,
    fail_reads_at: Mutex<Option<(u64, u64)>>,
    fail_flushes: Mutex<bool>,
    before: Vec<u8>,
}

fn locked<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    /// Like [`plain`](Self::plain), with the unit in bytes that a power cut leaves old or new.
    pub fn plain_of(name: &str, bytes: Vec<u8>, atomic_write: u32) -> Arc<Disk> {
        let mut disk = Disk::make(name, bytes, Cache::None, 0, None);
        disk.info.atomic_write = atomic_write;
        Arc::new(disk)
    }

    /// A disk that records nothing, with these contents.
    pub fn plain(name: &str, bytes: Vec<u8>) -> Arc<Disk> {
        Arc::new(Disk::make(name, bytes, Cache::None, 0, None))
    }

    fn make(
        name: &str,
        bytes: Vec<u8>,
        cache: Cache,
        number: usize,
        recorder: Option<Arc<Recorder>>,
    ) -> Disk {
        let mut info = DeviceInfo::new(name, "test disk", bytes.len() as u64);
        info.volatile_cache = cache == Cache::Volatile;
        Disk {
            info,
            cache,
            number,
            // Only a recorder asks for it.
            before: if recorder.is_some() { bytes.clone() } else { Vec::new() },
            recorder,
            bytes: Mutex::new(bytes),
            rng: Mutex::new(Rng::new(number as u64 + 77)),
            fail_writes_at: Mutex::new(None),
            fail_reads_at: Mutex::new(None),
            fail_flushes: Mutex::new(false),
        }
    }

    pub fn device(self: &Arc<Self>) -> Arc<dyn BlockDevice> {
        Arc::clone(self) as Arc<dyn BlockDevice>
    }

    /// What the disk shows now.
    pub fn bytes(&self) -> Vec<u8> {
        locked(&self.bytes).clone()
    }

    pub fn block(&self, number: u64, size: usize) -> Vec<u8> {
        let at = number as usize * size;
        locked(&self.bytes)[at..at + size].to_vec()
    }

    pub fn poke(&self, at: usize, bytes: &[u8]) {
        locked(&self.bytes)[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Lets writes that touch these bytes fail.
    pub fn fail_writes_at(&self, range: std::ops::Range<u64>) {
        *locked(&self.fail_writes_at) = Some((range.start, range.end));
    }

    /// Lets reads that touch these bytes fail.
    pub fn fail_reads_at(&self, range: std::ops::Range<u64>) {
        *locked(&self.fail_reads_at) = Some((range.start, range.end));
    }

    /// Lets flushes fail.
    pub fn fail_flushes(&self) {
        *locked(&self.fail_flushes) = true;
    }

    fn apply(&self, request: &Request) -> Result<Bytes, BlockError> {
        let io = |op, offset| BlockError::Io {
            device: self.info.name.clone(),
            op,
            offset,
            reason: "injected".into(),
        };
        match request {
            Request::Read { offset, len } => {
                let end = offset + (*len);
                if locked(&self.fail_reads_at).is_some_and(|(a, b)| *offset < b && end > a) {
                    return Err(io("read", *offset));
                }
                let from = *offset as usize;
                let bytes = locked(&self.bytes);
                Ok(Bytes::copy_from_slice(&bytes[from..from + *len as usize]))
            }
            Request::Write { offset, data, .. } => {
                let end = offset + data.len() as u64;
                if locked(&self.fail_writes_at).is_some_and(|(a, b)| *offset < b && end > a) {
                    return Err(io("write", *offset));
                }
                overlay(&mut locked(&self.bytes), *offset, data);
                Ok(Bytes::new())
            }
            Request::Flush if *locked(&self.fail_flushes) => Err(io("flush", 0)),
            Request::Flush | Request::Discard { .. } => Ok(Bytes::new()),
        }
    }
}

fn overlay(bytes: &mut [u8], offset: u64, data: &Payload) {
    let mut at = offset as usize;
    for part in data.parts() {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
}

/// A request in progress.
struct Flight {
    disk: Arc<Disk>,
    id: usize,
}

impl Flight {
    fn land(self, request: &Request) -> Result<Bytes, BlockError> {
        let answer = self.disk.apply(request);
        if let Some(recorder) = &self.disk.recorder {
            recorder.note_event(Event::Done { id: self.id });
        }
        answer
    }
}

/// The device is a handle to the disk, so that requests can outlive the call.
impl BlockDevice for Disk {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        if let Err(e) = check(&self.info, &request) {
            return Completion::ready(Err(e));
        }
        let Some(recorder) = &self.recorder else {
            return Completion::ready(self.apply(&request));
        };
        let disk = Arc::clone(&locked(&recorder.disks)[self.number]);
        let id = recorder.note_request(self.number, &request);
        let flight = Flight { disk, id };
        if !is_simulated() {
            return Completion::ready(flight.land(&request));
        }
        let delay = Duration::from_micros(1 + locked(&self.rng).next() % 300);
        let (completer, completion) = Completion::pending();
        spawn("disk", move || {
            sleep(delay);
            completer.complete(flight.land(&request));
        });
        completion
    }
}

impl Recorder {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Adds a disk with these contents, which no cut takes away.
    pub fn disk(self: &Arc<Self>, name: &str, bytes: Vec<u8>, cache: Cache) -> Arc<Disk> {
        self.disk_of(name, bytes, cache, 512)
    }

    /// The same, with the unit in bytes that a power cut leaves old or new.
    pub fn disk_of(
        self: &Arc<Self>,
        name: &str,
        bytes: Vec<u8>,
        cache: Cache,
        atomic_write: u32,
    ) -> Arc<Disk> {
        let mut disks = locked(&self.disks);
        let mut disk = Disk::make(name, bytes, cache, disks.len(), Some(Arc::clone(self)));
        disk.info.atomic_write = atomic_write;
        disks.push(Arc::new(disk));
        Arc::clone(&disks[disks.len() - 1])
    }

    fn note_event(&self, event: Event) {
        locked(&self.events).push(event);
    }

    fn note_request(&self, disk: usize, request: &Request) -> usize {
        let mut events = locked(&self.events);
        let id = events.len();
        match request.clone() {
            Request::Write { offset, data, fua } => {
                events.push(Event::Write { disk, id, offset, data, fua });
            }
            Request::Flush => events.push(Event::Flush { disk, id }),
            Request::Read { .. } | Request::Discard { .. } => events.push(Event::Note(u64::MAX)),
        }
        id
    }

    /// Records an acknowledgement to the test.
    pub fn note(&self, what: u64) {
        self.note_event(Event::Note(what));
    }

    pub fn len(&self) -> usize {
        locked(&self.events).len()
    }

    /// Flushes of all disks.
    pub fn flushes(&self) -> usize {
        locked(&self.events).iter().filter(|e| matches!(e, Event::Flush { .. })).count()
    }

    /// The largest number noted before the cut.
    pub fn noted(&self, cut: usize) -> Option<u64> {
        let events = locked(&self.events);
        let notes = events[..cut].iter().filter_map(|e| match e {
            Event::Note(n) if *n != u64::MAX => Some(*n),
            _ => None,
        });
        notes.max()
    }

    /// Instants right after a flush, and right before one is done: where promises change.
    pub fn flush_boundaries(&self) -> Vec<usize> {
        let events = locked(&self.events);
        let mut ids = std::collections::BTreeSet::new();
        let mut out = Vec::new();
        for (i, e) in events.iter().enumerate() {
            match e {
                Event::Flush { id, .. } | Event::Write { id, fua: true, .. } => {
                    ids.insert(*id);
                    out.push(i);
                }
                Event::Done { id } if ids.contains(id) => out.extend([i, i + 1]),
                _ => {}
            }
        }
        out
    }

    /// What each disk may hold after a power cut before event `cut`. Of what is not promised, each
    /// sector is kept with `keep` percent probability.
    pub fn cut(&self, cut: usize, keep: u64, rng: &mut Rng) -> Vec<Vec<u8>> {
        let events = locked(&self.events);
        let disks = locked(&self.disks);
        let done = completions(&events);
        let flushed: Vec<usize> =
            (0..disks.len()).map(|d| last_flush(&events[..cut], &done, d, cut)).collect();
        let mut out: Vec<Vec<u8>> = disks.iter().map(|d| d.before.clone()).collect();
        // Completed writes in the order in which they completed, then those in progress.
        let mut writes: Vec<(usize, usize)> = Vec::new();
        for (i, e) in events[..cut].iter().enumerate() {
            if let Event::Write { id, .. } = e {
                let at = done[*id].filter(|at| *at < cut);
                writes.push((at.unwrap_or(cut + rng.below(1 << 20)), i));
            }
        }
        writes.sort_unstable();
        for (at, i) in writes {
            let Event::Write { disk, offset, data, fua, .. } = &events[i] else { continue };
            let promised = at < cut
                && (disks[*disk].cache == Cache::None
                    || (*fua && disks[*disk].cache == Cache::Volatile)
                    || at <= flushed[*disk]);
            if promised {
                overlay(&mut out[*disk], *offset, data);
                continue;
            }
            let mut at = *offset as usize;
            for sector in data.units(disks[*disk].info.atomic_write as usize) {
                if rng.chance(keep) {
                    out[*disk][at..at + sector.len()].copy_from_slice(&sector);
                }
                at += sector.len();
            }
        }
        out
    }
}

/// For each request, when it was done.
fn completions(events: &[Event]) -> Vec<Option<usize>> {
    let mut done = vec![None; events.len()];
    for (i, e) in events.iter().enumerate() {
        if let Event::Done { id } = e {
            done[*id] = Some(i);
        }
    }
    done
}

/// Up to which instant completed writes of `disk` are covered by a flush done before `cut`.
fn last_flush(events: &[Event], done: &[Option<usize>], disk: usize, cut: usize) -> usize {
    let covered = |(i, e): (usize, &Event)| match e {
        Event::Flush { disk: d, id } if *d == disk && done[*id].is_some_and(|end| end < cut) => {
            Some(i)
        }
        _ => None,
    };
    events.iter().enumerate().rev().find_map(covered).unwrap_or(0)
}
