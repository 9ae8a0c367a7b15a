//! Running commands: announced, timed, and ended when they take too long.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Read, pipe};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

/// Longest that a command may take if nothing else is said: a test that hangs must not hang CI.
pub const LIMIT: Duration = Duration::from_secs(60 * 60);

/// `cargo` with these arguments, in the workspace's folder.
pub fn cargo(root: &Path, args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root);
    // mke2fs and its family are not on the path of ordinary users.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut path = path.into_string().unwrap_or_default();
    path.push_str(":/usr/local/sbin:/usr/sbin:/sbin");
    command.env("PATH", path);
    // Who builds once only has nothing of what makes the next build short: it costs time and room.
    if std::env::var_os("CI").is_some() && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Announces a step, does it, and says how it went and how long it took.
pub fn step(name: &str, body: impl FnOnce() -> anyhow::Result<bool>) -> bool {
    println!("==> {name}");
    let begun = Instant::now();
    let outcome = body();
    let seconds = begun.elapsed().as_secs_f64();
    match outcome {
        Ok(true) => println!("    ok, {seconds:.1} s"),
        Ok(false) => println!("    FAILED after {seconds:.1} s: {name}"),
        Err(ref e) => println!("    FAILED after {seconds:.1} s: {name}: {e:#}"),
    }
    outcome.unwrap_or(false)
}

/// How a command has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    pub good: bool,
    /// Processor time of the command and of what it has run and waited for.
    pub cpu: Duration,
}

/// Runs a command whose output goes to ours; whether it succeeded.
pub fn run(command: &mut Command) -> anyhow::Result<bool> {
    run_within(LIMIT, command)
}

/// The same with a limit of its own.
pub fn run_within(limit: Duration, command: &mut Command) -> anyhow::Result<bool> {
    let (child, name) = spawn(command)?;
    Ok(wait(child, &name, limit)?.good)
}

/// Runs a command and hands each line of its output, errors included, to `each`.
pub fn run_lines(
    limit: Duration,
    command: &mut Command,
    each: impl FnMut(&str),
) -> anyhow::Result<Ended> {
    let (reader, writer) = pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let (child, name) = spawn(command)?;
    // The command holds the pipe's writing end; while it does, reading would not end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    read_lines(limit, child, name, reader, each)
}

/// The same of its standard output only; errors go to ours.
pub fn run_stdout_lines(
    limit: Duration,
    command: &mut Command,
    each: impl FnMut(&str),
) -> anyhow::Result<Ended> {
    command.stdout(Stdio::piped());
    let (mut child, name) = spawn(command)?;
    let reader = child.stdout.take().context("no standard output")?;
    read_lines(limit, child, name, reader, each)
}

fn read_lines(
    limit: Duration,
    child: Child,
    name: String,
    reader: impl Read,
    mut each: impl FnMut(&str),
) -> anyhow::Result<Ended> {
    let waiter = {
        let name = name.clone();
        std::thread::spawn(move || wait(child, &name, limit))
    };
    for line in BufReader::new(reader).split(b'\n') {
        each(&String::from_utf8_lossy(&line?));
    }
    match waiter.join() {
        Ok(result) => result,
        Err(_) => anyhow::bail!("waiting for {name} failed"),
    }
}

/// Starts a command. Unless somebody sits at a terminal (who must be able to interrupt it), it gets
/// a process group of its own, so that its children can be ended with it.
fn spawn(command: &mut Command) -> anyhow::Result<(Child, String)> {
    let name = command.get_program().to_string_lossy().into_owned();
    if !std::io::stdin().is_terminal() {
        command.process_group(0);
    }
    let child = command.stdin(Stdio::null()).spawn();
    Ok((child.with_context(|| format!("cannot start {name}"))?, name))
}

fn wait(mut child: Child, name: &str, limit: Duration) -> anyhow::Result<Ended> {
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (done, over) = channel();
    let watchdog = std::thread::spawn(move || {
        let is_late = over.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if is_late && let Some(process) = process {
            // It may have ended this very moment, or have no group: then there is nothing to kill.
            let _ = kill_process_group(process, Signal::KILL);
            let _ = kill_process(process, Signal::KILL);
        }
        is_late
    });
    // Its processor time can be read until it is waited for. Without it: zero, and no harm.
    let ended =
        process.map(|p| waitid(WaitId::Pid(p), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
    let cpu = process.filter(|_| matches!(ended, Some(Ok(_)))).and_then(processor_time);
    let status = child.wait()?;
    // The watchdog is gone if it has fired.
    let _ = done.send(());
    if watchdog.join().unwrap_or(false) {
        anyhow::bail!("{name} took longer than {} minutes and was ended", limit.as_secs() / 60);
    }
    Ok(Ended { good: status.success(), cpu: cpu.unwrap_or_default() })
}

/// What a process has used that has ended and is not waited for yet, with its own children.
fn processor_time(process: Pid) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // proc(5): after the name, `utime`, `stime`, `cutime` and `cstime` are the twelfth to the
    // fifteenth field.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().ok());
    let millis = ticks.sum::<Option<u64>>()? * 1000 / rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_outputs_and_the_outcome() {
        let mut lines = Vec::new();
        let mut sh = Command::new("sh");
        sh.args(["-c", "echo out; echo err >&2; exit 3"]);
        assert!(!run_lines(LIMIT, &mut sh, |l| lines.push(l.to_owned())).unwrap().good);
        assert_eq!(lines, ["out", "err"]);
        lines.clear();
        sh.stderr(Stdio::null());
        assert!(!run_stdout_lines(LIMIT, &mut sh, |l| lines.push(l.to_owned())).unwrap().good);
        assert_eq!(lines, ["out"]);
    }

    #[test]
    fn the_processor_time_of_children_counts_and_waiting_does_not() {
        let mut sh = Command::new("sh");
        let count = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
        sh.args(["-c", &format!("sleep 0.5; sh -c '{count}'; true")]);
        let begun = Instant::now();
        let ended = run_lines(LIMIT, &mut sh, |_| ()).unwrap();
        assert!(ended.good && ended.cpu >= Duration::from_millis(10), "{ended:?}");
        assert!(ended.cpu + Duration::from_millis(400) < begun.elapsed(), "{ended:?}");
    }

    #[test]
    fn what_takes_too_long_is_ended_with_its_children() {
        let mut sh = Command::new("sh");
        let begun = Instant::now();
        let (child, name) = spawn(sh.args(["-c", "sleep 100 & wait"])).unwrap();
        let error = wait(child, &name, Duration::from_millis(100)).unwrap_err();
        assert!(error.to_string().contains("was ended"));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
