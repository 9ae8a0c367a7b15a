//! Signals that ask a command to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// How long signals are put off at most.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// What is done for a signal.
type Work = Box<dyn FnMut(i32) + Send>;

/// Stop signals of a process that mounts: they end it as ever, but not while a mount stands that
/// nobody serves yet, which would be left dead. From [`SignalBlock::then`] on they do what is said
/// there.
#[derive(Clone, Default)]
pub struct Stops(Arc<SignalCore>);

#[derive(Default)]
struct SignalCore {
    work: Mutex<Option<Work>>,
    /// One has come, and is put off.
    waits: AtomicBool,
}

/// Signals wait until this is dropped.
pub struct SignalBlock<'s>(MutexGuard<'s, Option<Work>>);

impl Stops {
    /// From now on.
    pub fn listen() -> Result<Stops> {
        let mut signals = Signals::new(numbers()).context("signals")?;
        let stops = Stops::default();
        let listening = stops.clone();
        // The kernel gives a signal to this thread if it may, also where it waits for a mount point
        // that does not answer: then nobody would see it.
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        set.thread_block().context("signals")?;
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            // OK to ignore: the set is one of signals.
            let _ = set.thread_unblock();
            for signal in signals.forever() {
                match listening.held_within(PATIENCE).as_mut().map(|held| &mut *held.0) {
                    Some(Some(work)) => work(signal),
                    // OK to ignore: it fails only for signals that have no default.
                    _ => drop(emulate_default_handler(signal)),
                }
            }
        })?;
        Ok(stops)
    }

    fn held_within(&self, time: Duration) -> Option<SignalBlock<'_>> {
        let until = Instant::now() + time;
        self.0.waits.store(true, Ordering::Release);
        let held = loop {
            match self.0.work.try_lock() {
                Ok(held) => break Some(SignalBlock(held)),
                Err(TryLockError::Poisoned(held)) => break Some(SignalBlock(held.into_inner())),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => break None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            }
        };
        self.0.waits.store(false, Ordering::Release);
        held
    }

    /// Puts them off, but not for ever: what is done meanwhile may wait for a mount point that
    /// lies on somebody's file system. One that has come before is first.
    pub fn hold(&self) -> SignalBlock<'_> {
        let until = Instant::now() + PATIENCE;
        while self.0.waits.load(Ordering::Acquire) && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
        SignalBlock(self.0.work.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl SignalBlock<'_> {
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
