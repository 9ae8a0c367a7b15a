//! Reads a trace in a thread of its own: what a line costs to read (about 5 us) is no time of the
//! calls.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use super::TraceSource;
use crate::error::{Result, TraceError};
use crate::format::{TraceCall, TraceEntry};

/// Calls that are handed over together.
const BATCH: usize = 256;
/// So many of these wait to be taken, at most.
const BATCHES: usize = 64;

type CallBatch = Result<Vec<TraceCall>>;

/// The calls of a trace, in order.
pub(super) struct CallFeed {
    way: Receiver<CallBatch>,
    batch: std::vec::IntoIter<TraceCall>,
    thread: Option<JoinHandle<()>>,
}

impl CallFeed {
    /// Begins to read; returns when all is read, or as much as is kept.
    ///
    /// # Errors
    /// The trace cannot be read; there is no thread.
    pub fn of(trace: &dyn TraceSource) -> Result<CallFeed> {
        let mut reader = trace.read()?;
        let (give, way) = sync_channel(BATCHES);
        let (tell, is_full) = sync_channel::<()>(1);
        let mut tell = Some(tell);
        let read = move || {
            loop {
                let mut batch = Vec::with_capacity(BATCH);
                let failed = loop {
                    match reader.next_entry() {
                        Ok(Some(TraceEntry::Call(call))) => batch.push(call),
                        Ok(Some(_)) => {}
                        Ok(None) => break None,
                        Err(e) => break Some(e),
                    }
                    if batch.len() == BATCH {
                        break None;
                    }
                };
                let is_last = batch.len() < BATCH;
                if !send(&give, Ok(batch), &mut tell) {
                    return;
                }
                if let Some(e) = failed {
                    send(&give, Err(e), &mut tell);
                }
                if is_last {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("trace-read".into()).spawn(read)?;
        // Nobody tells: the thread has ended.
        let _ = is_full.recv();
        Ok(CallFeed { way, batch: Vec::new().into_iter(), thread: Some(thread) })
    }

    /// The next call; `None` at the end.
    ///
    /// # Errors
    /// The trace is damaged there.
    pub fn next_call(&mut self) -> Result<Option<TraceCall>> {
        loop {
            if let Some(call) = self.batch.next() {
                return Ok(Some(call));
            }
            match self.way.recv() {
                Ok(batch) => self.batch = batch?.into_iter(),
                // It has ended; a panic of it is no end of the trace.
                Err(_) => {
                    return match self.thread.take().map(JoinHandle::join) {
                        Some(Err(_)) => {
                            let gone = std::io::Error::other("the thread that reads it is gone");
                            Err(TraceError::File(gone))
                        }
                        _ => Ok(None),
                    };
                }
            }
        }
    }
}

/// Whether somebody still takes calls. If there is no room, who waits for the beginning is told.
fn send(give: &SyncSender<CallBatch>, batch: CallBatch, tell: &mut Option<SyncSender<()>>) -> bool {
    match give.try_send(batch) {
        Ok(()) => true,
        Err(TrySendError::Disconnected(_)) => false,
        Err(TrySendError::Full(batch)) => {
            drop(tell.take());
            give.send(batch).is_ok()
        }
    }
}
