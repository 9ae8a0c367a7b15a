//! Journal devices of this machine: opened by path, or found by UUID.

use std::path::{Path, PathBuf};

use anyhow::Result;
use steadfast::{device_number, find_journal};
use steadfast_ext4_tune::JournalDevice;
use steadfast_setup::path::memory;

use super::image::open;
use crate::terminal;

/// Opens a journal device.
pub fn open_journal(path: &Path, read_only: bool, accept_volatile: bool) -> Result<JournalDevice> {
    let number = device_number(memory::file(path));
    let device = open(path, read_only)?;
    Ok(JournalDevice { device, number, accept_volatile })
}

/// The journal of the file system at `image`, as [`find_journal`] finds it, opened. One that
/// nobody has named is reported.
pub fn of_image(image: &Path, given: &[PathBuf], read_only: bool) -> Result<Option<JournalDevice>> {
    // One that is given may be said to be mapped, and is opened as it is said.
    let Some(path) = find_journal(memory::file(image), given)? else { return Ok(None) };
    if given.iter().all(|g| *g != path) {
        terminal::note(&format!("note: the journal is {}", path.display()));
    }
    open_journal(&path, read_only, true).map(Some)
}
