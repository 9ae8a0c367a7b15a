//! Signals that ask to stop: what is under way comes to its end, and every mount is taken away in
//! its order. A process that simply ended would leave the kernel waiting for a device that it has
//! served itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use signal_hook::iterator::Signals;

use crate::{stop_signals, terminal};

/// Whether nothing is mounted any more, nor will be.
static MAY_END: AtomicBool = AtomicBool::new(false);

/// The work is done, and what is left is to print what was found: from now on a signal ends the
/// process, whose reader may not read.
pub fn end_with_signals() {
    MAY_END.store(true, Ordering::Relaxed);
}

/// Counts the signals that ask to stop; the first is answered with `note`.
pub fn on_signals(note: &'static str) -> Result<Arc<AtomicUsize>> {
    let stops = Arc::new(AtomicUsize::new(0));
    let mut signals = Signals::new(stop_signals::numbers()).context("signals")?;
    let counter = Arc::clone(&stops);
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || {
        for signal in signals.forever() {
            if MAY_END.load(Ordering::Relaxed) {
                std::process::exit(128 + signal);
            }
            if counter.fetch_add(1, Ordering::Relaxed) == 0 {
                terminal::note(note);
            }
        }
    })?;
    Ok(stops)
}
