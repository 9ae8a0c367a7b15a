//! The state file: replaced atomically, so that a power cut leaves the old state or the new one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use steadfast_devices::source::locked_by;
use steadfast_vfs::bounded;

use super::{FORMAT, Records, VERSION};
use crate::protocol::Refusal;
use crate::protocol::RefusalKind::{Busy, Failed, Unsupported};

/// Bytes of a state file, at most: some hundred for each device and volume.
const STATE_MAX: u64 = 64 << 20;

/// What is done with files to replace one. In the tests each of it fails, or is the last before a
/// power cut.
trait Files {
    /// A new file, empty if it was there.
    fn create(&self, path: &Path) -> io::Result<()>;
    /// Puts bytes at its end.
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Makes what is in it durable.
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// Gives it another's name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// The machine's own.
struct OwnFiles;

impl Files for OwnFiles {
    fn create(&self, path: &Path) -> io::Result<()> {
        File::create(path).map(drop)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        OpenOptions::new().append(true).open(path)?.write_all(bytes)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().append(true).open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// Writes a new file beside, durably. The old one is as it was.
fn prepare(files: &dyn Files, new: &Path, bytes: &[u8]) -> io::Result<()> {
    files.create(new)?;
    files.append(new, bytes)?;
    files.sync(new)
}

/// Puts it in the old one's place, durably.
fn commit(files: &dyn Files, new: &Path, path: &Path) -> io::Result<()> {
    files.rename(new, path)?;
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
    files.sync_folder(folder.unwrap_or(Path::new(".")))
}

/// The state file, and the lock that says that one host has it.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    // Its lock goes with it, also when the process is killed.
    _lock: File,
}

/// A state that is written, and counts once it is committed.
#[must_use]
pub struct PreparedState<'f>(&'f StateFile);

impl StateFile {
    /// The state file of a configuration, which nobody else may have.
    ///
    /// # Errors
    /// Another host has it; the folder cannot be written to.
    pub fn open(config: &Path) -> Result<StateFile, Refusal> {
        let path = beside(config, "state.json");
        let lock_path = beside(config, "lock");
        let failed = |e: io::Error| Failed.because(format!("{}: {e}", lock_path.display()));
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let lock = OpenOptions::new().create(true).append(true).open(&lock_path).map_err(failed)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(StateFile { path, _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let who = locked_by(&lock).map(|holder| format!(": {holder}")).unwrap_or_default();
                let what = format!("{}: another host has this configuration", config.display());
                Err(Busy.because(what + &who))
            }
            Err(e) => Err(failed(e.into())),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The stored records; empty at the first start.
    ///
    /// # Errors
    /// It cannot be read, makes no sense, or is of a newer version.
    pub fn read(&self) -> Result<Records, Refusal> {
        let shown = self.path.display();
        let failed = |what: String| Failed.because(format!("{shown}: {what}"));
        let text = match bounded::text(&self.path, STATE_MAX) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Records::default()),
            Err(e) => return Err(failed(e.to_string())),
        };
        let version = serde_json::from_str::<serde_json::Value>(&text).map_err(|e| {
            failed(format!(
                "is damaged: {e}; restore it from a copy, or move it away: volumes that the \
                 configuration has are then found again by their labels, and the log names the \
                 devices of others"
            ))
        })?;
        if version["version"].as_u64().is_some_and(|v| v > u64::from(VERSION)) {
            let version = &version["version"];
            let what =
                format!("has version {version}, this program knows {VERSION}: use a newer one");
            return Err(Unsupported.because(format!("{shown}: {what}")));
        }
        serde_json::from_str(&text).map_err(|e| failed(format!("makes no sense: {e}")))
    }

    /// Writes what is to be recorded once it is done. Nothing counts of it before that.
    ///
    /// # Errors
    /// The disk is full or fails; what was recorded before stays.
    pub fn prepare(&self, records: &Records) -> Result<PreparedState<'_>, Refusal> {
        let records = Records { format: FORMAT.to_owned(), version: VERSION, ..records.clone() };
        let text = serde_json::to_string_pretty(&records).map_err(|e| self.failed(e.into()))?;
        prepare(&OwnFiles, &self.new_path(), (text + "\n").as_bytes())
            .map(|()| PreparedState(self))
            .map_err(|e| self.failed(e))
    }

    /// Replaces it, durably.
    ///
    /// # Errors
    /// The disk is full or fails; what was recorded before stays.
    pub fn write(&self, records: &Records) -> Result<(), Refusal> {
        self.prepare(records)?.commit()
    }

    fn new_path(&self) -> PathBuf {
        self.path.with_extension("json.new")
    }

    fn failed(&self, error: io::Error) -> Refusal {
        // OK to ignore: it is overwritten the next time.
        let _ = std::fs::remove_file(self.new_path());
        let shown = self.path.display();
        Failed.because(format!("{shown}: cannot be written: {error}"))
    }
}

impl PreparedState<'_> {
    /// It counts from now on.
    ///
    /// # Errors
    /// The disk fails.
    pub fn commit(self) -> Result<(), Refusal> {
        let file = self.0;
        commit(&OwnFiles, &file.new_path(), &file.path).map_err(|e| file.failed(e))
    }

    /// It was not done.
    pub fn discard(self) {
        // OK to ignore: it is overwritten the next time.
        let _ = std::fs::remove_file(self.0.new_path());
    }
}

/// A file beside the configuration, of the same name.
fn beside(config: &Path, extension: &str) -> PathBuf {
    config.with_extension(extension)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
