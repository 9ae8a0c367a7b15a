//! Running the program: what it prints is shown and recorded, then time goes on for a while.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::control::ControlPlace;
use super::output::OutputPipe;
use super::printed::{AckLines, LineOutput};
use crate::{Usage, terminal};

/// How long a program is waited for that was asked to end.
const GRACE: Duration = Duration::from_secs(2);
/// How long its last lines are waited for, where something that it has started keeps the pipe.
const LAST_LINES: Duration = Duration::from_secs(10);
/// How often a process is looked after.
pub const PAUSE: Duration = Duration::from_millis(5);

/// How the program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramEnd {
    /// By itself.
    By(ExitStatus),
    /// Ctrl-C.
    Interrupted,
}

impl ProgramEnd {
    /// After "the program".
    pub fn in_words(&self) -> String {
        match self {
            ProgramEnd::By(status) => match status.code() {
                Some(code) => format!("ended with status {code}"),
                None => format!("ended: {status}"),
            },
            ProgramEnd::Interrupted => "was stopped".into(),
        }
    }
}

/// What to run, and who gets its output.
pub struct Watch<'a> {
    /// The program and its arguments.
    pub program: &'a [String],
    /// How long to go on after its end.
    pub linger: Duration,
    /// Gets what the program prints.
    pub shown: LineOutput<'a>,
    /// How often somebody has asked to stop.
    pub stops: &'a AtomicUsize,
    /// How many of these have stopped something: each stops one step.
    pub answered: usize,
    /// Lines of the program that were too many: neither shown nor recorded.
    pub left_out: u64,
    /// Called with the progress: a share (0 to 1), and what is done, in words.
    pub progress: &'a dyn Fn(f64, &str),
}

impl Watch<'_> {
    /// Whether somebody asks to stop the step that is under way.
    fn is_asked(&self) -> bool {
        self.stops.load(Ordering::Relaxed) > self.answered
    }
}

/// Runs the program in `folder`, where it is told of the control socket, until it ends or somebody
/// asks to stop, then lingers. Nothing of its group is left, also after an error, and nothing more
/// is read of it.
pub fn run(
    folder: &Path,
    lines: &AckLines,
    control: Option<&ControlPlace>,
    watch: &mut Watch<'_>,
) -> Result<ProgramEnd> {
    let ended = run_to_the_end(folder, lines, control, watch);
    lines.end();
    watch.left_out = lines.left_out();
    match watch.left_out {
        0 => {}
        count => terminal::note(&format!(
            "note: the program has printed or marked so much that {} are left out: they are \
             neither shown nor recorded",
            terminal::counted(count, "line")
        )),
    }
    ended
}

fn run_to_the_end(
    folder: &Path,
    lines: &AckLines,
    control: Option<&ControlPlace>,
    watch: &mut Watch<'_>,
) -> Result<ProgramEnd> {
    if watch.is_asked() {
        bail!("the program was not begun");
    }
    let (name, arguments) = watch.program.split_first().context("no program")?;
    // It may ask the terminal for nothing: it is in a group of its own, to be ended as a whole.
    let stdin = std::io::stdin();
    let stdin = if stdin.is_terminal() { Stdio::null() } else { Stdio::inherit() };
    let mut command = Command::new(found(name));
    command
        .args(arguments)
        .current_dir(folder)
        .env("STEADFAST_MOUNT", folder)
        .env("PWD", folder)
        .envs(control.map(ControlPlace::environment).into_iter().flatten())
        .stdin(stdin)
        .stdout(Stdio::piped());
    let mut group = Group::start(&mut command).map_err(|e| Usage(format!("{name}: {e}")))?;
    let out = group.child.stdout.take();
    let reading = out.map(|out| reader(out, lines.clone())).transpose()?;
    let interrupted = loop {
        lines.show(&mut watch.shown)?;
        (watch.progress)(0.0, "running the program");
        if group.has_ended()? {
            break false;
        }
        if watch.is_asked() {
            watch.answered += 1;
            group.stop()?;
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
        lines.show(&mut watch.shown)?;
        let share = begun.elapsed().as_secs_f64() / watch.linger.as_secs_f64();
        (watch.progress)(share, "it has ended; what it left is written");
        std::thread::sleep(PAUSE.min(watch.linger.saturating_sub(begun.elapsed())));
    }
    lines.end();
    // What it has left running must not keep the mount.
    let status = group.end()?;
    // Who reads slowly is waited for; a signal ends that.
    let left = loop {
        let left = lines.show(&mut watch.shown)?;
        if left == 0 || watch.is_asked() {
            break left as u64;
        }
        std::thread::sleep(PAUSE);
    };
    if left > 0 {
        let count = terminal::counted(left, "line");
        terminal::note(&format!("note: nobody reads: {count} of the program's are not shown"));
    }
    watch.answered += usize::from(watch.is_asked());
    Ok(if interrupted { ProgramEnd::Interrupted } else { ProgramEnd::By(status) })
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

/// A process with all that it starts and that does not leave its group of processes. Dropping it
/// kills the group: whatever becomes of who has started it, nothing is left.
pub struct Group {
    child: Child,
    /// It is buried, and its number may be another's.
    is_gone: bool,
}

impl Group {
    /// Starts the command as the first of a group of its own.
    pub fn start(command: &mut Command) -> std::io::Result<Group> {
        Ok(Group { child: command.process_group(0).spawn()?, is_gone: false })
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
        let Some(pid) = self.number() else { return Ok(true) };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(pid), look).context("looking after the program")?.is_some())
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

    fn signal(&self, signal: Signal) {
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

fn reader(out: ChildStdout, lines: AckLines) -> Result<std::thread::JoinHandle<()>> {
    let pipe = Arc::new(OutputPipe::new(out).context("the program's output")?);
    lines.come_from(&pipe);
    let thread = std::thread::Builder::new().name("output".into());
    thread
        .spawn(move || pipe.read_to_end(&lines))
        .context("a thread that reads the program's output")
}

#[cfg(test)]
mod tests {
    use steadfast_devices::filter::record::RecordLog;

    use super::*;

    fn watched(program: &str, stops: usize, answered: usize) -> (Result<ProgramEnd>, usize) {
        let program = ["sh", "-c", program].map(str::to_owned);
        let (stops, log, mut out) = (AtomicUsize::new(stops), RecordLog::new(), Vec::new());
        let mut watch = Watch {
            program: &program,
            linger: Duration::ZERO,
            shown: LineOutput::new(&mut out, None),
            stops: &stops,
            answered,
            left_out: 0,
            progress: &|_, _| {},
        };
        let folder = tempfile::tempdir().unwrap();
        let ended = run(folder.path(), &AckLines::new(&log), None, &mut watch);
        (ended, watch.answered)
    }

    /// What has left the group goes on printing: it would fill memory while states are judged.
    #[test]
    fn nothing_is_read_after_the_end() {
        let lines = AckLines::new(&RecordLog::new());
        let mut command = Command::new("sh");
        command.args(["-c", "while echo y; do sleep 0.01; done"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut group = Group::start(&mut command).unwrap();
        let reading = reader(group.child.stdout.take().unwrap(), lines.clone()).unwrap();
        while lines.lines().len() < 2 {
            std::thread::sleep(PAUSE);
        }
        lines.end();
        let taken = lines.lines().len();
        reading.join().unwrap();
        while !group.has_ended().unwrap() {
            std::thread::sleep(PAUSE);
        }
        assert_eq!(lines.lines().len(), taken);
        let mut out = Vec::new();
        assert_eq!(lines.show(&mut LineOutput::new(&mut out, None)).unwrap(), 0);
        assert_eq!(out, b"y\n".repeat(taken));
    }

    #[test]
    fn a_signal_before_it_is_for_it() {
        let (ended, _) = watched("sleep 600", 1, 0);
        assert!(ended.unwrap_err().to_string().contains("was not begun"));
        let (ended, answered) = watched("exit 0", 1, 1);
        assert!(matches!(ended.unwrap(), ProgramEnd::By(status) if status.success()));
        assert_eq!(answered, 1);
    }
}
