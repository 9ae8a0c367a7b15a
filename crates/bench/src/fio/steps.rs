//! What the tasks of a job share: which step is next, when a pass and the job are over, and the
//! figures.

use super::files::FileCallError;
use super::io_log::StepAction;
use super::offsets::{FioRequest, RequestSequence};
use super::options::RequestKind;
use super::pace::Pace;
use super::plan::FioJob;
use super::replay::ReplayCursor;
use super::results::JobFault;
use super::stats::{JobFigures, KeptTimes, RateWindow, RequestTimes};
use super::verify::WrittenBlocks;
use std::sync::Arc;

/// What a task does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskStep {
    /// A request, not before `at` (ns). `tag`: of the write, where it is verified. `again`: it is
    /// the first of its file again.
    Request { request: FioRequest, at: u64, tag: Option<u64>, again: bool },
    /// An fsync, or fdatasync, of the file that was written last, or that the log says; not before
    /// `at` (ns).
    Sync { file: usize, data_only: bool, at: u64 },
    /// What stands in a log between requests and syncs, not before `at` (ns).
    Between { action: StepAction, file: usize, at: u64 },
    /// The next pass begins when nothing is in flight.
    Quiet,
    /// The next pass begins now.
    Pass,
    /// The job is over.
    End,
}

/// What a task has done.
#[derive(Debug, Clone, Copy)]
pub(super) enum StepEnd {
    Nothing,
    /// A request.
    Request {
        file: usize,
        times: RequestTimes,
    },
    /// A sync, and what it took in ns.
    Sync {
        file: usize,
        ns: u64,
    },
    /// The request was given up: the job's time is over.
    GivenUp,
}

/// The state of a job, behind its lock.
pub(super) struct JobState {
    job: Arc<FioJob>,
    requests: RequestSequence,
    /// Of a job with a log, whose requests are those of it.
    replay: Option<ReplayCursor>,
    pace: Pace,
    kept: KeptTimes,
    window: RateWindow,
    pub(super) figures: JobFigures,
    pub(super) written: Option<WrittenBlocks>,
    pub(super) fault: Option<JobFault>,
    number: u64,
    /// What is done before is not counted, and when the job ends; in ns.
    counted_from: u64,
    pub(super) ends_at: u64,
    is_counted: bool,
    in_flight: u64,
    /// The number of the pass.
    pub(super) pass: u64,
    /// Of this pass.
    bytes: u64,
    /// Requests of all passes, and of this one.
    issued: u64,
    issued_in_pass: u64,
    writes: u64,
    last_was_sync: bool,
    last_written: usize,
    loops_left: u64,
    is_over: bool,
}

impl JobState {
    /// `number`: of the job, from 1 on.
    pub(super) fn new(job: &Arc<FioJob>, number: u64, now: u64) -> JobState {
        let o = &job.options;
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let counted_from = now.saturating_add(ns(o.ramp_time));
        let ends_at = o.runtime.map_or(u64::MAX, |time| counted_from.saturating_add(ns(time)));
        let verifies = o.verify == Some(super::options::Verification::Blocks);
        JobState {
            requests: RequestSequence::new(job),
            replay: job.log.as_ref().map(|log| ReplayCursor::new(log, now)),
            pace: Pace::new(o, job.seed, now),
            kept: KeptTimes {
                slat: o.engine == super::options::IoEngine::Tasks,
                lat_percentiles: o.lat_percentiles,
            },
            window: RateWindow::new(now),
            figures: JobFigures::default(),
            written: (verifies && o.mix.writes).then(WrittenBlocks::default),
            fault: None,
            number,
            counted_from,
            ends_at,
            is_counted: o.ramp_time.is_zero(),
            in_flight: 0,
            pass: 0,
            bytes: 0,
            issued: 0,
            issued_in_pass: 0,
            writes: 0,
            last_was_sync: false,
            last_written: 0,
            loops_left: o.loops - 1,
            is_over: false,
            job: Arc::clone(job),
        }
    }

    /// Takes in what a task has done by `now` (ns), and says what it does next.
    pub(super) fn step(&mut self, done: StepEnd, now: u64) -> TaskStep {
        match done {
            StepEnd::Nothing => {}
            StepEnd::Request { file, times } => {
                self.returned(&times);
                self.replay.iter_mut().for_each(|replay| replay.returned(file));
            }
            StepEnd::Sync { file, ns } => {
                self.replay.iter_mut().for_each(|replay| replay.returned(file));
                if self.counts(now) {
                    self.figures.syncs.add(ns, true);
                }
            }
            StepEnd::GivenUp => {
                self.in_flight -= 1;
                self.is_over = true;
            }
        }
        self.next(now)
    }

    /// Whether what ends now is counted; when the ramp ends the figures begin anew.
    fn counts(&mut self, now: u64) -> bool {
        if !self.is_counted && now >= self.counted_from {
            self.is_counted = true;
            self.window = RateWindow::new(now);
            self.figures = JobFigures::default();
        }
        self.is_counted
    }

    fn returned(&mut self, times: &RequestTimes) {
        self.in_flight -= 1;
        self.pace.returned(times.returned);
        if self.counts(times.returned) {
            self.figures.request(times, self.kept);
            self.window.request(times, &mut self.figures);
        }
    }

    /// The job ends; the first fault is kept.
    pub(super) fn fail(&mut self, fault: impl Into<JobFault>) {
        self.is_over = true;
        self.fault.get_or_insert(fault.into());
    }

    fn next(&mut self, now: u64) -> TaskStep {
        let job = Arc::clone(&self.job);
        let o = &job.options;
        let enough = o.number_ios.is_some_and(|most| self.issued >= most);
        if self.is_over || now >= self.ends_at || enough {
            self.is_over = true;
            return TaskStep::End;
        }
        if let Some(step) = self.next_of_log(now) {
            return step;
        }
        if let Some(sync) = self.sync_is_due() {
            return sync;
        }
        if !o.time_based && self.bytes >= job.total {
            if self.loops_left == 0 {
                self.is_over = true;
                return TaskStep::End;
            }
            return self.pass();
        }
        let drawn = self.requests.kind();
        let kind = match (o.mix.reads, o.mix.writes) {
            (true, true) => self.pace.kind(drawn, now),
            _ => drawn,
        };
        let Some(request) = self.requests.next(kind) else { return self.pass() };
        self.issue(request, now, now)
    }

    /// The next step of a log; `None`: there is no log.
    fn next_of_log(&mut self, now: u64) -> Option<TaskStep> {
        let Some((step, at)) = self.replay.as_mut()?.next(now) else {
            self.is_over = true;
            return Some(TaskStep::End);
        };
        let (file, offset, len) = (usize::from(step.file), step.offset, u64::from(step.len));
        Some(match step.action {
            StepAction::Request(kind) => {
                self.issue(FioRequest { kind, file, offset, len }, now, at)
            }
            StepAction::Sync { data_only } => TaskStep::Sync { file, data_only, at },
            action => TaskStep::Between { action, file, at },
        })
    }

    /// As fio has it: whenever so many writes were made and the last call was no sync.
    fn sync_is_due(&mut self) -> Option<TaskStep> {
        let o = &self.job.options;
        if self.last_was_sync || self.writes == 0 {
            return None;
        }
        let is_due = |every: u64| every > 0 && self.writes.is_multiple_of(every);
        let data_only = match (is_due(o.fsync), is_due(o.fdatasync)) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => return None,
        };
        self.last_was_sync = true;
        Some(TaskStep::Sync { file: self.last_written, data_only, at: 0 })
    }

    /// Another pass; none if this one had nothing.
    fn pass(&mut self) -> TaskStep {
        if self.issued_in_pass == 0 {
            self.is_over = true;
            return TaskStep::End;
        }
        // Of two writes of a block in flight none is known to be the last.
        if self.written.is_some() && self.in_flight > 0 {
            return TaskStep::Quiet;
        }
        if self.bytes >= self.job.total {
            self.bytes = 0;
            self.loops_left = self.loops_left.saturating_sub(1);
        }
        self.issued_in_pass = 0;
        self.pass += 1;
        self.requests.restart();
        TaskStep::Pass
    }

    /// `due`: it is not made before.
    fn issue(&mut self, request: FioRequest, now: u64, due: u64) -> TaskStep {
        self.issued += 1;
        self.issued_in_pass += 1;
        self.bytes = self.bytes.saturating_add(request.len);
        self.last_was_sync = false;
        let is_write = request.kind == RequestKind::Write;
        let tag =
            self.written.as_mut().filter(|_| is_write).map(|written| {
                written.write(self.number, request.file, request.offset, request.len)
            });
        if is_write {
            self.writes += 1;
            self.last_written = request.file;
        }
        self.in_flight += 1;
        self.figures.in_flight(self.in_flight);
        let at = self.pace.take(request.kind, request.len, now).max(due);
        self.replay.iter_mut().for_each(|replay| replay.issued(at));
        let again = self.requests.began_again.is_some();
        TaskStep::Request { request, at, tag, again }
    }

    /// Whether a task that waits for the end of this pass still has to.
    pub(super) fn waits_in(&self, pass: u64) -> bool {
        self.pass == pass && !self.is_over
    }

    /// When counting began, in ns.
    pub(super) fn began(&self) -> u64 {
        self.counted_from
    }
}

impl From<FileCallError> for JobFault {
    fn from(error: FileCallError) -> JobFault {
        JobFault { errno: error.source.errno(), what: error.to_string() }
    }
}
