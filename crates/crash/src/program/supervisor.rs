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
//! # Invariants
//!
//! 1. The supervisor's standard input is a pipe that nobody writes into. Its end says that who has
//!    asked wants no more, or has died: everything is ended.
//! 2. Its standard output is for its report alone; the judge has the standard error for both of
//!    its outputs. What is reported is how the shell has ended, after everything else has.
//! 3. The judge leads a process group of its own: `kill 0` in it is its own affair.

mod namespaces;
mod process;

use std::fs::File;
use std::io::{self, PipeReader, Read, pipe};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

pub use process::supervise;

/// The first word of a command line that is for [`supervise`].
pub const SUPERVISE: &str = "supervise-judge";
/// What a report begins with: the status of wait(2) follows.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    program: PathBuf,
    namespaces: Namespaces,
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
        Supervisor { program: program.into(), namespaces }
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
            Some(status) if status.success() => Ok(()),
            _ => Err(io::Error::other("a shell that does nothing fails there")),
        }
    }

    /// Runs a judge to its end; `None`: it took too long. Nothing that it has started is left.
    ///
    /// # Errors
    /// It could not be run: this says nothing of what it was to judge.
    pub fn run(&self, judge: JudgeCommand<'_>) -> io::Result<Option<ExitStatus>> {
        let JudgeCommand { command, folder, environment, output, limit } = judge;
        let ((stdin, lifeline), (report, stdout)) = (pipe()?, pipe()?);
        // A signal to the group that we are in is not for it.
        let mut child = Command::new(&self.program)
            .args([SUPERVISE, self.namespaces.word(), command])
            .current_dir(folder)
            .envs(environment.iter().copied())
            .stdin(stdin)
            .stdout(stdout)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        let said = text_within(report, limit);
        drop(lifeline);
        let ended = child.wait()?;
        match said? {
            None => Ok(None),
            Some(said) => status_of(&said, ended).map(Some),
        }
    }
}

/// What is written into a pipe until its end; `None`: it took too long.
fn text_within(mut pipe: PipeReader, limit: Duration) -> io::Result<Option<String>> {
    let end = Instant::now() + limit;
    let mut text = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&left)) {
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
fn status_of(said: &str, supervisor: ExitStatus) -> io::Result<ExitStatus> {
    let raw = said.trim_end().strip_prefix(ENDED).and_then(|raw| raw.parse().ok());
    match (raw, said.strip_prefix(FAILED)) {
        (Some(raw), _) => Ok(ExitStatus::from_raw(raw)),
        (None, Some(why)) => Err(io::Error::other(why.trim_end().to_owned())),
        (None, None) => {
            let what = format!("who runs the judge has ended ({supervisor}) and said {said:?}");
            Err(io::Error::other(what))
        }
    }
}
