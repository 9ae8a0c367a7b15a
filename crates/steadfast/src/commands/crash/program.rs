//! Running the program: what it prints is shown and recorded, then time goes on for a while.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use steadfast_crash::program::{LINE, Line};
use steadfast_devices::filter::record::RecordLog;

use crate::Usage;

/// How long a program is waited for that was asked to end.
const GRACE: Duration = Duration::from_secs(2);
/// How long its last lines are waited for, where something that it has started keeps the pipe.
const LAST_LINES: Duration = Duration::from_secs(10);
/// Longest line that is one acknowledgement, in bytes.
const LINE_MAX: u64 = 1 << 20;
/// How often a process is looked after.
pub const PAUSE: Duration = Duration::from_millis(5);

/// How the program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    By(ExitStatus),
    /// Ctrl-C.
    Interrupted,
}

/// What to run, and who gets its output.
pub struct Watch<'a> {
    /// The program and its arguments.
    pub program: &'a [String],
    /// How long to go on after its end.
    pub linger: Duration,
    /// Gets what the program prints.
    pub out: &'a mut dyn Write,
    /// How often somebody has asked to stop.
    pub stops: &'a AtomicUsize,
    /// How many of these have stopped something: each stops one step.
    pub answered: usize,
    /// Called with the progress: a share (0 to 1), and what is done, in words.
    pub progress: &'a dyn Fn(f64, &str),
}

/// The lines that were printed.
#[derive(Clone)]
pub struct Acknowledged {
    log: RecordLog,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Acknowledged {
    /// None yet.
    pub fn new(log: &RecordLog) -> Self {
        Acknowledged { log: log.clone(), lines: Arc::default() }
    }

    /// Those so far.
    pub fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, text: &[u8]) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let printed = self.log.note(LINE, [lines.len() as u64, 0, 0]);
        lines.push(Line { printed, text: text.strip_suffix(b"\n").unwrap_or(text).to_vec() });
    }

    /// Writes the lines from the `shown`th on; returns how many there are.
    fn show(&self, shown: usize, out: &mut dyn Write) -> Result<usize> {
        let lines = self.lines();
        for line in &lines[shown..] {
            out.write_all(&line.text)?;
            out.write_all(b"\n")?;
        }
        if lines.len() > shown {
            out.flush()?;
        }
        Ok(lines.len())
    }
}

impl Watch<'_> {
    /// Whether somebody asks to stop the step that is under way.
    fn is_asked(&self) -> bool {
        self.stops.load(Ordering::Relaxed) > self.answered
    }
}

/// Runs the program in `folder` until it ends or somebody asks to stop, then lingers.
pub fn run(folder: &Path, lines: &Acknowledged, watch: &mut Watch<'_>) -> Result<Ended> {
    if watch.is_asked() {
        bail!("the program was not begun");
    }
    let (name, arguments) = watch.program.split_first().context("no program")?;
    // It may ask the terminal for nothing: it is in a group of its own, to be ended as a whole.
    let stdin = std::io::stdin();
    let stdin = if stdin.is_terminal() { Stdio::null() } else { Stdio::inherit() };
    let mut child = Command::new(found(name))
        .args(arguments)
        .current_dir(folder)
        .env("STEADFAST_MOUNT", folder)
        .env("PWD", folder)
        .stdin(stdin)
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| Usage(format!("{name}: {e}")))?;
    let reading = child.stdout.take().map(|out| reader(out, lines.clone())).transpose()?;
    let mut shown = 0;
    let interrupted = loop {
        shown = lines.show(shown, watch.out)?;
        (watch.progress)(0.0, "running the program");
        if has_ended(&child)? {
            break false;
        }
        if watch.is_asked() {
            watch.answered += 1;
            stop(&child)?;
            break true;
        }
        std::thread::sleep(PAUSE);
    };
    // What it has printed is read to the end; who has inherited the pipe is not waited for.
    let end = Instant::now() + LAST_LINES;
    let unread = || reading.as_ref().is_some_and(|thread| !thread.is_finished());
    while unread() && Instant::now() < end && !watch.is_asked() {
        std::thread::sleep(PAUSE);
    }
    let begun = Instant::now();
    while begun.elapsed() < watch.linger && !watch.is_asked() {
        shown = lines.show(shown, watch.out)?;
        let share = begun.elapsed().as_secs_f64() / watch.linger.as_secs_f64();
        (watch.progress)(share, "the program has ended; what it left is written (--linger)");
        std::thread::sleep(PAUSE.min(watch.linger.saturating_sub(begun.elapsed())));
    }
    watch.answered += usize::from(watch.is_asked());
    lines.show(shown, watch.out)?;
    // What it has left running must not keep the mount.
    end_group(&child, Signal::KILL);
    let status = child.wait()?;
    Ok(if interrupted { Ended::Interrupted } else { Ended::By(status) })
}

/// A program named by a relative path is looked for where the caller is, not in the mount; if it is
/// not there, the mount may have it.
fn found(name: &str) -> PathBuf {
    let path = Path::new(name);
    match path.canonicalize() {
        Ok(absolute) if name.contains('/') => absolute,
        _ => path.to_owned(),
    }
}

/// Ctrl-C is handed on to the program; it gets a moment, then it is killed.
pub fn stop(child: &Child) -> Result<()> {
    end_group(child, Signal::INT);
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        if has_ended(child)? {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    end_group(child, Signal::KILL);
    Ok(())
}

/// Whether the program has ended. It is not buried yet: its number stays that of its group.
pub fn has_ended(child: &Child) -> Result<bool> {
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return Ok(true) };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(pid), look).context("looking after the program")?.is_some())
}

/// Sends a signal to all that the program has started and that has not left its group.
pub fn end_group(child: &Child, signal: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // OK to ignore: mostly nobody is left.
        let _ = kill_process_group(group, signal);
    }
}

fn reader(out: ChildStdout, lines: Acknowledged) -> Result<std::thread::JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("output".into());
    let read = move || {
        let mut out = BufReader::new(out);
        let mut text = Vec::new();
        loop {
            text.clear();
            match out.by_ref().take(LINE_MAX).read_until(b'\n', &mut text) {
                Ok(0) | Err(_) => return,
                Ok(_) => lines.add(&text),
            }
        }
    };
    thread.spawn(read).context("a thread that reads the program's output")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(program: &str, stops: usize, answered: usize) -> (Result<Ended>, usize) {
        let program = ["sh", "-c", program].map(str::to_owned);
        let (stops, log) = (AtomicUsize::new(stops), RecordLog::new());
        let mut watch = Watch {
            program: &program,
            linger: Duration::ZERO,
            out: &mut Vec::new(),
            stops: &stops,
            answered,
            progress: &|_, _| {},
        };
        let folder = tempfile::tempdir().unwrap();
        let ended = run(folder.path(), &Acknowledged::new(&log), &mut watch);
        (ended, watch.answered)
    }

    #[test]
    fn a_signal_before_it_is_for_it() {
        let (ended, _) = watched("sleep 600", 1, 0);
        assert!(ended.unwrap_err().to_string().contains("was not begun"));
        let (ended, answered) = watched("exit 0", 1, 1);
        assert!(matches!(ended.unwrap(), Ended::By(status) if status.success()));
        assert_eq!(answered, 1);
    }
}
