//! Running programs, never for longer than a limit.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::{Result, SuiteError};

/// How often a program is asked whether it has ended.
const POLL: Duration = Duration::from_millis(5);

/// How long a program that was killed is waited for: one that hangs in the kernel never ends.
const AFTER_KILL: Duration = Duration::from_secs(10);

/// Waits for a program for at most `limit`; `None`: it has not ended.
///
/// # Errors
/// What the system says to waiting.
pub fn ended(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        match child.try_wait()? {
            None if begun.elapsed() > limit => return Ok(None),
            None => std::thread::sleep(POLL),
            status => return Ok(status),
        }
    }
}

/// Kills a program that took too long, and says what became of it.
fn killed(child: &mut Child, limit: Duration) -> std::io::Error {
    // It may end this very moment.
    let _ = child.kill();
    let late = format!("took longer than {} s and was killed", limit.as_secs());
    let what = match ended(child, AFTER_KILL) {
        Ok(Some(_)) => late,
        _ => format!("{late}, but is still there: it hangs in the kernel"),
    };
    std::io::Error::new(ErrorKind::TimedOut, what)
}

/// Runs a program for at most `limit`, without input; its exit status and its outputs. One that
/// takes longer is killed and is an error. What it leaves running is not waited for.
///
/// # Errors
/// It could not be started, or took longer.
pub fn output(limit: Duration, command: &mut Command) -> Result<Output> {
    let program = shown(command);
    let failed = |source| SuiteError::Program { program: program.clone(), source };
    let mut out = tempfile::tempfile().map_err(failed)?;
    let mut err = tempfile::tempfile().map_err(failed)?;
    let for_output = out.try_clone().map_err(failed)?;
    let for_errors = err.try_clone().map_err(failed)?;
    command.stdin(Stdio::null()).stdout(for_output).stderr(for_errors);
    let mut child = command.spawn().map_err(failed)?;
    let Some(status) = ended(&mut child, limit).map_err(failed)? else {
        return Err(failed(killed(&mut child, limit)));
    };
    let read = |file: &mut std::fs::File| {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let (stdout, stderr) = (read(&mut out).map_err(failed)?, read(&mut err).map_err(failed)?);
    Ok(Output { status, stdout, stderr })
}

/// Waits for a program with pipes for at most `limit`; its exit status and its outputs. One that
/// takes longer is killed and is an error; so is one that leaves somebody behind who keeps a pipe.
///
/// # Errors
/// It took longer, or what the system says to waiting.
pub fn output_of(limit: Duration, mut child: Child) -> std::io::Result<Output> {
    drop(child.stdin.take());
    let out = child.stdout.take().map(read_in_thread);
    let err = child.stderr.take().map(read_in_thread);
    let Some(status) = ended(&mut child, limit)? else { return Err(killed(&mut child, limit)) };
    let read = |reading: Option<Receiver<std::io::Result<Vec<u8>>>>| match reading {
        None => Ok(Vec::new()),
        Some(reading) => reading.recv_timeout(AFTER_KILL).map_err(|_| {
            std::io::Error::new(ErrorKind::TimedOut, "it has ended, and its pipe is still open")
        })?,
    };
    Ok(Output { status, stdout: read(out)?, stderr: read(err)? })
}

fn read_in_thread(mut pipe: impl Read + Send + 'static) -> Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.read_to_end(&mut bytes).map(|_| bytes);
        // OK to ignore: nobody waits any more.
        let _ = sender.send(read);
    });
    receiver
}

/// Runs a program for at most `limit`; its exit status and both its outputs. One that takes longer
/// is killed and is an error.
pub fn run(limit: Duration, command: &mut Command) -> Result<(ExitStatus, String)> {
    let program = shown(command);
    let failed = |source| SuiteError::Program { program: program.clone(), source };
    // A file, not a pipe: a daemon that the program leaves behind would keep a pipe open.
    let mut output = tempfile::tempfile().map_err(failed)?;
    let for_errors = output.try_clone().map_err(failed)?;
    let for_output = output.try_clone().map_err(failed)?;
    command.stdin(Stdio::null()).stdout(for_output).stderr(for_errors);
    let mut child = command.spawn().map_err(failed)?;
    let Some(status) = ended(&mut child, limit).map_err(failed)? else {
        return Err(failed(killed(&mut child, limit)));
    };
    let mut text = Vec::new();
    output.seek(SeekFrom::Start(0)).map_err(failed)?;
    output.read_to_end(&mut text).map_err(failed)?;
    Ok((status, String::from_utf8_lossy(&text).into_owned()))
}

/// As [`run`]; an exit status that is not 0 is an error. Gives what the program wrote.
pub fn run_ok(limit: Duration, command: &mut Command) -> Result<String> {
    let (status, output) = run(limit, command)?;
    if status.success() {
        return Ok(output);
    }
    Err(SuiteError::Failed { program: shown(command), status: status.to_string(), output })
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn output_and_outcome() {
        let mut sh = Command::new("sh");
        let (status, text) = run(SOON, sh.args(["-c", "echo out; echo err >&2; exit 3"])).unwrap();
        assert_eq!((status.code(), text.as_str()), (Some(3), "out\nerr\n"));
        let error = run_ok(SOON, Command::new("sh").args(["-c", "echo no; exit 1"])).unwrap_err();
        assert!(error.to_string().contains("no"), "{error}");
    }

    #[test]
    fn what_takes_too_long_is_killed() {
        let error = run(Duration::from_millis(50), Command::new("sleep").arg("100")).unwrap_err();
        assert!(error.to_string().contains("took longer"), "{error}");
        let limit = Duration::from_millis(50);
        let error = output(limit, Command::new("sleep").arg("100")).unwrap_err();
        assert!(error.to_string().contains("took longer"), "{error}");
    }

    #[test]
    fn pipes_are_read_within_the_limit() {
        let start = |line: &str| {
            let mut sh = Command::new("sh");
            sh.args(["-c", line]).stdin(Stdio::piped()).stdout(Stdio::piped());
            sh.stderr(Stdio::piped()).spawn().unwrap()
        };
        // More than a pipe holds.
        let out = output_of(SOON, start("head -c 300000 /dev/zero; cat; echo err >&2")).unwrap();
        assert_eq!((out.stdout.len(), &out.stderr[..]), (300_000, &b"err\n"[..]));
        let late = output_of(Duration::from_millis(50), start("exec sleep 100")).unwrap_err();
        assert!(late.to_string().contains("took longer"), "{late}");
    }

    #[test]
    fn outputs_are_apart_and_nobody_who_is_left_running_is_waited_for() {
        let mut sh = Command::new("sh");
        let out = output(SOON, sh.args(["-c", "sleep 100 & echo out; echo err >&2; exit 3"]));
        let out = out.unwrap();
        assert_eq!((out.status.code(), &out.stdout[..]), (Some(3), &b"out\n"[..]));
        assert_eq!(out.stderr, b"err\n");
    }
}
