//! The folder of a replay: it goes at the end, and with a signal that ends the process.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::iterator::{Handle, Signals};
use steadfast_trace::format::TraceCall;
use steadfast_trace::replay::{CallPaths, ReplayObserver};
use tempfile::TempDir;

use crate::{Usage, stop_signals, terminal};

/// How long it is tried to remove the folder after a signal: calls under way may still make files.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// A folder of a replay's own.
pub struct ReplayFolder {
    folder: TempDir,
    signals: Handle,
    halt: Arc<ReplayHalt>,
}

/// Once a signal has come no call begins any more: what it made could not be removed.
#[derive(Default)]
pub struct ReplayHalt(AtomicBool);

impl ReplayHalt {
    fn wait(&self) {
        while self.0.load(Ordering::Relaxed) {
            std::thread::park();
        }
    }
}

impl ReplayObserver for ReplayHalt {
    fn wants_paths(&self) -> bool {
        false
    }

    fn made(&self, _: u64, _: &str, _: Option<u64>) -> Option<u64> {
        self.wait();
        None
    }

    fn begins(&self, _: u64, _: &TraceCall, _: &CallPaths) -> Option<u64> {
        self.wait();
        None
    }
}

impl ReplayFolder {
    /// Makes one below a folder, and looks after signals from then on.
    pub fn below(folder: &Path) -> Result<ReplayFolder> {
        let there =
            std::fs::metadata(folder).map_err(|e| Usage(format!("{}: {e}", folder.display())))?;
        if !there.is_dir() {
            usage!("{}: is no folder", folder.display());
        }
        let mut signals = Signals::new(stop_signals::numbers()).context("signals")?;
        let handle = signals.handle();
        let made = tempfile::Builder::new().prefix("steadfast-replay-").tempdir_in(folder);
        let made = made.map_err(|e| Usage(format!("{}: {e}", folder.display())))?;
        let halt = Arc::<ReplayHalt>::default();
        let (path, halted) = (made.path().to_owned(), Arc::clone(&halt));
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                halted.0.store(true, Ordering::Relaxed);
                remove(&path);
                // As a shell reports a process that a signal has ended.
                std::process::exit(128 + signal);
            }
        })?;
        Ok(ReplayFolder { folder: made, signals: handle, halt })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What a replay there must be told to look at.
    pub fn halt(&self) -> Arc<ReplayHalt> {
        Arc::clone(&self.halt)
    }

    /// Removes it.
    pub fn close(self) -> Result<()> {
        let path = self.folder.path().to_owned();
        let closed = self.folder.close().with_context(|| format!("removing {}", path.display()));
        self.signals.close();
        closed
    }
}

/// Removes a folder in which files may still be made.
fn remove(path: &Path) {
    let until = Instant::now() + PATIENCE;
    while let Err(e) = std::fs::remove_dir_all(path) {
        if !path.exists() {
            return;
        }
        if Instant::now() > until {
            return terminal::note(&format!("note: {} is left: {e}; remove it", path.display()));
        }
        std::thread::sleep(PAUSE);
    }
}
