//! A file system of ours on a folder, served by a thread of this process.

use std::path::Path;
use std::sync::Arc;

use steadfast_fuse::{FuseMount, MountError, OPTIONS, Options, Serving};
use steadfast_host::MountFolder;
use steadfast_vfs::FileSystem;
use steadfast_vfs::options::{WordEffect, WrongOption, apply, names, split, unknown};

use crate::Result;
use crate::tool::{kernel_mounts, new_folder};

/// Options of the mount itself, as `steadfast mount -o` takes them; those of the file system are
/// not among them.
///
/// # Errors
/// An option is unknown, or its value is out of range.
pub fn fuse_options(text: &str) -> std::result::Result<Options, WrongOption> {
    let mut options = Options::default();
    for word in split(OPTIONS, text, |_| false) {
        if apply(OPTIONS, &word, &mut options)? == WordEffect::Unknown {
            return Err(unknown(&word, &names(OPTIONS)));
        }
    }
    Ok(options)
}

/// A file system mounted by FUSE in a new folder: its calls are system calls, as those of the
/// kernel's file systems are. Taken away when dropped.
#[derive(Debug)]
pub struct FolderMount {
    /// `None` once it is taken away, or left.
    serving: Option<Serving>,
    // Removed last. Others of our threads wait for the mount, which would outlive this process.
    folder: MountFolder,
}

impl FolderMount {
    /// Whether this machine can mount it over a loop device.
    ///
    /// # Errors
    /// What is missing: rights, the kernel's part.
    pub fn available() -> Result<()> {
        kernel_mounts("fuse")
    }

    /// Mounts `fs` as `steadfast mount` does without options.
    ///
    /// # Errors
    /// No FUSE, no rights, no folder.
    pub fn new(fs: Arc<dyn FileSystem>) -> Result<FolderMount> {
        FolderMount::with_options(fs, &Options::default())
    }

    /// Mounts `fs` with options as [`fuse_options`] reads them.
    ///
    /// # Errors
    /// As [`FolderMount::new`].
    pub fn with_options(fs: Arc<dyn FileSystem>, options: &Options) -> Result<FolderMount> {
        let folder = new_folder()?;
        let serving = FuseMount::new(fs, folder.path(), options)?.serve_beside()?;
        Ok(FolderMount { serving: Some(serving), folder })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Takes it away now, so that a failure is seen. Nothing may be open in it. A copy of it in
    /// another mount namespace is cut off.
    ///
    /// # Errors
    /// It is in use.
    pub fn take_away(mut self) -> Result<()> {
        self.end()
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        let Some(mut serving) = self.serving.take() else { return Ok(()) };
        match serving.unmount() {
            // Whoever has something of it open is served as long as that lasts, which may be for
            // ever.
            Err(MountError::Busy { .. } | MountError::Unmount { .. }) => {
                serving.unmount_lazily()?
            }
            ended => ended?,
        };
        Ok(())
    }

    /// Lets go of it while somebody uses it, who is served as long as this process lives.
    pub(crate) fn leave(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.leave();
            self.folder.leave();
        }
    }
}

impl Drop for FolderMount {
    fn drop(&mut self) {
        // OK to ignore: there is no caller left to report to.
        let _ = self.end();
    }
}
