//! Running the program, or a server and its client: what the program or the client prints is shown
//! and recorded, then time goes on for a while.

use std::io::IsTerminal;
use std::path::Path;
use std::process::{ChildStdout, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::control::ControlPlace;
use super::ended::{ProgramEnd, RunEnd};
use super::group::{Group, PAUSE};
use super::output::OutputPipe;
use super::printed::AckLines;
use super::server::Server;
use super::watch::{RunPlace, Watch};
use crate::{Usage, terminal};

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
    out.map(|out| read(out, lines.clone())).transpose()?;
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
    // A server whose end was its client's, too, has ended before it.
    server.as_mut().map(Server::has_ended).transpose()?;
    let gone = Instant::now();
    // All that it has printed is in the pipe; who has inherited that is not waited for.
    lines.catch_up();
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

fn read(out: ChildStdout, lines: AckLines) -> Result<()> {
    let pipe = Arc::new(OutputPipe::new(out).context("the program's output")?);
    lines.come_from(&pipe);
    let thread = std::thread::Builder::new().name("output".into());
    let reading = thread.spawn(move || pipe.read_to_end(&lines));
    reading.map(drop).context("a thread that reads the program's output")
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::AtomicUsize;

    use steadfast_devices::filter::record::RecordLog;

    use super::super::printed::LineOutput;
    use super::*;

    fn watched(program: &str, stops: usize, answered: usize) -> (Result<RunEnd>, usize) {
        let program = ["sh", "-c", program].map(str::to_owned);
        let (stops, log, mut out) = (AtomicUsize::new(stops), RecordLog::new(), Vec::new());
        let mut watch = Watch {
            program: &program,
            client: None,
            linger: std::time::Duration::ZERO,
            shown: LineOutput::new(&mut out, None),
            stops: &stops,
            answered,
            left_out: 0,
            progress: &|_, _| {},
            stacks: false,
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
        read(group.stdout().unwrap(), lines.clone()).unwrap();
        while lines.lines().len() < 2 {
            std::thread::sleep(PAUSE);
        }
        lines.end();
        let taken = lines.lines().len();
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
