//! A group of processes that is ended as a whole.

use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use steadfast_host::GroupGuard;

/// How long a program is waited for that was asked to end.
const GRACE: Duration = Duration::from_secs(2);
/// How often a process is looked after.
pub const PAUSE: Duration = Duration::from_millis(5);

/// A process with all that it starts and that does not leave its group of processes. Dropping it
/// kills the group: whatever becomes of who has started it, nothing is left.
pub struct Group {
    child: Child,
    _guard: GroupGuard,
    /// It is buried, and its number may be another's.
    is_gone: bool,
}

impl Group {
    /// Starts the command as the first of a group of its own.
    pub fn start(command: &mut Command) -> std::io::Result<Group> {
        let mut guard = GroupGuard::start();
        let child = command.process_group(0).spawn()?;
        guard.watch(child.id());
        Ok(Group { _guard: guard, child, is_gone: false })
    }

    /// What the first process prints into, if it is a pipe; once.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Ctrl-C is handed on to the group; it gets a moment, then it is killed.
    pub fn stop(&self) -> Result<()> {
        self.signal(Signal::INT);
        let end = Instant::now() + GRACE;
        while Instant::now() < end {
            if self.has_ended()? {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        self.signal(Signal::KILL);
        Ok(())
    }

    /// Whether the first process has ended. It is not buried yet: its number stays that of its
    /// group.
    pub fn has_ended(&self) -> Result<bool> {
        Ok(self.number().is_none() || self.look()?.is_some())
    }

    /// How the first process has failed, in words, if it has ended so.
    pub fn failed(&self) -> Result<Option<String>> {
        let Some(status) = self.look()? else { return Ok(None) };
        Ok(match (status.exit_status(), status.terminating_signal()) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("ended with status {code}")),
            (None, signal) => Some(format!("was ended by signal {}", signal.unwrap_or_default())),
        })
    }

    fn look(&self) -> Result<Option<WaitIdStatus>> {
        let Some(pid) = self.number() else { return Ok(None) };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let seen = waitid(WaitId::Pid(pid), look).context("looking after the program")?;
        // Who traces a child of its own sees its stops, too.
        Ok(seen.filter(|status| !status.stopped() && !status.trapped()))
    }

    /// Kills what is left of the group; how the first process has ended.
    pub fn end(mut self) -> std::io::Result<ExitStatus> {
        self.kill()
    }

    fn kill(&mut self) -> std::io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let status = self.child.wait();
        self.is_gone = true;
        status
    }

    fn number(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Sends a signal to all of it.
    pub fn signal(&self, signal: Signal) {
        if let Some(group) = self.number() {
            // OK to ignore: mostly nobody is left.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_gone {
            // OK to ignore: there is another error already.
            let _ = self.kill();
        }
    }
}
