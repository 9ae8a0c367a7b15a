//! The folder that a program under test works in: a mount of its own, taken away when dropped.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use steadfast_fuse::{FuseMount, Invalidator, MountError, Options, Serving};
use steadfast_host::MountFolder;
use steadfast_vfs::FileSystem;

use crate::mount::holders;
use crate::terminal;

/// How the table of mounts calls it.
const SOURCE: &str = "crash-test";

/// A file system, mounted by FUSE in a private folder.
pub struct ServedFolder {
    // Before the mount is taken away: it holds the connection.
    kernel: Invalidator,
    serving: Serving,
    // Removed last.
    _folder: MountFolder,
}

impl ServedFolder {
    /// Mounts it with these options.
    pub fn new(fs: Arc<dyn FileSystem>, options: Options) -> Result<ServedFolder> {
        let folder = MountFolder::new()?;
        // Servers run under users of their own; the file system's permissions hold for them.
        let allow_other = options.allow_other || rustix::process::geteuid().is_root();
        let options = Options { source: SOURCE.to_owned(), allow_other, ..options };
        let mount = FuseMount::new(fs, folder.path(), &options)?;
        let kernel = mount.invalidator();
        Ok(ServedFolder { kernel, serving: mount.serve_beside()?, _folder: folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.serving.mountpoint()
    }

    /// Tells the kernel to forget what it knows of a name of the root, and below it.
    pub fn forget(&self, name: &str) {
        self.kernel.below(name.as_ref());
    }

    /// Unmounts it; `user` is what ran there.
    pub fn end(mut self, user: &str) -> Result<()> {
        match self.serving.unmount() {
            Ok(ended) if !ended.well => bail!("a fault in the file system's code was caught"),
            Ok(ended) => {
                if ended.cut_off {
                    let what = "a copy of the mount in another mount namespace was cut off";
                    terminal::note(&format!("note: {what}{}", self.holders()));
                }
                Ok(())
            }
            // They are served as long as they live; nothing waits for that.
            Err(e @ MountError::Held { .. }) => {
                terminal::note(&format!("note: {e}{}", self.holders()));
                Ok(())
            }
            Err(MountError::Busy { .. }) => {
                let what = format!("note: something that {user} has started still uses the mount");
                terminal::note(&what);
                Ok(())
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Who holds the mount elsewhere, as far as /proc says.
    fn holders(&self) -> String {
        let device = self.serving.unmounter().device().unwrap_or_default();
        let found = holders::of(device, self.path(), SOURCE);
        let names: Vec<String> = found.iter().map(ToString::to_string).collect();
        if names.is_empty() { String::new() } else { format!(": {}", names.join("; ")) }
    }
}
