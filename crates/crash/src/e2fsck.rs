//! A second opinion: `e2fsck -fn` on the recovered image, where it is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use steadfast_devices::store::Store;

/// Seconds after which e2fsck is killed: on some damaged images it hangs.
const LIMIT_SECONDS: &str = "60";

/// An installed e2fsck.
pub struct E2fsck {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl E2fsck {
    /// Finds e2fsck and a folder for images; `None` if either is missing.
    pub fn find() -> Option<E2fsck> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&paths)
            .chain(["/sbin", "/usr/sbin"].map(PathBuf::from))
            .map(|p| p.join("e2fsck"))
            .find(|p| p.is_file())?;
        let folder = tempfile::tempdir().ok()?;
        Some(E2fsck { program, folder })
    }

    /// `Ok` if e2fsck calls the image clean; its output otherwise.
    pub fn judge(&self, disk: &Store, journal: Option<&Store>) -> Result<(), String> {
        let image = self.folder.path().join("disk.img");
        disk.export(&image).map_err(|e| format!("cannot write an image for e2fsck: {e}"))?;
        let journal = journal
            .map(|j| {
                let path = self.folder.path().join("journal.img");
                j.export(&path).map(|()| path)
            })
            .transpose()
            .map_err(|e| format!("cannot write an image for e2fsck: {e}"))?;
        self.judge_image(&image, journal.as_deref())
    }

    /// The same of an image that is there.
    pub fn judge_image(&self, image: &Path, journal: Option<&Path>) -> Result<(), String> {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", LIMIT_SECONDS]).arg(&self.program).arg("-fn");
        if let Some(journal) = journal {
            command.arg("-j").arg(journal);
        }
        let output = command
            .arg(image)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("e2fsck could not be run: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}: {} {}", output.status, text.trim(), errors.trim()))
    }
}
