//! `steadfast umount`: takes a mount away and waits until everything is written.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::{control, place};
use crate::{Outcome, Usage, terminal};

/// Unmounts; returns once the process has let the devices go.
pub fn umount(mountpoint: &Path) -> Result<Outcome> {
    let at = place::canonical(mountpoint)
        .map_err(|e| Usage(format!("{}: {e}", mountpoint.display())))?;
    if let Some(running) = control::at(&at)? {
        let answer = control::ask(&running.socket, &json!({ "do": "umount" }), None)?;
        wait_for_end(&running);
        if let Some(note) = answer["note"].as_str() {
            terminal::note(note);
        }
        return Ok(Outcome::Good);
    }
    if !place::is_mounted(&at) {
        return Err(Usage(format!("{}: no mount of ours", at.display())).into());
    }
    if at.metadata().is_ok() {
        return Err(Usage(format!(
            "{}: its process does not answer here; it may be another user's: umount or \
             fusermount3 -u works too, but does not wait for the flush",
            at.display()
        ))
        .into());
    }
    steadfast_fuse::unmount_lazily(&at)?;
    terminal::note(&format!(
        "{}: its process was gone; what was synced is safe, the next mount recovers it",
        at.display()
    ));
    Ok(Outcome::Good)
}

/// The answer comes before the process has ended; its locks on the devices go with it.
fn wait_for_end(running: &control::Running) {
    let process = running.status["pid"].as_i64().unwrap_or(0);
    let folder = format!("/proc/{process}");
    for _ in 0..1000 {
        let ended = std::fs::read_to_string(format!("{folder}/stat"))
            .map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|s| s.starts_with('Z')));
        if ended {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
