//! Running the host's tools.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::Duration;

/// After this a tool is killed: a mount that hangs must not hang its judge.
const LIMIT: Duration = Duration::from_secs(120);

/// A tool of the host that did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{command}: {said}")]
pub struct ToolError {
    /// The command line.
    pub command: String,
    /// How it ended and what it printed.
    pub said: String,
}

impl ToolError {
    /// Whether it says that somebody uses what was to be taken away.
    pub fn is_busy(&self) -> bool {
        self.said.contains("busy")
    }
}

/// Runs a tool; what it printed to its standard output.
pub(crate) fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Result<String, ToolError> {
    run_for(LIMIT, program, arguments)
}

/// The same, with a limit in whole seconds.
pub(crate) fn run_for<S: AsRef<OsStr>>(
    limit: Duration,
    program: &str,
    arguments: &[S],
) -> Result<String, ToolError> {
    let failed = |said: String| {
        let words = arguments.iter().map(|a| a.as_ref().to_string_lossy().into_owned());
        let command = std::iter::once(program.to_owned()).chain(words);
        ToolError { command: command.collect::<Vec<_>>().join(" "), said }
    };
    let output = Command::new("timeout")
        .args(["-s", "KILL", &limit.as_secs().to_string(), program])
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failed(format!("cannot be run: {e}")))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("{}: {}", output.status, [printed.trim(), errors.trim()].join(" ").trim())))
}
