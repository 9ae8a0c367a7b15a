//! A file system of ours on a folder, served by a thread of this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steadfast_fuse::{MountError, Mounted, Options, Unmounter};
use steadfast_host::Folder;
use steadfast_vfs::FileSystem;

use crate::PeerError;

/// How long is waited for who still uses what was unmounted lazily.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// A file system mounted by FUSE in a new folder: its calls are system calls, as those of the
/// kernel's file systems are. Taken away when dropped.
#[derive(Debug)]
pub struct Served {
    unmounter: Unmounter,
    thread: Option<JoinHandle<()>>,
    folder: PathBuf,
    // Removed last.
    _folder: Folder,
}

impl Served {
    /// Mounts `fs` as `steadfast mount` does without options.
    ///
    /// # Errors
    /// No FUSE, no rights, no folder.
    pub fn new(fs: Arc<dyn FileSystem>) -> Result<Served, PeerError> {
        Served::with_options(fs, &Options::default())
    }

    pub(crate) fn with_options(
        fs: Arc<dyn FileSystem>,
        options: &Options,
    ) -> Result<Served, PeerError> {
        let folder = Folder::new("steadfast-mount-")
            .map_err(|e| PeerError::Folder { why: e.to_string() })?;
        let mounted = Mounted::new(fs, folder.path(), options)?;
        let unmounter = mounted.unmounter();
        let path = mounted.mountpoint().to_path_buf();
        let serving = std::thread::Builder::new().name("serves a mount".into());
        // OK to ignore how serving ends: whoever uses the mount sees its errors.
        let spawned = serving.spawn(move || drop(mounted.serve()));
        let thread = match spawned {
            Ok(thread) => thread,
            Err(e) => {
                // It would wait for an answer for ever.
                let _ = unmounter.unmount_lazily();
                return Err(PeerError::Folder { why: format!("no thread: {e}") });
            }
        };
        Ok(Served { unmounter, thread: Some(thread), folder: path, _folder: folder })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Takes it away now, so that a failure is seen. Nothing may be open in it.
    ///
    /// # Errors
    /// It is in use.
    pub fn take_away(mut self) -> Result<(), PeerError> {
        self.end()
    }

    pub(crate) fn end(&mut self) -> Result<(), PeerError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        // A tool that has just ended may still hold the folder for a moment.
        let unmounted = (0..50).any(|_| {
            let gone = self.unmounter.unmount().is_ok();
            if !gone {
                std::thread::sleep(PAUSE);
            }
            gone
        });
        if !unmounted {
            self.unmounter.unmount_lazily()?;
            // Whoever has something of it open is served as long as that lasts, which may be for
            // ever.
            let until = Instant::now() + PATIENCE;
            while !thread.is_finished() {
                if Instant::now() >= until {
                    return Err(MountError::Busy { path: self.folder.clone() }.into());
                }
                std::thread::sleep(PAUSE);
            }
        }
        // OK to ignore: a panic there was the server's, and is reported there.
        let _ = thread.join();
        Ok(())
    }

    /// Lets go of it while somebody uses it, who is served as long as this process lives.
    pub(crate) fn leave(&mut self) {
        if self.thread.take().is_some() {
            // OK to ignore: there is nobody who could do more.
            let _ = self.unmounter.unmount_lazily();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // OK to ignore: there is no caller left to report to.
        let _ = self.end();
    }
}
