//! e2fsck, where it is installed: a second opinion on the recovered image (`-fn`), and what a
//! machine does at its start with a file system that has no journal (`-p`).

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

    /// The repairs at boot that need nobody (`-p`), and what was on the disk after them; where they
    /// were not enough, what e2fsck said, and the disk after a person had said yes to everything.
    /// May be called by several threads at once.
    ///
    /// # Errors
    /// It could not be run, or did not end.
    pub fn at_boot(&self, disk: &Store) -> Result<(Store, Option<String>), String> {
        let bad = |e: std::io::Error| format!("an image for e2fsck: {e}");
        let image = tempfile::NamedTempFile::new_in(self.folder.path()).map_err(bad)?;
        disk.export(image.path()).map_err(bad)?;
        let run = |how: &str| {
            let mut command = Command::new("timeout");
            command.args(["-s", "KILL", LIMIT_SECONDS]).arg(&self.program).arg(how);
            let output = command.arg(image.path()).stdin(Stdio::null()).output();
            output.map_err(|e| format!("e2fsck could not be run: {e}"))
        };
        let output = run("-p")?;
        // 1 and 2: errors were corrected; 4 and more: left as they are.
        let person = match output.status.code() {
            Some(0..4) => None,
            Some(_) => {
                run("-fy")?;
                Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            }
            None => return Err(format!("e2fsck -p: {}", output.status)),
        };
        Ok((Store::import(image.path()).map_err(bad)?, person))
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
