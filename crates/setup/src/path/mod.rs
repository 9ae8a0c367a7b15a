//! Opening what a path of this machine names: an image file, a block device, a range of memory
//! (`pmem:PATH`, or by its label), or a volume by its members (`volume:MEMBER,MEMBER`).

pub mod memory;
mod volume;

use std::path::Path;
use std::sync::Arc;

use steadfast_block::{BlockDevice, signatures};
use steadfast_devices::source::{FileDevice, FileOptions};
use steadfast_volume::AssemblyReport;

use crate::error::SetupError;
pub(crate) use volume::from_folder;
pub use volume::{
    MemberDevices, absolute, assembled, members_of, open_all, open_members, refuse_member,
    refuse_twice,
};

/// How a path is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct PathOptions {
    /// Nothing is written to it.
    pub read_only: bool,
    /// What can be mapped is mapped, to be used in place.
    pub in_place: bool,
    /// All of a file or block device is used: the label of a range of memory is but contents, and
    /// words before the path are part of it.
    pub as_it_is: bool,
}

/// What was opened by a path.
pub struct OpenPath {
    /// It, as a device.
    pub device: Arc<dyn BlockDevice>,
    /// The volumes of it, inner ones first: whoever opened it closes them.
    pub assembled: Vec<AssemblyReport>,
    /// What it does not promise, or lacks: a line each, for people.
    pub notes: Vec<String>,
}

/// Opens what a path names. A member of a volume is refused: its other members would not know.
///
/// # Errors
/// It is not there, in use, or not what it is said to be.
pub fn open(path: &Path, options: PathOptions) -> Result<OpenPath, SetupError> {
    if let Some(members) = members_of(path) {
        return volume::open_volume(&members, options.read_only);
    }
    let open = open_file(path, options)?;
    refuse_member(&open.device)?;
    Ok(open)
}

/// Opens an image file, a block device or a range of memory, whatever it holds.
///
/// # Errors
/// It is not there, in use, or not what it is said to be.
pub fn open_file(path: &Path, options: PathOptions) -> Result<OpenPath, SetupError> {
    let PathOptions { read_only, in_place, as_it_is } = options;
    if in_place || !as_it_is && memory::is_memory(path)? {
        return memory::open(path, read_only);
    }
    let file = if as_it_is { path } else { memory::file(path) };
    let device = FileDevice::open(file, &FileOptions { read_only, ..FileOptions::default() })?;
    // Why a request goes through the host's cache matters to a benchmark, not here.
    let matters = |note: &&String| !note.contains("direct") && !note.contains("O_DIRECT");
    let notes = device.notes().iter().filter(matters).cloned().collect();
    Ok(OpenPath { device: Arc::new(device), assembled: Vec::new(), notes })
}

/// Bytes at the start of a member that are nobody's: a superblock that is left there would be taken
/// for a file system's.
const START: usize = 4096;

/// Takes away what [`occupant`] finds.
///
/// # Errors
/// The device's.
pub fn forget_occupant(device: &Arc<dyn BlockDevice>) -> steadfast_block::Result<()> {
    signatures::wipe(device)?;
    match occupant(device) {
        Some(_) => device.write_fua(0, vec![0; START].into()),
        None => Ok(()),
    }
}

/// What a device holds that nobody wants to lose, in words with their article: a file system or a
/// journal of ours, or what is known by its signature.
pub fn occupant(device: &Arc<dyn BlockDevice>) -> Option<String> {
    match steadfast_ext4_check::info(device) {
        Ok(info) => {
            let kind = if info.is_journal_device { "a journal" } else { "a file system" };
            Some(format!("{kind} (UUID {})", info.uuid))
        }
        Err(_) => signatures::probe(device).map(str::to_owned),
    }
}
