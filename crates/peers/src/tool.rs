//! Running the host's tools, whose exit status is an answer and not only a success.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use steadfast_host::{MountFolder, ToolError, dead_mounts};

use crate::{PeerError, Result};

/// Seconds after which a tool is killed: some hang on damaged images.
const LIMIT_SECONDS: &str = "120";

/// What a tool answered.
pub(crate) struct ToolOutput {
    /// Its exit status.
    pub code: Option<i32>,
    output: String,
    errors: String,
}

impl ToolOutput {
    /// All that it printed.
    pub fn text(&self) -> String {
        let text = format!("{}\n{}", self.output.trim(), self.errors.trim());
        let ended = self.code.map_or("killed".into(), |code| format!("exit status {code}"));
        format!("{ended}: {}", text.trim())
    }
}

/// Runs a tool under a time limit.
pub(crate) fn run(program: &str, line: &[&OsStr]) -> Result<ToolOutput> {
    let failed = |said| failed(program, line, said);
    let paths = std::env::var("PATH").unwrap_or_default();
    let ended = Command::new("timeout")
        .args(["-s", "KILL", LIMIT_SECONDS, program])
        .args(line)
        .env("LC_ALL", "C")
        .env("PATH", format!("{paths}:/usr/local/sbin:/usr/sbin:/sbin"))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failed(format!("cannot be run: {e}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let errors = text(&ended.stderr);
    match ended.status.code() {
        // timeout(1)'s own troubles, and a tool that it has killed: no answer.
        Some(124..=127 | 137) | None => {
            Err(failed(format!("{}, no answer: {}", ended.status, errors.trim())))
        }
        code => Ok(ToolOutput { code, output: text(&ended.stdout), errors }),
    }
}

/// Whether this process may mount on loop devices what the kernel knows as `kind`, after a try to
/// load it.
///
/// # Errors
/// No rights; the kernel has no such file system.
pub(crate) fn kernel_mounts(kind: &'static str) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(PeerError::NotRoot);
    }
    let known = || {
        let text = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        text.lines().any(|line| line.split_whitespace().last() == Some(kind))
    };
    // OK to ignore how modprobe ends: what counts is what the kernel knows then.
    let comes = || run("modprobe", &[kind.as_ref()]).is_ok() && known();
    if known() || comes() { Ok(()) } else { Err(PeerError::NoKernel { kind }) }
}

/// Runs a tool that must succeed.
pub(crate) fn succeed(program: &str, line: &[&OsStr]) -> Result<()> {
    let said = run(program, line)?;
    if said.code == Some(0) {
        return Ok(());
    }
    // Some look at all loop devices that are mounted, and fail for one over a dead mount.
    let not_connected = said.text().contains("endpoint is not connected");
    let what_to_do = if not_connected { dead_mounts() } else { String::new() };
    Err(failed(program, line, said.text() + &what_to_do))
}

fn failed(program: &str, line: &[&OsStr], said: String) -> PeerError {
    let words = line.iter().map(|w| w.to_string_lossy().into_owned());
    let command = std::iter::once(program.to_owned()).chain(words).collect::<Vec<_>>().join(" ");
    PeerError::Tool(ToolError { command, said })
}

/// Whether a program is installed.
pub(crate) fn is_there(program: &str) -> bool {
    let paths = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin";
    paths.split(':').any(|folder| Path::new(folder).join(program).is_file())
}

/// A folder to mount something on.
pub(crate) fn new_folder() -> Result<MountFolder> {
    MountFolder::new().map_err(|e| PeerError::Folder { why: e.to_string() })
}
