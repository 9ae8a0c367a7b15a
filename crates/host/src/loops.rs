//! Loop devices.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::program::{ToolError, run};

/// A loop device over a file, for writing. Detached when dropped, and then the file holds all that
/// was written to the device.
///
/// Its path names the present attachment. The kernel's disk sequence number (since Linux 5.15)
/// distinguishes this attachment from a later one by another process. So a later attachment is
/// never detached, and after a failure the caller may retry.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    sequence: Option<u64>,
    /// Autoclear is set: the kernel detaches the device when its last user closes it.
    autoclear: AtomicBool,
}

impl LoopDevice {
    /// Attaches a free loop device to the file.
    ///
    /// # Errors
    /// No loop devices, no rights, no such file: what `losetup` says.
    pub fn attach(file: &Path) -> Result<LoopDevice, ToolError> {
        LoopDevice::with(&[], file)
    }

    /// As [`attach`](Self::attach), past the page cache: what is written to the device is written
    /// to the file before it is answered, and several requests are in flight at once.
    ///
    /// # Errors
    /// As there; the file's file system cannot do it.
    pub fn attach_direct(file: &Path) -> Result<LoopDevice, ToolError> {
        LoopDevice::with(&["--direct-io=on"], file)
    }

    fn with(options: &[&str], file: &Path) -> Result<LoopDevice, ToolError> {
        let options = options.iter().chain(&["--find", "--show"]).map(OsStr::new);
        let words: Vec<&OsStr> = options.chain([file.as_os_str()]).collect();
        let printed = run("losetup", &words)?;
        let path = PathBuf::from(printed.trim());
        let sequence = sequence_of(&path);
        Ok(LoopDevice { path, sequence, autoclear: AtomicBool::new(false) })
    }

    /// Takes over an attachment of an earlier process, by its path and
    /// [`sequence`](Self::sequence).
    pub fn left(path: &Path, sequence: u64) -> Option<LoopDevice> {
        let attached = is_attached(path, Some(sequence));
        let (path, sequence) = (path.to_path_buf(), Some(sequence));
        attached.then(|| LoopDevice { path, sequence, autoclear: AtomicBool::new(false) })
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

    /// The kernel's number of this attachment, which no other disk has until the machine is
    /// started again. `None`: the kernel has no such numbers.
    pub fn sequence(&self) -> Option<u64> {
        self.sequence
    }

    /// Whether it is still over the file that it was made for. Others can detach it too.
    pub fn is_attached(&self) -> bool {
        is_attached(&self.path, self.sequence)
    }

    /// Writes out what the device has in its cache. Closing it does so only if nobody else has it
    /// open.
    ///
    /// # Errors
    /// What `blockdev` says.
    pub fn flush(&self) -> Result<(), ToolError> {
        run("blockdev", &["--flushbufs".as_ref(), self.path.as_os_str()]).map(drop)
    }

    /// Detaches it now, so that a failure is reported. It may be retried.
    ///
    /// # Errors
    /// It stays in use by somebody.
    pub fn detach(&self) -> Result<(), ToolError> {
        if !self.is_attached() {
            return Ok(());
        }
        self.flush()?;
        self.abandon()
    }

    /// The same without a flush: the file is probably gone.
    ///
    /// # Errors
    /// It stays in use by somebody.
    pub fn abandon(&self) -> Result<(), ToolError> {
        self.set_autoclear()?;
        // A device that is in use is detached when its last user lets go.
        if crate::retry(|| !self.is_attached()) {
            return Ok(());
        }
        let command = format!("losetup --detach {}", self.name());
        Err(ToolError { command, said: "the device stays in use".to_owned() })
    }

    /// Sets autoclear: the kernel detaches the device when its last user closes it. Does not wait.
    ///
    /// # Errors
    /// What `losetup` says.
    pub fn set_autoclear(&self) -> Result<(), ToolError> {
        let set = run("losetup", &["--detach".as_ref(), self.path.as_os_str()]);
        self.autoclear.fetch_or(set.is_ok(), Ordering::Relaxed);
        match set {
            // Another process was faster.
            Err(_) if !self.is_attached() => Ok(()),
            set => set.map(drop),
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if !self.autoclear.load(Ordering::Relaxed) && self.is_attached() {
            // A failure cannot be reported or retried here.
            let _ = self.flush();
            let _ = self.abandon();
        }
    }
}

/// All that are attached, and the files that they are over.
pub(crate) fn all() -> Vec<(PathBuf, PathBuf)> {
    let disks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let attached = disks.filter_map(|disk| {
        let device = Path::new("/dev").join(disk.file_name());
        // Not all names are text.
        let file = std::fs::read(disk.path().join("loop/backing_file")).ok()?;
        let file = OsStr::from_bytes(file.strip_suffix(b"\n").unwrap_or(&file));
        Some((device, PathBuf::from(file)))
    });
    attached.collect()
}

/// What the kernel says of a disk.
fn of_system(device: &Path, what: &str) -> Option<String> {
    let disk = Path::new("/sys/block").join(device.file_name()?);
    std::fs::read_to_string(disk.join(what)).ok()
}

/// Whether a file is there, with this number if one is known.
pub fn is_attached(path: &Path, sequence: Option<u64>) -> bool {
    let is_there = path
        .file_name()
        .is_some_and(|name| Path::new("/sys/block").join(name).join("loop/backing_file").exists());
    is_there && sequence.is_none_or(|known| sequence_of(path) == Some(known))
}

/// The kernel's number of an attachment.
pub(crate) fn sequence_of(device: &Path) -> Option<u64> {
    of_system(device, "diskseq")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_detach_that_fails_is_tried_again_and_takes_nobody_elses_away() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            File::create(&path).unwrap().set_len(1 << 20).unwrap();
            path
        };
        let device = LoopDevice::attach(&file("a")).unwrap();
        let sequence = device.sequence().expect("a kernel with numbers of disks");
        let user = File::open(device.path()).unwrap();
        let failed = device.detach().unwrap_err();
        assert!(failed.to_string().contains("stays in use"), "{failed}");
        assert!(device.is_attached());
        assert!(is_attached(device.path(), Some(sequence)));
        drop(user);
        device.detach().unwrap();
        assert!(!device.is_attached() && device.detach().is_ok());
        // The same device for another file, whoever has attached it.
        let words = [device.path().as_os_str().to_owned(), file("b").into_os_string()];
        if run("losetup", &words).is_ok() {
            let is_theirs = || of_system(device.path(), "loop/backing_file").is_some();
            assert!(is_theirs() && !device.is_attached());
            assert!(LoopDevice::left(device.path(), sequence).is_none());
            device.detach().unwrap();
            assert!(is_theirs(), "it is not ours to detach");
            run("losetup", &["--detach".as_ref(), device.path().as_os_str()]).unwrap();
        }
    }
}
