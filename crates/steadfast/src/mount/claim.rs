//! One mount at a time at a place: from the look at it until it is mounted.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use steadfast_host::mounts;

use super::place::own_file;

/// A place that this process is about to mount at: a lock that a killed process lets go.
#[derive(Debug)]
pub struct MountpointLock {
    path: PathBuf,
    // Held until the file is removed.
    _file: Option<File>,
}

impl MountpointLock {
    /// Takes the place at a path; the locks are in `folder`, this user's. A path that leads nowhere
    /// is nobody's: what is wrong with it, others say.
    ///
    /// # Errors
    /// Another process is about to mount there; no right to make the lock.
    pub fn new(folder: &Path, at: &Path) -> Result<MountpointLock> {
        let Ok(place) = mounts::at(at) else {
            return Ok(MountpointLock { path: at.into(), _file: None });
        };
        let mut number = DefaultHasher::new();
        place.path.hash(&mut number);
        let path = folder.join(format!("{:016x}.mounting", number.finish()));
        let failed = || format!("lock {}", path.display());
        loop {
            let file = own_file(&path).with_context(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => {
                    let what = "another mount is being made there: wait for it, or choose another";
                    usage!("mount point {}: {what}", at.display());
                }
                locked => locked.with_context(failed)?,
            }
            // Who had it before may have removed it meanwhile.
            let is_it = |there: std::fs::Metadata| -> std::io::Result<bool> {
                Ok(there.ino() == file.metadata()?.ino())
            };
            if path.symlink_metadata().and_then(is_it).unwrap_or(false) {
                return Ok(MountpointLock { path, _file: Some(file) });
            }
        }
    }
}

impl Drop for MountpointLock {
    fn drop(&mut self) {
        if self._file.is_some() {
            // OK to ignore: the next one takes it over.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_process_s_until_it_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let (at, other) = (folder.path().join("m"), folder.path().join("n"));
        std::fs::create_dir(&at).unwrap();
        std::fs::create_dir(&other).unwrap();
        let first = MountpointLock::new(folder.path(), &at).unwrap();
        let same = folder.path().join("n/../m/.");
        let said = MountpointLock::new(folder.path(), &same).unwrap_err();
        assert!(said.downcast_ref::<crate::Usage>().is_some(), "{said}");
        let _other = MountpointLock::new(folder.path(), &other).unwrap();
        drop(first);
        let again = MountpointLock::new(folder.path(), &at).unwrap();
        // One that a killed process has left.
        let path = again.path.clone();
        drop(again);
        File::create(&path).unwrap();
        drop(MountpointLock::new(folder.path(), &at).unwrap());
        assert!(!path.exists());
        MountpointLock::new(folder.path(), &folder.path().join("nowhere")).unwrap();
        // What others have put there is neither followed nor waited for.
        std::os::unix::fs::symlink(folder.path().join("made"), &path).unwrap();
        MountpointLock::new(folder.path(), &at).unwrap_err();
        assert!(!folder.path().join("made").exists());
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        MountpointLock::new(folder.path(), &at).unwrap_err();
    }
}
