//! Where guests have their files, `target/guest`: what all share, and a folder for each run.
//!
//! Several runs may be under way at once. What they share (the kernel) is made by one of them,
//! while it has the lock of `target/guest`. What is made for one run (initramfs, console, images)
//! is in a folder of its own, which is locked for as long as the run lasts. That of a run that
//! failed stays, for who wants to look at it, until the next run begins.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};

/// First letters of the folders of runs.
const OWN: &str = "run-";

/// The folder of one run.
pub struct Folder {
    path: PathBuf,
    /// Goes with the process, however that ends.
    _lock: File,
}

impl Folder {
    /// A new one; those of earlier runs that have ended are removed.
    pub fn new(root: &Path) -> anyhow::Result<Folder> {
        shared(root, |guests| {
            remove_ended(guests)?;
            let process = std::process::id();
            let free = |n: &u32| !guests.join(format!("{OWN}{process}-{n}")).exists();
            let number = (0..).find(free).context("no number is free")?;
            let path = guests.join(format!("{OWN}{process}-{number}"));
            std::fs::create_dir(&path)?;
            let lock = File::open(&path)?;
            flock(&lock, FlockOperation::LockExclusive)?;
            Ok(Folder { path, _lock: lock })
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it: the run has ended well.
    pub fn done(self) -> anyhow::Result<()> {
        let shown = self.path.display().to_string();
        std::fs::remove_dir_all(&self.path).with_context(|| format!("removing {shown}"))
    }
}

/// Does something with what all runs share, alone.
pub fn shared<T>(root: &Path, work: impl FnOnce(&Path) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let guests = root.join("target/guest");
    let in_it = || guests.display().to_string();
    std::fs::create_dir_all(&guests).with_context(in_it)?;
    let lock = File::create(guests.join("lock")).with_context(in_it)?;
    flock(&lock, FlockOperation::LockExclusive).with_context(in_it)?;
    work(&guests)
}

/// Removes the folders that nobody has locked.
fn remove_ended(guests: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(guests)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with(OWN) {
            continue;
        }
        // One that has just ended well is gone.
        let Ok(folder) = File::open(&path) else { continue };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            std::fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn runs_at_once_have_folders_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        let [one, two] = [(); 2].map(|()| Folder::new(root.path()).unwrap());
        assert_ne!(one.path(), two.path());
        std::fs::write(one.path().join("console"), "one").unwrap();
        std::fs::write(two.path().join("console"), "two").unwrap();
        // A third one takes neither away; one that failed stays until the next one.
        let failed = Folder::new(root.path()).unwrap();
        let stays = failed.path().to_path_buf();
        drop(failed);
        assert!(stays.is_dir());
        let next = Folder::new(root.path()).unwrap();
        assert!(next.path() == stays || !stays.exists());
        assert_eq!(std::fs::read_to_string(one.path().join("console")).unwrap(), "one");
        let ended = two.path().to_path_buf();
        two.done().unwrap();
        assert!(!ended.exists() && one.path().is_dir());
    }

    #[test]
    fn what_is_shared_is_made_by_one_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let (inside, made) = (AtomicU32::new(0), AtomicU32::new(0));
        let make = || {
            shared(root.path(), |guests| {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "somebody else is at it");
                if !guests.join("kernel").exists() {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    std::fs::write(guests.join("kernel"), "")?;
                    made.fetch_add(1, Ordering::SeqCst);
                }
                inside.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            })
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
            all.into_iter().for_each(|one| one.join().unwrap().unwrap());
        });
        assert_eq!(made.into_inner(), 1);
    }
}
