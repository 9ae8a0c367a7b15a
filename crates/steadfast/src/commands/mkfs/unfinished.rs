//! An image file that is being made: it goes with whoever gives up, and with a signal.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// A file that is being made, and was not there before.
pub struct Unfinished {
    path: PathBuf,
    signals: Handle,
    /// It is there, made by us, and is not to be kept yet. Held while it is made: a signal waits
    /// until it is known whether there is something to remove.
    is_ours: Arc<Mutex<bool>>,
}

impl Unfinished {
    /// Before it is made: signals are looked after from now on.
    pub fn new(path: &Path) -> Result<Unfinished> {
        let path = std::path::absolute(path)?;
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("signals")?;
        let (handle, at) = (signals.handle(), path.clone());
        let is_ours = Arc::new(Mutex::new(false));
        let ours = Arc::clone(&is_ours);
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let mut is_ours = lock(&ours);
                remove(&at, &mut is_ours);
                // With the lock: nothing is made any more.
                std::process::exit(128 + signal);
            }
        })?;
        Ok(Unfinished { path, signals: handle, is_ours })
    }

    /// Makes it. Where that fails it is whoever made it who removes what there is.
    pub fn make<T, E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut is_ours = lock(&self.is_ours);
        let made = make();
        *is_ours = made.is_ok();
        made
    }

    /// It is finished, and stays.
    pub fn keep(self) {
        *lock(&self.is_ours) = false;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.signals.close();
        remove(&self.path, &mut lock(&self.is_ours));
    }
}

fn lock(is_ours: &Mutex<bool>) -> MutexGuard<'_, bool> {
    // OK to ignore a panic of another thread: the answer is as true as before.
    is_ours.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(path: &Path, is_ours: &mut bool) {
    if std::mem::take(is_ours) {
        // OK to ignore: why it was given up is what counts.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_kept_goes_and_what_is_not_ours_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        for (made, kept, stays) in [(true, false, false), (true, true, true), (false, false, true)]
        {
            let unfinished = Unfinished::new(&path).unwrap();
            if made {
                unfinished.make(|| std::fs::write(&path, "half")).unwrap();
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
