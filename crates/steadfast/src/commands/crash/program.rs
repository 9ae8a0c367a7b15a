//! Running the program, or a server and its client: what the program or the client prints is shown
//! and recorded, then time goes on for a while.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::client::ClientPlan;
use super::control::ControlPlace;
use super::ended::{ProgramEnd, RunEnd};
use super::group::{Group, PAUSE};
use super::output::OutputPipe;
use super::printed::{AckLines, LineOutput};
use super::server::Server;
use crate::{Usage, terminal};

/// How long its last lines are waited for, where something that it has started keeps the pipe.
const LAST_LINES: Duration = Duration::from_secs(10);

/// Where processes of a run work.
#[derive(Clone, Copy)]
pub struct RunPlace<'a> {
    /// The mounted folder.
    pub folder: &'a Path,
    /// Where they are listened to.
    pub control: Option<&'a ControlPlace>,
}

impl RunPlace<'_> {
    /// A command that is told of it.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(found(name));
        command
            .current_dir(self.folder)
            .env("STEADFAST_MOUNT", self.folder)
            .env("PWD", self.folder)
            .envs(self.control.map(ControlPlace::environment).into_iter().flatten());
        command
    }
}

/// What to run, and who gets its output.
pub struct Watch<'a> {
    /// The program and its arguments.
    pub program: &'a [String],
    /// What drives it, if it is a server.
    pub client: Option<&'a ClientPlan>,
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
    pub fn is_asked(&self) -> bool {
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
) -> Result<RunEnd> {
    let ended = run_to_the_end(RunPlace { folder, control }, lines, watch);
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

fn run_to_the_end(place: RunPlace<'_>, lines: &AckLines, watch: &mut Watch<'_>) -> Result<RunEnd> {
    if watch.is_asked() {
        bail!("the program was not begun");
    }
    let mut server = watch.client.map(|client| Server::ready(place, client, watch)).transpose()?;
    let client = watch.client.map(|client| ["sh", "-c", &client.command].map(str::to_owned));
    let words = client.as_ref().map_or(watch.program, |words| words);
    let (name, arguments) = words.split_first().context("no program")?;
    // It may ask the terminal for nothing: it is in a group of its own, to be ended as a whole.
    let stdin = std::io::stdin();
    let stdin = if stdin.is_terminal() { Stdio::null() } else { Stdio::inherit() };
    let mut command = place.command(name);
    command.args(arguments).stdin(stdin).stdout(Stdio::piped());
    let mut group = Group::start(&mut command).map_err(|e| Usage(format!("{name}: {e}")))?;
    let out = group.stdout();
    let reading = out.map(|out| reader(out, lines.clone())).transpose()?;
    let begun = Instant::now();
    let ended_by_us = loop {
        lines.show(&mut watch.shown)?;
        (watch.progress)(0.0, "running the program");
        if group.has_ended()? {
            break None;
        }
        let overdue = server.as_mut().map(|server| server.ends_client(begun)).transpose()?;
        if watch.is_asked() {
            watch.answered += 1;
            group.stop()?;
            break Some(ProgramEnd::Interrupted);
        }
        if let Some(why) = overdue.flatten() {
            group.stop()?;
            break Some(why);
        }
        std::thread::sleep(PAUSE);
    };
    let gone = Instant::now();
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
    let server = server.map(|server| server.end(gone, watch)).transpose()?;
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
    Ok(RunEnd { program: ended_by_us.unwrap_or(ProgramEnd::By(status)), server })
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

    fn watched(program: &str, stops: usize, answered: usize) -> (Result<RunEnd>, usize) {
        let program = ["sh", "-c", program].map(str::to_owned);
        let (stops, log, mut out) = (AtomicUsize::new(stops), RecordLog::new(), Vec::new());
        let mut watch = Watch {
            program: &program,
            client: None,
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
        let reading = reader(group.stdout().unwrap(), lines.clone()).unwrap();
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
        assert!(matches!(ended.unwrap().program, ProgramEnd::By(status) if status.success()));
        assert_eq!(answered, 1);
    }
}
