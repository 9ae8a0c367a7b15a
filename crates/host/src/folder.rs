//! Folders that are removed with what is in them, but never with what is mounted there.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;

use tempfile::TempDir;

use crate::leftovers::{self, FolderLock};
use crate::mounts::seen_by;

/// A new folder for what is temporary, and to mount on. Removed with all that is in it when
/// dropped, unless something is still mounted on it or below it: then it stays, because removing it
/// would empty that file system. What a process leaves there that is killed, mounts and loop
/// devices, the next one clears that makes a folder, if its name begins with `steadfast-`.
#[derive(Debug)]
pub struct Folder {
    /// Absolute, without symbolic links: as the kernel names what is mounted.
    path: PathBuf,
    whole: Option<TempDir>,
    owner: Option<FolderLock>,
}

impl Folder {
    /// In the folder for temporary files.
    ///
    /// # Errors
    /// What the host reports.
    pub fn new(prefix: &str) -> io::Result<Folder> {
        Folder::new_in(&std::env::temp_dir(), prefix)
    }

    /// The same in a folder.
    ///
    /// # Errors
    /// What the host reports.
    pub fn new_in(folder: &Path, prefix: &str) -> io::Result<Folder> {
        clear_leftovers();
        let mut made = Folder::of(tempfile::Builder::new().prefix(prefix).tempdir_in(folder)?);
        made.owner = Some(FolderLock::new(&made.path)?);
        Ok(made)
    }

    /// One that was made.
    pub(crate) fn of(whole: TempDir) -> Folder {
        let path = whole.path().canonicalize().unwrap_or_else(|_| whole.path().to_owned());
        Folder { path, whole: Some(whole), owner: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Clears what killed processes have left, as the first [`Folder`] of a process does.
pub fn clear_leftovers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(leftovers::clear);
}

/// Whether something is mounted on a folder or below it. Where that cannot be found out it is.
pub(crate) fn has_mounts(folder: &Path) -> bool {
    seen_by("self").map_or(true, |mounts| mounts.iter().any(|mount| mount.at.starts_with(folder)))
}

/// Where something is mounted, what was mounted last at the end.
pub(crate) fn mounted() -> Vec<PathBuf> {
    seen_by("self").unwrap_or_default().into_iter().map(|mount| mount.at).collect()
}

/// The same of mounts that a process serves.
pub(crate) fn fuse_mounted() -> Vec<PathBuf> {
    let mounts = seen_by("self").unwrap_or_default().into_iter();
    mounts.filter(|mount| mount.kind.starts_with("fuse")).map(|mount| mount.at).collect()
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(whole) = self.whole.take()
            && has_mounts(&self.path)
        {
            // OK to ignore where it is: whoever left the mount there knows.
            let _ = whole.keep();
            // It is no leftover as long as this process lives.
            std::mem::forget(self.owner.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::program::run;

    /// Another file system, to which something was written.
    #[test]
    #[allow(clippy::print_stdout, reason = "a test that did not run says so")]
    fn what_is_mounted_is_not_emptied() {
        let whole = tempfile::tempdir().unwrap();
        for (below, empty) in [("", true), ("a/b c", false)] {
            let folder = Folder::new_in(whole.path(), "x y").unwrap();
            let at = folder.path().join(below);
            fs::create_dir_all(&at).unwrap();
            let tmpfs: [&std::ffi::OsStr; 4] =
                ["-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), at.as_ref()];
            if let Err(e) = run("mount", &tmpfs) {
                println!("SKIPPED: mounting needs root: {e}");
                return;
            }
            fs::write(at.join("file"), "text").unwrap();
            let path = folder.path().to_owned();
            drop(folder);
            let kept = fs::read_to_string(at.join("file"));
            run("umount", &[&at]).unwrap();
            assert_eq!(kept.unwrap(), "text", "{below:?}");
            assert_eq!(fs::read_dir(&path).unwrap().count() == 0, empty);
            let folder = Folder::new_in(whole.path(), "x").unwrap();
            fs::write(folder.path().join("file"), "text").unwrap();
            let path = folder.path().to_owned();
            drop(folder);
            assert!(!path.exists());
        }
    }
}
