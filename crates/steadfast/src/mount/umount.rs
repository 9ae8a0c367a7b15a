//! `steadfast umount`: takes a mount away and waits until everything is written.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use steadfast_host::mounts;

use super::control::RunningMount;
use super::ending::Ending;
use super::{control, holders};
use crate::commands::trace::{RECORDING, is_killed};
use crate::{CommandEnd, Usage, terminal};

/// After this it is said what is waited for, and again when that changes.
const SILENCE: Duration = Duration::from_secs(1);

/// How long the end of a process that has answered may take.
const ENDING_MAX: Duration = Duration::from_secs(5);

/// Unmounts; returns once the process has let the devices go, or after `timeout`.
pub fn umount(mountpoint: &Path, timeout: Option<Duration>) -> Result<CommandEnd> {
    let (at, running) = control::at(mountpoint)?;
    if let Some(running) = running {
        let answer = take_away(&running, &at, timeout)?;
        if let Some(note) = answer["note"].as_str() {
            terminal::note(note);
        }
        return Ok(CommandEnd::Good);
    }
    let shown = at.display();
    let place = mounts::at(&at).map_err(|e| Usage(format!("{shown}: {e}")))?;
    let Some(mount) = place.mounted().filter(|m| m.is_ours()) else {
        return Err(not_ours(&place, &at));
    };
    let is_recording = mount.source == RECORDING;
    if !(is_recording && is_killed(&at) || control::is_gone(&at)) {
        if is_recording {
            usage!(
                "{shown}: a program is recorded here (steadfast trace record): end it, or the \
                 recording (Ctrl-C), and the mount goes with it"
            );
        }
        usage!(
            "{shown}: its process ({}) does not answer here; it may be another user's: umount or \
             fusermount3 -u works too, but does not wait for the flush",
            mount.source
        );
    }
    steadfast_fuse::unmount_lazily(&at)?;
    let what = match is_recording {
        true => {
            "the recording here (steadfast trace record) was killed, and has left its mount: that \
             is gone now. The files in the folder are as the program has left them; what was \
             recorded until then is in the trace (steadfast trace show)"
        }
        false => "its process was gone; what was synced is safe, the next mount recovers it",
    };
    terminal::note(&format!("{shown}: {what}"));
    Ok(CommandEnd::Good)
}

/// Why a path is refused that is no mount of ours, or that has another over it.
fn not_ours(place: &mounts::MountPath, at: &Path) -> anyhow::Error {
    let shown = at.display();
    let table = mounts::seen_by("self").unwrap_or_default();
    let below = table.iter().any(|m| m.is_ours() && m.at == at);
    match place.mounted() {
        Some(over) if below => {
            anyhow!("{} ({}) is mounted over {shown}: unmount that first", over.source, over.kind)
        }
        Some(other) => {
            Usage(format!("{shown}: {} ({}) is no mount of ours", other.source, other.kind)).into()
        }
        None => Usage(format!("{shown}: nothing is mounted there")).into(),
    }
}

/// A path in a request: text, or its bytes.
fn word_of(path: &Path) -> Value {
    path.to_str().map_or_else(|| json!(path.as_os_str().as_bytes()), |text| json!(text))
}

/// Has a mount's process take it away from `at`, and waits for its end; says for what, if it
/// takes long.
fn take_away(running: &RunningMount, at: &Path, timeout: Option<Duration>) -> Result<Value> {
    let begun = Instant::now();
    let process = running.peer.map(Ending::of);
    let (sender, receiver) = channel();
    // Sent before anything is waited for: without time it is asked for all the same.
    let mount = mounts::at(at).ok().and_then(|place| Some(place.mounted()?.id));
    let request = json!({ "do": "umount", "at": word_of(at), "mount": mount });
    let sent = control::send(&running.socket, &request)?;
    // Ends with the answer, or with this process.
    std::thread::Builder::new().name("umount".into()).spawn(move || {
        // OK to ignore: nobody waits any more.
        let _ = sender.send(sent.answer());
    })?;
    let mut said = String::new();
    loop {
        let left = timeout.map(|t| t.saturating_sub(begun.elapsed()));
        let pause = left.map_or(SILENCE, |left| left.min(SILENCE));
        match receiver.recv_timeout(pause) {
            Ok(Ok(answer)) if answer["elsewhere"] == true => return take_own_away(at),
            Ok(Ok(answer)) => {
                if let Some(process) = process.filter(|_| answer["stays"] != true) {
                    process.wait(ending_max(timeout, begun.elapsed()));
                }
                return Ok(answer);
            }
            Ok(Err(e)) => return Err(with_users(e, running, at)),
            Err(RecvTimeoutError::Disconnected) => bail!("the answer was lost"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let what = waiting_for(running, at);
        if left.is_some_and(|left| left <= pause) {
            bail!("{}: not within the time given: {what}", at.display());
        }
        if said != what {
            terminal::note(&format!("waiting: {what}"));
            said = what;
        }
    }
}

/// Takes a copy of a mount away that its process does not see: it is in this namespace of mounts.
fn take_own_away(at: &Path) -> Result<Value> {
    steadfast_fuse::unmount(at)?;
    let note = format!(
        "{}: was a copy of the mount, in a namespace of mounts of its own; its process goes on \
         while there are others",
        at.display()
    );
    Ok(json!({ "note": note }))
}

/// How long the end is waited for, of the time given: the answer has taken so much of it.
fn ending_max(timeout: Option<Duration>, spent: Duration) -> Duration {
    timeout.map_or(ENDING_MAX, |timeout| timeout.saturating_sub(spent).min(ENDING_MAX))
}

/// Who keeps the mount beside the place where it is to be taken away, a line each.
fn holders_of(running: &RunningMount, at: &Path) -> Vec<String> {
    let text = |field: &str| running.status[field].as_str().unwrap_or_default();
    let found = holders::of(text("device"), at, text("source"));
    found.iter().map(ToString::to_string).collect()
}

/// Why it was refused. Where that is because it is in use, the kernel does not say by whom.
fn with_users(e: anyhow::Error, running: &RunningMount, at: &Path) -> anyhow::Error {
    if !e.to_string().contains("is in use") {
        return e;
    }
    let users = holders_of(running, at);
    if users.is_empty() { e } else { anyhow!("{e}\n{}", users.join("\n")) }
}

/// What an unmount waits for.
fn waiting_for(running: &RunningMount, at: &Path) -> String {
    let holders = holders_of(running, at);
    if holders.is_empty() {
        let process = running.process();
        return format!("process {process} still writes, or a copy of the mount is out of sight");
    }
    holders.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_part_of_the_time_given() {
        let seconds = Duration::from_secs;
        assert_eq!(ending_max(None, seconds(100)), ENDING_MAX);
        assert_eq!(ending_max(Some(seconds(60)), seconds(1)), ENDING_MAX);
        assert_eq!(ending_max(Some(seconds(4)), seconds(1)), seconds(3));
        assert_eq!(ending_max(Some(seconds(1)), seconds(2)), Duration::ZERO);
    }
}
