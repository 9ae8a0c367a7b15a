//! Running the command of `--setup`.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use super::program::{PAUSE, has_ended, stop};
use crate::{Usage, terminal};

/// Runs the command in `folder`; its output goes to the standard error. A signal that asks to stop
/// is handed on to it, as to the program.
pub fn run_setup(command: &str, folder: &Path, stops: &AtomicUsize) -> Result<()> {
    // No pipes: what the command leaves running would keep them open.
    let (out, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut child = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("STEADFAST_MOUNT", folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(errors.try_clone()?)
        .spawn()
        .context("--setup: sh")?;
    let asked = stops.load(Ordering::Relaxed);
    let stopped = loop {
        if has_ended(&child)? {
            break false;
        }
        if stops.load(Ordering::Relaxed) > asked {
            stop(&child)?;
            break true;
        }
        std::thread::sleep(PAUSE);
    };
    let status = child.wait().context("--setup")?;
    let (out, errors) = (printed(out)?, printed(errors)?);
    for text in [&out, &errors].into_iter().filter(|text| !text.is_empty()) {
        terminal::note(text.trim_end());
    }
    if stopped {
        bail!("--setup: {command:?} was stopped");
    }
    if status.success() {
        return Ok(());
    }
    let last = [&errors, &out].into_iter();
    let last = last.filter_map(|text| text.lines().rfind(|line| !line.trim().is_empty())).next();
    let last = last.map_or("it printed nothing", str::trim);
    bail!(Usage(format!("--setup: {command:?} failed, {status}: {last}")))
}

fn printed(mut file: File) -> Result<String> {
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
