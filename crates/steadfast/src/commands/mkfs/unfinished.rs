//! An image file that is being made: it goes with whoever gives up, and with a signal.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use signal_hook::iterator::{Handle, Signals};

use steadfast_devices::source::NewFile;

use crate::commands::whole_file::place::FolderName;
use crate::{Usage, stop_signals};

/// A file that is being made, and was not there before.
pub struct UnfinishedFile {
    signals: Handle,
    /// Held while it is made: a signal waits until it is known whether there is something to
    /// remove.
    state: Arc<Mutex<State>>,
}

/// What there is to remove.
struct State {
    /// Where it is made: whoever renames folders afterwards does not choose what is removed.
    place: FolderName,
    /// The file, made by us, which is not to be kept yet.
    made: Option<NewFile>,
}

impl UnfinishedFile {
    /// Before it is made: signals are looked after from now on, but none that is ignored, as under
    /// nohup.
    ///
    /// # Errors
    /// There is no such place, or root does not follow the path to it.
    pub fn new(path: &Path) -> Result<UnfinishedFile> {
        let place = FolderName::of_new_file(path).map_err(|e| {
            // What opening it would say, and more where root does not follow a link.
            Usage(format!("{}: cannot create it: {e}", path.display()))
        })?;
        let mut signals = Signals::new(stop_signals::numbers()).context("signals")?;
        let handle = signals.handle();
        let state = State { place, made: None };
        let state = Arc::new(Mutex::new(state));
        let seen = Arc::clone(&state);
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let mut state = lock(&seen);
                state.remove();
                // With the lock: nothing is made any more.
                std::process::exit(128 + signal);
            }
        })?;
        Ok(UnfinishedFile { signals: handle, state })
    }

    /// Makes it, in the folder that was found. Where that fails it is whoever made it who removes
    /// what there is.
    pub fn make<T>(&self, make: impl FnOnce(OwnedFd) -> Result<(T, NewFile)>) -> Result<T> {
        let mut state = lock(&self.state);
        let (device, made) = make(state.place.folder().try_clone()?)?;
        state.made = Some(made);
        Ok(device)
    }

    /// It is finished, and stays.
    pub fn keep(self) {
        lock(&self.state).made = None;
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        self.signals.close();
        lock(&self.state).remove();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // OK to ignore a panic of another thread: the answer is as true as before.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn remove(&mut self) {
        if let Some(made) = self.made.take() {
            made.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use steadfast_devices::source::{FileDevice, FileOptions};

    use super::*;

    fn make(unfinished: &UnfinishedFile, path: &Path) -> Result<FileDevice> {
        let options = FileOptions::default();
        unfinished.make(|folder| Ok(FileDevice::create_in(folder, path, 1 << 20, &options)?))
    }

    /// Another user exchanges the folder for a link after the path was followed.
    #[test]
    fn it_is_made_where_the_path_led_at_first() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for kept in [true, false] {
            std::fs::create_dir_all(at("dir")).unwrap();
            std::fs::create_dir_all(at("roots")).unwrap();
            let unfinished = UnfinishedFile::new(&at("dir/image")).unwrap();
            std::fs::rename(at("dir"), at("moved")).unwrap();
            symlink("roots", at("dir")).unwrap();
            // It is that file which is opened, and not another one of the name.
            let device = make(&unfinished, &at("dir/image")).unwrap();
            assert_eq!(std::fs::read_dir(at("roots")).unwrap().count(), 0);
            assert!(at("moved/image").exists());
            drop(device);
            // What has the name by now is not ours to remove.
            std::fs::write(at("roots/image"), "root's").unwrap();
            if kept {
                unfinished.keep()
            } else {
                drop(unfinished)
            }
            assert_eq!(at("moved/image").exists(), kept);
            assert!(at("roots/image").exists());
            for left in ["dir", "moved/image", "roots/image"] {
                let _ = std::fs::remove_file(at(left));
            }
            std::fs::remove_dir(at("moved")).unwrap();
        }
    }

    #[test]
    fn what_is_not_kept_goes_and_what_is_not_ours_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        for (made, kept, stays) in [(true, false, false), (true, true, true), (false, false, true)]
        {
            let unfinished = UnfinishedFile::new(&path).unwrap();
            if made {
                make(&unfinished, &path).unwrap();
            } else {
                std::fs::write(&path, "theirs").unwrap();
            }
            if kept {
                unfinished.keep();
            } else {
                drop(unfinished);
            }
            assert_eq!(path.exists(), stays);
        }
    }
}
