//! Going into the background once the mount is there.
//!
//! The program starts itself again rather than forking: threads do not survive a fork. The child
//! says on its standard output that all is well; until then its errors go to the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::log::LogFile;
use crate::{CommandEnd, helper};

/// What the child says.
const READY: &str = "ready";
/// The child's option; hidden.
pub const SERVES: &str = "--serves-in-background";

/// Starts the child and waits until it serves or has failed, with its status.
pub fn start() -> Result<CommandEnd> {
    let program = std::env::current_exe().context("finding this program")?;
    let mut arguments = helper::own_arguments();
    // After the command's name; the rest may hold a `--`.
    arguments.insert(1.min(arguments.len()), SERVES.into());
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the process that serves it")?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).context("waiting for the mount")?;
    }
    if line.trim() == READY {
        return Ok(CommandEnd::Good);
    }
    let failed = child.wait().context("waiting for the process that serves it")?;
    Ok(CommandEnd::Status(failed.code().unwrap_or(1) as u8))
}

/// In the child: leaves the terminal, says that all is well, and goes on alone.
pub fn detach(log: &LogFile, out: &mut dyn Write) -> Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null").context("/dev/null")?;
    // Not a session of its own: the scheduler would give it one share of the machine together
    // (sched_autogroup), and on a busy machine each request would wait for that. In a process group
    // of its own it gets no Ctrl-C, and no SIGHUP when the terminal goes.
    // Fails only for the leader of a session, which is as well.
    let _ = rustix::process::setpgid(None, None);
    log.takes_stderr().context("standard error")?;
    writeln!(out, "{READY}")?;
    out.flush()?;
    rustix::stdio::dup2_stdout(&nothing).context("standard output")?;
    // The folder it was started in must not be kept from being unmounted.
    std::env::set_current_dir("/").context("/")
}
