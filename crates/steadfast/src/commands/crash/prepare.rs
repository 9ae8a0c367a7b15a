//! Running the command of `--setup`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use super::group::{Group, PAUSE};
use crate::{Usage, terminal};

/// So many bytes of each of its outputs are shown.
const PRINTED_MAX: u64 = 1 << 20;

/// Runs the command in `folder`; its output goes to the standard error. A signal that asks to stop
/// is handed on to it, as to the program.
pub fn run_setup(command: &str, folder: &Path, stops: &AtomicUsize) -> Result<()> {
    // It is the first step: a signal before it is meant for it too.
    let is_asked = || stops.load(Ordering::Relaxed) > 0;
    if is_asked() {
        bail!("--setup: {command:?} was not begun");
    }
    // No pipes: what the command leaves running would keep them open.
    let (out, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(folder)
        .env("STEADFAST_MOUNT", folder)
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(errors.try_clone()?);
    let group = Group::start(&mut shell).context("--setup: sh")?;
    let stopped = loop {
        if group.has_ended()? {
            break false;
        }
        if is_asked() {
            group.stop()?;
            break true;
        }
        std::thread::sleep(PAUSE);
    };
    // What it has left running must not keep the mount, nor outlive the run.
    let status = group.end().context("--setup")?;
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
    let last = last_line(&errors, &out);
    bail!(Usage(format!("--setup: {command:?} failed, {status}: {last}")))
}

/// What a command said last, of its errors or else of its output.
pub fn last_line<'a>(errors: &'a str, out: &'a str) -> &'a str {
    let mut last = [errors, out].into_iter();
    let last = last.find_map(|text| text.lines().rfind(|line| !line.trim().is_empty()));
    last.map_or("it printed nothing", str::trim)
}

/// What was printed: of much the end, which says what went wrong.
pub fn printed(mut file: File) -> Result<String> {
    let left_out = file.metadata()?.len().saturating_sub(PRINTED_MAX);
    file.seek(SeekFrom::Start(left_out))?;
    let mut text = Vec::new();
    // Who has left the group may go on printing.
    file.take(PRINTED_MAX).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    Ok(match left_out {
        0 => text.into_owned(),
        bytes => format!("({bytes} bytes before this are left out)\n{text}"),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_signal_before_it_is_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let said = run_setup("touch begun", folder.path(), &AtomicUsize::new(1)).unwrap_err();
        assert!(said.to_string().contains("was not begun"), "{said}");
        assert!(!folder.path().join("begun").exists());
    }

    #[test]
    fn of_much_that_it_prints_the_end_is_shown() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"first\n").unwrap();
        assert_eq!(printed(file.try_clone().unwrap()).unwrap(), "first\n");
        file.set_len(PRINTED_MAX * 2).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"last\n").unwrap();
        let text = printed(file).unwrap();
        let (note, end) = text.split_once('\n').unwrap();
        assert_eq!(note, format!("({} bytes before this are left out)", PRINTED_MAX + 5));
        assert!(end.len() as u64 == PRINTED_MAX && end.ends_with("last\n"));
    }

    #[test]
    fn what_it_leaves_running_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let command = "sleep 600 & echo $! > number";
        run_setup(command, folder.path(), &AtomicUsize::new(0)).unwrap();
        let number = std::fs::read_to_string(folder.path().join("number")).unwrap();
        let status = format!("/proc/{}/stat", number.trim());
        // It is killed, and gone or for its new parent to bury.
        let runs = || {
            let stat = std::fs::read_to_string(&status).unwrap_or_default();
            stat.contains("(sleep)") && !stat.contains("(sleep) Z")
        };
        while runs() {
            std::thread::sleep(PAUSE);
        }
    }
}
