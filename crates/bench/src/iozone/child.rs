//! One child in one test.
//!
//! A child opens its file, says that it is ready, waits for its start, and only then looks at the
//! clock. Its time ends after its fsync (-e) and close (-c), or when the stonewall stops it; what
//! it does in between apart from the calls themselves, making and checking data, is taken off.
//! Opening is never timed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_runtime::{MutexGuard, Nanos, now};
use steadfast_vfs::{Fh, FsError};

use super::data::FileData;
use super::engine::{Bench, Round, RunError, nanos};
use super::file::{OpenError, TestFile};
use super::latency::{Latencies, Operation};
use super::matrix::LatencyLine;
use super::observer::Action;
use super::plan::{self, OpenMode, Role, Stride, Wall};
use super::results::ChildResult;
use super::stonewall::{Score, Tally};
use crate::calls;

/// What a child has to show for a test.
pub(super) type ChildTest = (ChildResult, Score, Latencies);

/// Runs child `number` through a test.
pub(super) fn run(bench: &Bench, round: &Round, number: usize) -> Result<ChildTest, RunError> {
    let mut child = Child::new(bench, round, number);
    child.open(child.role.opening).inspect_err(|_| round.gate.give_up())?;
    if round.gate.wait_for_start(number)
        && let Err(e) = child.work()
    {
        round.failed.store(true, Ordering::SeqCst);
        child.abandon();
        return Err(e);
    }
    child.abandon();
    let (unit, score) = (bench.unit(), child.tally.score());
    let result = ChildResult {
        child: number,
        file: child.file.to_owned(),
        role: child.role.name,
        bytes: score.bytes,
        xfer: unit.amount(score.bytes),
        elapsed_ns: nanos(score.elapsed),
        rate: unit.rate(score),
        stopped: child.stopped,
        operations: child.operations,
    };
    Ok((result, score, child.latencies))
}

struct Child<'a> {
    bench: &'a Bench,
    round: &'a Round,
    number: usize,
    file: &'a str,
    role: Role,
    data: MutexGuard<'a, FileData>,
    handle: Option<Fh>,
    start: Nanos,
    /// Time spent on data rather than on calls.
    untimed: Duration,
    tally: Tally,
    /// Another child's finishing ended this one's time.
    stopped: bool,
    latencies: Latencies,
    operations: Vec<LatencyLine>,
    stride: Stride,
}

impl<'a> Child<'a> {
    fn new(bench: &'a Bench, round: &'a Round, number: usize) -> Child<'a> {
        Child {
            bench,
            round,
            number,
            file: &bench.files[number],
            role: plan::role(round.test, number, round.children, &bench.options),
            data: bench.data[number].lock(),
            handle: None,
            start: Nanos::ZERO,
            untimed: Duration::ZERO,
            tally: Tally::default(),
            stopped: false,
            latencies: Latencies::default(),
            operations: Vec::new(),
            stride: Stride::default(),
        }
    }

    /// The timed part, and what IOzone does behind it.
    fn work(&mut self) -> Result<(), RunError> {
        let records = self.bench.options.records();
        self.start = now();
        for i in 0..records.div_ceil(self.role.vector) {
            if self.round.is_lost() {
                return Ok(());
            }
            if self.round.wall.load(Ordering::SeqCst) && !self.tally.is_frozen() {
                match self.role.wall {
                    Wall::Stop => {
                        self.stopped = true;
                        break;
                    }
                    Wall::Freeze { close } => self.freeze(close)?,
                    Wall::None => {}
                }
            }
            let (bench, role) = (self.bench, &self.role);
            let (offset, len) = self.stride.call(i, role, &bench.options, &bench.shuffled);
            if self.role.writes {
                self.write(offset, len)?
            } else {
                self.read(offset, len)?
            }
            self.tally.completed(len, &self.round.wall);
        }
        self.finish()
    }

    /// Another child has finished: ends this one's time; it goes on uncounted, so that the tests
    /// that read find the whole file.
    fn freeze(&mut self, close: bool) -> Result<(), RunError> {
        self.stopped = true;
        if self.bench.options.include_fsync {
            self.fsync(true)?;
        }
        let reopen = close && self.bench.options.include_close;
        if reopen {
            self.close(true)?;
        }
        self.tally.freeze(self.elapsed());
        if reopen {
            self.open(OpenMode::Existing)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), RunError> {
        let before = matches!(self.role.wall, Wall::Freeze { .. });
        let after = self.role.wall == Wall::Stop;
        if before {
            self.raise_wall();
        }
        let timed = !self.tally.is_frozen();
        if self.bench.options.include_fsync {
            self.fsync(timed)?;
        }
        if self.bench.options.include_close {
            self.close(timed)?;
        }
        self.tally.freeze(self.elapsed());
        if after {
            self.raise_wall();
        }
        if !self.bench.options.include_close {
            // Not in the child's time, but in the parent's.
            self.fsync(false)?;
            self.close(false)?;
        }
        Ok(())
    }

    fn raise_wall(&self) {
        if self.bench.options.stonewall {
            self.round.wall.store(true, Ordering::SeqCst);
        }
    }

    fn elapsed(&self) -> Duration {
        now().since(self.start).saturating_sub(self.untimed)
    }

    fn write(&mut self, offset: u64, len: u64) -> Result<(), RunError> {
        let tag = self.data.next_tag();
        let before = now();
        let data = self.data.bytes(tag, offset, len as usize);
        self.untimed += now().since(before);
        let started = now();
        let action = Action::Write { offset, len, tag };
        let durable = self.role.writes_are_durable(&self.bench.options);
        let (at, fh) = (self.at(), self.handle());
        let written = at.observed(action, durable, || calls::write(at.fs, fh, offset, data));
        written.map_err(|(at, e)| self.failed(format!("writing {len} bytes at {at}"), e))?;
        self.data.wrote(tag, offset, len);
        self.done(Operation::Write, offset, len, started);
        Ok(())
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<(), RunError> {
        let started = now();
        let parts = calls::read(&*self.bench.fs, self.handle(), offset, len);
        let parts = parts.map_err(|(at, e)| match e {
            Some(e) => self.failed(format!("reading {len} bytes at {at}"), e),
            None => self.wrong(format!(
                "the file ends at {at}, before the end of the record of {len} bytes at {offset}; \
                 write it with -i 0 and the same -s and -r first"
            )),
        })?;
        self.done(Operation::Read, offset, len, started);
        if self.bench.options.verify || self.bench.options.pattern.is_some() {
            let before = now();
            let checked = self.data.check(offset, &calls::joined(parts));
            self.untimed += now().since(before);
            checked.map_err(|e| self.wrong(e.to_string()))?;
        }
        Ok(())
    }

    fn fsync(&mut self, timed: bool) -> Result<(), RunError> {
        if self.role.stdio && !self.role.writes {
            // fflush(3) of a stream that is read does nothing.
            return Ok(());
        }
        let synced = self.at().sync(self.handle());
        let took = synced.map_err(|e| self.failed("fsync".into(), e))?;
        if timed {
            self.note(Operation::Fsync, took);
        }
        Ok(())
    }

    fn close(&mut self, timed: bool) -> Result<(), RunError> {
        let Some(fh) = self.handle.take() else { return Ok(()) };
        let took = self.at().close(fh).map_err(|e| self.failed("closing".into(), e))?;
        if timed {
            self.note(Operation::Close, took);
        }
        Ok(())
    }

    /// Closes what an error or another child's failure has left open.
    fn abandon(&mut self) {
        if let Some(fh) = self.handle.take() {
            // The first error is the one that is reported.
            let _ = self.bench.fs.release(fh);
        }
    }

    /// Notes how long an operation took, while the child's time runs.
    fn note(&mut self, operation: Operation, took: Duration) {
        if !self.tally.is_frozen() {
            self.latencies.record(operation, took);
        }
    }

    /// Notes a read or write that has just ended, and keeps it for -Q.
    fn done(&mut self, operation: Operation, offset: u64, bytes: u64, started: Nanos) {
        let took = now().since(started);
        if self.bench.options.latency_files {
            self.operations.push(LatencyLine { offset, ns: nanos(took), bytes });
        }
        self.note(operation, took);
    }

    fn at(&self) -> TestFile<'a> {
        self.bench.test_file(self.number)
    }

    fn handle(&self) -> Fh {
        // OK to expect: `open` came first, and nothing is done after `close`.
        self.handle.expect("an open file")
    }

    /// Never timed.
    fn open(&mut self, mode: OpenMode) -> Result<(), RunError> {
        let opened = self.at().open(mode, self.role.flags(&self.bench.options));
        let (fh, emptied) = opened.map_err(|e| match e {
            OpenError::Lookup(e) => self.failed("looking for the file".into(), e),
            OpenError::NotRegular(kind) => {
                self.wrong(format!("this is no regular file ({kind:?})"))
            }
            OpenError::Empty(e) => self.failed("emptying".into(), e),
            OpenError::Create(e) => self.failed("making the file".into(), e),
            OpenError::Open(e) => self.failed("opening".into(), e),
        })?;
        self.handle = Some(fh);
        if emptied {
            self.data.emptied();
        }
        Ok(())
    }

    fn failed(&self, doing: String, source: FsError) -> RunError {
        RunError { source: Some(source), ..self.wrong(doing) }
    }

    fn wrong(&self, doing: String) -> RunError {
        RunError {
            test: Some(self.round.test),
            file: self.file.to_owned(),
            doing: format!("child {}: {doing}", self.number),
            source: None,
        }
    }
}
