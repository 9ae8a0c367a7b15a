//! Loop devices.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::program::{Failed, run};

/// A loop device over a file, for writing. Detached when dropped, and then the file holds all that
/// was written to the device.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    attached: bool,
}

impl LoopDevice {
    /// Attaches a free loop device to the file.
    ///
    /// # Errors
    /// No loop devices, no rights, no such file: what `losetup` says.
    pub fn attach(file: &Path) -> Result<LoopDevice, Failed> {
        let printed = run("losetup", &["--find".as_ref(), "--show".as_ref(), file.as_os_str()])?;
        Ok(LoopDevice { path: PathBuf::from(printed.trim()), attached: true })
    }

    /// As [`attach`](Self::attach), past the page cache: what is written to the device is written
    /// to the file before it is answered, and several requests are under way at once.
    ///
    /// # Errors
    /// As there; the file's file system cannot do it.
    pub fn attach_direct(file: &Path) -> Result<LoopDevice, Failed> {
        let options = ["--direct-io=on", "--find", "--show"];
        let words: Vec<&OsStr> = options.iter().map(OsStr::new).chain([file.as_os_str()]).collect();
        let printed = run("losetup", &words)?;
        Ok(LoopDevice { path: PathBuf::from(printed.trim()), attached: true })
    }

    /// The device's own path: `/dev/loop3`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As [`path`](Self::path), as text.
    ///
    /// # Panics
    /// Never: the names of loop devices are ASCII.
    pub fn name(&self) -> &str {
        self.path.to_str().expect("the names of loop devices are ASCII")
    }

    /// Writes out what the device has in its cache. Closing it does so only if nobody else has it
    /// open.
    ///
    /// # Errors
    /// What `blockdev` says.
    pub fn flush(&self) -> Result<(), Failed> {
        run("blockdev", &["--flushbufs".as_ref(), self.path.as_os_str()]).map(drop)
    }

    /// Detaches it now, so that a failure is seen.
    ///
    /// # Errors
    /// It stays in use by somebody.
    pub fn detach(mut self) -> Result<(), Failed> {
        self.let_go()
    }

    fn let_go(&mut self) -> Result<(), Failed> {
        if !std::mem::take(&mut self.attached) {
            return Ok(());
        }
        self.flush()?;
        run("losetup", &["--detach".as_ref(), self.path.as_os_str()])?;
        // A device that is in use is detached when its last user lets go.
        if crate::patiently(|| run("losetup", &[&self.path]).is_err()) {
            return Ok(());
        }
        let command = format!("losetup --detach {}", self.name());
        Err(Failed { command, said: "the device stays in use".to_owned() })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.let_go();
    }
}
