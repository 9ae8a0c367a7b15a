//! A log of fio's (`write_iolog`), as a job replays it: read once, before the run.
//!
//! The form of a line is of [`steadfast_trace::fio_log`]. This says what follows from all of them:
//! which files there are, what must be there before, when each step is due. A step is 24 bytes, and
//! a plan has [`LINES_MAX`] lines at most.

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::sync::Arc;

use steadfast_trace::fio_log::{self, FioLogAction, FioLogLine};

use super::options::{ReplayOptions, RequestKind};
use super::plan::{FILE_BYTES_MAX, REQUEST_MAX, STAMPED};
use super::wrong::{JobFileError, LineOrigin};

/// Lines of all logs of a plan, at most.
pub(super) const LINES_MAX: u64 = 1 << 24;
/// Bytes of a line, at most.
const LINE_BYTES_MAX: u64 = 8192;
/// Files of a log, at most: the range of [`LogStep::file`].
const FILES_MAX: usize = 1 << 16;
/// The unit of times, as fio 3.33 writes and reads them; in ns.
const TIME_UNIT: u64 = 1000;
/// The unit of waits, in ns.
const WAIT_UNIT: u64 = 1_000_000;
/// The first bytes of a binary log of blktrace without its version, in either order of bytes.
const BLKTRACE: [(usize, [u8; 3]); 2] = [(1, *b"\x74\x61\x65"), (0, *b"\x65\x61\x74")];

/// What a job replays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IoLog {
    /// In the order of the log.
    pub(super) steps: Vec<LogStep>,
    /// The files, in the order in which they were added.
    pub(super) files: Vec<ReplayFile>,
    /// Bytes of the smallest and of the largest request of each kind; `None`: it has none.
    pub(super) sizes: [Option<(u64, u64)>; 2],
    /// Bytes of all requests.
    pub(super) bytes: u64,
    /// All offsets and lengths are multiples of [`STAMPED`].
    pub(super) is_in_sectors: bool,
    /// Lines that were read.
    pub(super) lines: u64,
    /// What a reader of the figures should know.
    pub(super) note: Option<String>,
}

/// A file of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplayFile {
    /// As the log names it.
    pub(super) name: String,
    /// Where it says so first.
    pub(super) at: LineOrigin,
    /// Bytes that it must have before: those that are read, and that no earlier write has made.
    pub(super) needed: u64,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogStep {
    /// So long after the first line, if nothing takes longer than in the log; in ns.
    pub(super) due: u64,
    /// Of a request; of a wait, its end in ns from the job's beginning on.
    pub(super) offset: u64,
    /// Of a request.
    pub(super) len: u32,
    /// Its number in the log.
    pub(super) file: u16,
    pub(super) action: StepAction,
}

const _: () = assert!(size_of::<LogStep>() <= 24, "there may be 2^24 of them");

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepAction {
    Open,
    Close,
    Request(RequestKind),
    Sync { data_only: bool },
    Wait,
}

/// What is wrong with a line, and whether fio has it.
struct LineFault {
    what: String,
    is_unsupported: bool,
}

impl From<String> for LineFault {
    fn from(what: String) -> LineFault {
        LineFault { what, is_unsupported: false }
    }
}

impl From<&str> for LineFault {
    fn from(what: &str) -> LineFault {
        what.to_owned().into()
    }
}

/// Reads a log of at most so many lines. `name`: as errors call it.
///
/// # Errors
/// The first line that is wrong.
pub(super) fn read(
    text: &mut dyn BufRead,
    name: &str,
    options: &ReplayOptions,
    lines_max: u64,
) -> Result<IoLog, JobFileError> {
    let mut reader = LogReader {
        at: LineOrigin { file: Arc::from(name), line: 0 },
        lines_max,
        version: 0,
        options,
        numbers: HashMap::new(),
        states: Vec::new(),
        last_time: None,
        due: 0,
        log: IoLog {
            steps: Vec::new(),
            files: Vec::new(),
            sizes: [None; 2],
            bytes: 0,
            is_in_sectors: true,
            lines: 0,
            note: None,
        },
    };
    match reader.all(text) {
        Ok(()) => Ok(reader.log),
        Err(fault) => {
            let mut error = JobFileError::default();
            match fault.is_unsupported {
                true => error.note_unsupported(&reader.at, fault.what),
                false => error.note(&reader.at, fault.what),
            }
            Err(error)
        }
    }
}

/// A file, while the log is read.
#[derive(Default)]
struct FileState {
    /// How often it is open: more than once only where it stands for several.
    opened: u64,
    /// Where what was written of it ends.
    written: u64,
}

struct LogReader<'a> {
    at: LineOrigin,
    lines_max: u64,
    version: u32,
    options: &'a ReplayOptions,
    numbers: HashMap<String, usize>,
    states: Vec<FileState>,
    /// The time of the line before.
    last_time: Option<u64>,
    due: u64,
    log: IoLog,
}

impl LogReader<'_> {
    fn all(&mut self, text: &mut dyn BufRead) -> Result<(), LineFault> {
        let mut bytes = Vec::new();
        while self.next_line(text, &mut bytes)? {
            let line = std::str::from_utf8(&bytes);
            let line = line.map_err(|_| "it is no text in UTF-8")?.trim();
            if self.at.line == 1 {
                self.version = version(line)?;
            } else if !line.is_empty() {
                let line = fio_log::line(line, self.version);
                self.take(&line.map_err(|e| e.to_string())?)?;
            }
        }
        let waits = |step: &LogStep| step.action == StepAction::Wait;
        if self.log.bytes == 0 && !self.log.steps.iter().any(waits) {
            return Err("the log ends, and nothing in it is read or written".into());
        }
        self.log.steps.shrink_to_fit();
        Ok(())
    }

    /// Whether there is one more.
    fn next_line(&mut self, text: &mut dyn BufRead, line: &mut Vec<u8>) -> Result<bool, LineFault> {
        line.clear();
        let read = Read::take(&mut *text, LINE_BYTES_MAX).read_until(b'\n', line);
        let is_first = self.at.line == 0;
        if read.map_err(|e| e.to_string())? == 0 && !is_first {
            return Ok(false);
        }
        self.at.line += 1;
        self.log.lines += 1;
        let is = |(at, magic): &(usize, [u8; 3])| line.get(*at..at + 3) == Some(magic);
        if is_first && BLKTRACE.iter().any(is) {
            let what = "a binary log of blktrace is not supported; steadfast trace import reads \
                        blkparse's text";
            return Err(LineFault { what: what.into(), is_unsupported: true });
        }
        if self.log.lines > self.lines_max {
            return Err(format!("the logs have more than {LINES_MAX} lines altogether").into());
        }
        match line.last() {
            Some(b'\n') => {}
            _ if line.len() as u64 == LINE_BYTES_MAX => {
                return Err(format!("a line of more than {LINE_BYTES_MAX} bytes").into());
            }
            _ => {
                let at = &self.at;
                self.log.note = Some(format!("{at}: the line has no end: was the log cut off?"));
            }
        }
        Ok(true)
    }

    fn take(&mut self, line: &FioLogLine<'_>) -> Result<(), LineFault> {
        self.time(line.time);
        let skip = self.options.skip;
        match line.action {
            FioLogAction::Add => self.add(line.file),
            FioLogAction::Open => self.open(line.file),
            FioLogAction::Close => self.close(line.file),
            FioLogAction::Read(..) if skip.reads => Ok(()),
            FioLogAction::Write(..) if skip.writes => Ok(()),
            FioLogAction::Trim(..) if skip.trims => Ok(()),
            FioLogAction::Sync | FioLogAction::DataSync if skip.syncs => Ok(()),
            FioLogAction::Read(at, len) => self.request(line.file, RequestKind::Read, at, len),
            FioLogAction::Write(at, len) => self.request(line.file, RequestKind::Write, at, len),
            FioLogAction::Sync => self.sync(line.file, false),
            FioLogAction::DataSync => self.sync(line.file, true),
            FioLogAction::Wait(_) if self.options.no_stall => Ok(()),
            FioLogAction::Wait(until) => {
                self.step(StepAction::Wait, 0, (until.saturating_mul(WAIT_UNIT), 0));
                Ok(())
            }
            FioLogAction::Trim(..) => {
                let what = "trims are of block devices, and files have none; replay_skip=trim \
                            leaves them out";
                Err(LineFault { what: what.into(), is_unsupported: true })
            }
        }
    }

    /// As in fio, nothing is waited for where times go back.
    fn time(&mut self, time: Option<u64>) {
        let Some(time) = time.filter(|_| !self.options.no_stall) else { return };
        let gap = time.saturating_sub(self.last_time.unwrap_or(time));
        let percent = u128::from(self.options.time_scale);
        let ns = u128::from(gap) * u128::from(TIME_UNIT) * 100 / percent;
        self.due = self.due.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX));
        self.last_time = Some(time);
    }

    fn step(&mut self, action: StepAction, file: usize, (offset, len): (u64, u64)) {
        // OK to cast: `add` and `request` have looked at both.
        let (file, len) = (file as u16, len as u32);
        self.log.steps.push(LogStep { due: self.due, offset, len, file, action });
    }

    /// The name of the file that is meant.
    fn meant<'n>(&'n self, name: &'n str) -> &'n str {
        self.options.redirect.as_deref().unwrap_or(name)
    }

    fn add(&mut self, name: &str) -> Result<(), LineFault> {
        let name = self.meant(name).to_owned();
        if self.numbers.contains_key(&name) {
            return Ok(());
        }
        if self.log.files.len() == FILES_MAX {
            return Err(format!("more than {FILES_MAX} files").into());
        }
        self.numbers.insert(name.clone(), self.log.files.len());
        self.states.push(FileState::default());
        self.log.files.push(ReplayFile { name, at: self.at.clone(), needed: 0 });
        Ok(())
    }

    fn known(&self, name: &str) -> Result<usize, LineFault> {
        let number = self.numbers.get(self.meant(name));
        Ok(*number.ok_or_else(|| format!("'{name}' was not added before"))?)
    }

    fn open(&mut self, name: &str) -> Result<(), LineFault> {
        let file = self.known(name)?;
        let opened = &mut self.states[file].opened;
        *opened += 1;
        match *opened {
            1 => self.step(StepAction::Open, file, (0, 0)),
            _ if self.options.redirect.is_some() => {}
            _ => return Err(format!("'{name}' is open already").into()),
        }
        Ok(())
    }

    fn close(&mut self, name: &str) -> Result<(), LineFault> {
        let file = self.known(name)?;
        let opened = &mut self.states[file].opened;
        // As in fio, a file that is not open may be closed.
        let was = std::mem::replace(opened, opened.saturating_sub(1));
        if was == 1 {
            self.step(StepAction::Close, file, (0, 0));
        }
        Ok(())
    }

    fn opened(&self, name: &str) -> Result<usize, LineFault> {
        let file = self.known(name)?;
        match self.states[file].opened {
            0 => Err(format!("'{name}' is not open").into()),
            _ => Ok(file),
        }
    }

    fn sync(&mut self, name: &str, data_only: bool) -> Result<(), LineFault> {
        let file = self.opened(name)?;
        self.step(StepAction::Sync { data_only }, file, (0, 0));
        Ok(())
    }

    fn request(
        &mut self,
        name: &str,
        kind: RequestKind,
        offset: u64,
        len: u64,
    ) -> Result<(), LineFault> {
        let file = self.opened(name)?;
        let offset = offset.checked_div(self.options.scale).unwrap_or(offset);
        let offset = offset - offset.checked_rem(self.options.align).unwrap_or(0);
        if len == 0 {
            return Err("a request of 0 bytes".into());
        }
        if len > REQUEST_MAX {
            return Err(format!("a request of {len} bytes: at most {REQUEST_MAX}").into());
        }
        let end = offset.saturating_add(len);
        if end > FILE_BYTES_MAX {
            return Err(format!("'{name}' has more than {FILE_BYTES_MAX} bytes").into());
        }
        let (log, state) = (&mut self.log, &mut self.states[file]);
        match kind {
            RequestKind::Write => state.written = state.written.max(end),
            RequestKind::Read if end > state.written => {
                log.files[file].needed = log.files[file].needed.max(end);
            }
            RequestKind::Read => {}
        }
        let size = &mut log.sizes[kind as usize];
        *size = Some(size.map_or((len, len), |(least, most)| (least.min(len), most.max(len))));
        log.bytes = log.bytes.saturating_add(len);
        log.is_in_sectors &= offset.is_multiple_of(STAMPED) && len.is_multiple_of(STAMPED);
        self.step(StepAction::Request(kind), file, (offset, len));
        Ok(())
    }
}

fn version(line: &str) -> Result<u32, LineFault> {
    match fio_log::version(line) {
        Some(version @ (2 | 3)) => Ok(version),
        Some(version) => Err(format!("a log of version {version}; 2 and 3 are read").into()),
        None => {
            Err("its first line is neither `fio version 2 iolog` nor `fio version 3 iolog`".into())
        }
    }
}
