//! From the threads that serve calls to the file: one thread puts them in order, finds what each
//! waited for, and writes.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Result, TraceError};
use crate::format::{FileState, TraceCall, TraceEnd, TraceEntry, TraceHeader, TraceThread, Trip};
use crate::order::{CallAside, CallOrder};
use crate::writer::TraceWriter;

/// So many are on their way to the file, at most: who makes calls faster waits.
const ON_THE_WAY: usize = 1 << 16;
/// How often the thread looks for calls.
const LOOK: Duration = Duration::from_millis(2);
/// What was recorded longer ago is in the file, however little it is.
const WRITTEN_WITHIN: Duration = Duration::from_millis(250);

/// A call, and its place in the order of all.
pub(super) struct FinishedCall {
    pub number: u64,
    pub call: TraceCall,
    pub aside: CallAside,
}

enum QueueMessage {
    Begin(Option<Trip>, u64),
    /// To be told before the call of this number.
    Thread(u64, TraceThread),
    File(u64, FileState),
    Call(Box<FinishedCall>),
    End(TraceEnd),
}

/// What was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingSummary {
    /// How many calls.
    pub calls: u64,
    /// When the program ended, in ns since the beginning.
    pub at: u64,
}

type WriterThread = JoinHandle<Result<RecordingSummary>>;

/// The way to the file.
pub(super) struct TraceQueue {
    way: Arc<Mutex<Vec<QueueMessage>>>,
    writing: Mutex<Option<WriterThread>>,
}

impl TraceQueue {
    pub fn new(out: Box<dyn Write + Send>, header: TraceHeader) -> Result<TraceQueue> {
        let way = Arc::default();
        let messages = Arc::clone(&way);
        let write = move || OutputOrder::write(messages, out, header);
        let thread = std::thread::Builder::new().name("trace".into()).spawn(write)?;
        Ok(TraceQueue { way, writing: Mutex::new(Some(thread)) })
    }

    /// The thread looks by itself: to wake it for each call would cost more than the call.
    fn send(&self, message: QueueMessage) {
        loop {
            let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
            if way.len() < ON_THE_WAY {
                return way.push(message);
            }
            // It has failed, and `end` says why. Nobody takes these any more.
            if self.is_gone() {
                return;
            }
            drop(way);
            std::thread::sleep(LOOK);
        }
    }

    /// Whether nothing is written any more.
    pub fn is_gone(&self) -> bool {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        writing.as_ref().is_none_or(JoinHandle::is_finished)
    }

    pub fn begin(&self, trip: Option<Trip>, at: u64) {
        self.send(QueueMessage::Begin(trip, at));
    }

    pub fn thread(&self, before: u64, thread: TraceThread) {
        self.send(QueueMessage::Thread(before, thread));
    }

    pub fn file(&self, before: u64, file: FileState) {
        self.send(QueueMessage::File(before, file));
    }

    pub fn call(&self, call: FinishedCall) {
        self.send(QueueMessage::Call(Box::new(call)));
    }

    pub fn end(&self, at: u64, status: Option<i32>, interrupted: bool) -> Result<RecordingSummary> {
        self.send(QueueMessage::End(TraceEnd { calls: 0, at, status, interrupted }));
        let thread = self.writing.lock().unwrap_or_else(PoisonError::into_inner).take();
        let failed = || TraceError::File(std::io::Error::other("the thread that writes is gone"));
        thread.ok_or_else(failed)?.join().map_err(|_| failed())?
    }
}

/// What is to be written, in order.
#[derive(Default)]
struct OutputOrder {
    /// Of calls that have begun after one that has not returned.
    waiting: BTreeMap<u64, Vec<TraceEntry>>,
    finished: BTreeMap<u64, FinishedCall>,
    /// The number of the next call to be written.
    next: u64,
    /// Calls before this were made before the recording began: only what they found is kept.
    first: Option<u64>,
    /// When the program was started.
    start: u64,
    /// When the last call had returned.
    last_end: u64,
}

impl OutputOrder {
    fn write(
        messages: Arc<Mutex<Vec<QueueMessage>>>,
        out: Box<dyn Write + Send>,
        mut header: TraceHeader,
    ) -> Result<RecordingSummary> {
        let (mut ordered, mut output) = (OutputOrder::default(), None);
        let mut written = Instant::now();
        let mut out = Some(out);
        loop {
            let some =
                std::mem::take(&mut *messages.lock().unwrap_or_else(PoisonError::into_inner));
            if some.is_empty() {
                if Arc::strong_count(&messages) == 1 {
                    return Err(std::io::Error::other("the recording was given up").into());
                }
                std::thread::sleep(LOOK);
            }
            for message in some {
                match message {
                    QueueMessage::Begin(trip, at) => {
                        ordered.start = at;
                        let order = CallOrder::new(trip.clone());
                        header.trip = trip;
                        let out = out.take().ok_or_else(|| std::io::Error::other("begun twice"))?;
                        output = Some((TraceWriter::new(out, &header)?, order));
                        ordered.first = Some(ordered.highest());
                    }
                    QueueMessage::Thread(before, thread) => {
                        ordered.add(before, TraceEntry::Thread(thread))
                    }
                    QueueMessage::File(before, file) => ordered.add(before, TraceEntry::File(file)),
                    QueueMessage::Call(call) => drop(ordered.finished.insert(call.number, *call)),
                    QueueMessage::End(end) => {
                        let Some((mut writer, mut order)) = output else {
                            return Err(std::io::Error::other("nothing was begun").into());
                        };
                        // Those that have not returned leave gaps.
                        while let Some(number) = ordered.finished.keys().next().copied() {
                            ordered.next = number;
                            ordered.write_out(&mut writer, &mut order)?;
                        }
                        // What it has left running may have made calls since.
                        let at = end.at.saturating_sub(ordered.start).max(ordered.last_end);
                        let calls = writer.calls();
                        writer.end(TraceEnd { at, ..end })?;
                        return Ok(RecordingSummary { calls, at });
                    }
                }
                if let Some((writer, order)) = &mut output {
                    ordered.write_out(writer, order)?;
                }
            }
            if let Some((writer, _)) = &mut output
                && written.elapsed() >= WRITTEN_WITHIN
            {
                writer.write_through()?;
                written = Instant::now();
            }
        }
    }

    fn highest(&self) -> u64 {
        self.finished.keys().next_back().map_or(self.next, |number| number + 1)
    }

    fn add(&mut self, before: u64, entry: TraceEntry) {
        self.waiting.entry(before).or_default().push(entry);
    }

    /// Writes what is next, as far as all of it is known.
    fn write_out(
        &mut self,
        writer: &mut TraceWriter<Box<dyn Write + Send>>,
        order: &mut CallOrder,
    ) -> Result<()> {
        while let Some(FinishedCall { mut call, aside, .. }) = self.finished.remove(&self.next) {
            // What was told before this one, and before others that never returned.
            let later = self.waiting.split_off(&(self.next + 1));
            for entry in std::mem::replace(&mut self.waiting, later).into_values().flatten() {
                if let TraceEntry::Thread(thread) = &entry {
                    order.thread(thread);
                }
                writer.add(&entry)?;
            }
            let counts = self.first.is_some_and(|first| self.next >= first);
            self.next += 1;
            if !counts {
                continue;
            }
            call.start = call.start.saturating_sub(self.start);
            call.end = call.end.saturating_sub(self.start);
            self.last_end = self.last_end.max(call.end);
            order.call_beside(&mut call, aside);
            writer.add(&TraceEntry::Call(call))?;
        }
        Ok(())
    }
}
