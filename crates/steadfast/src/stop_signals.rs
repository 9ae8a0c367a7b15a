//! Signals that ask a command to stop.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// What is done for a signal.
type Work = Box<dyn FnMut(i32) + Send>;

/// Stop signals of a process that mounts: they end it as ever, but not while a mount stands that
/// nobody serves yet, which would be left dead. From [`Held::then`] on they do what is said there.
#[derive(Clone)]
pub struct Stops(Arc<Mutex<Option<Work>>>);

/// Signals wait until this is dropped.
pub struct Held<'s>(MutexGuard<'s, Option<Work>>);

impl Stops {
    /// From now on.
    pub fn listen() -> Result<Stops> {
        let mut signals = Signals::new(numbers()).context("signals")?;
        let stops = Stops(Arc::default());
        let listening = stops.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in signals.forever() {
                match &mut *listening.hold().0 {
                    Some(work) => work(signal),
                    // OK to ignore: it fails only for signals that have no default.
                    None => drop(emulate_default_handler(signal)),
                }
            }
        })?;
        Ok(stops)
    }

    /// Puts them off.
    pub fn hold(&self) -> Held<'_> {
        Held(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Held<'_> {
    /// What a signal does from now on, also one that has waited.
    pub fn then(mut self, work: impl FnMut(i32) + Send + 'static) {
        *self.0 = Some(Box::new(work));
    }
}

/// Ctrl-C, `kill`, and the end of the terminal; that not under nohup(1), where it is no reason to
/// stop.
pub fn numbers() -> Vec<i32> {
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hang_up).collect()
}

/// Whether this process inherited a signal as ignored (proc_pid_status(5)).
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}
