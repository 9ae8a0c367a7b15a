//! The supervisor's own process. With namespaces there are two: one that enters them, and the first
//! one of the pid namespace, which is its init: it buries orphans, and its end is the namespace's.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal as NixSignal, kill};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid as NixPid;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, pidfd_open,
    pidfd_send_signal, set_child_subreaper, set_parent_process_death_signal, wait, waitid,
};

use super::fork_server::JudgeRequest;
use super::{ENDED, namespaces};

/// How long processes that were killed are waited for before it is looked again.
const PAUSE: Duration = Duration::from_millis(1);

/// Enters namespaces; a child becomes their first process, and with its end they end.
#[allow(unsafe_code, reason = "to start ourselves anew takes as long as all the rest; see SAFETY")]
pub(super) fn enter(request: &JudgeRequest) -> io::Result<()> {
    namespaces::enter()?;
    // SAFETY: this process has no other thread, so that nothing in the child is half done.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => run(request, true),
        // It reports.
        init => ended(Pid::from_raw(init)).map(drop),
    }
}

/// Runs the judge's shell to its end, and ends what it has left.
pub(super) fn run(request: &JudgeRequest, is_init: bool) -> io::Result<()> {
    if is_init {
        // Nobody else would end the namespace.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        namespaces::mount_proc(&request.folder())?;
    } else {
        set_child_subreaper(Some(getpid()))?;
    }
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    let shell = request.shell().stdin(Stdio::null()).stdout(output).process_group(0).spawn()?;
    let shell = i32::try_from(shell.id()).ok().and_then(Pid::from_raw);
    thread::Builder::new().name("lifeline".into()).spawn(move || {
        // Nothing is ever written into it.
        let _ = io::stdin().read(&mut [0]);
        if !is_init {
            end_children();
        }
        std::process::exit(1);
    })?;
    let status = ended(shell)?;
    if is_init {
        end_namespace();
    } else {
        end_children();
    }
    let mut out = io::stdout();
    writeln!(out, "{ENDED}{} {}", status.as_raw(), used().as_micros())?;
    out.flush()
}

/// The processors' time that this process and those that it has buried have used.
fn used() -> Duration {
    let of = |who| getrusage(who).map(|usage| usage.user_time() + usage.system_time());
    let us = |who| of(who).map_or(0, |time| time.num_microseconds().unsigned_abs());
    Duration::from_micros(us(UsageWho::RUSAGE_SELF) + us(UsageWho::RUSAGE_CHILDREN))
}

/// Buries children until this one has ended.
fn ended(child: Option<Pid>) -> io::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((gone, status))) if Some(gone) == child => return Ok(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Kills all others of the pid namespace, of which this is the first process, and buries them: the
/// kernel would do it at our end, but then nobody knew how much time they have used.
fn end_namespace() {
    // OK to ignore: there are none.
    let _ = kill(NixPid::from_raw(-1), NixSignal::SIGKILL);
    while !matches!(wait(WaitOptions::empty()), Err(Errno::CHILD)) {}
}

/// Kills children until there are none: those of each that is killed become ours.
fn end_children() {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::All, look) {
            // One is buried.
            Ok(Some(_)) | Err(Errno::INTR) => continue,
            Ok(None) => {}
            Err(_) => return,
        }
        let me = getpid();
        for child in processes().filter(|child| parent(*child) == Some(me)) {
            // By a descriptor: another one may have buried it, and its number be anybody's.
            let Ok(fd) = pidfd_open(child, PidfdFlags::empty()) else { continue };
            if parent(child) == Some(me) {
                // OK to ignore: it has ended.
                let _ = pidfd_send_signal(fd, Signal::KILL);
            }
        }
        thread::sleep(PAUSE);
    }
}

/// The numbers of all processes.
fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// The parent of a process (proc_pid_stat(5)): its name, in brackets, may contain anything.
fn parent(of: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{}/stat", of.as_raw_nonzero())).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, after) = stat.rsplit_once(')')?;
    Pid::from_raw(after.split_whitespace().nth(1)?.parse().ok()?)
}
