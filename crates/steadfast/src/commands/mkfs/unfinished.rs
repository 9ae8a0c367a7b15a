//! An image file that is being made: it goes with whoever gives up, and with a signal.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use signal_hook::iterator::{Handle, Signals};

use crate::commands::whole_file::place::{Identity, Place};
use crate::{Usage, stop_signals};

/// A file that is being made, and was not there before.
pub struct Unfinished {
    signals: Handle,
    /// Held while it is made: a signal waits until it is known whether there is something to
    /// remove.
    state: Arc<Mutex<State>>,
}

/// What there is to remove.
struct State {
    /// Where it is made: whoever renames folders afterwards does not choose what is removed.
    place: Place,
    /// The file, made by us, which is not to be kept yet.
    made: Option<Identity>,
}

impl Unfinished {
    /// Before it is made: signals are looked after from now on, but none that is ignored, as under
    /// nohup.
    ///
    /// # Errors
    /// There is no such place, or root does not follow the path to it.
    pub fn new(path: &Path) -> Result<Unfinished> {
        let place = Place::of_new(path).map_err(|e| {
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
        Ok(Unfinished { signals: handle, state })
    }

    /// Makes it. Where that fails it is whoever made it who removes what there is.
    pub fn make<T, E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut state = lock(&self.state);
        let made = make();
        let there = || Identity::of(&state.place.present().ok()??).ok();
        state.made = made.is_ok().then(there).flatten();
        made
    }

    /// It is finished, and stays.
    pub fn keep(self) {
        lock(&self.state).made = None;
    }
}

impl Drop for Unfinished {
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
            // OK to ignore: why it was given up is what counts.
            let _ = self.place.remove(made);
        }
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
