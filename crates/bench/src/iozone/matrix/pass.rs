//! One test: open, records, fsync, close.
//!
//! The time begins when the file is open, and ends after fsync (-e) and close (-c). What is done
//! in between apart from the calls, making and checking data, computing (-J), is taken off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use steadfast_runtime::{Nanos, cpu, now, sleep, spawn};
use steadfast_vfs::{Fh, FileSystem, FsError, bounded};

use super::cell::Runner;
use super::column::Column;
use super::results::{LatencyLine, RunOf};
use super::target::{Mapping, TargetError};
use crate::calls;
use crate::iozone::engine::{RunError, nanos};
use crate::iozone::file::OpenError;
use crate::iozone::latency::{Latencies, Operation};
use crate::iozone::observer::Action;
use crate::iozone::options::{MmapSync, QueueDepth};
use crate::iozone::plan::{Role, Stride};
use crate::{cpu_since, cpu_used};

/// Bytes of a telemetry file, at most.
const TELEMETRY_MAX: u64 = 64 << 20;

/// A call of a test: where, how much, and how long to compute before it.
#[derive(Debug, Clone, Copy)]
struct Step {
    offset: u64,
    len: u64,
    compute: Duration,
}

/// What is kept of a test while it runs.
#[derive(Default)]
struct TestTotals {
    untimed: Duration,
    bytes: u64,
    latencies: Latencies,
    lines: Vec<LatencyLine>,
}

impl TestTotals {
    fn note(&mut self, operation: Operation, step: Step, took: Duration, lines: bool) {
        self.bytes += step.len;
        self.latencies.record(operation, took);
        if lines {
            let Step { offset, len: bytes, .. } = step;
            self.lines.push(LatencyLine { offset, ns: nanos(took), bytes });
        }
    }
}

/// Processor time to copy a record, at the page cache's rate; declared in the simulation.
fn copied(bytes: u64) -> Duration {
    Duration::from_nanos(bytes / 10)
}

impl Runner<'_> {
    /// Runs a test once.
    pub(super) fn pass(&mut self, column: Column) -> Result<RunOf, RunError> {
        let role = column.role(&self.options);
        let steps = self.steps(column, &role)?;
        let (matrix, place) = (self.matrix, self.around.place);
        let drops = matrix.drop_caches && column.reads();
        let caches = self.of_place("--drop-caches", drops, || place.drop_caches(&self.file))?;
        let fh = self.open(&role)?;
        let lock = || place.lock(&self.file, role.writes);
        let lock = self.of_place("-W", matrix.locked, lock)?;
        let len = self.options.records() * self.options.record_bytes;
        let map = || place.map(&self.file, len, role.writes);
        let mut mapping = self.of_place("-B", matrix.mapped.is_some(), map)?;
        let used = cpu_used();
        let start = now();
        let mut kept = TestTotals::default();
        let done = match (&mut mapping, self.matrix.depth) {
            (None, Some(depth)) => self.in_flight(fh, &role, &steps, depth, &mut kept),
            (mapping, _) => self.one_by_one(fh, &role, &steps, mapping, &mut kept),
        };
        let mut end = self.end(fh, &role, start, kept, done)?;
        end.cpu_ns = self.options.cpu_use.then(|| cpu_since(used)).flatten();
        end.caches = caches;
        drop(mapping);
        drop(lock);
        Ok(end)
    }

    /// fsync and close, inside the time or behind it.
    fn end(
        &mut self,
        fh: Fh,
        role: &Role,
        start: Nanos,
        mut kept: TestTotals,
        done: Result<(), RunError>,
    ) -> Result<RunOf, RunError> {
        let Err(e) = done else {
            let o = &self.options;
            let (fsync, close) = (o.include_fsync, o.include_close);
            // fflush(3) of a stream that is read does nothing.
            let syncs = !role.stdio || role.writes;
            if fsync && syncs {
                let took = self.done("fsync", self.at().sync(fh))?;
                kept.latencies.record(Operation::Fsync, took);
            }
            if close {
                let took = self.done("closing", self.at().close(fh))?;
                kept.latencies.record(Operation::Close, took);
            }
            let elapsed = now().since(start).saturating_sub(kept.untimed);
            if !close {
                if syncs && !fsync && role.writes {
                    self.done("fsync", self.at().sync(fh))?;
                }
                self.done("closing", self.at().close(fh))?;
            }
            return Ok(RunOf {
                bytes: kept.bytes,
                elapsed_ns: nanos(elapsed).max(1),
                latency: kept.latencies.percentiles(),
                cpu_ns: None,
                caches: None,
                operations: kept.lines,
            });
        };
        // The first error is the one that is reported.
        let _ = self.fs.release(fh);
        Err(e)
    }

    fn done<T>(&self, doing: &str, done: Result<T, FsError>) -> Result<T, RunError> {
        done.map_err(|e| self.failed(doing.into(), Some(e)))
    }

    /// All calls of a test.
    fn steps(&self, column: Column, role: &Role) -> Result<Vec<Step>, RunError> {
        let telemetry = match column.number() {
            0 => &self.matrix.write_telemetry,
            1 => &self.matrix.read_telemetry,
            _ => &None,
        };
        if let Some(file) = telemetry {
            return self.telemetry(file);
        }
        let compute = Duration::from_millis(self.matrix.compute_ms);
        let mut stride = Stride::default();
        let step = |i: u64| {
            let (offset, len) = stride.call(i, role, &self.options, &self.shuffled);
            Step { offset, len, compute }
        };
        Ok((0..self.options.records().div_ceil(role.vector)).map(step).collect())
    }

    /// Lines of byte offset, bytes and milliseconds of computing.
    fn telemetry(&self, file: &str) -> Result<Vec<Step>, RunError> {
        let wrong = |what: String| self.failed(format!("telemetry file {file}: {what}"), None);
        let text = bounded::text(file.as_ref(), TELEMETRY_MAX).map_err(|e| wrong(e.to_string()))?;
        let limit = self.options.file_bytes;
        let mut steps = Vec::new();
        for (n, line) in (1..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty()) {
            let numbers: Option<Vec<f64>> =
                line.split_whitespace().map(|word| word.parse().ok()).collect();
            let Some([offset, len, ms]) = numbers.as_deref() else {
                return Err(wrong(format!("line {n} is not: offset, bytes, milliseconds")));
            };
            let (offset, len) = (*offset as u64, *len as u64);
            let fits = offset.checked_add(len).is_some_and(|end| end <= limit);
            let record = self.options.record_bytes;
            let sectors = offset.is_multiple_of(512) && len.is_multiple_of(512);
            if len == 0
                || len > record.max(16 << 20)
                || !fits
                || !sectors
                || !(0.0..1e9).contains(ms)
            {
                return Err(wrong(format!(
                    "line {n}: offset and bytes are whole sectors within the file (-s)"
                )));
            }
            steps.push(Step { offset, len, compute: Duration::from_secs_f64(ms / 1e3) });
        }
        if steps.is_empty() {
            return Err(wrong("it has no lines".into()));
        }
        Ok(steps)
    }

    /// What only the place of the files can do, if the option says so.
    fn of_place<T>(
        &self,
        option: &str,
        is_given: bool,
        call: impl FnOnce() -> Result<T, TargetError>,
    ) -> Result<Option<T>, RunError> {
        let done = is_given.then(call).transpose();
        done.map_err(|e| self.failed(format!("{option}: {e}"), None))
    }

    fn open(&mut self, role: &Role) -> Result<Fh, RunError> {
        let opened = self.at().open(role.opening, role.flags(&self.options));
        let (fh, emptied) = opened.map_err(|e| match e {
            OpenError::NotRegular(_) => self.failed("this is no regular file".into(), None),
            OpenError::Lookup(e) => {
                let doing = "opening (this test reads or overwrites the file that -i 0 makes)";
                self.failed(doing.into(), Some(e))
            }
            OpenError::Empty(e) | OpenError::Create(e) | OpenError::Open(e) => {
                self.failed("opening".into(), Some(e))
            }
        })?;
        if emptied {
            self.data.emptied();
        }
        Ok(fh)
    }

    fn one_by_one(
        &mut self,
        fh: Fh,
        role: &Role,
        steps: &[Step],
        mapping: &mut Option<Box<dyn Mapping>>,
        kept: &mut TestTotals,
    ) -> Result<(), RunError> {
        let durable = role.writes_are_durable(&self.options);
        for (i, step) in steps.iter().enumerate() {
            let before = now();
            sleep(step.compute);
            let data = role.writes.then(|| {
                let tag = self.data.next_tag();
                (tag, self.data.bytes(tag, step.offset, step.len as usize))
            });
            kept.untimed += now().since(before);
            let started = now();
            let mapped = mapping.as_mut().filter(|_| !(self.matrix.mapped_mixed && i % 2 == 1));
            let read = match (data, mapped) {
                (Some((tag, data)), mapped) => {
                    let Step { offset, len, .. } = *step;
                    let action = Action::Write { offset, len, tag };
                    match mapped {
                        Some(mapping) => {
                            let durable = self.matrix.mapped == Some(MmapSync::Sync);
                            self.at().observed(action, durable, || {
                                self.store(&mut **mapping, *step, &data)
                            })?;
                        }
                        None => {
                            self.at().observed(action, durable, || self.write(fh, *step, data))?
                        }
                    }
                    self.data.wrote(tag, step.offset, step.len);
                    None
                }
                (None, Some(mapping)) => {
                    let mut buf = vec![0; step.len as usize];
                    mapping.read(step.offset, &mut buf);
                    Some(Bytes::from(buf))
                }
                (None, None) => {
                    self.disrupt(fh, i)?;
                    Some(self.read(fh, *step)?)
                }
            };
            let operation = if role.writes { Operation::Write } else { Operation::Read };
            let ended = now();
            kept.note(operation, *step, ended.since(started), self.options.latency_files);
            if let Some(data) = read {
                let checked = self.data.check(step.offset, &data);
                checked.map_err(|e| self.failed(e.to_string(), None))?;
                kept.untimed += now().since(ended);
            }
        }
        Ok(())
    }

    /// -K: reads another page, so that nothing is in order.
    fn disrupt(&self, fh: Fh, i: usize) -> Result<(), RunError> {
        if !self.matrix.disrupted {
            return Ok(());
        }
        let pages = (self.options.file_bytes / 4096).max(1);
        let page = (i as u64).wrapping_mul(0x9e37_79b9) % pages;
        self.read(fh, Step { offset: page * 4096, len: 4096, compute: Duration::ZERO }).map(drop)
    }

    fn store(&self, to: &mut dyn Mapping, step: Step, data: &[u8]) -> Result<(), RunError> {
        to.write(step.offset, data);
        let wait = match self.matrix.mapped {
            Some(MmapSync::Sync) => true,
            Some(MmapSync::Async) => false,
            _ => return Ok(()),
        };
        let synced = to.sync(step.offset, step.len, wait);
        synced.map_err(|e| self.failed(format!("msync at {}: {e}", step.offset), None))
    }

    fn write(&self, fh: Fh, step: Step, data: Bytes) -> Result<(), RunError> {
        calls::write(&**self.fs, fh, step.offset, data).map_err(|(_, e)| {
            self.failed(format!("writing {} bytes at {}", step.len, step.offset), Some(e))
        })
    }

    fn read(&self, fh: Fh, step: Step) -> Result<Bytes, RunError> {
        let Step { offset, len, .. } = step;
        let parts = calls::read(&**self.fs, fh, offset, len).map_err(|(_, e)| match e {
            Some(e) => self.failed(format!("reading {len} bytes at {offset}"), Some(e)),
            None => {
                let what = format!("the file ends before the {len} bytes at {offset}");
                let how = "write it with -i 0 and the same -s and -r first";
                self.failed(format!("{what}; {how}"), None)
            }
        })?;
        Ok(calls::joined(parts))
    }

    /// -H and -k: so many calls at a time, each by a task.
    fn in_flight(
        &mut self,
        fh: Fh,
        role: &Role,
        steps: &[Step],
        depth: QueueDepth,
        kept: &mut TestTotals,
    ) -> Result<(), RunError> {
        let before = now();
        let most = steps.iter().map(|s| s.len).max().unwrap_or(0);
        let tag = self.data.next_tag();
        let data = self.data.bytes(tag, 0, most as usize);
        kept.untimed += now().since(before);
        let (next, steps) = (Arc::new(AtomicU64::new(0)), Arc::new(steps.to_vec()));
        let tasks: Vec<_> = (0..depth.requests.min(steps.len()))
            .map(|i| {
                let (fs, next, steps) =
                    (Arc::clone(self.fs), Arc::clone(&next), Arc::clone(&steps));
                let work = Requests { fs, fh, writes: role.writes, copies: depth.copies };
                let data = data.clone();
                spawn(format!("request {i}"), move || work.run(&next, &steps, &data))
            })
            .collect();
        let operation = if role.writes { Operation::Write } else { Operation::Read };
        let mut first = Ok(());
        for task in tasks {
            match task.join().unwrap_or_else(|p| p.resume()) {
                Ok(done) => {
                    for (step, took) in done {
                        kept.note(operation, step, took, self.options.latency_files);
                    }
                }
                Err(e) if first.is_ok() => first = Err(self.failed("a request".into(), Some(e))),
                Err(_) => {}
            }
        }
        first
    }
}

/// A task that has one request under way at a time.
struct Requests {
    fs: Arc<dyn FileSystem>,
    fh: Fh,
    writes: bool,
    copies: bool,
}

impl Requests {
    fn run(
        &self,
        next: &AtomicU64,
        steps: &[Step],
        data: &Bytes,
    ) -> Result<Vec<(Step, Duration)>, FsError> {
        let mut done = Vec::new();
        while let Some(step) = steps.get(next.fetch_add(1, SeqCst) as usize) {
            let started = now();
            if self.copies {
                cpu(copied(step.len));
            }
            if self.writes {
                let part = data.slice(..step.len as usize);
                let part = if self.copies { Bytes::copy_from_slice(&part) } else { part };
                calls::write(&*self.fs, self.fh, step.offset, part).map_err(|(_, e)| e)?;
            } else {
                let short = || FsError::Io { what: "the file is too short".into() };
                let read = calls::read(&*self.fs, self.fh, step.offset, step.len)
                    .map_err(|(_, e)| e.unwrap_or_else(short))?;
                if self.copies {
                    std::hint::black_box(calls::joined(read).to_vec());
                }
            }
            done.push((*step, now().since(started)));
        }
        Ok(done)
    }
}
