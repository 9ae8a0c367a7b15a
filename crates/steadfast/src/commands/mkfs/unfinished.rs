//! An image file that is being made: it goes with whoever gives up, and with a signal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// A file that is being made, and was not there before.
pub struct Unfinished {
    path: PathBuf,
    signals: Handle,
    /// It is there, made by us, and is not to be kept yet.
    is_ours: Arc<AtomicBool>,
}

impl Unfinished {
    /// Before it is made: signals are looked after from now on.
    pub fn new(path: &Path) -> Result<Unfinished> {
        let path = std::path::absolute(path)?;
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("signals")?;
        let (handle, at) = (signals.handle(), path.clone());
        let is_ours = Arc::new(AtomicBool::new(false));
        let ours = Arc::clone(&is_ours);
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                remove(&at, &ours);
                std::process::exit(128 + signal);
            }
        })?;
        Ok(Unfinished { path, signals: handle, is_ours })
    }

    /// It has been made.
    pub fn made(&self) {
        self.is_ours.store(true, Ordering::Release);
    }

    /// It is finished, and stays.
    pub fn keep(self) {
        self.is_ours.store(false, Ordering::Release);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.signals.close();
        remove(&self.path, &self.is_ours);
    }
}

fn remove(path: &Path, is_ours: &AtomicBool) {
    if is_ours.swap(false, Ordering::AcqRel) {
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
            std::fs::write(&path, "half").unwrap();
            if made {
                unfinished.made();
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
