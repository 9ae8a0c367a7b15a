//! Running a judge so that nothing of it outlives it: a process of its own, the *supervisor*,
//! starts the judge's shell and ends whatever the shell has started.
//!
//! A server that a judge leaves running, even in a session of its own, would keep its port, and
//! its files, from the next judge. Two ways end it:
//!
//! * [`Namespaces::Own`]: the judge runs in a pid namespace, which the kernel empties when its
//!   first process ends. Network and ipc namespaces come with it: a fixed port is free in each.
//! * [`Namespaces::Shared`]: the supervisor is the *subreaper* (prctl(2)) of all that the judge
//!   starts: what has left its parents becomes a child of the supervisor, and is killed.
//!
//! Supervisors are forked from one process, which is started with the first judge: to start a large
//! program anew takes longer than many a judge.
//!
//! # Invariants
//!
//! 1. The supervisor's standard input is a pipe that nobody writes into. Its end says that who has
//!    asked wants no more, or has died: everything is ended.
//! 2. Its standard output is for its report alone; the judge has the standard error for both of
//!    its outputs. What is reported is how the shell has ended, after everything else has.
//! 3. The judge leads a process group of its own: `kill 0` in it is its own affair.
//! 4. Who forks has one thread, and keeps none of the files that it is sent. It ends when its
//!    socket does, that is with who has started it.

mod fork_server;
mod namespaces;
mod process;

use std::fs::File;
use std::io::{self, PipeReader, Read, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

pub use fork_server::supervise;
use fork_server::{ForkServer, JudgeRequest};

/// The first word of a command line that is for [`supervise`].
pub const SUPERVISE: &str = "supervise-judge";
/// What a report begins with: the status of wait(2) follows, and the processors' time in us.
const ENDED: &str = "ended ";
/// The same of what the supervisor could not do.
const FAILED: &str = "failed ";

/// Which namespaces a judge runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces {
    /// Pid, network (with its loopback up), ipc and mount namespaces of its own; users other than
    /// root need a user namespace for that, in which they are who they are.
    Own,
    /// Those of its caller.
    Shared,
}

impl Namespaces {
    /// The second word of the supervisor's command line.
    fn word(self) -> &'static str {
        match self {
            Namespaces::Own => "own",
            Namespaces::Shared => "shared",
        }
    }
}

/// How judges are run.
#[derive(Clone)]
pub struct Supervisor {
    program: PathBuf,
    namespaces: Namespaces,
    server: Arc<Mutex<Option<ForkServer>>>,
}

steadfast_runtime::debug_fields!(Supervisor: program, namespaces);

impl PartialEq for Supervisor {
    fn eq(&self, other: &Supervisor) -> bool {
        (&self.program, self.namespaces) == (&other.program, other.namespaces)
    }
}

impl Eq for Supervisor {}

/// How a judge has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgeEnd {
    /// Its shell.
    pub status: ExitStatus,
    /// The processors' time that it and all that it had started have used.
    pub used: Duration,
}

/// What a judge is given.
pub struct JudgeCommand<'a> {
    /// For `sh -c`.
    pub command: &'a str,
    /// Where it runs.
    pub folder: &'a Path,
    /// Variables of its environment, beside ours.
    pub environment: &'a [(&'a str, &'a Path)],
    /// Gets both of its outputs.
    pub output: File,
    /// After so long it is ended.
    pub limit: Duration,
}

impl Supervisor {
    /// By this program, which calls [`supervise`] where its first argument is [`SUPERVISE`].
    pub fn new(program: impl Into<PathBuf>, namespaces: Namespaces) -> Supervisor {
        Supervisor { program: program.into(), namespaces, server: Arc::default() }
    }

    /// Which namespaces they run in.
    pub fn namespaces(&self) -> Namespaces {
        self.namespaces
    }

    /// Whether judges can be run so on this machine.
    ///
    /// # Errors
    /// They cannot: why.
    pub fn tried(&self) -> io::Result<()> {
        let output = tempfile::tempfile()?;
        let (folder, limit) = (Path::new("/"), Duration::from_secs(60));
        let command = JudgeCommand { command: ":", folder, environment: &[], output, limit };
        match self.run(command)? {
            Some(end) if end.status.success() => Ok(()),
            _ => Err(io::Error::other("a shell that does nothing fails there")),
        }
    }

    /// Runs a judge to its end; `None`: it took too long. Nothing that it has started is left.
    ///
    /// # Errors
    /// It could not be run: this says nothing of what it was to judge.
    pub fn run(&self, judge: JudgeCommand<'_>) -> io::Result<Option<JudgeEnd>> {
        let JudgeCommand { command, folder, environment, output, limit } = judge;
        let ((stdin, lifeline), (mut report, stdout)) = (pipe()?, pipe()?);
        let request = JudgeRequest::new(command, folder, environment);
        self.fork(&request, [stdin.into(), stdout.into(), output.into()])?;
        let said = text_within(&mut report, limit);
        drop(lifeline);
        // Where it took too long, it is being ended; who supervises it ends last.
        io::copy(&mut report, &mut io::sink())?;
        said?.map(|said| end_of(&said)).transpose()
    }

    /// Has a supervisor forked, which gets these files as its own three.
    fn fork(&self, request: &JudgeRequest, files: [OwnedFd; 3]) -> io::Result<()> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(started) = &*server
            && started.fork(request, &files).is_ok()
        {
            return Ok(());
        }
        // There is none yet, or it has gone.
        let started = server.insert(ForkServer::start(&self.program, self.namespaces)?);
        started.fork(request, &files)
    }
}

/// What is written into a pipe until its end; `None`: it took too long.
fn text_within(pipe: &mut PipeReader, limit: Duration) -> io::Result<Option<String>> {
    let end = Instant::now() + limit;
    let mut text = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(None),
            Err(Errno::INTR) => continue,
            ready => ready?,
        };
        let mut piece = [0; 4096];
        match pipe.read(&mut piece)? {
            0 => return Ok(Some(String::from_utf8_lossy(&text).into_owned())),
            count => text.extend_from_slice(&piece[..count]),
        }
    }
}

/// How the judge has ended, by its supervisor's report.
fn end_of(said: &str) -> io::Result<JudgeEnd> {
    let numbers = || {
        let (status, us) = said.trim_end().strip_prefix(ENDED)?.split_once(' ')?;
        let status = ExitStatus::from_raw(status.parse().ok()?);
        Some(JudgeEnd { status, used: Duration::from_micros(us.parse().ok()?) })
    };
    match (numbers(), said.strip_prefix(FAILED)) {
        (Some(end), _) => Ok(end),
        (None, Some(why)) => Err(io::Error::other(why.trim_end().to_owned())),
        (None, None) => {
            Err(io::Error::other(format!("who runs the judge has ended and said {said:?}")))
        }
    }
}
