//! Running commands: announced, timed, and ended when they take too long.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Read, pipe};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

/// Longest that a command may take if nothing else is said: a test that hangs must not hang CI.
pub const LIMIT: Duration = Duration::from_secs(60 * 60);

/// How long a command may take to end when it is killed, and its output to end after it.
const GRACE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 20 });

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
pub struct ProcessEnd {
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
) -> anyhow::Result<ProcessEnd> {
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
) -> anyhow::Result<ProcessEnd> {
    command.stdout(Stdio::piped());
    let (mut child, name) = spawn(command)?;
    let reader = child.stdout.take().context("no standard output")?;
    read_lines(limit, child, name, reader, each)
}

/// What a command that runs does next.
enum Event {
    Output(Vec<u8>),
    /// Nobody holds its output any more.
    Closed,
    Ended(anyhow::Result<ProcessEnd>),
}

fn read_lines(
    limit: Duration,
    child: Child,
    name: String,
    reader: impl Read + Send + 'static,
    mut each: impl FnMut(&str),
) -> anyhow::Result<ProcessEnd> {
    // Reading and waiting have threads of their own, which are left behind if they do not come
    // back: the output stays open as long as a process holds it that cannot be killed.
    let (events, next) = channel();
    let output = events.clone();
    std::thread::spawn(move || send_output(reader, &output));
    let waited_for = name.clone();
    std::thread::spawn(move || events.send(Event::Ended(wait(child, &waited_for, limit))));
    let mut lines = Lines::default();
    let result = read_events(limit, &name, &next, |text| lines.add(text, &mut each));
    // Also of a command that was ended: the harness prints a test's name before it runs it.
    lines.finish(&mut each);
    result
}

fn send_output(reader: impl Read, events: &Sender<Event>) {
    let mut reader = BufReader::new(reader);
    // An error of a pipe is its end, as far as anybody can go on reading.
    while let Ok(read) = reader.fill_buf() {
        let (text, count) = (read.to_vec(), read.len());
        let event = if count == 0 { Event::Closed } else { Event::Output(text) };
        // It fails when nobody waits any more.
        if events.send(event).is_err() || count == 0 {
            return;
        }
        reader.consume(count);
    }
    let _ = events.send(Event::Closed);
}

fn read_events(
    limit: Duration,
    name: &str,
    events: &Receiver<Event>,
    mut each: impl FnMut(&[u8]),
) -> anyhow::Result<ProcessEnd> {
    let (mut is_open, mut ended) = (true, None);
    while is_open || ended.is_none() {
        // `wait` has a limit of its own.
        let longest = if ended.is_some() { GRACE } else { limit + 2 * GRACE };
        match events.recv_timeout(longest) {
            Ok(Event::Output(text)) => each(&text),
            Ok(Event::Closed) => is_open = false,
            Ok(Event::Ended(result)) => ended = Some(result?),
            Err(_) if ended.is_some() => {
                anyhow::bail!("{name} has ended, but something that it started holds its output")
            }
            Err(_) => anyhow::bail!("waiting for {name} failed"),
        }
    }
    ended.context("the command has not ended")
}

/// Lines of a text that comes in pieces.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn add(&mut self, text: &[u8], each: &mut impl FnMut(&str)) {
        for piece in text.split_inclusive(|byte| *byte == b'\n') {
            self.0.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.finish(each);
            }
        }
    }

    /// What there is of a line is one.
    fn finish(&mut self, each: &mut impl FnMut(&str)) {
        let line = std::mem::take(&mut self.0);
        if !line.is_empty() {
            each(String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).as_ref());
        }
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

/// Waits for the end of a command, and ends it after `limit`. Never longer than that and `GRACE`:
/// a process that hangs in the kernel cannot be ended.
fn wait(mut child: Child, name: &str, limit: Duration) -> anyhow::Result<ProcessEnd> {
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (done, ended) = channel();
    std::thread::spawn(move || {
        // Its processor time can be read until it is waited for. Without it: zero, and no harm.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let ended = process.map(|process| waitid(WaitId::Pid(process), options));
        let cpu = process.filter(|_| matches!(ended, Some(Ok(_)))).and_then(processor_time);
        let status = child.wait();
        // Nobody may wait any more.
        let _ = done.send(status.map(|status| (status.success(), cpu.unwrap_or_default())));
    });
    if let Ok(result) = ended.recv_timeout(limit) {
        let (good, cpu) = result?;
        return Ok(ProcessEnd { good, cpu });
    }
    if let Some(process) = process {
        // It may have ended this very moment, or have no group: then there is nothing to kill.
        let _ = kill_process_group(process, Signal::KILL);
        let _ = kill_process(process, Signal::KILL);
    }
    let minutes = limit.as_secs() / 60;
    match ended.recv_timeout(GRACE) {
        Ok(_) => anyhow::bail!("{name} took longer than {minutes} minutes and was ended"),
        Err(_) => anyhow::bail!(
            "{name} took longer than {minutes} minutes and cannot be ended: it hangs in the kernel \
             (see /proc/PID/stack and dmesg)"
        ),
    }
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
        assert!(begun.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn the_test_that_hung_is_named() {
        let mut sh = Command::new("sh");
        sh.args(["-c", "echo 'test one ... ok'; printf 'test two ... '; sleep 100"]);
        let mut tally = crate::tally::Tally::of("a");
        let late = run_lines(Duration::from_millis(500), &mut sh, |line| drop(tally.line(line)));
        assert!(late.unwrap_err().to_string().contains("was ended"));
        assert_eq!(tally.running(), Some("two"));
    }

    #[test]
    fn what_a_command_leaves_behind_does_not_hold_up_who_reads_its_output() {
        let mut sh = Command::new("sh");
        sh.args(["-c", "echo out; setsid sleep 60 & exit 0"]);
        let (mut lines, begun) = (Vec::new(), Instant::now());
        let error = run_lines(LIMIT, &mut sh, |line| lines.push(line.to_owned())).unwrap_err();
        assert!(error.to_string().contains("holds its output"), "{error}");
        assert_eq!(lines, ["out"]);
        assert!(begun.elapsed() < Duration::from_secs(55));
    }
}
