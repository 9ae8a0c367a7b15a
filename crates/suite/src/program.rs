//! Running programs, never for longer than a limit.

use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// How often a program is asked whether it has ended.
const POLL: Duration = Duration::from_millis(5);

/// Runs a program for at most `limit`; its exit status and both its outputs. One that takes longer
/// is killed and is an error.
pub fn run(limit: Duration, command: &mut Command) -> Result<(ExitStatus, String)> {
    let program = shown(command);
    let failed = |source| Error::Program { program: program.clone(), source };
    // A file, not a pipe: a daemon that the program leaves behind would keep a pipe open.
    let mut output = tempfile::tempfile().map_err(failed)?;
    let for_errors = output.try_clone().map_err(failed)?;
    let for_output = output.try_clone().map_err(failed)?;
    command.stdin(Stdio::null()).stdout(for_output).stderr(for_errors);
    let mut child = command.spawn().map_err(failed)?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if begun.elapsed() > limit {
            // It may end this very moment.
            let _ = child.kill();
            let _ = child.wait();
            let late = format!("took longer than {} s and was killed", limit.as_secs());
            return Err(failed(std::io::Error::new(std::io::ErrorKind::TimedOut, late)));
        }
        std::thread::sleep(POLL);
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
    Err(Error::Failed { program: shown(command), status: status.to_string(), output })
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
    }
}
