//! Writing blocks in large requests, several in flight.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, DirectMemory, Payload, Request};

use crate::planted::Bug;
use crate::{Config, Log, Result};

/// Merges adjacent blocks into one request. Between [`push`] and [`finish`] completions are
/// unknown; `finish` reports an error.
///
/// [`push`]: Writer::push
/// [`finish`]: Writer::finish
pub(crate) struct Writer<'a> {
    device: &'a dyn BlockDevice,
    /// Stored there, in place of requests; durable after a fence.
    memory: Option<(&'a Log, &'a dyn DirectMemory)>,
    /// A planted bug: what is stored there is not written back.
    in_caches: bool,
    max_request: usize,
    in_flight_max: usize,
    pending: Payload,
    offset: u64,
    in_flight: VecDeque<Completion>,
    failed: Result<()>,
    cpu: Duration,
    pub requests: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(
        device: &'a dyn BlockDevice,
        max_request: usize,
        in_flight_max: usize,
    ) -> Self {
        Writer {
            device,
            memory: None,
            in_caches: false,
            max_request,
            in_flight_max: in_flight_max.max(1),
            pending: Payload::new(),
            offset: 0,
            in_flight: VecDeque::new(),
            failed: Ok(()),
            cpu: Duration::ZERO,
            requests: 0,
        }
    }

    /// Blocks of a log: stored, if the log's device is memory.
    pub(crate) fn to_log(log: &'a Log, config: &Config) -> Self {
        let max_request = config.max_request_bytes;
        Writer {
            memory: log.memory().map(|memory| (log, memory)),
            in_caches: config.has(Bug::LogLinesNotWrittenBack),
            ..Writer::new(&**log.device(), max_request, usize::MAX)
        }
    }

    /// Adds processor time that the next request has cost.
    pub(crate) fn charge(&mut self, cpu: Duration) {
        self.cpu += cpu;
    }

    /// Writes `data` at byte `offset`, now or together with what follows.
    pub(crate) fn push(&mut self, offset: u64, data: Bytes) {
        let follows = self.offset + self.pending.len() as u64 == offset;
        if !follows || self.pending.len() + data.len() > self.max_request {
            self.submit();
        }
        if self.pending.is_empty() {
            self.offset = offset;
        }
        self.pending.push(data);
    }

    /// Starts what has been gathered.
    pub(crate) fn submit(&mut self) {
        steadfast_runtime::cpu(std::mem::take(&mut self.cpu));
        if self.pending.is_empty() {
            return;
        }
        if self.in_flight.len() >= self.in_flight_max {
            self.wait_oldest();
        }
        let data = std::mem::take(&mut self.pending);
        self.requests += 1;
        if let Some((log, memory)) = self.memory {
            if self.failed.is_ok() {
                self.failed = self.store(log, memory, &data);
            }
            return;
        }
        let request = Request::Write { offset: self.offset, data, fua: false };
        self.in_flight.push_back(self.device.submit(request));
    }

    fn store(&self, log: &Log, memory: &dyn DirectMemory, data: &Payload) -> Result<()> {
        let mut offset = self.offset;
        for part in data.parts() {
            match self.in_caches {
                true => memory.store(offset, part)?,
                false => log.store(memory, offset, part)?,
            }
            offset += part.len() as u64;
        }
        Ok(())
    }

    fn wait_oldest(&mut self) {
        if let Some(oldest) = self.in_flight.pop_front() {
            let result = oldest.wait().map(drop).map_err(Into::into);
            if self.failed.is_ok() {
                self.failed = result;
            }
        }
    }

    /// Waits until everything pushed so far has completed; the first error, if any. All writes
    /// are waited for even so: none is in flight afterwards.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.submit();
        while !self.in_flight.is_empty() {
            self.wait_oldest();
        }
        self.failed.clone()
    }
}
