//! One child in one test.
//!
//! A child opens its file, says that it is ready, waits for its start, and only then looks at the
//! clock. Its time ends after its fsync (-e) and close (-c), or when the stonewall stops it; what
//! it does in between apart from the calls themselves, making and checking data, is taken off.
//! Opening is never timed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use steadfast_runtime::{MutexGuard, Nanos, cpu, now};
use steadfast_vfs::{Attr, Fh, FileType, FsError, NewNode, OpenFlags, path};

use super::data::FileData;
use super::engine::{Bench, Round, RunError};
use super::latency::{Latencies, Operation};
use super::matrix::LatencyLine;
use super::observer::{Action, Call};
use super::plan::{self, OpenMode, RecordOrder, Role, Wall};
use super::stonewall::{Score, Tally};

/// Processor time of a system call apart from what the file system does: entry, exit, finding
/// the file, checking the buffer. Declared in the simulation; real calls take their own.
pub(super) const SYSCALL: Duration = Duration::from_micros(1);

/// Mode of IOzone's files.
pub(super) const MODE: u16 = 0o640;

/// What a child has to show for a test.
pub(super) struct ChildTest {
    pub(super) role: &'static str,
    pub(super) score: Score,
    pub(super) stopped: bool,
    pub(super) latencies: Latencies,
    /// Each operation, for -Q.
    pub(super) operations: Vec<LatencyLine>,
}

/// Runs child `number` through a test.
pub(super) fn run(bench: &Bench, round: &Round, number: usize) -> Result<ChildTest, RunError> {
    let mut child = Child::new(bench, round, number);
    if let Err(e) = child.open() {
        round.gate.give_up();
        return Err(e);
    }
    if round.gate.wait_for_start(number)
        && let Err(e) = child.work()
    {
        round.failed.store(true, Ordering::SeqCst);
        child.abandon();
        return Err(e);
    }
    child.abandon();
    Ok(ChildTest {
        role: child.role.name,
        score: child.tally.score(),
        stopped: child.stopped,
        latencies: child.latencies,
        operations: child.operations,
    })
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
            if self.round.wall.is_up() && !self.tally.is_frozen() {
                match self.role.wall {
                    Wall::Stop => {
                        self.stopped = true;
                        break;
                    }
                    Wall::Freeze { close } => self.freeze(close)?,
                    Wall::None => {}
                }
            }
            let (offset, len) = self.range(i, records);
            if self.role.writes {
                self.write(offset, len)?
            } else {
                self.read(offset, len)?
            }
            self.tally.completed(len, &self.round.wall);
        }
        self.finish()
    }

    /// Byte range of call `i`.
    fn range(&mut self, i: u64, records: u64) -> (u64, u64) {
        let (first, count) = match self.role.order {
            RecordOrder::Forward => {
                let first = i * self.role.vector;
                (first, self.role.vector.min(records - first))
            }
            RecordOrder::Backward => (records - 1 - i, 1),
            RecordOrder::Shuffled => (self.bench.shuffled[i as usize], 1),
            RecordOrder::Stride => (self.stride.next(records, self.bench.options.stride), 1),
            RecordOrder::Same => (0, 1),
        };
        let record = self.bench.options.record_bytes;
        (first * record, count * record)
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
            let attr = self.existing()?;
            self.open_existing(attr)?;
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
            self.round.wall.raise();
        }
    }

    fn elapsed(&self) -> Duration {
        now().since(self.start).saturating_sub(self.untimed)
    }

    fn write(&mut self, offset: u64, len: u64) -> Result<(), RunError> {
        let tag = self.data.next_tag();
        let before = now();
        let mut rest = self.data.bytes(tag, offset, len as usize);
        self.untimed += now().since(before);
        let action = Action::Write { offset, len, tag };
        let call = Call { child: self.number, file: self.file, action, started: now() };
        self.bench.observer.started(&call);
        let fh = self.handle();
        while !rest.is_empty() {
            cpu(SYSCALL);
            let at = offset + len - rest.len() as u64;
            let done = self.bench.fs.write(fh, at, rest.clone()).and_then(|done| match done {
                0 => Err(FsError::Io { what: "nothing was written, and no error given".into() }),
                done => Ok(done.min(rest.len())),
            });
            let done = done.map_err(|e| self.failed(format!("writing {len} bytes at {at}"), e))?;
            rest = rest.slice(done..);
        }
        let at = now();
        self.bench.observer.finished(&call, at, self.writes_are_durable());
        self.data.wrote(tag, offset, len);
        self.line(offset, len, call.started, at);
        self.note(Operation::Write, call.started, at);
        Ok(())
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<(), RunError> {
        let started = now();
        let fh = self.handle();
        let mut parts: Vec<Bytes> = Vec::with_capacity(1);
        let mut at = offset;
        while at < offset + len {
            cpu(SYSCALL);
            let part = self.bench.fs.read(fh, at, (offset + len - at) as usize);
            let part = part.map_err(|e| self.failed(format!("reading {len} bytes at {at}"), e))?;
            if part.is_empty() {
                return Err(self.wrong(format!(
                    "the file ends at {at}, before the end of the record of {len} bytes at \
                     {offset}; write it with -i 0 and the same -s and -r first"
                )));
            }
            at += part.len() as u64;
            parts.push(part);
        }
        let ended = now();
        self.line(offset, len, started, ended);
        self.note(Operation::Read, started, ended);
        if self.bench.options.verify || self.bench.options.pattern.is_some() {
            let before = now();
            let checked = match &parts[..] {
                [whole] => self.data.check(offset, whole),
                parts => self.data.check(offset, &parts.concat()),
            };
            self.untimed += now().since(before);
            checked.map_err(|m| self.wrong(format!("wrong data at {}: {}", m.offset, m.what)))?;
        }
        Ok(())
    }

    fn fsync(&mut self, timed: bool) -> Result<(), RunError> {
        if self.role.stdio && !self.role.writes {
            // fflush(3) of a stream that is read does nothing.
            return Ok(());
        }
        let started = now();
        cpu(SYSCALL);
        let synced = self.bench.fs.fsync(self.handle(), false);
        synced.map_err(|e| self.failed("fsync".into(), e))?;
        let at = now();
        self.bench.observer.synced(Some(self.file), started, at);
        if timed {
            self.note(Operation::Fsync, started, at);
        }
        Ok(())
    }

    fn close(&mut self, timed: bool) -> Result<(), RunError> {
        let Some(fh) = self.handle.take() else { return Ok(()) };
        let started = now();
        cpu(SYSCALL);
        self.bench.fs.release(fh).map_err(|e| self.failed("closing".into(), e))?;
        if timed {
            self.note(Operation::Close, started, now());
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
    fn note(&mut self, operation: Operation, started: Nanos, ended: Nanos) {
        if !self.tally.is_frozen() {
            self.latencies.record(operation, ended.since(started));
        }
    }

    /// Keeps an operation for -Q.
    fn line(&mut self, offset: u64, bytes: u64, started: Nanos, ended: Nanos) {
        if self.bench.options.latency_files {
            let ns = u64::try_from(ended.since(started).as_nanos()).unwrap_or(u64::MAX);
            self.operations.push(LatencyLine { offset, ns, bytes });
        }
    }

    fn handle(&self) -> Fh {
        // OK to expect: `open` came first, and nothing is done after `close`.
        self.handle.expect("an open file")
    }
}

/// Opening, which is never timed.
impl<'a> Child<'a> {
    fn open(&mut self) -> Result<(), RunError> {
        match (self.existing(), self.role.opening) {
            (Ok(attr), OpenMode::Existing | OpenMode::Create) => self.open_existing(attr),
            (Ok(attr), OpenMode::Empty) => {
                self.empty(attr)?;
                self.open_existing(attr)
            }
            (Err(e), OpenMode::Create | OpenMode::Empty) if e.source == Some(FsError::NotFound) => {
                self.create()
            }
            (Err(e), _) => Err(e),
        }
    }

    fn existing(&self) -> Result<Attr, RunError> {
        let attr = path::resolve(&*self.bench.fs, self.file.as_bytes(), true)
            .map_err(|e| self.failed("looking for the file".into(), e))?;
        match attr.kind {
            FileType::Regular => Ok(attr),
            kind => Err(self.wrong(format!("this is no regular file ({kind:?})"))),
        }
    }

    fn flags(&self) -> OpenFlags {
        let o = &self.bench.options;
        let mut flags = OpenFlags::READ;
        flags.set(OpenFlags::WRITE, self.role.writes);
        flags.set(OpenFlags::SYNC, o.sync && !self.role.stdio);
        flags.set(OpenFlags::DSYNC, o.dsync && !self.role.stdio && self.role.writes);
        flags.set(OpenFlags::DIRECT, o.direct && !self.role.stdio);
        flags
    }

    fn writes_are_durable(&self) -> bool {
        self.flags().intersects(OpenFlags::SYNC | OpenFlags::DSYNC)
    }

    fn open_existing(&mut self, attr: Attr) -> Result<(), RunError> {
        let opened = self.bench.fs.open(attr.ino, self.flags());
        self.handle = Some(opened.map_err(|e| self.failed("opening".into(), e))?);
        Ok(())
    }

    /// creat(2) of a file that is there.
    fn empty(&mut self, attr: Attr) -> Result<(), RunError> {
        let call = self.truncation();
        let flags = OpenFlags::WRITE | OpenFlags::TRUNCATE;
        let emptied = self.bench.fs.open(attr.ino, flags).and_then(|fh| self.bench.fs.release(fh));
        emptied.map_err(|e| self.failed("emptying".into(), e))?;
        self.bench.observer.finished(&call, now(), false);
        self.data.emptied();
        Ok(())
    }

    fn create(&mut self) -> Result<(), RunError> {
        let call = self.truncation();
        let node = NewNode { mode: MODE, ..NewNode::default() };
        let made = path::parent_and_name(&*self.bench.fs, self.file.as_bytes())
            .and_then(|(dir, name)| self.bench.fs.create(dir, name, node, self.flags()));
        let (_, fh) = made.map_err(|e| self.failed("making the file".into(), e))?;
        self.handle = Some(fh);
        self.bench.observer.finished(&call, now(), false);
        self.data.emptied();
        Ok(())
    }

    /// Announces that the file is about to be made or emptied.
    fn truncation(&self) -> Call<'a> {
        let (child, action) = (self.number, Action::Truncate);
        let call = Call { child, file: self.file, action, started: now() };
        self.bench.observer.started(&call);
        call
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

/// Where the stride test reads: every so many records; near the end of the file round again,
/// each time one record further in.
#[derive(Default)]
pub(super) struct Stride {
    position: u64,
    wraps: u64,
}

impl Stride {
    /// The record to read now.
    pub(super) fn next(&mut self, records: u64, stride: u64) -> u64 {
        let now = self.position;
        if now + 1 + stride >= records - 1 {
            self.wraps += 1;
            self.position = if records <= stride { 0 } else { self.wraps % records };
        } else {
            self.position += stride;
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_wrap_one_record_further_in() {
        let mut s = Stride::default();
        let records: Vec<u64> = (0..9).map(|_| s.next(64, 17)).collect();
        assert_eq!(records, [0, 17, 34, 51, 1, 18, 35, 52, 2]);
        let mut short = Stride::default();
        assert_eq!([short.next(16, 17), short.next(16, 17)], [0, 0]);
        assert_eq!(Stride::default().next(1, 17), 0);
    }
}
