//! One job: its tasks, each with one request in flight.

use std::sync::Arc;

use steadfast_runtime::{Condvar, JoinHandle, Mutex, Nanos, cpu, now, sleep_until, spawn};
use steadfast_vfs::{Advice, FileSystem, FsError};

use super::buffer::TaskBuffer;
use super::files::{FileCallError, OpenFiles};
use super::io_log::StepAction;
use super::offsets::FioRequest;
use super::options::{IoEngine, RequestKind, Verification};
use super::plan::FioJob;
use super::results::JobFault;
use super::stats::{JobFigures, RequestTimes};
use super::steps::{JobState, StepEnd, TaskStep};
use super::verify;
use crate::calls::{self, SYSCALL};
use crate::cpu::{TaskClock, TaskUse};

/// What the tasks of a job share.
struct JobRun {
    fs: Arc<dyn FileSystem>,
    job: Arc<FioJob>,
    files: OpenFiles,
    state: Mutex<JobState>,
    /// Notified when a pass begins, and when the job is over.
    next_pass: Condvar,
}

/// What a read brought.
struct ReadData {
    /// Where it is looked at.
    data: Option<Vec<u8>>,
    /// In how many parts it came.
    parts: usize,
}

/// Runs a job; `number`: among all, from 1 on.
pub(super) fn run(
    fs: &Arc<dyn FileSystem>,
    job: &Arc<FioJob>,
    number: u64,
) -> (JobFigures, Option<JobFault>) {
    // As in fio, opening and what the page cache is told then are in a job's time.
    let began = now().0;
    let files = match OpenFiles::open(fs, job) {
        Ok(files) => files,
        Err(e) => return (JobFigures::default(), Some(e.into())),
    };
    let state = Mutex::new(JobState::new(job, number, began));
    let run = Arc::new(JobRun {
        fs: Arc::clone(fs),
        job: Arc::clone(job),
        files,
        state,
        next_pass: Condvar::new(),
    });
    let others: Vec<JoinHandle<TaskUse>> = (1..job.depth())
        .map(|task| {
            let run = Arc::clone(&run);
            spawn(format!("{} {task}", job.options.name), move || run.task(task))
        })
        .collect();
    let mut used = run.task(0);
    for task in others {
        used.merge(&task.join().unwrap_or_else(|panicked| panicked.resume()));
    }
    run.end();
    run.verify();
    // OK to expect: all tasks have ended, and each has let go of it.
    let run = Arc::into_inner(run).expect("no task is left");
    let mut state = run.state.into_inner();
    state.figures.tasks.merge(&used);
    if let Err(e) = run.files.close() {
        state.fail(e);
    }
    (state.figures, state.fault)
}

impl JobRun {
    /// Requests, one after the other, until the job is over.
    fn task(&self, number: u64) -> TaskUse {
        let o = &self.job.options;
        let clock = TaskClock::start();
        let largest = o.sizes[RequestKind::Write as usize].most as usize;
        let mut buffer = match o.mix.writes && !self.job.is_null() {
            true => TaskBuffer::new(o.buffers, self.job.seed ^ number << 32, largest),
            false => TaskBuffer::new(o.buffers, 0, 0),
        };
        let (mut done, mut chosen) = (StepEnd::Nothing, now().0);
        loop {
            let mut state = self.state.lock();
            let mut step = state.step(done, chosen);
            // In the order of the log, also where several requests are in flight: nobody takes a
            // step meanwhile.
            while let TaskStep::Between { action, file, at } = step {
                if self.is_time(at, state.ends_at, &mut chosen)
                    && let Err(e) = self.between(action, file)
                {
                    state.fail(e);
                }
                chosen = now().0;
                step = state.step(StepEnd::Nothing, chosen);
            }
            let (ends_at, pass) = (state.ends_at, state.pass);
            drop(state);
            if matches!(step, TaskStep::Pass | TaskStep::End) {
                self.next_pass.notify_all();
            }
            done = match step {
                TaskStep::End => break,
                TaskStep::Quiet => {
                    let state = self.state.lock();
                    drop(self.next_pass.wait_while(state, |state| state.waits_in(pass)));
                    StepEnd::Nothing
                }
                TaskStep::Pass => {
                    if let Err(e) = self.files.advise() {
                        self.state.lock().fail(e);
                    }
                    StepEnd::Nothing
                }
                TaskStep::Between { .. } => StepEnd::Nothing,
                TaskStep::Sync { file, data_only, at } => {
                    match self.is_time(at, ends_at, &mut chosen) {
                        true => self.sync(file, data_only),
                        false => StepEnd::Nothing,
                    }
                }
                TaskStep::Request { request, at, tag, again } => {
                    if again && let Err(e) = self.files.forget(request.file) {
                        self.state.lock().fail(e);
                    }
                    match self.is_time(at, ends_at, &mut chosen) {
                        true => self.request(&request, tag, &mut buffer, chosen),
                        false => StepEnd::GivenUp,
                    }
                }
            };
            chosen = match done {
                StepEnd::Request { times, .. } => times.returned,
                _ => now().0,
            };
        }
        clock.used()
    }

    /// Waits until it is time; whether that is before the job's end.
    fn is_time(&self, at: u64, ends_at: u64, chosen: &mut u64) -> bool {
        if at > *chosen {
            sleep_until(Nanos(at.min(ends_at)));
            *chosen = now().0;
        }
        at < ends_at
    }

    /// What a log has between requests.
    fn between(&self, action: StepAction, file: usize) -> Result<(), FileCallError> {
        match action {
            StepAction::Open => self.files.open_one(file),
            StepAction::Close => self.files.close_one(file),
            // Its time is over.
            _ => Ok(()),
        }
    }

    fn sync(&self, file: usize, data_only: bool) -> StepEnd {
        let started = now();
        cpu(SYSCALL);
        let synced = match self.job.is_null() {
            true => Ok(()),
            false => self.fs.fsync(self.files.handle(file), data_only),
        };
        let took = now().since(started);
        if let Err(e) = synced {
            self.state.lock().fail(self.job.failed(file, "fsync")(e));
        }
        StepEnd::Sync { file, ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) }
    }

    fn request(
        &self,
        request: &FioRequest,
        tag: Option<u64>,
        buffer: &mut TaskBuffer,
        chosen: u64,
    ) -> StepEnd {
        let FioRequest { kind, offset, len, .. } = *request;
        let mut is_short = false;
        let (called, returned);
        let made = match (kind, self.job.options.engine) {
            (_, IoEngine::Null) => {
                called = now().0;
                returned = called;
                Ok(())
            }
            (RequestKind::Write, _) => {
                let data = match tag {
                    Some(tag) => verify::stamped(tag, offset, len as usize),
                    None => buffer.next(len as usize),
                };
                called = now().0;
                let made = self.write(request, data);
                returned = now().0;
                made
            }
            (RequestKind::Read, _) => {
                called = now().0;
                let read = self.read(request);
                returned = now().0;
                read.and_then(|read| {
                    is_short = read.parts > 1;
                    let Some(data) = read.data else { return Ok(()) };
                    let file = &self.job.files[request.file].path;
                    verify::check(file, offset, &data, None).map_err(JobFault::from)
                })
            }
        };
        if let Err(fault) = made {
            self.state.lock().fail(fault);
            return StepEnd::GivenUp;
        }
        let times = RequestTimes { kind, bytes: len, is_short, chosen, called, returned };
        StepEnd::Request { file: request.file, times }
    }

    fn write(&self, request: &FioRequest, data: bytes::Bytes) -> Result<(), JobFault> {
        let FioRequest { file, offset, len, .. } = *request;
        calls::write(&*self.fs, self.files.handle(file), offset, data).map_err(|(at, e)| {
            self.job.failed(file, format!("writing {len} bytes at {at}"))(e).into()
        })
    }

    fn read(&self, request: &FioRequest) -> Result<ReadData, JobFault> {
        let FioRequest { file, offset, len, .. } = *request;
        let o = &self.job.options;
        // As fio: what a mix reads is not looked at.
        let looks = o.verify == Some(Verification::Blocks) && !o.mix.writes;
        let mut read = ReadData { data: looks.then(Vec::new), parts: 0 };
        let done = calls::read_each(&*self.fs, self.files.handle(file), (offset, len), |part| {
            read.parts += 1;
            if let Some(data) = &mut read.data {
                data.extend_from_slice(&part);
            }
        });
        done.map_err(|(at, e)| {
            let what = FsError::Io { what: "the file ends there".into() };
            let doing = format!("reading {len} bytes at {at}");
            self.job.failed(file, doing)(e.unwrap_or(what))
        })?;
        Ok(read)
    }

    /// What is done behind the last request, in the job's time.
    fn end(&self) {
        let o = &self.job.options;
        let mut state = self.state.lock();
        if state.fault.is_none() && o.mix.writes && (o.end_fsync || o.fsync_on_close) {
            drop(state);
            // What a log has closed is opened once more, as in fio.
            let opened = if o.end_fsync { self.files.open_all() } else { Ok(()) };
            let synced = opened.and_then(|()| self.files.sync());
            state = self.state.lock();
            if let Err(e) = synced {
                state.fail(e);
            }
        }
        let elapsed = now().0.saturating_sub(state.began());
        state.figures.elapsed_ns = elapsed;
        for kind in &mut state.figures.kinds {
            kind.runtime_ns = if kind.requests > 0 { elapsed } else { 0 };
        }
    }

    /// Reads back what was written. Its times are those of reads.
    fn verify(&self) {
        let mut state = self.state.lock();
        let is_good = state.fault.is_none() && self.job.options.do_verify;
        let Some(written) = state.written.take().filter(|_| is_good) else { return };
        drop(state);
        if let Err(fault) = self.verify_all(&written) {
            self.state.lock().fail(fault);
        }
    }

    fn verify_all(&self, written: &verify::WrittenBlocks) -> Result<(), JobFault> {
        self.files.open_all()?;
        self.files.sync()?;
        for at in 0..self.job.files.len() {
            let advised = self.fs.advise(self.files.handle(at), 0, 0, Advice::DontNeed);
            advised.map_err(self.job.failed(at, "advising the page cache"))?;
        }
        let mut figures = JobFigures::default();
        let began = now();
        for (file, offset, len, tag) in written.all() {
            let chosen = now().0;
            let request = FioRequest { kind: RequestKind::Read, file, offset, len };
            let parts = calls::read(&*self.fs, self.files.handle(file), offset, len);
            let returned = now().0;
            let parts = parts.map_err(|(at, e)| {
                let what = FsError::Io { what: "the file ends there".into() };
                self.job.failed(file, format!("verify: reading at {at}"))(e.unwrap_or(what))
            })?;
            let is_short = parts.len() > 1;
            let data = calls::joined(parts);
            verify::check(&self.job.files[file].path, offset, &data, Some(tag))?;
            let (kind, called) = (request.kind, chosen);
            let times = RequestTimes { kind, bytes: len, is_short, chosen, called, returned };
            figures.request(&times, super::stats::KeptTimes { slat: false, lat_percentiles: true });
            figures.in_flight(1);
        }
        let took = now().since(began);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.state.lock();
        let before = state.figures.kinds[RequestKind::Read as usize].runtime_ns;
        figures.kinds[RequestKind::Read as usize].runtime_ns = before.saturating_add(took);
        let elapsed = state.figures.elapsed_ns.saturating_add(took);
        state.figures.merge(&figures);
        state.figures.elapsed_ns = elapsed;
        Ok(())
    }
}
